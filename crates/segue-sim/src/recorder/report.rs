//! What a run reports of its handoffs and flows.

use super::applications::{Application, Label, Opened, Row, rows};
use super::connections::Connections;
use super::ends::{ends, never_begun, outages};
use super::flow::Data;
use super::handoffs::Handoff;
use super::handovers::records;
use super::ledger::{FlowCounts, FlowKey, Transport};
use super::vertical::HandoffParts;
use segue_capture::record::{FlowEnd, FlowState, HandoverRecord, Outage};
use segue_proto::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A handoff of a mobility shim, from telling the first to being acknowledged by the last.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HandoffMetrics {
    /// The host.
    pub host: String,
    /// When the first message left that tells of the new address, seconds of simulated time.
    pub begin_s: f64,
    /// When the last was acknowledged; nothing if the handoff did not end.
    pub end_s: Option<f64>,
    /// The time in between (004 section 5.4): without layer 2, router discovery and duplicate address detection.
    pub handoff_delay_s: Option<f64>,
    /// Address used before, if there was one.
    pub from: Option<Ipv6Addr>,
    /// Address used after.
    pub to: Ipv6Addr,
    /// Those who could not be told.
    pub failed: Vec<Ipv6Addr>,
    /// Longest time without new data around it, in the flow that carried most of those that it concerns, seconds.
    pub interruption_s: Option<f64>,
    /// Its parts by 002 section 4.
    pub parts: Option<HandoffParts>,
}

/// One direction of a TCP connection or of an SCTP association.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowMetrics {
    /// Number, to which handovers refer: by the place of its application in the scenario.
    pub id: u64,
    /// Host that sends.
    pub from: String,
    /// Host that receives; empty if nothing arrived and no application says.
    pub to: String,
    /// Over what.
    pub transport: Transport,
    /// Source port; zero of one that never left.
    pub source_port: u16,
    /// Destination port; zero of one that never left.
    pub destination_port: u16,
    /// When its first data was sent, or, if none ever was, when its application first tried, seconds of simulated time.
    pub begin_s: f64,
    /// When its life ended: with its last new byte if it is closed or idle, else with the run, seconds.
    pub end_s: f64,
    /// Bytes that arrived, each counted once.
    pub transferred_bytes: u64,
    /// Those, in bits, by the length of its life, bit/s.
    pub throughput_bps: f64,
    /// Counts of its packets, by the ledger of their fates.
    #[serde(flatten)]
    pub counts: FlowCounts,
    /// Packets that arrived and carried nothing new.
    pub duplicate_packets: u64,
    /// Its longest interruption: by a handover of its, around a handoff of a shim, or an outage, seconds; nothing without
    /// any.
    pub interruption_s: Option<f64>,
    /// Its longest time without new data around what the scenario has happen (`scenario_events` of the run); nothing if it was
    /// over before that, or began after it.
    pub around_events: Option<Outage>,
    /// How it ended.
    #[serde(flatten)]
    pub end: FlowEnd,
    /// New bytes that arrived, by second of simulated time.
    pub received_bytes_by_second: Vec<u64>,
}

/// Flows, handovers and handoffs of a run.
pub(crate) struct Report {
    pub flows: Vec<FlowMetrics>,
    /// The number of the application of each flow that has one.
    pub carried: BTreeMap<u64, usize>,
    pub handovers: Vec<HandoverRecord>,
    pub handoffs: Vec<HandoffMetrics>,
    /// New bytes that arrived at each address, of the SCTP flow that carried most.
    pub bytes_by_address: Vec<(Ipv6Addr, u64)>,
}

/// What there is to report at the end of a run of these applications. Nodes are named by `names`.
pub(crate) fn report(
    connections: &mut Connections,
    applications: &[Application],
    names: &[String],
    end: Instant,
) -> Report {
    let mut ends = ends(&connections.ledger, connections.flows(), end);
    connections.finish(end, |number| is_over(ends[number].state));
    let c = &*connections;
    let keys: Vec<FlowKey> = c.ledger.flows().copied().collect();
    let rows = rows(&keys, c.flows(), applications, end);
    let mut ids = vec![0; keys.len()];
    for (id, row) in (0..).zip(&rows) {
        if let Some(number) = row.flow {
            ids[number] = id;
        }
    }
    let handovers = records(c, &ends, &ids, names, end);
    let mut by_flow: BTreeMap<u64, Vec<&HandoverRecord>> = BTreeMap::new();
    for record in &handovers {
        if let Some(id) = record.flow {
            by_flow.entry(id).or_default().push(record);
        }
    }
    let mut counts = c.ledger.counts();
    let of_application = |(id, row): (u64, &Row)| Some((id, row.application?));
    let carried = (0..).zip(&rows).filter_map(of_application).collect();
    let flows = (0..).zip(rows).map(|(id, row)| {
        let own = by_flow.remove(&id).unwrap_or_default();
        let application = row.application.map(|number| &applications[number]);
        let flow = match (row.flow, application) {
            (Some(number), _) => {
                let mut flow = sent(c, number, core::mem::take(&mut ends[number]), names, end);
                flow.counts = core::mem::take(&mut counts[number]);
                flow.end.outages = outages(Some(&c.flows()[number]), &flow.end, &own);
                flow
            }
            (None, application) => {
                let mut flow = never_sent(application?, names, end);
                flow.end.outages = outages(None, &flow.end, &own);
                flow
            }
        };
        let interruptions = own.iter().filter_map(|h| h.interruption_s);
        let outages = flow.end.outages.iter().map(|o| o.duration_s);
        let longest = interruptions.chain(outages).chain(flow.interruption_s);
        Some(FlowMetrics {
            id,
            interruption_s: longest.reduce(f64::max),
            to: match application {
                Some(a) if flow.to.is_empty() => {
                    let to = if flow.from == name(names, Some(a.sender)) {
                        a.receiver
                    } else {
                        a.sender
                    };
                    name(names, Some(to))
                }
                _ => flow.to,
            },
            ..flow
        })
    });
    let flows = flows.flatten().collect();
    let handoffs = (0u32..).zip(c.shims().all().iter());
    let handoffs = handoffs.map(|(number, h)| HandoffMetrics {
        failed: c.shims().failed(number).to_vec(),
        parts: c.vertical.parts(number as usize, h.done().map(|(at, _)| at)),
        ..handoff(&h, number, c.flows(), names)
    });
    let sctp = c.ledger.flows().zip(c.flows());
    let sctp = sctp.filter(|(key, _)| key.transport == Transport::Sctp);
    let most = sctp.map(|(_, data)| data).max_by_key(|data| data.new_bytes());
    Report {
        flows,
        carried,
        handovers,
        handoffs: handoffs.collect(),
        bytes_by_address: most.map(Data::bytes_by_address).unwrap_or_default(),
    }
}

