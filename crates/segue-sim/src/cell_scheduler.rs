//! How those who have something to send over one direction of a cell share it, without the network.
//!
//! One of them has the whole direction at a time, for a slot at most, and sends as fast as its own radio lets it. Its turn ends
//! before that when nothing of its own is left to send. Slots follow each other from the packet on that finds the cell idle:
//! somebody who is alone is served as by a link of its own, and a cell where nobody has anything to send has nothing to do.
//!
//! Whose turn is next, the discipline says:
//!
//! - *Round robin*: whoever has waited longest since its last turn. All who have more to send than they get have the same
//!   share of the time.
//! - *Proportional fair* (Jalali, Padovani and Pankaj, "Data throughput of CDMA-HDR a high efficiency-high data rate personal
//!   communication wireless system", VTC 2000; Viswanath, Tse and Laroia, "Opportunistic beamforming using dumb antennas", IEEE
//!   Transactions on Information Theory 48(6), 2002): whose rate is greatest by what it got on average. With each slot the
//!   average goes to `(1 - 1/t_c) R + r/t_c`, where `r` is what it was given in the slot, and nothing if it was another's, or
//!   nobody's. A turn that is shorter counts as the part of a slot that it was. All averages shrink alike while another is
//!   served, so that the order of those who wait stays: a turn costs the logarithm of their number. Who comes back after a
//!   pause goes before those who were served meanwhile.

use schemars::JsonSchema;
use segue_proto::units::BitRate;
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Whose turn is next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// Whoever has waited longest.
    RoundRobin,
    /// Whose rate is greatest by its average throughput.
    ProportionalFair,
}

/// How a direction of a cell is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedulerConfig {
    /// Whose turn is next.
    pub discipline: Discipline,
    /// The longest turn.
    pub slot: Duration,
    /// For how long averages remember, t_c as a time: more than a slot.
    pub window: Duration,
}

/// One direction of a cell, of users by their numbers.
#[derive(Debug)]
pub struct CellScheduler {
    config: SchedulerConfig,
    /// By how much averages shrink while another is served: e to the power of minus this in a second.
    decay: f64,
    users: BTreeMap<u32, User>,
    /// Those who wait for a turn, the next first.
    waiting: BTreeSet<(Rank, u32)>,
    turn: Option<Turn>,
    /// Turns and waits so far.
    count: u64,
}

/// Where a user stands among those who wait: the least is next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    /// Of its average by its rate, in an order of numbers: the same for all with round robin.
    share: u64,
    since: u64,
}

#[derive(Debug)]
struct User {
    rate: BitRate,
    average: Average,
    /// What its packet at the head still takes; nothing without packets.
    left: Option<Duration>,
    /// If it waits.
    rank: Option<Rank>,
}

/// What a user got on average.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    bps: f64,
    at: Instant,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Turn {
    user: u32,
    /// Up to when its packet was sent, and its average worked out.
    sent: Instant,
    averaged: Instant,
    ends: Instant,
}

impl CellScheduler {
    /// A direction where nobody has anything to send.
    #[must_use]
    pub fn new(config: SchedulerConfig) -> Self {
        let (slot, window) = (config.slot.as_secs_f64(), config.window.as_secs_f64());
        Self {
            config,
            decay: -libm::log1p(-slot / window) / slot,
            users: BTreeMap::new(),
            waiting: BTreeSet::new(),
            turn: None,
            count: 0,
        }
    }

    /// A user sends at this rate from now on, when it is its turn. It is known from then on.
    pub fn set_rate(&mut self, now: Instant, user: u32, rate: BitRate) {
        self.settle(now);
        self.average_turn(now);
        let discipline = self.config.discipline;
        let Some(own) = self.users.get_mut(&user) else {
            let known = User {
                rate,
                average: Average::default(),
                left: None,
                rank: None,
            };
            self.users.insert(user, known);
            return;
        };
        if own.rate == rate {
            return;
        }
        let slower = own.rate.bits_per_second() as f64 / rate.bits_per_second().max(1) as f64;
        own.left = own
            .left
            .map(|left| Duration::from_secs_f64(left.as_secs_f64() * slower));
        own.rate = rate;
        if let Some(rank) = own.rank {
            self.waiting.remove(&(rank, user));
            let rank = own.rank_since(discipline, self.decay, rank.since);
            own.rank = Some(rank);
            self.waiting.insert((rank, user));
        }
    }

