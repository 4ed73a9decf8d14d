//! Two hosts with a network between them that is not what one would wish.

mod fast_path;
mod udp;

use super::*;
use crate::stack::{Role, Stack};
use bytes::Bytes;
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_proto::ilnp::{Config, Ilnp, PeerConfig};
use segue_proto::random::Stream;
use segue_wire::fragment::{Fragment, reassembled};
use segue_wire::ilnp::{Locator, Nid, Nonce};
use segue_wire::ilnp_udp::{DEFAULT_PORT, NonceInUdp};
use segue_wire::raw::{ChecksumState, RawPayload};

const ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1);
const NIDS: [Nid; 2] = [Nid(1), Nid(2)];

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn locator(n: u64) -> Locator {
    Locator(0x2001_0db8_0000_0000 + n)
}

fn identity(host: usize) -> Ipv6Addr {
    Config::new(NIDS[host]).identity_prefix.address(NIDS[host])
}

/// What a packet meets on its way.
#[derive(Clone, Copy, Default)]
struct Network {
    /// Packets with destination options that go to or come from this locator are dropped.
    no_options_at: Option<u64>,
    mtu: Option<usize>,
}

/// Host 0 is at locators 1 and 2, host 1 at locator 3.
struct World {
    hosts: [Stack; 2],
    network: Network,
    /// What each kernel was given.
    given: [Vec<Packet>; 2],
    /// Everything that was sent, by whom.
    sent: Vec<(usize, Packet)>,
}

impl World {
    fn new() -> Self {
        Self::of(|_| {})
    }

    /// Of hosts that are configured in another way.
    fn of(configure: impl Fn(&mut Config)) -> Self {
        let host = |own: usize, peer_at: &[u64], at_first: &[u64]| {
            let mut config = Config::new(NIDS[own]);
            config.translate_errors = true;
            config.peers = vec![PeerConfig {
                nid: NIDS[1 - own],
                locators: peer_at.iter().map(|n| locator(*n)).collect(),
                name: None,
            }];
            configure(&mut config);
            let secrets = Box::new(Stream::new(own as u64, "host"));
            let mut stack = Stack::new(Role::Ilnp(Box::new(Ilnp::new(config, secrets).unwrap())));
            stack.carry_in_udp(DEFAULT_PORT);
            for n in at_first {
                let local = LocalAddress {
                    interface: InterfaceId(*n as u8),
                    address: locator(*n).address(NIDS[own]),
                };
                stack.handle_address(at(0), &AddressEvent::Ready(local));
                stack.set_mtu(InterfaceId(*n as u8), 1500);
            }
            stack
        };
        let mut hosts = [host(0, &[3], &[2, 1]), host(1, &[1, 2], &[3])];
        hosts[0].prefer(at(0), InterfaceId(1));
        Self {
            hosts,
            network: Network::default(),
            given: [Vec::new(), Vec::new()],
            sent: Vec::new(),
        }
    }

    /// The kernel of a host sends a packet, and all is said that there is to say because of it.
    fn send(&mut self, now: Instant, host: usize, packet: &Packet) {
        self.send_as(now, host, packet, None);
    }

    fn send_as(&mut self, now: Instant, host: usize, packet: &Packet, segment_size: Option<u16>) {
        let state = if segment_size.is_some() {
            ChecksumState::Partial
        } else {
            ChecksumState::Complete
        };
        self.hosts[host].handle_kernel(now, packet.to_vec().into(), state, segment_size);
        self.settle(now);
    }

    fn settle(&mut self, now: Instant) {
        loop {
            let mut quiet = true;
            for host in 0..2 {
                self.given[host].extend(core::iter::from_fn(|| self.hosts[host].poll_kernel()));
                while let Some(Transmit { packet, .. }) = self.hosts[host].poll_wire() {
                    quiet = false;
                    self.sent.push((host, packet.clone()));
                    self.carry(now, host, &packet);
                }
                while self.hosts[host].poll_event().is_some() {}
            }
            if quiet {
                return;
            }
        }
    }

