//! Somebody who watches a film that comes in segments, each at one of several rates (HTTP adaptive streaming).
//!
//! The rate of the next segment is chosen from how much film is in the buffer, by BBA-0 (Huang et al., "A Buffer-Based Approach to
//! Rate Adaptation", SIGCOMM 2014, section 4 and algorithm 1): the lowest within the reservoir, the highest beyond
//! reservoir and cushion, in between by a line, and another than before only once the line is past the next rate up or
//! down. Segments have the nominal size of their rate. One is asked for when the one before is there, and the buffer has
//! room for it.
//!
//! The film begins once so much of it is there as is set, and so it does after it has stood still because there was no more.
//! A connection that is lost loses the segment that was on its way: it is asked for again over the next.

use super::account::Account;
use super::connection::Connection;
use super::object::Requests;
use crate::time::{Duration, Instant};
use crate::units::BitRate;
use serde::{Deserialize, Serialize};

/// Somebody who watches a film.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VideoConfig {
    /// Rates to choose from, from the lowest up.
    pub ladder: Vec<BitRate>,
    /// Length of a segment.
    pub segment: Duration,
    /// Most film in the buffer.
    pub buffer: Duration,
    /// The film goes on once so much of it is there.
    pub startup: Duration,
    /// Below so much film in the buffer the lowest rate is chosen.
    pub reservoir: Duration,
    /// Above so much more the highest.
    pub cushion: Duration,
    /// Length of the film; nothing for one that does not end.
    pub length: Option<Duration>,
    /// Bytes of a request.
    pub request_bytes: u64,
}

/// A segment that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// When it was asked for.
    pub asked: Instant,
    /// When it was there.
    pub arrived: Instant,
    /// Its rate.
    pub rate: BitRate,
}

/// A time in which somebody waited for the film.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When it began: the first when the viewer connected, the others when there was no more film.
    pub since: Instant,
    /// When the film went on; nothing if it has not.
    pub until: Option<Instant>,
}

/// What came of a film.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Viewing {
    /// Segments in order.
    pub segments: Vec<Segment>,
    /// Waiting for the beginning, and then stalls, in order.
    pub stalls: Vec<Stall>,
    /// When there is no more film in the buffer, while it goes on.
    pub dry: Option<Instant>,
    /// All of it was fetched.
    pub is_complete: bool,
}

/// The viewer.
#[derive(Debug)]
pub(super) struct Video {
    config: VideoConfig,
    viewing: Viewing,
    /// Film in the buffer, while it does not go on.
    waiting: Duration,
    /// When the next segment is asked for.
    next: Option<Instant>,
    /// The one that is on its way: when it was asked for, and at which rate.
    asked: Option<(Instant, BitRate)>,
    requests: Requests,
}

impl Video {
    pub fn new(config: VideoConfig) -> Self {
        Self {
            config,
            viewing: Viewing::default(),
            waiting: Duration::ZERO,
            next: None,
            asked: None,
            requests: Requests::default(),
        }
    }

    pub fn viewing(&self) -> &Viewing {
        &self.viewing
    }

    pub fn on_connected(&mut self, now: Instant) {
        if self.viewing.stalls.is_empty() {
            let beginning = Stall {
                since: now,
                until: None,
            };
            self.viewing.stalls.push(beginning);
        }
        self.requests = Requests::default();
        self.asked = None;
        self.next = (!self.viewing.is_complete).then_some(now);
    }

