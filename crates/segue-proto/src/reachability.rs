//! Whether a way still leads to its end, found out by probes while there is traffic: what a shim does against a network that
//! is up and lets nothing through, which no layer below tells of.
//!
//! Reachability is confirmed as in RFC 4861 section 7.3.1, by what shows that packets have arrived at the other end: an answer to a
//! probe. That of the first hop says nothing of what lies beyond, so that the probe goes to the end. What it is, and that its
//! answer cannot be forged, is the shim's: a locator update that says what the last one did (ILNPv6), an echo request
//! (Mobile IPv6).
//!
//! ```text
//!   packets sent, nothing heard   --QUIET-->  probe  --no answer in a timeout-->  probe, each PACE, MOST in all
//!   packets heard, no answer yet  --PROOF-->  probe                               --no answer in a timeout-->  silent
//!   nothing sent                  no probes
//! ```
//!
//! The timeout is that of RFC 6298 section 2, of round trips of probes. From the first packet that is lost to the verdict
//! it takes `QUIET` and `(MOST - 2) PACE`, 65 ms, and two timeouts. With a loss of 5 % each way an exchange fails with 0.0975,
//! and [`MOST`] in a row with 8e-8: of 15,000 beginnings in ten minutes at the highest pace not one. Who goes on hearing
//! something when an answer was overdue, with pauses of [`LATELY`] at most, waits [`PROOF`]: a queue may have grown longer than any timeout, and takes packets
//! all the same. One packet is not that: what is acknowledged late, or was under way, comes from a way that lets nothing through any more.
//!
//! Probes: none while nothing is sent; one in [`PROOF`] while packets come; one in [`QUIET`] and a round trip, 25 a second
//! at most, while nothing else does; and [`MOST`] within 25 ms and a timeout when there is no answer.

use crate::time::{Duration, Instant};

/// Silence after a packet was sent, until a probe is.
const QUIET: Duration = Duration::from_millis(40);
/// An answer is evidence for so long, while other packets are heard.
const PROOF: Duration = Duration::from_secs(1);
/// Something was heard lately: a line typed each 50 ms is, and what it brings back.
const LATELY: Duration = Duration::from_millis(100);
/// Between probes once one was not answered in time.
const PACE: Duration = Duration::from_millis(5);
/// Unanswered probes that make a way silent.
const MOST: u32 = 7;
/// The timeout before the first round trip, and the least and the greatest.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const LEAST_TIMEOUT: Duration = Duration::from_millis(10);
const GREATEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Answers in a row of which none says which probe it answers: then round trips have become longer than the timeout.
const AMBIGUOUS: u32 = 3;
/// A way that is silent is not probed again for so long; twice as long each time, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// What is known of one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reachability {
    round_trip: RoundTrip,
    /// The first packet sent since something was heard.
    unheard_since: Option<Instant>,
    /// Whether anything was sent since the last answer.
    sent: bool,
    /// When something was last heard.
    heard: Option<Instant>,
    /// The last answer.
    answered: Option<Instant>,
    /// Probes without an answer.
    asked: Option<Asked>,
    /// When something is to be done, or looked at, next.
    next: Option<Instant>,
    /// Not probed before.
    paused_until: Option<Instant>,
    pause: Duration,
}

/// Probes without an answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    first: Instant,
    last: Instant,
    count: u32,
    /// When something was last heard after the first was overdue.
    heard: Option<Instant>,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Nothing,
    /// A probe is to be sent.
    Probe,
    /// Nothing gets through, as far as can be told; the first unanswered probe was sent then.
    Silent {
        since: Instant,
    },
}

impl Reachability {
    /// A packet goes that way.
    #[inline]
    pub fn on_sent(&mut self, now: Instant) {
        if self.unheard_since.is_none() {
            self.unheard_since = Some(now);
        }
        self.sent = true;
        // what waits for the next proof is not to wait longer than for an answer to this
        if self
            .next
            .is_none_or(|at| self.asked.is_none() && at > now + QUIET)
        {
            self.next = self.due(now);
        }
    }

