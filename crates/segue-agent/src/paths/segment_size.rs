//! The maximum segment size that a TCP SYN announces (RFC 9293 section 3.7.1).

use bytes::BytesMut;
use segue_wire::checksum::adjust;
use segue_wire::ipv6::HEADER_LEN;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};

/// Makes the MSS in a SYN no greater than what packets of `most` bytes have room for. Whether it was.
pub(super) fn clamp(packet: &mut Packet, most: usize) -> bool {
    let Payload::Raw(raw) = &mut packet.payload else {
        return false;
    };
    if raw.next_header != TCP || raw.bytes.get(13).is_none_or(|flags| flags & SYN == 0) {
        return false;
    }
    let Some((at, announced)) = announced(&raw.bytes) else {
        return false;
    };
    let room = most.saturating_sub(HEADER_LEN + TCP_HEADER);
    let most = room.max(LEAST).min(u16::MAX.into()) as u16;
    if announced <= most {
        return false;
    }
    let mut bytes = BytesMut::from(&raw.bytes[..]);
    // what a device is to add up is not in the field yet
    if raw.checksum != ChecksumState::Partial {
        let field = u16::from_be_bytes([bytes[CHECKSUM], bytes[CHECKSUM + 1]]);
        // a word of the checksum begins at an even place
        let aligned = at & !1;
        let end = (at + 3) & !1;
        let old = bytes[aligned..end].to_vec();
        bytes[at..at + 2].copy_from_slice(&most.to_be_bytes());
        let value = adjust(field, &old, &bytes[aligned..end]);
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&value.to_be_bytes());
    } else {
        bytes[at..at + 2].copy_from_slice(&most.to_be_bytes());
    }
    raw.bytes = bytes.freeze();
    true
}

/// Where the MSS is, and what it is; `None` if there is none in a header that is whole.
fn announced(segment: &[u8]) -> Option<(usize, u16)> {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const MSS: u8 = 2;
    let header = 4 * usize::from(segment.get(12)? >> 4);
    let options = segment.get(..header)?;
    let mut at = TCP_HEADER;
    loop {
        match *options.get(at)? {
            END => return None,
            NOTHING => at += 1,
            MSS if options.get(at + 1) == Some(&4) => {
                let value = options.get(at + 2..)?.first_chunk::<2>()?;
                return Some((at + 2, u16::from_be_bytes(*value)));
            }
            _ => {
                let length = usize::from(*options.get(at + 1)?);
                if length < 2 {
                    return None;
                }
                at += length;
            }
        }
    }
}

const TCP: u8 = 6;
const TCP_HEADER: usize = 20;
const CHECKSUM: usize = 16;
const SYN: u8 = 0x02;
/// What always fits: 1220 bytes are what there is room for in 1280 (RFC 9293 section 3.7.1), less the 64 by which a packet grows at
/// most, in a tunnel and with a routing header. An MTU that is lower is nobody's that speaks IPv6 (RFC 8200 section 5).
const LEAST: usize = 1220 - 64;

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::{Ipv6Header, RawPayload};
    use std::net::Ipv6Addr;

    #[test]
    fn a_size_is_between_what_always_fits_and_what_can_be_said() {
        for (announced, most, expected) in [
            (1460u16, 1400usize, 1340u16),
            (1460, 600, 1156),
            // more than sixteen bits: of a loopback, or of a virtual link
            (1460, 65_536 + 60, 1460),
            (u16::MAX, 70_000, u16::MAX),
        ] {
            let mut bytes = vec![0; 24];
            (bytes[12], bytes[13]) = (6 << 4, SYN);
            bytes[20..22].copy_from_slice(&[2, 4]);
            bytes[22..].copy_from_slice(&announced.to_be_bytes());
            let mut packet = Packet {
                ip: Ipv6Header {
                    source: Ipv6Addr::LOCALHOST,
                    destination: Ipv6Addr::LOCALHOST,
                    traffic_class: 0,
                    hop_limit: 64,
                    flow_label: 0,
                },
                extensions: Vec::new(),
                payload: Payload::Raw(RawPayload {
                    next_header: TCP,
                    bytes: bytes.into(),
                    checksum: ChecksumState::Partial,
                    segment_size: None,
                }),
            };
            assert_eq!(clamp(&mut packet, most), expected < announced);
            let Payload::Raw(raw) = &packet.payload else {
                panic!("TCP in bytes")
            };
            assert_eq!(raw.bytes[22..], expected.to_be_bytes(), "of {most}");
        }
    }
}
