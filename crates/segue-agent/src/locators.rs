//! Which addresses the agent has beside the kernel's own, and which of them can be used.
//!
//! A locator is the prefix of a network that the kernel has an address of: it has heard the router's advertisement, or somebody
//! has configured it. The agent has the kernel hold one more address there, prefix and node identifier, for which the kernel
//! answers neighbours (RFC 4861) and looks for duplicates (RFC 4862 section 5.4).
//!
//! Two interfaces may be in one network, a radio and a cable of the same house: then they have the same address, and the kernel, which
//! answers for the one, would take itself for another host that has it already. So duplicates are looked for at one of them, and the
//! others follow without, once that one holds it.
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

/// What there is of a locator at an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Own {
    told: Told,
    asked: Asked,
    /// The kernel holds the address.
    is_held: bool,
}

/// What the kernel was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    /// Nothing: another interface is to have the address first.
    Nothing,
    /// To hold the address if nobody else has it.
    Detecting,
    /// To hold what another interface holds.
    Sharing,
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
    interfaces: Vec<BTreeMap<Locator, Own>>,
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

    /// Whether another interface holds this address, so that this machine itself would answer for it.
    #[must_use]
    pub fn is_held_elsewhere(&self, local: LocalAddress) -> bool {
        is_held_beside(
            &self.interfaces,
            usize::from(local.interface.0),
            Locator::of(local.address),
        )
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
        all.is_some_and(|all| all.values().any(|own| own.told == Told::Ready))
    }

    /// What is to be done, now that the kernel holds these addresses, and interfaces are up or not.
    pub fn reconcile(&mut self, held: &[Held], up: &[bool]) -> Vec<Change> {
        let mut changes = Vec::new();
        let nid = self.nid;
        let all_bases: Vec<BTreeMap<Locator, bool>> = (0..self.interfaces.len())
            .map(|number| self.bases(number, held))
            .collect();
        // first what there is, at all of them: what one does hangs on what others hold
        let mut lost = Vec::new();
        for (number, (known, bases)) in self.interfaces.iter_mut().zip(&all_bases).enumerate() {
            known.retain(|locator, own| {
                if bases.contains_key(locator) {
                    return true;
                }
                let address = local(number, *locator, nid);
                if own.told != Told::Nothing {
                    changes.push(Change::Tell(AddressEvent::Lost(address)));
                }
                changes.push(Change::Remove(address));
                false
            });
            for locator in bases.keys() {
                let own = known.entry(*locator).or_insert(Own {
                    told: Told::Nothing,
                    asked: Asked::Nothing,
                    is_held: false,
                });
                let address = local(number, *locator, nid).address;
                let now = held.iter().any(|h| h.interface == number && h.address == address);
                if core::mem::replace(&mut own.is_held, now) && !now {
                    lost.push((number, *locator));
                }
            }
        }
        for (number, bases) in all_bases.into_iter().enumerate() {
            let is_up = up.get(number).is_some_and(|up| *up);
            for (locator, deprecated) in bases {
                let address = local(number, locator, nid);
                let Some(own) = self.interfaces[number].get(&locator).copied() else {
                    continue;
                };
                // somebody may have taken it away, or the kernel, which found it to be a duplicate
                let is_lost = lost.contains(&(number, locator));
                let asked = self.asked_next(number, locator, is_lost, up);
                if let Some(asked) = asked
                    && asked != Asked::Nothing
                {
                    changes.push(Change::Add(address));
                }
                let now = match (is_up && own.is_held, deprecated) {
                    (false, _) => Told::Nothing,
                    (true, false) => Told::Ready,
                    (true, true) => Told::Deprecated,
                };
                let events: &[AddressEvent] = match (own.told, now) {
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
                let own = Own {
                    told: now,
                    asked: asked.unwrap_or(own.asked),
                    ..own
                };
                self.interfaces[number].insert(locator, own);
            }
        }
        changes
    }

    /// The networks of an interface, and whether they are deprecated: if all addresses there are.
    fn bases(&self, number: usize, held: &[Held]) -> BTreeMap<Locator, bool> {
        let mut bases = BTreeMap::new();
        let of_others = held
            .iter()
            .filter(|h| h.interface == number && Nid::of(h.address) != self.nid);
        for h in of_others {
            let locator = Locator::of(h.address);
            let counts = h.global && h.prefix_length == LOCATOR_LEN && self.networks.contain(locator);
            if counts && locator.is_routable() {
                *bases.entry(locator).or_insert(true) &= h.deprecated;
            }
        }
        bases
    }

    /// What the kernel is to be asked for now, if anything: first of all, and where it does not hold the address.
    fn asked_next(&self, number: usize, locator: Locator, is_lost: bool, up: &[bool]) -> Option<Asked> {
        let own = self.interfaces.get(number)?.get(&locator)?;
        if own.is_held && own.asked != Asked::Nothing {
            return None;
        }
        if is_held_beside(&self.interfaces, number, locator) {
            return (own.asked != Asked::Sharing || is_lost).then_some(Asked::Sharing);
        }
        let looks = |(other, all): (usize, &BTreeMap<Locator, Own>)| {
            let asked = all.get(&locator).is_some_and(|own| own.asked == Asked::Detecting);
            other != number && asked && up.get(other).is_some_and(|up| *up)
        };
        let wait =
            own.asked == Asked::Nothing && !own.is_held && self.interfaces.iter().enumerate().any(looks);
        let is_taken_away = is_lost && own.told != Told::Nothing;
        match own.asked {
            _ if wait => None,
            Asked::Nothing => Some(Asked::Detecting),
            _ => is_taken_away.then_some(Asked::Detecting),
        }
    }
}

