//! From flows that have ended to what is reported of them.

use super::decode::Address;
use super::engine::Heard;
use super::flows::conn::{Conn, Half, PathState};
use super::flows::ends::Ends;
use super::flows::mover::{Moved, SETTLING_NS};
use super::flows::view::{Settings, View};
use super::model::{
    Direction, DirectionReport, EndCounts, Endpoint, Flow, Handover, HandoverKind, Interruption, Mobility,
    NetworkLatency, Path, Protocol, SignalKind, Vantage,
};

/// Handovers reported.
const MAX_HANDOVERS: usize = 20_000;

/// Interruptions reported.
const MAX_INTERRUPTIONS: usize = 1000;

/// Signals that are listed with a handover.
const MAX_LISTED: usize = 64;

/// Signalling is looked for this long before the last data over the old path, nanoseconds.
const SIGNALS_BEFORE_NS: u64 = 5_000_000_000;

/// A handover with what is needed to find its signalling.
pub(super) struct Found {
    pub handover: Handover,
    last_old_ns: u64,
    first_new_ns: u64,
    /// Addresses of the new path that the old one did not have.
    new_addresses: Vec<Address>,
    identities: [Address; 2],
}

/// What has been found so far.
pub(super) struct Results {
    pub flows: Vec<Flow>,
    pub handovers: Vec<Found>,
    pub interruptions: Vec<Interruption>,
    pub handovers_dropped: u64,
    max_flows: usize,
}

impl Results {
    pub(super) const fn new(max_flows: usize) -> Self {
        Self {
            flows: Vec::new(),
            handovers: Vec::new(),
            interruptions: Vec::new(),
            handovers_dropped: 0,
            max_flows,
        }
    }

    /// A flow has ended; `end_ns` is the time up to which the captures have been read.
    pub(super) fn add(&mut self, mut conn: Conn, settings: &Settings, end_ns: u64) {
        let seconds = |ns: u64| ns.saturating_sub(settings.start_ns) as f64 / 1e9;
        let mut reports = Vec::with_capacity(2);
        let mut places = [0; 2];
        let mut senders = Vec::new();
        for (number, chosen) in places.iter_mut().enumerate() {
            let half = core::mem::take(&mut conn.halves[number]);
            let has_data = |view: &Option<Box<View>>| view.as_ref().is_some_and(|v| v.data_packets > 0);
            *chosen = usize::from(has_data(&half.at[1]) || (half.packets[0] == 0 && half.packets[1] > 0));
            let (report, of_sender) = self.direction(&conn, number, *chosen, half, settings, end_ns);
            reports.push(report);
            senders.extend(of_sender);
        }
        let paths = (0u16..).zip(&conn.paths).filter_map(|(id, p)| {
            let place = places[p.direction];
            if p.data_packets[place] > 0 {
                return Some((id, p, place));
            }
            senders.contains(&id).then_some((id, p, 0))
        });
        let paths = paths.map(|(id, p, place)| Path {
            id,
            direction: direction_of(p.direction),
            source: p.outer.0.ip(),
            destination: p.outer.1.ip(),
            source_port: p.ports.0,
            destination_port: p.ports.1,
            tunnelled: p.tunnelled,
            interface: None,
            seen_at: p.seen_at,
            first_s: seconds(p.first_ns),
            last_s: seconds(p.last_ns),
            data_packets: p.data_packets[place],
            data_bytes: p.data_bytes[place],
        });
        let paths: Vec<Path> = paths.collect();
        let (Some(reverse), Some(forward)) = (reports.pop(), reports.pop()) else {
            return;
        };
        self.flows.push(Flow {
            id: conn.id,
            protocol: conn.protocol,
            mobility: mobility(&conn),
            a: Endpoint {
                address: conn.shown.0.ip(),
                port: conn.a.1,
            },
            b: Endpoint {
                address: conn.shown.1.ip(),
                port: conn.b.1,
            },
            parent: conn.parent().map(|p| p.id),
            begin_s: seconds(conn.begin_ns),
            end_s: seconds(conn.last_ns),
            forward,
            reverse,
            paths,
        });
        if self.flows.len() >= self.max_flows.saturating_mul(2).max(16) {
            self.keep_most();
        }
    }

