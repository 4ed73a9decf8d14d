//! Messages that were not acknowledged in whole, put together again for the user when the association begins anew.

use super::chunk::{ChunkState, Content};
use super::{Flight, SendQueue};
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
        let (released, ending) = (sent.is_released(), sent.content().ending);
        let (pieces, all_arrived) = open.get_or_insert_with(|| (Pieces::of(sent.content()), true));
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
        let data = rest.data.slice(rest.position, rest.data.len() - rest.position);
        if rest.position > 0
            && let Some((mut pieces, _)) = open.take()
        {
            pieces.push(data);
            begun.extend(pieces.finish());
            continue;
        }
        let message = Message {
            stream_id: rest.stream_id,
            payload_protocol_id: rest.options.payload_protocol_id,
            unordered: rest.options.unordered,
            first: true,
            last: true,
            parts: SmallVec::from_buf([data]),
        };
        let list = if rest.position > 0 {
            &mut begun
        } else {
            &mut unsent
        };
        list.push(message);
    }
    (begun, unsent)
}

/// A message that is put together again, as far as its data is still there.
struct Pieces {
    finished: Vec<Message>,
    open: Message,
    /// Data is missing behind what `open` has.
    gap: bool,
}

impl Pieces {
    /// Those of the message that a chunk is of.
    fn of(content: &Content) -> Self {
        let open = Message {
            stream_id: content.stream_id,
            payload_protocol_id: content.payload_protocol_id,
            unordered: content.unordered,
            first: true,
            last: true,
            parts: SmallVec::new(),
        };
        Self {
            finished: Vec::new(),
            open,
            gap: false,
        }
    }

    fn push(&mut self, data: Data) {
        if core::mem::take(&mut self.gap) {
            let next = Message {
                first: false,
                parts: SmallVec::new(),
                ..self.open
            };
            let before = core::mem::replace(&mut self.open, next);
            if !before.parts.is_empty() {
                self.finished.push(Message {
                    last: false,
                    ..before
                });
            }
        }
        self.open.parts.push(data);
    }

    fn leave_out(&mut self) {
        self.gap = true;
    }

    fn finish(mut self) -> Vec<Message> {
        self.open.last &= !self.gap;
        if !self.open.parts.is_empty() {
            self.finished.push(self.open);
        }
        self.finished
    }
}
