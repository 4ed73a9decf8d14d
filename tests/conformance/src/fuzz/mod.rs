//! The bodies of the fuzz targets: each takes any bytes, and panics if something is wrong. The targets themselves, in
//! `fuzz/`, need a nightly compiler; `tests/fuzz_seeds.rs` replays what they found with the bodies alone.

mod analyze;
mod association;
mod forge;
mod ilnp;
mod location;
mod mobile_ipv6;
mod wire;

pub use analyze::analyze;
pub use association::association;
pub use ilnp::ilnp;
pub use location::location;
pub use mobile_ipv6::mobile_ipv6;
pub use wire::{dhcpv6, icmpv6, ipv6_headers, mobility, packet, sctp, tcp};

/// A fuzz target.
pub struct Target {
    /// Its name: that of the file in `fuzz/fuzz_targets` and of the folder in `fuzz/seeds`.
    pub name: &'static str,
    /// Its body.
    pub body: fn(&[u8]),
}

/// Every fuzz target there is.
pub const TARGETS: &[Target] = &[
    Target {
        name: "analyze",
        body: analyze,
    },
    Target {
        name: "association",
        body: association,
    },
    Target {
        name: "dhcpv6",
        body: dhcpv6,
    },
    Target {
        name: "icmpv6",
        body: icmpv6,
    },
    Target {
        name: "ilnp",
        body: ilnp,
    },
    Target {
        name: "ipv6_headers",
        body: ipv6_headers,
    },
    Target {
        name: "location",
        body: location,
    },
    Target {
        name: "mobile_ipv6",
        body: mobile_ipv6,
    },
    Target {
        name: "mobility",
        body: mobility,
    },
    Target {
        name: "packet",
        body: packet,
    },
    Target {
        name: "sctp",
        body: sctp,
    },
    Target {
        name: "tcp",
        body: tcp,
    },
];
