//! What the client reports.

use crate::location::ilnp_records::PreferredLocator;
use crate::location::tsig;
use crate::time::Duration;
use core::net::Ipv6Addr;
use domain::base::iana::Rcode;

/// A look-up, to match its event with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LookupId(pub(super) u64);

/// What a client tells its host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// The server has the record, authenticated and durable.
    Updated {
        /// The address; nothing after a withdrawal.
        address: Option<Ipv6Addr>,
        /// Time since it was asked for.
        latency: Duration,
        /// Times that the request was sent.
        sent: u32,
    },
    /// The record could not be changed, or not as often as `attempts` allows.
    UpdateFailed {
        /// The address.
        address: Option<Ipv6Addr>,
        /// Why.
        failure: Failure,
    },
    /// The server has the locators, authenticated and durable.
    LocatorsUpdated {
        /// The locators.
        locators: Vec<PreferredLocator>,
        /// Time since it was asked for.
        latency: Duration,
        /// Times that the request was sent.
        sent: u32,
    },
    /// The locators could not be changed.
    LocatorsUpdateFailed {
        /// Why.
        failure: Failure,
    },
    /// A name's locators.
    LocatorsFound {
        /// Which look-up.
        id: LookupId,
        /// The best first; at least one.
        locators: Vec<PreferredLocator>,
        /// How long the answer may be used.
        ttl: Duration,
        /// Time since it was asked for.
        latency: Duration,
    },
    /// A name's addresses.
    Resolved {
        /// Which look-up.
        id: LookupId,
        /// In the order of the answer; at least one.
        addresses: Vec<Ipv6Addr>,
        /// How long the answer may be used.
        ttl: Duration,
        /// Time since it was asked for.
        latency: Duration,
    },
    /// A name could not be resolved.
    LookupFailed {
        /// Which look-up.
        id: LookupId,
        /// Why.
        failure: Failure,
    },
}

/// Why there is no success.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// No server answered.
    #[error("no answer")]
    NoAnswer,
    /// Answers came that claimed, unsigned as such answers are, that the key or its MAC is wrong, and no other
    /// (RFC 8945 section 5.4).
    #[error("no answer but that the key is wrong (TSIG error {0})")]
    KeyRefused(u16),
    /// The server's clock and ours are too far apart (RFC 8945 section 5.2.3).
    #[error("{}: at most {} s are allowed, set the clock", apart(*server_time, *our_time), tsig::FUDGE)]
    ClockSkew {
        /// The server's, Unix seconds.
        server_time: u64,
        /// Ours.
        our_time: u64,
    },
    /// The clocks agree, but the server has taken an update that was signed with the same key at a later time (RFC 8945
    /// section 5.2.3): the clock of whoever signed it was ahead.
    #[error(
        "the server has taken an update signed later than this one: the clock was ahead then; try again in {wait_s} s at \
        the latest"
    )]
    LaterUpdate {
        /// After this time, seconds, our clock has passed the latest time that the server can have taken.
        wait_s: u64,
    },
    /// The server refused, with this RCODE.
    #[error("refused: {}", rcode_name(*.0))]
    Refused(u16),
    /// There is no such name.
    #[error("no such name")]
    NoSuchName,
    /// The name has no AAAA record.
    #[error("the name has no address")]
    NoAddress,
    /// The answer does not fit a UDP packet.
    #[error("the answer does not fit a UDP packet")]
    Truncated,
}

/// What a server that knows `server_time` means by BADTIME to what was signed at `our_time`.
pub(super) fn time_refused(server_time: u64, our_time: u64) -> Failure {
    let fudge = u64::from(tsig::FUDGE);
    if server_time.abs_diff(our_time) > fudge {
        return Failure::ClockSkew {
            server_time,
            our_time,
        };
    }
    Failure::LaterUpdate {
        // nothing later than that is timely
        wait_s: server_time + fudge + 1 - our_time,
    }
}

fn apart(server_time: u64, our_time: u64) -> String {
    let (by, which) = (server_time.abs_diff(our_time), server_time > our_time);
    format!(
        "the server's clock is {by} s {} ours",
        if which { "ahead of" } else { "behind" }
    )
}

/// Packets that came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClientCounters {
    /// Answers to nothing that was asked, or from somewhere else.
    pub unexpected: u64,
    /// What is no DNS message.
    pub malformed: u64,
    /// Answers to signed requests without a valid signature.
    pub not_authentic: u64,
    /// Updates given up for a later one, before they were answered.
    pub superseded: u64,
}

fn rcode_name(rcode: u16) -> String {
    u8::try_from(rcode).map_or_else(
        |_| rcode.to_string(),
        |code| Rcode::masked_from_int(code).to_string(),
    )
}
