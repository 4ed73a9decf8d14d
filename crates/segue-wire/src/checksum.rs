//! The Internet checksum (RFC 1071) with the IPv6 pseudo-header (RFC 8200 section 8.1), and CRC32c (RFC 9260
//! appendix A).

use core::net::Ipv6Addr;

/// The addresses that an upper-layer checksum covers (RFC 8200 section 8.1).
///
/// Where a packet has a routing header, `destination` is the final one; see
/// [`Packet::final_destination`](crate::Packet::final_destination).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PseudoHeader {
    /// Source address.
    pub source: Ipv6Addr,
    /// Final destination address.
    pub destination: Ipv6Addr,
}

impl PseudoHeader {
    /// The checksum of an upper-layer packet. With zeros in the checksum field it is the value to put there; with a
    /// right checksum in place it is zero.
    #[must_use]
    pub fn checksum(&self, next_header: u8, upper_layer_packet: &[u8]) -> u16 {
        let mut sum = InternetChecksum::default();
        sum.add_bytes(&self.source.octets());
        sum.add_bytes(&self.destination.octets());
        sum.add_u32(upper_layer_packet.len() as u32);
        sum.add_u32(u32::from(next_header));
        sum.add_bytes(upper_layer_packet);
        sum.finish()
    }
}

/// Which addresses a TCP or UDP checksum covers on the wire: there are two rules for ILNPv6.
///
/// A packet without the ILNP nonce option follows IPv6's, and so does ICMPv6 always (RFC 6741 section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PseudoRule {
    /// The whole addresses as they are in the header (RFC 8200 section 8.1). For ILNPv6:
    /// draft-bhatti-ilnp-tcp-udp-checksums-00, which goes back to it.
    #[default]
    Ipv6,
    /// The node identifiers alone, with zeros in place of the locators (RFC 6741 section 4.2).
    Identifiers,
}

impl PseudoHeader {
    /// What `rule` leaves of the addresses.
    #[must_use]
    pub fn under(self, rule: PseudoRule) -> Self {
        let identifier = |address: Ipv6Addr| Ipv6Addr::from_bits(address.to_bits() & u128::from(u64::MAX));
        match rule {
            PseudoRule::Ipv6 => self,
            PseudoRule::Identifiers => Self {
                source: identifier(self.source),
                destination: identifier(self.destination),
            },
        }
    }

    /// The sum of the pseudo-header alone, not complemented: what is in the checksum field of a packet whose checksum
    /// is left to a device.
    #[must_use]
    pub fn partial_sum(&self, next_header: u8, upper_layer_len: usize) -> u16 {
        let mut sum = InternetChecksum::default();
        sum.add_bytes(&self.source.octets());
        sum.add_bytes(&self.destination.octets());
        sum.add_u32(upper_layer_len as u32);
        sum.add_u32(u32::from(next_header));
        !sum.finish()
    }

    /// The checksum that was `checksum` under this pseudo-header, under `new` (RFC 1624 section 3, equation 3).
    #[must_use]
    pub fn adjust(&self, checksum: u16, new: &Self) -> u16 {
        let checksum = adjust(checksum, &self.source.octets(), &new.source.octets());
        adjust(checksum, &self.destination.octets(), &new.destination.octets())
    }
}

/// The checksum that was `checksum` while it covered `old`, after those bytes have become `new`: equation 3 of RFC 1624
/// section 3, `HC' = ~(~HC + ~m + m')`. Both are whole 16-bit words of what it covers, and as many.
///
/// ```
/// # use segue_wire::checksum::adjust;
/// // the example of RFC 1624 section 4
/// assert_eq!(adjust(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
/// ```
#[must_use]
pub fn adjust(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    debug_assert!(
        old.len() == new.len() && old.len().is_multiple_of(2),
        "a difference of whole words"
    );
    let mut sum = InternetChecksum::default();
    sum.add_u32(u32::from(!checksum));
    let (old, _) = old.as_chunks::<2>();
    for word in old {
        sum.add_u32(u32::from(!u16::from_be_bytes(*word)));
    }
    sum.add_bytes(new);
    sum.finish()
}

