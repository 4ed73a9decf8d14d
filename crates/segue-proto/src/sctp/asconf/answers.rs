//! The peer's address changes: in which order they are worked off, and what is answered (RFC 5061 sections 4.2, 4.3 and
//! 5.2).

use bytes::Bytes;
use segue_wire::sctp::{AsconfAck, AsconfParameter, AsconfResponse, ErrorCause};
use segue_wire::{AsconfSerial, Tsn};
use std::collections::VecDeque;

/// Most answers kept.
const MAX_ANSWERS: usize = 4;

/// Serial number of the peer's next ASCONF, and the answers to those of the packet that the last one came in: a peer may
/// send several again in one packet (section 5.5).
#[derive(Debug, Default)]
pub(super) struct AsconfAnswers {
    /// None while nothing was heard of the peer.
    next_serial: Option<AsconfSerial>,
    answers: VecDeque<AsconfAck>,
    packet: Packet,
}

/// Whether an ASCONF of the packet at hand was seen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Packet {
    #[default]
    Unseen,
    Seen,
}

/// What an ASCONF is, by its serial number.
#[derive(PartialEq, Debug)]
pub(in crate::sctp) enum Asked {
    /// The next one: its requests are to be worked off.
    New,
    /// One that was answered, with this.
    Again(AsconfAck),
    OutOfOrder,
}

impl AsconfAnswers {
    /// Section 5.2: the peer's first serial number is its initial TSN.
    pub(super) fn begin(&mut self, peer_initial_tsn: Tsn) {
        self.next_serial = Some(AsconfSerial(peer_initial_tsn.0));
        self.answers.clear();
    }

    pub(super) fn begin_packet(&mut self) {
        self.packet = Packet::Unseen;
    }

    pub(super) fn on_asconf(&mut self, serial: AsconfSerial) -> Asked {
        let packet = core::mem::replace(&mut self.packet, Packet::Seen);
        if let Some(answer) = self.answers.iter().find(|a| a.serial_number == serial) {
            return Asked::Again(answer.clone());
        }
        if self.next_serial != Some(serial) {
            return Asked::OutOfOrder;
        }
        self.next_serial = Some(serial.next());
        if packet == Packet::Unseen {
            // E1: the peer has the former ones
            self.answers.clear();
        }
        Asked::New
    }

    pub(super) fn answer(&mut self, answer: &AsconfAck) {
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(answer.clone());
    }
}

/// Works off requests in their order, and gives the responses. On an error the rest is not processed, as the sender takes
/// it (section 5.1, A7), and what went before is named as a success (section 4.2.5: only then is it needed).
pub(in crate::sctp) fn responses(
    parameters: &[AsconfParameter],
    mut work_off: impl FnMut(&AsconfParameter) -> Result<(), ErrorCause>,
) -> Vec<AsconfResponse> {
    let error = parameters
        .iter()
        .find_map(|p| work_off(p).err().map(|cause| (p.correlation_id(), cause)));
    let Some((failed, cause)) = error else {
        return Vec::new();
    };
    let succeeded = parameters
        .iter()
        .map(AsconfParameter::correlation_id)
        .take_while(|&id| id != failed)
        .map(|correlation_id| AsconfResponse::SuccessIndication { correlation_id });
    let mut responses: Vec<_> = succeeded.collect();
    responses.push(AsconfResponse::ErrorCauseIndication {
        correlation_id: failed,
        causes: vec![cause],
    });
    responses
}

/// A request's bytes, as an error cause quotes them.
pub(in crate::sctp) fn quote(parameter: &AsconfParameter) -> Bytes {
    let mut out = Vec::with_capacity(parameter.buffer_len());
    parameter.emit(&mut out);
    out.into()
}
