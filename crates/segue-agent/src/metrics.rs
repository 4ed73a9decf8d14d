//! Numbers for Prometheus: OpenMetrics text over HTTP/1.1, on the loopback or a socket of the file system, by the loop that does
//! everything else. A request has 4 KiB and two seconds, there are eight at a time, and each connection is for one.

mod page;

pub(crate) use page::{Handovers, Page};

use crate::control::remove_socket;
use anyhow::Context as _;
use nix::sys::stat::{Mode, umask};
use segue_agent::config::MetricsAt;
use segue_proto::{Duration, Instant};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

const LONGEST_REQUEST: usize = 4096;
const MOST_HEADERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_CONNECTIONS: usize = 8;
/// https://prometheus.io/docs/specs/om/open_metrics_spec/, "Protocol Negotiation".
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where numbers are served.
pub(crate) struct Metrics {
    listener: Listener,
    connections: Vec<Connection>,
}

enum Listener {
    Loopback(TcpListener),
    Socket(UnixListener, PathBuf),
}

/// A stream of either kind.
trait Stream: Read + Write + AsFd {}
impl<T: Read + Write + AsFd> Stream for T {}

/// Somebody who asks.
struct Connection {
    stream: Box<dyn Stream>,
    until: Instant,
    request: Vec<u8>,
    response: Option<Vec<u8>>,
}

impl Metrics {
    /// Listens there, in the place of a socket that nobody answers at.
    ///
    /// # Errors
    /// One line, if somebody else does or may not.
    pub fn open(at: &MetricsAt) -> anyhow::Result<Self> {
        let listener = match at {
            MetricsAt::Loopback(address) => TcpListener::bind(address).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(Listener::Loopback(listener))
            }),
            MetricsAt::Path(path) => listen(path).map(|listener| Listener::Socket(listener, path.clone())),
        };
        let shown = || match at {
            MetricsAt::Loopback(address) => format!("agent.metrics: {address}"),
            MetricsAt::Path(path) => format!("agent.metrics: {}", path.display()),
        };
        Ok(Self {
            listener: listener.with_context(shown)?,
            connections: Vec::new(),
        })
    }

    /// What is to be waited for, and whether there is something to write to it.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let listener = match &self.listener {
            Listener::Loopback(listener) => listener.as_fd(),
            Listener::Socket(listener, _) => listener.as_fd(),
        };
        // who waits for a place among the connections is no reason to wake up
        let listens = (self.connections.len() < MOST_CONNECTIONS).then_some((listener, false));
        let asking = self.connections.iter();
        listens
            .into_iter()
            .chain(asking.map(|c| (c.stream.as_fd(), c.response.is_some())))
    }

    /// When the patience with somebody ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections.iter().map(|c| c.until).min()
    }

    /// Reads and answers as far as that can be done without waiting.
    pub fn turn(&mut self, now: Instant, mut page: impl FnMut() -> Page) {
        while self.connections.len() < MOST_CONNECTIONS {
            let Ok(stream) = self.listener.accept() else { break };
            self.connections.push(Connection {
                stream,
                until: now + PATIENCE,
                request: Vec::new(),
                response: None,
            });
        }
        self.connections
            .retain_mut(|c| now < c.until && c.turn(&mut page));
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Listener::Socket(_, path) = &self.listener {
            // it may be gone, and then this is done
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Loopback(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Box::new(stream))
            }
            Self::Socket(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// A socket that its user and its group may connect to.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match UnixStream::connect(path) {
        Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove_socket(path)?,
        Err(_) => {}
    }
    let before = umask(Mode::from_bits_truncate(0o117));
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Connection {
    /// Whether there is more to do.
    fn turn(&mut self, page: impl FnOnce() -> Page) -> bool {
        if self.response.is_none() {
            let mut piece = [0; 1024];
            loop {
                match self.stream.read(&mut piece) {
                    Ok(0) => return false,
                    Ok(length) => self.request.extend_from_slice(&piece[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return false,
                }
                if self.request.len() > LONGEST_REQUEST {
                    return false;
                }
            }
            self.response = answer(&self.request, page);
        }
        let Some(response) = &mut self.response else {
            return true;
        };
        loop {
            match self.stream.write(response) {
                Ok(written) => {
                    response.drain(..written);
                    if response.is_empty() {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}

/// The response to a request, once that is whole (RFC 9112; a method that there is not is answered by RFC 9110 section 15.5.6).
fn answer(request: &[u8], page: impl FnOnce() -> Page) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let (status, more, kind, body) = match parsed.parse(request) {
        Ok(httparse::Status::Partial) => return None,
        Err(_) => ("400 Bad Request", "", "text/plain", String::new()),
        Ok(httparse::Status::Complete(_)) => match (parsed.method, parsed.path) {
            (Some("GET"), Some(path)) if path.split('?').next() == Some("/metrics") => {
                ("200 OK", "", TYPE, page().text())
            }
            (Some("GET"), _) => (
                "404 Not Found",
                "",
                "text/plain",
                "expected /metrics\n".to_owned(),
            ),
            _ => (
                "405 Method Not Allowed",
                "Allow: GET\r\n",
                "text/plain",
                String::new(),
            ),
        },
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n"
    );
    Some([head.as_bytes(), body.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(request: &str) -> Option<String> {
        answer(request.as_bytes(), Page::default).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_whole_request_for_the_page_has_it_and_others_their_status() {
        let page = said("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", body.len())),
            "{head}"
        );
        assert!(body.ends_with("# EOF\n"), "{body}");
        let status = |request: &str| {
            let whole = said(&format!("{request}\r\n\r\n")).unwrap();
            whole.split_whitespace().nth(1).map(str::to_owned)
        };
        assert_eq!(status("GET /metrics?x=1 HTTP/1.1").as_deref(), Some("200"));
        assert_eq!(status("GET / HTTP/1.1").as_deref(), Some("404"));
        assert_eq!(status("POST /metrics HTTP/1.1").as_deref(), Some("405"));
        assert_eq!(status("nonsense").as_deref(), Some("400"));
        assert_eq!(said("GET /metrics HTTP/1.1\r\nHost: he"), None);
    }

    #[test]
    fn who_says_nothing_or_too_much_is_let_go_and_there_are_eight_at_most() {
        let path = std::env::temp_dir().join(format!("segue-metrics-{}.sock", std::process::id()));
        let mut metrics = Metrics::open(&MetricsAt::Path(path.clone())).unwrap();
        assert!(
            Metrics::open(&MetricsAt::Path(path.clone())).is_err(),
            "there is one already"
        );
        let mut talker = UnixStream::connect(&path).unwrap();
        talker.write_all(&[b'x'; LONGEST_REQUEST + 1]).unwrap();
        metrics.turn(Instant::ZERO, Page::default);
        assert_eq!(metrics.connections.len(), 0);
        let silent: Vec<UnixStream> = (0..MOST_CONNECTIONS + 2)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        metrics.turn(Instant::ZERO, Page::default);
        assert_eq!(metrics.connections.len(), MOST_CONNECTIONS);
        assert_eq!(metrics.descriptors().count(), MOST_CONNECTIONS);
        let later = Instant::ZERO + PATIENCE;
        assert_eq!(metrics.poll_timeout(), Some(later));
        metrics.turn(later, Page::default);
        metrics.turn(later, Page::default);
        assert_eq!(metrics.connections.len(), 2);
        drop((silent, metrics));
        assert!(!path.exists());
    }
}
