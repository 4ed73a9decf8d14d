//! Messages that were not acknowledged in whole, put together again for the user when the association begins anew.

use super::chunk::{About, ChunkState};
use super::flight::Flight;
use super::queue::SendQueue;
use crate::sctp::Message;
use segue_wire::Data;
use smallvec::SmallVec;

/// Takes every message out that was not acknowledged in whole: first those of which something was sent, then the others. Of
/// what the peer has promised to keep (NR-SACK) nothing is left: such a message comes in pieces.
pub(in crate::sctp) fn take(flight: &mut Flight, queue: &mut SendQueue) -> (Vec<Message>, Vec<Message>) {
    let (mut begun, mut unsent) = (Vec::new(), Vec::new());
    let mut open: Option<(Pieces, bool)> = None;
    for sent in flight.take() {
        // what was abandoned is so in all its chunks, and the user knows
        let arrived = matches!(sent.state(), ChunkState::GapAcked { .. } | ChunkState::Abandoned);
        let (released, ending) = (sent.is_released(), sent.about().ending);
        let (pieces, all_arrived) = open.get_or_insert_with(|| (Pieces::of(sent.about()), true));
        if released {
            pieces.leave_out();
        } else {
            pieces.push(sent.into_data());
        }
        *all_arrived &= arrived;
        if ending
            && let Some((pieces, all_arrived)) = open.take()
            && !all_arrived
        {
            begun.extend(pieces.finish());
        }
    }
    for rest in queue.take() {
        let is_begun = rest.is_begun();
        let (data, stream_id, options) = rest.into_rest();
        if is_begun && let Some((mut pieces, _)) = open.take() {
            pieces.push(data);
            begun.extend(pieces.finish());
            continue;
        }
        let message = Message {
            stream_id,
            payload_protocol_id: options.payload_protocol_id,
            unordered: options.unordered,
            first: true,
            last: true,
            parts: SmallVec::from_buf([data]),
        };
        let list = if is_begun { &mut begun } else { &mut unsent };
        list.push(message);
    }
    (begun, unsent)
}

/// A message that is put together again, as far as its data is still there.
struct Pieces {
    about: About,
    finished: Vec<Message>,
    parts: SmallVec<[Data; 1]>,
    /// Of the piece at hand: it is the first.
    first: bool,
    /// Data is missing behind what `parts` has.
    gap: bool,
}

impl Pieces {
    /// Those of the message that a chunk is of.
    fn of(about: &About) -> Self {
        Self {
            about: *about,
            finished: Vec::new(),
            parts: SmallVec::new(),
            first: true,
            gap: false,
        }
    }

    fn push(&mut self, data: Data) {
        if core::mem::take(&mut self.gap) {
            self.end_piece(false);
            self.first = false;
        }
        self.parts.push(data);
    }

    fn leave_out(&mut self) {
        self.gap = true;
    }

    fn end_piece(&mut self, last: bool) {
        let parts = core::mem::take(&mut self.parts);
        if !parts.is_empty() {
            self.finished.push(Message {
                stream_id: self.about.stream_id,
                payload_protocol_id: self.about.payload_protocol_id,
                unordered: self.about.unordered,
                first: self.first,
                last,
                parts,
            });
        }
    }

    fn finish(mut self) -> Vec<Message> {
        self.end_piece(!self.gap);
        self.finished
    }
}
