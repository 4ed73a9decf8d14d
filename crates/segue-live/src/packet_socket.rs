//! Packet sockets: IPv6 packets of an Ethernet interface as they arrive, before the kernel has done anything with them.

use crate::Buffers;
use crate::vnet::{MAX_SUPER_PACKET, Offload, VNET_HEADER_LEN};
use bytes::{Buf as _, Bytes};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc::{
    ARPHRD_ETHER, ARPHRD_LOOPBACK, ETH_P_IPV6, PACKET_ADD_MEMBERSHIP, PACKET_IGNORE_OUTGOING,
    PACKET_MR_ALLMULTI, PACKET_VNET_HDR, SO_ATTACH_FILTER, SOL_PACKET, SOL_SOCKET, c_int, packet_mreq,
    recv as recv_into, setsockopt, sock_filter, sock_fprog, socklen_t,
};
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, sendmsg,
    setsockopt as setsockopt_of, socket,
};
use std::io::{self, IoSlice};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A link-layer address.
pub type Mac = [u8; 6];

/// A frame received; its packet is in the socket until the next call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Who sent it.
    pub source: Mac,
    /// Offloads.
    pub offload: Offload,
    /// Length of the packet.
    pub length: usize,
}

/// What a socket is given of what arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes<'a> {
    /// All of IPv6, and every multicast group.
    Ipv6,
    /// What one of these selects. The socket is one for all protocols: it sees packets before the kernel's filter at ingress
    /// does, and a filter of its own passes over all others, and over what the host sends.
    Selected(&'a [Select]),
}

/// Some packets of all that arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Select {
    /// Those whose destination has this interface identifier, but for neighbour discovery, which is left to the kernel.
    Identifier(u64),
    /// Those to this address, but for neighbour discovery.
    Address(Ipv6Addr),
    /// Those to this address that are of Mobile IPv6 (RFC 6275): mobility headers, and a Home Address option in destination
    /// options that come first, where the option is first there too or behind padding of four bytes (section 6.3: 8n+6). And ICMPv6
    /// errors about packets that begin with a routing header, as those have that go from here to a care-of address.
    Mobility(Ipv6Addr),
}

/// A packet socket of one interface, with offloads.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    name: String,
    index: u32,
    mac: Mac,
    buffer: Vec<u8>,
}

