//! Which addresses the agent has beside the kernel's own, and which of them can be used.
//!
//! A locator is the prefix of a network that the kernel has an address of: it has heard the router's advertisement, or somebody
//! has configured it. The agent has the kernel hold one more address there, prefix and node identifier, for which the kernel
//! answers neighbours (RFC 4861) and looks for duplicates (RFC 4862 section 5.4).
//!
//! What is told is worked out from what there is, not from what changed: a message that was lost costs nothing.

use segue_proto::InterfaceId;
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_wire::ilnp::{Locator, Nid};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Bits of a locator (RFC 6740 section 3.1).
const LOCATOR_LEN: u8 = 64;

/// An address that the kernel has, and that passed its duplicate address detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Place of its interface in the agent's list.
    pub interface: usize,
    /// The address.
    pub address: Ipv6Addr,
    /// Bits of it that are the prefix of its link.
    pub prefix_length: u8,
    /// Of global scope.
    pub global: bool,
    /// Not for what begins anew (RFC 4862 section 5.5.4).
    pub deprecated: bool,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// The kernel is to hold this address.
    Add(LocalAddress),
    /// It is to hold it no longer.
    Remove(LocalAddress),
    /// The shim is to know.
    Tell(AddressEvent),
}

/// How the shim sees a locator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Nothing,
    Ready,
    Deprecated,
}

/// The networks that the agent has an address in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Networks {
    /// All of them.
    All,
    /// All but this one.
    Except(Locator),
    /// This one alone.
    Only(Locator),
    /// None.
    None,
}

impl Networks {
    fn contain(self, locator: Locator) -> bool {
        match self {
            Self::All => true,
            Self::Except(other) => locator != other,
            Self::Only(one) => locator == one,
            Self::None => false,
        }
    }
}

/// The locators of all interfaces.
#[derive(Debug)]
pub struct Locators {
    nid: Nid,
    networks: Networks,
    interfaces: Vec<BTreeMap<Locator, Told>>,
}

impl Locators {
    /// Of so many interfaces, none of which has one.
    #[must_use]
    pub fn new(nid: Nid, networks: Networks, interfaces: usize) -> Self {
        Self {
            nid,
            networks,
            interfaces: vec![BTreeMap::new(); interfaces],
        }
    }

    /// The identifier of the agent's addresses.
    #[must_use]
    pub const fn identifier(&self) -> Nid {
        self.nid
    }

    /// Whether an address is the agent's: the kernel's own have another identifier, and the prefix of their link.
    #[must_use]
    pub fn is_own(&self, address: Ipv6Addr, prefix_length: u8) -> bool {
        self.would_be_ours(address) && prefix_length == 128
    }

    /// An address that somebody has given this machine with the agent's identifier: what comes for it would be the agent's.
    #[must_use]
    pub fn clash(&self, held: &[Held]) -> Option<Held> {
        let of_others = |h: &&Held| self.would_be_ours(h.address) && !self.is_own(h.address, h.prefix_length);
        held.iter().find(of_others).copied()
    }

    fn would_be_ours(&self, address: Ipv6Addr) -> bool {
        Nid::of(address) == self.nid && self.networks.contain(Locator::of(address))
    }

    /// All addresses that the kernel is to hold.
    pub fn wanted(&self) -> impl Iterator<Item = LocalAddress> {
        let nid = self.nid;
        self.interfaces
            .iter()
            .enumerate()
            .flat_map(move |(number, all)| all.keys().map(move |locator| local(number, *locator, nid)))
    }

    /// Whether there is one network that the agent is to have an address in, and none of the interfaces is in it.
    #[must_use]
    pub fn misses_its_network(&self) -> bool {
        matches!(self.networks, Networks::Only(_)) && self.wanted().next().is_none()
    }

    /// Whether an interface has a locator that can be used where there is a choice.
    #[must_use]
    pub fn is_usable(&self, interface: usize) -> bool {
        let all = self.interfaces.get(interface);
        all.is_some_and(|all| all.values().any(|told| *told == Told::Ready))
    }

