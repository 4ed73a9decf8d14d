//! The socket that SCTP packets go through: UDP, or IPv6 protocol 132.

use crate::icmp::Notice;
use nix::errno::Errno;
use nix::libc::{
    IPPROTO_IPV6, IPV6_MTU, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT, IPV6_PMTUDISC_PROBE, IPV6_PMTUDISC_WANT,
    SO_EE_ORIGIN_ICMP6, SO_EE_ORIGIN_LOCAL, c_int, in6_addr, in6_pktinfo, setsockopt as setsockopt_c,
    sockaddr_in6, socklen_t,
};
use nix::sys::socket::sockopt::{
    Ipv6RecvErr, Ipv6RecvPacketInfo, Ipv6V6Only, RcvBuf, RcvBufForce, SndBuf, SndBufForce, UdpGroSegment,
};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SetSockOpt, SockFlag, SockProtocol,
    SockType, SockaddrIn6, bind, connect, getsockname, recvmsg, sendmsg, setsockopt, socket,
};
use segue_wire::icmpv6::Icmpv6;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Most that one call receives, bytes: a datagram, or several that the kernel has joined (UDP GRO).
const RECEIVE_LEN: usize = 65_536;
/// Most segments of one call (`UDP_MAX_SEGMENTS` of older kernels).
pub(crate) const MAX_SEGMENTS: usize = 64;
/// Most bytes of one call: the largest payload of a UDP datagram over IPv6.
pub(crate) const MAX_BATCH: usize = 65_535 - 8;

/// Most that an ICMPv6 error quotes of a datagram: an error has at most 1280 bytes (RFC 4443 section 2.4 (c)).
const MAX_QUOTED: usize = 1280 - 40 - 8 - 40 - 8;

/// An option of IPv6 that `nix` does not have, whose value is a number: `IPV6_MTU_DISCOVER`, whether packets are fragmented
/// here and whose path MTU counts; `IPV6_MTU`, the size of fragments.
#[derive(Clone, Copy)]
struct Ipv6Option(c_int);

impl SetSockOpt for Ipv6Option {
    type Val = c_int;

    #[allow(unsafe_code, reason = "setsockopt(2) takes a pointer")]
    fn set<F: AsFd>(&self, fd: &F, value: &c_int) -> nix::Result<()> {
        // SAFETY: the kernel reads one c_int, which lives throughout the call, through a pointer to it.
        let result = unsafe {
            setsockopt_c(
                fd.as_fd().as_raw_fd(),
                IPPROTO_IPV6,
                self.0,
                core::ptr::from_ref(value).cast(),
                size_of::<c_int>() as socklen_t,
            )
        };
        Errno::result(result).map(drop)
    }
}

/// Where packets go: all of a batch share it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    pub source: Ipv6Addr,
    /// Interface to send on; 0 leaves it to the routing table.
    pub interface_index: u32,
    pub destination: Ipv6Addr,
    /// UDP destination port; 0 for protocol 132.
    pub port: u16,
    /// Packets are longer than the path carries: they are sent in fragments of at most this size.
    pub fragment_to: Option<u16>,
}

/// Datagrams received with one call, all from one sender; their bytes are in the socket until the next call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagrams {
    pub from: Ipv6Addr,
    /// UDP source port; 0 for protocol 132.
    pub from_port: u16,
    pub to: Ipv6Addr,
    pub interface_index: u32,
    /// Bytes received.
    pub len: usize,
    /// Length of each datagram but the last, which may be shorter.
    pub segment: usize,
}

/// A socket for SCTP packets.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    /// Local UDP port; 0 for protocol 132.
    port: u16,
    /// `IPV6_MTU_DISCOVER`.
    discovery: c_int,
    /// Whether the kernel splits what it is given (UDP GSO).
    segmentation: bool,
    buffer: Vec<u8>,
    /// The last datagram that was longer than the interface takes, as far as an ICMPv6 error would quote it.
    refused: Option<(Route, Vec<u8>)>,
    control: Vec<u8>,
}

impl PacketSocket {
    /// A UDP socket on all addresses; port 0 lets the kernel choose. `finds_pmtu`: the path MTU is SCTP's business, and
    /// nothing is fragmented unless it says so.
    pub(crate) fn udp(port: u16, buffer: usize, finds_pmtu: bool) -> io::Result<Self> {
        let fd = socket(
            AddressFamily::Inet6,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::Udp,
        )?;
        setsockopt(&fd, Ipv6V6Only, &true)?;
        bind(fd.as_raw_fd(), &socket_address(Ipv6Addr::UNSPECIFIED, port, 0))?;
        let bound: SockaddrIn6 = getsockname(fd.as_raw_fd())?;
        // older kernels have no UDP GRO, and work without
        let _ = setsockopt(&fd, UdpGroSegment, &true);
        Self::new(fd, bound.port(), buffer, finds_pmtu)
    }

