//! This host's own addresses: which of them the peer knows, which of them an interface has, and which of them a packet
//! leaves from (RFC 5061 sections 5.3 and 5.3.2).
//!
//! [`LocalAddresses`] keeps what each of them is ([`state`]), the route of the host, and the source that follows it; what
//! the association does about a change is in `association/addresses.rs`.

pub(super) mod address_rules;
mod sources;
mod state;

use super::{AddressError, AddressRequest};
use crate::contract::LocalAddress;
use core::net::Ipv6Addr;
use smallvec::SmallVec;
use sources::Sources;
use state::{Ask, Change, Presence, State};

/// Most addresses kept that are not part of the association.
const MAX_SPARES: usize = 16;

/// The addresses of ours that an association has, is about to have or lose, or could have.
#[derive(Clone, Debug)]
pub(super) struct LocalAddresses {
    addresses: SmallVec<[Local; 2]>,
    /// Where the routing table points.
    route: LocalAddress,
    /// The source of everything but ASCONF: `route`, unless that is still being added.
    source: LocalAddress,
    /// Sources that differ from it by destination.
    sources: Sources,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Local {
    address: LocalAddress,
    state: State,
}

impl Local {
    fn is(&self, address: Ipv6Addr) -> bool {
        self.address.address == address
    }
}

/// What it means that an interface has lost an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// It was part of the association.
    Member,
    /// The peer is to add it.
    Adding,
}

/// What it means that an interface has an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// It is kept in mind.
    Spare,
    /// It was known, as what is named here, and is back.
    Back(LocalAddress),
}

impl LocalAddresses {
    /// Of an association that begins, all in use.
    pub(super) fn new(addresses: &[LocalAddress], route: LocalAddress) -> Self {
        let begun = |&address: &LocalAddress| Local {
            address,
            state: State::BEGUN,
        };
        Self {
            addresses: addresses.iter().map(begun).collect(),
            route,
            source: route,
            sources: Sources::default(),
        }
    }

    /// Where the routing table points.
    pub(super) fn route(&self) -> LocalAddress {
        self.route
    }

    /// An address that the peer knows: what the ASCONF names, so that the peer finds the association by it (RFC 5061
    /// sections 5.2, D2, and 5.3.2).
    pub(super) fn source(&self) -> LocalAddress {
        self.source
    }

    /// Whether no address may be the source of a packet.
    pub(super) fn is_stranded(&self) -> bool {
        !self.addresses.iter().any(|l| l.state.is_source())
    }

    /// Whether `address` is one of ours, in whatever state.
    pub(super) fn is_own(&self, address: Ipv6Addr) -> bool {
        self.find(address).is_some()
    }

    /// Whether `address` is part of the association, or the peer is asked to add it: neither one that is being deleted or
    /// has been, nor one that the peer was never told of.
    pub(super) fn is_staying(&self, address: Ipv6Addr) -> bool {
        self.find(address)
            .is_some_and(|l| !matches!(l.state, State::Deleting(..) | State::Spare))
    }

    /// Whether an interface has `address`.
    pub(super) fn is_present(&self, address: Ipv6Addr) -> bool {
        self.find(address).is_some_and(|l| l.state.is_present())
    }

    /// Whether an interface has `address`, and the same one.
    pub(super) fn is_on_interface(&self, address: LocalAddress) -> bool {
        self.find(address.address)
            .is_some_and(|l| l.address == address && l.state.is_present())
    }

    /// `address`, if it may be the source of any packet.
    pub(super) fn source_at(&self, address: Ipv6Addr) -> Option<LocalAddress> {
        self.find(address)
            .filter(|l| l.state.is_source())
            .map(|l| l.address)
    }

    /// The addresses that packets may leave from: those that the peer may be told of.
    pub(super) fn usable(&self) -> impl Iterator<Item = LocalAddress> {
        let usable = self.addresses.iter().filter(|l| l.state.is_source());
        usable.map(|l| l.address)
    }

