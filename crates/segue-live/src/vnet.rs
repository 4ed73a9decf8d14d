//! What the kernel and a driver in user space tell each other of a packet beside its bytes: `struct virtio_net_hdr`, which
//! packet sockets (`PACKET_VNET_HDR`) and TUN devices (`IFF_VNET_HDR`) share.

/// What the kernel says of a packet beside its bytes, and what it can be asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The transport's checksum is only the sum of the pseudo-header: the header begins at the first number of bytes into the
    /// packet, its checksum field at the second number of bytes into the header.
    pub partial_checksum: Option<(u16, u16)>,
    /// Bytes of data in each segment, if this is a super-packet.
    pub segment_size: Option<u16>,
    /// It is one of UDP, whose segments are datagrams, and not of TCP.
    pub datagrams: bool,
}

/// `struct virtio_net_hdr`: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset, the last four of 16 bits.
pub(crate) const VNET_HEADER_LEN: usize = 10;
/// Longest super-packet without jumbograms.
pub(crate) const MAX_SUPER_PACKET: usize = 65_536;

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Beside the type.
const GSO_ECN: u8 = 0x80;

impl Offload {
    /// What a header says, of a packet behind `link_header` bytes of the link's.
    pub(crate) fn parse(header: &[u8], link_header: u16) -> Self {
        let half = |at: usize| {
            let bytes = header.get(at..).and_then(|b| b.first_chunk());
            u16::from_ne_bytes(bytes.copied().unwrap_or_default())
        };
        let byte = |at: usize| header.get(at).copied().unwrap_or_default();
        let kind = byte(1) & !GSO_ECN;
        // the start of the transport's header counts from the frame
        let start = half(6).saturating_sub(link_header);
        Self {
            partial_checksum: (byte(0) & NEEDS_CSUM != 0).then(|| (start, half(8))),
            segment_size: matches!(kind, GSO_TCPV6 | GSO_UDP_L4).then(|| half(4)),
            datagrams: kind == GSO_UDP_L4,
        }
    }

    /// The header that says so. The kernel works out the length of the headers by itself where it is left at zero.
    pub(crate) fn emit(self, link_header: u16) -> [u8; VNET_HEADER_LEN] {
        let mut header = [0; VNET_HEADER_LEN];
        let mut put = |at: usize, half: u16| header[at..at + 2].copy_from_slice(&half.to_ne_bytes());
        if let Some((start, offset)) = self.partial_checksum {
            put(6, start + link_header);
            put(8, offset);
        }
        put(4, self.segment_size.unwrap_or_default());
        header[0] = if self.partial_checksum.is_some() {
            NEEDS_CSUM
        } else {
            0
        };
        header[1] = match (self.segment_size, self.datagrams) {
            (None, _) => 0,
            (Some(_), false) => GSO_TCPV6,
            (Some(_), true) => GSO_UDP_L4,
        };
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_super_packet() {
        let mut header = vec![NEEDS_CSUM, GSO_TCPV6];
        for half in [0u16, 1428, 54, 16] {
            header.extend(half.to_ne_bytes());
        }
        let expected = Offload {
            partial_checksum: Some((40, 16)),
            segment_size: Some(1428),
            datagrams: false,
        };
        assert_eq!(Offload::parse(&header, 14), expected);
        assert_eq!(expected.emit(14)[..], header);
        header[1] = GSO_UDP_L4;
        let datagrams = Offload {
            datagrams: true,
            ..expected
        };
        assert_eq!(Offload::parse(&header, 14), datagrams);
        assert_eq!(datagrams.emit(14)[..], header);
        // the bit beside the type is another's business, and what no kernel sends for IPv6 is whole
        header[1] = GSO_TCPV6 | GSO_ECN;
        assert_eq!(Offload::parse(&header, 14), expected);
        header[1] = 1;
        assert_eq!(Offload::parse(&header, 14).segment_size, None);
        assert_eq!(Offload::parse(&[0; VNET_HEADER_LEN], 14), Offload::default());
        assert_eq!(Offload::default().emit(14), [0; VNET_HEADER_LEN]);
        // a header that is cut off says nothing
        assert_eq!(Offload::parse(&[], 0), Offload::default());
    }
}