    /// A packet came that way.
    #[inline]
    pub fn on_heard(&mut self, now: Instant) {
        self.heard = Some(now);
        // what was carried past the shim is told afterwards
        self.unheard_since = self.unheard_since.filter(|since| *since > now);
        let timeout = self.round_trip.timeout();
        if let Some(asked) = &mut self.asked
            && now > asked.first + timeout
        {
            asked.heard = Some(now);
        }
    }

    /// A probe is answered.
    pub fn on_answer(&mut self, now: Instant) {
        self.on_heard(now);
        if let Some(asked) = self.asked.take() {
            self.round_trip.measure(now.since(asked.first), asked.count == 1);
        }
        self.sent = false;
        self.answered = Some(now);
        self.paused_until = None;
        self.pause = Duration::ZERO;
    }

    /// Packets take another way from now on, of which nothing is known.
    pub fn on_moved(&mut self) {
        *self = Self {
            paused_until: self.paused_until,
            pause: self.pause,
            ..Self::default()
        };
    }

    /// Whether something was heard since then.
    #[cfg(feature = "ilnp")]
    pub fn has_heard_since(&self, then: Instant) -> bool {
        self.heard.is_some_and(|at| at > then)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// What is to be done now. Of a probe it is taken for granted that it is sent.
    pub fn handle_timeout(&mut self, now: Instant) -> Step {
        if self.next.is_none_or(|at| at > now) {
            return Step::Nothing;
        }
        self.next = self.due(now);
        if self.next.is_none_or(|at| at > now) {
            return Step::Nothing;
        }
        match &mut self.asked {
            Some(asked) if asked.count >= MOST => {
                let since = asked.first;
                self.pause = (self.pause * 2).max(FIRST_PAUSE).min(LONGEST_PAUSE);
                self.paused_until = Some(now + self.pause);
                self.asked = None;
                self.unheard_since = None;
                self.sent = false;
                self.next = None;
                return Step::Silent { since };
            }
            Some(asked) => {
                asked.count += 1;
                asked.last = now;
            }
            None => {
                self.asked = Some(Asked {
                    first: now,
                    last: now,
                    count: 1,
                    heard: None,
                });
            }
        }
        self.next = self.due(now);
        Step::Probe
    }

    /// When something is to be done next.
    fn due(&self, now: Instant) -> Option<Instant> {
        let timeout = self.round_trip.timeout();
        if let Some(asked) = self.asked {
            return Some(match asked.count {
                1 => asked.first + timeout,
                count if count < MOST => asked.last + PACE,
                _ => {
                    let overdue = asked.last + timeout;
                    let heard = asked.heard.map(|at| (at + LATELY).min(asked.first + PROOF));
                    heard.map_or(overdue, |until| until.max(overdue))
                }
            });
        }
        if !self.sent {
            return None;
        }
        let quiet = self.unheard_since.map(|since| since + QUIET);
        let proof = self.answered.map_or(now, |at| at + PROOF);
        let due = quiet.map_or(proof, |quiet| quiet.min(proof));
        Some(self.paused_until.map_or(due, |until| due.max(until)))
    }
}

/// Round trips of probes (RFC 6298 section 2).
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    /// SRTT and RTTVAR.
    measured: Option<(Duration, Duration)>,
    /// Answers in a row of which none says which probe it answers.
    ambiguous: u32,
}

impl RoundTrip {
    fn timeout(&self) -> Duration {
        self.measured.map_or(FIRST_TIMEOUT, |(srtt, rttvar)| {
            (srtt + rttvar * 4).max(LEAST_TIMEOUT).min(GREATEST_TIMEOUT)
        })
    }

