//! From the bytes of a frame to what flows are made of. Everything is read in place, through checked slices; what is cut
//! off or damaged is a named [`Skip`], which the analysis counts.
//!
//! Checksums are not verified: captures of the sending host hold what its network card has yet to fill in.

mod ip;
mod link;
mod packet;
mod tcp;

pub(super) use link::LinkType;
pub(super) use packet::{Address, Decoded, Marks, Skip};
pub(super) use tcp::{MptcpOption, Tcp, flag, mptcp_options};

/// TCP (RFC 9293).
pub(super) const TCP: u8 = 6;
/// UDP (RFC 768).
pub(super) const UDP: u8 = 17;
/// ICMPv6 (RFC 4443).
pub(super) const ICMPV6: u8 = 58;
/// SCTP (RFC 9260).
pub(super) const SCTP: u8 = 132;
/// Mobility header (RFC 6275).
pub(super) const MOBILITY: u8 = 135;

/// Reads a frame.
pub(super) fn decode(link: LinkType, frame: &[u8], wire_len: u32) -> Result<Decoded<'_>, Skip> {
    let found = link::network(link, frame)?;
    let wire_len = wire_len.saturating_sub(found.header_len as u32);
    let decoded = ip::decode(found.packet, wire_len, found.direction)?;
    Ok(Decoded {
        device: found.device,
        ..decoded
    })
}

/// A fragment other than the first, whose addresses and protocol are known, and where it begins.
#[cold]
pub(super) fn later_fragment(link: LinkType, frame: &[u8], wire_len: u32) -> Option<Decoded<'_>> {
    let found = link::network(link, frame).ok()?;
    let wire_len = wire_len.saturating_sub(found.header_len as u32);
    let decoded = ip::later_fragment(found.packet, wire_len, found.direction)?;
    Some(Decoded {
        device: found.device,
        ..decoded
    })
}

/// Source and destination of the outermost header of a frame that is cut off behind it.
#[cold]
pub(super) fn outer(link: LinkType, frame: &[u8]) -> Option<(Address, Address)> {
    ip::outer(link::network(link, frame).ok()?.packet)
}

/// Ports of a UDP datagram, what it carries, and how much of that there was on the wire. A first fragment is as long as the
/// whole, which its header tells: the others have none.
pub(super) fn udp<'a>(packet: &Decoded<'a>) -> Result<(u16, u16, &'a [u8], u32), Skip> {
    let header: &[u8; 8] = packet.payload.first_chunk().ok_or(Skip::CutOff)?;
    let [s0, s1, d0, d1, l0, l1, ..] = *header;
    let len = u32::from(u16::from_be_bytes([l0, l1]));
    // zero in captures of hosts that leave segmentation to their network cards
    let len = match len {
        0 => packet.payload_len,
        len if packet.fragment => len,
        len => len.min(packet.payload_len),
    };
    let data_len = len.checked_sub(8).ok_or(Skip::Malformed)?;
    let data = packet.payload.get(8..).unwrap_or_default();
    let data = data.get(..data_len as usize).unwrap_or(data);
    Ok((
        u16::from_be_bytes([s0, s1]),
        u16::from_be_bytes([d0, d1]),
        data,
        data_len,
    ))
}
