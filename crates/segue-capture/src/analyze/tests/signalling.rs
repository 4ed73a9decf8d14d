//! What the messages of a handover say of its delay and its parts.

use super::dead::{association, chunk};
use super::transports::mip6_packets;
use super::*;
use crate::record::{HandoverRecord, Layer};

const ADD: u8 = 1;
const DELETE: u8 = 2;
const SET_PRIMARY: u8 = 4;

/// Addresses of the mobile host before and after.
const OLD: [u8; 16] = {
    let mut a = [0; 16];
    (a[0], a[1], a[2], a[3], a[7], a[15]) = (0x20, 0x01, 0x0d, 0xb8, 2, 2);
    a
};
const NEW: [u8; 16] = {
    let mut a = OLD;
    (a[7], a[15]) = (3, 9);
    a
};

/// Captured on the mobile host, which has these addresses before and after, or on the other one.
fn at(mobile: bool, before: [u8; 16], packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let frame = |(t, p): &(u64, Vec<u8>)| {
        let from_mobile = [before, NEW, [0; 16]].iter().any(|a| p[8..24] == a[..]);
        let kind = if from_mobile == mobile { 4 } else { 0 };
        (
            *t,
            [&[0, kind, 0, 1, 0, 6][..], &[9; 8], &[0x86, 0xdd], p].concat(),
        )
    };
    pcap(113, false, true, &packets.iter().map(frame).collect::<Vec<_>>())
}

fn asconf(serial: u32, kind: u8, address: [u8; 16]) -> Vec<u8> {
    let parameter = [&[0xc0, kind, 0, 28, 0, 0, 0, 1, 0, 6, 0, 20][..], &address].concat();
    let mut out = [&[0xc1, 0, 0, 56][..], &serial.to_be_bytes(), &[0, 6, 0, 20], &OLD].concat();
    out.extend(parameter);
    out
}

