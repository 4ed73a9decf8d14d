//! Messages that were being delivered in parts, and were given up.

use crate::sctp::Event;
use crate::sctp::outbox::Outbox;

/// The messages of these streams were.
pub(super) fn tell_cut_short(streams: impl IntoIterator<Item = u16>, out: &mut Outbox) {
    for stream_id in streams {
        out.tell(Event::PartialDeliveryAborted(stream_id));
    }
}