    pub fn on_closed(&mut self) {
        self.next = None;
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Asks for a segment, if one is due.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.next.take_if(|at| *at <= now).is_some() {
            let rate = self.rate(self.buffered(now));
            let bits = u128::from(rate.bits_per_second()) * u128::from(self.config.segment.as_nanos());
            let bytes = u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX);
            self.requests.ask(self.config.request_bytes, bytes);
            self.asked = Some((now, rate));
        }
    }

    /// Sends a request that there is room for.
    pub fn flush(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        self.requests.flush(now, connection, account);
    }

    /// So much has been received over this connection. Gives what the segment that is there now took.
    pub fn on_received(&mut self, now: Instant, account: &mut Account) -> Option<Duration> {
        if self.requests.answered(account.position.received) == 0 {
            return None;
        }
        let (asked, rate) = self.asked.take()?;
        account.stats.responses += 1;
        account.stats.response_time += now.since(asked);
        self.viewing.segments.push(Segment {
            asked,
            arrived: now,
            rate,
        });
        let there = self.config.segment.as_nanos() * self.viewing.segments.len() as u64;
        let length = self.config.length;
        self.viewing.is_complete = length.is_some_and(|length| there >= length.as_nanos());
        self.add_segment(now);
        if !self.viewing.is_complete {
            let room = self.config.buffer.saturating_sub(self.config.segment);
            let over = self.buffered(now).saturating_sub(room);
            self.next = Some(now + over);
        }
        Some(now.since(asked))
    }

    /// Whether all of it was fetched.
    pub fn is_complete(&self) -> bool {
        self.viewing.is_complete
    }

    /// Film in the buffer.
    fn buffered(&self, now: Instant) -> Duration {
        self.viewing.dry.map_or(self.waiting, |dry| dry.since(now))
    }

    /// There is a segment more in the buffer: the film goes on, or may go on again.
    fn add_segment(&mut self, now: Instant) {
        match self.viewing.dry {
            Some(dry) if dry >= now => {
                self.viewing.dry = Some(dry + self.config.segment);
                return;
            }
            Some(dry) => {
                self.viewing.stalls.push(Stall {
                    since: dry,
                    until: None,
                });
                (self.viewing.dry, self.waiting) = (None, Duration::ZERO);
            }
            None => {}
        }
        self.waiting += self.config.segment;
        if (self.waiting >= self.config.startup || self.viewing.is_complete)
            && let Some(stall) = self.viewing.stalls.last_mut()
        {
            stall.until = Some(now);
            self.viewing.dry = Some(now + core::mem::take(&mut self.waiting));
        }
    }

    /// The rate of the next segment, with so much film in the buffer: algorithm 1 of BBA-0.
    fn rate(&self, buffered: Duration) -> BitRate {
        let ladder = &self.config.ladder;
        let (lowest, highest) = (ladder[0], ladder[ladder.len() - 1]);
        let before = self
            .viewing
            .segments
            .last()
            .map_or(lowest, |segment| segment.rate);
        let into = buffered.saturating_sub(self.config.reservoir);
        if into.is_zero() {
            return lowest;
        }
        if into >= self.config.cushion {
            return highest;
        }
        // f(B), the line from the lowest rate at the reservoir to the highest at the end of the cushion; in whole numbers
        let rise = u128::from(highest.bits_per_second() - lowest.bits_per_second());
        let part = rise * u128::from(into.as_nanos()) / u128::from(self.config.cushion.as_nanos());
        let line = BitRate::from_bits_per_second(lowest.bits_per_second() + part as u64);
        let up = ladder.iter().copied().find(|rate| *rate > before);
        let down = ladder.iter().copied().rev().find(|rate| *rate < before);
        if line >= up.unwrap_or(highest) {
            let below = ladder.iter().copied().rev().find(|rate| *rate < line);
            below.unwrap_or(lowest)
        } else if line <= down.unwrap_or(lowest) {
            let above = ladder.iter().copied().find(|rate| *rate > line);
            above.unwrap_or(highest)
        } else {
            before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn secs(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn kbps(rate: u64) -> BitRate {
        BitRate::from_bits_per_second(rate * 1000)
    }

    fn config() -> VideoConfig {
        VideoConfig {
            ladder: [200, 400, 1000, 2000].map(kbps).to_vec(),
            segment: secs(4),
            buffer: secs(60),
            startup: secs(8),
            reservoir: secs(20),
            cushion: secs(30),
            length: None,
            request_bytes: 350,
        }
    }

    /// A viewer whose segments are each there so many milliseconds after they were asked for.
    fn watch(config: VideoConfig, took: &[u64]) -> Video {
        let (mut video, mut account) = (Video::new(config), Account::default());
        video.on_connected(at(0));
        for took in took {
            let Some(now) = video.poll_timeout() else { break };
            video.on_timeout(now);
            let (_, rate) = video.asked.expect("a segment is on its way");
            account.position.received += rate.bits_per_second() * 4 / 8;
            let there = now + Duration::from_millis(*took);
            assert_eq!(
                video.on_received(there, &mut account),
                Some(Duration::from_millis(*took))
            );
        }
        video
    }

    #[test]
    fn the_rate_follows_the_buffer_by_the_line_and_not_at_every_step() {
        let mut video = Video::new(config());
        let after = |video: &mut Video, rate: u64, buffered: u64| {
            video.viewing.segments.push(Segment {
                asked: at(0),
                arrived: at(0),
                rate: kbps(rate),
            });
            video.rate(secs(buffered)).bits_per_second() / 1000
        };
        assert_eq!(video.rate(secs(0)), kbps(200));
        // the line is at 500 kbit/s with 25 s, at 800 with 30 s, at 1400 with 40 s
        for (before, buffered, next) in [
            (2000, 20, 200),
            (200, 50, 2000),
            (200, 25, 400),
            (400, 30, 400),
            (1000, 40, 1000),
            (1000, 30, 1000),
            (400, 40, 1000),
            (2000, 40, 2000),
            (2000, 30, 1000),
            (1000, 23, 400),
        ] {
            assert_eq!(
                after(&mut video, before, buffered),
                next,
                "{before} with {buffered} s"
            );
        }
    }

    #[test]
    fn a_film_begins_with_what_is_set_and_stands_still_when_there_is_no_more() {
        // there at 1, 2, 3 s: it begins at 2 s with 8 s, and 12 s are there at 3 s, until 14 s
        let video = watch(config(), &[1000, 1000, 1000, 13_000, 1000]);
        let stall = |since, until: Option<u64>| Stall {
            since: at(since),
            until: until.map(at),
        };
        assert_eq!(
            video.viewing().stalls,
            [stall(0, Some(2000)), stall(14_000, Some(17_000))]
        );
        assert_eq!(video.viewing().dry, Some(at(25_000)));
    }

    #[test]
    fn a_full_buffer_waits_for_room_and_the_best_rate_is_reached() {
        let video = watch(config(), &[100; 60]);
        let segments = &video.viewing().segments;
        assert_eq!(segments[59].rate, kbps(2000));
        let gap = segments[59].asked.since(segments[58].asked);
        assert_eq!(gap, secs(4));
        assert_eq!(video.viewing().stalls.len(), 1);
        let switches = segments.windows(2).filter(|w| w[0].rate != w[1].rate).count();
        assert_eq!(switches, 3);
    }

    #[test]
    fn a_film_that_is_there_ends_without_a_stall_and_shorter_than_its_beginning_it_still_begins() {
        let short = VideoConfig {
            length: Some(secs(4)),
            ..config()
        };
        let video = watch(short, &[100; 5]);
        assert!(video.is_complete() && video.poll_timeout().is_none());
        assert_eq!(
            (video.viewing().segments.len(), video.viewing().stalls.len()),
            (1, 1)
        );
        assert_eq!(video.viewing().stalls[0].until, Some(at(100)));
    }

    #[test]
    fn a_segment_that_is_lost_with_its_connection_is_asked_for_again() {
        let mut video = watch(config(), &[1000]);
        video.on_timeout(at(1000));
        video.on_closed();
        assert_eq!(video.poll_timeout(), None);
        video.on_connected(at(5000));
        video.on_timeout(at(5000));
        let mut account = Account::default();
        account.position.received = 100_000;
        assert!(video.on_received(at(6000), &mut account).is_some());
        assert_eq!(video.viewing().segments.len(), 2);
        assert_eq!(
            video.viewing().stalls,
            [Stall {
                since: at(0),
                until: Some(at(6000))
            }]
        );
    }
}
