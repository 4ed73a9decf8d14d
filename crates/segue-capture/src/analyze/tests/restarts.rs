//! Flows that begin again between the same ends without having been ended.

use super::dead::near;
use super::*;
use crate::record::FlowState;

const OLD: [u32; 2] = [0xaaaa, 0xbbbb];
const NEW: [u32; 2] = [0xcccc, 0xdddd];

/// A packet at so many milliseconds, from the second end if it comes `back`.
struct Chunk {
    ms: u64,
    back: bool,
    tag: u32,
    bytes: Vec<u8>,
}

fn chunk(ms: u64, back: bool, tag: u32, kind: u8, words: &[u32]) -> Chunk {
    let data = if kind == 0 { 100 } else { 0 };
    let bytes = dead::chunk(kind, words, data);
    Chunk { ms, back, tag, bytes }
}

/// The tag that packets of the first end carry is what the second asked for.
fn handshake(ms: u64, tags: [u32; 2], tsns: [u32; 2]) -> Vec<Chunk> {
    let [carried, back] = tags;
    vec![
        chunk(ms, false, 0, 1, &[back, 5000, 0x1_0001, tsns[0]]),
        chunk(ms + 10, true, back, 2, &[carried, 5000, 0x1_0001, tsns[1]]),
        chunk(ms + 20, false, carried, 10, &[7, 7]),
        chunk(ms + 30, true, back, 11, &[]),
    ]
}

/// So many chunks of data of the first end, 10 ms apart, each acknowledged.
fn data(ms: u64, tags: [u32; 2], tsn: u32, count: u32) -> Vec<Chunk> {
    let one = |n: u32| {
        let at = ms + 10 * u64::from(n);
        [
            chunk(at, false, tags[0], 0, &[tsn + n, 0, 0]),
            chunk(at + 5, true, tags[1], 3, &[tsn + n, 5000, 0]),
        ]
    };
    (0..count).flat_map(one).collect()
}

fn packets(chunks: &[Chunk]) -> Vec<(u64, Vec<u8>)> {
    let packet = |c: &Chunk| {
        let (source, destination, ports) = if c.back {
            (v6(2, 2), v6(1, 1), [0u8, 6, 0, 5])
        } else {
            (v6(1, 1), v6(2, 2), [0, 5, 0, 6])
        };
        let sctp = [&ports[..], &c.tag.to_be_bytes(), &[0; 4], &c.bytes].concat();
        (c.ms * MS, ipv6(source, destination, 132, &sctp))
    };
    let mut packets: Vec<_> = chunks.iter().map(packet).collect();
    packets.sort_by_key(|p| p.0);
    packets
}

/// Of each flow: useful bytes there and back, packets that repeat something, how it ended.
fn flows(chunks: &[Chunk]) -> Vec<(u64, u64, u64, FlowState)> {
    let analysis = analysed(&[raw(&packets(chunks))]);
    let of = |f: &Flow| {
        (
            f.forward.useful_bytes,
            f.reverse.useful_bytes,
            f.forward.duplicate_packets + f.reverse.duplicate_packets,
            f.end.state,
        )
    };
    analysis.flows.iter().map(of).collect()
}

/// An association that was begun, and carried ten chunks.
fn begun() -> Vec<Chunk> {
    let mut chunks = handshake(0, OLD, [1000, 2000]);
    chunks.extend(data(100, OLD, 1000, 10));
    chunks
}

#[test]
fn an_association_that_is_restarted_is_another() {
    // with numbers before and behind those of the one that it replaces
    for tsn in [10, 1003, 5000, 0x8000_0000] {
        let mut chunks = begun();
        chunks.extend(handshake(5000, NEW, [tsn, 20]));
        chunks.extend(data(5100, NEW, tsn, 300));
        let expected = [(1000, 0, 0, FlowState::Idle), (30_000, 0, 0, FlowState::Active)];
        assert_eq!(flows(&chunks), expected, "{tsn}");
        let analysis = analysed(&[raw(&packets(&chunks))]);
        let [_, second] = &analysis.flows[..] else {
            unreachable!()
        };
        near(Some(second.begin_s), 5.0);
        assert_eq!(second.a.address, core::net::IpAddr::from(v6(1, 1)));
        assert!(analysis.interruptions.is_empty(), "{:?}", analysis.interruptions);
    }
}

