//! When a host's associations have all been moved: each tells its peer by itself, and has its acknowledgement when that is
//! near.

use segue_proto::Instant;
use segue_proto::sctp::AssociationId;
use segue_proto::sigma::SigmaEventKind;
use smallvec::SmallVec;
use std::net::Ipv6Addr;

/// What the associations of a host tell their peers of its addresses, and have no answer to; and the network that they move
/// to.
#[derive(Clone, Debug, Default)]
pub(super) struct Telling {
    /// What waits for its acknowledgement: whose it is, of which network an address is that it is about, and what it asks.
    waiting: SmallVec<[(AssociationId, u32, Asks); 2]>,
    moves: Option<Completion>,
}

/// What a peer is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    /// To take an address for one of the host's.
    Adding,
    /// To use it.
    Using,
}

/// A move of the host to another network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completion {
    pub network: u32,
    /// When something of it was acknowledged last.
    pub at: Instant,
}

impl Telling {
    /// An association of the host reports, and `network_of` finds the network of an address. Gives a move that was complete
    /// before.
    pub fn sigma_event(
        &mut self,
        now: Instant,
        id: AssociationId,
        kind: SigmaEventKind,
        network_of: impl Fn(Ipv6Addr) -> Option<u32>,
    ) -> Option<Completion> {
        use SigmaEventKind as Kind;
        // what one answer has an association ask for next is asked at the same time
        let before = self.complete().filter(|moved| moved.at < now);
        if before.is_some() {
            self.moves = None;
        }
        let Some(network) = kind.address().and_then(network_of) else {
            return before;
        };
        let mut taken_over = None;
        match kind {
            Kind::AddSent(_) => self.ask(id, network, Asks::Adding),
            Kind::SetPrimarySent(_) | Kind::ActivateSent(_) => self.ask(id, network, Asks::Using),
            Kind::AddAcknowledged(_) => {
                self.answered(id, network, Some(Asks::Adding));
                if let Some(moves) = self.moves.as_mut().filter(|moves| moves.network == network) {
                    moves.at = now;
                }
            }
            Kind::SetPrimaryAcknowledged(_) | Kind::ActivateAcknowledged(_) => {
                self.answered(id, network, Some(Asks::Using));
                // who has not answered by then will be told of the next
                taken_over = self.moves.filter(|moves| moves.network != network);
                self.moves = Some(Completion { network, at: now });
            }
            Kind::AddRefused(_) => self.answered(id, network, Some(Asks::Adding)),
            Kind::SetPrimaryRefused(_) | Kind::ActivateRefused(_) => {
                self.answered(id, network, Some(Asks::Using));
            }
            Kind::DeleteSent(_) | Kind::DeleteAcknowledged(_) | Kind::DeactivateSent(_) => {
                self.answered(id, network, None);
            }
            _ => {}
        }
        before.or(taken_over)
    }

    /// An association is over: nothing of it will be acknowledged.
    pub fn association_gone(&mut self, id: AssociationId) {
        self.waiting.retain(|(of, ..)| *of != id);
    }

    /// The move that everybody has acknowledged who was told of it, if nothing more is to be asked for.
    pub fn complete(&self) -> Option<Completion> {
        self.moves.filter(|moves| {
            let of_it = |(_, network, _): &(AssociationId, u32, Asks)| *network == moves.network;
            !self.waiting.iter().any(of_it)
        })
    }

    fn ask(&mut self, id: AssociationId, network: u32, asks: Asks) {
        if !self.waiting.contains(&(id, network, asks)) {
            self.waiting.push((id, network, asks));
        }
    }

    /// This waits no longer, or nothing of an association about a network.
    fn answered(&mut self, id: AssociationId, network: u32, asks: Option<Asks>) {
        self.waiting.retain(|(of, about, what)| {
            (*of, *about) != (id, network) || asks.is_some_and(|asks| asks != *what)
        });
    }
}
