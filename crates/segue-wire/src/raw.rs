//! The upper layer of a packet of somebody else's stack, in bytes: what a shim under a kernel's own transport sees.
//!
//! Such a packet need not be what goes on the wire. Its checksum may have been left to a device
//! ([`ChecksumState::Partial`]), and it may be a super-packet that a device is to cut into segments
//! ([`RawPayload::segment_size`]); in virtio's terms `VIRTIO_NET_HDR_F_NEEDS_CSUM` and `gso_size`. A shim that changes
//! addresses adjusts the checksum by difference, in whatever state it is, and never has to read the bytes.

use crate::ParseError;
use crate::checksum::{PseudoHeader, PseudoRule};
use crate::icmpv6::{self, Icmpv6};
use crate::ipv6::{self, ExtensionHeader, Ipv6Header};
use crate::packet::{TCP, has_rule, ilnp_nonce, pseudo_header, set_rule};
use crate::reader::Reader;
use crate::writer::set;
use crate::{Packet, Payload, udp};
use bytes::{Bytes, BytesMut};

/// An upper-layer packet in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPayload {
    /// Protocol number.
    pub next_header: u8,
    /// From the transport's header on.
    pub bytes: Bytes,
    /// What its checksum field holds.
    pub checksum: ChecksumState,
    /// Bytes of user data in each segment of a super-packet; the last may be shorter. Nothing for one that is whole.
    pub segment_size: Option<u16>,
}

/// What is in a checksum field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumState {
    /// The checksum, as far as is known.
    Complete,
    /// The sum of the pseudo-header, not complemented: a device is to add up the bytes.
    Partial,
    /// The checksum, which a device has verified.
    Verified,
}

impl Packet {
    /// Parses the headers of IPv6 and leaves the upper layer as bytes, which share the storage of `bytes`; but ICMPv6 is
    /// parsed, because a shim reads it.
    ///
    /// A super-packet has a partial checksum then. One that a device joined as a list of packets (Linux, `rx-gro-list`) comes
    /// with that of the first of them, which is not its own, and whoever joined them has verified all.
    ///
    /// Where there is an ILNP nonce, the rule that the checksum of TCP or UDP follows is found out and noted at the
    /// nonce. Without one, checksums are left for the transport to verify.
    ///
    /// # Errors
    /// If a header is truncated or malformed; if ICMPv6 is, or its checksum is wrong; if the checksum behind a nonce is
    /// right by neither rule.
    pub fn parse_raw(
        bytes: &Bytes,
        checksum: ChecksumState,
        segment_size: Option<u16>,
    ) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "IPv6");
        let (ip, payload_length, mut next_header) = Ipv6Header::parse(&mut reader)?;
        // a super-packet of more than 64 kB has no length (RFC 2675 without its option)
        let mut reader = if payload_length == 0 && segment_size.is_some() {
            reader.named("IPv6 payload")
        } else {
            reader.take(usize::from(payload_length), "IPv6 payload")?
        };
        let mut extensions = Vec::new();
        let mut incomplete = false;
        while !incomplete
            && ExtensionHeader::is_known(next_header)
            && (next_header != ipv6::HOP_BY_HOP || extensions.is_empty())
        {
            let (extension, following) = ExtensionHeader::parse(next_header, &mut reader)?;
            incomplete = extension.is_incomplete_fragment();
            next_header = following;
            extensions.push(extension);
        }
        let mut raw = RawPayload {
            next_header,
            bytes: reader.rest(),
            checksum,
            segment_size,
        };
        let pseudo = pseudo_header(&ip, &extensions);
        if segment_size.is_some() && !incomplete {
            raw.leave_to_device(&pseudo);
        }
        let payload = if incomplete {
            Payload::Unknown {
                next_header,
                bytes: raw.bytes,
            }
        } else if next_header == icmpv6::NEXT_HEADER {
            raw.complete(&pseudo);
            Payload::Icmpv6(Icmpv6::parse(&raw.bytes, &pseudo)?)
        } else {
            if has_rule(next_header) && ilnp_nonce(&extensions).is_some() {
                let rule = raw.rule(&pseudo).ok_or(ParseError::BadChecksum("transport"))?;
                set_rule(&mut extensions, rule);
            }
            Payload::Raw(raw)
        };
        Ok(Self {
            ip,
            extensions,
            payload,
        })
    }
}

