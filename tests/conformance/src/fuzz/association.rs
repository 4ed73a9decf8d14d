//! Two endpoints, and bytes that say what their users, the network and an attacker do: the attacker sees everything, and
//! sends chunks of every type with good tags and checksums.
//!
//! Whatever happens, the books of both ends balance, queues stay within what the configuration allows, one input brings
//! out a bounded number of packets, timers move on, and no cumulative TSN ack goes back. Unless chunks were forged, what
//! is delivered was sent, once, in order, byte by byte; and when the network has become calm, all of it is delivered, or
//! an end has reported failure.

use super::forge::forge;
use crate::ledger::Ledger;
use crate::world::{A, B, Network, PORT, World, address, local};
use core::net::Ipv6Addr;
use segue_proto::random::Stream;
use segue_proto::sctp::{
    AddressRequest, AsconfAuth, AssociationId, Config, Event, Profile, Reliability, SendOptions,
};
use segue_proto::{Duration, Instant};
use segue_wire::checksum::sctp_crc32c;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::sctp::Chunk;
use segue_wire::sctp::chunk_type::RE_CONFIG;
use segue_wire::{Packet, Payload, Tsn};
use std::collections::{BTreeMap, VecDeque};

/// Most events of one input: beyond it, it is long rather than interesting. Nine of ten inputs that a fuzzer finds worth
/// keeping need fewer.
const MOST_STEPS: u32 = 1000;
/// Most events of one wait. More of them are heartbeats: the state that a long wait leads to is reached by then, or by
/// the next wait.
const MOST_STEPS_OF_A_WAIT: u32 = 60;
/// Most events after the network has become calm.
const MOST_STEPS_AT_THE_END: u32 = 20_000;
/// The same if nothing has to be delivered, because chunks were forged or messages given up: only what holds of every
/// state is looked at.
const MOST_STEPS_WITHOUT_AN_END: u32 = 100;
/// As in the ordeals.
const PATIENCE: Duration = Duration::from_secs(600);
/// Packets that the attacker remembers.
const REMEMBERED: usize = 16;
/// IPv6 header, and SCTP common header.
const HEADERS: usize = 40 + 12;

/// Plays an association.
///
/// # Panics
/// If something that must hold does not.
pub fn association(bytes: &[u8]) {
    let mut play = Play::new(Input(bytes));
    play.world.connect();
    while play.goes_on() {}
    play.finish();
}

/// The bytes, taken one after the other; at the end, zeros.
pub(super) struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let n = usize::from(self.u8());
        (!from.is_empty()).then(|| from[n % from.len()])
    }
}

struct Play<'a> {
    input: Input<'a>,
    world: World<Tapped>,
    ledgers: [Ledger; 2],
    over: [bool; 2],
    /// Whether anything was sent with a good tag that neither end made.
    forged: bool,
    /// Whether messages may be given up, and streams begin anew.
    partial: bool,
    /// The association that each end had first.
    first: [Option<AssociationId>; 2],
    /// A COOKIE ECHO that came again, after its association had ended, began another: what had been delivered may be again.
    anew: bool,
    connects: usize,
    last_number: [u16; 2],
    steps: u32,
}

impl<'a> Play<'a> {
    fn new(mut input: Input<'a>) -> Self {
        let configs = [config(&mut input), config(&mut input)];
        let addresses = [1 + u16::from(input.u8() % 3), 1 + u16::from(input.u8() % 3)];
        let network = Tapped::new(u64::from(input.u16()));
        Self {
            input,
            world: World::new(configs, addresses, network, 1),
            ledgers: Default::default(),
            over: [false; 2],
            forged: false,
            partial: false,
            first: [None; 2],
            anew: false,
            connects: 1,
            last_number: addresses,
            steps: 0,
        }
    }

    /// Takes what comes next in the input, unless there is no more or it has been enough.
    fn goes_on(&mut self) -> bool {
        if self.steps >= MOST_STEPS {
            return false;
        }
        let Some(op) = self.input.next() else {
            return false;
        };
        self.operate(op);
        self.look();
        true
    }