    /// What is to be done, now that the kernel holds these addresses, and interfaces are up or not.
    pub fn reconcile(&mut self, held: &[Held], up: &[bool]) -> Vec<Change> {
        let mut changes = Vec::new();
        for (number, known) in self.interfaces.iter_mut().enumerate() {
            let (nid, networks) = (self.nid, self.networks);
            let own = held.iter().filter(|h| h.interface == number);
            // a network is deprecated if all addresses there are
            let mut bases: BTreeMap<Locator, bool> = BTreeMap::new();
            for h in own.clone().filter(|h| Nid::of(h.address) != nid) {
                let locator = Locator::of(h.address);
                let counts = h.global && h.prefix_length == LOCATOR_LEN && networks.contain(locator);
                if counts && locator.is_routable() {
                    *bases.entry(locator).or_insert(true) &= h.deprecated;
                }
            }
            known.retain(|locator, told| {
                if bases.contains_key(locator) {
                    return true;
                }
                let address = local(number, *locator, self.nid);
                if *told != Told::Nothing {
                    changes.push(Change::Tell(AddressEvent::Lost(address)));
                }
                changes.push(Change::Remove(address));
                false
            });
            for (locator, deprecated) in bases {
                let address = local(number, locator, self.nid);
                let told = known.entry(locator).or_insert_with(|| {
                    changes.push(Change::Add(address));
                    Told::Nothing
                });
                let is_held = own.clone().any(|h| h.address == address.address);
                let now = match (up.get(number).is_some_and(|up| *up) && is_held, deprecated) {
                    (false, _) => Told::Nothing,
                    (true, false) => Told::Ready,
                    (true, true) => Told::Deprecated,
                };
                let before = core::mem::replace(told, now);
                if before != Told::Nothing && !is_held {
                    // somebody has taken it away
                    changes.push(Change::Add(address));
                }
                let events: &[AddressEvent] = match (before, now) {
                    (Told::Nothing, Told::Ready) | (Told::Deprecated, Told::Ready) => {
                        &[AddressEvent::Ready(address)]
                    }
                    (Told::Nothing, Told::Deprecated) => {
                        &[AddressEvent::Ready(address), AddressEvent::Deprecated(address)]
                    }
                    (Told::Ready, Told::Deprecated) => &[AddressEvent::Deprecated(address)],
                    (Told::Ready | Told::Deprecated, Told::Nothing) => &[AddressEvent::Lost(address)],
                    _ => &[],
                };
                changes.extend(events.iter().map(|event| Change::Tell(*event)));
            }
        }
        changes
    }
}

