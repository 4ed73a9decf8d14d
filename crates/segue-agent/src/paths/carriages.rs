//! Where the nonce travels: in a destination option (RFC 6744), or in UDP where such options are dropped on the way (RFC 7872 finds that
//! of many networks). See [`segue_wire::ilnp_udp`] for the format.
//!
//! Nothing asks a network; what is heard shows it, for each pair of addresses:
//! - What comes from the peer with the option shows that options get through. They are used, whatever else is heard.
//! - What comes in UDP alone, although the option was sent, shows that they do not. UDP is used between these addresses, and it is
//!   remembered of this host's network for [`REMEMBERED`].
//! - As long as nothing was heard, the option is sent. Beside it, the same in UDP: signalling to a peer that understands it; other
//!   packets if they stay unanswered for [`PATIENCE`], or at once from a network that is remembered, some of them.
//!
//! *Negotiation.* A peer has shown that it understands the format when something of a session came from it in UDP. Who has called sends
//! an empty datagram with its nonce when it first hears the other, which answers with one, so both know before either moves. To a
//! peer that has not shown it goes nothing but that and the beginning of a session; where a kernel answers that nobody
//! listens, nothing for a while.
//!
//! *Strangers.* A datagram is believed if its nonce turns out to be that of a session by the rules of [`Ilnp`]: the same as of a
//! packet with the option. Nothing is answered here, and nothing kept of others.

use bytes::Bytes;
use segue_proto::contract::{InterfaceId, Transmit};
use segue_proto::ilnp::Ilnp;
use segue_proto::shim::Count;
use segue_proto::{Duration, Instant};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, Nid, Nonce};
use segue_wire::ilnp_udp::NonceInUdp;
use segue_wire::ipv6::NO_NEXT_HEADER;
use segue_wire::raw::ChecksumState;
use segue_wire::reader::Reader;
use segue_wire::{Ipv6Header, Packet, Payload};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Where the nonce is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carriage {
    /// In a destination option.
    Option,
    /// In UDP.
    Udp,
}

/// What an arriving packet turned out to be.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// For the role: as it came, or with the option in place of UDP.
    Packet(Packet),
    /// It is used up.
    Taken,
}

/// A packet that arrived with a nonce, until it is known whether that is of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Heard {
    /// This host's address, and the peer's.
    pair: Pair,
    nonce: Nonce,
    by: Carriage,
    /// There is nothing in it: the peer only shows that it understands UDP.
    empty: bool,
}

type Pair = (Ipv6Addr, Ipv6Addr);

/// What is known of the way between two addresses.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// How the peer was heard.
    by: Option<Carriage>,
    /// When it was last heard with the option.
    option_heard: Instant,
    /// When the first packet was sent that has not been answered, and how many were since.
    unanswered: Option<Instant>,
    sent_since: u32,
    /// The option was sent since it was last known how the peer is heard: what comes in UDP alone says something against it.
    option_tried: bool,
    /// Copies in UDP sent since it was last heard, and the last of them.
    copies: u32,
    copied: Option<Instant>,
    /// Empty datagrams sent to ask, and the last of all.
    offers: u32,
    offered: Option<Instant>,
    /// The last packet, either way.
    used: Instant,
    /// This host's nonce and interface, of the last packet sent.
    sent: Option<(Nonce, InterfaceId)>,
}

impl Way {
    /// A packet goes this way. Whether those before it have been unanswered for long.
    fn on_sent(&mut self, now: Instant, nonce: Nonce, interface: InterfaceId) -> bool {
        // what was sent last need not have asked for an answer
        if now.since(self.used) >= PAUSE {
            (self.unanswered, self.sent_since) = (None, 0);
        }
        (self.sent, self.used) = (Some((nonce, interface)), now);
        self.sent_since = self.sent_since.saturating_add(1);
        let since = *self.unanswered.get_or_insert(now);
        now.since(since) >= PATIENCE
    }
}