fn is_held_beside(interfaces: &[BTreeMap<Locator, Own>], number: usize, locator: Locator) -> bool {
    let mut others = interfaces
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != number);
    others.any(|(_, all)| all.get(&locator).is_some_and(|own| own.is_held))
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
    }

    #[test]
    fn of_two_interfaces_in_one_network_the_second_shares_what_the_first_holds() {
        let mut locators = Locators::new(NID, Networks::All, 2);
        let at = |interface, held: Held| Held { interface, ..held };
        let both = [kernels(), at(1, kernels())];
        let second = local(1, HOME, NID);
        let ready = |local| Change::Tell(AddressEvent::Ready(local));
        // this machine would answer itself: one after the other
        assert_eq!(locators.reconcile(&both, &[true, true]), [Change::Add(address())]);
        assert!(!locators.is_held_elsewhere(second));
        assert_eq!(locators.reconcile(&both, &[true, true]), []);
        let first_holds = [both[0], both[1], ours()];
        assert_eq!(
            locators.reconcile(&first_holds, &[true, true]),
            [ready(address()), Change::Add(second)]
        );
        assert!(locators.is_held_elsewhere(second) && !locators.is_held_elsewhere(address()));
        let both_hold = [both[0], both[1], ours(), at(1, ours())];
        assert_eq!(locators.reconcile(&both_hold, &[true, true]), [ready(second)]);
        assert!(locators.is_held_elsewhere(address()));
        // the first has lost its carrier; when it is back, the kernel looks for duplicates, finds itself, and drops the address
        assert_eq!(
            locators.reconcile(&both_hold, &[false, true]),
            [Change::Tell(AddressEvent::Lost(address()))]
        );
        let second_holds = [both[0], both[1], at(1, ours())];
        assert_eq!(
            locators.reconcile(&second_holds, &[true, true]),
            [Change::Add(address())]
        );
        assert_eq!(locators.reconcile(&second_holds, &[true, true]), [], "once");
        assert_eq!(locators.reconcile(&both_hold, &[true, true]), [ready(address())]);
        // and the second has it at once where the first is unplugged
        assert_eq!(
            locators.reconcile(&[at(1, kernels()), at(1, ours())], &[false, true]),
            [
                Change::Tell(AddressEvent::Lost(address())),
                Change::Remove(address())
            ]
        );
        assert!(locators.is_usable(1) && !locators.is_held_elsewhere(second));
    }

    #[test]
    fn an_interface_without_a_carrier_is_not_waited_for() {
        let mut locators = Locators::new(NID, Networks::All, 2);
        let both = [0, 1].map(|interface| Held {
            interface,
            ..kernels()
        });
        assert_eq!(
            locators.reconcile(&both, &[false, true]),
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
