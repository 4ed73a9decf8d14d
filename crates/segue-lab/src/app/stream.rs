//! Over TCP.

use super::{AppCommand, Done, Pace, sleep_until};
use crate::stop;
use anyhow::Context as _;
use bytes::Bytes;
use nix::errno::Errno;
use nix::sys::socket::sockopt::ReuseAddr;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn6, accept, bind, connect, listen, setsockopt,
    socket,
};
use segue_live::Clock;
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddrV6, TcpStream};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Bytes handed to the kernel at a time.
const CHUNK: usize = 1 << 16;
/// Between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);

pub(super) fn run(options: &AppCommand) -> anyhow::Result<Done> {
    let clock = Clock::new();
    let mut done = Done::default();
    // it listens to the end: a further subflow of Multipath TCP begins at the listener too
    let listener = options
        .listen
        .map(|port| listener(options.mptcp, port))
        .transpose()?;
    let stream = match (&listener, options.connect) {
        (Some(listener), _) => accepted(listener)?,
        (None, Some(peer)) => connected(clock, options, peer)?,
        (None, None) => None,
    };
    let Some(stream) = stream else { return Ok(done) };
    stream.set_nodelay(options.no_delay)?;
    let ended = if options.send {
        send(options, clock, stream, &mut done)
    } else if options.receive {
        receive(clock, stream, &mut done)
    } else if options.ask {
        ask(options, clock, stream, &mut done)
    } else {
        answer(options, clock, stream, &mut done)
    };
    match ended {
        Err(error) if error.kind() != io::ErrorKind::Interrupted && !stop::asked() => {
            done.failed = Some(error.to_string());
        }
        _ => {}
    }
    Ok(done)
}

fn tcp_socket(mptcp: bool) -> anyhow::Result<OwnedFd> {
    let socket = if mptcp {
        mptcp_socket().context("MPTCP socket")?
    } else {
        let made = socket(
            AddressFamily::Inet6,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        made.context("socket")?
    };
    setsockopt(&socket, ReuseAddr, &true)?;
    Ok(socket)
}

/// One that tells its peer that it has Multipath TCP (RFC 8684 section 3.1).
#[allow(unsafe_code, reason = "nix has no name for the protocol")]
pub(crate) fn mptcp_socket() -> nix::Result<OwnedFd> {
    use nix::libc::{AF_INET6, IPPROTO_MPTCP, SOCK_CLOEXEC, SOCK_STREAM, socket};
    // SAFETY: it takes no pointers.
    let fd = Errno::result(unsafe { socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP) })?;
    // SAFETY: it has just been opened and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn any(port: u16) -> SockaddrIn6 {
    SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0).into()
}

fn listener(mptcp: bool, port: u16) -> anyhow::Result<OwnedFd> {
    let socket = tcp_socket(mptcp)?;
    bind(socket.as_raw_fd(), &any(port)).with_context(|| format!("port {port}"))?;
    listen(&socket, Backlog::new(8)?)?;
    Ok(socket)
}

/// The first who connects; nothing if it is asked to stop before.
#[allow(unsafe_code, reason = "accept(2) gives a descriptor as a number")]
fn accepted(listener: &OwnedFd) -> anyhow::Result<Option<TcpStream>> {
    match accept(listener.as_raw_fd()) {
        // SAFETY: it has just been opened and nobody else has it.
        Ok(fd) => Ok(Some(TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) }))),
        Err(Errno::EINTR) => Ok(None),
        Err(error) => Err(error).context("accept"),
    }
}