/// What the host knows of ways, peers and networks. See the [module](self).
#[derive(Debug)]
pub(crate) struct Carriages {
    port: u16,
    ways: BTreeMap<Pair, Way>,
    /// Peers that understand UDP (true), or at which nobody listens; until when that counts.
    peers: BTreeMap<Nid, (bool, Instant)>,
    /// Networks of this host's where options are dropped.
    networks: BTreeMap<Locator, Instant>,
    counters: CarriageCounters,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct CarriageCounters {
    /// Packets sent in UDP.
    udp_sent: u64,
    /// Packets received in UDP, of a session.
    udp_received: u64,
    /// Copies in UDP of packets that went with the option too.
    udp_copies: u64,
    /// Empty datagrams sent.
    udp_offers: u64,
    /// Dropped: to the port, and of no session.
    udp_of_no_session: u64,
    /// Dropped: to the port, and of another format.
    udp_malformed: u64,
    /// Networks found to drop options.
    networks_without_options: u64,
    /// Peers whose kernel has said that nobody listens.
    udp_refused: u64,
}

impl Carriages {
    /// With this port at both ends.
    pub fn new(port: u16) -> Self {
        Self {
            port,
            ways: BTreeMap::new(),
            peers: BTreeMap::new(),
            networks: BTreeMap::new(),
            counters: CarriageCounters::default(),
        }
    }

    /// The port at both ends.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// By name.
    pub fn counters(&self) -> Vec<Count> {
        let c = self.counters;
        vec![
            ("udp_sent", c.udp_sent),
            ("udp_received", c.udp_received),
            ("udp_copies", c.udp_copies),
            ("udp_offers", c.udp_offers),
            ("udp_of_no_session", c.udp_of_no_session),
            ("udp_malformed", c.udp_malformed),
            ("networks_without_options", c.networks_without_options),
            ("udp_refused", c.udp_refused),
        ]
    }

    /// How a node is heard at one of these locators, if it is.
    pub fn carriage_of(&self, nid: Nid, locators: impl Iterator<Item = Locator>) -> Option<Carriage> {
        let there: Vec<Ipv6Addr> = locators.map(|locator| locator.address(nid)).collect();
        let ways = self
            .ways
            .iter()
            .filter(|((_, address), _)| there.contains(address));
        let heard = ways.filter_map(|(_, way)| Some((way.used, way.by?)));
        heard.max_by_key(|(used, _)| *used).map(|(_, by)| by)
    }

    /// The networks of this host's that are known to drop options.
    pub fn networks(&self, now: Instant) -> impl Iterator<Item = Locator> {
        let known = self.networks.iter().filter(move |(_, until)| **until > now);
        known.map(|(locator, _)| *locator)
    }

    /// A packet that is about to be sent: where its nonce is to be. First whether the option is sent, then whether UDP is.
    pub fn choose(&mut self, now: Instant, transmit: &Transmit) -> (bool, bool) {
        let packet = &transmit.packet;
        let Some((nonce, _)) = packet.ilnp_nonce() else {
            return (true, false);
        };
        let pair = (packet.ip.source, packet.ip.destination);
        let signalling = matches!(packet.payload, Payload::Icmpv6(Icmpv6::LocatorUpdate(_)));
        let understands = self.understands(now, Nid::of(pair.1));
        let remembered = self.networks.get(&Locator::of(pair.0));
        let remembered = remembered.is_some_and(|until| *until > now);
        let Some(way) = way_of(&mut self.ways, now, pair) else {
            return (true, false);
        };
        let unanswered = way.on_sent(now, nonce, transmit.interface);
        // every update, and of other packets a few: it is only to be found out
        let due = way.copied.is_none_or(|at| now.since(at) >= BETWEEN_COPIES);
        let understood = understands == Some(true);
        let may = signalling && understood || due && (understood || way.copies < COPIES_TO_A_STRANGER);
        let (option, udp) = match (way.by, understands) {
            // heard in UDP, and then nothing: the way may be another
            (Some(Carriage::Udp), _) => (unanswered && may, true),
            (_, Some(false)) => (true, false),
            (Some(Carriage::Option), _) => (true, understood && may && unanswered && way.sent_since > FEW),
            // once more to be found out by signalling alone
            (None, Some(true)) if remembered => (signalling, true),
            (None, Some(true)) if signalling => (true, true),
            (None, _) => (true, may && (unanswered || remembered)),
        };
        way.option_tried |= option;
        if option && udp {
            way.copied = Some(now);
            way.copies = way.copies.saturating_add(1);
            self.counters.udp_copies += 1;
        }
        self.counters.udp_sent += u64::from(udp);
        (option, udp)
    }