    fn carry(&mut self, now: Instant, from: usize, packet: &Packet) {
        let whole = in_pieces(packet.clone(), usize::MAX, 0);
        for packet in whole {
            let ends = [packet.ip.source, packet.ip.destination].map(|a| Locator::of(a).0 & 0xff);
            let has_options = packet.ilnp_nonce().is_some();
            if has_options && self.network.no_options_at.is_some_and(|n| ends.contains(&n)) {
                continue;
            }
            if let Some(mtu) = self.network.mtu.filter(|mtu| packet.buffer_len() > *mtu) {
                let error = Icmpv6::PacketTooBig {
                    mtu: mtu as u32,
                    invoking: Icmpv6::quote(&packet),
                };
                self.arrive(now, from, &icmp(ROUTER, packet.ip.source, error));
            } else {
                self.arrive(now, 1 - from, &packet);
            }
        }
    }

    fn arrive(&mut self, now: Instant, host: usize, packet: &Packet) {
        let interface = InterfaceId(Locator::of(packet.ip.destination).0 as u8);
        let bytes = Bytes::from(packet.to_vec());
        self.hosts[host].handle_wire(now, interface, bytes, ChecksumState::Complete, None);
    }

    fn count(&self, host: usize, name: &str) -> u64 {
        let all = self.hosts[host].role_counters();
        let mut counts = all.iter().flat_map(|(_, counts)| counts);
        counts.find(|(n, _)| *n == name).unwrap().1
    }

    /// A session of host 0 with host 1, both of which have heard each other.
    fn with_session() -> Self {
        let mut world = Self::new();
        for ms in [0, 10, 20] {
            world.send(at(ms), 0, &datagram(0, 7, 9, b"to"));
            world.send(at(ms), 1, &datagram(1, 9, 7, b"fro"));
        }
        assert_eq!(world.given.each_ref().map(Vec::len), [3, 3]);
        world.given = [Vec::new(), Vec::new()];
        world.sent.clear();
        world
    }

    /// Which of the forms have been sent since this was last asked, by a host.
    fn forms(&mut self, host: usize) -> Vec<Carriage> {
        let sent = core::mem::take(&mut self.sent).into_iter();
        // what the role and the agent say by themselves has no label
        let of_host = sent.filter(|(from, packet)| *from == host && packet.ip.flow_label != 0);
        let form = |packet: &Packet| match packet.ilnp_nonce() {
            Some(_) => Carriage::Option,
            None => Carriage::Udp,
        };
        of_host.map(|(_, packet)| form(&packet)).collect()
    }
}

fn is_empty_datagram(packet: &Packet) -> bool {
    let Payload::Udp(datagram) = &packet.payload else {
        return false;
    };
    let segue_wire::Data::Bytes(data) = &datagram.data else {
        return false;
    };
    NonceInUdp::parse(data).is_ok_and(|carried| carried.next_header == 59)
}

fn packet(source: Ipv6Addr, destination: Ipv6Addr, payload: Payload) -> Packet {
    Packet {
        ip: Ipv6Header {
            source,
            destination,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0xabcde,
        },
        extensions: Vec::new(),
        payload,
    }
}

fn icmp(source: Ipv6Addr, destination: Ipv6Addr, message: Icmpv6) -> Packet {
    packet(source, destination, Payload::Icmpv6(message))
}

/// As a kernel sends it: with its checksum.
fn datagram(from: usize, source_port: u16, destination_port: u16, data: &[u8]) -> Packet {
    let datagram = segue_wire::udp::UdpDatagram {
        source_port,
        destination_port,
        data: segue_wire::Data::Bytes(data.to_vec().into()),
    };
    packet(identity(from), identity(1 - from), Payload::Udp(datagram))
}

fn segment(from: usize, flags: u8, options: &[u8], data: usize) -> Packet {
    let mut bytes = vec![0; 20];
    bytes[..4].copy_from_slice(if from == 0 { &[0, 7, 0, 9] } else { &[0, 9, 0, 7] });
    bytes.extend_from_slice(options);
    bytes[12] = (bytes.len() as u8 / 4) << 4;
    bytes[13] = flags;
    bytes.resize(bytes.len() + data, 5);
    let mut packet = packet(identity(from), identity(1 - from), Payload::NoNextHeader);
    let mut raw = RawPayload {
        next_header: 6,
        bytes: bytes.into(),
        checksum: ChecksumState::Partial,
        segment_size: None,
    };
    raw.complete(&packet.pseudo_header());
    packet.payload = Payload::Raw(raw);
    packet
}

