//! Tests over more than one layer.

mod auth_vectors;
mod icmpv6_errors;
mod icmpv6_vectors;
mod ilnp_vectors;
mod ipv6_vectors;
mod mobility_vectors;
mod robustness;
mod round_trip;
mod sctp_extension_vectors;
mod sctp_vectors;
mod tcp_vectors;

use crate::checksum::PseudoHeader;
use bytes::Bytes;
use core::net::Ipv6Addr;

/// The bytes that a hexadecimal dump, blanks and line ends ignored, stands for.
fn hex(dump: &str) -> Vec<u8> {
    let digits: Vec<u8> = dump
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of digits");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// As [`hex`], shared.
fn hex_bytes(dump: &str) -> Bytes {
    Bytes::from(hex(dump))
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

fn pseudo_header() -> PseudoHeader {
    PseudoHeader {
        source: address("2001:db8::1"),
        destination: address("2001:db8:2::2"),
    }
}
