//! What a sender sees of the network that its peer is in, and how it resumes there (see [`crate::tcp::networks`]).

use crate::tcp::networks::Remembered;
use crate::tcp::rtt::Rtt;
use crate::time::{Duration, Instant};

/// What is seen of the network at hand.
#[derive(Debug, Default)]
pub(super) struct OnNetwork {
    /// When the peer came; nothing if it has been there from the beginning.
    since: Option<Instant>,
    shortest: Option<Duration>,
    /// Begin of the round at hand, and the bytes delivered in it.
    round: Option<Instant>,
    delivered: u64,
    capacity: Option<u32>,
    resume: Option<Resume>,
}

#[derive(Clone, Copy, Debug)]
enum Resume {
    /// Reconnaissance: no acknowledgement has come over the network yet.
    Reconnaissance(Remembered),
    /// Unvalidated and Validating: data up to here was sent on credit; so much was delivered since, and the retransmission
    /// timer may have expired.
    Validating {
        end: u64,
        delivered: u64,
        timed_out: bool,
    },
}

/// An acknowledgement that has had its effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivery {
    pub now: Instant,
    /// Bytes that left the network.
    pub bytes: u32,
    /// A round begins.
    pub round_start: bool,
    /// Nothing is being repaired.
    pub calm: bool,
    /// Fast recovery is under way.
    pub in_fast_recovery: bool,
    /// SND.UNA.
    pub una: u64,
    pub mss: u32,
    pub cwnd: u32,
}

/// Where the window goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Jump {
    /// cwnd is this.
    To(u32),
    /// Safe Retreat: ssthresh is this, and cwnd no more.
    Back(u32),
}

impl OnNetwork {
    /// The peer came now; the sender resumes by what it remembers of the network, if anything.
    pub fn entered(now: Instant, resumes: Option<Remembered>) -> Self {
        Self {
            since: Some(now),
            resume: resumes.map(Resume::Reconnaissance),
            ..Self::default()
        }
    }

    /// What was seen.
    pub fn seen(&self, rtt: &Rtt) -> Option<Remembered> {
        let (shortest, (srtt, variation)) = self.shortest.zip(rtt.estimate())?;
        Some(Remembered {
            srtt,
            variation,
            shortest,
            capacity: self.capacity,
        })
    }

    /// An acknowledgement measured a round trip. What was sent before the peer came tells nothing of this network, though
    /// its acknowledgement came over it.
    pub fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        if self.since.is_none_or(|since| now.since(since) >= rtt) {
            self.shortest = Some(self.shortest.map_or(rtt, |s| s.min(rtt)));
        }
    }

    /// The retransmission timer has expired.
    pub fn on_timeout(&mut self) {
        if let Some(Resume::Validating { timed_out, .. }) = &mut self.resume {
            *timed_out = true;
        }
    }

    /// An acknowledgement has had its effect. Gives where the window goes, if it does.
    #[inline(never)]
    pub fn on_delivery(&mut self, delivery: Delivery) -> Option<Jump> {
        self.delivered += u64::from(delivery.bytes);
        if delivery.round_start {
            if let (Some(begun), Some(shortest), true) = (self.round, self.shortest, delivery.calm) {
                let lasted = delivery.now.since(begun).max(shortest);
                let share = shortest.as_nanos() as f64 / (lasted.as_nanos() as f64).max(1.0);
                self.capacity = Some((self.delivered as f64 * share) as u32);
            }
            self.round = Some(delivery.now);
            self.delivered = 0;
        }
        self.resume(delivery)
    }

    fn resume(&mut self, delivery: Delivery) -> Option<Jump> {
        match self.resume? {
            Resume::Reconnaissance(known) => {
                let rtt = self.shortest?;
                // the draft, section 3.3: a path that is much nearer or farther than remembered is another one
                let same = rtt >= known.shortest / 2 && rtt <= known.shortest * 10;
                self.resume = None;
                let capacity = known.capacity.filter(|_| same)?;
                // half of what was saved; beyond an initial window it would have to be paced, so it is cut to that
                let jump = (capacity / 2).min(INITIAL_WINDOW * delivery.mss);
                if jump <= delivery.cwnd {
                    return None;
                }
                self.resume = Some(Resume::Validating {
                    end: delivery.una + u64::from(jump),
                    delivered: 0,
                    timed_out: false,
                });
                Some(Jump::To(jump))
            }
            Resume::Validating {
                end,
                delivered,
                timed_out,
            } => {
                let delivered = delivered + u64::from(delivery.bytes);
                self.resume = (delivery.una < end).then_some(Resume::Validating {
                    end,
                    delivered,
                    timed_out,
                });
                if !delivery.in_fast_recovery && !timed_out {
                    return None;
                }
                // Safe Retreat, section 3.6: half of what is known to have arrived
                self.resume = None;
                let pipe = (delivered.min(u64::from(u32::MAX / 2)) as u32).max(4 * delivery.mss);
                Some(Jump::Back(pipe / 2))
            }
        }
    }
}

/// Segments that may go without pacing (RFC 6928).
pub(super) const INITIAL_WINDOW: u32 = 10;
