//! The peer's addresses and the paths to them come and go, and what is under way there goes elsewhere.

use super::Association;
use crate::sctp::ids::{DestinationId, MAX_DESTINATIONS};
use crate::sctp::{Event, Unreachable};
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Association {
    /// Adds a destination; `None` if there are too many. One that is Unconfirmed (section 5.4) gets a heartbeat at once when the
    /// association is up.
    pub(super) fn add_destination(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        confirmed: bool,
    ) -> Option<DestinationId> {
        if let Some(known) = self.peer.find(address) {
            return Some(known);
        }
        if self.peer.len() < MAX_DESTINATIONS {
            self.make_room_for_path();
        }
        let index = self.peer.add(address, confirmed, &self.config, &self.local)?;
        if self.is_up() {
            let (peer, mut probing) = self.probing();
            peer.start_heartbeats(now, index, &mut probing);
        }
        Some(index)
    }

    /// Removes a destination: what is outstanding there is to be retransmitted elsewhere at once.
    pub(super) fn remove_destination(&mut self, index: DestinationId) {
        self.leave_paths_to(index);
        let Some(removed) = self.peer.remove(index, &self.config, &mut self.out) else {
            return;
        };
        self.local.forget_destination(removed);
        self.leave_address(removed);
        self.open_burst();
    }

    /// The peer wants nothing at a destination for now.
    pub(super) fn deactivate_destination(&mut self, index: DestinationId) {
        self.leave_paths_to(index);
        let address = self.peer.deactivate(index, &self.config, &mut self.out);
        self.leave_address(address);
        self.open_burst();
    }

    /// What is outstanding at a destination is to be sent again where new data goes.
    fn leave_paths_to(&mut self, index: DestinationId) {
        let counters = &mut self.out.counters.multipath;
        self.sender.leave_paths(&self.peer.paths_to(index), counters);
    }

    /// An address of the peer's is gone, or to be left alone.
    fn leave_address(&mut self, address: Ipv6Addr) {
        let primary = self.peer[self.peer.primary()].address();
        self.receiver.leave_address(address, primary);
    }

    /// The peer wants data at a destination again.
    pub(super) fn activate_destination(&mut self, now: Instant, index: DestinationId) {
        if self.peer.activate(index, &mut self.out) {
            let (peer, mut probing) = self.probing();
            peer.resume_heartbeats(now, index, &mut probing);
            self.open_burst();
        }
    }

    /// The association came up, or can go on: destinations are watched, and probed where they have to be.
    pub(super) fn start_heartbeats(&mut self, now: Instant) {
        for index in self.peer.ids() {
            let (peer, mut probing) = self.probing();
            peer.start_heartbeats(now, index, &mut probing);
        }
    }

    /// The source may be another one: packets take the paths from there.
    pub(super) fn follow_source(&mut self) {
        self.local.follow_route();
        for index in self.peer.ids() {
            self.follow_route_to(index);
        }
    }

    /// A destination is reached over the path from where packets for it leave now.
    pub(super) fn follow_route_to(&mut self, index: DestinationId) {
        if self.peer.needs_path_to(index, &self.local) {
            self.make_room_for_path();
        }
        self.peer.follow_route_to(index, &self.config, &self.local);
    }

    /// Where there is none, a path is given up that nobody uses.
    fn make_room_for_path(&mut self) {
        let flight = self.sender.flight();
        if let Some(evicted) = self.peer.path_to_evict(|path| flight.size_on(path)) {
            self.sender.forget_paths(&[evicted]);
            self.peer.evict(evicted);
        }
    }

    /// Lets go of retired paths that are empty.
    pub(super) fn drop_retired_paths(&mut self) {
        let flight = self.sender.flight();
        let dropped = self
            .peer
            .drop_retired_paths(&self.config, |path| flight.size_on(path));
        self.sender.forget_paths(&dropped);
    }

    /// The peer asks for another primary path: notes which of the others are silent now.
    pub(super) fn note_silent_paths(&mut self, now: Instant) {
        let flight = self.sender.flight();
        self.peer
            .note_silent_paths(now, &self.config, |path| flight.t3_rtx(path));
    }

    /// Data may go to the primary path that the peer asked for: what is outstanding on paths that have fallen silent goes
    /// out again there, with no penalty to any window.
    pub(super) fn leave_silent_paths(&mut self, now: Instant) {
        for index in self.peer.ids() {
            let flight = self.sender.flight();
            let t3_rtx = |path| flight.t3_rtx(path);
            if self.peer.has_fallen_silent(now, index, &self.config, t3_rtx) {
                self.leave_paths_to(index);
                self.open_burst();
            }
        }
    }

    /// Whether all that a packet may name it by, and whether some path carries less than the interfaces do, is as it was at
    /// [`note_listed`](Self::note_listed), unless it has ended.
    #[inline]
    pub(in crate::sctp) fn is_as_listed(&self) -> bool {
        self.peer.is_as_listed()
    }

    /// Its endpoint has listed these.
    pub(in crate::sctp) fn note_listed(&mut self) {
        self.peer.note_listed();
    }

    /// Whether some path carries less than the interfaces do.
    pub(in crate::sctp) fn has_reduced_mtu(&self) -> bool {
        self.peer.sizes().is_reduced()
    }

    /// The PMTU towards `destination` with whatever carries SCTP, if it is less than the interface's.
    #[inline]
    pub(in crate::sctp) fn reduced_mtu(&self, destination: Ipv6Addr) -> Option<u32> {
        self.peer.reduced_mtu(destination, &self.config)
    }
}