/// A connection, however long it takes to come about; nothing if it is asked to stop before.
fn connected(clock: Clock, options: &AppCommand, peer: SocketAddrV6) -> anyhow::Result<Option<TcpStream>> {
    let from_port = options.from_port;
    loop {
        let socket = tcp_socket(options.mptcp)?;
        bind(socket.as_raw_fd(), &any(from_port)).with_context(|| format!("port {from_port}"))?;
        match connect(socket.as_raw_fd(), &SockaddrIn6::from(peer)) {
            Ok(()) => return Ok(Some(TcpStream::from(socket))),
            Err(_) if stop::asked() => return Ok(None),
            Err(
                Errno::ECONNREFUSED
                | Errno::EADDRNOTAVAIL
                | Errno::ENETUNREACH
                | Errno::EHOSTUNREACH
                | Errno::ETIMEDOUT
                | Errno::ENETDOWN
                | Errno::EINTR,
            ) => sleep_until(clock.now() + AGAIN),
            Err(error) => return Err(error).with_context(|| format!("connecting to {peer}")),
        }
    }
}

fn synthetic(offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    Data::Synthetic {
        offset,
        len: len as u32,
    }
    .emit(&mut bytes);
    bytes
}

fn send(options: &AppCommand, clock: Clock, mut stream: TcpStream, done: &mut Done) -> io::Result<()> {
    let mut pace = options
        .rate
        .map(|rate| Pace::new(clock.now(), rate, options.message));
    let limit = options.size.unwrap_or(u64::MAX);
    while done.sent < limit && !stop::asked() {
        let most = if pace.is_some() { options.message } else { CHUNK };
        let len = most.min(usize::try_from(limit - done.sent).unwrap_or(most));
        if let Some(pace) = &mut pace {
            sleep_until(pace.due());
            if stop::asked() {
                break;
            }
            pace.sent();
        }
        write(&mut stream, &synthetic(done.sent, len), &mut done.sent)?;
    }
    // the peer closes when it has everything
    stream.shutdown(std::net::Shutdown::Write)?;
    while !stop::asked() && stream.read(&mut [0; 64])? > 0 {}
    Ok(())
}

/// Writes all of it, as far as no signal comes.
fn write(stream: &mut TcpStream, mut bytes: &[u8], sent: &mut u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => {
                *sent += written as u64;
                bytes = &bytes[written..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted && !stop::asked() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive(clock: Clock, mut stream: TcpStream, done: &mut Done) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        done.reads.note(clock.now(), read);
        let data = Data::Bytes(Bytes::copy_from_slice(&buffer[..read]));
        if !data.is_synthetic_at(done.received) {
            done.wrong += read as u64;
        }
        done.received += read as u64;
    }
}

fn ask(options: &AppCommand, clock: Clock, mut stream: TcpStream, done: &mut Done) -> io::Result<()> {
    let mut response = vec![0; options.response];
    while !stop::asked() {
        let request = synthetic(done.sent, options.message);
        write(&mut stream, &request, &mut done.sent)?;
        read_whole(clock, &mut stream, &mut response, done)?;
        done.answers += 1;
    }
    Ok(())
}

fn answer(options: &AppCommand, clock: Clock, mut stream: TcpStream, done: &mut Done) -> io::Result<()> {
    let mut request = vec![0; options.message];
    while !stop::asked() {
        match read_whole(clock, &mut stream, &mut request, done) {
            // who asked has gone
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        done.answers += 1;
        let response = synthetic(done.sent, options.response);
        write(&mut stream, &response, &mut done.sent)?;
    }
    Ok(())
}

/// Reads all of it, as far as no signal comes.
fn read_whole(clock: Clock, stream: &mut TcpStream, buffer: &mut [u8], done: &mut Done) -> io::Result<()> {
    let mut read = 0;
    while read < buffer.len() {
        match stream.read(&mut buffer[read..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted && !stop::asked() => {}
            Err(error) => return Err(error),
        }
    }
    let now: Instant = clock.now();
    done.reads.note(now, buffer.len());
    let data = Data::Bytes(Bytes::copy_from_slice(buffer));
    if !data.is_synthetic_at(done.received) {
        done.wrong += buffer.len() as u64;
    }
    done.received += buffer.len() as u64;
    Ok(())
}
