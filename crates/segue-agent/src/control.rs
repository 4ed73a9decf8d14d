//! The control socket: a line of JSON in, a line of JSON out, both with the version of the protocol.
//!
//! Who may write to the socket may ask for everything: it is made for the agent's user alone (mode 0600), and who wants others
//! to use it changes its group. A request has 4 KiB and two seconds, and there are eight at a time.

use crate::status::Status;
use crate::trace::TraceRequest;
use anyhow::{Context as _, anyhow, bail};
use nix::poll::PollFlags;
use nix::sys::stat::{Mode, umask};
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Of the protocol. It grows when something means something else than before.
const VERSION: u32 = 1;
const LONGEST_REQUEST: usize = 4096;
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_CONNECTIONS: usize = 8;

/// What can be asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(crate) enum Request {
    Status,
    Handover {
        interface: String,
    },
    /// Packets, behind the answer: see [`crate::trace`].
    Trace(TraceRequest),
}

/// What comes back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Response {
    Status(Box<Status>),
    /// Whether that changes anything.
    Handover {
        changed: bool,
    },
    /// The interfaces that packets come from, behind this line.
    Trace {
        interfaces: Vec<String>,
    },
    Error(String),
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    what: T,
}

/// The agent's end.
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
    connections: Vec<Connection>,
}

/// Somebody who asks.
struct Connection {
    stream: UnixStream,
    until: Instant,
    request: Vec<u8>,
    response: Option<Vec<u8>>,
}

impl Control {
    /// Makes the socket, in the place of one that nobody answers at.
    ///
    /// # Errors
    /// If an agent runs there, or the socket cannot be made.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        match UnixStream::connect(path) {
            Ok(_) => bail!("{shown}: an agent runs already: expected one for each control socket"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                remove_socket(path).with_context(|| shown.to_string())?;
            }
            Err(_) => {}
        }
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.with_context(|| format!("control socket {shown}"))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            connections: Vec::new(),
        })
    }

    /// Where connections come in.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// What else is to be waited for: of those who are connected now, requests, or that there is room for what is left of an
    /// answer.
    pub fn descriptors(&self) -> impl Iterator<Item = (PollFlags, BorrowedFd<'_>)> {
        self.connections.iter().map(|c| {
            let flags = match c.response {
                None => PollFlags::POLLIN,
                Some(_) => PollFlags::POLLOUT,
            };
            (flags, c.stream.as_fd())
        })
    }

    /// When the patience with somebody ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections.iter().map(|c| c.until).min()
    }

    /// Reads and answers as far as that can be done without waiting. Who is answered by packets is handed over, with what he asked
    /// for.
    pub fn turn(
        &mut self,
        now: Instant,
        mut answer: impl FnMut(Request) -> Response,
    ) -> Vec<(UnixStream, TraceRequest)> {
        while let Ok((stream, _)) = self.listener.accept() {
            // one too many is let go: left in the queue, it would wake the loop until there is room
            if self.connections.len() < MOST_CONNECTIONS && stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection {
                    stream,
                    until: now + PATIENCE,
                    request: Vec::new(),
                    response: None,
                });
            }
        }
        let mut readers = Vec::new();
        let connections = std::mem::take(&mut self.connections);
        for mut connection in connections.into_iter().filter(|c| now < c.until) {
            match connection.turn(&mut answer) {
                Turn::Waits => self.connections.push(connection),
                Turn::Done => {}
                Turn::Reads(request) => readers.push((connection.stream, request)),
            }
        }
        readers
    }
}

/// What has become of a connection.
enum Turn {
    Waits,
    Done,
    Reads(TraceRequest),
}

/// Takes away a socket that nobody listens at. Connections to a file of another kind are refused as well, and it stays.
///
/// # Errors
/// If it is no socket, or cannot be removed.
pub(crate) fn remove_socket(path: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "is a file that is no socket: expected the path of a socket, or of nothing",
        ));
    }
    std::fs::remove_file(path)
}