    /// An answer came so long after the first probe, which was the only one or not.
    fn measure(&mut self, r: Duration, only: bool) {
        self.ambiguous = if only { 0 } else { self.ambiguous + 1 };
        // Karn's algorithm (RFC 6298 section 3), but for round trips that no longer fit the timeout
        if !only && self.ambiguous < AMBIGUOUS {
            return;
        }
        self.measured = Some(match self.measured {
            None => (r, r / 2),
            Some((srtt, rttvar)) => (
                srtt - srtt / 8 + r / 8,
                rttvar - rttvar / 4 + srtt.abs_diff(r) / 4,
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SecretRng as _;
    use crate::random::Stream;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A way with a round trip and packets that are sent over it; what arrives there is answered, or not.
    struct Path {
        way: Reachability,
        now: Instant,
        /// When answers to probes arrive.
        answers: Vec<Instant>,
        probes: u32,
    }

    impl Path {
        fn new() -> Self {
            Self {
                way: Reachability::default(),
                now: Instant::ZERO + ms(1),
                answers: Vec::new(),
                probes: 0,
            }
        }

        /// Goes on to `end` with a packet each `pacing`; a probe is answered after what `answer` says, or never. When it is
        /// silent, and where that begins.
        fn until(
            &mut self,
            end: Instant,
            pacing: Duration,
            mut answer: impl FnMut() -> Option<Duration>,
        ) -> Option<Instant> {
            let mut packet = self.now;
            while self.now < end {
                let answered = self.answers.iter().min().copied();
                let next = [Some(packet), answered, self.way.poll_timeout()];
                let next = next.into_iter().flatten().min().unwrap();
                self.now = self.now.max(next);
                if answered == Some(next) {
                    self.answers.retain(|at| *at != next);
                    self.way.on_answer(self.now);
                } else if packet == next {
                    self.way.on_sent(self.now);
                    packet += pacing;
                }
                match self.way.handle_timeout(self.now) {
                    Step::Nothing => {}
                    Step::Probe => {
                        self.probes += 1;
                        self.answers.extend(answer().map(|after| self.now + after));
                    }
                    Step::Silent { .. } => return Some(self.now),
                }
            }
            None
        }
    }

    #[test]
    fn a_way_that_lets_nothing_through_is_silent_within_3_round_trips_and_100_ms() {
        for round_trip in [ms(1), ms(20), ms(100), ms(300)] {
            let mut path = Path::new();
            let begin = Instant::ZERO + Duration::from_secs(20);
            assert_eq!(path.until(begin, ms(5), || Some(round_trip)), None);
            path.answers.clear();
            let silent = path.until(begin + Duration::from_secs(9), ms(5), || None);
            let took = silent.unwrap().since(begin);
            assert!(took <= round_trip * 3 + ms(100), "{round_trip}: {took}");
        }
    }

    /// A packet each 5 ms is acknowledged within 1 ms, and nothing is unheard whenever it is looked, until none comes from `begin` on.
    #[test]
    fn a_way_on_which_packets_came_until_now_is_silent_as_soon() {
        for begin in [5000, 5100, 5200, 5500, 5700, 5990] {
            let (mut way, mut answer, mut probes) = (Reachability::default(), None, 0);
            let silent = (1..20_000).find(|&at| {
                let now = Instant::ZERO + ms(at);
                if at < begin && answer == Some(at) {
                    way.on_answer(now);
                } else if at < begin && at % 5 == 1 {
                    way.on_heard(now);
                }
                let before = way.handle_timeout(now);
                if at % 5 == 0 {
                    way.on_sent(now);
                }
                let steps = [before, way.handle_timeout(now)];
                if steps.contains(&Step::Probe) {
                    (answer, probes) = (Some(at + 1), probes + u64::from(at < begin));
                }
                steps.iter().any(|step| matches!(step, Step::Silent { .. }))
            });
            assert!(
                silent.is_some_and(|at| at > begin && at <= begin + 103),
                "{begin}: {silent:?}"
            );
            assert!(probes <= begin / 1000 + 1, "{probes} probes");
        }
    }

    #[test]
    fn loss_and_jitter_are_no_silence() {
        // 5 % of packets each way are lost, and each way takes up to 30 ms longer: of probes twice that
        let mut random = Stream::from_key([7; 32]);
        let mut path = Path::new();
        let end = Instant::ZERO + Duration::from_secs(600);
        let silent = path.until(end, ms(5), || {
            let lost = random.secret_u64() % 10_000 < 975;
            let jitter = Duration::from_nanos(random.secret_u64() % 60_000_000);
            (!lost).then_some(ms(20) + jitter)
        });
        assert_eq!(silent, None);
        assert!(path.probes > 3000, "{}", path.probes);
    }

    #[test]
    fn probes_are_25_a_second_at_most_and_one_a_second_where_packets_come() {
        let mut path = Path::new();
        path.until(Instant::ZERO + Duration::from_secs(10), ms(5), || Some(ms(1)));
        assert!((200..=250).contains(&path.probes), "{}", path.probes);

        let mut way = Reachability::default();
        let mut probes = 0;
        for n in 0..10_000 {
            let now = Instant::ZERO + ms(n);
            way.on_sent(now);
            way.on_heard(now);
            if way.handle_timeout(now) == Step::Probe {
                probes += 1;
                way.on_answer(now);
            }
        }
        assert!((9..=11).contains(&probes), "{probes}");
    }

    #[test]
    fn there_are_no_probes_while_nothing_is_sent() {
        let mut path = Path::new();
        let end = Instant::ZERO + Duration::from_secs(1);
        path.until(end, ms(5), || Some(ms(1)));
        let mut way = path.way;
        way.on_heard(end);
        way.on_answer(end);
        // what is due is looked at once more, and that is all
        while let Some(at) = way.poll_timeout() {
            assert_eq!(way.handle_timeout(at), Step::Nothing);
        }
    }

    #[test]
    fn what_is_heard_but_not_answered_is_silent_after_a_second() {
        let mut way = Reachability::default();
        let mut silent = None;
        for n in 0..20_000 {
            let now = Instant::ZERO + ms(n);
            way.on_sent(now);
            way.on_heard(now);
            match way.handle_timeout(now) {
                Step::Probe if n < 5000 => way.on_answer(now + Duration::from_micros(900)),
                Step::Silent { .. } => {
                    silent = Some(n);
                    break;
                }
                _ => {}
            }
        }
        let silent = silent.unwrap();
        assert!((5900..7100).contains(&silent), "{silent}");
    }

    #[test]
    fn one_packet_that_comes_late_from_the_other_side_is_no_sign_of_life() {
        let mut path = Path::new();
        let begin = Instant::ZERO + Duration::from_secs(20);
        assert_eq!(path.until(begin, ms(5), || Some(ms(1))), None);
        path.answers.clear();
        // probing has begun, and no answer to the first came in time
        let late = begin + ms(60);
        assert_eq!(path.until(late, ms(5), || None), None);
        path.way.on_heard(late);
        let silent = path.until(begin + Duration::from_secs(9), ms(5), || None);
        let took = silent.unwrap().since(late);
        assert!(took >= LATELY && took < LATELY + ms(20), "{took}");
    }

    #[test]
    fn a_silent_way_is_probed_ever_more_rarely() {
        let mut path = Path::new();
        let end = Instant::ZERO + Duration::from_secs(100);
        let mut times = Vec::new();
        while let Some(at) = path.until(end, ms(5), || None) {
            times.push(at);
        }
        let apart: Vec<u64> = times
            .windows(2)
            .map(|w| w[1].since(w[0]).as_nanos() / 1_000_000_000)
            .collect();
        assert_eq!(
            apart[..5],
            [3, 4, 6, 10, 18],
            "2 s are two timeouts of which nothing is known"
        );
    }
}
