//! The program `segue-sctp`, over UDP on the loopback interface: no privileges needed.
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

mod common;

use common::{Running, connect, directory, events, free_udp_port, summary};
use segue_capture::pcapng::PcapngFile;
use segue_wire::checksum::PseudoHeader;
use segue_wire::sctp::SctpPacket;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Ipv6Header};
use std::net::{Ipv6Addr, UdpSocket};
use std::process::Command;
use std::time::Duration;

fn listen(port: u16, more: &[&str]) -> Running {
    let udp = port.to_string();
    let mut arguments = vec![
        "listen",
        "--json",
        "--once",
        "--address",
        "::1",
        "--udp-port",
        &udp,
    ];
    arguments.extend(more);
    Running::start(&arguments)
}

#[test]
fn a_file_arrives_as_it_was_and_the_capture_holds_every_packet() {
    let folder = directory("file");
    let port = free_udp_port();
    let content: Vec<u8> = (0..700_001_u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let [from, to, pcap, log] = ["from", "to", "pcapng", "csv"].map(|n| folder.join(n));
    std::fs::write(&from, &content).unwrap();
    let listening = listen(
        port,
        &["--save", to.to_str().unwrap(), "--log", log.to_str().unwrap()],
    );
    listening.wait_for("listening");
    let connecting = connect(
        port,
        &["--send", from.to_str().unwrap(), "--pcap", pcap.to_str().unwrap()],
    );
    let (sent, status) = connecting.finish();
    assert_eq!(status, 0, "{sent}");
    let (received, status) = listening.finish();
    assert_eq!(status, 0, "{received}");
    assert!(std::fs::read(&to).unwrap() == content, "the file was changed");
    let (sent, received) = (summary(&sent), summary(&received));
    assert_eq!(sent["sent_bytes"], content.len());
    assert_eq!(received["received_bytes"], content.len());

    // one line per message, offsets without holes
    let log = std::fs::read_to_string(&log).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("time_ns,stream,message,offset,bytes"));
    let (mut offset, mut messages, mut before) = (0, 0, 0);
    for line in lines {
        let values: Vec<u64> = line.split(',').map(|v| v.parse().unwrap()).collect();
        assert!(values[0] >= before, "time goes back: {line}");
        assert_eq!(values[1..4], [0, messages, offset], "{line}");
        (before, messages, offset) = (values[0], messages + 1, offset + values[4]);
    }
    assert_eq!(offset, content.len() as u64);
    assert_eq!(received["received_messages"], messages);

    // checksums are right, and what was counted is in the file
    let file = std::fs::read(&pcap).unwrap();
    let file = PcapngFile::parse(&file).unwrap();
    for captured in &file.packets {
        let bytes = bytes::Bytes::from(captured.bytes.to_vec());
        let mut reader = segue_wire::reader::Reader::new(&bytes, "capture");
        let (ip, _, next_header) = Ipv6Header::parse(&mut reader).unwrap();
        assert_eq!(next_header, 17);
        let pseudo = PseudoHeader {
            source: ip.source,
            destination: ip.destination,
        };
        let udp = UdpDatagram::parse(&bytes.slice(40..), &pseudo).unwrap();
        let Data::Bytes(sctp) = udp.data else {
            panic!("synthetic")
        };
        SctpPacket::parse(&sctp).unwrap();
    }
    let counted = sent["packets_sent"].as_u64().unwrap() + sent["packets_received"].as_u64().unwrap();
    // the summary is drawn before the last packet leaves
    let captured = file.packets.len() as u64;
    assert!(
        (counted..=counted + 1).contains(&captured),
        "{counted} counted, {captured} captured"
    );
}

#[test]
fn made_up_data_is_verified() {
    let port = free_udp_port();
    let listening = listen(port, &["--verify"]);
    listening.wait_for("listening");
    let connecting = connect(port, &["--bytes", "3 MB", "--size", "30 kB"]);
    assert_eq!(connecting.finish().1, 0);
    let (output, status) = listening.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 3_000_000);
}

#[test]
fn made_up_data_is_spread_over_the_streams() {
    let log = directory("streams").join("csv");
    let port = free_udp_port();
    let listening = listen(port, &["--log", log.to_str().unwrap()]);
    listening.wait_for("listening");
    let connecting = connect(port, &["--bytes", "240 kB", "--size", "30 kB", "--streams", "4"]);
    assert_eq!(connecting.finish().1, 0);
    assert_eq!(listening.finish().1, 0);
    let mut bytes = [0; 4];
    for line in std::fs::read_to_string(&log).unwrap().lines().skip(1) {
        let values: Vec<usize> = line.split(',').map(|v| v.parse().unwrap()).collect();
        bytes[values[1]] += values[4];
    }
    assert_eq!(bytes, [60_000; 4]);
}

