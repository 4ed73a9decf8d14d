//! What became of TCP's packets, told twice: by the simulator's ledger, and by the captures of the two ends.

use crate::common::scenario_text;
use segue_capture::analyze::{EndCounts, Handover, Input, Options, analyze_inputs};
use segue_capture::pcapng::PcapngFile;
use segue_sim::{RunOptions, RunOutput, Scenario, run};
use segue_wire::{Packet, Payload, PseudoRule};

const SCHEMES: [&str; 4] = ["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft"];

fn captured(text: &str, overrides: &[(&str, &str)], seed: u64) -> RunOutput {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = Scenario::from_toml(text, "test", &overrides).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        seed: Some(seed),
        pcap: true,
        ..RunOptions::default()
    };
    run(&scenario, options).unwrap_or_else(|e| panic!("{e}"))
}

fn capture_of(output: &RunOutput, host: &str) -> PcapngFile {
    let name = format!("{host}.pcapng");
    let (_, bytes) = output
        .captures
        .iter()
        .find(|(n, _)| *n == name)
        .expect("a capture of the host");
    PcapngFile::parse(bytes).expect("our own capture")
}

/// Both accounts of the run's only flow.
fn accounts(output: &RunOutput, from: &str, to: &str) -> (EndCounts, EndCounts) {
    let flow = output
        .metrics
        .flows
        .iter()
        .find(|f| f.from == from)
        .expect("a flow");
    let inputs = [to, from].map(|host| {
        let name = format!("{host}.pcapng");
        let (name, bytes) = output
            .captures
            .iter()
            .find(|(n, _)| *n == name)
            .expect("a capture");
        Input::Bytes(name.clone(), bytes.as_slice().into())
    });
    let analysis = analyze_inputs(&inputs, &Options::default()).expect("our own captures");
    let found = analysis.flows.iter().find_map(|f| match (f.a.port, f.b.port) {
        ports if ports == (flow.source_port, flow.destination_port) => Some(&f.forward),
        ports if ports == (flow.destination_port, flow.source_port) => Some(&f.reverse),
        _ => None,
    });
    let ends = found.and_then(|d| d.ends).expect("the flow at both ends");
    let ledger = EndCounts {
        packets_sent: flow.counts.packets_sent,
        retransmissions: flow.counts.retransmissions,
        lost_packets: flow.counts.lost_packets,
        spurious_retransmissions: flow.counts.spurious_retransmissions,
        in_flight_packets: flow.counts.in_flight_packets,
        // the ledger knows nothing of order
        reordered_packets: ends.reordered_packets,
        unmatched_packets: 0,
    };
    (ledger, ends)
}

#[test]
fn the_ledger_and_the_two_ends_agree_in_every_case_of_the_paper() {
    let text = scenario_text("ilnp.toml");
    // the flow is cut short: begin late in the way, end soon after the last handoff
    let shared = [("duration", "40 s"), ("application.0.start", "27 s")];
    let mut lossy = 0;
    for (case, seed) in [("lan-lan", 1), ("lan-wan", 2), ("wan-lan", 3), ("wan-wan", 4)] {
        for scheme in SCHEMES {
            let output = captured(
                &text,
                &[shared[0], shared[1], ("case", case), ("scheme", scheme)],
                seed,
            );
            let (ledger, ends) = accounts(&output, "cn", "mn");
            assert!(ledger.packets_sent > 1000, "{case} {scheme}: {ledger:?}");
            assert_eq!(ledger, ends, "{case} {scheme}");
            assert_eq!(output.metrics.corrupt_messages, 0);
            lossy += u32::from(ledger.lost_packets > 0);
        }
    }
    assert!(lossy >= 8, "hardly anything was lost");
}

#[test]
fn they_agree_when_both_hosts_move_and_on_a_lossy_way() {
    let text = scenario_text("both-move.toml");
    for scheme in SCHEMES {
        let output = captured(&text, &[("duration", "20 s"), ("scheme", scheme)], 1);
        let (ledger, ends) = accounts(&output, "a", "b");
        assert_eq!(ledger, ends, "both move, {scheme}");
    }
    let text = scenario_text("ilnp.toml").replacen(
        "name = \"r1-r3\"",
        "name = \"r1-r3\"\nloss = { model = \"bernoulli\", probability = 0.01 }",
        1,
    );
    for profile in ["linux-3.9", "modern"] {
        let settings = [
            ("duration", "40 s"),
            ("application.0.start", "27 s"),
            ("tcp.profile", profile),
            ("case", "wan-lan"),
        ];
        let output = captured(&text, &settings, 5);
        let (ledger, ends) = accounts(&output, "cn", "mn");
        assert!(ledger.lost_packets > 20, "{ledger:?}");
        assert_eq!(ledger, ends, "lossy, {profile}");
    }
}

