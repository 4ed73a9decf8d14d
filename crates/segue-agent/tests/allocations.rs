//! What a packet of a stream takes of memory on its way through two agents: nothing for its bytes, and for its headers no more than
//! the list of them and that of the options, which a nonce in every packet needs (RFC 6744 section 2).
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use bytes::Bytes;
use segue_agent::config::{Config, RoleConfig};
use segue_agent::stack::{Role, Stack};
use segue_live::{Buffers, OsSecrets};
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_proto::ilnp::Ilnp;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::checksum::PseudoHeader;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(block, layout) }
    }
}

const SIZE: usize = 60_000;
const SEGMENT: u16 = 1000;
const IDENTITIES: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd53, 0x6567, 0x7565, 1, 0x2aa, 0, 0, 1),
    Ipv6Addr::new(0xfd53, 0x6567, 0x7565, 1, 0x2aa, 0, 0, 2),
];
const ADDRESSES: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0x2aa, 0, 0, 1),
    Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0x2aa, 0, 0, 2),
];
const INTERFACE: InterfaceId = InterfaceId(0);

fn machine(number: usize, peers: &str) -> Stack {
    let text = format!(
        "[agent]\ninterfaces = [\"eth0\"]\n[ilnp]\nnid = \"2aa:0:0:{}\"\n{peers}",
        number + 1
    );
    let RoleConfig::Ilnp(config) = Config::parse(&text).unwrap().role else {
        panic!("the file says ilnp");
    };
    let secrets = Box::new(OsSecrets::new().unwrap());
    let mut stack = Stack::new(Role::Ilnp(Box::new(Ilnp::new(*config, secrets).unwrap())));
    let local = LocalAddress {
        interface: INTERFACE,
        address: ADDRESSES[number],
    };
    stack.handle_address(Instant::ZERO, &AddressEvent::Ready(local));
    stack
}

/// A super-packet of UDP, as the kernel gives it to a device that segments and sums.
fn datagrams(from: usize, to: usize) -> Vec<u8> {
    let (source, destination) = (IDENTITIES[from], IDENTITIES[to]);
    let length = 8 + SIZE;
    let sum = PseudoHeader { source, destination }.partial_sum(17, length);
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([17, 64]);
    bytes.extend(source.octets());
    bytes.extend(destination.octets());
    bytes.extend([0x9c, 0x40 + from as u8, 0x9c, 0x40 + to as u8]);
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend(sum.to_be_bytes());
    bytes.resize(40 + length, 7);
    bytes
}

fn receive(buffers: &mut Buffers, parts: [&[u8]; 2]) -> Bytes {
    let read = |space: &mut [core::mem::MaybeUninit<u8>]| {
        let length = parts[0].len() + parts[1].len();
        space[..parts[0].len()].write_copy_of_slice(parts[0]);
        space[parts[0].len()..length].write_copy_of_slice(parts[1]);
        Ok(Some(length))
    };
    buffers.receive(read).unwrap().unwrap().freeze()
}

fn raw(packet: Packet) -> Bytes {
    let Payload::Raw(raw) = packet.payload else {
        panic!("it is carried in bytes");
    };
    raw.bytes
}

#[test]
fn a_packet_takes_no_memory_for_its_bytes() {
    let peers = "[[ilnp.peers]]\nnid = \"2aa:0:0:2\"\nlocators = [\"2001:db8:2:0\"]\n";
    let mut machines = [machine(0, peers), machine(1, "")];
    let packets = [datagrams(0, 1), datagrams(1, 0)];
    let (mut buffers, mut head) = (Buffers::default(), Vec::new());
    let mut now = Instant::ZERO;
    let mut arrived = 0;
    let mut round = |now: Instant, from: usize| {
        let sent = receive(&mut buffers, [&packets[from], &[]]);
        machines[from].handle_kernel(now, sent, ChecksumState::Partial, Some(SEGMENT));
        while let Some(transmit) = machines[from].poll_wire() {
            head.clear();
            transmit.packet.emit_headers(&mut head);
            let body = raw(transmit.packet);
            let bytes = receive(&mut buffers, [&head, &body]);
            buffers.give_back(body);
            machines[1 - from].handle_wire(now, INTERFACE, bytes, ChecksumState::Partial, Some(SEGMENT));
            while let Some(packet) = machines[1 - from].poll_kernel() {
                arrived += 1;
                buffers.give_back(raw(packet));
            }
        }
    };
    let mut rounds = |count: usize| {
        for _ in 0..count {
            now += Duration::from_millis(1);
            round(now, 0);
            round(now, 1);
        }
    };
    rounds(100);
    let before = (COUNT.load(Relaxed), BYTES.load(Relaxed));
    rounds(500);
    let allocations = COUNT.load(Relaxed) - before.0;
    let bytes = BYTES.load(Relaxed) - before.1;
    assert_eq!(arrived, 1200);
    // each packet goes through two agents
    let passages = 2000;
    assert!(allocations <= 2 * passages + 10, "{allocations} for {passages}");
    // of the lists of extension headers and options, not of what it carries
    assert!(bytes < 384 * passages, "{bytes} bytes for {passages}");
}