/// Whether a packet that a kernel was given is one that it takes: its checksum is right.
fn is_right(packet: &Packet) -> bool {
    Packet::parse(&packet.to_vec()).is_ok()
}

/// The packet that an error given to a kernel is about, and the MTU in it.
fn error_of(packet: &Packet) -> (Ipv6Addr, Ipv6Addr, usize, Option<u32>) {
    let Payload::Icmpv6(message) = &packet.payload else {
        panic!("an error: {packet:?}")
    };
    let quoted = message.invoking().unwrap();
    let (length, destination) = (
        Quotation::of_bytes(quoted).unwrap().length,
        Quotation::of_bytes(quoted).unwrap().destination,
    );
    let source = Ipv6Addr::from(*quoted[8..].first_chunk::<16>().unwrap());
    let mtu = match message {
        Icmpv6::PacketTooBig { mtu, .. } => Some(*mtu),
        _ => None,
    };
    (source, destination, length, mtu)
}

#[test]
fn a_router_s_mtu_is_lowered_by_what_the_packet_had_grown() {
    // RFC 8201 section 4
    let mut world = World::with_session();
    world.network.mtu = Some(1400);
    let big = datagram(0, 7, 9, &[5; 1440 - 48]);
    world.send(at(100), 0, &big);
    let [error] = &world.given[0][..] else {
        panic!("one error: {:?}", world.given)
    };
    assert_eq!((error.ip.source, error.ip.destination), (ROUTER, identity(0)));
    // the nonce takes 8 of the 40 bytes that are left free
    assert_eq!(error_of(error), (identity(0), identity(1), 1440, Some(1360)));
    assert!(is_right(error));
    // from now on the kernel is told at once, and what fits goes through
    world.sent.clear();
    world.send(at(200), 0, &big);
    assert_eq!(world.sent.len(), 0);
    assert_eq!(
        error_of(&world.given[0][1]),
        (identity(0), identity(1), 1440, Some(1360))
    );
    world.send(at(200), 0, &datagram(0, 7, 9, &[5; 1360 - 48]));
    assert_eq!(world.given[1].len(), 1);
    assert_eq!((world.count(0, "path_mtus"), world.count(0, "too_big")), (1, 1));
    // and after ten minutes it is tried again
    world.network.mtu = None;
    world.send(at(700_000), 0, &big);
    assert_eq!(world.given[1].len(), 2);
}

#[test]
fn a_path_that_leaves_no_40_bytes_free_is_given_fragments() {
    // the kernel makes nothing smaller than 1280 bytes: with the nonce, those fit in 1319, but not with all that is to be free
    for (mtu, pieces) in [(1319, 2), (1320, 1)] {
        let mut world = World::with_session();
        world.network.mtu = Some(mtu);
        world.send(at(100), 0, &datagram(0, 7, 9, &[5; 1400 - 48]));
        assert_eq!(error_of(&world.given[0][0]).3, Some(1280), "{mtu}");
        world.sent.clear();
        world.send(at(200), 0, &datagram(0, 7, 9, &[5; 1280 - 48]));
        assert_eq!(world.sent.len(), pieces, "{mtu}");
    }
}

#[test]
fn an_mtu_is_believed_only_with_the_nonce_that_was_sent() {
    // RFC 8201 sections 4 and 6: whoever is not on the path cannot quote it
    let mut world = World::with_session();
    world.send(at(100), 0, &datagram(0, 7, 9, &[5; 1200]));
    let (_, sent) = world.sent.pop().unwrap();
    let forge = |change: fn(&mut Packet), mtu: u32| {
        let mut quoted = sent.clone();
        change(&mut quoted);
        let invoking = Icmpv6::quote(&quoted);
        icmp(ROUTER, sent.ip.source, Icmpv6::PacketTooBig { mtu, invoking })
    };
    let other_nonce: fn(&mut Packet) = |quoted| {
        let nonce = Nonce::Bits32([1, 2, 3, 4]);
        let rule = segue_wire::PseudoRule::Ipv6;
        quoted.extensions = vec![ExtensionHeader::DestinationOptions(vec![
            segue_wire::ipv6::Ipv6Option::IlnpNonce { nonce, rule },
        ])];
    };
    for (change, mtu) in [
        (other_nonce, 1280),
        ((|quoted| quoted.extensions.clear()) as fn(&mut Packet), 1280),
        // the packet was no longer than that
        ((|_| {}) as fn(&mut Packet), 1400),
    ] {
        world.arrive(at(200), 0, &forge(change, mtu));
        world.settle(at(200));
    }
    assert_eq!(world.given[0], []);
    assert_eq!(
        (world.count(0, "path_mtus"), world.count(0, "incredible_mtus")),
        (0, 1)
    );
    // nor is it ever below what every link carries (RFC 8200 section 5)
    world.arrive(at(300), 0, &forge(|_| {}, 600));
    world.settle(at(300));
    assert_eq!(error_of(&world.given[0][0]).3, Some(1280));
}

