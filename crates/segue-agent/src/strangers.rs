//! Who is nobody's peer yet may begin something so often, and no more.
//!
//! A packet of a session, or of a binding, is known by what stands in its headers. Any other may be a beginning: a first packet, a
//! test, a Binding Update. It costs work, memory for a session, or an answer, and whoever forges sources sends as many as he likes. So
//! they are counted, before anything else is done with them: each network that they say they come from (48 bits of the source, what a
//! site is given, RFC 6177) has so many in a second, and all together have. What is known is never counted: a flood takes from those
//! who begin something at the same moment, and nothing from those who talk already.
//!
//! What costs no more than to be looked at is not counted either, and neither is what a key authenticates: a home agent's mobile
//! nodes would be kept from it by whoever uses their addresses.

use crate::fixed::Fixed;
use crate::stack::Role;
use segue_proto::mip6::MobileNode;
use segue_proto::{Duration, Instant, TokenBucket};
use segue_wire::ilnp::Nonce;
use segue_wire::ilnp_udp;
use std::net::Ipv6Addr;

/// What is left to strangers.
#[derive(Debug)]
pub(crate) struct Strangers {
    all: TokenBucket,
    /// Networks share one by chance.
    of_networks: Vec<TokenBucket>,
}

impl Default for Strangers {
    fn default() -> Self {
        Self {
            all: TokenBucket::new(BURST_OF_ALL, INTERVAL_OF_ALL),
            of_networks: vec![TokenBucket::new(BURST_OF_ONE, INTERVAL_OF_ONE); NETWORKS],
        }
    }
}

impl Strangers {
    /// Whether a packet is to be dealt with: it is known, or there was not too much lately that is not.
    /// `udp` is the port at which nonces come in UDP.
    pub fn admit(&mut self, now: Instant, role: &Role, udp: Option<u16>, bytes: &[u8]) -> bool {
        let Some(head) = Head::look(bytes, udp) else {
            // too short to be anything: it does not parse
            return true;
        };
        !may_begin(role, &head) || self.take(now, head.source)
    }

    fn take(&mut self, now: Instant, source: Ipv6Addr) -> bool {
        let network = (u128::from(source) >> 80) as u64;
        let place = (network.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % NETWORKS;
        let Some(own) = self.of_networks.get_mut(place) else {
            return false;
        };
        if !own.take(now) {
            return false;
        }
        let there_is = self.all.take(now);
        if !there_is {
            own.give_back();
        }
        there_is
    }
}

/// Whether a packet is a beginning, or may be one: of nothing that there is.
fn may_begin(role: &Role, head: &Head) -> bool {
    match role {
        Role::Ilnp(shim) => match head.nonce {
            Some(nonce) => !shim.knows(head.source, head.destination, nonce),
            None => head.is_odd,
        },
        Role::MobileNode(shim) => may_begin_at_a_mobile_node(shim, head),
        Role::Fixed(fixed) => may_begin_at_a_correspondent(fixed, head),
    }
}

/// A mobility header, through the tunnel or not, of neither its home agent, nor a correspondent, nor somebody with a binding here.
fn may_begin_at_a_mobile_node(shim: &MobileNode, head: &Head) -> bool {
    let signals = |head: &Head| (head.is_mobility || head.is_odd) && !shim.knows(head.source);
    match &head.inside {
        Some(inside) if head.source == shim.home_agent() => signals(inside),
        // not of its home agent: dropped when it is looked at
        Some(_) => false,
        None => signals(head),
    }
}

/// A mobility header, or a Home Address option, of somebody who is not where a binding says.
fn may_begin_at_a_correspondent(fixed: &Fixed, head: &Head) -> bool {
    if fixed.home_agent_address() == Some(head.destination) {
        return false;
    }
    let signals = head.is_mobility || head.is_odd || head.home_address.is_some();
    signals
        && !fixed.knows(
            head.destination,
            head.home_address.unwrap_or(head.source),
            head.source,
        )
}

/// What there is to see of a packet without understanding it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Head {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    /// In destination options that come first, or in UDP.
    nonce: Option<Nonce>,
    home_address: Option<Ipv6Addr>,
    /// A mobility header is in it, or what cannot be seen from here.
    is_mobility: bool,
    /// It has extension headers that are none of ours, or are not whole.
    is_odd: bool,
    inside: Option<Box<Self>>,
}

