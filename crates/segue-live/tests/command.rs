//! The program `segue-sctp`, over UDP on the loopback interface: no privileges needed.
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

mod common;

use common::{Running, directory, events, free_udp_port, summary};
use segue_capture::pcapng::PcapngFile;
use segue_wire::checksum::PseudoHeader;
use segue_wire::sctp::SctpPacket;
use segue_wire::udp::UdpDatagram;
use segue_wire::{Data, Ipv6Header};
use std::process::Command;

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

fn connect(port: u16, more: &[&str]) -> Running {
    let udp = port.to_string();
    let mut arguments = vec!["connect", "::1", "5001", "--json", "--remote-udp-port", &udp];
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
fn made_up_data_over_several_streams_is_verified() {
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
    assert_eq!(status, 0, "{output}");
    let steps = events(&output, "script");
    assert_eq!(steps.len(), 3, "{output}");
    assert!(
        steps[0]["error"].is_string() && steps[1]["error"].is_string(),
        "{output}"
    );
    assert!(steps[2]["error"].is_null(), "{output}");
    assert_eq!(listening.finish().1, 0);
}

#[test]
fn what_the_user_did_wrong_is_one_line_and_status_2() {
    for (arguments, says) in [
        (&["connect"][..], "required arguments were not provided"),
        (&["connect", "localhost", "5001"], "invalid value 'localhost'"),
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