#[test]
fn data_goes_both_ways_and_whoever_lingers_misses_nothing() {
    let port = free_udp_port();
    // the listener has more to send than the one who connects, and may not be cut short
    let listening = listen(port, &["--verify", "--bytes", "4 MB", "--linger", "60 s"]);
    listening.wait_for("listening");
    let connecting = connect(port, &["--verify", "--bytes", "1 MB", "--linger", "2 s"]);
    let (output, status) = connecting.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 4_000_000);
    let (output, status) = listening.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 1_000_000);
}

#[test]
fn a_ping_returns_and_names_its_path() {
    let port = free_udp_port();
    let listening = listen(port, &["--echo"]);
    listening.wait_for("listening");
    let udp = port.to_string();
    let ping = Running::start(&[
        "ping",
        "::1",
        "5001",
        "--remote-udp-port",
        &udp,
        "--count",
        "5",
        "--interval",
        "20 ms",
        "--json",
    ]);
    let (output, status) = ping.finish();
    assert_eq!(status, 0, "{output}");
    let replies = events(&output, "reply");
    assert_eq!(replies.len(), 5, "{output}");
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply["number"], number);
        assert_eq!((&reply["local"], &reply["peer"]), (&"::1".into(), &"::1".into()));
        assert!(reply["round_trip_ns"].as_u64().unwrap() > 0);
    }
    let sum = summary(&output);
    assert_eq!((&sum["sent"], &sum["received"]), (&5.into(), &5.into()));
    assert_eq!(listening.finish().1, 0);
}

#[test]
fn ctrl_c_shuts_the_association_down() {
    let port = free_udp_port();
    let listening = listen(port, &[]);
    listening.wait_for("listening");
    let connecting = connect(port, &["--rate", "1 Mbit/s", "--size", "500 B"]);
    connecting.wait_for("connected");
    connecting.interrupt();
    let (output, status) = connecting.finish();
    assert_eq!(status, 130, "{output}");
    assert_eq!(events(&output, "closed").len(), 1, "{output}");
    let (output, status) = listening.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(events(&output, "closed").len(), 1, "{output}");
}

#[test]
fn a_script_is_followed_and_its_failures_are_told() {
    let port = free_udp_port();
    let listening = listen(port, &[]);
    listening.wait_for("listening");
    let connecting = connect(
        port,
        &[
            "--script",
            "10 ms add ::1; 20 ms peer 2001:db8::7; 30 ms shutdown",
        ],
    );
    let (output, status) = connecting.finish();
    assert_eq!(status, 1, "{output}");
    let steps = events(&output, "script");
    assert_eq!(steps.len(), 3, "{output}");
    assert_eq!(steps[0]["action"], "add ::1", "{output}");
    assert_eq!(steps[0]["error"], "it is an address of this end's already");
    assert_eq!(steps[1]["action"], "peer 2001:db8::7");
    assert_eq!(steps[1]["error"], "it is not an address of the peer's");
    assert!(steps[2]["error"].is_null(), "{output}");
    assert_eq!(listening.finish().1, 0);
}