#[test]
fn of_a_path_mtu_nothing_is_learnt_that_is_not_about_a_session() {
    let mut world = World::with_session();
    world.send(at(100), 1, &datagram(1, 9, 7, b"from the peer"));
    let (_, from_peer) = world.sent.pop().unwrap();
    let elsewhere = Packet {
        ip: Ipv6Header {
            source: from_peer.ip.destination,
            destination: locator(9).address(Nid(77)),
            ..from_peer.ip
        },
        ..datagram(0, 7, 9, &[5; 1440 - 48])
    };
    let too_big = Payload::Icmpv6(Icmpv6::PacketTooBig {
        mtu: 1300,
        invoking: Icmpv6::quote(&elsewhere),
    });
    // with the nonce of the peer's session, or else it would not come up
    let packet = Packet {
        payload: too_big,
        ..from_peer
    };
    world.given[0].clear();
    world.arrive(at(200), 0, &packet);
    world.settle(at(200));
    // it is the kernel's, as it came
    assert_eq!(error_of(&world.given[0][0]).3, Some(1300));
    assert_eq!(world.count(0, "path_mtus"), 0);
}

#[test]
fn what_the_kernel_may_not_make_smaller_goes_in_fragments() {
    // RFC 8200 section 5: a path of 1280 bytes, and a packet of 1280 with eight more
    let mut world = World::with_session();
    world.network.mtu = Some(1280);
    let least = datagram(0, 7, 9, &[6; 1280 - 48]);
    world.send(at(100), 0, &least);
    assert_eq!(error_of(&world.given[0][0]).3, Some(1280));
    world.sent.clear();
    world.send(at(200), 0, &least);
    let lengths: Vec<usize> = world.sent.iter().map(|(_, p)| p.buffer_len()).collect();
    assert_eq!(lengths, [1280, 40 + 8 + 8 + 16]);
    assert!(world.sent.iter().all(|(_, p)| p.ilnp_nonce().is_some()));
    assert_eq!(together(&world.given[1]), least);
    // so does a super-packet in each of its segments, if these are no longer
    world.given[1].clear();
    let three = segment(0, 0x10, &[], 3 * 1220);
    world.send_as(at(300), 0, &three, Some(1220));
    assert_eq!(world.given[1].len(), 6);
    for two in world.given[1].chunks(2) {
        let Payload::Tcp(one) = together(two).payload else {
            panic!("TCP")
        };
        assert_eq!(one.data.len(), 1220);
    }
    // and of longer ones the kernel is told
    world.given[0].clear();
    world.send_as(at(400), 0, &three, Some(1300));
    assert_eq!(error_of(&world.given[0][0]).3, Some(1280));
    assert_eq!(world.count(0, "fragmented"), 2);
}

/// What the kernel makes of fragments.
fn together(fragments: &[Packet]) -> Packet {
    let parsed: Vec<Packet> = fragments
        .iter()
        .map(|f| Packet::parse(&f.to_vec()).unwrap())
        .collect();
    let mut parts: Vec<Fragment> = parsed
        .iter()
        .map(|f| Fragment::of(f).expect("a fragment"))
        .collect();
    parts.sort_by_key(|part| part.offset);
    assert!(
        parts
            .iter()
            .all(|part| part.identification == parts[0].identification)
    );
    assert!(!parts[parts.len() - 1].more);
    let mut bytes = Vec::new();
    for part in &parts {
        assert_eq!(part.offset, bytes.len());
        bytes.extend_from_slice(&part.bytes);
    }
    reassembled(&parts[0].ip, parts[0].next_header, &bytes).expect("checksums are right")
}