    fn operate(&mut self, op: u8) {
        let host = usize::from(op >> 7);
        match op & 0x1f {
            0..=5 => self.send(host),
            6 | 7 => {
                let unit = [1, 10, 100, 1000, 10_000, 60_000][usize::from(self.input.u8() % 6)];
                let count = u64::from(self.input.u8() % 16);
                self.run_for(Duration::from_millis(unit * count));
            }
            8 | 9 => {
                for _ in 0..=self.input.u8() % 32 {
                    self.step(Instant::MAX);
                }
            }
            10 => {
                self.world.reading[host] = !self.world.reading[host];
                self.world.drain();
            }
            11 => {
                let number = self.last_number[host] + 1;
                let added = self
                    .world
                    .command(host, |a, now| a.add_address(now, local(host, number)));
                if added == Some(Ok(())) {
                    self.last_number[host] = number;
                    self.world.owned[host].push(address(host, number));
                }
            }
            12 => {
                if let Some(own) = self.any_own(host) {
                    let breaks_first = self.input.u8() % 2 == 1;
                    let asked = self.world.command(host, |a, now| a.delete_address(now, own));
                    if asked == Some(Ok(())) && breaks_first {
                        self.world.owned[host].retain(|a| *a != own);
                    }
                }
            }
            13 => {
                if let Some(own) = self.any_own(host) {
                    self.world.command(host, |a, now| a.request_set_primary(now, own));
                }
            }
            14 => {
                if let Some(own) = self.any_own(host) {
                    self.world.command(host, |a, now| a.set_route(now, own));
                }
            }
            15 => {
                let destination = address(1 - host, u16::from(self.input.u8() % 8));
                self.world
                    .command(host, |a, now| a.set_primary_path(now, destination));
            }
            16 => {
                self.world.command(host, |a, now| a.shutdown(now));
            }
            17 => {
                self.world.command(host, |a, now| a.abort(now, "fuzz".into()));
            }
            18 => self.world.network.loss = f64::from(self.input.u8() % 8) / 16.0,
            19 => self.world.network.duplication = f64::from(self.input.u8() % 4) / 8.0,
            20 => self.world.network.jitter_ms = u64::from(self.input.u8()) * 4,
            21 => {
                // addresses of either host go down and come back
                let link = address(host, u16::from(self.input.u8() % 4));
                let down = &mut self.world.network.down;
                match down.iter().position(|d| *d == link) {
                    Some(i) => _ = down.remove(i),
                    None => down.push(link),
                }
            }
            22 => {
                self.world.network.mutation = f64::from(self.input.u8() % 4) / 8.0;
                self.forged |= self.world.network.mutation > 0.0;
                self.world.network.resets |= self.forged;
            }
            23 | 24 => self.replay(host),
            25 if self.connects < 4 => {
                self.connects += 1;
                let now = self.world.now;
                let peer = [address(1 - host, 1)];
                self.world.ends[host].connect(now, &peer, PORT);
                self.world.drain();
            }
            26 => {
                let streams = [u16::from(self.input.u8() % 6), u16::from(self.input.u8() % 6)];
                let which = self.input.u8();
                self.world.command(host, |a, now| match which % 4 {
                    0 => a.reset_streams(now, &streams),
                    1 => a.reset_incoming_streams(now, &streams),
                    2 => a.reset_association(now),
                    _ => a.add_streams(now, 1, 1),
                });
                self.world.network.resets = true;
                self.partial = true;
            }
            27 => {
                if let Some(own) = self.any_own(host) {
                    let deactivates = self.input.u8().is_multiple_of(2);
                    self.world.command(host, |a, now| {
                        if deactivates {
                            a.deactivate_address(now, own)
                        } else {
                            a.activate_address(now, own)
                        }
                    });
                }
            }
            28 => self.report(host),
            _ => {
                self.forged = true;
                let known = self.world.network.known[host].clone();
                if let Some(packet) = forge(&mut self.input, host, &known) {
                    if let Payload::Sctp(sctp) = &packet.payload {
                        let resets = sctp.chunks.iter().any(|c| c.chunk_type() == RE_CONFIG);
                        self.world.network.resets |= resets;
                    }
                    self.world.inject(host, packet);
                }
            }
        }
    }

