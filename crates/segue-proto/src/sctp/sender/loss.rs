//! Loss detection: what missing reports (RFC 9260 section 7.2.4) count for, by order of sending.
//!
//! A chunk that a SACK leaves out is missing only if something that was sent *later* is newly acknowledged. For chunks
//! sent once on one path that is the HTNA rule of the RFC, since TSNs are in the order of sending. It is not for a chunk
//! that was sent again: its TSN is lower than that of everything that was in flight before, and what comes back of that
//! says nothing of it. A mobile host's data is sent again with every address that is deleted, while the SACKs of the flight
//! over the old one are still on their way. So every transmission has a number ([`Transmission`]), and the numbers
//! are compared.
//!
//! An acknowledgement of a chunk that was sent again may be for the earlier transmission: it is, if it comes within the
//! shortest round trip of the path (RFC 8985 section 6.2, step 2), and then says nothing of when it was sent. Where no data
//! has told the round trip, that of heartbeats does (RFC 9260 section 8.3). Where nothing has, it counts as in section 7.2.4,
//! which makes no difference, unless the chunk was sent on another path before, whose answers may be on their way. What it
//! does say, that a retransmission has arrived before what was sent earlier, takes the place of the RFC's rule that in
//! fast recovery all that a SACK leaves out is missing when it advances the cumulative TSN ack.
//!
//! # Rules
//! | rule | a chunk is missing by |
//! |---|---|
//! | RFC 9260 | what was sent later, newly acknowledged; if it was sent again, on the path that it was last sent on |
//! | RFC 2960 | the same, newly acknowledged or not: every SACK that reports it counts |
//! | SFR, split fast retransmit (Iyengar et al. 2006, section III) | only what was sent later on its own path: what overtook it on another says nothing. As published, and so without MFR, later is what has a higher TSN where the chunk was sent once |
//! | MFR, multiple fast retransmit (Caro, Amer and Stewart 2004) | the same, although it was fast retransmitted before |
//! | DAC (Iyengar et al. 2006, section V) | so many packets as the SACK says, if all that it newly acknowledges was sent later, on one path |
//!
//! Without SFR a first transmission is missing by what went over another path, too, as the RFC has it: where the path of a
//! single-path association changes, what was lost on the old path is found by what arrives over the new one.
//!
//! Without MFR (Caro, Amer and Stewart, "Retransmission schemes for end-to-end failover with transport layer
//! multihoming", GLOBECOM 2004) a fast retransmission that is lost waits for T3-rtx, as RFC 9260 section 7.2.4 has it: in a
//! queue of 1.6 s, for seconds. The authors compare TSNs with the highest one outstanding at the time of the
//! retransmission; numbers of transmissions do as well where a path sends nothing but retransmissions.

use super::flight::Flight;
use super::transmission::Transmission;
use crate::sctp::ack::Ranges;
use crate::sctp::path::PathId;
use crate::sctp::{Config, Profile};
use crate::time::{Duration, Instant};
use segue_wire::Tsn;
use smallvec::SmallVec;

/// Which missing reports count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rules {
    /// A SACK need not acknowledge anything newly (RFC 2960 section 7.2.4).
    repeated: bool,
    split: bool,
    multiple: bool,
    delayed_acks: bool,
}

impl Rules {
    fn new(config: &Config) -> Self {
        let multipath = config.multipath;
        Self {
            repeated: config.profile == Profile::Rfc2960 && multipath.is_none(),
            split: multipath.is_some_and(|m| m.sfr),
            multiple: multipath.is_some_and(|m| m.mfr),
            delayed_acks: multipath.is_some_and(|m| m.dac),
        }
    }
}

/// Numbers of the latest transmission that was acknowledged: by the SACK at hand, and by any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Latest {
    newly: u64,
    ever: u64,
    /// The highest TSN newly acknowledged (HTNA), whenever it was sent.
    highest_newly: Option<Tsn>,
}

impl Latest {
    fn note(&mut self, number: u64) {
        self.newly = self.newly.max(number);
        self.ever = self.ever.max(number);
    }

    fn note_tsn(&mut self, tsn: Tsn) {
        if self.highest_newly.is_none_or(|h| h.before(tsn)) {
            self.highest_newly = Some(tsn);
        }
    }

