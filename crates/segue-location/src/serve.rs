//! A server of UDP and TCP (RFC 1035 section 4.2, RFC 7766) around the machine.
//!
//! Threads read sockets; one thread has the machine and the store. It takes all requests that wait, makes their
//! changes durable with one write, and then sends the answers: the more there is to do, the less each update costs.

use crate::config::ServerFile;
use crate::store::{Cut, Store};
use crate::unix_nanos;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use segue_proto::Instant;
use segue_proto::location::{Datagram, Server, ServerConfig, Transport};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Requests taken before changes are made durable.
const MOST_AT_ONCE: usize = 256;

/// TCP connections at a time; further ones are closed (RFC 7766 section 6.2.2 leaves the number to the server).
const MOST_CONNECTIONS: usize = 128;

/// How long an idle connection is kept (RFC 7766 section 6.2.3: "a few seconds").
const IDLE: Duration = Duration::from_secs(10);

struct Request {
    transport: Transport,
    datagram: Datagram,
    route: Route,
}

/// Where an answer goes.
enum Route {
    Udp(Arc<UdpSocket>, SocketAddr),
    Tcp(SyncSender<Bytes>),
}

/// What a server tells when it begins.
#[derive(Clone, Copy, Debug)]
pub struct Ready<'a> {
    /// Addresses that requests are taken at.
    pub bound: &'a [SocketAddr],
    /// What was cut off the journal.
    pub cut: Option<&'a Cut>,
}

/// Serves until a socket or the store fails. `ready` is called once requests are taken.
///
/// # Errors
/// What failed. After a failed write to the store nothing more is answered.
pub fn serve(file: &ServerFile, config: ServerConfig, ready: impl FnOnce(Ready<'_>)) -> Result<()> {
    let mut server = Server::new(config)?;
    let mut store = Store::open(&file.directory, &mut server)?;
    let (sender, requests) = sync_channel(1024);
    let connections = Arc::new(AtomicUsize::new(0));
    let mut bound = Vec::new();
    for &address in &file.listen {
        #[expect(clippy::disallowed_methods, reason = "the driver's socket")]
        let udp = UdpSocket::bind(address).with_context(|| format!("listen: {address}: cannot be bound"))?;
        let udp = Arc::new(udp);
        let address = udp.local_addr()?;
        let tcp =
            TcpListener::bind(address).with_context(|| format!("listen: {address}: cannot be bound"))?;
        let to_core = sender.clone();
        thread::spawn(move || read_udp(&udp, address.port(), &to_core));
        let (to_core, connections) = (sender.clone(), connections.clone());
        thread::spawn(move || accept(&tcp, address.port(), &to_core, &connections));
        bound.push(address);
    }
    drop(sender);
    ready(Ready {
        bound: &bound,
        cut: store.cut(),
    });
    run(&mut server, &mut store, &requests)
}

fn run(server: &mut Server, store: &mut Store, requests: &Receiver<Request>) -> Result<()> {
    // Answers come in the order of their requests.
    let mut routes = VecDeque::new();
    while let Ok(first) = requests.recv() {
        let waiting = requests.try_iter().take(MOST_AT_ONCE - 1);
        for request in std::iter::once(first).chain(waiting) {
            // The machine's clock is the time of day itself: it has no timers that a step could disturb, and
            // signatures must follow the step.
            let now = Instant::from_nanos(unix_nanos());
            if server.handle_message(now, request.transport, &request.datagram) {
                routes.push_back(request.route);
            }
        }
        let entries: Vec<_> = std::iter::from_fn(|| server.poll_journal()).collect();
        if let Some(last) = entries.last().map(|e| e.number) {
            let entries: Vec<_> = entries.into_iter().map(|e| e.bytes).collect();
            store.append(&entries)?;
            server.handle_durable(last);
        }
        while let Some(answer) = server.poll_answer() {
            match routes.pop_front() {
                // Whoever cannot be reached asks again, or has gone.
                Some(Route::Udp(socket, peer)) => drop(socket.send_to(&answer.datagram.data, peer)),
                Some(Route::Tcp(reply)) => drop(reply.try_send(answer.datagram.data)),
                None => {}
            }
        }
        store.compact_if_due(server)?;
    }
    Ok(())
}

fn read_udp(socket: &Arc<UdpSocket>, local_port: u16, to_core: &SyncSender<Request>) {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let (len, peer) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            // An ICMP error about an earlier answer, or a signal.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
                ) =>
            {
                continue;
            }
            Err(_) => {
                pause();
                continue;
            }
        };
        let datagram = datagram(peer, local_port, Bytes::copy_from_slice(&buffer[..len]));
        let route = Route::Udp(socket.clone(), peer);
        let request = Request {
            transport: Transport::Udp,
            datagram,
            route,
        };
        if to_core.send(request).is_err() {
            return;
        }
    }
}

fn accept(
    listener: &TcpListener,
    local_port: u16,
    to_core: &SyncSender<Request>,
    connections: &Arc<AtomicUsize>,
) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            pause();
            continue;
        };
        if connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (to_core, connections) = (to_core.clone(), connections.clone());
        thread::spawn(move || {
            // A connection that fails or falls silent ends; there is nobody to tell.
            let _ = converse(stream, local_port, &to_core);
            connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Requests of a connection, one after the other; each has two octets of length before it (RFC 1035 section 4.2.2).
fn converse(mut stream: TcpStream, local_port: u16, to_core: &SyncSender<Request>) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let peer = stream.peer_addr()?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message)?;
        let (reply, answer) = sync_channel(1);
        let request = Request {
            transport: Transport::Tcp(0),
            datagram: datagram(peer, local_port, message.into()),
            route: Route::Tcp(reply),
        };
        if to_core.send(request).is_err() {
            return Ok(());
        }
        // The sender is dropped with a request that gets no answer: then the connection ends.
        let Ok(answer) = answer.recv() else { return Ok(()) };
        // One segment for both (RFC 7766 section 8).
        let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
        framed.extend_from_slice(&answer);
        stream.write_all(&framed)?;
    }
}

fn datagram(peer: SocketAddr, local_port: u16, data: Bytes) -> Datagram {
    Datagram {
        peer: mapped(peer.ip()),
        peer_port: peer.port(),
        local_port,
        data,
    }
}

/// The machine's form of an address.
pub(crate) fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

/// Before a socket that fails is tried again (no file descriptors left, for instance).
fn pause() {
    #[expect(clippy::disallowed_methods, reason = "a driver's thread may wait")]
    thread::sleep(Duration::from_millis(10));
}
