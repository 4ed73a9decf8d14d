//! The program `segue-lab`: commands on its standard input, signals, and what it refuses.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests of a program")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv6Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a program may take for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A `segue-lab` with its output, line by line.
struct Running {
    child: Child,
    lines: Receiver<Value>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_segue-lab"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Its next line is of this event.
    fn says(&self, event: &str) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| panic!("no {event}: {error}"));
        assert_eq!(line["event"], event, "{line}");
        line
    }

    /// It is told this at once.
    fn tell(&mut self, words: &str) {
        let pipe = self.child.stdin.as_mut().unwrap();
        pipe.write_all(words.as_bytes()).unwrap();
    }

    fn signal(&self, name: &str) {
        let number = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &number]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who asks and who answers, once there have been some answers.
fn talking() -> [Running; 2] {
    // a port that nobody has
    let free = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let answers = Running::start(&["app", "--tcp", "--answer", "--listen", &port.to_string()]);
    let peer = format!("[::1]:{port}");
    let asks = Running::start(&["app", "--tcp", "--ask", "--connect", &peer]);
    std::thread::sleep(Duration::from_millis(500));
    [asks, answers]
}

#[test]
fn who_waits_for_a_request_or_an_answer_says_what_it_has_done_when_it_is_stopped() {
    for waits in 0..2 {
        let ends = talking();
        let other = &ends[1 - waits];
        other.signal("STOP");
        std::thread::sleep(Duration::from_millis(100));
        ends[waits].signal("TERM");
        let said = ends[waits].says("app");
        assert!(said["answers"].as_u64() > Some(0), "{said}");
        assert!(said["failed"].is_null(), "{said}");
        other.signal("CONT");
    }
}

/// A network namespace; gone when dropped.
struct Namespace(String);

impl Namespace {
    /// `None`, with the reason printed, where there is none to be had.
    fn new(test: &str) -> Option<Self> {
        let name = format!("sgl-{test}-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("SKIPPED: network namespaces cannot be made here (they need root and the command ip)");
            return None;
        }
        Some(Self(name))
    }

    fn device(&self, name: &str) -> String {
        format!("{}:{name}", self.0)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

#[test]
fn commands_that_come_together_are_all_obeyed() {
    let Some(namespace) = Namespace::new("link") else {
        return;
    };
    let [a, b] = ["link0", "link1"].map(|name| namespace.device(name));
    let mut link = Running::start(&["link", "--a", &a, "--b", &b]);
    link.says("ready");
    link.tell("cut\nmend\ncut\n");
    for event in ["cut", "mend", "cut"] {
        link.says(event);
    }
}

#[test]
fn what_comes_with_the_command_to_connect_does_not_wait_for_the_next() {
    let Some(namespace) = Namespace::new("tcp") else {
        return;
    };
    let tun = namespace.device("link0");
    let arguments = [
        "tcp",
        "--tun",
        &tun,
        "--address",
        "fd53::b",
        "connect",
        "fd53::a",
        "9",
    ];
    let mut end = Running::start(&arguments);
    end.says("ready");
    end.tell("connect\ninfo\ninfo\n");
    end.says("info");
    end.says("info");
}

#[test]
fn a_goodput_of_no_time_is_refused_in_one_line() {
    let said = |times: [&str; 2]| {
        let output = Command::new(env!("CARGO_BIN_EXE_segue-lab"))
            .args([
                "goodput",
                "--rate",
                "1 Mbit/s",
                "--warm-up",
                times[0],
                "--duration",
                times[1],
            ])
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), text)
    };
    for times in [["5 s", "5 s"], ["6 s", "5 s"]] {
        let (status, text) = said(times);
        assert_eq!(status, Some(2), "{text}");
        assert_eq!(text, "segue-lab: --duration: expected more than --warm-up\n");
    }
    let (status, text) = said(["1 s", "2 s"]);
    assert_eq!(status, Some(0), "{text}");
}
