//! IPv6 over an Ethernet interface that the kernel leaves to this process.
//!
//! An `AF_PACKET` socket only gets copies of what arrives: the kernel would still take the packets for its own, and answer an
//! option that it does not know (the ILNP nonce) by a parameter problem. So [`EthernetPort`] sets `disable_ipv6` on the
//! interface: the kernel drops every IPv6 packet of it at the very beginning of its input, sends none, and has no address
//! there. Routing, filters and the other interfaces are untouched; there is nothing to load and nothing to configure, and
//! closing the port gives the interface back. The host's side of neighbour discovery is then up to the caller.

use crate::Namespace;
use crate::packet_socket::{Frame, Mac, PacketSocket, Takes};
use crate::vnet::Offload;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;

/// An interface that is ours as far as IPv6 goes.
#[derive(Debug)]
pub struct EthernetPort {
    socket: PacketSocket,
    /// `disable_ipv6` of the interface, and what it was.
    disable_ipv6: File,
    before: String,
}

impl EthernetPort {
    /// Takes over the interface `name` in `namespace`, or in this process's own. Needs `CAP_NET_RAW` and `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If there is no such Ethernet interface, or the kernel refuses.
    pub fn open(name: &str, namespace: Option<&Namespace>) -> io::Result<Self> {
        let context =
            |error: io::Error| io::Error::new(error.kind(), format!("network interface {name}: {error}"));
        match namespace {
            Some(namespace) => namespace.within(|| Self::open_here(name)),
            None => Self::open_here(name),
        }
        .map_err(context)
    }

    fn open_here(name: &str) -> io::Result<Self> {
        let socket = PacketSocket::open(name, Takes::Ipv6)?;
        let mut disable_ipv6 = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"))?;
        let mut before = String::new();
        disable_ipv6.read_to_string(&mut before)?;
        // strictly at the beginning: elsewhere, the kernel ignores what is written
        disable_ipv6.write_all_at(b"1", 0)?;
        Ok(Self {
            socket,
            disable_ipv6,
            before,
        })
    }

    /// The interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.socket.name()
    }

    /// Its number in its namespace.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.socket.index()
    }

    /// Its link-layer address.
    #[must_use]
    pub const fn mac(&self) -> Mac {
        self.socket.mac()
    }

    /// Receives an IPv6 packet; `None` if there is none. Frames for other hosts are passed over. Never waits.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn receive(&mut self) -> io::Result<Option<Frame>> {
        self.socket.receive()
    }

    /// The packet of a frame received last.
    #[must_use]
    pub fn packet(&self, frame: &Frame) -> &[u8] {
        self.socket.packet(frame)
    }

    /// Sends an IPv6 packet with all its checksums; `false` if the interface takes none: it is down, its queue is full, or the
    /// packet too long.
    ///
    /// # Errors
    /// As the kernel has them otherwise.
    pub fn send(&self, to: Mac, packet: &[u8]) -> io::Result<bool> {
        self.socket.send(to, Offload::default(), [packet, &[]])
    }
}

impl Drop for EthernetPort {
    fn drop(&mut self) {
        // the interface may be gone, and then this is too
        let _ = self.disable_ipv6.write_all_at(self.before.trim().as_bytes(), 0);
    }
}

impl AsFd for EthernetPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
