//! Packets that are for no association (RFC 9260 section 8.4).

use super::Endpoint;
use super::arrived::Arrived;
use crate::sctp::AssociationId;
use crate::sctp::auth;
use segue_wire::sctp::{Chunk, ErrorCause, SctpPacket};

impl Endpoint {
    /// Section 8.4. Whoever guesses tags must not see a difference when he guesses right: what comes from an address that a
    /// peer may send from in good faith is dropped whatever its tag, and all else is answered whatever its tag. The ABORT
    /// reflects the tag, and would end the association.
    #[inline(never)]
    pub(super) fn on_out_of_the_blue(&mut self, arrived: &Arrived, sctp: &SctpPacket) {
        if self.associations.is_from_former(arrived) {
            self.counters.refused.foreign_address += 1;
            return;
        }
        self.answer_out_of_the_blue(arrived, answer(sctp));
    }

    /// An ASCONF from nobody's address, about nobody's: a guess, unless it is authenticated.
    pub(super) fn deliver_or_answer(&mut self, arrived: &Arrived, id: AssociationId, sctp: &mut SctpPacket) {
        let expected = self.associations.is_from_former(arrived);
        let answer = answer(sctp);
        if !self.deliver(arrived, id, sctp) && !expected {
            self.answer_out_of_the_blue(arrived, answer);
        }
    }

    fn answer_out_of_the_blue(&mut self, arrived: &Arrived, answer: Option<Chunk>) {
        self.counters.out_of_the_blue += 1;
        if let Some(answer) = answer {
            self.answer(arrived, arrived.tag, answer);
        }
    }
}

/// What answers a packet out of the blue, if anything does.
fn answer(sctp: &SctpPacket) -> Option<Chunk> {
    // RFC 4895 section 6.3: as if an AUTH chunk were not there
    let first = auth::first_chunk(sctp)?;
    let silent = sctp.chunks.iter().any(|c| match c {
        Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck => true,
        Chunk::Error(causes) => causes.iter().any(|c| matches!(c, ErrorCause::StaleCookie(_))),
        _ => false,
    });
    if silent {
        return None;
    }
    Some(if matches!(first, Chunk::ShutdownAck) {
        Chunk::ShutdownComplete { reflected_tag: true }
    } else {
        Chunk::Abort {
            reflected_tag: true,
            causes: Vec::new(),
        }
    })
}