/// Data to a mobile host every 10 ms, over its new address from one second on, with these messages from it and to it.
fn sigma(messages: &[(u64, bool, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    let mut chunks = messages.to_vec();
    for n in 0..200u32 {
        chunks.push((u64::from(n) * 10, true, chunk(0, &[1000 + n, 0, 0], 100)));
    }
    chunks.sort_by_key(|c| c.0);
    let mut packets = association(&chunks);
    for (at, packet) in &mut packets {
        if *at >= 1000 * MS && packet[24..40] == OLD {
            packet[24..40].copy_from_slice(&NEW);
        }
    }
    packets
}

fn messages() -> Vec<(u64, bool, Vec<u8>)> {
    let ack = |ms, serial| (ms, true, chunk(0x80, &[serial], 0));
    vec![
        (400, false, asconf(7, ADD, NEW)),
        ack(480, 7),
        (900, false, asconf(8, SET_PRIMARY, NEW)),
        (950, false, asconf(8, SET_PRIMARY, NEW)),
        // a copy of the first one's
        ack(960, 7),
        ack(970, 8),
        ack(990, 8),
        (1300, false, asconf(9, DELETE, OLD)),
        ack(1380, 9),
    ]
}

fn record(capture: Vec<u8>) -> HandoverRecord {
    let mut analysis = analysed(&[capture]);
    assert_eq!(analysis.handovers.len(), 1, "{:#?}", analysis.handovers);
    analysis.handovers.remove(0).record
}

fn ms(time: Option<f64>) -> Option<u64> {
    time.map(|s| (s * 1e3).round() as u64)
}

fn times(r: &HandoverRecord) -> [Option<u64>; 3] {
    [ms(r.begin_s), ms(r.end_s), ms(r.handoff_delay_s)]
}

#[test]
fn a_handoff_of_sigma_waits_for_the_add_and_for_the_set_primary() {
    let found = record(at(true, OLD, &sigma(&messages())));
    assert_eq!(found.to, Some(core::net::IpAddr::from(NEW)));
    assert_eq!(times(&found), [Some(400), Some(970), Some(150)]);
    // parts are of the network layer
    assert_eq!((found.layer, found.parts), (Some(Layer::Transport), None));
    // the other end does not know when they left
    let there = record(at(false, OLD, &sigma(&messages())));
    assert_eq!(times(&there), [None; 3]);
    // one of them is not answered
    for serial in [7u32, 8] {
        let mut some = messages();
        some.retain(|(_, to, c)| !(*to && c[4..8] >= serial.to_be_bytes()[..]));
        assert_eq!(
            times(&record(at(true, OLD, &sigma(&some)))),
            [Some(400), None, None]
        );
    }
    // nobody is asked to use the address
    let mut added = messages();
    added.truncate(2);
    let found = times(&record(at(true, OLD, &sigma(&added))));
    assert_eq!(found, [Some(400), None, None]);
    // behind one another without a wait, and of another address
    let mut close = messages();
    close[1].0 = 920;
    close.insert(0, (300, false, asconf(6, ADD, v6(4, 4))));
    assert_eq!(
        times(&record(at(true, OLD, &sigma(&close)))),
        [Some(400), Some(970), Some(570)]
    );
    // none in particular: where the message comes from
    let mut wild = messages();
    wild[0].2 = asconf(7, ADD, [0; 16]);
    // an association is known by what was said before
    wild.push((15, false, chunk(3, &[1001, 5000, 0], 0)));
    let mut packets = sigma(&wild);
    let add = packets
        .iter_mut()
        .find(|(at, p)| *at == 400 * MS && p[8..24] == OLD);
    add.expect("it").1[8..24].copy_from_slice(&NEW);
    assert_eq!(
        times(&record(at(true, OLD, &packets))),
        [Some(400), Some(970), Some(150)]
    );
}

/// Detection, configuration, registration, their sum, milliseconds.
fn parts(change: impl Fn(&mut Vec<(u64, Vec<u8>)>)) -> ([Option<u64>; 4], [Option<u64>; 3]) {
    let mut packets = mip6_packets();
    change(&mut packets);
    packets.sort_by_key(|p| p.0);
    let found = record(at(true, v6(1, 1), &packets));
    let p = found.parts.expect("of the network layer");
    assert_eq!(p.soft, None);
    ([p.t_d_s, p.t_c_s, p.t_r_s, p.t_n_s].map(ms), times(&found))
}

#[test]
fn what_a_capture_does_not_show_of_a_handover_has_no_length() {
    let is = |p: &[u8], kind: u8| p[6] == 58 && p[40] == kind;
    let all = [Some(1030), Some(1045), Some(15)];
    assert_eq!(parts(|_| ()), ([Some(10), Some(30), Some(15), Some(55)], all));
    let hidden = [None, None, Some(15), None];
    // without a router advertisement, and with one that came before the old path fell silent
    assert_eq!(parts(|p| p.retain(|(_, p)| !is(p, 134))), (hidden, all));
    let heard_before = |p: &mut Vec<(u64, Vec<u8>)>| {
        for (at, packet) in p.iter_mut() {
            if is(packet, 134) {
                *at = 985 * MS;
            }
        }
    };
    assert_eq!(parts(heard_before), (hidden, all));
    // heard again: the network was known
    let again = |p: &mut Vec<(u64, Vec<u8>)>| {
        let (_, one) = p.iter().find(|(_, p)| is(p, 134)).expect("there").clone();
        p.push((500 * MS, one));
    };
    assert_eq!(parts(again), (hidden, all));
    // no acknowledgement: until the first data; and none that was asked for
    let without = |p: &mut Vec<(u64, Vec<u8>)>| p.retain(|(at, _)| *at != 1045 * MS);
    let (found, told) = parts(without);
    assert_eq!(found, [Some(10), Some(30), Some(20), Some(60)]);
    assert_eq!(told, [Some(1030), None, None]);
    let changed = |at_ms: u64, byte: usize, to: u8| {
        parts(move |p| {
            let one = p.iter_mut().find(|(at, _)| *at == at_ms * MS).expect("there");
            one.1[byte] = to;
        })
    };
    // A of the update; the number of the acknowledgement is before it, then after it; from somebody else
    assert_eq!(changed(1030, 64 + 8, 0x40).1, [Some(1030), None, None]);
    assert_eq!(changed(1045, 64 + 9, 0).1, [Some(1030), None, None]);
    assert_eq!(changed(1045, 64 + 9, 2).1, all);
    assert_eq!(changed(1045, 23, 98).1, [Some(1030), None, None]);
    // it comes after the first data: registration ends with that
    let late = |p: &mut Vec<(u64, Vec<u8>)>| {
        let one = p.iter_mut().find(|(at, _)| *at == 1045 * MS).expect("there");
        one.0 = 1500 * MS + 1;
    };
    let (found, told) = parts(late);
    assert_eq!(found, [Some(10), Some(30), Some(20), Some(60)]);
    assert_eq!(told, [Some(1030), Some(1500), Some(470)]);
}