impl PacketSocket {
    /// Opens one for the interface `name` of this thread's namespace. Needs `CAP_NET_RAW`.
    ///
    /// # Errors
    /// If there is no such Ethernet interface, or the kernel refuses.
    pub fn open(name: &str, takes: Takes<'_>) -> io::Result<Self> {
        let link = getifaddrs()?
            .filter(|i| i.interface_name == name)
            .find_map(|i| i.address.as_ref().and_then(|a| a.as_link_addr().copied()))
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is none of that name"))?;
        let mac = link
            .addr()
            .filter(|_| is_ethernet(link.hatype(), link.halen()))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not Ethernet"))?;
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            match takes {
                Takes::Ipv6 => SockProtocol::EthIpv6,
                Takes::Selected(_) => SockProtocol::EthAll,
            },
        )?;
        if let Takes::Selected(selected) = takes {
            attach(&socket, &filter(selected))?;
            set_option(&socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
        }
        // without the privilege, what the machine allows everybody has to do
        let _ = setsockopt_of(&socket, RcvBufForce, &RECEIVE_BUFFER);
        bind(socket.as_raw_fd(), &link)?;
        set_option(&socket, SOL_PACKET, PACKET_VNET_HDR, &1i32)?;
        if takes == Takes::Ipv6 {
            // advertisements and solicitations are multicast; the kernel joins no groups where it has no IPv6
            let membership = packet_mreq {
                mr_ifindex: link.ifindex() as c_int,
                mr_type: PACKET_MR_ALLMULTI as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set_option(&socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership)?;
        }
        // what came from other interfaces before the socket was bound to this one
        while recv(socket.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT).is_ok() {}
        Ok(Self {
            socket,
            name: name.to_owned(),
            index: link.ifindex() as u32,
            mac,
            buffer: vec![0; VNET_HEADER_LEN + ETHERNET_HEADER_LEN + MAX_SUPER_PACKET],
        })
    }

    /// From now on the socket is given what these select.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn select(&self, selected: &[Select]) -> io::Result<()> {
        attach(&self.socket, &filter(selected))
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
            let Some(length) = there(received)? else {
                return Ok(None);
            };
            let Some(packet) = length.checked_sub(VNET_HEADER_LEN + ETHERNET_HEADER_LEN) else {
                continue;
            };
            if length > self.buffer.len() {
                continue;
            }
            let (vnet, frame) = self.buffer.split_at(VNET_HEADER_LEN);
            if !self.is_for_us(frame) {
                continue;
            }
            return Ok(Some(Frame {
                source: mac_at(frame, 6),
                offload: Offload::parse(vnet, ETHERNET_HEADER_LEN as u16),
                length: packet,
            }));
        }
    }

    /// As [`receive`](Self::receive), into one of `buffers`.
    ///
    /// # Errors
    /// As the kernel has them.
    #[allow(unsafe_code, reason = "recv(2) takes a pointer")]
    pub fn receive_into(&self, buffers: &mut Buffers) -> io::Result<Option<(Offload, Bytes)>> {
        loop {
            let received = buffers.receive(|space| {
                // SAFETY: the kernel writes at most as many bytes as there is space.
                let length = unsafe {
                    recv_into(
                        self.socket.as_raw_fd(),
                        space.as_mut_ptr().cast(),
                        space.len(),
                        MsgFlags::MSG_DONTWAIT.bits(),
                    )
                };
                there(Errno::result(length).map(|length| length as usize))
            })?;
            let Some(mut packet) = received else {
                return Ok(None);
            };
            let Some((vnet, frame)) = packet.split_at_checked(VNET_HEADER_LEN) else {
                continue;
            };
            let offload = Offload::parse(vnet, ETHERNET_HEADER_LEN as u16);
            if frame.len() < ETHERNET_HEADER_LEN || !self.is_for_us(frame) {
                buffers.give_back(packet.freeze());
                continue;
            }
            packet.advance(VNET_HEADER_LEN + ETHERNET_HEADER_LEN);
            return Ok(Some((offload, packet.freeze())));
        }
    }

    /// Whether a frame is for this host, or for several.
    fn is_for_us(&self, frame: &[u8]) -> bool {
        let destination = mac_at(frame, 0);
        destination == self.mac || destination[0] & 1 == 1
    }

    /// The packet of a frame received last.
    #[must_use]
    pub fn packet(&self, frame: &Frame) -> &[u8] {
        let start = VNET_HEADER_LEN + ETHERNET_HEADER_LEN;
        self.buffer.get(start..start + frame.length).unwrap_or_default()
    }

    /// Sends an IPv6 packet that is in two parts, its headers and the rest; `false` if the interface takes none: it is down or
    /// unplugged, its queue is full, or the packet too long. Without `offload`, it has all its checksums.
    ///
    /// # Errors
    /// As the kernel has them otherwise.
    pub fn send(&self, to: Mac, offload: Offload, packet: [&[u8]; 2]) -> io::Result<bool> {
        let mut header = [0; ETHERNET_HEADER_LEN];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&self.mac);
        header[12..].copy_from_slice(&(ETH_P_IPV6 as u16).to_be_bytes());
        let vnet = offload.emit(ETHERNET_HEADER_LEN as u16);
        let slices = [
            IoSlice::new(&vnet),
            IoSlice::new(&header),
            IoSlice::new(packet[0]),
            IoSlice::new(packet[1]),
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
                | Errno::ENODEV
                | Errno::ENXIO
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

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How long a frame is that recv(2) gave; nothing if there is none.
fn there(received: nix::Result<usize>) -> io::Result<Option<usize>> {
    match received {
        Ok(length) => Ok(Some(length)),
        // the interface is down, and there is nothing to be had until it is up; or this was a super-packet of a kind that the
        // header has no word for, and is gone
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN | Errno::EINVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether frames of an interface begin with an Ethernet header, by the kind of its hardware and the length of its addresses: of Wi-Fi, bridges
/// and veth they do, and of the loopback. Tunnels (an address of four or sixteen bytes, or none) and InfiniBand have others.
const fn is_ethernet(kind: u16, address_len: usize) -> bool {
    matches!(kind, ARPHRD_ETHER | ARPHRD_LOOPBACK) && address_len == size_of::<Mac>()
}

const ETHERNET_HEADER_LEN: usize = 14;
/// Memory of the kernel for what waits, bytes: of super-packets of 64 kB that come while this process has no processor for some
/// milliseconds, the usual fifth of a megabyte holds two.
const RECEIVE_BUFFER: usize = 8 << 20;

fn mac_at(frame: &[u8], at: usize) -> Mac {
    let bytes = frame.get(at..).and_then(|b| b.first_chunk());
    bytes.copied().unwrap_or_default()
}

/// The filter of [`Takes::Selected`], in instructions of classic BPF: frame in, bytes to keep out. A block for each, which goes
/// on to the next if it does not select.
fn filter(selected: &[Select]) -> Vec<sock_filter> {
    let mut program = vec![
        step(LOAD_HALF, 12),
        test(EQUAL, ETH_P_IPV6 as u32, 1, 0),
        step(RETURN, 0),
    ];
    for select in selected {
        program.extend(match select {
            Select::Identifier(identifier) => block(&words(32, &identifier.to_be_bytes()), false),
            Select::Address(address) => block(&words(24, &address.octets()), false),
            Select::Mobility(address) => {
                let with = |all: &[(u16, u32, u32)]| {
                    let all = all.iter().map(|(load, at, value)| (*load, IP + at, *value));
                    block(&all.collect::<Vec<_>>(), true)
                };
                let blocks = [
                    with(&[(LOAD_BYTE, 6, MOBILITY_HEADER)]),
                    with(&[
                        (LOAD_BYTE, 6, DESTINATION_OPTIONS),
                        (LOAD_BYTE, 42, HOME_ADDRESS_OPTION),
                    ]),
                    with(&[
                        (LOAD_BYTE, 6, DESTINATION_OPTIONS),
                        (LOAD_BYTE, 46, HOME_ADDRESS_OPTION),
                    ]),
                    // RFC 4443 section 2.1: the highest bit of an error's type is zero; what it quotes begins at 48
                    with(&[
                        (LOAD_BYTE, 6, ICMPV6),
                        (LOAD_BYTE, 54, ROUTING),
                        (UNSET, 40, 0x80),
                    ]),
                ];
                // the address once, since the kernel takes only so much
                let mut all = Vec::new();
                tests(&words(24, &address.octets()), blocks.concat().len(), &mut all);
                all.extend(blocks.into_iter().flatten());
                all
            }
        });
    }
    program.push(step(RETURN, 0));
    program
}

/// The words at a place of the packet that are to be these bytes.
fn words(at: u32, bytes: &[u8]) -> Vec<(u16, u32, u32)> {
    let chunks = bytes.chunks_exact(4).enumerate();
    chunks
        .map(|(n, chunk)| {
            let value = chunk.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            (LOAD_WORD, IP + at + 4 * n as u32, value)
        })
        .collect()
}

/// Keeps what has these values at these places, or none of these bits where it says [`UNSET`]; with `all`, neighbour discovery too.
fn block(values: &[(u16, u32, u32)], all: bool) -> Vec<sock_filter> {
    // the kernel's: ICMPv6 types 133 to 137 (RFC 4861 section 4)
    let discovery = [
        step(LOAD_BYTE, IP + 6),
        test(EQUAL, 58, 0, 3),
        step(LOAD_BYTE, IP + 40),
        test(AT_LEAST, 133, 0, 1),
        test(GREATER, 137, 0, 1),
    ];
    let discovery: &[sock_filter] = if all { &[] } else { &discovery };
    let mut program = Vec::new();
    tests(values, discovery.len() + 1, &mut program);
    program.extend_from_slice(discovery);
    program.push(step(RETURN, u32::MAX));
    program
}

/// Goes on if these values are at these places, and leaves out the `behind` steps that follow if not.
fn tests(values: &[(u16, u32, u32)], behind: usize, program: &mut Vec<sock_filter>) {
    for (number, (load, at, value)) in values.iter().enumerate() {
        let left = (2 * (values.len() - number - 1) + behind) as u8;
        let unset = *load == UNSET;
        program.push(step(if unset { LOAD_BYTE } else { *load }, *at));
        program.push(if unset {
            test(ANY_BIT, *value, left, 0)
        } else {
            test(EQUAL, *value, 0, left)
        });
    }
}

fn step(code: u16, k: u32) -> sock_filter {
    test(code, k, 0, 0)
}

const fn test(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// In place of a load: a byte in which none of the bits is set.
const UNSET: u16 = u16::MAX;
const EQUAL: u16 = 0x15;
const ANY_BIT: u16 = 0x45;
const GREATER: u16 = 0x25;
const AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const IP: u32 = ETHERNET_HEADER_LEN as u32;
const MOBILITY_HEADER: u32 = 135;
const ICMPV6: u32 = 58;
const ROUTING: u32 = 43;
const DESTINATION_OPTIONS: u32 = 60;
const HOME_ADDRESS_OPTION: u32 = 0xc9;

#[allow(unsafe_code, reason = "setsockopt(2) takes a pointer to a pointer")]
fn attach(socket: &OwnedFd, program: &[sock_filter]) -> io::Result<()> {
    let program = sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads one sock_fprog and copies the instructions it points to, which live throughout the call.
    let result = unsafe {
        setsockopt(
            socket.as_raw_fd(),
            SOL_SOCKET,
            SO_ATTACH_FILTER,
            core::ptr::from_ref(&program).cast(),
            size_of::<sock_fprog>() as socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

#[allow(unsafe_code, reason = "setsockopt(2) takes a pointer")]
fn set_option<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as T has, and T lives throughout the call. Both types that this is used with
    // are made of integers without padding.
    let result = unsafe {
        setsockopt(
            socket.as_raw_fd(),
            level,
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
    use std::os::unix::net::UnixDatagram;

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6);
    const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 3, 4, 5, 6);

    /// A frame to an address, with a next header and what follows the fixed header.
    fn frame(to: Ipv6Addr, next_header: u8, rest: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; ETHERNET_HEADER_LEN + 40];
        frame[12..14].copy_from_slice(&(ETH_P_IPV6 as u16).to_be_bytes());
        frame[ETHERNET_HEADER_LEN + 6] = next_header;
        frame[ETHERNET_HEADER_LEN + 24..][..16].copy_from_slice(&to.octets());
        frame.extend_from_slice(rest);
        frame
    }

    /// Whether the kernel's own filter keeps a frame: that of a socket that needs no privileges.
    fn keeps(selected: &[Select], frame: &[u8]) -> bool {
        let (from, to) = UnixDatagram::pair().unwrap();
        let to: OwnedFd = to.into();
        attach(&to, &filter(selected)).unwrap();
        // one that is not kept is refused
        let _ = from.send(frame);
        recv(to.as_raw_fd(), &mut [0; 256], MsgFlags::MSG_DONTWAIT).is_ok_and(|length| length == frame.len())
    }

    #[test]
    fn an_interface_that_is_unplugged_takes_nothing() {
        let tried = std::thread::spawn(|| {
            let ip = |args: &str| {
                let mut command = std::process::Command::new("ip");
                command
                    .args(args.split(' '))
                    .status()
                    .is_ok_and(|status| status.success())
            };
            let unshared = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_ok();
            if !unshared || !ip("link add sg0 type veth peer name sg1") {
                eprintln!("SKIPPED: no namespace can be made here (they need root and the command ip)");
                return;
            }
            assert!(ip("link set sg0 up") && ip("link set sg1 up"));
            let socket = PacketSocket::open("sg0", Takes::Selected(&[Select::Identifier(1)])).unwrap();
            let send = || socket.send([2, 0, 0, 0, 0, 1], Offload::default(), [&[0x60; 40], &[]]);
            assert!(matches!(send(), Ok(true)));
            assert!(ip("link delete sg0"));
            for _ in 0..3 {
                assert!(matches!(send(), Ok(false)));
            }
        });
        tried.join().unwrap();
    }

    #[test]
    fn what_is_not_there_or_is_gone_is_no_error() {
        assert_eq!(there(Ok(60)).unwrap(), Some(60));
        for nothing in [Errno::EAGAIN, Errno::EINTR, Errno::ENETDOWN, Errno::EINVAL] {
            assert_eq!(there(Err(nothing)).unwrap(), None, "{nothing}");
        }
        assert!(there(Err(Errno::ENXIO)).is_err());
    }

    #[test]
    fn an_interface_of_another_kind_is_no_ethernet() {
        use nix::libc::{ARPHRD_INFINIBAND, ARPHRD_NONE, ARPHRD_PPP, ARPHRD_SIT, ARPHRD_TUNNEL6};
        for (kind, address_len, expected) in [
            (ARPHRD_ETHER, 6, true),
            (ARPHRD_LOOPBACK, 6, true),
            (ARPHRD_ETHER, 8, false),
            (ARPHRD_NONE, 0, false),
            (ARPHRD_PPP, 0, false),
            (ARPHRD_SIT, 4, false),
            (ARPHRD_TUNNEL6, 16, false),
            (ARPHRD_INFINIBAND, 20, false),
        ] {
            assert_eq!(is_ethernet(kind, address_len), expected, "{kind}");
        }
    }

    #[test]
    fn a_filter_keeps_what_is_selected_but_for_neighbour_discovery() {
        let identifier = [Select::Identifier(0x0003_0004_0005_0006)];
        let address = [Select::Address(ADDRESS)];
        let udp = |to| frame(to, 17, &[0; 8]);
        assert!(keeps(&identifier, &udp(ADDRESS)) && keeps(&identifier, &udp(OTHER)));
        assert!(keeps(&address, &udp(ADDRESS)) && !keeps(&address, &udp(OTHER)));
        assert!(!keeps(&identifier, &udp(Ipv6Addr::LOCALHOST)));
        assert!(!keeps(&[], &udp(ADDRESS)));
        for selected in [identifier, address] {
            for (kind, kept) in [
                (132, true),
                (133, false),
                (135, false),
                (137, false),
                (138, true),
                (1, true),
            ] {
                assert_eq!(
                    keeps(&selected, &frame(ADDRESS, 58, &[kind, 0, 0, 0])),
                    kept,
                    "{kind}"
                );
            }
        }
        let mut of_ipv4 = udp(ADDRESS);
        of_ipv4[12..14].copy_from_slice(&[8, 0]);
        assert!(!keeps(&address, &of_ipv4));
    }

    #[test]
    fn of_mobile_ipv6_are_mobility_headers_and_home_address_options() {
        let both = [Select::Address(OTHER), Select::Mobility(ADDRESS)];
        let options = |padded: bool| {
            let mut options = vec![6, if padded { 2 } else { 1 }];
            options.extend_from_slice(if padded { &[1, 2, 0, 0] } else { &[] });
            options.extend_from_slice(&[0xc9, 16]);
            options.resize(40, 0);
            frame(ADDRESS, 60, &options)
        };
        assert!(keeps(&both, &frame(ADDRESS, 135, &[59, 0, 1, 0])));
        assert!(keeps(&both, &options(false)) && keeps(&both, &options(true)));
        let mut other = options(true);
        other[ETHERNET_HEADER_LEN + 46] = 0x05;
        assert!(!keeps(&both, &other));
        for next_header in [6, 17, 58, 43] {
            assert!(
                !keeps(&both, &frame(ADDRESS, next_header, &[0xc9; 40])),
                "{next_header}"
            );
        }
        // an error about a packet with a routing header, and what else ICMPv6 is
        let error = |kind: u8, quoted: u8| {
            let mut message = [0; 48];
            (message[0], message[14]) = (kind, quoted);
            frame(ADDRESS, 58, &message)
        };
        assert!(keeps(&both, &error(2, 43)) && keeps(&both, &error(4, 43)));
        assert!(!keeps(&both, &error(2, 6)) && !keeps(&both, &error(128, 43)));
        // the kernel takes a filter for as many addresses as there may be
        let many: Vec<Select> = (0..64)
            .map(|n| Select::Mobility(Ipv6Addr::from_bits(n)))
            .collect();
        let last = frame(Ipv6Addr::from_bits(63), 135, &[59, 0, 1, 0]);
        assert!(keeps(&many, &last));
        // the block before it is left at the first word that differs, and the next begins
        assert!(keeps(&both, &frame(OTHER, 6, &[0; 20])));
        assert!(!keeps(&both, &frame(Ipv6Addr::LOCALHOST, 135, &[59, 0, 1, 0])));
    }
}