#[test]
fn fragments_of_the_kernel_s_go_each_by_itself_and_answers_come_back() {
    let mut world = World::with_session();
    for (host, ms) in [(0, 100), (1, 200)] {
        // another flow than that of the session so far, and none whose ports the second fragment has
        let whole = datagram(host, 70 + host as u16, 71 - host as u16, &[host as u8; 4000]);
        let fragments = segue_wire::fragment::fragment(whole.clone(), 1460, 99);
        assert_eq!(fragments.len(), 3);
        for fragment in &fragments {
            world.send(at(ms), host, fragment);
        }
        let given = core::mem::take(&mut world.given[1 - host]);
        assert_eq!(together(&given), whole);
    }
    // all of one session, which the answer found by the ports of the first
    let Role::Ilnp(shim) = world.hosts[1].role() else {
        panic!("ILNP")
    };
    assert_eq!(shim.correspondents().count(), 1);
    // a fragment that is too big for the path is cut once more, and the kernel puts all together
    world.network.mtu = Some(1280);
    let whole = datagram(0, 7, 9, &[3; 2000]);
    let fragments = segue_wire::fragment::fragment(whole.clone(), 1280, 100);
    for _ in 0..2 {
        world.given = [Vec::new(), Vec::new()];
        for fragment in &fragments {
            world.send(at(300), 0, fragment);
        }
    }
    assert_eq!(together(&world.given[1]), whole);
}

#[test]
fn errors_go_both_ways_as_each_kernel_knows_the_packet() {
    let mut world = World::with_session();
    let lost = datagram(0, 7, 9, b"nobody listens");
    world.send(at(100), 0, &lost);
    let seen = world.given[1].pop().unwrap();
    assert!(is_right(&seen));
    // the peer's kernel answers what it was given
    let error = Icmpv6::DestinationUnreachable {
        code: 4,
        invoking: Icmpv6::quote(&seen),
    };
    world.sent.clear();
    world.send(at(200), 1, &icmp(identity(1), identity(0), error));
    // on the wire it quotes what was on the wire, so that firewalls know it again
    let (_, on_the_wire) = &world.sent[0];
    let (source, destination, length, _) = error_of(on_the_wire);
    assert_eq!(source, locator(1).address(NIDS[0]));
    assert_eq!(destination, locator(3).address(NIDS[1]));
    assert_eq!(length, lost.buffer_len() + 8);
    // and the kernel that has sent it finds its own packet in it, checksum and all
    let [back] = &world.given[0][..] else {
        panic!("an error")
    };
    assert!(is_right(back));
    assert_eq!((back.ip.source, back.ip.destination), (identity(1), identity(0)));
    let Payload::Icmpv6(message) = &back.payload else {
        panic!("ICMPv6")
    };
    assert_eq!(message.invoking().unwrap()[..], lost.to_vec());
    // a router's
    world.send(at(300), 0, &lost);
    let (_, sent) = world.sent.pop().unwrap();
    for short in [1232, 48 + 8 + 8, 48 + 8] {
        let error = Icmpv6::TimeExceeded {
            code: 0,
            invoking: Icmpv6::quote(&sent).slice(..short.min(sent.buffer_len())),
        };
        world.given[0].clear();
        world.arrive(at(400), 0, &icmp(ROUTER, sent.ip.source, error));
        world.settle(at(400));
        let [back] = &world.given[0][..] else {
            panic!("an error of {short}")
        };
        assert_eq!(back.ip.source, ROUTER);
        assert_eq!(
            error_of(back),
            (identity(0), identity(1), lost.buffer_len(), None)
        );
    }
    // one that does not reach to the nonce is nobody's
    let error = Icmpv6::TimeExceeded {
        code: 0,
        invoking: Icmpv6::quote(&sent).slice(..44),
    };
    world.given[0].clear();
    world.arrive(at(500), 0, &icmp(ROUTER, sent.ip.source, error));
    world.settle(at(500));
    assert_eq!(world.given[0], []);
}

