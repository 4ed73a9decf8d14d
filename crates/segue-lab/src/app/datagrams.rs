//! Over UDP: messages at a constant rate, and the receiver's reports, at the times of the simulator's UDP (RFC 3550 section
//! 6.2): once a second until the first data, and every five seconds after that.

use super::{AppCommand, Done, Pace, sleep_until};
use crate::stop;
use anyhow::Context as _;
use bytes::Bytes;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn6, bind, connect, recvfrom, send as send_to_peer,
    socket,
};
use segue_live::Clock;
use segue_proto::{Duration, Instant};
use segue_sim::recorder::receiver_report;
use segue_wire::Data;
use segue_wire::payload::PLACEABLE_LEN;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

const CALL_AGAIN: Duration = Duration::from_secs(1);
const REPORT_AGAIN: Duration = Duration::from_secs(5);
/// Between two attempts to connect: there may be no way yet.
const AGAIN: Duration = Duration::from_millis(50);

/// A socket and whom it talks to: who is connected to learns that from what arrives.
struct Peer {
    socket: OwnedFd,
    address: Option<SockaddrIn6>,
}

pub(super) fn run(options: &AppCommand) -> anyhow::Result<Done> {
    let port = options.listen.unwrap_or(options.from_port);
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet6, SockType::Datagram, flags, None).context("socket")?;
    let any = SockaddrIn6::from(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0));
    bind(socket.as_raw_fd(), &any).with_context(|| format!("port {port}"))?;
    let mut peer = Peer {
        socket,
        address: None,
    };
    let clock = Clock::new();
    if let Some(address) = options.connect {
        while !stop::asked() && !peer.talk_to(address.into()) {
            sleep_until(clock.now() + AGAIN);
        }
    }
    let mut done = Done::default();
    if options.send {
        send(options, peer, &mut done)?;
    } else {
        receive(peer, &mut done)?;
    }
    Ok(done)
}

impl Peer {
    /// A connected socket keeps the addresses that it begins with, as the simulator's do.
    fn talk_to(&mut self, address: SockaddrIn6) -> bool {
        let connected = connect(self.socket.as_raw_fd(), &address).is_ok();
        if connected {
            self.address = Some(address);
        }
        connected
    }

    /// Sends, if there is a way; a datagram that the kernel does not take is lost, as any other may be.
    fn send(&self, bytes: &[u8]) -> bool {
        self.address.is_some() && send_to_peer(self.socket.as_raw_fd(), bytes, MsgFlags::empty()).is_ok()
    }

    /// The next datagram, if there is one: its length.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match recvfrom::<SockaddrIn6>(self.socket.as_raw_fd(), buffer) {
                Ok((len, from)) => {
                    if let (None, Some(from)) = (self.address, from) {
                        self.talk_to(from);
                    }
                    return Some(len);
                }
                // nothing there, or what ICMPv6 has to say of an earlier one
                Err(Errno::EAGAIN | Errno::EINTR) => return None,
                Err(_) => {}
            }
        }
    }
}

fn send(options: &AppCommand, mut peer: Peer, done: &mut Done) -> anyhow::Result<()> {
    let clock = Clock::new();
    let mut buffer = [0; 2048];
    // who is connected to waits for the first call
    while peer.address.is_none() && !stop::asked() {
        crate::link::wait(&[peer.socket.as_fd()], Some(CALL_AGAIN))?;
        peer.receive(&mut buffer);
    }
    let rate = options.rate.context("expected a rate")?;
    let mut pace = Pace::new(clock.now(), rate, options.message);
    let limit = options.size.unwrap_or(u64::MAX);
    let mut bytes = Vec::with_capacity(options.message);
    while done.sent < limit && !stop::asked() {
        sleep_until(pace.due());
        while peer.receive(&mut buffer).is_some() {}
        bytes.clear();
        Data::Synthetic {
            offset: done.sent,
            len: options.message as u32,
        }
        .emit(&mut bytes);
        peer.send(&bytes);
        done.sent += bytes.len() as u64;
        pace.sent();
    }
    Ok(())
}

fn receive(mut peer: Peer, done: &mut Done) -> anyhow::Result<()> {
    let clock = Clock::new();
    let mut buffer = [0; 2048];
    let mut arrived = 0u64;
    let mut due: Option<Instant> = peer.address.map(|_| clock.now());
    while !stop::asked() {
        let now = clock.now();
        if due.is_some_and(|at| at <= now) {
            peer.send(&receiver_report(arrived));
            due = Some(now + if arrived == 0 { CALL_AGAIN } else { REPORT_AGAIN });
        }
        let timeout = due.map_or(CALL_AGAIN, |at| at.since(now)).min(CALL_AGAIN);
        crate::link::wait(&[peer.socket.as_fd()], Some(timeout))?;
        while let Some(len) = peer.receive(&mut buffer) {
            if len < PLACEABLE_LEN {
                continue;
            }
            let now = clock.now();
            let data = Data::Bytes(Bytes::copy_from_slice(&buffer[..len]));
            done.wrong += if data.synthetic_offset().is_none() {
                len as u64
            } else {
                0
            };
            done.received += len as u64;
            done.reads.note(now, len);
            if arrived == 0 {
                due = Some(now);
            }
            arrived += 1;
        }
    }
    Ok(())
}