    fn send(&mut self, host: usize) {
        let stream_id = u16::from(self.input.u8() % 6);
        let unordered = self.input.u8().is_multiple_of(4);
        let size = self.input.u8();
        let len = if size < 128 {
            1 + u32::from(size)
        } else {
            u32::from(size - 127) * 64
        };
        let (index, data) = self.ledgers[host].next(stream_id, unordered, len);
        let how = if self.partial { self.input.u8() } else { 0 };
        let options = SendOptions {
            unordered,
            payload_protocol_id: index,
            reliability: match how % 4 {
                0 | 1 => Reliability::Full,
                2 => Reliability::Timed {
                    lifetime: Duration::from_millis(u64::from(how) * 4),
                },
                _ => Reliability::Retransmissions {
                    limit: u32::from(how >> 6),
                },
            },
            sack_immediately: how >> 2 & 1 == 1,
        };
        let sent = self
            .world
            .command(host, |a, now| a.send(now, stream_id, data, options));
        if sent == Some(Ok(())) {
            self.ledgers[host].sent(stream_id, unordered, len);
        }
    }

    /// A router reports a packet that the host has sent (RFC 4443): too big, or undeliverable.
    fn report(&mut self, host: usize) {
        let n = usize::from(self.input.u8());
        let sent = &self.world.network.known[1 - host].seen;
        let Some(bytes) = sent.get(n % sent.len().max(1)) else {
            return;
        };
        let invoking = bytes::Bytes::copy_from_slice(&bytes[..bytes.len().min(1232)]);
        let Ok(packet) = Packet::parse(bytes) else { return };
        let mtu = u32::from(self.input.u16());
        let (code, kind) = (self.input.u8() % 8, self.input.u8() % 4);
        let error = match kind {
            0 | 1 => Icmpv6::PacketTooBig { mtu, invoking },
            2 => Icmpv6::DestinationUnreachable { code, invoking },
            _ => Icmpv6::ParameterProblem {
                code,
                pointer: mtu,
                invoking,
            },
        };
        self.forged |= kind > 1;
        let destination = packet.ip.source;
        self.world.inject(
            host,
            Packet {
                ip: segue_wire::Ipv6Header {
                    source: address(7, 7),
                    destination,
                    ..packet.ip
                },
                extensions: Vec::new(),
                payload: Payload::Icmpv6(error),
            },
        );
    }

    /// A packet seen before arrives once more. That is no forgery: a network may do so.
    fn replay(&mut self, host: usize) {
        let n = usize::from(self.input.u8());
        let seen = &self.world.network.known[host].seen;
        if let Some(bytes) = seen.get(n % seen.len().max(1))
            && let Ok(packet) = Packet::parse(bytes)
            && self.world.owned[host].contains(&packet.ip.destination)
        {
            self.world.inject(host, packet);
        }
    }

    fn run_for(&mut self, duration: Duration) {
        let end = self.world.now + duration;
        let most = self.steps + MOST_STEPS_OF_A_WAIT;
        while self.steps < most && self.step(end) {
            self.look();
        }
    }

    fn step(&mut self, end: Instant) -> bool {
        self.steps += 1;
        if end == Instant::MAX && self.world.next_at().is_none() {
            return false;
        }
        self.world.step(end)
    }

    fn any_own(&mut self, host: usize) -> Option<Ipv6Addr> {
        let own: Vec<_> = match self.world.association(host) {
            Some(a) => a.local_addresses().map(|l| l.address).collect(),
            None => Vec::new(),
        };
        self.input.pick(&own)
    }

    fn look(&mut self) {
        for host in [A, B] {
            let current = self.world.ids[host];
            self.first[host] = self.first[host].or(current);
            self.anew |= current != self.first[host];
            while let Some(message) = self.world.messages[host].pop_front() {
                let taken = self.ledgers[1 - host].receive(&message);
                assert!(!self.is_honest() || taken.is_ok(), "{taken:?}");
            }
            while let Some(event) = self.world.events[host].pop_front() {
                match event {
                    Event::Closed | Event::Lost | Event::Aborted { .. } => self.over[host] = true,
                    Event::AsconfAnswered { results, .. } => {
                        for result in results {
                            if let (AddressRequest::Delete(gone), Ok(())) = (result.request, &result.outcome)
                            {
                                self.world.owned[host].retain(|a| *a != gone);
                            }
                        }
                    }
                    _ => {}
                }
            }
            let associations = self.world.ends[host].associations().count();
            // one for each connect of either end, one more for each COOKIE ECHO of theirs that came again
            assert!(associations <= 8 * self.connects, "{associations} associations");
        }
    }