    /// Those that are part of the association, or on their way in or out.
    pub(super) fn known_to_peer(&self) -> impl Iterator<Item = LocalAddress> {
        let known = self.addresses.iter().filter(|l| l.state != State::Spare);
        known.map(|l| l.address)
    }

    /// The first that an interface has and the peer does not know.
    pub(super) fn spare(&self) -> Option<Ipv6Addr> {
        let spare = self.addresses.iter().find(|l| l.state == State::Spare);
        spare.map(|l| l.address.address)
    }

    /// Those that are gone, that another one took the place of, and that are to be deleted.
    pub(super) fn replaced(&self) -> impl Iterator<Item = Ipv6Addr> {
        let replaced = |l: &&Local| matches!(l.state, State::InUse(Presence::Replaced, _));
        self.addresses.iter().filter(replaced).map(|l| l.address.address)
    }

    /// The first address, if the peer was told to leave alone every one that there still is.
    pub(super) fn only_deactivated(&self) -> Option<Ipv6Addr> {
        let mut sources = self.addresses.iter().filter(|l| l.state.is_source());
        if sources.clone().any(|l| l.state.is_active()) {
            return None;
        }
        sources.next().map(|l| l.address.address)
    }

    /// The address that a packet for `destination` is sent from.
    pub(super) fn source_towards(&self, destination: Ipv6Addr) -> LocalAddress {
        self.sources
            .of(destination)
            .and_then(|wanted| self.source_at(wanted))
            .unwrap_or(self.source)
    }

    /// Whether the routing table has `destination` reached from `source`.
    pub(super) fn reaches(&self, source: LocalAddress, destination: Ipv6Addr) -> bool {
        self.sources.of(destination) == Some(source.address)
    }

    /// Where an ASCONF may leave from, best first: the route, though it be the very address being added (F1); any
    /// address in use; one being added; one that the peer does not know. An address that is being deleted must not be
    /// the source (F6): it is, only if nothing else is left, for the answer, be it a refusal, then settles whether the
    /// peer still knows it.
    pub(super) fn asconf_source(&self) -> Option<LocalAddress> {
        let rank = |l: &Local| match l.state {
            _ if !l.state.is_present() => None,
            State::InUse(..) | State::Adding if l.address == self.route => Some(0),
            State::InUse(..) if l.address == self.source => Some(1),
            State::InUse(..) => Some(2),
            State::Adding | State::AddingAbsent => Some(3),
            State::Spare => Some(4),
            State::Deleting(..) => Some(5),
        };
        let ranked = self
            .addresses
            .iter()
            .filter_map(|l| rank(l).map(|r| (r, l.address)));
        ranked.min_by_key(|r| r.0).map(|r| r.1)
    }

    /// The route leads over `address`, whatever the destination.
    pub(super) fn lead_over(&mut self, address: Ipv6Addr) -> Result<(), AddressError> {
        let local = self.find(address).ok_or(AddressError::BadAddress)?;
        if !matches!(local.state, State::InUse(Presence::Present, _) | State::Adding) {
            return Err(AddressError::BadAddress);
        }
        self.route = local.address;
        self.sources = Sources::Pinned;
        self.follow_route();
        Ok(())
    }

    /// Sends to `destination` from `source`, or from the route if `None`, while that may be a source. Gives whether it is
    /// heeded: it is not once a route was set for all destinations.
    pub(super) fn reach(&mut self, destination: Ipv6Addr, source: Option<Ipv6Addr>) -> bool {
        self.sources.set(destination, source)
    }

    /// The peer no longer has `destination`.
    pub(super) fn forget_destination(&mut self, destination: Ipv6Addr) {
        self.sources.set(destination, None);
    }

    /// An interface no longer has `address`. `None` if that was known, or is nothing to the association.
    pub(super) fn lose(&mut self, address: Ipv6Addr) -> Option<Lost> {
        let state = self.find(address)?.state;
        if !state.is_present() {
            return None;
        }
        self.change(address, Change::Disappeared);
        let lost = match state {
            State::Spare => return None,
            State::Adding | State::AddingAbsent => Lost::Adding,
            State::InUse(..) | State::Deleting(..) => Lost::Member,
        };
        // the route of a host does not lead over an address that it does not have
        if self.route.address == address {
            self.route = self.first_usable().unwrap_or(self.route);
        }
        self.follow_route();
        Some(lost)
    }