    /// Whether a user has packets that were told of.
    #[must_use]
    pub fn is_served(&self, user: u32) -> bool {
        self.users.get(&user).is_some_and(|own| own.left.is_some())
    }

    /// A user that had nothing to send, and whose rate is known, has a packet of this length at its head.
    pub fn offer(&mut self, now: Instant, user: u32, length: u32) {
        if let Some(own) = self.users.get_mut(&user) {
            own.left = Some(own.rate.time_for(u64::from(length)));
            self.wait(user);
            self.begin_turn(now);
        }
    }

    /// A user has nothing to send any more.
    pub fn withdraw(&mut self, now: Instant, user: u32) {
        if self.turn.is_some_and(|turn| turn.user == user) {
            self.average_turn(now);
            self.turn = None;
        }
        if let Some(own) = self.users.get_mut(&user) {
            own.left = None;
            if let Some(rank) = own.rank.take() {
                self.waiting.remove(&(rank, user));
            }
        }
        self.begin_turn(now);
    }

    /// When [`Self::advance`] has something to do next; never, while nobody has anything to send.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let turn = self.turn?;
        let left = self.users.get(&turn.user)?.left?;
        Some(turn.ends.min(turn.sent + left))
    }

    /// It is `now`. Of each packet that has been sent, `take` takes it off its user's queue, and gives the length of the next.
    pub fn advance(&mut self, now: Instant, mut take: impl FnMut(u32) -> Option<u32>) {
        self.settle(now);
        while let Some(turn) = self.turn {
            let Some(own) = self.users.get_mut(&turn.user) else {
                return;
            };
            if own.left.is_some_and(|left| left.is_zero()) {
                own.left = take(turn.user).map(|length| own.rate.time_for(u64::from(length)));
            }
            match own.left {
                // a packet takes some time, however short
                Some(left) if left.is_zero() => {}
                Some(_) if now < turn.ends => return,
                left => {
                    self.average_turn(now);
                    self.turn = None;
                    if left.is_some() {
                        self.wait(turn.user);
                    }
                    self.begin_turn(now);
                    return;
                }
            }
        }
    }

    /// The packet of whose turn it is has been sent so far.
    fn settle(&mut self, now: Instant) {
        if let Some(turn) = &mut self.turn
            && let Some(own) = self.users.get_mut(&turn.user)
        {
            let sent = now.since(turn.sent);
            own.left = own.left.map(|left| left.saturating_sub(sent));
            turn.sent = now;
        }
    }

    /// The average of whose turn it is has grown so far.
    fn average_turn(&mut self, now: Instant) {
        if let Some(turn) = &mut self.turn
            && let Some(own) = self.users.get_mut(&turn.user)
        {
            let begun = core::mem::replace(&mut turn.averaged, now);
            own.average.serve(self.decay, begun, now, own.rate);
        }
    }

    fn wait(&mut self, user: u32) {
        let (discipline, decay) = (self.config.discipline, self.decay);
        self.count += 1;
        let since = self.count;
        if let Some(own) = self.users.get_mut(&user) {
            let rank = own.rank_since(discipline, decay, since);
            own.rank = Some(rank);
            self.waiting.insert((rank, user));
        }
    }

    /// If it is nobody's turn, it is the next one's.
    fn begin_turn(&mut self, now: Instant) {
        if self.turn.is_some() {
            return;
        }
        if let Some((_, user)) = self.waiting.pop_first()
            && let Some(own) = self.users.get_mut(&user)
        {
            own.rank = None;
            self.turn = Some(Turn {
                user,
                sent: now,
                averaged: now,
                ends: now + self.config.slot,
            });
        }
    }
}

impl User {
    fn rank_since(&self, discipline: Discipline, decay: f64, since: u64) -> Rank {
        let share = match discipline {
            Discipline::RoundRobin => 0.0,
            Discipline::ProportionalFair => self.average.by_rate(decay, self.rate),
        };
        Rank {
            share: ordered(share),
            since,
        }
    }
}

impl Average {
    /// The user sent at `rate` from `begun` to `now`, and not since the average was last worked out before that.
    fn serve(&mut self, decay: f64, begun: Instant, now: Instant, rate: BitRate) {
        let without = begun.since(self.at).as_secs_f64();
        let kept = libm::exp(-decay * now.since(begun).as_secs_f64());
        let before = self.bps * libm::exp(-decay * without);
        self.bps = before * kept + rate.bits_per_second() as f64 * (1.0 - kept);
        self.at = now;
    }