    /// Those with handovers, and those with most data.
    pub(super) fn keep_most(&mut self) {
        if self.flows.len() <= self.max_flows {
            return;
        }
        let mut moved: Vec<u64> = self.handovers.iter().map(|h| h.handover.flow).collect();
        moved.sort_unstable();
        let weight = |f: &Flow| {
            let bytes = f.forward.data_bytes + f.reverse.data_bytes;
            (
                moved.binary_search(&f.id).is_ok(),
                bytes,
                core::cmp::Reverse(f.id),
            )
        };
        self.flows.sort_by_key(|f| core::cmp::Reverse(weight(f)));
        self.flows.truncate(self.max_flows);
    }

    /// The report, and the paths of handovers that the sender's capture alone has.
    fn direction(
        &mut self,
        conn: &Conn,
        number: usize,
        place: usize,
        mut half: Half,
        settings: &Settings,
        end_ns: u64,
    ) -> (DirectionReport, Vec<u16>) {
        let ends = half.ends.take().filter(|e| e.matched);
        let certain = half.certain[place];
        let mut view = half.at[place].take().map(|v| *v).unwrap_or_default();
        let moved = view.moved(settings.window_ns);
        let senders = match (&ends, &mut half.at[0]) {
            (Some(ends), Some(sender)) => beyond(ends, sender, &moved, settings.window_ns),
            _ => Vec::new(),
        };
        let counts = ends.map(|e| e.finish(end_ns));
        let (counts, around) = counts.map_or((None, Vec::new()), |(c, a)| (Some(c), a));
        let sender_rtt = half.at[0]
            .as_ref()
            .and_then(|v| v.detail.as_ref()?.round_trips.spread());
        let vantage = match (counts, place, certain) {
            (Some(_), ..) => Vantage::Both,
            (None, 1, _) => Vantage::Receiver,
            (None, _, true) => Vantage::Sender,
            _ => Vantage::Unknown,
        };
        let packets = half.packets[place];
        self.interruptions(conn.id, number, &view, &moved, settings);
        let any = !moved.is_empty();
        for m in moved {
            self.handover(conn, number, &m, &around, view.first_data_ns, settings);
        }
        let mut senders_paths = Vec::new();
        let first_sent_ns = half.at[0].as_ref().map_or(0, |v| v.first_data_ns);
        for m in senders {
            self.handover(conn, number, &m, &[], first_sent_ns, settings);
            senders_paths.extend([m.from, m.to]);
        }
        let lasted_ns = view.last_data_ns.saturating_sub(view.first_data_ns);
        let receiver_rtt = view.detail.as_ref().and_then(|d| d.round_trips.spread());
        let report = DirectionReport {
            vantage,
            packets,
            data_packets: view.data_packets,
            data_bytes: view.data_bytes,
            useful_bytes: view.useful_bytes,
            throughput_bps: rate(view.useful_bytes, lasted_ns),
            duplicate_packets: view.duplicates,
            out_of_order_packets: view.out_of_order,
            retransmissions: counts.map_or(view.retransmissions, |c| c.retransmissions),
            longest_gap_s: view.longest_gap_ns as f64 / 1e9,
            rtt_s: sender_rtt.or(receiver_rtt),
            ends: counts,
            series: view.series().filter(|_| any || view.data_packets > 1),
        };
        (report, senders_paths)
    }

    /// Pauses that no handover explains.
    fn interruptions(&mut self, flow: u64, number: usize, view: &View, moved: &[Moved], settings: &Settings) {
        let gaps = view.detail.iter().flat_map(|d| &d.gaps);
        for gap in gaps {
            let end_ns = gap.begin_ns + gap.duration_ns;
            let explained = moved.iter().any(|m| {
                let settled_ns = m.first_new_ns.max(m.last_old_ns) + SETTLING_NS;
                gap.begin_ns <= settled_ns && end_ns >= m.last_old_ns.min(m.first_new_ns)
            });
            if explained {
                continue;
            }
            self.interruptions.push(Interruption {
                flow,
                direction: direction_of(number),
                begin_s: gap.begin_ns.saturating_sub(settings.start_ns) as f64 / 1e9,
                duration_s: gap.duration_ns as f64 / 1e9,
                ended_by_retransmission: gap.repaired,
            });
        }
        if self.interruptions.len() > 4 * MAX_INTERRUPTIONS {
            self.longest_interruptions();
        }
    }

