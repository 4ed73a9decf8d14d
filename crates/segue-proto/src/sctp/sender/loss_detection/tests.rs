//! Which missing reports count.

use super::*;
use crate::sctp::MultipathConfig;
use crate::sctp::SendOptions;
use crate::sctp::multipath::Cuc;
use crate::sctp::sender::chunk::Cause;
use crate::sctp::sender::gaps::tests::blocks as blocks_of;
use crate::sctp::sender::queue::SendQueue;
use crate::sctp::testing::{FIRST, SECOND, concurrently, ms};
use segue_wire::Data;

const RTO: Duration = Duration::from_secs(1);
/// Shortest round trip of both paths.
const LEAST: Duration = Duration::from_millis(20);

/// Chunks with TSNs from 1 on, all of them outstanding, and the SACKs for them.
struct Sacks {
    flight: Flight,
    detector: LossDetector,
}

impl Sacks {
    /// A chunk for each of `paths`, sent a millisecond apart.
    fn new(config: &Config, paths: &[PathId]) -> Self {
        let mut queue = SendQueue::default();
        let mut flight = Flight::with(Tsn(1), config.multipath.is_some(), Cuc::Off);
        let mut detector = LossDetector::new(config);
        for (n, &path) in (1..).zip(paths) {
            let data = Data::Synthetic { offset: 0, len: 100 };
            queue.push(ms(n), 0, data, SendOptions::default());
            let transmission = detector.on_sent(ms(n));
            let content = queue.cut(1000, false).expect("it waits");
            flight.send(ms(n), content, path, RTO, transmission);
        }
        Self { flight, detector }
    }

    fn send_again(&mut self, at: Instant, tsn: u32, path: PathId) {
        self.flight.lose_one(Cause::Timeout, Tsn(tsn));
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
        let blocks = blocks_of(blocks);
        self.detector.step(&mut self.flight, &blocks, 3)
    }
}

fn lost(verdict: &Verdict) -> Vec<u32> {
    verdict.lost.iter().map(|l| l.tsn.0).collect()
}

#[test]
fn the_third_sack_that_acknowledges_something_sent_later_makes_a_chunk_lost() {
    let mut flight = Sacks::new(&Config::default(), &[FIRST; 6]);
    assert_eq!(flight.sack(ms(30), &[3], &[(3, 3)]), Verdict::default());
    // nothing new, and then something that was sent before 4
    assert_eq!(flight.sack(ms(31), &[], &[(3, 3)]), Verdict::default());
    assert_eq!(lost(&flight.sack(ms(32), &[5], &[(3, 3), (5, 5)])), [0_u32; 0]);
    let verdict = flight.sack(ms(33), &[6], &[(3, 3), (5, 6)]);
    let because = |tsn| Lost {
        tsn: Tsn(tsn),
        again: false,
    };
    assert_eq!(verdict.lost[..], [because(1), because(2)]);
    assert_eq!(verdict.withheld, 0);
}

#[test]
fn rfc_2960_counts_every_sack_that_reports_a_chunk_missing() {
    let config = Config::new(Profile::Rfc2960);
    let mut flight = Sacks::new(&config, &[FIRST; 3]);
    assert_eq!(lost(&flight.sack(ms(30), &[3], &[(3, 3)])), [0_u32; 0]);
    assert_eq!(lost(&flight.sack(ms(31), &[], &[(3, 3)])), [0_u32; 0]);
    // but not what was sent after all that it reports
    flight.send_again(ms(32), 2, FIRST);
    assert_eq!(lost(&flight.sack(ms(33), &[], &[(3, 3)])), [1]);
    for at in 34..40 {
        assert_eq!(lost(&flight.sack(ms(at), &[], &[(3, 3)])), [0_u32; 0]);
    }
}

#[test]
fn a_retransmission_counts_as_sent_later_once_it_may_have_been_answered() {
    // with CMT, too, not only what has a higher TSN; without MFR, SFR goes by TSN as published
    let split = |mfr| {
        concurrently(MultipathConfig {
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
    let split = concurrently(MultipathConfig::default());
    let whole = concurrently(MultipathConfig {
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
        let config = concurrently(MultipathConfig {
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
            [0_u32; 0],
            "sent earlier"
        );
        flight.send_again(ms(32), 8, FIRST);
        let verdict = flight.sack(ms(60), &[8], &[(2, 8)]);
        assert_eq!(verdict.lost.len(), 0, "one packet");
        let sent = flight.flight.get(Tsn(1)).expect("sent");
        assert_eq!(sent.transmission().missing_reports(), u8::from(mfr));
    }
}