#[test]
fn an_end_that_is_restarted_was_dead_to_the_other_until_then() {
    let mut chunks = begun();
    // data to the end that has lost its power, again and again
    chunks.push(chunk(300, true, OLD[1], 0, &[2000, 0, 0]));
    chunks.push(chunk(305, false, OLD[0], 3, &[2000, 5000, 0]));
    for ms in [400, 1400, 3400, 7400] {
        chunks.push(chunk(ms, true, OLD[1], 0, &[2001, 0, 0]));
    }
    // which calls, or is called, with whoever began the first time being the first of the old flow
    chunks.extend(handshake(8000, NEW, [10, 20]));
    // some was under way
    chunks.push(chunk(8025, true, OLD[1], 0, &[2001, 0, 0]));
    chunks.extend(data(8100, NEW, 10, 50));
    chunks.push(chunk(8200, true, NEW[1], 0, &[20, 0, 0]));
    chunks.push(chunk(8205, false, NEW[0], 3, &[20, 5000, 0]));
    let found = flows(&chunks);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].3, found[0].0), (FlowState::Dead, 1000));
    assert_eq!(found[1], (5000, 100, 0, FlowState::Active));
}

#[test]
fn the_other_end_may_be_the_one_that_restarts() {
    let mut chunks = begun();
    let mut again = handshake(5000, NEW, [10, 20]);
    again.iter_mut().for_each(|c| c.back = !c.back);
    chunks.extend(again);
    let mut sent = data(5100, NEW, 10, 20);
    sent.iter_mut().for_each(|c| c.back = !c.back);
    chunks.extend(sent);
    let analysis = analysed(&[raw(&packets(&chunks))]);
    let [old, new] = &analysis.flows[..] else {
        panic!("{:#?}", analysis.flows);
    };
    assert_eq!((old.forward.useful_bytes, new.forward.useful_bytes), (1000, 2000));
    assert_eq!(new.a.address, core::net::IpAddr::from(v6(2, 2)));
}

#[test]
fn an_init_of_which_nothing_comes_begins_nothing() {
    let whole = (2000, 0, 0, FlowState::Active);
    let with = |more: Vec<Chunk>| {
        let mut chunks = begun();
        chunks.extend(more);
        chunks.extend(data(5000, OLD, 1010, 10));
        flows(&chunks)
    };
    let up_to = |count: usize, tags| {
        let mut chunks = handshake(3000, tags, [10, 20]);
        chunks.truncate(count);
        chunks
    };
    // forged, or lost; and answered, although nobody called
    assert_eq!(with(up_to(1, NEW)), [whole]);
    assert_eq!(with(up_to(2, NEW)), [whole]);
    // sent again by the network
    assert_eq!(with(up_to(4, OLD)), [whole]);
    // refused: the ABORT is not of the association that there is
    let mut refused = up_to(1, NEW);
    refused.push(chunk(3010, true, NEW[1], 6, &[]));
    assert_eq!(with(refused), [whole]);
    // one that was forged does not hide one that was not
    let mut chunks = begun();
    chunks.extend(up_to(2, [1, 2]));
    chunks.extend(handshake(4000, NEW, [10, 20]));
    chunks.extend(data(4100, NEW, 10, 10));
    assert_eq!(flows(&chunks).len(), 2);
}

#[test]
fn inits_that_cross_are_of_one_association() {
    let chunks = |with_data: bool| {
        let mut chunks = vec![
            chunk(0, false, 0, 1, &[OLD[1], 5000, 0x1_0001, 1000]),
            chunk(1, true, 0, 1, &[OLD[0], 5000, 0x1_0001, 2000]),
            chunk(12, false, OLD[0], 2, &[OLD[1], 5000, 0x1_0001, 1000]),
            chunk(13, true, OLD[1], 2, &[OLD[0], 5000, 0x1_0001, 2000]),
            chunk(22, false, OLD[0], 10, &[7, 7]),
            chunk(23, true, OLD[1], 10, &[7, 7]),
            chunk(32, false, OLD[0], 11, &[]),
            chunk(33, true, OLD[1], 11, &[]),
        ];
        chunks.extend(data(if with_data { 22 } else { 100 }, OLD, 1000, 10));
        chunks
    };
    for with_data in [false, true] {
        assert_eq!(flows(&chunks(with_data)), [(1000, 0, 0, FlowState::Active)]);
    }
}

