//! Programs that run beside a test.
#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv6Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a program may take for what takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A `segue-sctp` with its output.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: std::cell::RefCell<String>,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_segue-sctp")).args(arguments))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            seen: String::new().into(),
        }
    }

    /// Waits until the program has told of `event`.
    pub fn wait_for(&self, event: &str) {
        while events(&self.seen.borrow(), event).is_empty() {
            assert!(self.read(), "no {event}: {}", self.seen.borrow());
        }
    }

    /// Waits until the program has written `text`.
    pub fn wait_for_text(&self, text: &str) {
        while !self.seen.borrow().contains(text) {
            assert!(self.read(), "no {text}: {}", self.seen.borrow());
        }
    }

    pub fn interrupt(&self) {
        self.signal("INT");
    }

    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// The program stands still from now on.
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// It goes on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    /// The files that the program has open.
    pub fn open_files(&self) -> Vec<PathBuf> {
        let folder = format!("/proc/{}/fd", self.child.id());
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        entries
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .collect()
    }

    /// All output and the exit status.
    pub fn finish(mut self) -> (String, i32) {
        while self.read() {}
        let status = self.child.wait().unwrap();
        (self.seen.take(), status.code().unwrap_or(-1))
    }

    fn read(&self) -> bool {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                let mut seen = self.seen.borrow_mut();
                seen.push_str(&line);
                seen.push('\n');
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => {
                panic!("the program hangs after: {}", self.seen.borrow())
            }
        }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects to what listens at a UDP port of the loopback interface.
pub fn connect(port: u16, more: &[&str]) -> Running {
    let udp = port.to_string();
    let mut arguments = vec!["connect", "::1", "5001", "--json", "--remote-udp-port", &udp];
    arguments.extend(more);
    Running::start(&arguments)
}

/// All events of a name in a program's output.
pub fn events(output: &str, name: &str) -> Vec<Value> {
    output
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .filter(|event| event["event"] == name)
        .collect()
}

pub fn summary(output: &str) -> Value {
    events(output, "summary")
        .pop()
        .unwrap_or_else(|| panic!("no summary: {output}"))
}

/// A UDP port of the loopback interface that nobody has, below those that the system hands out to clients: tests run at the
/// same time, and a port that was only looked at is anybody's.
#[allow(clippy::disallowed_methods, reason = "a test of sockets")]
pub fn free_udp_port() -> u16 {
    const FIRST: u16 = 10_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (0..COUNT)
        .map(|_| {
            // two runs at a time begin in different places
            let n = (std::process::id() % COUNT) * 97 + NEXT.fetch_add(1, Ordering::Relaxed);
            FIRST + (n % COUNT) as u16
        })
        .find(|&port| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).is_ok())
        .expect("a free port")
}

/// An empty directory of a test's own.
pub fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}
