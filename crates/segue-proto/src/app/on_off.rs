//! Messages at a constant rate while a source is on, and none while it is off.
//!
//! On and off times are drawn one after the other, from the application's own stream. What is left of an interval when the
//! source goes off is waited for when it is on again, so that the mean rate is the rate by the share of time that it is on,
//! however short the on times are.

use super::account::Account;
use super::connection::{Connection, SendRefused};
use super::distribution::Holding;
use crate::random::Stream;
use crate::time::{Duration, Instant};
use crate::units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

/// A source that is on and off.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OnOffConfig {
    /// Rate of user data while it is on.
    pub rate: BitRate,
    /// Bytes per message.
    pub message: Bytes,
    /// How long it is on.
    pub on: Holding,
    /// How long it is off.
    pub off: Holding,
}

/// The sender. It begins on. What is due while there is no room is not sent.
#[derive(Debug)]
pub(super) struct OnOff {
    config: OnOffConfig,
    interval: Duration,
    random: Stream,
    next: Option<Due>,
}

/// The next message.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    /// Since when the source is on then, or since the message before.
    since: Instant,
    /// Until when the source is on then.
    until: Instant,
}

impl OnOff {
    pub fn new(config: OnOffConfig, random: Stream) -> Self {
        Self {
            config,
            interval: config.rate.time_for(config.message.bytes()),
            random,
            next: None,
        }
    }

    pub fn on_connected(&mut self, now: Instant) {
        let until = now + self.config.on.draw(&mut self.random);
        self.next = Some(self.after(now, until));
    }

    pub fn on_closed(&mut self) {
        self.next = None;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next.map(|due| due.at)
    }

    /// Sends what is due.
    pub fn on_timeout(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        while let Some(due) = self.next.filter(|due| due.at <= now) {
            connection.made_since(due.since);
            match account.send(now, connection, self.config.message.bytes(), true) {
                Ok(_) => {}
                Err(SendRefused::Full) => account.stats.messages_skipped += 1,
                Err(SendRefused::Closed) => {
                    self.next = None;
                    return;
                }
            }
            self.next = Some(self.after(due.at, due.until));
        }
    }

    /// The message after `at`, for a source that is on from then `until`.
    fn after(&mut self, mut at: Instant, mut until: Instant) -> Due {
        let mut left = self.interval;
        loop {
            let rest = until.since(at);
            if left < rest {
                return Due {
                    at: at + left,
                    since: at,
                    until,
                };
            }
            left = left.saturating_sub(rest);
            at = until + self.config.off.draw(&mut self.random);
            until = at + self.config.on.draw(&mut self.random);
            if at == Instant::MAX {
                return Due { at, since: at, until };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_wire::Data;

    /// Takes everything, and keeps when it was sent.
    #[derive(Default)]
    struct Sent(Vec<Instant>);

    impl Connection for Sent {
        fn send(&mut self, now: Instant, _data: Data) -> Result<(), SendRefused> {
            self.0.push(now);
            Ok(())
        }
        fn max_message(&self) -> u32 {
            1000
        }
        fn recv(&mut self, _take: impl FnOnce(&[Data], bool)) -> bool {
            false
        }
        fn close(&mut self, _now: Instant) {}
    }

    /// When a source of 100 messages a second sends within so many seconds.
    fn sent(on: Holding, off: Holding, seconds: u64) -> Vec<Instant> {
        let config = OnOffConfig {
            rate: BitRate::from_bits_per_second(800_000),
            message: Bytes::new(1000),
            on,
            off,
        };
        let (mut source, mut sent) = (OnOff::new(config, Stream::new(2, "on-off")), Sent::default());
        source.on_connected(Instant::ZERO);
        let end = Instant::ZERO + Duration::from_secs(seconds);
        while let Some(at) = source.poll_timeout().filter(|at| *at < end) {
            source.on_timeout(at, &mut sent, &mut Account::default());
        }
        sent.0
    }

    fn exponential(ms: u64) -> Holding {
        Holding::Exponential {
            mean: Duration::from_millis(ms),
        }
    }

    #[test]
    fn the_mean_rate_is_the_rate_by_the_share_of_time_that_it_is_on() {
        // also where on times are shorter than the 10 ms between messages
        for (on, off) in [(500, 1500), (4, 12)] {
            let messages = sent(exponential(on), exponential(off), 20_000).len();
            let rate = messages as f64 / 20_000.0;
            assert!((rate - 25.0).abs() < 0.6, "{on} ms on: {rate}");
        }
    }

    #[test]
    fn while_it_is_on_messages_keep_their_pace_and_pauses_are_as_long_as_drawn() {
        let pareto = Holding::Pareto {
            mean: Duration::from_secs(3),
            shape: 1.5,
        };
        let times = sent(exponential(1000), pareto, 20_000);
        let gaps: Vec<u64> = times.windows(2).map(|w| w[1].since(w[0]).as_nanos()).collect();
        let pace = gaps.iter().filter(|gap| **gap == 10_000_000).count();
        assert!(gaps.iter().all(|gap| *gap >= 10_000_000));
        assert!(pace as f64 / gaps.len() as f64 > 0.98);
        // a Pareto pause of mean 3 s and shape 1.5 has at least 1 s, and more than 10 s once in 31.6
        let pauses: Vec<u64> = gaps.into_iter().filter(|gap| *gap > 10_000_000).collect();
        assert!(pauses.iter().all(|gap| *gap >= 1_000_000_000));
        let long = pauses.iter().filter(|gap| **gap > 10_000_000_000).count() as f64 / pauses.len() as f64;
        assert!((long - 0.0316).abs() < 0.01, "{long}");
    }
}
