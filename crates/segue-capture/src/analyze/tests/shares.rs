//! Paths that are used at once, or in turn.

use super::*;
use crate::record::FlowState;
use flows::mptcp::token;

const ACK: u8 = 16;
const SYN: u8 = 2;

#[test]
fn paths_in_use_at_once_are_no_handovers_until_one_falls_silent() {
    let packet = |n: u32, there: bool| {
        let to = if there { v6(3, 9) } else { v6(1, 1) };
        let nonce = [6, 0, 0x8b, 4, 1, 2, 3, 4];
        // one host by its identifier: both addresses have the same
        let mut to = to;
        to[15] = 1;
        ipv6(
            v6(2, 2),
            to,
            60,
            &[&nonce[..], &tcp((1, 2), n * 100, 1, ACK, &timestamps(n, 0), 100)].concat(),
        )
    };
    let packets: Vec<_> = (0..1000u32)
        .map(|n| (u64::from(n) * 5 * MS, packet(n, n / 2 % 2 == 1 && n < 600)))
        .collect();
    let analysis = analysed(&[raw(&packets)]);
    assert_eq!(analysis.handovers.len(), 1, "{:#?}", analysis.handovers);
    let lost = &analysis.handovers[0];
    assert!((lost.record.time - 3.0).abs() < 0.011, "{lost:#?}");
    assert!(lost.from_text.contains("2001:db8:0:3::1"), "{}", lost.from_text);
    assert!((lost.record.interruption_s.expect("of a flow") - 0.005).abs() < 1e-9);
    for rate in [
        lost.around.throughput_before_bps,
        lost.around.throughput_after_bps,
    ] {
        assert!((rate / 160_000.0 - 1.0).abs() < 0.06, "{lost:#?}");
    }
}

/// An MPTCP connection over two subflows that are used in turn, a burst of four packets at a time; begins, in ms, and path of
/// each burst. `removed` is when an address is given up.
fn in_turn(bursts: &[(u64, bool)], removed: Option<u64>) -> Analysis {
    let (client, server) = (0x1111_2222_3333_4444u64, 0x5555_6666_7777_8888u64);
    let (first, second, peer) = ([10, 0, 0, 1], [10, 0, 9, 1], [192, 0, 2, 1]);
    let mut capable = vec![30, 20, 1, 0x81];
    capable.extend([client, server].iter().flat_map(|k| k.to_be_bytes()));
    let mut join = vec![30, 12, 0x10, 1];
    join.extend(token(server, 1).to_be_bytes());
    join.extend([1, 2, 3, 4]);
    let mut packets = vec![
        (
            1,
            ipv4(first, peer, 6, 2, &tcp((40, 443), 901, 50_001, ACK, &capable, 0)),
        ),
        (
            2,
            ipv4(second, peer, 6, 1, &tcp((41, 443), 800, 0, SYN, &join, 0)),
        ),
    ];
    let (mut dsn, mut sent) = (5_000_000_000u64, [0u32; 2]);
    for &(begin_ms, there) in bursts {
        let (to, port, isn) = if there {
            (second, 41, 70_000)
        } else {
            (first, 40, 50_000)
        };
        for n in 0..4u64 {
            let before = &mut sent[usize::from(there)];
            let mut option = vec![30, 20, 0x20, 0x0c];
            option.extend(dsn.to_be_bytes());
            option.extend((1 + *before).to_be_bytes());
            option.extend([0, 100, 0, 0]);
            let segment = tcp((443, port), isn + 1 + *before, 1, ACK, &option, 100);
            packets.push(((begin_ms + n) * MS, ipv4(peer, to, 6, 1, &segment)));
            // all of it is acknowledged, on its subflow and of the connection
            let mut option = vec![30, 8, 0x20, 1];
            option.extend(((dsn + 100) as u32).to_be_bytes());
            let ack = tcp((port, 443), 901, isn + 101 + *before, ACK, &option, 0);
            packets.push(((begin_ms + n) * MS + MS / 2, ipv4(to, peer, 6, 1, &ack)));
            dsn += 100;
            *before += 100;
        }
    }
    if let Some(ms) = removed {
        let remove = tcp((41, 443), 801, 1, ACK, &[30, 4, 0x40, 1], 0);
        packets.push((ms * MS, ipv4(second, peer, 6, 2, &remove)));
    }
    packets.sort_by_key(|p| p.0);
    analysed(&[raw(&packets)])
}

#[test]
fn subflows_that_are_used_in_turn_change_shares_until_one_is_left() {
    // as a person types, who looks at the screen now and then
    let turns = [
        (10, false),
        (60, true),
        (110, false),
        (130, true),
        (1450, false),
        (5900, true),
        (6100, false),
    ];
    let analysis = in_turn(&turns, None);
    // the last one lasts for 4 ms, and then the capture ends
    assert!(analysis.handovers.is_empty(), "{:#?}", analysis.handovers);
    let [share] = &analysis.shares[..] else {
        panic!("{:#?}", analysis.shares);
    };
    assert_eq!((share.changes, share.direction), (6, Direction::Reverse));
    let shares: Vec<_> = share.paths.iter().map(|p| p.data_bytes).collect();
    assert_eq!(shares, [1600, 1200]);
    assert!((share.paths[0].share - 4.0 / 7.0).abs() < 1e-9);
    let connection = analysis
        .flows
        .iter()
        .find(|f| f.protocol == Protocol::Mptcp)
        .expect("one");
    assert_eq!(
        connection.reverse.end.state,
        FlowState::Active,
        "{:?}",
        connection.reverse.end
    );

    // REMOVE_ADDR makes one of them a handover, and the rest stay what they were
    let analysis = in_turn(&turns, Some(6095));
    let [handover] = &analysis.handovers[..] else {
        panic!("{:#?}", analysis.handovers);
    };
    assert!((handover.record.time - 6.1).abs() < 2e-3, "{handover:#?}");
    assert_eq!(handover.record.to, Some(core::net::IpAddr::from([10, 0, 0, 1])));
    assert_eq!(analysis.shares[0].changes, 5);

    // and so does silence until the end
    let mut left = turns.to_vec();
    left.extend([(6600, false), (7200, false)]);
    let analysis = in_turn(&left, None);
    assert_eq!(analysis.handovers.len(), 1, "{:#?}", analysis.handovers);
}
