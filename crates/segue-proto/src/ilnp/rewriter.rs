//! A site border router that rewrites locators (RFC 6748): inside the site a node is at one locator, for the world at
//! another. Localised numbering (section 2), location privacy (section 7).
//!
//! The mapping is one to one, so the router keeps no state of sessions. Identifiers and nonces stay. What else has to be
//! changed for the ends to go on understanding each other:
//! - locators in locator updates of inside nodes, and in the acknowledgements that come back for them, by the same mapping:
//!   the update tells the world where the node is for the world, and the node gets back what it has said;
//! - what ICMPv6 errors quote (but for the transport's checksum in it, which cannot be verified where a packet is cut off, and
//!   which nobody verifies);
//! - TCP and UDP checksums, but only those that follow IPv6's rule: identifiers are the same on both sides (RFC 6741
//!   section 4.2). Emission works out those of typed packets, and raw ones are adjusted by difference (RFC 1624).

use super::readdress::readdress;
use bytes::{Bytes, BytesMut};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, LocatorOperation, Nid};
use segue_wire::{Packet, Payload};
use serde::{Deserialize, Serialize};

/// Configuration of a [`Rewriter`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RewriterConfig {
    /// The locators that are mapped.
    pub mappings: Vec<LocatorMapping>,
}

/// A locator inside the site and the one that stands for it outside, as prefixes: `"fd00:0:0:1::"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LocatorMapping {
    /// Inside the site.
    pub inside: Ipv6Addr,
    /// Outside.
    pub outside: Ipv6Addr,
}

/// What was rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RewriterCounters {
    /// Packets that went out with another source.
    pub outbound: u64,
    /// Packets that came in with another destination.
    pub inbound: u64,
    /// Locator updates and acknowledgements in which locators were changed.
    pub locator_updates: u64,
    /// ICMPv6 errors in which a quoted address was changed.
    pub errors: u64,
}

/// The machine: a function of packets, without state but its mapping.
#[derive(Clone, Debug, Default)]
pub struct Rewriter {
    mappings: Vec<(Locator, Locator)>,
    counters: RewriterCounters,
}

impl RewriterConfig {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        for (number, mapping) in self.mappings.iter().enumerate() {
            for (key, prefix) in [("inside", mapping.inside), ("outside", mapping.outside)] {
                if Nid::of(prefix) != Nid(0) || !Locator::of(prefix).is_routable() {
                    return Err(format!(
                        "mappings: {key} = {prefix}: expected a unicast prefix of 64 bits such as 2001:db8:0:1::"
                    ));
                }
            }
            let twice =
                |other: &LocatorMapping| other.inside == mapping.inside || other.outside == mapping.outside;
            if self.mappings[..number].iter().any(twice) {
                return Err(format!(
                    "mappings: {} or {} is there twice: expected one to one",
                    mapping.inside, mapping.outside
                ));
            }
        }
        Ok(())
    }
}

impl Rewriter {
    /// A router with this mapping.
    ///
    /// # Errors
    /// As [`RewriterConfig::check`].
    pub fn new(config: &RewriterConfig) -> Result<Self, String> {
        config.check()?;
        Ok(Self {
            mappings: config
                .mappings
                .iter()
                .map(|m| (Locator::of(m.inside), Locator::of(m.outside)))
                .collect(),
            counters: RewriterCounters::default(),
        })
    }

    /// A packet on its way out of the site.
    #[must_use]
    pub fn outbound(&mut self, mut packet: Packet) -> Packet {
        let map = |locator| find(&self.mappings, |m| m.0 == locator).map(|m| m.1);
        let Some(new) = map(Locator::of(packet.ip.source)) else {
            return packet;
        };
        self.counters.outbound += 1;
        let (updates, errors) = rewrite(
            &mut packet,
            LocatorOperation::Advertisement,
            Quote::Destination,
            map,
        );
        self.counters.locator_updates += u64::from(updates);
        self.counters.errors += u64::from(errors);
        let source = new.address(Nid::of(packet.ip.source));
        let destination = packet.ip.destination;
        readdress(&mut packet, (source, destination), None);
        packet
    }

    /// A packet on its way into the site.
    #[must_use]
    pub fn inbound(&mut self, mut packet: Packet) -> Packet {
        let map = |locator| find(&self.mappings, |m| m.1 == locator).map(|m| m.0);
        let Some(new) = map(Locator::of(packet.ip.destination)) else {
            return packet;
        };
        self.counters.inbound += 1;
        let (updates, errors) = rewrite(&mut packet, LocatorOperation::Acknowledgement, Quote::Source, map);
        self.counters.locator_updates += u64::from(updates);
        self.counters.errors += u64::from(errors);
        let destination = new.address(Nid::of(packet.ip.destination));
        let source = packet.ip.source;
        readdress(&mut packet, (source, destination), None);
        packet
    }

    /// What was rewritten.
    #[must_use]
    pub fn counters(&self) -> RewriterCounters {
        self.counters
    }
}

/// The address in an error's quotation that is this site's.
#[derive(Clone, Copy)]
enum Quote {
    Source,
    Destination,
}

fn find(
    mappings: &[(Locator, Locator)],
    is: impl Fn(&(Locator, Locator)) -> bool,
) -> Option<(Locator, Locator)> {
    mappings.iter().copied().find(is)
}

/// Changes what ICMPv6 says of locators: those in updates with `operation`, and the address that errors quote. Whether
/// there were any.
fn rewrite(
    packet: &mut Packet,
    operation: LocatorOperation,
    quote: Quote,
    map: impl Fn(Locator) -> Option<Locator>,
) -> (bool, bool) {
    let Payload::Icmpv6(message) = &mut packet.payload else {
        return (false, false);
    };
    match message {
        Icmpv6::LocatorUpdate(update) if update.operation == operation => {
            let mut any = false;
            for entry in &mut update.locators {
                if let Some(new) = map(entry.locator) {
                    entry.locator = new;
                    any = true;
                }
            }
            (any, false)
        }
        Icmpv6::DestinationUnreachable { invoking, .. }
        | Icmpv6::PacketTooBig { invoking, .. }
        | Icmpv6::TimeExceeded { invoking, .. }
        | Icmpv6::ParameterProblem { invoking, .. } => {
            let at = match quote {
                Quote::Source => SOURCE_AT,
                Quote::Destination => DESTINATION_AT,
            };
            let changed = requote(invoking, at, map);
            let any = changed.is_some();
            if let Some(changed) = changed {
                *invoking = changed;
            }
            (false, any)
        }
        _ => (false, false),
    }
}

/// A quoted packet with another locator at `at`.
fn requote(quoted: &Bytes, at: usize, map: impl Fn(Locator) -> Option<Locator>) -> Option<Bytes> {
    let old = u64::from_be_bytes(*quoted.get(at..)?.first_chunk()?);
    let new = map(Locator(old))?;
    let mut bytes = BytesMut::from(&quoted[..]);
    bytes.get_mut(at..at + 8)?.copy_from_slice(&new.0.to_be_bytes());
    Some(bytes.freeze())
}

/// Where the addresses are in an IPv6 header (RFC 8200 section 3).
const SOURCE_AT: usize = 8;
const DESTINATION_AT: usize = 24;