impl RawPayload {
    /// Where the checksum is in the header; `None` for a protocol without one over the addresses.
    #[must_use]
    pub const fn checksum_offset(&self) -> Option<usize> {
        match self.next_header {
            TCP => Some(16),
            udp::NEXT_HEADER => Some(6),
            icmpv6::NEXT_HEADER => Some(2),
            _ => None,
        }
    }

    /// Makes a checksum over the addresses `old` one over `new`: by difference, or in the partial sum (RFC 1624). Bytes
    /// that are shared are copied.
    pub fn adjust(&mut self, old: &PseudoHeader, new: &PseudoHeader) {
        let Some((at, field)) = self.field().filter(|_| old != new) else {
            return;
        };
        let value = match self.checksum {
            // a UDP checksum of zero is none at all, and stays so
            ChecksumState::Complete | ChecksumState::Verified if field == 0 && self.is_udp() => return,
            ChecksumState::Complete | ChecksumState::Verified => self.never_zero(old.adjust(field, new)),
            // eqn. 3 works on the complement
            ChecksumState::Partial => !old.adjust(!field, new),
        };
        self.put(at, value);
    }

    /// Finishes a partial checksum. The pseudo-header's sum is in the field already, by whatever rule.
    ///
    /// A super-packet is for [`segments`](Self::segments), which finish the checksums of each.
    pub fn complete(&mut self, pseudo_header: &PseudoHeader) {
        if self.checksum != ChecksumState::Partial {
            return;
        }
        self.checksum = ChecksumState::Complete;
        if let Some((at, _)) = self.field() {
            self.put(at, 0);
            let value = pseudo_header.checksum(self.next_header, &self.bytes);
            self.put(at, self.never_zero(value));
        }
    }

    /// Leaves the checksum to a device, whatever is in its field.
    fn leave_to_device(&mut self, pseudo_header: &PseudoHeader) {
        if self.checksum == ChecksumState::Partial {
            return;
        }
        if let Some((at, _)) = self.field() {
            self.put(at, pseudo_header.partial_sum(self.next_header, self.bytes.len()));
            self.checksum = ChecksumState::Partial;
        }
    }

    /// Which rule the checksum follows, given the whole addresses: `None` if neither.
    #[must_use]
    pub fn rule(&self, pseudo_header: &PseudoHeader) -> Option<PseudoRule> {
        let (_, field) = self.field()?;
        [PseudoRule::Ipv6, PseudoRule::Identifiers]
            .into_iter()
            .find(|rule| {
                let pseudo = pseudo_header.under(*rule);
                match self.checksum {
                    ChecksumState::Verified => *rule == PseudoRule::Ipv6,
                    ChecksumState::Complete if field == 0 && self.is_udp() => false,
                    ChecksumState::Complete => pseudo.checksum(self.next_header, &self.bytes) == 0,
                    ChecksumState::Partial => {
                        let sum = pseudo.partial_sum(self.next_header, self.bytes.len());
                        // the two zeros of one's complement
                        sum == field || sum % 0xffff == field % 0xffff
                    }
                }
            })
    }