    /// A raw socket for IPv6 protocol 132.
    pub(crate) fn raw(buffer: usize, finds_pmtu: bool) -> io::Result<Self> {
        let fd = socket(
            AddressFamily::Inet6,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::Sctp,
        )?;
        Self::new(fd, 0, buffer, finds_pmtu)
    }

    fn new(fd: OwnedFd, port: u16, buffer: usize, finds_pmtu: bool) -> io::Result<Self> {
        setsockopt(&fd, Ipv6RecvPacketInfo, &true)?;
        setsockopt(&fd, Ipv6RecvErr, &true)?;
        let discovery = if finds_pmtu {
            IPV6_PMTUDISC_PROBE
        } else {
            IPV6_PMTUDISC_WANT
        };
        setsockopt(&fd, Ipv6Option(IPV6_MTU_DISCOVER), &discovery)?;
        // beyond net.core.rmem_max only with privileges
        if setsockopt(&fd, RcvBufForce, &buffer).is_err() {
            setsockopt(&fd, RcvBuf, &buffer)?;
        }
        if setsockopt(&fd, SndBufForce, &buffer).is_err() {
            setsockopt(&fd, SndBuf, &buffer)?;
        }
        Ok(Self {
            fd,
            port,
            discovery,
            segmentation: port != 0,
            buffer: vec![0; RECEIVE_LEN],
            refused: None,
            control: nix::cmsg_space!(in6_pktinfo, i32, nix::libc::sock_extended_err, sockaddr_in6),
        })
    }

    /// Local UDP port, if it is a UDP socket.
    pub(crate) const fn udp_port(&self) -> Option<u16> {
        if self.port == 0 { None } else { Some(self.port) }
    }

