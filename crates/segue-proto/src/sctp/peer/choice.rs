//! Which of the peer's addresses is used (RFC 9260 section 6.4).

use super::{Destination, Peer};
use crate::sctp::ids::{DestinationId, PathId};
use crate::sctp::outbox::Outbox;
use crate::sctp::{Config, Event, PathState};
use crate::time::Instant;
use core::net::Ipv6Addr;

impl Peer {
    pub(in crate::sctp) fn primary(&self) -> DestinationId {
        self.primary
    }

    /// Destination that new data goes to.
    pub(in crate::sctp) fn current(&self) -> DestinationId {
        self.current
    }

    /// The path of new data; `None` while it may go nowhere.
    pub(in crate::sctp) fn current_path(&self) -> Option<PathId> {
        let d = &self.destinations[self.current];
        (!d.is_deactivated() && d.is_confirmed()).then_some(d.path())
    }

    /// The paths that new data may go on: to active destinations, from where packets for them leave now.
    pub(in crate::sctp) fn usable_paths(&self) -> impl Iterator<Item = PathId> {
        let usable = self.destinations.values().filter(|d| d.is_usable());
        usable.map(Destination::path)
    }

    /// An active destination other than `other_than`: the primary if it is one, else the next in order.
    pub(in crate::sctp) fn usable_destination(
        &self,
        other_than: Option<DestinationId>,
    ) -> Option<DestinationId> {
        let usable = |id: DestinationId, d: &Destination| d.is_usable() && Some(id) != other_than;
        let primary = self.destinations.get(self.primary);
        if primary.is_some_and(|d| usable(self.primary, d)) {
            return Some(self.primary);
        }
        let next = match other_than {
            Some(id) => self.destinations.after(id).find(|&(id, d)| usable(id, d)),
            None => self.destinations.iter().find(|&(id, d)| usable(id, d)),
        };
        next.map(|(id, _)| id)
    }

    /// The destination after `index` in order, whatever its state, that the peer wants data at.
    pub(in crate::sctp) fn next_destination(&self, index: DestinationId) -> Option<DestinationId> {
        let next = self.destinations.after(index).find(|(_, d)| !d.is_deactivated());
        next.map(|(id, _)| id)
    }

    /// Where to try next what `last` did not answer: an active one, or else each in turn.
    pub(in crate::sctp) fn another_than(&self, last: DestinationId) -> Option<DestinationId> {
        self.usable_destination(Some(last))
            .or_else(|| self.next_destination(last))
    }

    /// The destination to use where none is active: of those potentially failed the one with the lowest error count,
    /// at a tie the one in use (RFC 7829 section 3.2 item 3).
    pub(in crate::sctp) fn least_failed(&self) -> Option<DestinationId> {
        let candidates = self.destinations.iter();
        candidates
            .filter(|(_, d)| !d.is_deactivated() && d.state() == PathState::PotentiallyFailed)
            .min_by_key(|&(i, d)| (d.error_count(), i != self.current, i != self.primary))
            .map(|(i, _)| i)
    }

    /// Section 6.4: new data goes to the primary if it is active, else to an active alternate, else to one that has
    /// only potentially failed (RFC 7829), else (dormant) it stays where it was.
    pub(super) fn choose_current(&mut self) {
        let current = self.destinations.get(self.current);
        if self.destinations[self.primary].is_usable() {
            self.current = self.primary;
        } else if !current.is_some_and(Destination::is_usable) {
            let alternate = self.usable_destination(Some(self.current));
            if let Some(next) = alternate.or_else(|| self.least_failed()) {
                self.current = next;
            } else if current.is_none_or(Destination::is_deactivated) {
                self.current = self.primary;
            }
        }
    }

    /// Makes a destination the primary. While it is Unconfirmed no data goes there (section 5.4): it stays where it
    /// is until the heartbeat is answered.
    pub(in crate::sctp) fn make_primary(&mut self, index: DestinationId, out: &mut Outbox) {
        if self.primary != index {
            self.primary = index;
            out.tell(Event::PrimaryChanged(self.destinations[index].address()));
        }
        self.choose_current();
    }

    /// New data goes to another destination, since this one did not answer.
    pub(in crate::sctp) fn go_on_to(&mut self, next: DestinationId) {
        self.current = next;
    }

    /// A destination is gone, or the peer wants nothing there: it can no longer be the primary, nor that of new data.
    pub(super) fn leave(&mut self, index: DestinationId, config: &Config, out: &mut Outbox) {
        if self.primary == index {
            self.replace_primary(config, out);
        }
        self.choose_current();
    }

    fn replace_primary(&mut self, config: &Config, out: &mut Outbox) {
        let first = |of: &mut dyn Iterator<Item = (DestinationId, &Destination)>| of.next().map(|(id, _)| id);
        let next = self
            .usable_destination(Some(self.primary))
            .or_else(|| first(&mut self.destinations.iter().filter(|(_, d)| !d.is_deactivated())))
            .or_else(|| first(&mut self.destinations.iter()));
        let Some(next) = next else { return };
        let d = &mut self.destinations[next];
        let address = d.address();
        if d.activate() {
            // there is no other any more
            if config.hb_interval.is_some() {
                d.schedule_heartbeat(Some(Instant::ZERO));
            }
            out.counters.activations += 1;
            out.tell(Event::PeerAddressActivated(address));
        }
        self.primary = next;
        out.tell(Event::PrimaryChanged(address));
    }

    /// Whether the peer wants data at another address than this one.
    pub(in crate::sctp) fn has_another_than(&self, index: DestinationId) -> bool {
        self.next_destination(index).is_some()
    }

    /// The peer wants nothing at a destination for now; if need be another one is primary then. Returns its address.
    pub(in crate::sctp) fn deactivate(
        &mut self,
        index: DestinationId,
        config: &Config,
        out: &mut Outbox,
    ) -> Ipv6Addr {
        let d = &mut self.destinations[index];
        d.deactivate();
        let address = d.address();
        out.counters.deactivations += 1;
        out.tell(Event::PeerAddressDeactivated(address));
        self.leave(index, config, out);
        address
    }

    /// The peer wants data at a destination again. Returns whether it had not.
    pub(in crate::sctp) fn activate(&mut self, index: DestinationId, out: &mut Outbox) -> bool {
        let d = &mut self.destinations[index];
        let was_left = d.activate();
        if was_left {
            out.counters.activations += 1;
            out.tell(Event::PeerAddressActivated(d.address()));
            self.choose_current();
        }
        was_left
    }
}
