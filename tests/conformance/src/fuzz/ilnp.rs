//! Two ILNPv6 shims, and bytes that say what their users, the network and an attacker do: the attacker is off the path, so
//! that it knows every address and every format, and no nonce; but it may be given packets that were on the wire.
//!
//! Whatever happens: nothing panics, timers move on, one operation brings out a bounded number of packets, no identity is
//! on the wire; of what the attacker makes up nothing comes up in the session's flow where every packet has a nonce, and no
//! locator that it names is ever believed to be that of a node that was called (claim I10).

use super::association::Input;
use crate::shims::{Decide, Fate, PORT, Shims, datagram, header, locator, nid, with_nonce};
use bytes::Bytes;
use segue_proto::address::AddressEvent;
use segue_proto::ilnp::{ChecksumRule, Config, Handoff, NonceIn, NonceLength, Sharing, Trigger};
use segue_proto::{Duration, InterfaceId};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorEntry, LocatorOperation, LocatorUpdate, Nonce};
use segue_wire::{Data, Packet, Payload};

/// Most operations of one input.
const MOST_STEPS: u32 = 300;
/// What transports send.
const OURS: &[u8] = b"sent by a transport";

/// Plays two shims.
///
/// # Panics
/// If something that must hold does not.
pub fn ilnp(bytes: &[u8]) {
    let mut input = Input(bytes);
    let configs = [config(&mut input), config(&mut input)];
    let every = configs.each_ref().map(|c| c.nonce_in == NonceIn::Every);
    let mut shims = Shims::new(configs);
    shims.arrive(0, 0, locator(1));
    shims.arrive(1, 0, locator(5));
    // whoever comes first is believed: a session that has begun is what is safe
    shims.greet();
    for _ in 0..MOST_STEPS {
        let Some(op) = input.next() else { break };
        let before = shims.sent.len();
        operate(&mut shims, op, &mut input);
        assert!(shims.sent.len() - before < 2000, "a bounded number of packets");
        look(&mut shims, every);
    }
}

fn config(input: &mut Input<'_>) -> Config {
    let bits = input.u16();
    let pick = |shift: u32, n: u16| bits >> shift & 3_u16.min(n);
    Config {
        handoff: [Handoff::Hard, Handoff::Soft, Handoff::Multihomed, Handoff::Soft][usize::from(pick(0, 3))],
        trigger: [Trigger::NewLocator, Trigger::Lost][usize::from(pick(2, 1))],
        sharing: [Sharing::None, Sharing::PerFlow, Sharing::PerPacket, Sharing::None]
            [usize::from(pick(3, 3))],
        nonce: [NonceLength::Bits32, NonceLength::Bits96][usize::from(pick(5, 1))],
        nonce_in: [NonceIn::Every, NonceIn::SessionStartAndSignalling][usize::from(pick(6, 1))],
        checksum: [ChecksumRule::Ipv6, ChecksumRule::Identifiers][usize::from(pick(7, 1))],
        locator_timeout: (pick(8, 1) == 1).then(|| Duration::from_secs(3)),
        fallback_after: (pick(9, 1) == 1).then_some(3),
        unconfirmed_bytes: (pick(10, 1) == 1).then_some(2000),
        idle_timeout: Duration::from_secs(100_000),
        max_held: 4,
        ..Config::default()
    }
}

fn operate(shims: &mut Shims, op: u8, input: &mut Input<'_>) {
    let host = usize::from(op >> 7);
    match op & 0x0f {
        0..=3 => {
            let peer = shims.identity(1 - host);
            shims.send(host, peer, OURS);
        }
        4 => {
            let to = locator(u16::from(input.u8() % 8)).address(nid(1 - host));
            shims.send(host, to, OURS);
        }
        5 | 6 => {
            let time = Duration::from_millis(u64::from(input.u16()) % 10_000);
            shims.run_for(time);
        }
        7 => {
            let n = u16::from(input.u8() % 4);
            shims.arrive(host, n as u8, locator(1 + host as u16 * 4 + n));
        }
        8 => {
            let n = u16::from(input.u8() % 4);
            shims.leave(host, n as u8, locator(1 + host as u16 * 4 + n));
        }
        9 => {
            let interface = InterfaceId(input.u8() % 4);
            let router = nid(9);
            let router = locator(9).address(router);
            shims.address(host, &AddressEvent::RouterHeard { interface, router });
        }
        10 => {
            let loss = input.u8() % 4;
            let mut n = 0_u8;
            let decide: Decide = Box::new(move |_, _| {
                n = n.wrapping_mul(5).wrapping_add(3);
                match (loss, n >> 5) {
                    (1.., n) if n < loss => Fate::Lost,
                    (2, 7) => Fate::Twice(Duration::from_millis(700)),
                    (3, 7) => Fate::Late(Duration::from_millis(300)),
                    _ => Fate::Arrives,
                }
            });
            shims.fate = decide;
        }
        11 => shims.directory = !shims.directory,
        12 => {
            let at = usize::from(input.u16());
            let seen = shims.sent.len();
            if let Some((_, _, packet)) = shims.sent.get(at % seen.max(1)).cloned() {
                shims.inject(packet);
            }
        }
        13 => {
            // nobody can read it who does not look at raw bytes
            let len = usize::from(input.u8());
            let body: Vec<u8> = (0..len).map(|_| input.u8()).collect();
            if let Ok(packet) = Packet::parse(&body) {
                shims.inject(packet);
            }
        }
        _ => {
            let packet = forged(shims, host, input);
            shims.inject(packet);
        }
    }
}