    fn begin_sack(&mut self) {
        self.newly = 0;
        self.highest_newly = None;
    }
}

/// What the SACK at hand newly acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Newly {
    /// Packets that the SACK stands for, as the receiver counted them.
    packets: u8,
    highest: Option<Tsn>,
    lowest: Option<Tsn>,
    /// Number of the earliest transmission, 0 if that of one is not known.
    earliest: u64,
    /// Whether one of them was sent more than once: what it overtook may have a higher TSN.
    again: bool,
    /// The path of all of them, or none if there are several.
    path: Option<PathId>,
}

impl Newly {
    fn nothing(packets: u8) -> Self {
        Self {
            packets,
            highest: None,
            lowest: None,
            earliest: u64::MAX,
            again: false,
            path: None,
        }
    }
}

/// Tells by what is acknowledged, and by when it was sent, which chunks are lost.
#[derive(Debug)]
pub(in crate::sctp) struct LossDetector {
    rules: Rules,
    transmissions: u64,
    /// By path.
    paths: SmallVec<[(PathId, Latest); 2]>,
    all: Latest,
    newly: Newly,
}

/// Why a chunk is taken for lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Cause {
    /// Reports enough that it is missing (RFC 9260 section 7.2.4, RFC 5827).
    MissingReports,
    /// The same, and it had been fast retransmitted before (MFR).
    RetransmissionMissing,
}

/// A chunk that is taken for lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) struct Lost {
    pub tsn: Tsn,
    pub cause: Cause,
}

/// What a SACK says of what it leaves out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::sctp) struct Verdict {
    /// In order of TSN.
    pub lost: SmallVec<[Lost; 4]>,
    /// Missing reports that did not count, because nothing that was sent later is acknowledged.
    pub withheld: u64,
}

impl LossDetector {
    pub(in crate::sctp) fn new(config: &Config) -> Self {
        Self {
            rules: Rules::new(config),
            transmissions: 0,
            paths: SmallVec::new(),
            all: Latest::default(),
            newly: Newly::nothing(0),
        }
    }

    /// A chunk is sent for the first time.
    pub(in crate::sctp) fn on_sent(&mut self, now: Instant) -> Transmission {
        self.transmissions += 1;
        Transmission::first(self.transmissions, now)
    }

    /// A chunk is sent again; `moves`: on another path than it was last.
    pub(in crate::sctp) fn on_sent_again(
        &mut self,
        now: Instant,
        former: Transmission,
        moves: bool,
    ) -> Transmission {
        former.again(self.on_sent(now), moves)
    }

    /// A SACK arrives that stands for so many packets.
    pub(in crate::sctp) fn begin_sack(&mut self, packets: u8) {
        self.newly = Newly::nothing(packets);
        self.all.begin_sack();
        for (_, latest) in &mut self.paths {
            latest.begin_sack();
        }
    }

    /// It acknowledges `tsn` for the first time, last sent on `path`, whose shortest round trip is `least`, if one is known.
    pub(in crate::sctp) fn on_newly_acked(
        &mut self,
        now: Instant,
        tsn: Tsn,
        path: Option<PathId>,
        transmission: Transmission,
        least: Option<Duration>,
    ) {
        let first = self.newly.highest.is_none();
        self.newly.path = path.filter(|_| first || self.newly.path == path);
        if self.newly.highest.is_none_or(|h| h.before(tsn)) {
            self.newly.highest = Some(tsn);
        }
        if self.newly.lowest.is_none_or(|l| tsn.before(l)) {
            self.newly.lowest = Some(tsn);
        }
        if let Some(path) = path {
            self.on_path(path).note_tsn(tsn);
        }
        let may_be_of_former = least.map_or(transmission.has_moved(), |least| {
            now.since(transmission.at()) < least
        });
        if transmission.is_again() && may_be_of_former {
            self.newly.earliest = 0;
            return;
        }
        self.newly.earliest = self.newly.earliest.min(transmission.number());
        self.newly.again |= transmission.is_again();
        self.all.note(transmission.number());
        if let Some(path) = path {
            self.on_path(path).note(transmission.number());
        }
    }