    /// Datagrams that have arrived; `None` if there are none. Never waits.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Datagrams>> {
        self.control.resize(self.control.capacity(), 0);
        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        let message = match recvmsg::<SockaddrIn6>(
            self.fd.as_raw_fd(),
            &mut slices,
            Some(&mut self.control),
            MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(message) => message,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let mut datagrams = Datagrams {
            from: Ipv6Addr::UNSPECIFIED,
            from_port: 0,
            to: Ipv6Addr::UNSPECIFIED,
            interface_index: 0,
            len: message.bytes,
            segment: message.bytes.max(1),
        };
        if let Some(address) = message.address {
            datagrams.from = address.ip();
            datagrams.from_port = if self.port == 0 { 0 } else { address.port() };
        }
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    datagrams.to = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    datagrams.interface_index = info.ipi6_ifindex;
                }
                ControlMessageOwned::UdpGroSegments(size) if size > 0 => {
                    datagrams.segment = size as usize;
                }
                _ => {}
            }
        }
        Ok(Some(datagrams))
    }

    /// An error that the kernel keeps with the socket: the ICMPv6 message if it was one, and `None` inside if it was another
    /// one; `None` if there are no more. Never waits.
    pub(crate) fn receive_error(&mut self) -> io::Result<Option<Option<Icmpv6>>> {
        self.control.resize(self.control.capacity(), 0);
        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        let message = match recvmsg::<SockaddrIn6>(
            self.fd.as_raw_fd(),
            &mut slices,
            Some(&mut self.control),
            MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_ERRQUEUE,
        ) {
            Ok(message) => message,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let (mut error, mut source) = (None, None);
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::Ipv6RecvErr(e, _) => error = Some(e),
                // the message came to the address that the packet had come from
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    source = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr))
                }
                _ => {}
            }
        }
        let (len, destination) = (message.bytes, message.address);
        if let Some(error) = error
            && error.ee_origin == SO_EE_ORIGIN_LOCAL
            && error.ee_errno == Errno::EMSGSIZE as u32
        {
            return Ok(Some(self.too_big_here(error.ee_info)));
        }
        let (Some(error), Some(source), Some(destination)) = (error, source, destination) else {
            return Ok(Some(None));
        };
        if error.ee_origin != SO_EE_ORIGIN_ICMP6 {
            return Ok(Some(None));
        }
        let notice = Notice {
            message_type: error.ee_type,
            code: error.ee_code,
            info: error.ee_info,
            source,
            destination: destination.ip(),
            udp_ports: self.udp_port().map(|own| (own, destination.port())),
            quoted: &self.buffer[..len],
        };
        Ok(Some(notice.message()))
    }

    /// What a router would say of the datagram that the interface did not take.
    fn too_big_here(&mut self, mtu: u32) -> Option<Icmpv6> {
        let (route, quoted) = self.refused.take()?;
        let notice = Notice {
            message_type: 2,
            code: 0,
            info: mtu,
            source: route.source,
            destination: route.destination,
            udp_ports: self.udp_port().map(|own| (own, route.port)),
            quoted: &quoted,
        };
        notice.message()
    }

    /// The bytes of what was received last.
    pub(crate) fn received(&self, datagrams: &Datagrams) -> impl Iterator<Item = &[u8]> {
        self.buffer[..datagrams.len].chunks(datagrams.segment)
    }

    /// Sends `bytes` as datagrams of `segment` bytes each, the last of which may be shorter. Waits while the send buffer is
    /// full.
    pub(crate) fn send(&mut self, route: &Route, bytes: &[u8], segment: usize) -> io::Result<()> {
        if let Some(mtu) = route.fragment_to {
            return Ok(self.send_fragmented(route, bytes, segment, mtu)?);
        }
        if self.segmentation && bytes.len() > segment {
            match self.send_once(route, bytes, Some(segment)) {
                // an interface that cannot, or a segment larger than its MTU
                Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE | Errno::EOPNOTSUPP) => {}
                other => return other.map_err(io::Error::from),
            }
        }
        let mut result = Ok(());
        for datagram in bytes.chunks(segment) {
            if let Err(e) = self.send_once(route, datagram, None) {
                if e == Errno::EMSGSIZE {
                    let quoted = &datagram[..datagram.len().min(MAX_QUOTED)];
                    self.refused = Some((*route, quoted.to_vec()));
                }
                result = Err(e.into());
            }
        }
        result
    }

    /// The same, in fragments of at most `mtu` bytes.
    fn send_fragmented(&self, route: &Route, bytes: &[u8], segment: usize, mtu: u16) -> nix::Result<()> {
        setsockopt(&self.fd, Ipv6Option(IPV6_MTU), &c_int::from(mtu))?;
        setsockopt(&self.fd, Ipv6Option(IPV6_MTU_DISCOVER), &IPV6_PMTUDISC_DONT)?;
        let mut result = Ok(());
        for datagram in bytes.chunks(segment) {
            result = self.send_once(route, datagram, None).and(result);
        }
        setsockopt(&self.fd, Ipv6Option(IPV6_MTU_DISCOVER), &self.discovery)?;
        setsockopt(&self.fd, Ipv6Option(IPV6_MTU), &0)?;
        result
    }

    fn send_once(&self, route: &Route, bytes: &[u8], segment: Option<usize>) -> nix::Result<()> {
        let info = in6_pktinfo {
            ipi6_addr: in6_addr {
                s6_addr: route.source.octets(),
            },
            ipi6_ifindex: route.interface_index,
        };
        let to = socket_address(route.destination, route.port, route.interface_index);
        let slices = [IoSlice::new(bytes)];
        let size = segment.map(|s| s as u16);
        let controls: [ControlMessage<'_>; 2];
        let one: [ControlMessage<'_>; 1];
        let controls: &[ControlMessage<'_>] = match &size {
            Some(size) => {
                controls = [
                    ControlMessage::Ipv6PacketInfo(&info),
                    ControlMessage::UdpGsoSegments(size),
                ];
                &controls
            }
            None => {
                one = [ControlMessage::Ipv6PacketInfo(&info)];
                &one
            }
        };
        let send = || {
            sendmsg(
                self.fd.as_raw_fd(),
                &slices,
                controls,
                MsgFlags::empty(),
                Some(&to),
            )
            .map(|_| ())
        };
        match send() {
            // interrupted, or an ICMP error of an earlier packet that is reported now: this one was not sent
            Err(
                Errno::EINTR
                | Errno::ECONNREFUSED
                | Errno::EHOSTUNREACH
                | Errno::ENETUNREACH
                | Errno::EPROTO
                | Errno::EACCES,
            ) => send(),
            other => other,
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket address; the interface matters to link-local addresses only.
fn socket_address(address: Ipv6Addr, port: u16, interface_index: u32) -> SockaddrIn6 {
    let scope_id = if address.is_unicast_link_local() {
        interface_index
    } else {
        0
    };
    std::net::SocketAddrV6::new(address, port, 0, scope_id).into()
}

/// The address that the routing table sends from to `destination`.
pub(crate) fn source_for(destination: Ipv6Addr) -> Option<Ipv6Addr> {
    let fd = socket(
        AddressFamily::Inet6,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::Udp,
    )
    .ok()?;
    // connecting a UDP socket sends nothing
    connect(fd.as_raw_fd(), &socket_address(destination, 9, 0)).ok()?;
    let bound: SockaddrIn6 = getsockname(fd.as_raw_fd()).ok()?;
    Some(bound.ip())
}
