//! A server of UDP and TCP (RFC 1035 section 4.2, RFC 7766) around the machine.
//!
//! Threads read sockets; one thread has the machine and the store. It takes all requests that wait, makes their
//! changes durable with one write, and then sends the answers: the more there is to do, the less each update costs.

use crate::config::ServerFile;
use crate::store::Store;
use crate::tcp::{self, Connections};
use crate::unix_nanos;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, sockopt};
use segue_proto::Instant;
use segue_proto::location::{Datagram, Server, ServerConfig, Transport};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Requests taken before changes are made durable.
const MOST_AT_ONCE: usize = 256;

pub(crate) struct Request {
    pub transport: Transport,
    pub datagram: Datagram,
    pub route: Route,
}

/// Where an answer goes.
pub(crate) enum Route {
    Udp(Arc<UdpSocket>, SocketAddr),
    Tcp(SyncSender<Bytes>),
}

/// Serves until a socket or the store fails. `ready` is called once requests are taken, with the addresses that they
/// are taken at.
///
/// # Errors
/// What failed. After a failed write to the store nothing more is answered.
pub fn serve(file: &ServerFile, config: ServerConfig, ready: impl FnOnce(&[SocketAddr])) -> Result<()> {
    let (store, mut server) = Store::open(&file.directory, config)?;
    let (sender, requests) = sync_channel(1024);
    let connections = Arc::new(Mutex::new(Connections::default()));
    let mut bound = Vec::new();
    for &address in &file.listen {
        let cannot = || format!("listen: {address}: cannot be bound");
        let is_v4 = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
        let only_v6 = file.listen.iter().any(is_v4);
        let udp = UdpSocket::from(bound_to(address, SockType::Datagram, only_v6).with_context(cannot)?);
        let udp = Arc::new(udp);
        let address = udp.local_addr()?;
        let tcp = bound_to(address, SockType::Stream, only_v6).with_context(cannot)?;
        socket::listen(&tcp, Backlog::MAXALLOWABLE).with_context(cannot)?;
        let tcp = TcpListener::from(tcp);
        let to_core = sender.clone();
        thread::spawn(move || read_udp(&udp, address.port(), &to_core));
        let (to_core, connections) = (sender.clone(), connections.clone());
        thread::spawn(move || tcp::accept(&tcp, address.port(), &to_core, &connections));
        bound.push(address);
    }
    drop(sender);
    ready(&bound);
    run(&mut server, &store, &requests)
}

/// A socket at `address`. One at `[::]` is for IPv4 too, unless it is for `only_v6`: another has it at the same port.
fn bound_to(address: SocketAddr, kind: SockType, only_v6: bool) -> nix::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let socket = socket::socket(family, kind, SockFlag::empty(), None)?;
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    if kind == SockType::Stream {
        // connections of an earlier server that are not forgotten yet do not keep this one from its port
        socket::setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    }
    if address.is_ipv6() && only_v6 {
        socket::setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(socket)
}

fn run(server: &mut Server, store: &Store, requests: &Receiver<Request>) -> Result<()> {
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
            store.write(&entries)?;
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
        let datagram = converted(peer, local_port, Bytes::copy_from_slice(&buffer[..len]));
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

/// A message from `peer`, as the machine has it.
pub(crate) fn converted(peer: SocketAddr, local_port: u16, data: Bytes) -> Datagram {
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
pub(crate) fn pause() {
    #[expect(clippy::disallowed_methods, reason = "a driver's thread may wait")]
    thread::sleep(Duration::from_millis(10));
}
