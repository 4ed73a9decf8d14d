//! What routers have said of how big packets may be.

use bytes::Bytes;
use segue_proto::contract::InterfaceId;
use segue_proto::{Duration, Instant};
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ipv6::HEADER_LEN;
use segue_wire::{Packet, Payload};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Path MTUs by where a packet leaves and where it goes.
#[derive(Debug, Default)]
pub(super) struct PathMtus {
    known: BTreeMap<(InterfaceId, Ipv6Addr), (u32, Instant)>,
}

impl PathMtus {
    pub fn get(&mut self, now: Instant, interface: InterfaceId, destination: Ipv6Addr) -> Option<u32> {
        // nearly always
        if self.known.is_empty() {
            return None;
        }
        let (mtu, until) = *self.known.get(&(interface, destination))?;
        if until <= now {
            self.known.remove(&(interface, destination));
            return None;
        }
        Some(mtu)
    }

    /// The same, without forgetting what is too old.
    pub fn peek(&self, now: Instant, interface: InterfaceId, destination: Ipv6Addr) -> Option<u32> {
        let (mtu, until) = *self.known.get(&(interface, destination))?;
        (until > now).then_some(mtu)
    }

    /// A path takes no more than `mtu`: never raised by what somebody says (RFC 8201 section 4), but by its age.
    pub fn learn(&mut self, now: Instant, interface: InterfaceId, destination: Ipv6Addr, mtu: u32) {
        let key = (interface, destination);
        let before = self.get(now, interface, destination);
        if before.is_some_and(|before| before < mtu) {
            return;
        }
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            self.known.retain(|_, (_, until)| *until > now);
            if self.known.len() >= MOST {
                self.known.pop_first();
            }
        }
        self.known.insert(key, (mtu, now + AGE));
    }
}

/// What an error quotes: how long the packet was, and where it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quotation {
    /// Of the whole packet, bytes.
    pub length: usize,
    pub destination: Ipv6Addr,
}

impl Quotation {
    /// What a packet quotes, if it is an error.
    pub fn of(packet: &Packet) -> Option<Self> {
        match &packet.payload {
            Payload::Icmpv6(message) => Self::of_message(message),
            _ => None,
        }
    }

    fn of_message(message: &Icmpv6) -> Option<Self> {
        Self::of_bytes(message.invoking()?)
    }

    pub fn of_bytes(quoted: &Bytes) -> Option<Self> {
        let length = quoted.get(4..)?.first_chunk::<2>()?;
        let destination = quoted.get(24..)?.first_chunk::<16>()?;
        Some(Self {
            length: HEADER_LEN + usize::from(u16::from_be_bytes(*length)),
            destination: Ipv6Addr::from(*destination),
        })
    }
}

/// As long as Linux remembers one (`net.ipv6.route.mtu_expires`; RFC 8201 section 4 has at least five minutes, and ten recommended).
const AGE: Duration = Duration::from_secs(600);
/// Paths that are remembered.
const MOST: usize = 256;