    /// What is kept of a path.
    fn on_path(&mut self, path: PathId) -> &mut Latest {
        // of a path that came in the place of another: what is sent there has higher numbers
        let known = self.paths.iter().position(|p| p.0.place() == path.place());
        let index = known.unwrap_or(self.paths.len());
        if known.is_none() {
            self.paths.push((path, Latest::default()));
        }
        let (of, latest) = &mut self.paths[index];
        if *of != path {
            (*of, *latest) = (path, Latest::default());
        }
        latest
    }

    /// Counts what the SACK leaves out, whose `blocks` have been applied to `flight`; `threshold` reports make a chunk
    /// lost.
    #[inline(never)]
    pub(in crate::sctp) fn step(&self, flight: &mut Flight, blocks: &Ranges, threshold: u8) -> Verdict {
        let mut verdict = Verdict::default();
        let cumulative = flight.cumulative_tsn_ack();
        let reach = self.reach(cumulative, blocks);
        let mut hole = 1;
        for &(start, end) in blocks {
            for offset in hole..start.min(reach) {
                let tsn = cumulative.add(offset);
                let Some(sent) = flight.get(tsn) else { break };
                let transmission = sent.transmission();
                let again = transmission.is_fast_retransmitted() && !self.rules.multiple;
                if !sent.is_outstanding() || again {
                    continue;
                }
                let reports = self.reports(tsn, transmission, sent.path());
                if reports == 0 {
                    verdict.withheld += 1;
                } else if flight.report_missing(tsn, reports) >= threshold {
                    let cause = if flight.note_fast_retransmission(tsn) {
                        Cause::RetransmissionMissing
                    } else {
                        Cause::MissingReports
                    };
                    verdict.lost.push(Lost { tsn, cause });
                }
            }
            if end >= reach {
                break;
            }
            hole = end + 1;
        }
        verdict
    }

    /// The offset up to which something may be missing: what was sent once was sent before all that has a higher TSN.
    fn reach(&self, cumulative: Tsn, blocks: &Ranges) -> u32 {
        if self.rules.repeated || self.newly.again {
            return blocks.last().map_or(0, |b| b.1);
        }
        let highest = self.newly.highest.filter(|h| cumulative.before(*h));
        highest.map_or(0, |h| h.distance_from(cumulative))
    }

