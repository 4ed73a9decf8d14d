//! What is done while the peer's receive window takes nothing (RFC 9260 section 6.1 rule A). How much it takes is counted with what
//! is under way, in [`Flight`](super::flight::Flight).
//!
//! The first probe of a closed window goes out an RTO after it closed; T3-rtx then repeats it, and so the interval doubles up
//! to RTO.Max. As long as the peer answers, neither the path nor the association is blamed, however long it lasts, and the
//! congestion window stays: what the peer has no room for was not lost to congestion.

use crate::time::{Duration, Instant};
use segue_wire::Tsn;

/// Whether a probe may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Permit {
    #[default]
    No,
    /// From then on.
    At(Instant),
    Given,
}

/// The probe that is out: the first chunk of its packet, new or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    tsn: Tsn,
    /// A SACK arrived while it was out: the peer is alive.
    answered: bool,
}

/// Whether the peer's window lets something go, and the probes of one that is closed.
#[derive(Debug, Default)]
pub(in crate::sctp) struct Credit {
    /// The last SACK left no room for what is to be sent next.
    closed: bool,
    permit: Permit,
    probe: Option<Probe>,
    /// Since when cwnd has room for data that waits, and the peer's window has none.
    blocked_since: Option<Instant>,
}

impl Credit {
    pub(in crate::sctp) fn is_closed(&self) -> bool {
        self.closed
    }

    /// A SACK advertises `a_rwnd`. The first chunk that is not acknowledged, or else the next new one, has `next_len` bytes.
    /// Returns the probe, if the window opened again and it had been answered without being taken: it goes out again now, and
    /// not when T3-rtx expires, which may be RTO.Max away. A SACK that was on its way over another path when the probe went
    /// again may have it go once more: that is one packet, and to wait may be a minute.
    pub(in crate::sctp) fn on_sack(
        &mut self,
        a_rwnd: u32,
        next_len: Option<u32>,
        cumulative: Tsn,
    ) -> Option<Tsn> {
        self.closed = a_rwnd == 0 || next_len.is_some_and(|len| len > a_rwnd);
        if a_rwnd > 0 {
            self.permit = Permit::No;
        }
        let probe = self.probe.as_mut()?;
        if probe.tsn.at_or_before(cumulative) {
            self.probe = None;
            return None;
        }
        let refused = core::mem::replace(&mut probe.answered, true) && !self.closed;
        self.probe.take_if(|_| refused).map(|probe| probe.tsn)
    }

    /// Whether `len` bytes of new data may go now, into `room`. If nothing is under way they may even where there is no room for
    /// them: as a probe, an RTO after the window closed.
    #[inline]
    pub(in crate::sctp) fn admits(
        &mut self,
        now: Instant,
        len: u32,
        room: u32,
        is_under_way: bool,
        rto: Duration,
    ) -> bool {
        if len <= room {
            return true;
        }
        if is_under_way {
            self.blocked_since.get_or_insert(now);
            return false;
        }
        if room > 0 || self.permit == Permit::Given {
            return true;
        }
        self.blocked_since.get_or_insert(now);
        if self.permit == Permit::No {
            self.permit = Permit::At(now + rto);
        }
        false
    }

    /// A chunk goes out that the peer has no room for.
    pub(in crate::sctp) fn on_probe_sent(&mut self, tsn: Tsn) {
        if self.permit == Permit::Given {
            self.permit = Permit::No;
        }
        self.probe = Some(Probe { tsn, answered: false });
    }

    /// The probe that is out.
    pub(in crate::sctp) fn probe(&self) -> Option<Tsn> {
        self.probe.map(|probe| probe.tsn)
    }

    /// The probe that is out, and was answered without being taken.
    pub(in crate::sctp) fn answered_probe(&self) -> Option<Tsn> {
        self.probe.filter(|probe| probe.answered).map(|probe| probe.tsn)
    }