    /// Whether what goes between these addresses, this host's and the peer's, goes with the option, and is answered.
    pub fn is_settled(&self, now: Instant, pair: Pair) -> bool {
        let is_answered = |way: &Way| way.unanswered.is_none_or(|since| now.since(since) < PATIENCE);
        let way = self.ways.get(&pair);
        way.is_some_and(|way| way.by == Some(Carriage::Option) && is_answered(way))
    }

    /// Packets with the option were carried between these addresses without being seen here; some came from the peer.
    pub fn note_carried(&mut self, now: Instant, pair: Pair) {
        if let Some(way) = self.ways.get_mut(&pair) {
            (way.unanswered, way.sent_since, way.used) = (None, 0, now);
            way.option_heard = now;
        }
    }

    /// A packet with the option, in UDP. `None` if it is none.
    pub fn in_udp(&self, packet: &Packet) -> Option<Packet> {
        Some(NonceInUdp::of(packet)?.packet(packet.ip, self.port))
    }

    /// Whether these are several datagrams to the port in one super-packet, which have to be cut apart before they are looked at: each
    /// has a nonce of its own.
    pub fn are_joined(&self, packet: &Packet) -> bool {
        matches!(&packet.payload, Payload::Raw(raw)
            if raw.segment_size.is_some() && self.is_to_port(raw.next_header, &raw.bytes))
    }

    /// A packet that arrived for one of this host's locators: what the role is to be given, and what there is to be learnt if it is of a
    /// session.
    pub fn arrived(&mut self, now: Instant, packet: Packet) -> (Arrived, Option<Heard>) {
        let pair = (packet.ip.destination, packet.ip.source);
        match &packet.payload {
            Payload::Raw(raw) if self.is_to_port(raw.next_header, &raw.bytes) => {
                let mut raw = raw.clone();
                raw.complete(&packet.pseudo_header());
                let verified = raw.checksum == ChecksumState::Verified;
                let carried = NonceInUdp::in_datagram(&raw.bytes, &packet.pseudo_header(), verified);
                let Ok(carried) = carried else {
                    self.counters.udp_malformed += 1;
                    return (Arrived::Taken, None);
                };
                let heard = Heard {
                    pair,
                    nonce: carried.nonce,
                    by: Carriage::Udp,
                    empty: carried.next_header == NO_NEXT_HEADER,
                };
                if heard.empty {
                    return (Arrived::Taken, Some(heard));
                }
                let whole = carried.with_option(&packet.ip);
                match Packet::parse_raw(&whole, ChecksumState::Complete, None) {
                    Ok(packet) if packet.ilnp_nonce().is_some() => (Arrived::Packet(packet), Some(heard)),
                    _ => {
                        self.counters.udp_malformed += 1;
                        (Arrived::Taken, None)
                    }
                }
            }
            Payload::Icmpv6(message) if message.is_error() => (self.error(now, packet), None),
            _ => {
                let heard = packet.ilnp_nonce().map(|(nonce, _)| Heard {
                    pair,
                    nonce,
                    by: Carriage::Option,
                    empty: false,
                });
                (Arrived::Packet(packet), heard)
            }
        }
    }