    /// Longest first, as many as are reported.
    pub(super) fn longest_interruptions(&mut self) {
        let order = |a: &Interruption, b: &Interruption| {
            b.duration_s.total_cmp(&a.duration_s).then(a.flow.cmp(&b.flow))
        };
        self.interruptions.sort_by(order);
        self.interruptions.truncate(MAX_INTERRUPTIONS);
    }

    fn handover(
        &mut self,
        conn: &Conn,
        number: usize,
        m: &Moved,
        around: &[EndCounts],
        first_data_ns: u64,
        settings: &Settings,
    ) {
        let (Some(from), Some(to)) = (
            conn.paths.get(usize::from(m.from)),
            conn.paths.get(usize::from(m.to)),
        ) else {
            return;
        };
        if self.handovers.len() >= MAX_HANDOVERS {
            self.handovers_dropped += 1;
            return;
        }
        let latency_ns = m.first_new_ns as i128 - i128::from(m.last_old_ns);
        // a flow that is younger than the window had less time for its bytes
        let before_ns = m
            .last_old_ns
            .saturating_sub(first_data_ns)
            .min(settings.window_ns);
        let handover = Handover {
            flow: conn.id,
            direction: direction_of(number),
            kind: kind(conn, from, to),
            time_s: m.first_new_ns.saturating_sub(settings.start_ns) as f64 / 1e9,
            from: m.from,
            to: m.to,
            from_text: describe(from),
            to_text: describe(to),
            latency_s: latency_ns as f64 / 1e9,
            interruption_s: m.interruption_ns as f64 / 1e9,
            settling_gap_s: m.settling_gap_ns as f64 / 1e9,
            network: None,
            adaptation: m.adaptation,
            throughput_before_bps: rate(m.bytes_before, before_ns),
            throughput_after_bps: rate(m.bytes_after, m.after_ns),
            rtt_before_s: m.rtt_before_s,
            rtt_after_s: m.rtt_after_s,
            out_of_order_packets: m.out_of_order,
            ends: m.ends.and_then(|n| around.get(n).copied()),
            signals: Vec::new(),
        };
        let new = [to.outer.0, to.outer.1];
        self.handovers.push(Found {
            handover,
            last_old_ns: m.last_old_ns,
            first_new_ns: m.first_new_ns,
            new_addresses: new
                .into_iter()
                .filter(|a| *a != from.outer.0 && *a != from.outer.1)
                .collect(),
            identities: [conn.shown.0, conn.shown.1],
        });
    }
}

impl Found {
    /// Looks for the signalling of a handover among all signals, in order of time; none before `since_ns` belongs to it.
    pub(super) fn signalling(&mut self, signals: &[Heard], since_ns: u64) {
        let begin_ns = self.last_old_ns.saturating_sub(SIGNALS_BEFORE_NS).max(since_ns);
        let end_ns = self.first_new_ns.max(self.last_old_ns) + 1_000_000_000;
        let first = signals.partition_point(|s| s.time_ns < begin_ns);
        let after = signals.partition_point(|s| s.time_ns <= end_ns);
        let between = || (first..).zip(signals.get(first..after).unwrap_or_default());
        let concerning = between().filter(|(_, s)| self.concerns(s)).map(|(n, _)| n as u32);
        self.handover.signals = concerning.take(MAX_LISTED).collect();
        let registers = |s: &Heard| {
            !s.inbound
                && s.time_ns <= self.first_new_ns
                && matches!(
                    s.kind,
                    SignalKind::BindingUpdate
                        | SignalKind::CareOfTestInit
                        | SignalKind::HomeTestInit
                        | SignalKind::LocatorUpdate
                        | SignalKind::AsconfAdd
                        | SignalKind::MptcpJoin
                )
                && self.concerns(s)
        };
        let Some((_, registration)) = between().find(|(_, s)| registers(s)) else {
            return;
        };
        let advertises = |s: &&Heard| {
            s.kind == SignalKind::RouterAdvertisement
                && s.capture == registration.capture
                && s.time_ns <= registration.time_ns
                && s.about
                    .is_some_and(|p| self.new_addresses.iter().any(|a| a.locator() == p.locator()))
        };
        // the first after the old path fell silent, or what was known before
        let heard = signals.get(..after).unwrap_or_default();
        let later = heard
            .iter()
            .filter(advertises)
            .find(|s| s.time_ns >= self.last_old_ns);
        let advertisement = later.or_else(|| heard.iter().rfind(advertises));
        let span = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
        self.handover.network = Some(NetworkLatency {
            detection_s: advertisement.map(|a| span(self.last_old_ns, a.time_ns)),
            configuration_s: advertisement
                .map(|a| span(a.time_ns.max(self.last_old_ns), registration.time_ns)),
            registration_s: Some(span(
                registration.time_ns.max(self.last_old_ns),
                self.first_new_ns,
            )),
            total_s: self.handover.latency_s,
        });
    }