fn handoff(h: &Handoff, number: u32, flows: &[Data], names: &[String]) -> HandoffMetrics {
    let gap = |f: &&Data| f.gap_around(number, h.node);
    let concerned = flows.iter().filter(|f| gap(f).is_some());
    let most = concerned.max_by_key(|f| f.new_bytes());
    HandoffMetrics {
        host: name(names, Some(h.node)),
        begin_s: seconds(h.begin),
        end_s: h.done().map(|(at, _)| seconds(at)),
        handoff_delay_s: h.done().map(|(_, delay)| delay.as_secs_f64()),
        from: h.from,
        to: h.to,
        failed: Vec::new(),
        interruption_s: most.as_ref().and_then(gap).map(Duration::as_secs_f64),
        parts: None,
    }
}

/// Whether nothing more was to come when the run ended.
const fn is_over(state: FlowState) -> bool {
    matches!(state, FlowState::Closed | FlowState::Idle)
}

fn around_events(data: &Data, over: bool, end: Instant) -> Option<Outage> {
    let (gap, censored) = data.pauses().around_events(data.silent_since(end), end, over)?;
    Some(Outage {
        since_s: seconds(gap.since),
        duration_s: gap.lasted().as_secs_f64(),
        censored,
    })
}

/// A flow that sent something.
fn sent(c: &Connections, number: usize, own: FlowEnd, names: &[String], end: Instant) -> FlowMetrics {
    let data = &c.flows()[number];
    let over = is_over(own.state);
    let until = data.last_new().filter(|_| over).unwrap_or(end);
    let lasted = until.since(data.begin()).as_secs_f64();
    let shims = (0u32..).zip(c.shims().all().iter());
    let longest = shims.filter_map(|(n, h)| data.gap_around(n, h.node)).max();
    let key = c.ledger.key(number);
    FlowMetrics {
        id: 0,
        from: name(names, Some(key.sender)),
        to: name(names, data.receiver()),
        transport: key.transport,
        source_port: key.source_port,
        destination_port: key.destination_port,
        begin_s: seconds(data.begin()),
        end_s: seconds(until),
        transferred_bytes: data.new_bytes(),
        throughput_bps: data.new_bytes() as f64 * 8.0 / lasted.max(1e-9),
        counts: FlowCounts::default(),
        duplicate_packets: data.duplicates(),
        interruption_s: longest.map(Duration::as_secs_f64),
        around_events: around_events(data, over, end),
        end: own,
        received_bytes_by_second: data.bins(),
    }
}

/// The flow of an application of which nothing ever left.
fn never_sent(a: &Application, names: &[String], end: Instant) -> FlowMetrics {
    let port = match a.opened {
        Some(Opened {
            by,
            label: Label::Port(port),
        }) => Some((by, port)),
        _ => None,
    };
    let of = |node: u32| port.filter(|(by, _)| *by == node).map_or(0, |(_, port)| port);
    FlowMetrics {
        id: 0,
        from: name(names, Some(a.sender)),
        to: name(names, Some(a.receiver)),
        transport: a.transport,
        source_port: of(a.sender),
        destination_port: of(a.receiver),
        begin_s: seconds(a.start),
        end_s: seconds(end),
        transferred_bytes: 0,
        throughput_bps: 0.0,
        counts: FlowCounts::default(),
        duplicate_packets: 0,
        interruption_s: None,
        around_events: None,
        end: never_begun(a.start, end),
        received_bytes_by_second: Vec::new(),
    }
}

fn name(names: &[String], node: Option<u32>) -> String {
    let own = node.and_then(|n| names.get(n as usize));
    own.cloned().unwrap_or_default()
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}
