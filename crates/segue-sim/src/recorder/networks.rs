//! Which network each host that moves was in, while the run goes: its handovers, whatever flows it has, and for how long it
//! had no path. What is kept of a host does not grow.

use super::telling::{Completion, Telling};
use segue_proto::contract::LocalAddress;
use segue_proto::l2::L2Event;
use segue_proto::sctp::AssociationId;
use segue_proto::shim::ShimEvent;
use segue_proto::sigma::SigmaEvent;
use segue_proto::{Duration, Instant, InterfaceId, LinkEvent};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// What a host that moves went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Roaming {
    /// Handovers to another network that were completed.
    pub handovers: u64,
    /// Of them, those back to where the host had come from, from a network in which it had been for less than the minimum
    /// time of stay.
    pub ping_pongs: u64,
    /// Time without a path.
    pub without_path: Duration,
}

/// The hosts that move, each in a network: a cell, or a wire that comes and goes.
///
/// A handover is complete when everybody who is told of the new address has acknowledged it, or all did who would before the host
/// moved on; where nobody is told, when the old link is gone and there is an address in the new network. Ping-pongs are those of 3GPP TR 36.839 section 5.2.2, definition 5:
/// a handover from cell B to cell A and then back to B, if the host stays in A for less than a minimum time of stay, counted
/// from the completion of the one to that of the other. A host has a path while it is in reach of a network that it has a link
/// to and an address in.
#[derive(Debug, Default)]
pub struct Networks {
    minimum_time_of_stay: Duration,
    /// The network of each prefix.
    prefixes: BTreeMap<u64, u32>,
    hosts: BTreeMap<u32, HostState>,
}

/// A host.
#[derive(Clone, Debug)]
struct HostState {
    /// Others are told of its addresses.
    tells: bool,
    /// What they are told by its associations, where these are moved.
    telling: Telling,
    interfaces: SmallVec<[Interface; 2]>,
    in_use: Option<Stay>,
    /// The network that it was in before.
    before: Option<u32>,
    /// Since when it has no path.
    without_since: Option<Instant>,
    so_far: Roaming,
}

/// A network, and since when a host is there.
#[derive(Clone, Copy, Debug)]
struct Stay {
    network: u32,
    since: Instant,
}

/// An interface: a wire that says nothing of itself is up.
#[derive(Clone, Debug)]
struct Interface {
    id: InterfaceId,
    /// The network that it was connected to last.
    network: Option<u32>,
    is_up: bool,
    is_in_reach: bool,
    /// Addresses that can be used. It may be said of one more than once.
    addresses: SmallVec<[Ipv6Addr; 1]>,
}

impl Interface {
    fn has_path(&self) -> bool {
        self.is_up && self.is_in_reach && !self.addresses.is_empty()
    }
}

impl Networks {
    /// Those of these hosts, of each of which it is said whether others are told of its addresses, and these prefixes of networks.
    #[must_use]
    pub fn new(
        minimum_time_of_stay: Duration,
        hosts: impl IntoIterator<Item = (u32, bool)>,
        prefixes: impl IntoIterator<Item = (u64, u32)>,
    ) -> Self {
        let host = |tells| HostState {
            tells,
            telling: Telling::default(),
            interfaces: SmallVec::new(),
            in_use: None,
            before: None,
            without_since: Some(Instant::ZERO),
            so_far: Roaming::default(),
        };
        Self {
            minimum_time_of_stay,
            prefixes: prefixes.into_iter().collect(),
            hosts: hosts
                .into_iter()
                .map(|(node, tells)| (node, host(tells)))
                .collect(),
        }
    }

    /// What a host went through up to `end`; nothing of one that does not move.
    #[must_use]
    pub fn roaming(&self, node: u32, end: Instant) -> Option<Roaming> {
        let mut host = self.hosts.get(&node)?.clone();
        host.has_moved(host.telling.complete(), self.minimum_time_of_stay);
        let last = host
            .without_since
            .map_or(Duration::ZERO, |since| end.since(since));
        Some(Roaming {
            without_path: host.so_far.without_path + last,
            ..host.so_far
        })
    }

    /// A link of a host comes up or goes down.
    pub fn link_event(&mut self, now: Instant, node: u32, event: &L2Event) {
        let (interface, network, is_up) = match *event {
            L2Event::Link(LinkEvent::Up { interface, cell }) => (interface, cell, true),
            L2Event::Link(LinkEvent::Down { interface, cell }) => (interface, cell, false),
            _ => return,
        };
        self.changes(now, node, |host| {
            let own = host.interface(interface);
            (own.network, own.is_up) = (Some(u32::from(network.0)), is_up);
            own.is_in_reach |= is_up;
        });
    }