/// SCTP in UDP (RFC 6951).
impl Association {
    /// A packet with the right verification tag came from `from`, out of the UDP port `remote_port` or not in UDP: what
    /// goes there goes the same way (RFC 6951 section 5.4), and so do addresses that the peer adds.
    pub(in crate::sctp) fn note_encapsulation(&mut self, from: Ipv6Addr, remote_port: Option<u16>) {
        self.peer.expect_new_addresses_at(remote_port);
        self.peer.comes_out_of(from, remote_port);
    }

    /// The peer of a new association came out of `remote_port`.
    pub(in crate::sctp) fn start_encapsulation(&mut self, remote_port: Option<u16>) {
        self.peer.start_encapsulation(remote_port);
    }
}

/// What an ICMPv6 error that is known to be about a packet of ours does (RFC 9260 section 10).
impl Association {
    /// ICMP9: see [`Peer::on_unreachable`](crate::sctp::peer::Peer::on_unreachable).
    pub(in crate::sctp) fn on_unreachable(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        reason: Unreachable,
    ) -> bool {
        let up = self.is_up();
        let what = (address, reason);
        self.peer
            .on_unreachable(now, what, up, &self.config, &mut self.out)
    }

    /// No SCTP behind the UDP port of an address that was asked: the association cannot come up, unless the peer has
    /// other addresses to be asked.
    pub(in crate::sctp) fn on_port_unreachable(&mut self, address: Ipv6Addr) -> bool {
        self.out.tell(Event::Unreachable {
            address,
            reason: Unreachable::Port,
        });
        if self.peer.len() == 1 {
            self.on_protocol_unreachable();
        }
        true
    }

    /// ICMP8: as an ABORT with the T bit.
    pub(in crate::sctp) fn on_protocol_unreachable(&mut self) {
        self.close(Event::Aborted { causes: Vec::new() });
    }

    /// A router says that packets from `source` to `destination` must not exceed `mtu`: see
    /// [`Peer::on_packet_too_big`](crate::sctp::peer::Peer::on_packet_too_big). What was sent and did not fit goes out again.
    /// Returns whether anything changed.
    pub(in crate::sctp) fn on_packet_too_big(
        &mut self,
        now: Instant,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        mtu: u32,
    ) -> bool {
        let ends = (source, destination);
        let reduced = self.peer.on_packet_too_big(now, ends, mtu, &self.config);
        for path in reduced.paths {
            if self.sender.repeat_what_was_too_big(path, reduced.room) {
                self.open_burst();
            }
        }
        reduced.is_news
    }
}