impl Drop for Control {
    fn drop(&mut self) {
        // it may be gone, and then this is done
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Connection {
    fn turn(&mut self, answer: impl FnOnce(Request) -> Response) -> Turn {
        if self.response.is_none() {
            let mut piece = [0; 1024];
            loop {
                match self.stream.read(&mut piece) {
                    Ok(0) => return Turn::Done,
                    Ok(length) => self.request.extend_from_slice(&piece[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return Turn::Done,
                }
                if self.request.len() > LONGEST_REQUEST {
                    return Turn::Done;
                }
            }
            let Some(end) = self.request.iter().position(|byte| *byte == b'\n') else {
                return Turn::Waits;
            };
            self.response = Some(match understand(&self.request[..end]) {
                Ok(Request::Trace(request)) => return Turn::Reads(request),
                Ok(request) => line_of(answer(request)),
                Err(message) => line_of(Response::Error(message)),
            });
        }
        let Some(response) = &mut self.response else {
            return Turn::Waits;
        };
        loop {
            match self.stream.write(response) {
                Ok(written) => {
                    response.drain(..written);
                    if response.is_empty() {
                        return Turn::Done;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Waits,
                Err(_) => return Turn::Done,
            }
        }
    }
}

fn understand(line: &[u8]) -> Result<Request, String> {
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|_| "expected a line of JSON".to_owned())?;
    if value.get("version").and_then(serde_json::Value::as_u64) != Some(VERSION.into()) {
        return Err(format!("version: expected {VERSION}"));
    }
    serde_json::from_value(value).map_err(|error| format!("command: {error}"))
}

/// An answer, as it is sent.
pub(crate) fn line_of(what: Response) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Versioned {
        version: VERSION,
        what,
    })
    .unwrap_or_default();
    line.push(b'\n');
    line
}

/// `segue-agent status`.
pub(crate) fn show_status(socket: &Path, json: bool) -> anyhow::Result<u8> {
    let Response::Status(status) = ask(socket, Request::Status)? else {
        bail!("{}: expected a status", socket.display());
    };
    let mut out = io::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, &status)?;
        writeln!(out)?;
    } else {
        write!(out, "{status}")?;
    }
    Ok(0)
}

/// `segue-agent handover`.
pub(crate) fn ask_for(socket: &Path, interface: &str) -> anyhow::Result<u8> {
    let request = Request::Handover {
        interface: interface.to_owned(),
    };
    let Response::Handover { changed } = ask(socket, request)? else {
        bail!("{}: expected the answer to a handover", socket.display());
    };
    let word = if changed { "from now on" } else { "already" };
    writeln!(io::stdout(), "{interface} is used {word}")?;
    Ok(0)
}

fn ask(socket: &Path, request: Request) -> anyhow::Result<Response> {
    let (response, _) = open(socket, request, std::time::Duration::from_secs(5))?;
    Ok(response)
}

/// Asks, and has the answer and what comes behind it, for which it waits no longer than `patience` at a time.
///
/// # Errors
/// One line, if no agent answers or it refuses.
pub(crate) fn open(
    socket: &Path,
    request: Request,
    patience: std::time::Duration,
) -> anyhow::Result<(Response, BufReader<UnixStream>)> {
    let shown = socket.display();
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("{shown}: no agent answers there: expected one that runs"))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut line = serde_json::to_vec(&Versioned {
        version: VERSION,
        what: request,
    })?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    let mut stream = BufReader::new(stream);
    stream.read_line(&mut answer).with_context(|| shown.to_string())?;
    let answer: Versioned<Response> = serde_json::from_str(&answer)
        .with_context(|| format!("{shown}: an answer that this version does not know"))?;
    match answer.what {
        Response::Error(message) => Err(anyhow!("{message}")),
        response => Ok((response, stream)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::PollFd;

    fn said(line: &str) -> serde_json::Value {
        let response = match understand(line.as_bytes()) {
            Ok(Request::Handover { .. }) => Response::Handover { changed: true },
            Ok(_) => Response::Error("none here".to_owned()),
            Err(message) => Response::Error(message),
        };
        serde_json::from_slice(&line_of(response)).unwrap()
    }

    #[test]
    fn requests_have_a_version_and_are_answered_in_a_line() {
        let asked = said(r#"{"version":1,"command":"handover","interface":"eth0"}"#);
        assert_eq!(
            asked,
            serde_json::json!({"version": 1, "handover": {"changed": true}})
        );
        let refused = |line: &str| said(line)["error"].as_str().unwrap().to_owned();
        assert_eq!(refused(r#"{"command":"status"}"#), "version: expected 1");
        assert_eq!(
            refused(r#"{"version":2,"command":"status"}"#),
            "version: expected 1"
        );
        assert_eq!(refused("status"), "expected a line of JSON");
        assert!(refused(r#"{"version":1,"command":"stop"}"#).starts_with("command: unknown variant `stop`"));
        assert_eq!(refused(r#"{"version":1,"command":"status"}"#), "none here");
    }

    #[test]
    fn a_client_that_says_nothing_or_too_much_is_let_go() {
        let path = std::env::temp_dir().join(format!("segue-agent-{}.sock", std::process::id()));
        let mut control = Control::open(&path).unwrap();
        assert!(Control::open(&path).is_err(), "there is one already");
        let mut silent = UnixStream::connect(&path).unwrap();
        let mut talker = UnixStream::connect(&path).unwrap();
        talker.write_all(&[b'x'; LONGEST_REQUEST + 1]).unwrap();
        let none = |_| Response::Error(String::new());
        control.turn(Instant::ZERO, none);
        assert_eq!(control.connections.len(), 1);
        assert_eq!(control.poll_timeout(), Some(Instant::ZERO + PATIENCE));
        control.turn(Instant::ZERO + PATIENCE, none);
        assert_eq!(silent.read(&mut [0]).unwrap(), 0);
        // a socket that nobody listens at is made again
        drop(control);
        drop(UnixListener::bind(&path).unwrap());
        drop(Control::open(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn an_answer_that_is_longer_than_the_socket_takes_at_once_is_written_to_the_end() {
        let path = std::env::temp_dir().join(format!("segue-agent-long-{}.sock", std::process::id()));
        let mut control = Control::open(&path).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client
            .write_all(b"{\"version\":1,\"command\":\"status\"}\n")
            .unwrap();
        client
            .set_read_timeout(Some(std::time::Duration::from_secs(5)))
            .unwrap();
        let long = || Response::Error("x".repeat(3_000_000));
        control.turn(Instant::ZERO, |_| long());
        let has_room = |control: &Control| {
            let all = control.descriptors();
            let mut all: Vec<_> = all.map(|(flags, fd)| PollFd::new(fd, flags)).collect();
            nix::poll::poll(&mut all, nix::poll::PollTimeout::ZERO).unwrap() > 0
        };
        let mut read = 0;
        while !control.connections.is_empty() {
            assert!(!has_room(&control), "the agent would not wait");
            let mut piece = vec![0; 500_000];
            read += client.read(&mut piece).unwrap();
            client.set_nonblocking(true).unwrap();
            while let Ok(length @ 1..) = client.read(&mut piece) {
                read += length;
            }
            client.set_nonblocking(false).unwrap();
            assert!(has_room(&control), "the agent would wait for ever");
            control.turn(Instant::ZERO, |_| long());
        }
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!(read + rest.len(), line_of(long()).len());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file that is in the way")]
    fn a_file_that_is_no_socket_stays() {
        let path = std::env::temp_dir().join(format!("segue-agent-{}.txt", std::process::id()));
        std::fs::write(&path, "precious").unwrap();
        let refused = Control::open(&path).err().unwrap();
        assert!(
            format!("{refused:#}").ends_with("expected the path of a socket, or of nothing"),
            "{refused:#}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
    }
}