    /// A chunk is sent again; if it is the probe, the next answer is to that.
    pub(in crate::sctp) fn on_sent_again(&mut self, tsn: Tsn) {
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.tsn == tsn) {
            probe.answered = false;
        }
    }

    /// The TSNs begin anew: no probe is out.
    pub(in crate::sctp) fn forget_probe(&mut self) {
        self.probe = None;
    }

    /// When a probe may be sent, if not before.
    pub(in crate::sctp) fn timer(&self) -> Option<Instant> {
        match self.permit {
            Permit::At(at) => Some(at),
            Permit::No | Permit::Given => None,
        }
    }

    /// A probe may be sent.
    pub(in crate::sctp) fn on_timer(&mut self) {
        self.permit = Permit::Given;
    }

    /// Nothing can be sent: the timer stops.
    pub(in crate::sctp) fn suspend(&mut self) {
        if self.timer().is_some() {
            self.permit = Permit::No;
        }
    }

    /// The association looks for data to send: since when the window kept it from that, until it does again.
    pub(in crate::sctp) fn look_again(&mut self) -> Option<Instant> {
        self.blocked_since.take()
    }

    /// The peer's window had kept data from being sent since `since`. It still does, or that has ended: for how long it was.
    #[cold]
    pub(in crate::sctp) fn go_on_from_blocking(&mut self, now: Instant, since: Instant) -> Option<Duration> {
        match &mut self.blocked_since {
            Some(blocked) => {
                *blocked = since;
                None
            }
            None => Some(now.since(since)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_secs(1);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    #[test]
    fn a_window_is_closed_to_what_does_not_fit_it() {
        for (a_rwnd, closed) in [(500, false), (499, true), (0, true), (501, false)] {
            let mut credit = Credit::default();
            assert!(!credit.admits(ms(0), 500, 0, false, RTO));
            assert_eq!(credit.timer(), Some(ms(1000)));
            assert_eq!(credit.on_sack(a_rwnd, Some(500), Tsn(0)), None);
            assert_eq!(credit.is_closed(), closed);
            assert_eq!(credit.timer().is_some(), a_rwnd == 0, "{a_rwnd}");
        }
    }

    #[test]
    fn a_probe_goes_an_rto_after_the_window_closed_and_only_with_nothing_under_way() {
        let mut credit = Credit::default();
        assert!(credit.admits(ms(0), 100, 100, true, RTO));
        assert!(
            !credit.admits(ms(5), 101, 100, true, RTO),
            "something is under way"
        );
        assert_eq!(credit.look_again(), Some(ms(5)));
        assert!(credit.admits(ms(6), 101, 100, false, RTO), "some of it fits");
        assert!(!credit.admits(ms(7), 1, 0, false, RTO) && !credit.admits(ms(8), 1, 0, false, RTO));
        assert_eq!(credit.timer(), Some(ms(1007)));
        credit.on_timer();
        assert!(credit.admits(ms(1007), 1, 0, false, RTO));
        credit.on_probe_sent(Tsn(1));
        assert_eq!((credit.probe(), credit.timer()), (Some(Tsn(1)), None));
        assert!(!credit.admits(ms(1008), 1, 0, false, RTO), "one at a time");
        credit.suspend();
        assert_eq!(credit.timer(), None);
    }

    #[test]
    fn a_probe_that_was_refused_goes_out_again_when_the_window_opens() {
        let mut credit = Credit::default();
        credit.on_probe_sent(Tsn(1));
        assert_eq!(credit.answered_probe(), None);
        let mut sack = |a_rwnd, cumulative| {
            let again = credit.on_sack(a_rwnd, Some(500), Tsn(cumulative));
            (again, credit.answered_probe(), credit.probe())
        };
        assert_eq!(sack(0, 0), (None, Some(Tsn(1)), Some(Tsn(1))));
        assert_eq!(sack(499, 0), (None, Some(Tsn(1)), Some(Tsn(1))));
        assert_eq!(sack(500, 0), (Some(Tsn(1)), None, None));
        // a first answer that has room says only that it is on its way; and one that acknowledges it, that it was taken
        let mut credit = Credit::default();
        credit.on_probe_sent(Tsn(1));
        assert_eq!(credit.on_sack(500, Some(500), Tsn(0)), None);
        assert_eq!(credit.answered_probe(), Some(Tsn(1)));
        credit.on_sent_again(Tsn(2));
        assert_eq!(credit.answered_probe(), Some(Tsn(1)), "another chunk");
        credit.on_sent_again(Tsn(1));
        assert_eq!((credit.answered_probe(), credit.probe()), (None, Some(Tsn(1))));
        assert_eq!(credit.on_sack(500, Some(500), Tsn(1)), None);
        assert_eq!(credit.probe(), None);
    }

    #[test]
    fn being_blocked_is_timed_from_its_beginning() {
        let mut credit = Credit::default();
        credit.admits(ms(5), 1, 0, true, RTO);
        let since = credit.look_again().expect("blocked");
        credit.admits(ms(9), 1, 0, true, RTO);
        assert_eq!(credit.go_on_from_blocking(ms(9), since), None);
        assert_eq!(credit.look_again(), Some(ms(5)));
        assert_eq!(
            credit.go_on_from_blocking(ms(25), ms(5)),
            Some(Duration::from_millis(20))
        );
    }
}