#[test]
fn what_the_user_did_wrong_is_one_line_and_status_2() {
    for (arguments, says) in [
        (&["connect"][..], "required arguments were not provided"),
        (&["connect", "localhost", "5001"], "invalid value 'localhost'"),
        (
            &["connect", "192.0.2.1", "5001"],
            "IPv6 only: expected an IPv6 address",
        ),
        (
            &["connect", "fe80::1%lo", "5001"],
            "scope identifiers are not supported",
        ),
        (&["listen", "--address", "127.0.0.1"], "IPv6 only"),
        (&["connect", "::1", "0"], "0 is not in 1..=65535"),
        (
            &["connect", "::1", "5001", "--remote-udp-port", "0"],
            "0 is not in 1..=65535",
        ),
        (
            &["connect", "::1", "5001", "--timeout", "0 s"],
            "--timeout: expected more than 0 s",
        ),
        (
            &["listen", "--auth-chunk", "1"],
            "INIT cannot be authenticated (RFC 4895 section 3.2)",
        ),
        (
            &["listen", "--auth-chunk", "15"],
            "AUTH cannot be authenticated (RFC 4895 section 3.2)",
        ),
        (
            &["listen", "--auth-chunk", "0", "--auth", "off"],
            "--auth-chunk: needs --auth on",
        ),
        (&["listen", "--auth-chunk", "256"], "expected the type of a chunk"),
        (
            &[
                "listen",
                "--log",
                "/dev/full",
                "--once",
                "--udp-port",
                "0",
                "--script",
                "0 s jump",
            ],
            "one of add, delete",
        ),
        (&["connect", "::1", "5001", "--bytes", "100"], "`100` has no unit"),
        (
            &["connect", "::1", "5001", "--send", "/nowhere/file"],
            "cannot read /nowhere/file",
        ),
        (
            &["connect", "::1", "5001", "--address", "2001:db8:ffff::1"],
            "is not a usable address of this host",
        ),
        (
            &["connect", "::1", "5001", "--mtu", "100 B"],
            "--mtu: expected 1280 B to 65535 B",
        ),
        (
            &["connect", "::1", "5001", "--size", "2 MB", "--bytes", "4 MB"],
            "--size: expected",
        ),
        (&["listen", "--raw", "--udp-port", "9"], "cannot be used with"),
        (&["listen", "--echo", "--discard"], "cannot be used with"),
        (&["listen", "--pcap", "/nowhere/p"], "cannot write /nowhere/p"),
        (&["listen", "--save", "file"], "--save: needs --once"),
        (
            &["ping", "::1", "5001", "--interval", "0 s"],
            "--interval: expected at least 1 ms",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_segue-sctp"))
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(
            text.starts_with("segue-sctp: ") && text.contains(says),
            "{arguments:?}: {text}"
        );
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    }
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_segue-sctp"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn without_a_command_the_usage_is_printed() {
    let (status, _, error) = run(&[]);
    assert_eq!(status, Some(2));
    assert!(error.contains("Usage: segue-sctp <COMMAND>"), "{error}");
    assert!(
        !error.starts_with("segue-sctp: SCTP from the command line"),
        "{error}"
    );
}

#[test]
fn who_says_nothing_is_given_up_after_the_timeout() {
    let silent = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    for command in ["connect", "ping"] {
        let start = std::time::Instant::now();
        let arguments = [command, "::1", "5001", "--remote-udp-port", &port];
        let (status, output, error) = run(&[&arguments[..], &["--timeout", "400 ms"]].concat());
        assert_eq!(status, Some(1), "{output}{error}");
        assert!(start.elapsed() < Duration::from_secs(20));
        assert!(
            output.contains(&format!("no answer from ::1 over UDP port {port} in 400 ms")),
            "{output}"
        );
        assert!(!output.contains("association was shut down"), "{output}");
    }
    // whoever waits longer is told so
    let arguments = [
        "connect",
        "::1",
        "5001",
        "--remote-udp-port",
        &port,
        "--timeout",
        "3100 ms",
    ];
    let (status, _, error) = run(&arguments);
    assert_eq!(status, Some(1));
    assert!(
        error.contains("no answer from ::1 over UDP port") && error.contains("yet"),
        "{error}"
    );
}

#[test]
fn a_port_that_nobody_listens_at_is_known_at_once() {
    let port = free_udp_port().to_string();
    for command in ["connect", "ping"] {
        let start = std::time::Instant::now();
        let (status, output, _) = run(&[command, "::1", "5001", "--remote-udp-port", &port]);
        assert_eq!(status, Some(1), "{output}");
        assert!(
            output.contains("::1 is unreachable: nothing takes packets at its UDP port"),
            "{output}"
        );
        assert!(start.elapsed() < Duration::from_secs(20), "{output}");
    }
}

#[test]
fn ctrl_c_before_the_association_is_up_says_so() {
    let silent = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let connecting = connect(silent.local_addr().unwrap().port(), &[]);
    connecting.wait_for("connecting");
    connecting.interrupt();
    let (output, status) = connecting.finish();
    assert_eq!(status, 130, "{output}");
    assert!(events(&output, "connected").is_empty());
    let silent_port = silent.local_addr().unwrap().port().to_string();
    let text = Running::start(&["connect", "::1", "5001", "--remote-udp-port", &silent_port]);
    text.wait_for_text("connecting to");
    text.interrupt();
    let (output, status) = text.finish();
    assert_eq!(status, 130, "{output}");
    assert!(
        output.contains("given up before the association was set up"),
        "{output}"
    );
}

#[test]
fn data_that_is_not_what_was_to_come_is_a_failure_and_no_wrong_input() {
    let folder = directory("mismatch");
    let port = free_udp_port();
    let from = folder.join("from");
    std::fs::write(&from, b"this is not made up").unwrap();
    let listening = listen(port, &["--verify"]);
    listening.wait_for("listening");
    let connecting = connect(port, &["--send", from.to_str().unwrap()]);
    let (output, _) = connecting.finish();
    let aborted = events(&output, "aborted");
    if let [aborted] = &aborted[..] {
        assert_eq!(aborted["causes"][0], "User-Initiated Abort", "{output}");
    }
    assert_eq!(listening.finish().1, 1);
}

#[test]
fn a_step_that_waits_for_an_address_in_vain_is_a_failure() {
    let port = free_udp_port();
    let listening = listen(port, &[]);
    listening.wait_for("listening");
    let script = "10 ms add 2001:db8:ffff::7; 20 ms delete ::1; 1 h abort";
    let connecting = connect(port, &["--duration", "300 ms", "--script", script]);
    let (output, status) = connecting.finish();
    assert_eq!(status, 1, "{output}");
    let steps = events(&output, "script");
    let errors: Vec<_> = steps.iter().map(|s| s["error"].as_str().unwrap()).collect();
    assert_eq!(
        errors,
        [
            "this host never had the address",
            "a step before it was never done",
            "the association ended before"
        ]
    );
    assert_eq!(listening.finish().1, 0);
}

#[test]
fn long_messages_are_returned_whole() {
    let port = free_udp_port();
    let listening = listen(
        port,
        &["--echo", "--receive-buffer", "20 kB", "--send-buffer", "200 kB"],
    );
    listening.wait_for("listening");
    let arguments = [
        "--bytes", "900 kB", "--size", "100 kB", "--linger", "1 s", "--verify",
    ];
    let connecting = connect(port, &arguments);
    let (output, status) = connecting.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 900_000);
    assert_eq!(summary(&output)["received_messages"], 9);
    let (output, status) = listening.finish();
    assert_eq!(status, 0, "{output}");
    let sum = summary(&output);
    assert_eq!(
        (&sum["sent_bytes"], &sum["sent_messages"]),
        (&900_000.into(), &9.into())
    );
    // counts, not the text of a structure
    assert_eq!(sum["refused"]["bad_tag"], 0);
}