/// A packet to `host` in the name of the other, by somebody who does not know the nonce.
fn forged(shims: &Shims, host: usize, input: &mut Input<'_>) -> Packet {
    let from = locator(u16::from(input.u8() % 10)).address(nid(1 - host));
    let to = locator(u16::from(input.u8() % 10)).address(nid(host));
    let kind = input.u8();
    let mut packet = datagram(from, to, FORGED);
    if kind & 0x20 != 0
        && let Payload::Udp(udp) = &mut packet.payload
    {
        udp.source_port = PORT + 1;
    }
    let quoted = with_nonce(datagram(to, from, FORGED), Nonce::Bits32([input.u8(); 4]));
    packet.payload = match kind % 5 {
        0 => packet.payload,
        1 | 2 => {
            let operation = if kind % 5 == 1 {
                LocatorOperation::Advertisement
            } else {
                LocatorOperation::Acknowledgement
            };
            let entry = |n: u8| LocatorEntry {
                locator: locator(MADE_UP + u16::from(n % 10)),
                preference: u16::from(n),
                lifetime_s: u16::from(n) * 3,
            };
            let locators = (0..=input.u8() % 3).map(|_| entry(input.u8())).collect();
            Payload::Icmpv6(Icmpv6::LocatorUpdate(LocatorUpdate { operation, locators }))
        }
        3 => Payload::Icmpv6(Icmpv6::ParameterProblem {
            code: 2,
            pointer: 42,
            invoking: Icmpv6::quote(&quoted),
        }),
        _ => Payload::Icmpv6(Icmpv6::PacketTooBig {
            mtu: 1280,
            invoking: Bytes::from(vec![input.u8(); 60]),
        }),
    };
    if kind & 0x80 != 0 {
        packet = with_nonce(packet, Nonce::Bits96([kind; 12]));
    }
    if kind & 0x40 != 0 {
        packet.ip = header(shims.identity(1 - host), shims.identity(host));
    }
    packet
}

fn look(shims: &mut Shims, every: [bool; 2]) {
    let identities = [shims.identity(0), shims.identity(1)];
    for (n, host) in shims.hosts.iter_mut().enumerate() {
        // what he says in the name of the other, in flows of his own, is his own matter
        for peer in host
            .shim
            .correspondents()
            .filter(|c| c.nid() == nid(1 - n) && c.is_called())
        {
            let made_up = |l: &Locator| l.0 >= locator(MADE_UP).0;
            assert!(
                !peer.locators().iter().map(|l| l.locator).any(|l| made_up(&l)),
                "{peer:?}"
            );
        }
        for (_, packet) in host.up.drain(..) {
            let session = packet.ip.destination == identities[n] && packet.ip.source == identities[1 - n];
            let data = matches!(&packet.payload, Payload::Udp(udp)
                if udp.data == Data::Bytes(Bytes::from_static(FORGED)) && udp.source_port == PORT);
            assert!(!(session && data && every[n]), "forged data came up: {packet:?}");
        }
    }
    for (_, _, packet) in &shims.sent {
        assert!(!identities.contains(&packet.ip.source), "{packet:?}");
        assert!(!identities.contains(&packet.ip.destination), "{packet:?}");
    }
}

/// What the attacker sends.
const FORGED: &[u8] = b"forged";
/// Locators of the attacker's making are these and those behind.
const MADE_UP: u16 = 100;
