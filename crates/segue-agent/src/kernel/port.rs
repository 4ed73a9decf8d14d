//! An interface: packets to the agent's addresses there, and packets from them.

use super::next_hops::NextHops;
use bytes::Bytes;
use nix::errno::Errno;
use nix::sys::socket::sockopt::BindToDevice;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6, sendto, setsockopt, socket,
};
use segue_live::{Buffers, Offload, PacketSocket, Select, Takes};
use segue_proto::Instant;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};
use std::ffi::OsString;
use std::io;
use std::net::SocketAddrV6;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// An interface that is there.
pub(crate) struct Port {
    frames: PacketSocket,
    /// The way through the kernel: its routes, its neighbour discovery.
    packets: OwnedFd,
    /// Packets that the kernel did not take.
    refused: u64,
}

impl Port {
    /// # Errors
    /// If the interface is not there or no Ethernet, or the kernel refuses.
    pub fn open(name: &str, selected: &[Select]) -> io::Result<Self> {
        let frames = PacketSocket::open(name, Takes::Selected(selected))?;
        let packets = raw_socket()?;
        setsockopt(&packets, BindToDevice, &OsString::from(name))?;
        Ok(Self {
            frames,
            packets,
            refused: 0,
        })
    }

    pub const fn index(&self) -> u32 {
        self.frames.index()
    }

    /// From now on what these select is received.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn select(&self, selected: &[Select]) -> io::Result<()> {
        self.frames.select(selected)
    }

    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Receives a packet into one of `buffers`; `None` if there is none. Never waits.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn receive(&self, buffers: &mut Buffers) -> io::Result<Option<(Offload, Bytes)>> {
        self.frames.receive_into(buffers)
    }

    /// Sends a packet to its next hop, where that is known; the kernel sends it otherwise. `head` is for its headers.
    ///
    /// # Errors
    /// As the kernel has them, but for an interface or a queue that takes none: that is counted.
    pub fn send(
        &mut self,
        now: Instant,
        packet: &Packet,
        hops: &mut NextHops,
        head: &mut Vec<u8>,
    ) -> io::Result<()> {
        let hop = hops.find(now, self.index(), packet.ip.destination);
        let sent = match (&packet.payload, hop) {
            (Payload::Raw(raw), Some(mac)) => {
                head.clear();
                packet.emit_headers(head);
                let start = head.len() as u16;
                self.frames
                    .send(mac, offload_of(packet, start), [head, &raw.bytes])?
            }
            (_, Some(mac)) => self
                .frames
                .send(mac, Offload::default(), [&packet.to_vec(), &[]])?,
            (_, None) => give_to_kernel(&self.packets, packet)?,
        };
        self.refused += u64::from(!sent);
        Ok(())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.frames.as_fd()
    }
}

/// The way through the kernel's own routes, whatever interface they lead to.
pub(crate) struct Routed {
    packets: OwnedFd,
    refused: u64,
}

impl Routed {
    /// # Errors
    /// If the kernel refuses.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            packets: raw_socket()?,
            refused: 0,
        })
    }

    /// Packets that the kernel did not take.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Sends a packet to where the kernel's routes lead.
    ///
    /// # Errors
    /// As the kernel has them, but for a way that there is not: that is counted.
    pub fn send(&mut self, packet: &Packet) -> io::Result<()> {
        self.refused += u64::from(!give_to_kernel(&self.packets, packet)?);
        Ok(())
    }
}

fn raw_socket() -> io::Result<OwnedFd> {
    let opened = socket(
        AddressFamily::Inet6,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::Raw,
    )?;
    Ok(opened)
}

fn give_to_kernel(socket: &OwnedFd, packet: &Packet) -> io::Result<bool> {
    let to = SockaddrIn6::from(SocketAddrV6::new(packet.ip.destination, 0, 0, 0));
    let mut all = true;
    for bytes in whole(packet) {
        match sendto(socket.as_raw_fd(), &bytes, &to, MsgFlags::MSG_DONTWAIT) {
            Ok(_) => {}
            Err(
                Errno::EAGAIN
                | Errno::EINTR
                | Errno::EMSGSIZE
                | Errno::ENETDOWN
                | Errno::ENETUNREACH
                | Errno::EHOSTUNREACH
                | Errno::ENOBUFS
                | Errno::ENODEV
                | Errno::ENXIO
                | Errno::EINVAL
                | Errno::EACCES
                | Errno::EPERM,
            ) => all = false,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Protocol number.
const UDP: u8 = 17;

/// What the kernel is to know of a packet whose transport begins at `start`.
pub(crate) fn offload_of(packet: &Packet, start: u16) -> Offload {
    let Payload::Raw(raw) = &packet.payload else {
        return Offload::default();
    };
    let partial = raw
        .checksum_offset()
        .filter(|_| raw.checksum == ChecksumState::Partial);
    Offload {
        partial_checksum: partial.map(|offset| (start, offset as u16)),
        segment_size: raw.segment_size,
        datagrams: raw.next_header == UDP,
    }
}

/// The packet in bytes, as often as it takes: a super-packet in its segments.
pub(crate) fn whole(packet: &Packet) -> Vec<Vec<u8>> {
    let Payload::Raw(raw) = &packet.payload else {
        return vec![packet.to_vec()];
    };
    let segments = raw.segments(&packet.pseudo_header()).unwrap_or_default();
    let with = |segment| Packet {
        payload: Payload::Raw(segment),
        ..packet.clone()
    };
    segments
        .into_iter()
        .map(|segment| with(segment).to_vec())
        .collect()
}