    /// An interface has `address`. `None` if that is nothing new, or one too many.
    pub(super) fn find_present(&mut self, address: LocalAddress) -> Option<Found> {
        let Some(local) = self.find(address.address).copied() else {
            return self.keep_spare(address).then_some(Found::Spare);
        };
        if local.state.is_present() && local.address == address {
            return None;
        }
        self.change(address.address, Change::Appeared);
        self.rename(address);
        if self.route == local.address {
            self.route = address;
        }
        if self.source == local.address {
            self.source = address;
        }
        self.follow_route();
        Some(Found::Back(local.address))
    }

    /// Every address that there was is gone, and another one is to take their place.
    pub(super) fn replace_absent(&mut self) {
        for local in &mut self.addresses {
            // which drops none
            local.state = local.state.after(Change::Replaced).unwrap_or(local.state);
        }
    }

    /// Nothing was agreed with the peer yet, and no address of those that it was named is left: what there is is in use.
    /// Gives whether there is any.
    pub(super) fn replace_all_by_spares(&mut self) -> bool {
        if self.spare().is_none() {
            return false;
        }
        self.addresses.retain(|l| l.state.is_present());
        for local in &mut self.addresses {
            local.state = State::BEGUN;
        }
        self.route = self.addresses[0].address;
        self.follow_route();
        true
    }

    /// Whether the peer may be asked for `request` behind `before`, which it may: what section 5.3 forbids is refused,
    /// as deleting the last address without adding one before it (F5).
    pub(super) fn check(
        &self,
        before: &[AddressRequest],
        request: AddressRequest,
    ) -> Result<(), AddressError> {
        let state = self.find(request.address()).map(|l| l.state);
        let in_use = matches!(state, Some(State::InUse(..)));
        let twice = before.contains(&request);
        let fits = match request {
            AddressRequest::Add(_) => matches!(state, None | Some(State::Spare)) && !twice,
            AddressRequest::SetPrimary(address) => {
                let member = in_use || matches!(state, Some(State::Adding | State::AddingAbsent));
                let added = before.contains(&AddressRequest::Add(address));
                (member || added) && !before.contains(&AddressRequest::Delete(address))
            }
            AddressRequest::Delete(_) | AddressRequest::Deactivate(_) | AddressRequest::Activate(_) => {
                in_use && !twice
            }
        };
        if !fits {
            return Err(AddressError::BadAddress);
        }
        let is_last = match request {
            AddressRequest::Delete(_) => {
                let members = self
                    .addresses
                    .iter()
                    .filter(|l| matches!(l.state, State::InUse(..)));
                let added = before.iter().filter(|r| matches!(r, AddressRequest::Add(_)));
                let deleted = before.iter().filter(|r| matches!(r, AddressRequest::Delete(_)));
                members.count() + added.count() < 2 + deleted.count()
            }
            AddressRequest::Deactivate(address) => {
                let other = self
                    .addresses
                    .iter()
                    .any(|l| !l.is(address) && l.state.is_active());
                let added = before
                    .iter()
                    .any(|r| matches!(r, AddressRequest::Add(_) | AddressRequest::Activate(_)));
                !other && !added
            }
            _ => false,
        };
        if is_last {
            return Err(AddressError::LastAddress);
        }
        Ok(())
    }

    /// Takes note of an address that the peer is to be asked to add.
    pub(super) fn offer(&mut self, address: LocalAddress) {
        if self.is_own(address.address) {
            self.rename(address);
        } else {
            self.addresses.push(Local {
                address,
                state: State::Spare,
            });
        }
    }