    /// A cell comes into the reach of a host, or goes out of it.
    pub fn reach(&mut self, now: Instant, node: u32, cell: u32, is_in_reach: bool) {
        self.changes(now, node, |host| {
            let there = host.interfaces.iter_mut().filter(|i| i.network == Some(cell));
            there.for_each(|interface| interface.is_in_reach = is_in_reach);
        });
    }

    /// An address of a host can be used.
    pub fn address_ready(&mut self, now: Instant, node: u32, local: LocalAddress) {
        let network = self.network_of(local.address);
        self.addresses(now, node, local, |addresses| {
            if !addresses.contains(&local.address) {
                addresses.push(local.address);
            }
        });
        if let Some(host) = self.hosts.get_mut(&node)
            && let (None, Some(network)) = (host.in_use, network)
        {
            host.in_use = Some(Stay { network, since: now });
        }
    }

    /// It can be used no longer.
    pub fn address_lost(&mut self, now: Instant, node: u32, local: LocalAddress) {
        self.addresses(now, node, local, |addresses| {
            addresses.retain(|a| *a != local.address)
        });
    }

    /// A shim reports.
    pub fn shim_event(&mut self, now: Instant, node: u32, event: &ShimEvent) {
        if let ShimEvent::HandoffDone { to, .. } = event {
            self.told(now, node, *to);
        }
    }

    /// A host that changes the addresses of an association reports.
    pub fn sigma_event(&mut self, node: u32, id: AssociationId, event: &SigmaEvent) {
        let Some(host) = self.hosts.get_mut(&node) else {
            return;
        };
        let network_of = |address| network_of(&self.prefixes, address);
        let complete = host.telling.sigma_event(event.time, id, event.kind, network_of);
        host.has_moved(complete, self.minimum_time_of_stay);
    }

    /// An association of a host is over.
    pub fn association_gone(&mut self, node: u32, id: AssociationId) {
        if let Some(host) = self.hosts.get_mut(&node) {
            host.telling.association_gone(id);
        }
    }

    /// Everybody uses this address of a host.
    fn told(&mut self, now: Instant, node: u32, to: Ipv6Addr) {
        let (network, least) = (self.network_of(to), self.minimum_time_of_stay);
        if let (Some(host), Some(network)) = (self.hosts.get_mut(&node), network) {
            host.moved(now, network, least);
        }
    }

    fn addresses(
        &mut self,
        now: Instant,
        node: u32,
        local: LocalAddress,
        change: impl FnOnce(&mut SmallVec<[Ipv6Addr; 1]>),
    ) {
        if !local.address.is_unicast_link_local() {
            self.changes(now, node, |host| {
                change(&mut host.interface(local.interface).addresses)
            });
        }
    }

    /// Something of a host changes: perhaps whether it has a path, and where.
    fn changes(&mut self, now: Instant, node: u32, change: impl FnOnce(&mut HostState)) {
        let least = self.minimum_time_of_stay;
        let Some(host) = self.hosts.get_mut(&node) else {
            return;
        };
        change(host);
        let has_path = host.interfaces.iter().any(Interface::has_path);
        match host.without_since {
            Some(since) if has_path => {
                host.so_far.without_path += now.since(since);
                host.without_since = None;
            }
            None if !has_path => host.without_since = Some(now),
            _ => {}
        }
        if !host.tells
            && let Some(network) = host.has_gone_to()
        {
            host.moved(now, network, least);
        }
    }

    fn network_of(&self, address: Ipv6Addr) -> Option<u32> {
        network_of(&self.prefixes, address)
    }
}

fn network_of(prefixes: &BTreeMap<u64, u32>, address: Ipv6Addr) -> Option<u32> {
    let prefix = (u128::from(address) >> 64) as u64;
    prefixes.get(&prefix).copied()
}

impl HostState {
    fn interface(&mut self, id: InterfaceId) -> &mut Interface {
        let at = self.interfaces.iter().position(|i| i.id == id);
        let at = at.unwrap_or_else(|| {
            self.interfaces.push(Interface {
                id,
                network: None,
                is_up: true,
                is_in_reach: true,
                addresses: SmallVec::new(),
            });
            self.interfaces.len() - 1
        });
        &mut self.interfaces[at]
    }

    /// The network that there is a path in, if there is no link to the one in use any more.
    fn has_gone_to(&self) -> Option<u32> {
        let in_use = self.in_use?.network;
        let stays = self
            .interfaces
            .iter()
            .any(|i| i.is_up && i.network == Some(in_use));
        let other = self
            .interfaces
            .iter()
            .find(|i| i.has_path() && i.network != Some(in_use));
        other.filter(|_| !stays)?.network
    }