    /// The role has had what was heard: if it is of a session, its way is known. What is to be sent to the peer because of it: an empty
    /// datagram, or nothing.
    pub fn settle(&mut self, now: Instant, heard: Heard, shim: &Ilnp) -> Option<Transmit> {
        let Heard { pair, nonce, by, .. } = heard;
        let (here, there) = pair;
        // of nearly every packet: nothing new, and the option used
        if by == Carriage::Option
            && let Some(way) = self.ways.get_mut(&pair)
            && way.by == Some(Carriage::Option)
            && now.since(way.option_heard) < AFRESH
        {
            (way.unanswered, way.sent_since, way.option_tried) = (None, 0, false);
            return None;
        }
        let Some(called) = shim.session_called(Nid::of(there), Nid::of(here), nonce) else {
            self.counters.udp_of_no_session += u64::from(by == Carriage::Udp);
            return None;
        };
        let knew = self.understands(now, Nid::of(there));
        if by == Carriage::Udp {
            self.counters.udp_received += 1;
            remember(&mut self.peers, Nid::of(there), (true, now + REMEMBERED));
        }
        let way = way_of(&mut self.ways, now, pair)?;
        (way.unanswered, way.sent_since, way.copies, way.used) = (None, 0, 0, now);
        match (way.by, by) {
            (_, Carriage::Option) => {
                way.by = Some(Carriage::Option);
                (way.option_heard, way.option_tried) = (now, false);
                self.networks.remove(&Locator::of(here));
            }
            // of what was sent in both forms, the option is only late
            (Some(Carriage::Option), Carriage::Udp) if now.since(way.option_heard) < LATE => {}
            // it says nothing of what is in use
            (_, Carriage::Udp) if heard.empty => {}
            (before, Carriage::Udp) => {
                way.by = Some(Carriage::Udp);
                let tried = core::mem::take(&mut way.option_tried);
                if before != Some(Carriage::Udp) && tried {
                    self.counters.networks_without_options += 1;
                    remember(&mut self.networks, Locator::of(here), now + REMEMBERED);
                }
            }
        }
        // who has called says it by itself; who was called says as much as it hears
        let asks = called && by == Carriage::Option && knew.is_none();
        let way = self.ways.get_mut(&pair)?;
        let due = way.offered.is_none_or(|at| now.since(at) >= BETWEEN_OFFERS);
        if !((asks && way.offers < OFFERS || heard.empty) && due) {
            return None;
        }
        let (nonce, interface) = way.sent?;
        way.offers += u32::from(asks);
        way.offered = Some(now);
        self.counters.udp_offers += 1;
        let empty = NonceInUdp {
            nonce,
            next_header: NO_NEXT_HEADER,
            bytes: Bytes::new(),
        };
        let ip = Ipv6Header {
            source: here,
            destination: there,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        };
        Some(Transmit {
            interface,
            packet: empty.packet(ip, self.port),
        })
    }

    /// An error: one about a datagram to the port quotes, for the role, the packet with the option.
    fn error(&mut self, now: Instant, mut packet: Packet) -> Arrived {
        const PORT_UNREACHABLE: u8 = 4;
        let Payload::Icmpv6(message) = &mut packet.payload else {
            return Arrived::Packet(packet);
        };
        let quoted = message.invoking();
        let translated = quoted.and_then(|q| NonceInUdp::quoted_with_option(q, self.port));
        let Some((nonce, bytes)) = translated else {
            return Arrived::Packet(packet);
        };
        let pair = addresses(&bytes);
        let way = pair.and_then(|pair| self.ways.get(&pair).map(|way| (pair, way)));
        let Some((pair, way)) = way.filter(|(_, way)| way.sent.is_some_and(|(sent, _)| sent == nonce)) else {
            self.counters.udp_of_no_session += 1;
            return Arrived::Taken;
        };
        match message {
            Icmpv6::DestinationUnreachable {
                code: PORT_UNREACHABLE,
                ..
            } => {
                // who was heard in UDP listens
                if way.by != Some(Carriage::Udp) {
                    self.counters.udp_refused += 1;
                    remember(&mut self.peers, Nid::of(pair.1), (false, now + REFUSED));
                }
                return Arrived::Taken;
            }
            Icmpv6::DestinationUnreachable { invoking, .. }
            | Icmpv6::PacketTooBig { invoking, .. }
            | Icmpv6::TimeExceeded { invoking, .. }
            | Icmpv6::ParameterProblem { invoking, .. } => *invoking = bytes,
            _ => {}
        }
        Arrived::Packet(packet)
    }