    /// The network becomes calm.
    fn finish(&mut self) {
        let network = &mut self.world.network;
        network.calm = true;
        network.down.clear();
        self.world.reading = [true, true];
        self.world.drain();
        self.look();
        let patience = self.world.now + PATIENCE;
        let most = if self.is_honest() {
            MOST_STEPS_AT_THE_END
        } else {
            MOST_STEPS_WITHOUT_AN_END
        };
        let last = self.steps + most;
        while self.steps < last && self.world.now < patience && !self.is_settled() {
            self.step(patience);
            self.look();
        }
        assert!(
            !self.is_honest() || self.is_settled(),
            "stall: {:?}",
            self.ledgers
        );
    }

    /// Whether everything that is sent must be delivered, once and unharmed.
    fn is_honest(&self) -> bool {
        !self.forged && !self.partial && !self.anew && self.connects == 1
    }

    fn is_settled(&self) -> bool {
        self.over.contains(&true) || self.ledgers.iter().all(|l| l.sent_count() == l.received_count())
    }
}

/// What the attacker knows of packets to one host.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Verification tag.
    pub tag: u32,
    /// Highest TSN sent to the host.
    pub tsn: u32,
    /// Cumulative TSN ack last sent to the host.
    pub cumulative_tsn_ack: u32,
    /// Serial number of the ASCONF last sent to the host.
    pub serial: u32,
    /// The cookie last sent to the host.
    pub cookie: Vec<u8>,
    /// The last packets.
    pub seen: VecDeque<Vec<u8>>,
}

/// A network with an attacker on the path.
struct Tapped {
    random: Stream,
    loss: f64,
    duplication: f64,
    mutation: f64,
    jitter_ms: u64,
    down: Vec<Ipv6Addr>,
    calm: bool,
    /// Whether a stream reset may have had all TSNs begin anew (RFC 6525 section 4.3).
    resets: bool,
    /// By the host that packets go to.
    known: [Known; 2],
    /// Cumulative TSN acks by sender and tag.
    acked: BTreeMap<(usize, u32), Tsn>,
}

impl Tapped {
    fn new(seed: u64) -> Self {
        Self {
            random: Stream::new(seed, "network"),
            loss: 0.0,
            duplication: 0.0,
            mutation: 0.0,
            jitter_ms: 0,
            down: Vec::new(),
            calm: false,
            resets: false,
            known: Default::default(),
            acked: BTreeMap::new(),
        }
    }

    /// Notes what a packet gives away, and holds its sender to what it acknowledged before.
    fn tap(&mut self, from: usize, packet: &Packet, bytes: &[u8]) {
        let Payload::Sctp(sctp) = &packet.payload else {
            return;
        };
        let known = &mut self.known[1 - from];
        if sctp.verification_tag != 0 {
            known.tag = sctp.verification_tag;
        }
        known.seen.push_back(bytes.to_vec());
        if known.seen.len() > REMEMBERED {
            known.seen.pop_front();
        }
        for chunk in &sctp.chunks {
            match chunk {
                Chunk::Data(data) => known.tsn = data.tsn.0,
                Chunk::Init(init) | Chunk::InitAck(init) => known.tsn = init.initial_tsn.0.wrapping_sub(1),
                Chunk::Asconf(asconf) => known.serial = asconf.serial_number.0,
                // who calls anew after an end may meet a peer that still opens the association that ended, and keeps its tag
                Chunk::CookieEcho(cookie) => {
                    known.cookie = cookie.to_vec();
                    self.acked.retain(|key, _| key.0 != from);
                }
                // a cookie that comes again after its association has ended begins the same one anew, while it is good
                Chunk::CookieAck => self.acked.retain(|key, _| key.0 != from),
                Chunk::Sack(sack) => {
                    let now = sack.cumulative_tsn_ack;
                    known.cumulative_tsn_ack = now.0;
                    let last = self.acked.entry((from, sctp.verification_tag)).or_insert(now);
                    assert!(
                        self.resets || last.at_or_before(now),
                        "cumulative TSN ack went back from {last:?} to {now:?}"
                    );
                    *last = now;
                }
                _ => {}
            }
        }
    }

