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