#[test]
fn checksums_over_identifiers_are_verified_packet_by_packet() {
    let text = scenario_text("ilnp.toml");
    let settings = [
        ("duration", "31 s"),
        ("application.0.start", "28 s"),
        ("scheme", "ilnp-soft"),
        ("ilnp.checksum", "identifiers"),
    ];
    let output = captured(&text, &settings, 1);
    let mut verified = 0;
    for host in ["cn", "mn"] {
        for (number, captured) in capture_of(&output, host).packets.iter().enumerate() {
            let packet =
                Packet::parse(&captured.bytes).unwrap_or_else(|e| panic!("{host} packet {number}: {e}"));
            if !matches!(packet.payload, Payload::Tcp(_)) {
                continue;
            }
            let (_, rule) = packet
                .ilnp_nonce()
                .expect("every packet of a session has the nonce");
            assert_eq!(rule, PseudoRule::Identifiers, "{host} packet {number}");
            verified += 1;
            if number % 97 == 0 {
                let mut damaged = captured.bytes.clone();
                let last = damaged.len() - 1;
                damaged[last] ^= 1;
                assert!(
                    Packet::parse(&damaged).is_err(),
                    "{host} packet {number}: damage is not noticed"
                );
            }
        }
    }
    assert!(verified > 2000, "{verified} checksums");
}

/// Enhanced Packet Blocks of pcapng.
const ENHANCED: u32 = 6;

/// The packets of a capture, the first or the second half of them.
fn half_of(capture: &[u8], second: bool) -> Vec<u8> {
    let word = |at: usize| {
        let bytes = capture.get(at..at + 4).and_then(|b| b.first_chunk().copied());
        u32::from_le_bytes(bytes.expect("a whole block"))
    };
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < capture.len() {
        let end = at + word(at + 4) as usize;
        blocks.push((word(at) == ENHANCED, &capture[at..end]));
        at = end;
    }
    let packets = blocks.iter().filter(|b| b.0).count();
    let mut number = 0;
    blocks.retain(|(is_packet, _)| {
        number += usize::from(*is_packet);
        !is_packet || (number > packets / 2) == second
    });
    blocks.iter().flat_map(|b| b.1).copied().collect()
}

#[test]
fn of_a_capture_that_begins_late_or_ends_early_nothing_is_made_up() {
    let output = captured(&scenario_text("sigma.toml"), &[("duration", "40 s")], 1);
    let file = |host: &str| {
        let name = format!("{host}.pcapng");
        let (_, bytes) = output.captures.iter().find(|c| c.0 == name).expect("a capture");
        bytes.to_vec()
    };
    let (mh, cn) = (file("mh"), file("cn"));
    let analysed = |files: [&[u8]; 2]| {
        let inputs = files.map(|bytes| Input::Bytes("a capture".to_owned(), bytes.into()));
        analyze_inputs(&inputs, &Options::default()).expect("our own captures")
    };
    let whole = analysed([&mh, &cn]);
    let paths = |handovers: &[Handover]| -> Vec<(String, String)> {
        let path = |h: &Handover| (h.from_text.clone(), h.to_text.clone());
        handovers.iter().map(path).collect()
    };
    let ends = whole.flows[0].reverse.ends.expect("both ends");
    assert_eq!((whole.handovers.len(), ends.lost_packets), (3, 0), "{ends:?}");
    for second in [false, true] {
        for (what, files) in [
            ("receiver", [half_of(&mh, second), cn.clone()]),
            ("sender", [mh.clone(), half_of(&cn, second)]),
        ] {
            let part = analysed([&files[0], &files[1]]);
            let found = part.flows[0].reverse.ends.expect("both ends");
            let what = format!("half of the {what}'s, the second: {second}: {found:?}");
            assert_eq!(paths(&part.handovers), paths(&whole.handovers), "{what}");
            assert_eq!((found.lost_packets, found.retransmissions), (0, 0), "{what}");
            assert!(found.unmatched_packets > ends.packets_sent / 3, "{what}");
            // every handover is between paths that are reported
            let known = |id: u16| part.flows[0].paths.iter().any(|p| p.id == id);
            assert!(
                part.handovers
                    .iter()
                    .all(|h| known(h.from_path) && known(h.to_path)),
                "{what}"
            );
        }
    }
}
