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
    let most = most.saturating_sub(HEADER_LEN + TCP_HEADER).max(LEAST) as u16;
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
/// What every host takes (RFC 9293 section 3.7.1: for IPv6, 1220).
const LEAST: usize = 1220 - 64;