/// The sum of RFC 1071, while it is being added up.
#[derive(Clone, Copy, Default, Debug)]
pub struct InternetChecksum(u64);

impl InternetChecksum {
    /// Adds 16-bit words in network order. An odd last byte is padded with zero, so only the last piece may be odd.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        // Words of 32 bits will do: 2^32 and 2^16 are both 1 modulo 2^16 - 1.
        let (words, tail) = bytes.as_chunks::<4>();
        for word in words {
            self.add_u32(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(tail) {
            *to = *from;
        }
        self.add_u32(u32::from_be_bytes(last));
    }

    /// Adds two 16-bit words.
    pub fn add_u32(&mut self, word: u32) {
        self.0 += u64::from(word);
    }

    /// The one's complement of the one's complement sum.
    #[must_use]
    pub const fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// CRC32c of an SCTP packet with its checksum field taken as zero (RFC 9260 section 6.8 and appendix A), as the bytes
/// to put into that field.
#[must_use]
pub fn sctp_crc32c(packet: &[u8]) -> [u8; 4] {
    let (before, rest) = packet.split_at(packet.len().min(8));
    let after = rest.get(4..).unwrap_or_default();
    let crc = crc32c::crc32c(before);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, after).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internet_checksum_of_rfc_1071_section_3() {
        let mut sum = InternetChecksum::default();
        sum.add_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn odd_last_byte_is_the_high_half_of_a_word() {
        let mut odd = InternetChecksum::default();
        odd.add_bytes(&[0x12, 0x34, 0x56]);
        assert_eq!(odd.finish(), !(0x1234 + 0x5600));
    }

    #[test]
    fn checksum_field_filled_in_sums_to_zero() {
        let pseudo = PseudoHeader {
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::LOCALHOST,
        };
        // Echo request, identifier 1, sequence 1: 2 (addresses) + 8 (length) + 58 + 0x8000 + 1 + 1 = 0x8046.
        let mut echo = [128, 0, 0, 0, 0, 1, 0, 1];
        assert_eq!(pseudo.checksum(58, &echo), !0x8046);
        echo[2..4].copy_from_slice(&(!0x8046_u16).to_be_bytes());
        assert_eq!(pseudo.checksum(58, &echo), 0);
    }

    #[test]
    fn adjusted_checksums_are_those_worked_out_anew() {
        let address = |n: u64| {
            Ipv6Addr::from_bits(u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
        };
        let data = [0xab, 0xcd, 0xef, 0x01, 0x23];
        for n in 1..500 {
            let old = PseudoHeader {
                source: address(n),
                destination: address(n + 1000),
            };
            let new = PseudoHeader {
                source: address(n + 2000),
                destination: address(n + 3000),
            };
            for rule in [PseudoRule::Ipv6, PseudoRule::Identifiers] {
                let new = new.under(rule);
                let adjusted = old.adjust(old.checksum(17, &data), &new);
                assert_eq!(adjusted, new.checksum(17, &data), "{n} {rule:?}");
            }
            assert_eq!(old.partial_sum(17, 5), !old.checksum_of_nothing(17, 5));
        }
    }

    impl PseudoHeader {
        /// The checksum of `len` bytes of zeros.
        fn checksum_of_nothing(&self, next_header: u8, len: usize) -> u16 {
            self.checksum(next_header, &vec![0; len])
        }
    }

    /// The vectors of RFC 3720 appendix B.4, which uses the same CRC.
    #[test]
    fn crc32c_known_answers() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
        // The field at offset 8 does not count, and the bytes come out least significant first.
        let mut packet = [0; 32];
        packet[8..12].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(sctp_crc32c(&packet), [0xaa, 0x36, 0x91, 0x8a]);
    }
}