    /// Whether a signal is about the flow, or about an address of the new path.
    fn concerns(&self, s: &Heard) -> bool {
        if let Some(flow) = s.flow {
            return flow == self.handover.flow;
        }
        let own = |a: Address| self.identities.contains(&a) || self.new_addresses.contains(&a);
        match s.kind {
            SignalKind::LocatorUpdate | SignalKind::LocatorUpdateAcknowledgement => self
                .identities
                .iter()
                .any(|i| i.nid() == s.outer.0.nid() || i.nid() == s.outer.1.nid()),
            SignalKind::RouterAdvertisement => s
                .about
                .is_some_and(|p| self.new_addresses.iter().any(|a| a.locator() == p.locator())),
            SignalKind::RouterSolicitation => false,
            _ => s.about.is_some_and(own),
        }
    }

    /// When data first took the new path.
    pub(super) const fn first_new_ns(&self) -> u64 {
        self.first_new_ns
    }
}

/// Handovers that show at the sender while the receiver's capture had not begun or had ended, and are not among those that
/// it shows.
fn beyond(ends: &Ends, sender: &mut View, known: &[Moved], window_ns: u64) -> Vec<Moved> {
    let longest_ns = ends.longest_ns();
    let same = |m: &Moved, k: &Moved| m.first_new_ns.abs_diff(k.first_new_ns) <= longest_ns;
    let mut moved = sender.moved(window_ns);
    moved.retain(|m| ends.may_miss(m.first_new_ns) && !known.iter().any(|k| same(m, k)));
    moved
}

const fn direction_of(number: usize) -> Direction {
    if number == 0 {
        Direction::Forward
    } else {
        Direction::Reverse
    }
}

/// Bits by second; zero where no time passed.
fn rate(bytes: u64, ns: u64) -> f64 {
    if ns == 0 {
        0.0
    } else {
        bytes as f64 * 8.0 / (ns as f64 / 1e9)
    }
}

fn mobility(conn: &Conn) -> Mobility {
    let marks = conn.marks;
    match conn.protocol {
        _ if marks.ilnp => Mobility::Ilnp,
        _ if marks.route_optimised => Mobility::Mip6Ro,
        _ if marks.tunnelled && !conn.a.0.is_v4() => Mobility::Mip6,
        Protocol::Mptcp | Protocol::Sctp | Protocol::Quic | Protocol::Wireguard
            if (0..2).any(|d| conn.paths.iter().filter(|p| p.direction == d).count() > 1) =>
        {
            Mobility::Transport
        }
        _ => Mobility::None,
    }
}

fn kind(conn: &Conn, from: &PathState, to: &PathState) -> HandoverKind {
    let moved = |x: Address, y: Address| x != y && x.nid() == y.nid();
    match conn.protocol {
        Protocol::Sctp if conn.path_is_the_senders() => HandoverKind::SctpPath,
        Protocol::Mptcp => HandoverKind::MptcpSubflow,
        Protocol::Quic => HandoverKind::QuicPath,
        Protocol::Wireguard => HandoverKind::WireguardEndpoint,
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp
            if from.outer == to.outer && from.tunnelled == to.tunnelled =>
        {
            HandoverKind::Interface
        }
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp
            if conn.marks.ilnp && (moved(from.outer.0, to.outer.0) || moved(from.outer.1, to.outer.1)) =>
        {
            HandoverKind::Locator
        }
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp
            if conn.marks.tunnelled || conn.marks.route_optimised =>
        {
            HandoverKind::CareOfAddress
        }
        Protocol::Tcp | Protocol::Udp | Protocol::Sctp => HandoverKind::Address,
    }
}

fn describe(path: &PathState) -> String {
    let tunnel = if path.tunnelled { " in a tunnel" } else { "" };
    format!("{} to {}{tunnel}", path.outer.0.ip(), path.outer.1.ip())
}