    /// A handover that its associations told of is complete, if there is one.
    fn has_moved(&mut self, complete: Option<Completion>, minimum_time_of_stay: Duration) {
        if let Some(Completion { network, at }) = complete {
            self.moved(at, network, minimum_time_of_stay);
        }
    }

    /// A handover is complete.
    fn moved(&mut self, now: Instant, network: u32, minimum_time_of_stay: Duration) {
        let stay = Stay { network, since: now };
        match self.in_use {
            None => self.in_use = Some(stay),
            Some(last) if last.network != network => {
                let is_short = now.since(last.since) < minimum_time_of_stay;
                self.so_far.handovers += 1;
                self.so_far.ping_pongs += u64::from(is_short && self.before == Some(network));
                (self.before, self.in_use) = (Some(last.network), Some(stay));
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::CellId;
    use segue_proto::sigma::SigmaEventKind;

    const HOST: u32 = 7;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn address(network: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, 1)
    }

    fn networks(tells: bool) -> Networks {
        let prefixes = (0..4).map(|n| ((u128::from(address(n)) >> 64) as u64, u32::from(n)));
        Networks::new(Duration::from_secs(1), [(HOST, tells)], prefixes)
    }

    fn ready(networks: &mut Networks, ms: u64, interface: u8, network: u16) {
        let local = LocalAddress {
            interface: InterfaceId(interface),
            address: address(network),
        };
        networks.address_ready(at(ms), HOST, local);
    }

    fn lost(networks: &mut Networks, ms: u64, interface: u8, network: u16) {
        let local = LocalAddress {
            interface: InterfaceId(interface),
            address: address(network),
        };
        networks.address_lost(at(ms), HOST, local);
    }

    fn link(networks: &mut Networks, ms: u64, interface: u8, network: u16, is_up: bool) {
        let (interface, cell) = (InterfaceId(interface), CellId(network));
        let event = match is_up {
            true => LinkEvent::Up { interface, cell },
            false => LinkEvent::Down { interface, cell },
        };
        networks.link_event(at(ms), HOST, &L2Event::Link(event));
    }

    fn done(networks: &mut Networks, ms: u64, network: u16) {
        let (to, delay) = (address(network), Duration::ZERO);
        networks.shim_event(at(ms), HOST, &ShimEvent::HandoffDone { to, delay });
    }

    fn counts(networks: &Networks, end_ms: u64) -> (u64, u64, u64) {
        let own = networks.roaming(HOST, at(end_ms)).unwrap();
        (own.handovers, own.ping_pongs, own.without_path.as_millis())
    }

    #[test]
    fn an_address_that_is_said_to_be_ready_again_is_still_one() {
        let mut n = networks(true);
        link(&mut n, 0, 0, 0, true);
        // deprecated in between
        ready(&mut n, 0, 0, 0);
        ready(&mut n, 500, 0, 0);
        lost(&mut n, 1000, 0, 0);
        link(&mut n, 1000, 0, 0, false);
        link(&mut n, 1200, 0, 1, true);
        ready(&mut n, 1700, 0, 1);
        assert_eq!(counts(&n, 5000), (0, 0, 700));
    }

    #[test]
    fn a_ping_pong_goes_back_to_the_source_cell_within_the_minimum_time_of_stay() {
        let after = |completed: &[(u64, u16)]| {
            let mut n = networks(true);
            link(&mut n, 0, 0, 0, true);
            ready(&mut n, 0, 0, 0);
            for &(ms, network) in completed {
                done(&mut n, ms, network);
            }
            let (handovers, ping_pongs, _) = counts(&n, 60_000);
            (handovers, ping_pongs)
        };
        // there and back: 0 is left, and come back to within the second, or not
        assert_eq!(after(&[(5000, 1), (5999, 0)]), (2, 1));
        assert_eq!(after(&[(5000, 1), (6000, 0)]), (2, 0));
        // on to a third is none, however short the stay
        assert_eq!(after(&[(5000, 1), (5100, 2), (5200, 3)]), (3, 0));
        // of there, back and there again both changes of mind are
        assert_eq!(after(&[(5000, 1), (5500, 0), (5900, 1)]), (3, 2));
        // an address that is renewed, or of which a further peer is told, is no handover
        assert_eq!(after(&[(5000, 1), (5100, 1), (5200, 0)]), (2, 1));
    }

    #[test]
    fn a_host_has_moved_when_the_peers_of_all_its_associations_have_acknowledged_it() {
        use SigmaEventKind as Kind;
        let (one, two) = (AssociationId(1), AssociationId(2));
        let after = |events: &[(u64, AssociationId, Kind)], gone: Option<AssociationId>| {
            let mut n = networks(true);
            link(&mut n, 0, 0, 0, true);
            ready(&mut n, 0, 0, 0);
            for &(ms, id, kind) in events {
                n.sigma_event(HOST, id, &SigmaEvent { time: at(ms), kind });
            }
            gone.iter().for_each(|id| n.association_gone(HOST, *id));
            let (handovers, ping_pongs, _) = counts(&n, 60_000);
            (handovers, ping_pongs)
        };
        let (there, back) = (address(1), address(0));
        let tell = |ms, id, to| {
            [
                (ms, id, Kind::AddSent(to)),
                (ms + 100, id, Kind::AddAcknowledged(to)),
            ]
        };
        let asks = |ms, id, to| (ms, id, Kind::SetPrimarySent(to));
        let done = |ms, id, to| (ms, id, Kind::SetPrimaryAcknowledged(to));
        // the second peer is far: what it is told of first is acknowledged when the first has been asked to use it
        let mut all = vec![
            (1000, one, Kind::AddSent(there)),
            (1000, two, Kind::AddSent(there)),
        ];
        all.extend([
            (1020, one, Kind::AddAcknowledged(there)),
            asks(1020, one, there),
            done(1040, one, there),
        ]);
        assert_eq!(after(&all, None), (0, 0));
        all.extend([(1500, two, Kind::AddAcknowledged(there)), asks(1500, two, there)]);
        assert_eq!(after(&all, None), (0, 0));
        // it ends, and nobody is left to acknowledge anything
        assert_eq!(after(&all, Some(two)), (1, 0));
        all.push(done(2000, two, there));
        assert_eq!(after(&all, None), (1, 0));
        // and back, within a second of when the last had acknowledged it
        let returns = [
            asks(2900, one, back),
            asks(2900, two, back),
            done(2920, one, back),
            done(2990, two, back),
        ];
        assert_eq!(after(&[&all[..], &returns].concat(), None), (2, 1));
        let later = [
            asks(2900, one, back),
            asks(2900, two, back),
            done(2920, one, back),
            done(3000, two, back),
        ];
        assert_eq!(after(&[&all[..], &later].concat(), None), (2, 0));
        // one that refuses is not told, and who never answers is not waited for when the host moves on
        let refused = [
            &tell(1000, one, there)[..],
            &[asks(1100, one, there), asks(1100, two, there)],
        ]
        .concat();
        let refused = [
            &refused[..],
            &[
                done(1200, one, there),
                (1300, two, Kind::SetPrimaryRefused(there)),
            ],
        ]
        .concat();
        assert_eq!(after(&refused, None), (1, 0));
        let silent = [
            asks(1100, one, there),
            asks(1100, two, there),
            done(1200, one, there),
        ];
        assert_eq!(after(&silent, None), (0, 0));
        let on = [asks(5000, one, back), done(5100, one, back)];
        assert_eq!(after(&[&silent[..], &on].concat(), None), (2, 0));
    }

    #[test]
    fn a_host_that_tells_nobody_has_moved_when_its_old_link_is_gone_and_it_has_an_address() {
        let mut n = networks(false);
        link(&mut n, 0, 0, 0, true);
        ready(&mut n, 200, 0, 0);
        // the second radio finds another cell, and the first stays in use as long as its link does
        link(&mut n, 3000, 1, 1, true);
        ready(&mut n, 3100, 1, 1);
        assert_eq!(counts(&n, 4000), (0, 0, 200));
        link(&mut n, 4000, 0, 0, false);
        assert_eq!(counts(&n, 4000), (1, 0, 200));
        lost(&mut n, 4000, 0, 0);
        link(&mut n, 4400, 0, 0, true);
        link(&mut n, 4500, 1, 1, false);
        lost(&mut n, 4500, 1, 1);
        assert_eq!(counts(&n, 4600), (1, 0, 300), "it has no address yet");
        ready(&mut n, 4700, 0, 0);
        assert_eq!(counts(&n, 9000), (2, 1, 400));
    }

    #[test]
    fn a_host_has_no_path_while_it_is_out_of_reach_of_a_link_that_it_still_believes_in() {
        let mut n = networks(true);
        link(&mut n, 0, 0, 0, true);
        ready(&mut n, 100, 0, 0);
        n.reach(at(1000), HOST, 0, false);
        assert_eq!(counts(&n, 1250), (0, 0, 350));
        // back before layer 2 has noticed
        n.reach(at(1250), HOST, 0, true);
        assert_eq!(counts(&n, 2000), (0, 0, 350));
        n.reach(at(2000), HOST, 0, false);
        link(&mut n, 2300, 0, 0, false);
        lost(&mut n, 2300, 0, 0);
        link(&mut n, 2500, 0, 1, true);
        ready(&mut n, 2700, 0, 1);
        assert_eq!(counts(&n, 4000), (0, 0, 1050));
        assert_eq!(n.roaming(HOST + 1, at(4000)), None);
    }
}