fn local(interface: usize, locator: Locator, nid: Nid) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(interface as u8),
        address: locator.address(nid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NID: Nid = Nid(0x02aa_0000_0000_0001);
    const HOME: Locator = Locator(0x2001_0db8_0000_0001);

    fn held(locator: Locator, nid: u64, prefix_length: u8) -> Held {
        Held {
            interface: 0,
            address: locator.address(Nid(nid)),
            prefix_length,
            global: true,
            deprecated: false,
        }
    }

    /// Of the kernel's, and ours beside it.
    fn kernels() -> Held {
        held(HOME, 7, 64)
    }

    fn ours() -> Held {
        Held {
            deprecated: true,
            ..held(HOME, NID.0, 128)
        }
    }

    fn address() -> LocalAddress {
        local(0, HOME, NID)
    }

    #[test]
    fn a_network_of_the_kernels_is_a_locator_once_the_kernel_holds_our_address() {
        let mut locators = Locators::new(NID, Networks::All, 1);
        assert_eq!(
            locators.reconcile(&[kernels()], &[true]),
            [Change::Add(address())]
        );
        assert!(!locators.is_usable(0));
        // still tentative: nothing is done twice
        assert_eq!(locators.reconcile(&[kernels()], &[true]), []);
        let both = [kernels(), ours()];
        assert_eq!(
            locators.reconcile(&both, &[true]),
            [Change::Tell(AddressEvent::Ready(address()))]
        );
        assert!(locators.is_usable(0));
        assert_eq!(locators.wanted().collect::<Vec<_>>(), [address()]);
        assert_eq!(locators.reconcile(&both, &[true]), []);
        // its own address alone is no network
        assert_eq!(
            locators.reconcile(&[ours()], &[true]),
            [
                Change::Tell(AddressEvent::Lost(address())),
                Change::Remove(address())
            ]
        );
        assert_eq!(locators.wanted().next(), None);
    }

    #[test]
    fn an_interface_without_a_carrier_keeps_its_addresses_and_cannot_be_used() {
        let mut locators = Locators::new(NID, Networks::All, 1);
        let both = [kernels(), ours()];
        locators.reconcile(&both, &[true]);
        assert_eq!(
            locators.reconcile(&both, &[false]),
            [Change::Tell(AddressEvent::Lost(address()))]
        );
        assert_eq!(locators.wanted().next(), Some(address()));
        // the kernel looks for duplicates once more
        assert_eq!(locators.reconcile(&[kernels()], &[true]), []);
        assert_eq!(
            locators.reconcile(&both, &[true]),
            [Change::Tell(AddressEvent::Ready(address()))]
        );
    }

    #[test]
    fn a_prefix_that_its_router_deprecates_is_told_and_told_when_it_is_back() {
        let mut locators = Locators::new(NID, Networks::All, 1);
        let old = Held {
            deprecated: true,
            ..kernels()
        };
        let temporary = held(HOME, 8, 64);
        let told = |changes: Vec<Change>| {
            let told = changes.into_iter().filter_map(|c| match c {
                Change::Tell(event) => Some(event),
                _ => None,
            });
            told.collect::<Vec<_>>()
        };
        let (ready, deprecated) = (
            AddressEvent::Ready(address()),
            AddressEvent::Deprecated(address()),
        );
        assert_eq!(
            told(locators.reconcile(&[old, ours()], &[true])),
            [ready, deprecated]
        );
        assert!(!locators.is_usable(0));
        assert_eq!(told(locators.reconcile(&[kernels(), ours()], &[true])), [ready]);
        assert_eq!(told(locators.reconcile(&[old, temporary, ours()], &[true])), []);
        assert_eq!(told(locators.reconcile(&[old, ours()], &[true])), [deprecated]);
    }

    #[test]
    fn a_home_agent_has_its_address_in_its_network_alone_and_a_mobile_node_none_at_home() {
        const AWAY: Locator = Locator(0x2001_0db8_0000_0002);
        let both = [kernels(), held(AWAY, 7, 64)];
        let added = |networks| {
            let mut locators = Locators::new(NID, networks, 1);
            let changes = locators.reconcile(&both, &[true]);
            let added = changes.into_iter().map(|c| match c {
                Change::Add(local) => Locator::of(local.address),
                other => panic!("{other:?}"),
            });
            added.collect::<Vec<_>>()
        };
        assert_eq!(added(Networks::Only(HOME)), [HOME]);
        assert_eq!(added(Networks::Except(HOME)), [AWAY]);
        assert_eq!(added(Networks::None), []);
        assert!(Locators::new(NID, Networks::Only(HOME), 1).misses_its_network());
        assert!(!Locators::new(NID, Networks::All, 1).misses_its_network());
        // what others have elsewhere is theirs
        let locators = Locators::new(NID, Networks::Only(HOME), 1);
        let others = held(AWAY, NID.0, 64);
        assert_eq!(locators.clash(&[others]), None);
        assert!(!locators.is_own(others.address, 128));
        assert_eq!(
            locators.clash(&[held(HOME, NID.0, 64)]),
            Some(held(HOME, NID.0, 64))
        );
    }

    #[test]
    fn what_is_no_locator_is_left_alone() {
        let mut locators = Locators::new(NID, Networks::All, 2);
        let link_local = Held {
            global: false,
            ..held(Locator(0xfe80 << 48), 7, 64)
        };
        let single = held(HOME, 7, 128);
        let elsewhere = Held {
            interface: 9,
            ..kernels()
        };
        assert_eq!(
            locators.reconcile(&[link_local, single, elsewhere], &[true, true]),
            []
        );
        // two interfaces on one network have a locator each
        let second = Held {
            interface: 1,
            ..kernels()
        };
        let changes = locators.reconcile(&[kernels(), second], &[true, true]);
        assert_eq!(
            changes,
            [Change::Add(address()), Change::Add(local(1, HOME, NID))]
        );
    }

    #[test]
    fn the_identifier_is_nobody_elses_on_this_machine() {
        let locators = Locators::new(NID, Networks::All, 1);
        assert_eq!(locators.clash(&[kernels(), ours()]), None);
        let others = held(HOME, NID.0, 64);
        assert_eq!(locators.clash(&[kernels(), others]), Some(others));
        assert!(locators.is_own(ours().address, 128) && !locators.is_own(kernels().address, 128));
    }
}
