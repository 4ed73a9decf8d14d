//! Since when there has always been something to be sent or acknowledged.

use crate::time::Instant;

/// A time in which a sender was never dry. One that ends because messages were abandoned goes on until another arrives: to
/// the user they are missing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    since: Option<Instant>,
    /// Something was acknowledged since.
    any_arrived: bool,
}

impl Busy {
    /// There has been a message of the user's since then. `dry`: the only one there is.
    #[inline]
    pub(super) fn on_message(&mut self, since: Instant, dry: bool) {
        if self.since.is_none() || (dry && self.any_arrived) {
            *self = Self {
                since: Some(since),
                any_arrived: false,
            };
        }
    }

    /// The peer acknowledges something that it has got.
    #[inline]
    pub(super) const fn on_arrival(&mut self) {
        self.any_arrived = true;
    }

    /// Since when.
    #[inline]
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_a_message_to_a_dry_sender_unless_what_was_sent_before_was_abandoned() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut busy = Busy::default();
        assert_eq!(busy.since(), None);
        busy.on_message(at(1), true);
        busy.on_message(at(2), false);
        busy.on_arrival();
        busy.on_message(at(3), false);
        assert_eq!(busy.since(), Some(at(1)), "never dry since");
        busy.on_message(at(4), true);
        assert_eq!(busy.since(), Some(at(4)));
        // the message of 4 s is abandoned, and the one of 5 s
        busy.on_message(at(5), true);
        busy.on_message(at(6), true);
        assert_eq!(busy.since(), Some(at(4)));
        busy.on_arrival();
        busy.on_message(at(7), true);
        assert_eq!(busy.since(), Some(at(7)));
    }
}