    /// The peer is asked for what was checked and offered. An address that is being added is the route where there is no
    /// source; one that is being deleted is not.
    pub(super) fn ask(&mut self, requests: &[AddressRequest]) {
        let stranded = self.is_stranded();
        for request in requests {
            let Some(ask) = Ask::of(*request) else {
                continue;
            };
            self.change(request.address(), Change::Asked(ask));
            if stranded
                && ask == Ask::Add
                && let Some(local) = self.find(request.address())
            {
                self.route = local.address;
            }
        }
        self.follow_route();
        if requests.contains(&AddressRequest::Delete(self.route.address)) {
            self.route = self.source;
        }
    }

    /// What the peer granted comes into force; what it refused is as it was. Gives whether the address is no longer
    /// part of the association. The source follows with [`follow_route`](Self::follow_route).
    pub(super) fn settle(&mut self, request: AddressRequest, granted: bool) -> bool {
        let Some(ask) = Ask::of(request) else {
            return false;
        };
        let address = request.address();
        let Some(former) = self.find(address).map(|l| l.state) else {
            return false;
        };
        if granted {
            self.change(address, Change::Granted(ask));
            return ask == Ask::Delete && matches!(former, State::Deleting(..));
        }
        self.change(address, Change::Refused(ask));
        if !self.is_own(address) && self.route.address == address {
            self.route = self.source;
        }
        false
    }

    /// Follows the route as soon as it may be a source; keeps away from addresses that may no longer be one. Without
    /// any that may, it stays as it is.
    pub(super) fn follow_route(&mut self) {
        if let Some(route) = self.source_at(self.route.address) {
            // deleted and added again it may be another interface's
            (self.route, self.source) = (route, route);
        } else {
            let kept = self.source_at(self.source.address);
            self.source = kept.or_else(|| self.first_usable()).unwrap_or(self.source);
        }
    }

    /// Goes on, after a restart by the peer, with what the former association knew of this host: addresses that the peer
    /// does not know, and the routing table.
    pub(super) fn inherit(&mut self, former: Self) {
        self.sources = former.sources;
        for local in former.addresses {
            // one that was being added is not part of the association that the peer began
            let kept = matches!(
                local.state,
                State::Spare | State::Adding | State::Deleting(state::Leaving::Returned, _)
            );
            if kept && !self.is_own(local.address.address) {
                self.offer(local.address);
            }
        }
        self.follow_route();
    }

    /// Checks that no address is kept twice, and that packets leave from one that they may leave from.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub(super) fn check_invariants(&self) -> Result<(), String> {
        for (i, local) in self.addresses.iter().enumerate() {
            if self.addresses[..i].iter().any(|l| l.is(local.address.address)) {
                return Err(format!("{} is kept twice", local.address.address));
            }
        }
        if !self.is_stranded() && self.source_at(self.source.address) != Some(self.source) {
            return Err(format!(
                "packets leave from {:?}, which is no source",
                self.source
            ));
        }
        Ok(())
    }

    fn first_usable(&self) -> Option<LocalAddress> {
        self.usable().next()
    }

    fn find(&self, address: Ipv6Addr) -> Option<&Local> {
        self.addresses.iter().find(|l| l.is(address))
    }

    fn change(&mut self, address: Ipv6Addr, change: Change) {
        let Some(index) = self.addresses.iter().position(|l| l.is(address)) else {
            return;
        };
        match self.addresses[index].state.after(change) {
            Some(state) => self.addresses[index].state = state,
            None => {
                self.addresses.remove(index);
            }
        }
    }

    /// The address is perhaps on another interface.
    fn rename(&mut self, address: LocalAddress) {
        if let Some(local) = self.addresses.iter_mut().find(|l| l.is(address.address)) {
            local.address = address;
        }
    }

    fn keep_spare(&mut self, address: LocalAddress) -> bool {
        let spares = self.addresses.iter().filter(|l| l.state == State::Spare);
        let room = spares.count() < MAX_SPARES;
        if room {
            self.offer(address);
        }
        room
    }
}

#[cfg(test)]
mod tests;