    /// Changes a byte behind the common header, and puts the checksum right.
    fn mutate(&mut self, bytes: &mut [u8]) {
        if bytes.len() <= HEADERS {
            return;
        }
        let at = HEADERS + self.random.below((bytes.len() - HEADERS) as u64) as usize;
        // most fields that matter lie at the beginning
        let at = if self.random.chance(0.7) {
            HEADERS + at % 32.min(bytes.len() - HEADERS)
        } else {
            at
        };
        bytes[at] ^= 1 << self.random.below(8);
        let crc = sctp_crc32c(&bytes[40..]);
        bytes[48..52].copy_from_slice(&crc);
    }
}

impl Network for Tapped {
    fn carry(&mut self, _now: Instant, from: usize, packet: &Packet) -> Vec<(Duration, Vec<u8>)> {
        let bytes = packet.to_vec();
        self.tap(from, packet, &bytes);
        let delay = Duration::from_millis(10);
        if self.calm {
            return vec![(delay, bytes)];
        }
        let cut = self.down.contains(&packet.ip.source) || self.down.contains(&packet.ip.destination);
        if cut || self.random.chance(self.loss) {
            return Vec::new();
        }
        let count = 1 + usize::from(self.random.chance(self.duplication));
        let mut copies = Vec::with_capacity(count);
        for _ in 0..count {
            let mut bytes = bytes.clone();
            if self.random.chance(self.mutation) {
                self.mutate(&mut bytes);
            }
            let jitter = Duration::from_millis(self.random.below(self.jitter_ms + 1));
            copies.push((delay + jitter, bytes));
        }
        copies
    }
}

fn config(input: &mut Input<'_>) -> Config {
    let bits = input.u16();
    let profile = [Profile::Rfc9260, Profile::Rfc4960, Profile::Rfc2960][usize::from(bits % 3)];
    let bit = |n: u16| bits >> n & 1 == 1;
    let defaults = Config::new(profile);
    Config {
        mtu: if bit(4) { 1280 } else { 1500 },
        receive_buffer: if bit(5) { 5000 } else { 100_000 },
        send_buffer: if bit(6) { 9000 } else { 100_000 },
        path_max_retrans: if bit(7) { 1 } else { 5 },
        max_burst: if bit(8) { None } else { Some(4) },
        sack_frequency: if bit(9) { 1 } else { 2 },
        max_chunk_data: bit(10).then_some(40),
        hb_interval: Some(Duration::from_secs(if bit(11) { 1 } else { 30 })),
        rto_min: Duration::from_millis(if bit(12) { 100 } else { 1000 }),
        // every check looks at all of them, and messages use six
        max_inbound_streams: if bit(13) { 6 } else { 64 },
        // without authentication an attacker gets at ASCONF
        asconf_auth: if bit(14) {
            AsconfAuth::None
        } else {
            AsconfAuth::Required
        },
        pf_max_retrans: bit(15).then_some(0),
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of a quarter of an hour, one after the other, of hosts that send a heartbeat every second.
    #[test]
    fn an_input_of_waits_is_cut_short() {
        let mut bytes = vec![0x08, 0, 0x08, 0, 2, 2, 0, 0];
        bytes.extend([6, 5, 15].repeat(100));
        let mut play = Play::new(Input(&bytes));
        play.world.connect();
        while play.goes_on() {}
        assert!(play.input.0.is_empty() || play.steps >= MOST_STEPS);
        assert!(
            play.steps <= MOST_STEPS + MOST_STEPS_OF_A_WAIT,
            "{} events",
            play.steps
        );
        assert!(
            play.world.now > Instant::ZERO + Duration::from_secs(60),
            "time passes"
        );
    }
}