    /// How many reports the SACK at hand is that chunk `tsn` is missing, whose last transmission on `path` this was.
    fn reports(&self, tsn: Tsn, transmission: Transmission, path: Option<PathId>) -> u8 {
        let own = self
            .paths
            .iter()
            .find(|p| Some(p.0) == path)
            .map_or(Latest::default(), |p| p.1);
        let (overtaken, by_all) = if self.rules.split && !self.rules.multiple && !transmission.is_again() {
            let before = |other: Option<Tsn>| other.is_some_and(|other| tsn.before(other));
            (before(own.highest_newly), before(self.newly.lowest))
        } else {
            let latest = if self.rules.split || transmission.is_again() {
                own
            } else {
                self.all
            };
            let latest = if self.rules.repeated {
                latest.ever
            } else {
                latest.newly
            };
            (
                latest > transmission.number(),
                self.newly.earliest > transmission.number(),
            )
        };
        match overtaken {
            false => 0,
            true if self.rules.delayed_acks && by_all && self.newly.path.is_some() => {
                self.newly.packets.max(1)
            }
            true => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::MultipathConfig;
    use crate::sctp::SendOptions;
    use crate::sctp::multipath::Cuc;
    use crate::sctp::sender::{Cause as ChunkCause, SendQueue};
    use segue_wire::Data;

    const FIRST: PathId = PathId::first_at(0);
    const SECOND: PathId = PathId::first_at(1);
    const RTO: Duration = Duration::from_secs(1);
    /// Shortest round trip of both paths.
    const LEAST: Duration = Duration::from_millis(20);

    /// Chunks with TSNs from 1 on, all of them outstanding, and the SACKs for them.
    struct Sacks {
        flight: Flight,
        detector: LossDetector,
    }

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    impl Sacks {
        /// A chunk for each of `paths`, sent a millisecond apart.
        fn new(config: &Config, paths: &[PathId]) -> Self {
            let mut queue = SendQueue::new(1000);
            let mut flight = Flight::new(Tsn(1), config.multipath.is_some(), Cuc::Off);
            let mut detector = LossDetector::new(config);
            for (n, &path) in (1..).zip(paths) {
                let data = Data::Synthetic { offset: 0, len: 100 };
                queue.push(ms(n), 0, data, SendOptions::default());
                let transmission = detector.on_sent(ms(n));
                let content = queue.cut(false).expect("it waits");
                flight.send(ms(n), content, path, RTO, transmission);
            }
            Self { flight, detector }
        }

        fn send_again(&mut self, at: Instant, tsn: u32, path: PathId) {
            self.flight.lose_one(ChunkCause::Timeout, Tsn(tsn));
            let numbered = |former, moves| self.detector.on_sent_again(at, former, moves);
            self.flight
                .resend(at, Tsn(tsn), path, RTO, numbered)
                .expect("marked");
        }

        /// A SACK with the cumulative TSN ack 0 acknowledges `newly`; `blocks` are all that it has.
        fn sack(&mut self, at: Instant, newly: &[u32], blocks: &[(u32, u32)]) -> Verdict {
            self.sack_with(at, newly, blocks, Some(LEAST))
        }

        /// The same with another shortest round trip.
        fn sack_with(
            &mut self,
            at: Instant,
            newly: &[u32],
            blocks: &[(u32, u32)],
            least: Option<Duration>,
        ) -> Verdict {
            self.detector.begin_sack(newly.len() as u8);
            for &tsn in newly {
                let acknowledged = self.flight.acknowledge(Tsn(tsn)).expect("outstanding");
                let (path, transmission) = (acknowledged.path, acknowledged.transmission);
                self.detector
                    .on_newly_acked(at, Tsn(tsn), path, transmission, least);
            }
            let blocks = blocks.iter().copied().collect();
            self.detector.step(&mut self.flight, &blocks, 3)
        }
    }

    fn lost(verdict: &Verdict) -> Vec<u32> {
        verdict.lost.iter().map(|l| l.tsn.0).collect()
    }

    fn cmt(multipath: MultipathConfig) -> Config {
        Config {
            multipath: Some(multipath),
            ..Config::default()
        }
    }

    #[test]
    fn the_third_sack_that_acknowledges_something_sent_later_makes_a_chunk_lost() {
        let mut flight = Sacks::new(&Config::default(), &[FIRST; 6]);
        assert_eq!(flight.sack(ms(30), &[3], &[(3, 3)]), Verdict::default());
        // nothing new, and then something that was sent before 4
        assert_eq!(flight.sack(ms(31), &[], &[(3, 3)]), Verdict::default());
        assert_eq!(lost(&flight.sack(ms(32), &[5], &[(3, 3), (5, 5)])), []);
        let verdict = flight.sack(ms(33), &[6], &[(3, 3), (5, 6)]);
        let because = |tsn| Lost {
            tsn: Tsn(tsn),
            cause: Cause::MissingReports,
        };
        assert_eq!(verdict.lost[..], [because(1), because(2)]);
        assert_eq!(verdict.withheld, 0);
    }

    #[test]
    fn rfc_2960_counts_every_sack_that_reports_a_chunk_missing() {
        let config = Config::new(Profile::Rfc2960);
        let mut flight = Sacks::new(&config, &[FIRST; 3]);
        assert_eq!(lost(&flight.sack(ms(30), &[3], &[(3, 3)])), []);
        assert_eq!(lost(&flight.sack(ms(31), &[], &[(3, 3)])), []);
        // but not what was sent after all that it reports
        flight.send_again(ms(32), 2, FIRST);
        assert_eq!(lost(&flight.sack(ms(33), &[], &[(3, 3)])), [1]);
        for at in 34..40 {
            assert_eq!(lost(&flight.sack(ms(at), &[], &[(3, 3)])), []);
        }
    }

    #[test]
    fn a_retransmission_counts_as_sent_later_once_it_may_have_been_answered() {
        // with CMT, too, not only what has a higher TSN; without MFR, SFR goes by TSN as published
        let split = |mfr| {
            cmt(MultipathConfig {
                mfr,
                ..MultipathConfig::default()
            })
        };
        for (config, answered, expected) in [
            (Config::default(), ms(59), [0; 3]),
            (Config::default(), ms(60), [0, 0, 1]),
            (split(true), ms(59), [0; 3]),
            (split(true), ms(60), [0, 0, 1]),
            (split(false), ms(60), [0; 3]),
        ] {
            let mut flight = Sacks::new(&config, &[FIRST; 6]);
            for tsn in 2..=4 {
                flight.send_again(ms(40), tsn, FIRST);
            }
            // 5 has a higher TSN, and was sent before them
            flight.flight.acknowledge(Tsn(6));
            let found = [(2, 2), (2, 3), (2, 4)].map(|block| {
                let verdict = flight.sack(answered, &[block.1], &[block, (6, 6)]);
                lost(&verdict).iter().filter(|t| **t == 5).count()
            });
            assert_eq!(found, expected, "{answered:?}: {config:?}");
        }
    }

    #[test]
    fn a_retransmission_counts_where_no_round_trip_is_known_unless_the_chunk_has_moved() {
        // by RFC 9260 section 7.2.4 what is newly acknowledged counts; of a chunk that was sent on another path before it
        // may be the flight there that is acknowledged
        for (former, expected) in [(FIRST, &[1][..]), (SECOND, &[])] {
            let mut flight = Sacks::new(&Config::default(), &[former; 4]);
            for tsn in 1..=4 {
                flight.send_again(ms(40), tsn, FIRST);
            }
            // an RTO later, and again: where it was sent before stays true
            for tsn in 1..=4 {
                flight.send_again(ms(80), tsn, FIRST);
            }
            let verdicts = [2, 3, 4].map(|tsn| flight.sack_with(ms(90), &[tsn], &[(2, tsn)], None));
            assert_eq!(lost(&verdicts[2]), expected, "from {former:?}");
        }
    }

    #[test]
    fn what_overtook_on_another_path_counts_for_a_first_transmission_without_sfr_alone() {
        let split = cmt(MultipathConfig::default());
        let whole = cmt(MultipathConfig {
            sfr: false,
            ..MultipathConfig::default()
        });
        for (config, again, expected) in [
            (Config::default(), false, &[1][..]),
            (Config::default(), true, &[]),
            (whole, false, &[1]),
            (split, false, &[]),
        ] {
            let mut flight = Sacks::new(&config, &[FIRST, SECOND, SECOND, SECOND]);
            if again {
                flight.send_again(ms(1), 1, FIRST);
                for tsn in 2..=4 {
                    flight.send_again(ms(2), tsn, SECOND);
                }
            }
            let verdicts = [2, 3, 4].map(|tsn| flight.sack(ms(40), &[tsn], &[(2, tsn)]));
            assert_eq!(lost(&verdicts[2]), expected, "{config:?}");
            let withheld: u64 = verdicts.iter().map(|v| v.withheld).sum();
            assert_eq!(withheld, 3 * u64::from(expected.is_empty()));
        }
    }

    #[test]
    fn a_fast_retransmission_is_found_lost_with_mfr_alone() {
        for mfr in [false, true] {
            let config = cmt(MultipathConfig {
                mfr,
                ..MultipathConfig::default()
            });
            let mut flight = Sacks::new(&config, &[FIRST; 8]);
            assert_eq!(
                lost(&flight.sack(ms(30), &[2, 3, 4], &[(2, 4)])),
                [1],
                "three packets"
            );
            flight.send_again(ms(30), 1, FIRST);
            assert_eq!(
                lost(&flight.sack(ms(31), &[5, 6, 7], &[(2, 7)])),
                [],
                "sent earlier"
            );
            flight.send_again(ms(32), 8, FIRST);
            let verdict = flight.sack(ms(60), &[8], &[(2, 8)]);
            assert_eq!(verdict.lost.len(), 0, "one packet");
            let sent = flight.flight.get(Tsn(1)).expect("sent");
            assert_eq!(sent.transmission().missing_reports(), u8::from(mfr));
        }
    }
}