#[test]
fn the_segment_size_of_a_syn_is_what_fits_and_its_checksum_follows() {
    let mut world = World::with_session();
    world.hosts[0].set_mtu(InterfaceId(1), 1280);
    for (options, expected) in [
        (vec![2, 4, 5, 0x78], vec![2, 4, 0x04, 0xbc]),
        // behind others, at an odd place
        (
            vec![1, 2, 4, 5, 0x78, 1, 1, 0],
            vec![1, 2, 4, 0x04, 0xbc, 1, 1, 0],
        ),
        // smaller already
        (vec![2, 4, 2, 0], vec![2, 4, 2, 0]),
        (vec![1, 1, 1, 0], vec![1, 1, 1, 0]),
    ] {
        world.given[1].clear();
        world.send(at(100), 0, &segment(0, 2, &options, 0));
        let [syn] = &world.given[1][..] else {
            panic!("a SYN")
        };
        assert!(is_right(syn));
        let Payload::Raw(raw) = &syn.payload else {
            panic!("TCP in bytes")
        };
        assert_eq!(raw.bytes[20..], expected);
    }
    assert_eq!(world.count(0, "mss_clamped"), 2);
    // the peer's, to the same host: with room for UDP
    world.send(at(200), 1, &segment(1, 0x12, &[2, 4, 5, 0x78], 0));
    let syn = world.given[0].pop().unwrap();
    let Payload::Raw(raw) = &syn.payload else {
        panic!("TCP in bytes")
    };
    assert!(is_right(&syn));
    assert_eq!(raw.bytes[22..24], (1280u16 - 16 - 60).to_be_bytes());
}

#[test]
fn the_segment_size_of_a_syn_that_waited_for_a_look_up_leaves_room_for_the_nonce() {
    let mut world = World::of(|config| config.peers.clear());
    world.hosts[0].set_mtu(InterfaceId(1), 1280);
    world.send(at(0), 0, &segment(0, 2, &[2, 4, 5, 0x78], 0));
    assert_eq!(world.sent, []);
    let peer = world.hosts[0].poll_look_up().expect("a look-up");
    world.hosts[0].handle_found(at(10), peer, &[(locator(3), 1)]);
    world.settle(at(10));
    let [syn] = &world.given[1][..] else {
        panic!("a SYN")
    };
    let Payload::Raw(raw) = &syn.payload else {
        panic!("TCP in bytes")
    };
    assert_eq!(raw.bytes[22..24], (1280u16 - 8 - 60).to_be_bytes());
}

#[test]
fn a_packet_that_its_interface_does_not_take_is_answered_and_not_too_often() {
    let mut world = World::with_session();
    world.hosts[0].set_mtu(InterfaceId(1), 1400);
    for _ in 0..60 {
        world.send(at(100), 0, &datagram(0, 7, 9, &[5; 1393 - 48]));
    }
    assert_eq!(world.given[0].len(), 50);
    assert_eq!(
        error_of(&world.given[0][0]),
        (identity(0), identity(1), 1393, Some(1392))
    );
    assert_eq!(world.count(0, "too_big_unanswered"), 10);
    world.send(at(111), 0, &datagram(0, 7, 9, &[5; 1393 - 48]));
    assert_eq!(world.given[0].len(), 51);
    assert_eq!(world.given[1], []);
}

#[test]
fn flow_labels_stay_what_the_kernel_made_them() {
    // RFC 6437 section 3: through the shim, in both forms, and over a handover
    let mut world = World::with_session();
    world.network.no_options_at = Some(2);
    world.send(at(100), 0, &datagram(0, 7, 9, b"one"));
    world.hosts[0].prefer(at(200), InterfaceId(2));
    world.settle(at(200));
    world.send(at(300), 0, &datagram(0, 7, 9, b"two"));
    let datagrams = world
        .sent
        .iter()
        .filter(|(from, p)| *from == 0 && !is_empty_datagram(p));
    let data = datagrams.filter(|(_, p)| p.ip.flow_label != 0);
    let labels: Vec<(u32, bool)> = data
        .map(|(_, p)| (p.ip.flow_label, p.ilnp_nonce().is_some()))
        .collect();
    assert_eq!(labels, [(0xabcde, true), (0xabcde, false)]);
    assert!(world.given[1].iter().all(|p| p.ip.flow_label == 0xabcde));
}
