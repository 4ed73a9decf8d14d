//! How `segue-sctp` ends its associations, over UDP on the loopback interface: no privileges needed.
#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

mod common;

use common::{Running, connect, directory, events, free_udp_port, summary};

fn listen(port: u16, more: &[&str]) -> Running {
    let udp = port.to_string();
    let mut arguments = vec!["listen", "--json", "--address", "::1", "--udp-port", &udp];
    arguments.extend(more);
    let listening = Running::start(&arguments);
    listening.wait_for("listening");
    listening
}

#[test]
fn whoever_comes_second_to_a_listener_for_one_is_turned_away() {
    let folder = directory("second");
    let port = free_udp_port();
    let to = folder.join("to");
    let listening = listen(port, &["--once", "--save", to.to_str().unwrap()]);
    let first = connect(port, &["--rate", "2 Mbit/s", "--size", "500 B"]);
    first.wait_for("connected");
    // it would be idle, and keep the listener for ever
    let (output, status) = connect(port, &[]).finish();
    assert_eq!(status, 1, "{output}");
    assert_eq!(events(&output, "aborted").len(), 1, "{output}");
    std::thread::sleep(std::time::Duration::from_millis(300));
    first.terminate();
    let (sent, status) = first.finish();
    assert_eq!(status, 0, "{sent}");
    let (received, status) = listening.finish();
    assert_eq!(status, 0, "{received}");
    let bytes = summary(&received)["received_bytes"].as_u64().unwrap();
    assert_eq!(summary(&sent)["sent_bytes"], bytes);
    assert_eq!(
        std::fs::metadata(&to).unwrap().len(),
        bytes,
        "the file was begun again"
    );
}

#[test]
fn one_association_with_wrong_data_leaves_the_others_alone() {
    let folder = directory("wrong");
    let port = free_udp_port();
    let from = folder.join("from");
    std::fs::write(&from, b"this is not made up").unwrap();
    let listening = listen(port, &["--verify"]);
    let good = connect(port, &["--rate", "1 Mbit/s", "--size", "500 B"]);
    good.wait_for("connected");
    let wrong = connect(port, &["--send", from.to_str().unwrap()]);
    listening.wait_for("aborted");
    drop(wrong.finish());
    std::thread::sleep(std::time::Duration::from_millis(100));
    good.terminate();
    let (sent, status) = good.finish();
    assert_eq!(status, 0, "{sent}");
    listening.wait_for("closed");
    listening.terminate();
    let (output, status) = listening.finish();
    assert_eq!(status, 1, "the first that ended was the wrong one: {output}");
    let received = summary(&output);
    assert_eq!(
        received["received_bytes"],
        summary(&sent)["sent_bytes"],
        "{output}"
    );
}

/// A pipe with a name, and its end that can be written to: it is open from the beginning.
fn pipe(name: &str) -> (String, std::fs::File) {
    let path = directory(name).join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let end = std::fs::OpenOptions::new().read(true).write(true).open(&path);
    (path.to_str().unwrap().to_owned(), end.unwrap())
}

#[test]
fn a_pipe_with_nothing_in_it_keeps_neither_signals_nor_data_waiting() {
    let port = free_udp_port();
    let listening = listen(port, &["--once", "--bytes", "200 kB", "--linger", "60 s"]);
    let (path, writer) = pipe("silent");
    let connecting = connect(port, &["--send", &path]);
    connecting.wait_for("connected");
    std::thread::sleep(std::time::Duration::from_millis(300));
    connecting.interrupt();
    let (output, status) = connecting.finish();
    assert_eq!(status, 130, "{output}");
    assert_eq!(summary(&output)["received_bytes"], 200_000, "{output}");
    drop((writer, listening.finish()));
}

