//! IPv6 over an Ethernet interface that the kernel leaves to this process.
//!
//! An `AF_PACKET` socket only gets copies of what arrives: the kernel would still take the packets for its own, and answer an
//! option that it does not know (the ILNP nonce) by a parameter problem. So [`EthernetPort`] sets `disable_ipv6` on the
//! interface: the kernel drops every IPv6 packet of it at the very beginning of its input, sends none, and has no address
//! there. Routing, filters and the other interfaces are untouched; there is nothing to load and nothing to configure, and
//! closing the port gives the interface back. The host's side of neighbour discovery is then up to the caller.

use crate::Namespace;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc::{
    ETH_P_IPV6, PACKET_ADD_MEMBERSHIP, PACKET_MR_ALLMULTI, PACKET_VNET_HDR, SOL_PACKET, c_int, packet_mreq,
    setsockopt, socklen_t,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, sendmsg, socket,
};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

/// A link-layer address.
pub type Mac = [u8; 6];

/// What the kernel says of a packet beside its bytes (`struct virtio_net_hdr`), and what it can be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The transport's checksum is only the sum of the pseudo-header: the header begins at the first number of bytes into the
    /// packet, its checksum field at the second number of bytes into the header.
    pub partial_checksum: Option<(u16, u16)>,
    /// Bytes of data in each segment, if this is a super-packet of TCP.
    pub segment_size: Option<u16>,
}

/// A frame received; its packet is in the port until the next call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Who sent it.
    pub source: Mac,
    /// Offloads.
    pub offload: Offload,
    /// Length of the packet.
    pub length: usize,
}

/// An interface that is ours as far as IPv6 goes.
#[derive(Debug)]
pub struct EthernetPort {
    socket: OwnedFd,
    name: String,
    index: u32,
    mac: Mac,
    buffer: Vec<u8>,
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
        let link = getifaddrs()?
            .filter(|i| i.interface_name == name)
            .find_map(|i| i.address.as_ref().and_then(|a| a.as_link_addr().copied()))
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is none of that name"))?;
        let mac = link
            .addr()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not Ethernet"))?;
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::EthIpv6,
        )?;
        bind(socket.as_raw_fd(), &link)?;
        set_option(&socket, PACKET_VNET_HDR, &1i32)?;
        // advertisements and solicitations are multicast; the kernel joins no groups where it has no IPv6
        let membership = packet_mreq {
            mr_ifindex: link.ifindex() as c_int,
            mr_type: PACKET_MR_ALLMULTI as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(&socket, PACKET_ADD_MEMBERSHIP, &membership)?;
        // what came from other interfaces before the socket was bound to this one
        while recv(socket.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT).is_ok() {}
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
            name: name.to_owned(),
            index: link.ifindex() as u32,
            mac,
            buffer: vec![0; VNET_HEADER_LEN + ETHERNET_HEADER_LEN + MAX_SUPER_PACKET],
            disable_ipv6,
            before,
        })
    }

    /// The interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in its namespace.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Its link-layer address.
    #[must_use]
    pub const fn mac(&self) -> Mac {
        self.mac
    }

    /// Receives an IPv6 packet; `None` if there is none. Frames for other hosts are passed over. Never waits.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn receive(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let received = recv(
                self.socket.as_raw_fd(),
                &mut self.buffer,
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC,
            );
            let length = match received {
                Ok(length) => length,
                // the interface is down; there is nothing to be had until it is up
                Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(packet) = length.checked_sub(VNET_HEADER_LEN + ETHERNET_HEADER_LEN) else {
                continue;
            };
            if length > self.buffer.len() {
                continue;
            }
            let (vnet, frame) = self.buffer.split_at(VNET_HEADER_LEN);
            let (destination, source) = (mac_at(frame, 0), mac_at(frame, 6));
            if destination != self.mac && destination[0] & 1 == 0 {
                continue;
            }
            return Ok(Some(Frame {
                source,
                offload: parse_vnet(vnet),
                length: packet,
            }));
        }
    }

    /// The packet of a frame received last.
    #[must_use]
    pub fn packet(&self, frame: &Frame) -> &[u8] {
        let start = VNET_HEADER_LEN + ETHERNET_HEADER_LEN;
        self.buffer.get(start..start + frame.length).unwrap_or_default()
    }

    /// Sends an IPv6 packet with all its checksums; `false` if the interface takes none: it is down, its queue is full, or the
    /// packet too long.
    ///
    /// # Errors
    /// As the kernel has them otherwise.
    pub fn send(&self, to: Mac, packet: &[u8]) -> io::Result<bool> {
        let mut header = [0; ETHERNET_HEADER_LEN];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&self.mac);
        header[12..].copy_from_slice(&(ETH_P_IPV6 as u16).to_be_bytes());
        let slices = [
            IoSlice::new(&[0; VNET_HEADER_LEN]),
            IoSlice::new(&header),
            IoSlice::new(packet),
        ];
        match sendmsg::<()>(
            self.socket.as_raw_fd(),
            &slices,
            &[],
            MsgFlags::MSG_DONTWAIT,
            None,
        ) {
            Ok(_) => Ok(true),
            Err(
                Errno::ENETDOWN
                | Errno::EAGAIN
                | Errno::EINTR
                | Errno::ENOBUFS
                | Errno::EMSGSIZE
                | Errno::EINVAL,
            ) => Ok(false),
            Err(error) => Err(error.into()),
        }
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

const ETHERNET_HEADER_LEN: usize = 14;
/// `struct virtio_net_hdr`: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset, the last four of 16 bits.
const VNET_HEADER_LEN: usize = 10;
const NEEDS_CSUM: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Longest super-packet of TCP without jumbograms.
const MAX_SUPER_PACKET: usize = 65_536;

fn mac_at(frame: &[u8], at: usize) -> Mac {
    let bytes = frame.get(at..).and_then(|b| b.first_chunk());
    bytes.copied().unwrap_or_default()
}

fn parse_vnet(header: &[u8]) -> Offload {
    let half = |at: usize| {
        let bytes = header.get(at..).and_then(|b| b.first_chunk());
        u16::from_ne_bytes(bytes.copied().unwrap_or_default())
    };
    let flag = |at: usize, bit: u8| header.get(at).is_some_and(|b| b & bit != 0);
    // the start of the transport's header counts from the frame
    let start = half(6).saturating_sub(ETHERNET_HEADER_LEN as u16);
    Offload {
        partial_checksum: flag(0, NEEDS_CSUM).then(|| (start, half(8))),
        segment_size: flag(1, GSO_TCPV6).then(|| half(4)),
    }
}

#[allow(unsafe_code, reason = "setsockopt(2) takes a pointer")]
fn set_option<T>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as T has, and T lives throughout the call. Both types that this is used with
    // are made of integers without padding.
    let result = unsafe {
        setsockopt(
            socket.as_raw_fd(),
            SOL_PACKET,
            option,
            core::ptr::from_ref(value).cast(),
            size_of::<T>() as socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_super_packet() {
        let mut header = vec![NEEDS_CSUM, GSO_TCPV6];
        for half in [94u16, 1428, 54, 16] {
            header.extend(half.to_ne_bytes());
        }
        let expected = Offload {
            partial_checksum: Some((40, 16)),
            segment_size: Some(1428),
        };
        assert_eq!(parse_vnet(&header), expected);
        assert_eq!(parse_vnet(&[0; VNET_HEADER_LEN]), Offload::default());
    }
}