#[test]
fn a_ping_that_nobody_returns_has_no_times() {
    let port = free_udp_port();
    let listening = listen(port, &["--discard"]);
    listening.wait_for("listening");
    let port = port.to_string();
    let arguments = ["ping", "::1", "5001", "--remote-udp-port", &port, "--count", "1"];
    let (status, output, _) = run(&[&arguments[..], &["--interval", "50 ms"]].concat());
    assert_eq!(status, Some(1), "{output}");
    assert!(output.ends_with("1 sent, 0 returned\n"), "{output}");
    assert_eq!(listening.finish().1, 0);
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let port = free_udp_port();
    let listening = listen(port, &["--discard"]);
    listening.wait_for("listening");
    let port = port.to_string();
    let call = ["::1", "5001", "--remote-udp-port", &port];
    let ping = ["--count", "1", "--interval", "50 ms", "--pcap", "/dev/full"];
    let (status, _, error) = run(&[&["ping"], &call[..], &ping].concat());
    assert_eq!(status, Some(2));
    assert!(error.contains("writing /dev/full: No space left"), "{error}");
    drop(listening.finish());
    let udp = free_udp_port().to_string();
    let one = Running::start(&[
        "listen",
        "--once",
        "--json",
        "--udp-port",
        &udp,
        "--bytes",
        "1 kB",
    ]);
    one.wait_for("listening");
    let call = [
        "connect",
        "::1",
        "5001",
        "--remote-udp-port",
        &udp,
        "--log",
        "/dev/full",
    ];
    let (status, _, error) = run(&[&call[..], &["--duration", "300 ms"]].concat());
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("writing /dev/full: No space left"), "{error}");
    drop(one.finish());
}