#[test]
fn what_comes_through_a_pipe_is_sent_as_it_comes() {
    use std::io::Write as _;
    let port = free_udp_port();
    let (path, mut writer) = pipe("slow");
    let to = directory("from-pipe").join("to");
    let listening = listen(port, &["--once", "--save", to.to_str().unwrap()]);
    let connecting = connect(port, &["--send", &path, "--size", "100 B"]);
    connecting.wait_for("connected");
    let content: Vec<u8> = (0..250).collect();
    for part in content.chunks(60) {
        writer.write_all(part).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(writer);
    let (output, status) = connecting.finish();
    assert_eq!(status, 0, "{output}");
    assert_eq!(
        summary(&output)["sent_messages"],
        3,
        "100, 100 and 50 bytes: {output}"
    );
    assert_eq!(listening.finish().1, 0);
    assert_eq!(std::fs::read(to).unwrap(), content);
}

#[test]
fn a_ping_whose_reader_has_gone_ends_its_association() {
    use std::io::{BufRead as _, BufReader};
    let port = free_udp_port();
    let listening = listen(port, &["--once", "--echo"]);
    let udp = port.to_string();
    let arguments = [
        "ping",
        "::1",
        "5001",
        "--interval",
        "20 ms",
        "--remote-udp-port",
        &udp,
    ];
    let mut ping = std::process::Command::new(env!("CARGO_BIN_EXE_segue-sctp"))
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(ping.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("number 0"), "{line}");
    drop(output);
    assert_eq!(ping.wait().unwrap().code(), Some(0));
    let (output, _) = listening.finish();
    assert_eq!(events(&output, "aborted").len(), 1, "{output}");
}

#[test]
fn a_ping_does_not_wait_for_a_peer_that_has_vanished() {
    let port = free_udp_port();
    let pcap = directory("vanished").join("pcapng");
    let udp = port.to_string();
    let call = [
        "ping",
        "::1",
        "5001",
        "--json",
        "--interval",
        "20 ms",
        "--remote-udp-port",
        &udp,
    ];
    let ping = |more: &[&str]| Running::start(&[&call[..], more].concat());

    // a second Ctrl-C does not wait at all; the peer is told
    let listening = listen(port, &["--once", "--echo"]);
    let hasty = ping(&[]);
    hasty.wait_for("reply");
    listening.stop();
    hasty.interrupt();
    std::thread::sleep(std::time::Duration::from_millis(200));
    hasty.interrupt();
    assert_eq!(hasty.finish().1, 130);
    listening.go_on();
    assert_eq!(events(&listening.finish().0, "aborted").len(), 1);

    // one that is only asked to end has some patience
    let listening = listen(port, &["--once", "--echo"]);
    let patient = ping(&["--pcap", pcap.to_str().unwrap()]);
    patient.wait_for("reply");
    listening.stop();
    let begin = std::time::Instant::now();
    patient.terminate();
    let (output, status) = patient.finish();
    assert_eq!(status, 1, "{output}");
    assert!(begin.elapsed() < std::time::Duration::from_secs(20));
    assert_eq!(events(&output, "summary").len(), 1, "{output}");
    let capture = std::fs::read(&pcap).unwrap();
    assert!(
        !segue_capture::pcapng::PcapngFile::parse(&capture)
            .unwrap()
            .packets
            .is_empty()
    );
    listening.go_on();
    assert_eq!(events(&listening.finish().0, "aborted").len(), 1);
}

#[test]
fn of_two_failures_the_first_is_told() {
    let folder = directory("two-failures");
    let [log, pcap] = ["log.csv", "pcapng"].map(|name| {
        let path = folder.join(name);
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let port = free_udp_port();
    let listening = listen(port, &["--once", "--bytes", "1 kB"]);
    let udp = port.to_string();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_segue-sctp"))
        .args([
            "connect",
            "::1",
            "5001",
            "--remote-udp-port",
            &udp,
            "--duration",
            "300 ms",
        ])
        .args(["--log", &log, "--pcap", &pcap])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains(&format!("writing {log}: No space left")),
        "{error}"
    );
    drop(listening.finish());
}