impl Head {
    fn look(bytes: &[u8], udp: Option<u16>) -> Option<Self> {
        let mut head = Self::of(bytes)?;
        match head.1 {
            IPV6 => head.0.inside = Self::of(head.2).map(|inside| Box::new(inside.0)),
            UDP if head.0.nonce.is_none() => {
                head.0.nonce = udp.and_then(|port| ilnp_udp::nonce_at(port, head.2));
            }
            _ => {}
        }
        Some(head.0)
    }

    /// The packet's, its upper layer, and that in bytes.
    fn of(bytes: &[u8]) -> Option<(Self, u8, &[u8])> {
        let (fixed, mut rest) = bytes.split_first_chunk::<40>()?;
        let address = |at: usize| fixed[at..].first_chunk::<16>().map(|a| Ipv6Addr::from(*a));
        let mut head = Self {
            source: address(8)?,
            destination: address(24)?,
            nonce: None,
            home_address: None,
            is_mobility: false,
            is_odd: false,
            inside: None,
        };
        let mut next = fixed[6];
        for _ in 0..MOST_HEADERS {
            if !matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS) {
                break;
            }
            // the second byte of a fragment header is reserved (RFC 8200 section 4.5)
            let length = match next {
                FRAGMENT => 8,
                _ => rest.get(1).map_or(0, |l| 8 * (usize::from(*l) + 1)),
            };
            let Some((header, following)) = rest.split_at_checked(length).filter(|_| length > 0) else {
                head.is_odd = true;
                return Some((head, next, &[]));
            };
            match next {
                DESTINATION_OPTIONS => head.look_into(&header[2..]),
                ROUTING => head.is_odd |= header[2] != TYPE_2,
                // one that is whole says what follows (RFC 6946); behind another stands what nobody can tell
                FRAGMENT if is_whole(header) => {}
                FRAGMENT => return Some((head, FRAGMENT, &[])),
                _ => head.is_odd = true,
            }
            (next, rest) = (header[0], following);
        }
        head.is_mobility = next == MOBILITY;
        head.is_odd |= matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS);
        Some((head, next, rest))
    }

    fn look_into(&mut self, mut options: &[u8]) {
        while let [kind, rest @ ..] = options {
            if *kind == PAD_1 {
                options = rest;
                continue;
            }
            let [length, rest @ ..] = rest else {
                self.is_odd = true;
                return;
            };
            let Some((value, following)) = rest.split_at_checked(usize::from(*length)) else {
                self.is_odd = true;
                return;
            };
            match (*kind, value.len()) {
                (PAD_N, _) => {}
                (NONCE, 4) => self.nonce = value.first_chunk().map(|n| Nonce::Bits32(*n)),
                (NONCE, 12) => self.nonce = value.first_chunk().map(|n| Nonce::Bits96(*n)),
                (HOME_ADDRESS, 16) => {
                    self.home_address = value.first_chunk::<16>().map(|a| Ipv6Addr::from(*a));
                }
                _ => self.is_odd = true,
            }
            options = following;
        }
    }
}

/// Whether a fragment header is of a packet in one piece: at the beginning, and nothing follows.
fn is_whole(header: &[u8]) -> bool {
    header[2] == 0 && header[3] & !0x06 == 0
}

const HOP_BY_HOP: u8 = 0;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const PAD_1: u8 = 0;
const PAD_N: u8 = 1;
/// RFC 6744 section 2.
const NONCE: u8 = 0x8b;
/// RFC 6275 section 6.3.
const HOME_ADDRESS: u8 = 0xc9;
const TYPE_2: u8 = 2;
/// Extension headers that are looked at.
const MOST_HEADERS: usize = 4;

/// Networks that are told apart.
const NETWORKS: usize = 1024;
/// Beginnings from one network: at once, and then one each 50 ms.
const BURST_OF_ONE: u64 = 40;
const INTERVAL_OF_ONE: Duration = Duration::from_millis(50);
/// From all: at once, and then one each 2 ms.
const BURST_OF_ALL: u64 = 500;
const INTERVAL_OF_ALL: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests;