#[test]
fn a_port_in_use_is_named() {
    let port = free_udp_port();
    let listening = listen(port, &[]);
    listening.wait_for("listening");
    let output = Command::new(env!("CARGO_BIN_EXE_segue-sctp"))
        .args(["listen", "--udp-port", &port.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains(&format!("UDP port {port} is in use")), "{text}");
    listening.terminate();
    assert_eq!(listening.finish().1, 0, "SIGTERM ends a listener");
}

#[test]
fn a_peer_that_has_vanished_does_not_keep_a_terminated_program() {
    let port = free_udp_port();
    // far more than fits on its way
    let listening = listen(
        port,
        &["--bytes", "100 MB", "--send-buffer", "1 MB", "--rto-max", "60 s"],
    );
    listening.wait_for("listening");
    // stopped and not ended: nobody answers for it, not even with an ICMPv6 error
    let connecting = connect(port, &[]);
    listening.wait_for("connected");
    connecting.stop();
    listening.terminate();
    let (output, status) = listening.finish();
    assert_eq!(status, 1, "{output}");
    assert_eq!(events(&output, "aborted").len(), 1, "{output}");
    let summary = summary(&output);
    assert!(summary["sent_bytes"].as_u64() > Some(0), "{output}");
}

#[test]
fn a_peer_that_gets_on_is_waited_for_longer_than_one_that_has_vanished() {
    let port = free_udp_port();
    let udp = port.to_string();
    let listening = Running::start(&[
        "listen",
        "--json",
        "--address",
        "::1",
        "--udp-port",
        &udp,
        "--bytes",
        "200 MB",
        "--send-buffer",
        "200 MB",
        "--rto-max",
        "1 s",
    ]);
    listening.wait_for("listening");
    let vanished = connect(port, &[]);
    vanished.wait_for("connected");
    vanished.stop();
    let slow = connect(port, &[]);
    slow.wait_for("connected");
    slow.stop();
    listening.terminate();
    // 3 s after the end was asked for the first is given up. The other gets on after 2 s, and has 3 s from there
    std::thread::sleep(Duration::from_secs(2));
    slow.go_on();
    std::thread::sleep(Duration::from_millis(20));
    slow.stop();
    listening.wait_for("aborted");
    slow.go_on();
    let (output, status) = slow.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 200_000_000_u64, "{output}");
    let (output, status) = listening.finish();
    assert_eq!(status, 1, "{output}");
    assert_eq!(events(&output, "aborted").len(), 1, "{output}");
}

#[test]
fn a_file_for_many_is_opened_once() {
    let folder = directory("shared");
    let port = free_udp_port();
    let from = folder.join("from");
    let content: Vec<u8> = (0..50_000_u32).map(|i| (i >> 4) as u8).collect();
    std::fs::write(&from, &content).unwrap();
    let from = from.canonicalize().unwrap();
    let udp = port.to_string();
    let path = from.to_str().unwrap();
    let listening = Running::start(&[
        "listen",
        "--json",
        "--address",
        "::1",
        "--udp-port",
        &udp,
        "--send",
        path,
        "--linger",
        "60 s",
    ]);
    listening.wait_for("listening");
    let saved: Vec<_> = (0..3).map(|n| folder.join(format!("to{n}"))).collect();
    let peers: Vec<_> = saved
        .iter()
        .map(|to| connect(port, &["--save", to.to_str().unwrap()]))
        .collect();
    let arrived = |to: &std::path::PathBuf| std::fs::metadata(to).is_ok_and(|m| m.len() == 50_000);
    for peer in &peers {
        peer.wait_for("connected");
    }
    // each of them reads it from its beginning
    assert_eq!(listening.open_files().iter().filter(|f| **f == from).count(), 1);
    listening.terminate();
    for peer in peers {
        assert_eq!(peer.finish().1, 0);
    }
    assert!(saved.iter().all(arrived), "{folder:?}");
    assert!(
        std::fs::read(&saved[2]).unwrap() == content,
        "the file was changed"
    );
}

#[test]
fn both_rates_are_over_the_time_that_the_direction_took() {
    let port = free_udp_port();
    let listening = listen(port, &["--echo"]);
    listening.wait_for("listening");
    // what is left after the last byte, and waited for, is no part of it
    let (output, status) = connect(port, &["--bytes", "2 MB", "--linger", "2 s"]).finish();
    assert_eq!(status, 0, "{output}");
    let summary = summary(&output);
    let number = |name: &str| {
        summary[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {output}"))
    };
    for direction in ["sent", "received"] {
        let time = number(&format!("{direction}_duration_ns"));
        assert!(
            time > 0.0 && time <= number("duration_ns") - 2e9,
            "{direction}: {output}"
        );
    }
    // the same bytes went there and came back at about the same time
    let ratio = number("sent_bps") / number("received_bps");
    assert!((0.2..5.0).contains(&ratio), "{ratio}: {output}");
}
