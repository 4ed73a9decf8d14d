//! TCP headers (RFC 9293 section 3.1), timestamps (RFC 7323) and the options of MPTCP (RFC 8684, RFC 6824).

use super::packet::{Decoded, Skip};

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Tcp<'a> {
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// Bytes of data on the wire.
    pub data_len: u32,
    /// TSval and TSecr (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    pub options: &'a [u8],
    /// Bytes of options that were not captured.
    pub cut: usize,
}

/// Flags of TCP.
pub(in crate::analyze) mod flag {
    pub(in crate::analyze) const FIN: u8 = 1;
    pub(in crate::analyze) const SYN: u8 = 2;
    pub(in crate::analyze) const RST: u8 = 4;
    pub(in crate::analyze) const ACK: u8 = 16;
}

impl<'a> Tcp<'a> {
    /// Reads the header of a decoded packet.
    pub(in crate::analyze) fn parse(packet: &Decoded<'a>) -> Result<Self, Skip> {
        parse(packet.payload, packet.payload_len)
    }

    /// The first block of a selective acknowledgement (RFC 2018 section 4: what was received last).
    pub(in crate::analyze) fn sack(&self) -> Option<(u32, u32)> {
        sack(self.options)
    }

    /// Whether there is more among the options than timestamps, as there mostly is not.
    pub(in crate::analyze) fn has_more_options(&self) -> bool {
        !matches!(self.options, [] | [1, 1, 8, 10, _, _, _, _, _, _, _, _])
    }
}

const TIMESTAMPS: u8 = 8;
const MPTCP: u8 = 30;
const SACK: u8 = 5;

pub(super) fn parse(payload: &[u8], payload_len: u32) -> Result<Tcp<'_>, Skip> {
    let header: &[u8; 20] = payload.first_chunk().ok_or(Skip::CutOff)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < 20 || payload_len < header_len as u32 {
        return Err(Skip::Malformed);
    }
    // a snap length may cut options off
    let options = payload.get(20..header_len.min(payload.len())).unwrap_or_default();
    Ok(Tcp {
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port: u16::from_be_bytes([header[2], header[3]]),
        seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        ack: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
        flags: header[13],
        window: u16::from_be_bytes([header[14], header[15]]),
        data_len: payload_len - header_len as u32,
        timestamps: timestamps(options),
        options,
        cut: header_len.saturating_sub(payload.len()),
    })
}

fn timestamps(options: &[u8]) -> Option<(u32, u32)> {
    // as everybody sends them once a connection is established
    if let Some(&[1, 1, TIMESTAMPS, 10, a, b, c, d, e, f, g, h]) = options.first_chunk() {
        return Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
    }
    let data = find(options, TIMESTAMPS).next()?;
    let &[a, b, c, d, e, f, g, h] = data.first_chunk()?;
    Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

pub(super) fn sack(options: &[u8]) -> Option<(u32, u32)> {
    let &[a, b, c, d, e, f, g, h] = find(options, SACK).next()?.first_chunk()?;
    Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

/// Data of every option of a kind.
fn find(options: &[u8], wanted: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = options;
    core::iter::from_fn(move || {
        loop {
            let (&kind, after) = rest.split_first()?;
            match kind {
                0 => return None,
                1 => rest = after,
                _ => {
                    let len = usize::from(*after.first()?);
                    let (option, after) = rest.split_at_checked(len).filter(|_| len >= 2)?;
                    rest = after;
                    if kind == wanted {
                        return option.get(2..);
                    }
                }
            }
        }
    })
}

/// An option of MPTCP, as far as an observer needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum MptcpOption {
    /// MP_CAPABLE with the keys that it carries: the sender's, and in the third packet the receiver's too.
    Capable {
        version: u8,
        sender_key: Option<u64>,
        receiver_key: Option<u64>,
    },
    /// MP_JOIN on a SYN: the token of the receiver's connection.
    JoinSyn {
        token: u32,
        backup: bool,
    },
    /// MP_JOIN on a SYN/ACK or the third packet.
    JoinOther,
    /// DSS with a mapping: data sequence number, its length in bytes on the wire, subflow sequence number from the
    /// beginning of the subflow, length.
    Mapping {
        dsn: u64,
        wide: bool,
        ssn: u32,
        len: u16,
        fin: bool,
        ack: Option<u32>,
    },
    /// DSS without a mapping; the lower half of its data ACK.
    DataAck {
        ack: Option<u32>,
    },
    AddAddress {
        echo: bool,
    },
    RemoveAddress,
    Priority {
        backup: bool,
    },
    /// MP_FAIL, MP_FASTCLOSE or MP_TCPRST: the subflow, or the connection, is over.
    Ends,
    Other,
}

/// The options of MPTCP in a segment.
pub(in super::super) fn mptcp_options(
    options: &[u8],
    syn: bool,
    ack: bool,
) -> impl Iterator<Item = MptcpOption> {
    find(options, MPTCP).filter_map(move |data| mptcp(data, syn, ack))
}

/// Reads what follows kind and length: the subtype in the upper half of the first byte.
fn mptcp(data: &[u8], syn: bool, ack: bool) -> Option<MptcpOption> {
    let first = *data.first()?;
    let key = |at: usize| {
        data.get(at..)
            .and_then(|b| b.first_chunk())
            .map(|b| u64::from_be_bytes(*b))
    };
    Some(match first >> 4 {
        // | subtype, version | flags | sender's key (8) | receiver's key (8) | ...
        0 => MptcpOption::Capable {
            version: first & 15,
            sender_key: key(2),
            receiver_key: if syn { None } else { key(10) },
        },
        1 if syn && !ack => MptcpOption::JoinSyn {
            token: u32::from_be_bytes(*data.get(2..)?.first_chunk()?),
            backup: first & 1 != 0,
        },
        1 => MptcpOption::JoinOther,
        2 => dss(data)?,
        3 => MptcpOption::AddAddress { echo: first & 1 != 0 },
        4 => MptcpOption::RemoveAddress,
        5 => MptcpOption::Priority {
            backup: first & 1 != 0,
        },
        6..=8 => MptcpOption::Ends,
        _ => MptcpOption::Other,
    })
}

/// ```text
/// | subtype, reserved | F m M a A | data ACK (0, 4, 8) | DSN (4, 8) | SSN (4) | length (2) | checksum (2) |
/// ```
fn dss(data: &[u8]) -> Option<MptcpOption> {
    let flags = *data.get(1)?;
    let mut at = 2;
    let mut ack = None;
    if flags & 1 != 0 {
        let len = if flags & 2 != 0 { 8 } else { 4 };
        let low = data.get(at + len - 4..).and_then(|b| b.first_chunk());
        ack = low.map(|b| u32::from_be_bytes(*b));
        at += len;
    }
    if flags & 4 == 0 {
        return Some(MptcpOption::DataAck { ack });
    }
    let wide = flags & 8 != 0;
    let dsn = if wide {
        u64::from_be_bytes(*data.get(at..)?.first_chunk()?)
    } else {
        u64::from(u32::from_be_bytes(*data.get(at..)?.first_chunk()?))
    };
    at += if wide { 8 } else { 4 };
    Some(MptcpOption::Mapping {
        dsn,
        wide,
        ssn: u32::from_be_bytes(*data.get(at..)?.first_chunk()?),
        len: u16::from_be_bytes(*data.get(at + 4..)?.first_chunk()?),
        fin: flags & 16 != 0,
        ack,
    })
}