    fn understands(&self, now: Instant, nid: Nid) -> Option<bool> {
        let (understands, until) = self.peers.get(&nid)?;
        (*until > now).then_some(*understands)
    }

    fn is_to_port(&self, next_header: u8, bytes: &[u8]) -> bool {
        const UDP: u8 = 17;
        let port = bytes.get(2..).and_then(|b| b.first_chunk::<2>());
        next_header == UDP && port.is_some_and(|p| u16::from_be_bytes(*p) == self.port)
    }
}

/// Source and destination of a packet.
fn addresses(packet: &Bytes) -> Option<Pair> {
    let mut reader = Reader::new(packet, "invoking packet");
    let (ip, ..) = Ipv6Header::parse(&mut reader).ok()?;
    Some((ip.source, ip.destination))
}

/// The way between two addresses; of one that is new, in place of another if there are too many.
fn way_of(ways: &mut BTreeMap<Pair, Way>, now: Instant, pair: Pair) -> Option<&mut Way> {
    if ways.len() >= MOST_WAYS && !ways.contains_key(&pair) {
        // whichever: what is known of it is soon known again
        let next = ways.range(pair..).next().or_else(|| ways.iter().next());
        let gone = *next?.0;
        ways.remove(&gone);
    }
    let new = || Way {
        by: None,
        option_heard: now,
        unanswered: None,
        sent_since: 0,
        option_tried: false,
        copies: 0,
        copied: None,
        offers: 0,
        offered: None,
        used: now,
        sent: None,
    };
    Some(ways.entry(pair).or_insert_with(new))
}

/// Remembers something, in place of another if there is too much.
fn remember<K: Ord + Copy, V>(known: &mut BTreeMap<K, V>, key: K, value: V) {
    if known.len() >= MOST_KNOWN && !known.contains_key(&key) {
        known.pop_first();
    }
    known.insert(key, value);
}

/// Packets that stay unanswered for so long are sent in UDP as well: longer than most round trips, and well within the time in which
/// a host is taken for one that speaks only IPv6.
const PATIENCE: Duration = Duration::from_millis(400);
/// After so long without a packet it is begun anew to count them: longer than the first pauses of TCP.
const PAUSE: Duration = Duration::from_secs(10);
/// So many unanswered packets say nothing where the option was heard.
const FEW: u32 = 4;
/// Between copies of what is no signalling.
const BETWEEN_COPIES: Duration = Duration::from_millis(200);
/// To a peer that has not shown that it understands UDP, until something is heard of it.
const COPIES_TO_A_STRANGER: u32 = 4;
/// Empty datagrams to a peer, and the time between them.
const OFFERS: u32 = 3;
const BETWEEN_OFFERS: Duration = Duration::from_secs(5);
/// What comes in UDP this long after something with the option says nothing against the option.
const LATE: Duration = Duration::from_secs(2);
/// That a peer is heard with the option is noted so often.
const AFRESH: Duration = Duration::from_millis(100);
/// What is known of networks and of peers.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Nobody listens at a peer's port.
const REFUSED: Duration = Duration::from_secs(600);
const MOST_WAYS: usize = 8192;
const MOST_KNOWN: usize = 4096;