    /// The logarithm of what it is by a rate, but for a part that is the same for all at any time.
    fn by_rate(&self, decay: f64, rate: BitRate) -> f64 {
        let rate = rate.bits_per_second().max(1) as f64;
        libm::log(self.bps / rate) + decay * self.at.since(Instant::ZERO).as_secs_f64()
    }
}

/// A number that is greater if `value` is.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_sign_negative() {
        !bits
    } else {
        bits | 1 << 63
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_millis(1);
    const PACKET: u32 = 1500;
    const BOTH: [Discipline; 2] = [Discipline::RoundRobin, Discipline::ProportionalFair];

    fn scheduler(discipline: Discipline) -> CellScheduler {
        CellScheduler::new(SchedulerConfig {
            discipline,
            slot: SLOT,
            window: Duration::from_secs(1),
        })
    }

    fn mbps(rate: u64) -> BitRate {
        BitRate::from_bits_per_second(rate * 1_000_000)
    }

    /// Bytes that users with endless queues get up to `end`, at these rates.
    fn saturated(discipline: Discipline, rates: &[BitRate], end: Instant) -> Vec<u64> {
        let mut cell = scheduler(discipline);
        let mut sent = vec![0; rates.len()];
        for (user, rate) in (0..).zip(rates) {
            cell.set_rate(Instant::ZERO, user, *rate);
            cell.offer(Instant::ZERO, user, PACKET);
        }
        while let Some(now) = cell.next().filter(|now| *now <= end) {
            cell.advance(now, |user| {
                sent[user as usize] += u64::from(PACKET);
                Some(PACKET)
            });
        }
        sent
    }

    /// What a user of this rate has sent in so much time, within a slot of time and the packet that is being sent.
    fn is_about(bytes: u64, rate: BitRate, time: Duration) -> bool {
        let bits = rate.bits_per_second() as f64;
        let within = bits * SLOT.as_secs_f64() + f64::from(PACKET) * 8.0;
        (bytes as f64 * 8.0 - bits * time.as_secs_f64()).abs() <= within
    }

    #[test]
    fn n_saturated_users_of_equal_rate_get_an_nth_each() {
        let end = Instant::ZERO + Duration::from_secs(3);
        for discipline in BOTH {
            for n in [1, 2, 7, 100] {
                let rates = vec![mbps(75); n];
                for bytes in saturated(discipline, &rates, end) {
                    let time = Duration::from_secs_f64(3.0 / n as f64);
                    assert!(is_about(bytes, rates[0], time), "{discipline:?}, {n}: {bytes}");
                }
            }
        }
    }

    #[test]
    fn saturated_users_of_unequal_rates_get_an_nth_of_the_time_each() {
        let end = Instant::ZERO + Duration::from_secs(3);
        let rates = [mbps(3), mbps(20), mbps(75), mbps(150)];
        for discipline in BOTH {
            let sent = saturated(discipline, &rates, end);
            for (bytes, rate) in sent.into_iter().zip(rates) {
                assert!(
                    is_about(bytes, rate, Duration::from_millis(750)),
                    "{discipline:?}: {bytes}"
                );
            }
        }
    }

    #[test]
    fn somebody_who_is_alone_is_served_as_by_a_link_of_its_own() {
        for discipline in BOTH {
            let mut cell = scheduler(discipline);
            cell.set_rate(Instant::ZERO, 3, mbps(8));
            let begun = Instant::ZERO + Duration::from_micros(12_345);
            cell.offer(begun, 3, 1000);
            // a millisecond each, and a short one; then an idle cell has nothing to do
            let mut lengths = vec![100, 1000, 1000];
            let mut departures = Vec::new();
            while let Some(now) = cell.next() {
                cell.advance(now, |_| {
                    departures.push(now.since(begun).as_nanos() / 1000);
                    lengths.pop()
                });
            }
            assert_eq!(departures, [1000, 2000, 3000, 3100], "{discipline:?}");
            assert!(!cell.is_served(3) && cell.waiting.is_empty());
        }
    }

    #[test]
    fn what_a_user_does_not_need_of_its_turn_is_others() {
        for discipline in BOTH {
            let mut cell = scheduler(discipline);
            let (little, much) = (1, 2);
            for user in [little, much] {
                cell.set_rate(Instant::ZERO, user, mbps(100));
            }
            cell.offer(Instant::ZERO, much, PACKET);
            let (mut sent, mut waits) = (0_u64, Vec::new());
            let end = Instant::ZERO + Duration::from_secs(2);
            // a packet of 100 bytes each 20 ms
            let mut due = Instant::ZERO + Duration::from_millis(20);
            loop {
                let next = cell.next().unwrap().min(due);
                if next > end {
                    break;
                }
                if next == due {
                    cell.offer(next, little, 100);
                    due += Duration::from_millis(20);
                    continue;
                }
                cell.advance(next, |user| {
                    if user == little {
                        let offered = due - Duration::from_millis(20);
                        waits.push(next.since(offered));
                        return None;
                    }
                    sent += u64::from(PACKET);
                    Some(PACKET)
                });
            }
            // the last comes with the end
            assert_eq!(waits.len(), 99);
            // the turn that it meets, and its own packet
            let most = SLOT + mbps(100).time_for(100);
            assert!(
                waits.iter().all(|wait| *wait <= most),
                "{discipline:?}: {waits:?}"
            );
            let rest = Duration::from_secs(2) - mbps(100).time_for(100) * 99;
            assert!(is_about(sent, mbps(100), rest), "{discipline:?}: {sent}");
        }
    }

    /// Two users whose rates go up and down in turn, every 10 ms: what both get, Mbit/s.
    fn in_opposite_phases(discipline: Discipline) -> f64 {
        let mut cell = scheduler(discipline);
        let (high, low) = (mbps(100), mbps(20));
        let mut sent = 0_u64;
        let end = Instant::ZERO + Duration::from_secs(10);
        let mut change = Instant::ZERO;
        let mut first_is_high = false;
        loop {
            let next = cell.next().unwrap_or(change).min(change);
            if next >= end {
                break;
            }
            if next == change {
                first_is_high = !first_is_high;
                let rates = if first_is_high { [high, low] } else { [low, high] };
                for (user, rate) in (0..).zip(rates) {
                    cell.set_rate(next, user, rate);
                    if !cell.is_served(user) {
                        cell.offer(next, user, PACKET);
                    }
                }
                change += Duration::from_millis(10);
                continue;
            }
            cell.advance(next, |_| {
                sent += u64::from(PACKET);
                Some(PACKET)
            });
        }
        sent as f64 * 8.0 / 10.0 / 1e6
    }

    #[test]
    fn proportional_fair_serves_each_while_its_rate_is_high_and_round_robin_does_not_look() {
        // half of the time each, at whatever rate; or at its higher one alone: multiuser diversity
        let round_robin = in_opposite_phases(Discipline::RoundRobin);
        assert!((round_robin - 60.0).abs() < 1.0, "{round_robin}");
        let proportional = in_opposite_phases(Discipline::ProportionalFair);
        assert!(proportional > 99.0 && proportional <= 100.0, "{proportional}");
    }

    #[test]
    fn the_average_is_that_of_the_paper_slot_by_slot() {
        let (slot, window) = (SLOT.as_secs_f64(), 1.0);
        let decay = scheduler(Discipline::ProportionalFair).decay;
        let (mut average, mut expected) = (Average::default(), 0.0);
        for number in 0..2000_u64 {
            let is_served = number % 3 == 1;
            expected *= 1.0 - slot / window;
            if is_served {
                let now = Instant::ZERO + SLOT * number;
                average.serve(decay, now, now + SLOT, mbps(50));
                expected += 50e6 * slot / window;
                assert!((average.bps / expected - 1.0).abs() < 1e-9, "{number}");
            }
        }
        assert!((average.bps - 50e6 / 3.0).abs() < 3e6, "{average:?}");
    }

    #[test]
    fn who_withdraws_gives_its_turn_to_the_next() {
        for discipline in BOTH {
            let mut cell = scheduler(discipline);
            for user in 0..3 {
                cell.set_rate(Instant::ZERO, user, mbps(12));
                cell.offer(Instant::ZERO, user, PACKET);
            }
            let now = Instant::ZERO + Duration::from_micros(400);
            cell.withdraw(now, 0);
            cell.withdraw(now, 1);
            assert_eq!(cell.next(), Some(now + SLOT), "{discipline:?}");
            cell.withdraw(now, 2);
            assert_eq!(cell.next(), None);
            assert!(cell.waiting.is_empty());
        }
    }
}