    /// A super-packet in segments with their checksums, or the packet itself if it is none: where the path cannot do it.
    ///
    /// TCP (RFC 9293 section 3.8.3): each segment has the header, with its own sequence number; FIN and PSH are the
    /// last one's, CWR the first one's (RFC 3168 section 6.1.2). UDP: each is a datagram with its own length.
    ///
    /// # Errors
    /// If the header is not whole, or the protocol neither TCP nor UDP.
    pub fn segments(&self, pseudo_header: &PseudoHeader) -> Result<Vec<Self>, ParseError> {
        let Some(size) = self.segment_size.map(usize::from).filter(|s| *s > 0) else {
            let mut whole = self.clone();
            whole.segment_size = None;
            whole.complete(pseudo_header);
            return Ok(vec![whole]);
        };
        let header_len = match self.next_header {
            TCP => 4 * usize::from(self.bytes.get(12).copied().unwrap_or(0) >> 4),
            udp::NEXT_HEADER => udp::HEADER_LEN,
            _ => return Err(ParseError::BadValue("protocol of a super-packet")),
        };
        let least = if self.next_header == TCP {
            20
        } else {
            udp::HEADER_LEN
        };
        let (header, data) = self
            .bytes
            .split_at_checked(header_len)
            .filter(|_| header_len >= least)
            .ok_or(ParseError::Truncated("super-packet"))?;
        let chunks: Vec<&[u8]> = if data.is_empty() {
            vec![data]
        } else {
            data.chunks(size).collect()
        };
        let last = chunks.len() - 1;
        Ok(chunks
            .into_iter()
            .enumerate()
            .map(|(number, chunk)| {
                let mut bytes = BytesMut::with_capacity(header.len() + chunk.len());
                bytes.extend_from_slice(header);
                bytes.extend_from_slice(chunk);
                if self.next_header == TCP {
                    edit_tcp_header(&mut bytes, number * size, number == 0, number == last);
                } else {
                    let len = bytes.len() as u16;
                    set(&mut bytes, 4, &len.to_be_bytes());
                }
                let mut segment = Self {
                    next_header: self.next_header,
                    bytes: bytes.freeze(),
                    checksum: ChecksumState::Partial,
                    segment_size: None,
                };
                segment.complete(pseudo_header);
                segment
            })
            .collect())
    }

    /// Appends the bytes as they are to be on the wire: a partial checksum is finished.
    pub(crate) fn emit(&self, pseudo_header: &PseudoHeader, out: &mut Vec<u8>) {
        if self.checksum == ChecksumState::Partial {
            let mut finished = self.clone();
            finished.complete(pseudo_header);
            out.extend_from_slice(&finished.bytes);
        } else {
            out.extend_from_slice(&self.bytes);
        }
    }

    /// Where the checksum is, and what is there.
    fn field(&self) -> Option<(usize, u16)> {
        let at = self.checksum_offset()?;
        let field = self.bytes.get(at..)?.first_chunk::<2>()?;
        Some((at, u16::from_be_bytes(*field)))
    }

    fn put(&mut self, at: usize, value: u16) {
        let bytes = core::mem::take(&mut self.bytes);
        let mut bytes = bytes
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        set(&mut bytes, at, &value.to_be_bytes());
        self.bytes = bytes.freeze();
    }

    const fn is_udp(&self) -> bool {
        self.next_header == udp::NEXT_HEADER
    }

    /// UDP has no checksum of zero (RFC 768).
    const fn never_zero(&self, checksum: u16) -> u16 {
        if checksum == 0 && self.is_udp() {
            0xffff
        } else {
            checksum
        }
    }
}

/// Makes the header of a super-packet that of the segment whose data is `offset` bytes behind.
fn edit_tcp_header(bytes: &mut [u8], offset: usize, first: bool, last: bool) {
    const FIN_AND_PSH: u8 = 0x09;
    const CWR: u8 = 0x80;
    if let Some(sequence) = bytes.get(4..).and_then(|b| b.first_chunk::<4>()) {
        let sequence = u32::from_be_bytes(*sequence).wrapping_add(offset as u32);
        set(bytes, 4, &sequence.to_be_bytes());
    }
    if let Some(flags) = bytes.get_mut(13) {
        if !last {
            *flags &= !FIN_AND_PSH;
        }
        if !first {
            *flags &= !CWR;
        }
    }
}