#[test]
fn a_restart_shows_in_either_direction_alone() {
    let mut chunks = begun();
    chunks.push(chunk(300, true, OLD[1], 0, &[2000, 0, 0]));
    chunks.extend(handshake(5000, NEW, [10, 20]));
    chunks.extend(data(5100, NEW, 10, 10));
    chunks.push(chunk(5200, true, NEW[1], 0, &[20, 0, 0]));
    for back in [false, true] {
        let seen: Vec<_> = packets(&chunks)
            .into_iter()
            .filter(|(_, p)| (p[8..24] == v6(2, 2)) == back)
            .collect();
        let analysis = analysed(&[raw(&seen)]);
        let bytes: Vec<_> = analysis
            .flows
            .iter()
            .map(|f| f.forward.useful_bytes + f.reverse.useful_bytes)
            .collect();
        assert_eq!(bytes, [1000, 1000].map(|b| if back { 100 } else { b }), "{back}");
    }
}

#[test]
fn a_restart_is_one_to_two_captures() {
    let mut chunks = begun();
    chunks.extend(handshake(5000, NEW, [10, 20]));
    chunks.extend(data(5100, NEW, 10, 50));
    // of a host, each packet as it left or came, 2 ms later
    let at = |second: bool| {
        let late = |(at, p): (u64, Vec<u8>)| {
            let leaves = (p[8..24] == v6(2, 2)) == second;
            (at + if leaves { 0 } else { 2 * MS }, p)
        };
        let mut seen: Vec<_> = packets(&chunks).into_iter().map(late).collect();
        seen.sort_by_key(|p| p.0);
        dead::cooked(if second { v6(2, 2) } else { v6(1, 1) }, &seen)
    };
    let analysis = analysed(&[at(false), at(true)]);
    let counts: Vec<_> = analysis
        .flows
        .iter()
        .map(|f| {
            let ends = f.forward.ends.expect("both ends");
            (ends.packets_sent, ends.lost_packets, ends.unmatched_packets)
        })
        .collect();
    assert_eq!(counts, [(10, 0, 0), (50, 0, 0)]);
}

#[test]
fn what_was_closed_before_its_beginning_was_seen_may_begin_again() {
    // TCP, of a connection that was open when the capture began
    let (client, server) = (v6(1, 1), v6(2, 2));
    let segment = |ms: u64, seq: u32, flags: u8, data: usize| {
        (
            ms * MS,
            ipv6(client, server, 6, &tcp((5000, 80), seq, 1, flags, &[], data)),
        )
    };
    let (fin, rst, syn, ack) = (1, 4, 2, 16);
    let with = |end: u8, first: u32| {
        let mut packets: Vec<_> = (0..10)
            .map(|n| segment(u64::from(n) * 10, 50_000 + n * 100, ack, 100))
            .collect();
        packets.push(segment(200, 51_000, ack | end, 0));
        packets.push(segment(400, first, syn, 0));
        packets.extend((0..10).map(|n| segment(500 + u64::from(n) * 10, first + 1 + n * 100, ack, 100)));
        let analysis = analysed(&[raw(&packets)]);
        let useful = |f: &Flow| (f.forward.useful_bytes, f.forward.duplicate_packets);
        analysis.flows.iter().map(useful).collect::<Vec<_>>()
    };
    for end in [fin, rst] {
        assert_eq!(with(end, 10), [(1000, 0), (1000, 0)]);
        assert_eq!(with(end, 90_000), [(1000, 0), (1000, 0)]);
    }
    // one that nobody closed has a SYN that was captured late
    assert_eq!(with(0, 51_000), [(2000, 0)]);

    // and SCTP, of which one direction was captured
    let mut chunks = data(100, OLD, 1000, 10);
    chunks.push(chunk(300, false, OLD[0], 7, &[1009]));
    chunks.extend(handshake(400, NEW, [10, 20]));
    chunks.extend(data(500, NEW, 10, 10));
    chunks.retain(|c| !c.back);
    let bytes: Vec<_> = flows(&chunks).iter().map(|f| (f.0, f.2)).collect();
    assert_eq!(bytes, [(1000, 0), (1000, 0)]);
}
