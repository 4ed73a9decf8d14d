//! Packets that an attacker makes who sees everything: chunks of every type, with plausible or outrageous values.

use super::association::{Input, Known};
use crate::world::{PORT, address};
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;
use segue_wire::checksum::sctp_crc32c;
use segue_wire::sctp::SctpPacket;
use segue_wire::{Ipv6Header, Packet, Payload};

/// Chunk types: those of RFC 9260, ASCONF and its answer, AUTH, RE-CONFIG, FORWARD-TSN, I-DATA, PAD, and one that nobody
/// knows for each of the four ways to treat it.
const TYPES: [u8; 26] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0x0f, 0x80, 0x82, 0x84, 0xc0, 0xc1, 0x40, 0x3e, 0x7e,
    0xbe, 0xfe,
];

/// A packet of one to four chunks to `host`; `None` if what the bytes say does not parse.
pub(super) fn forge(input: &mut Input<'_>, host: usize, known: &Known) -> Option<Packet> {
    let how = input.u8();
    let tag = match how % 8 {
        0 => 0,
        1 => known.tag ^ 1,
        _ => known.tag,
    };
    let source = match how >> 3 & 7 {
        0 => address(9, 9),
        1 => Ipv6Addr::UNSPECIFIED,
        n => address(1 - host, u16::from(n % 4)),
    };
    let port = if how >> 6 == 3 { PORT + 1 } else { PORT };
    let mut sctp = Vec::new();
    sctp.put_u16(port);
    sctp.put_u16(PORT);
    sctp.put_u32(tag);
    sctp.put_u32(0);
    for _ in 0..=input.u8() % 4 {
        put_chunk(input, known, &mut sctp);
    }
    let crc = sctp_crc32c(&sctp);
    sctp[8..12].copy_from_slice(&crc);
    Some(Packet {
        ip: Ipv6Header {
            source,
            destination: address(host, 1 + u16::from(how & 1)),
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: Payload::Sctp(SctpPacket::parse(&Bytes::from(sctp)).ok()?),
    })
}

fn put_chunk(input: &mut Input<'_>, known: &Known, out: &mut Vec<u8>) {
    let start = out.len();
    let chunk_type = TYPES[usize::from(input.u8()) % TYPES.len()];
    out.put_u8(chunk_type);
    out.put_u8(input.u8());
    out.put_u16(0);
    match chunk_type {
        0 => {
            out.put_u32(near(input, known.tsn));
            out.put_u16(u16::from(input.u8() % 8));
            out.put_u16(u16::from(input.u8()));
            out.put_u32(0);
            put_bytes(input, out);
        }
        1 | 2 => {
            out.put_u32(near(input, known.tag));
            out.put_u32(near(input, 5000));
            out.put_u16(u16::from(input.u8()));
            out.put_u16(u16::from(input.u8()));
            out.put_u32(near(input, known.tsn));
            put_parameters(input, known, out);
        }
        3 => {
            out.put_u32(near(input, known.cumulative_tsn_ack));
            out.put_u32(near(input, 5000));
            let (gaps, duplicates) = (u16::from(input.u8() % 8), u16::from(input.u8() % 4));
            out.put_u16(gaps);
            out.put_u16(duplicates);
            let mut at = 0u16;
            for _ in 0..gaps {
                at = at.wrapping_add(u16::from(input.u8()));
                out.put_u16(at);
                at = at.wrapping_add(u16::from(input.u8() % 8));
                out.put_u16(at);
            }
            for _ in 0..duplicates {
                out.put_u32(near(input, known.tsn));
            }
        }
        4 | 5 => put_tlv(1, out, |out| put_bytes(input, out)),
        6 | 9 => put_tlv(u16::from(input.u8() % 16), out, |out| put_bytes(input, out)),
        7 | 12 | 13 => out.put_u32(near(input, known.cumulative_tsn_ack)),
        10 => {
            let mut cookie = known.cookie.clone();
            let harm = usize::from(input.u8());
            if let Some(byte) = cookie.get_mut(harm) {
                *byte ^= 1;
            }
            out.extend(cookie);
        }
        0x80 => {
            out.put_u32(near(input, known.serial));
            put_requests(input, out);
        }
        0xc1 => {
            out.put_u32(near(input, known.serial));
            put_tlv(6, out, |out| out.put_slice(&some_address(input).octets()));
            put_requests(input, out);
        }
        0xc0 => {
            out.put_u32(near(input, known.tsn));
            for _ in 0..input.u8() % 4 {
                out.put_u16(u16::from(input.u8() % 8));
                out.put_u16(u16::from(input.u8()));
            }
        }
        0x82 => {
            for _ in 0..=input.u8() % 2 {
                put_tlv(13 + u16::from(input.u8() % 6), out, |out| {
                    out.put_u32(near(input, known.tsn));
                    out.put_u32(near(input, known.tsn));
                    out.put_u32(near(input, known.tsn));
                    for _ in 0..input.u8() % 4 {
                        out.put_u16(u16::from(input.u8() % 8));
                    }
                });
            }
        }
        0x0f => {
            out.put_u16(u16::from(input.u8() % 3));
            out.put_u16(u16::from(input.u8() % 5));
            put_bytes(input, out);
        }
        8 | 11 | 14 => {}
        _ => put_bytes(input, out),
    }
    let length = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A value near `middle`, or any.
fn near(input: &mut Input<'_>, middle: u32) -> u32 {
    match input.u8() {
        0xff => input.u32(),
        n => middle.wrapping_add(u32::from(n % 64)).wrapping_sub(8),
    }
}

fn some_address(input: &mut Input<'_>) -> Ipv6Addr {
    match input.u8() {
        0 => Ipv6Addr::UNSPECIFIED,
        1 => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        n => address(usize::from(n & 1), u16::from(n >> 1) % 40),
    }
}

fn put_bytes(input: &mut Input<'_>, out: &mut Vec<u8>) {
    for _ in 0..input.u8() % 64 {
        out.put_u8(input.u8());
    }
}

fn put_requests(input: &mut Input<'_>, out: &mut Vec<u8>) {
    for _ in 0..input.u8() % 4 {
        put_tlv(0xc001 + u16::from(input.u8() % 8), out, |out| {
            out.put_u32(u32::from(input.u8() % 8));
            put_tlv(6, out, |out| out.put_slice(&some_address(input).octets()));
        });
    }
}

fn put_parameters(input: &mut Input<'_>, known: &Known, out: &mut Vec<u8>) {
    for _ in 0..input.u8() % 5 {
        match input.u8() % 9 {
            0 => put_tlv(6, out, |out| out.put_slice(&some_address(input).octets())),
            1 => put_tlv(7, out, |out| out.put_slice(&known.cookie)),
            2 => put_tlv(9, out, |out| out.put_u32(input.u32())),
            3 => put_tlv(0x8008, out, |out| out.put_slice(&[0xc1, 0x80, 0xc0, 0x82, 0x0f])),
            4 => put_tlv(0xc000, out, |_| {}),
            5 => put_tlv(0x8002, out, |out| put_bytes(input, out)),
            6 => put_tlv(0x8003, out, |out| put_bytes(input, out)),
            7 => put_tlv(0x8004, out, |out| put_bytes(input, out)),
            _ => put_tlv(input.u16(), out, |out| put_bytes(input, out)),
        }
    }
}

/// Appends type, length, value and padding.
fn put_tlv(tlv_type: u16, out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u16(tlv_type);
    out.put_u16(0);
    value(out);
    let length = (out.len() - start) as u16;
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    while !(out.len() - start).is_multiple_of(4) {
        out.put_u8(0);
    }
}
