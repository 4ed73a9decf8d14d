//! Which path the next new chunk goes to.
//!
//! A [`Scheduler`] is asked before each packet of new data, with every path that may carry some. It names one whose window
//! has room, or none: some wait for a faster path although a slower one is free, since what is sent over the slower one
//! arrives so late that it would stop the faster one by filling the receive buffer.
//!
//! | scheduler | chooses | source |
//! |---|---|---|
//! | [`RoundRobin`] | each in turn: CMT's own | Iyengar et al. 2006 |
//! | [`Turns`] | each in turn, until its window is full or there is nothing more to send now | ns-2's agent, by CMT's authors |
//! | [`FillFirst`] | the one used last, until its window is full | |
//! | [`LowestRtt`] | the least SRTT | Linux MPTCP's default |
//! | [`LargestCwnd`] | the most room in the window | |
//! | [`Blest`] | the least SRTT; a slower one only if that cannot block | Ferlin, Alay, Mehani, Boreli 2016 |
//! | [`Ecf`] | the one that completes what is left first | Lim, Nahum, Towsley, Gibbens 2017 |

use crate::time::{Duration, Instant};
use core::fmt::Debug;
use serde::{Deserialize, Serialize};

/// A scheduler's name in configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    /// A packet for each path with room, in turn.
    #[default]
    RoundRobin,
    /// What can be sent at one time goes on one path, until its window is full; the next time begins with the next path.
    Turns,
    /// One path until its window is full, then the next.
    FillFirst,
    /// The path with the least smoothed round-trip time that has room.
    LowestRtt,
    /// The path with the most room in its window.
    LargestCwnd,
    /// Blocking estimation.
    Blest,
    /// Earliest completion first.
    Ecf,
}

impl SchedulerKind {
    /// The scheduler, at its start.
    #[must_use]
    pub fn begin(self) -> Box<dyn Scheduler> {
        match self {
            Self::FillFirst => Box::new(FillFirst::default()),
            Self::RoundRobin => Box::new(RoundRobin::default()),
            Self::Turns => Box::new(Turns::default()),
            Self::LowestRtt => Box::new(LowestRtt),
            Self::LargestCwnd => Box::new(LargestCwnd),
            Self::Blest => Box::new(Blest::default()),
            Self::Ecf => Box::new(Ecf::default()),
        }
    }
}

/// A path that may carry new data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// Which: stays the same from call to call.
    pub id: u8,
    /// cwnd, bytes.
    pub cwnd: u32,
    /// Bytes outstanding on it.
    pub flightsize: u32,
    /// Largest DATA chunk, bytes.
    pub segment: u32,
    /// Smoothed round-trip time; where there is none yet, the least of the other paths.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Whether its window, its share of the buffers and its burst limit let a packet go.
    pub has_room: bool,
}

impl Candidate {
    fn room(&self) -> u32 {
        self.cwnd.saturating_sub(self.flightsize)
    }

    fn segments(&self) -> f64 {
        f64::from(self.cwnd) / f64::from(self.segment.max(1))
    }
}

/// What there is to send, and where it can go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backlog {
    /// When.
    pub now: Instant,
    /// User data that waits to be sent for the first time, bytes; counted only for who asks for it
    /// ([`Scheduler::counts_unsent`]).
    pub unsent: u64,
    /// User data that the peer has room for beyond what is outstanding, bytes.
    pub peer_rwnd: u32,
    /// User data outstanding on all paths together, bytes.
    pub outstanding: u64,
    /// Whether the peer's window stopped a path with room since the last call.
    pub was_blocked: bool,
}

/// Chooses paths. `Send`, since associations are.
pub trait Scheduler: Debug + Send {
    /// Index into `paths`, whose order is that of their ids, of the path for the next packet; `None` to wait. The path
    /// chosen has room. The packet need not follow: the peer's window may stop it.
    fn choose(&mut self, paths: &[Candidate], backlog: &Backlog) -> Option<usize>;

    /// A packet of new data was sent on the path with this id. What a path's turn is reckoned by: a choice that came to
    /// nothing has not used it up.
    fn on_sent(&mut self, _now: Instant, _id: u8) {}

    /// Whether it looks at [`Backlog::unsent`], which takes time to count.
    fn counts_unsent(&self) -> bool {
        false
    }
}

/// See [`SchedulerKind::FillFirst`].
#[derive(Debug, Default)]
pub struct FillFirst {
    last: u8,
}

impl Scheduler for FillFirst {
    fn choose(&mut self, paths: &[Candidate], _backlog: &Backlog) -> Option<usize> {
        next_with_room(paths, |id| id >= self.last)
    }

    fn on_sent(&mut self, _now: Instant, id: u8) {
        self.last = id;
    }
}

/// See [`SchedulerKind::RoundRobin`].
#[derive(Debug, Default)]
pub struct RoundRobin {
    last: Option<u8>,
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, paths: &[Candidate], _backlog: &Backlog) -> Option<usize> {
        next_with_room(paths, |id| self.last.is_none_or(|last| id > last))
    }

    fn on_sent(&mut self, _now: Instant, id: u8) {
        self.last = Some(id);
    }
}

/// See [`SchedulerKind::Turns`]. While SACKs let one packet go at a time this is [`RoundRobin`]. Where one lets many go, since
/// what was missing has arrived and emptied the receive buffer, they follow one another on one path.
#[derive(Debug, Default)]
pub struct Turns {
    last: Option<(Instant, u8)>,
}

impl Scheduler for Turns {
    fn choose(&mut self, paths: &[Candidate], backlog: &Backlog) -> Option<usize> {
        next_with_room(paths, |id| match self.last {
            Some((at, last)) if at == backlog.now => id >= last,
            Some((_, last)) => id > last,
            None => true,
        })
    }

    fn on_sent(&mut self, now: Instant, id: u8) {
        self.last = Some((now, id));
    }
}

/// See [`SchedulerKind::LowestRtt`].
#[derive(Debug)]
pub struct LowestRtt;

impl Scheduler for LowestRtt {
    fn choose(&mut self, paths: &[Candidate], _backlog: &Backlog) -> Option<usize> {
        fastest(paths, |path| path.has_room)
    }
}

/// See [`SchedulerKind::LargestCwnd`].
#[derive(Debug)]
pub struct LargestCwnd;

impl Scheduler for LargestCwnd {
    fn choose(&mut self, paths: &[Candidate], _backlog: &Backlog) -> Option<usize> {
        let with_room = paths.iter().enumerate().filter(|(_, path)| path.has_room);
        // the first of equals
        with_room
            .max_by_key(|(i, path)| (path.room(), core::cmp::Reverse(*i)))
            .map(|(i, _)| i)
    }
}

/// Blocking estimation (Ferlin et al. 2016, section III): a slower path is used only if the window left, while what is sent
/// on it is under way, holds all that the fastest path can send in that time.
#[derive(Debug)]
pub struct Blest {
    /// lambda: how much of the estimate is believed; grows while the window blocks, shrinks while it does not.
    lambda: f64,
    /// When lambda was last changed.
    adjusted: Option<Instant>,
    blocked: bool,
}

impl Blest {
    /// delta_lambda of the paper.
    const STEP: f64 = 0.01;
    const BOUNDS: (f64, f64) = (0.5, 2.0);

    /// Once per round trip of the slower path.
    fn adjust(&mut self, now: Instant, slow: &Candidate) {
        let due = self.adjusted.is_none_or(|at| now.since(at) >= slow.srtt);
        if due {
            let step = if self.blocked { Self::STEP } else { -Self::STEP };
            self.lambda = (self.lambda + step).clamp(Self::BOUNDS.0, Self::BOUNDS.1);
            self.adjusted = Some(now);
            self.blocked = false;
        }
    }
}

impl Default for Blest {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            adjusted: None,
            blocked: false,
        }
    }
}

impl Scheduler for Blest {
    fn choose(&mut self, paths: &[Candidate], backlog: &Backlog) -> Option<usize> {
        self.blocked |= backlog.was_blocked;
        let best = fastest(paths, |_| true)?;
        if paths[best].has_room {
            return Some(best);
        }
        let second = fastest(paths, |path| path.has_room)?;
        let (fast, slow) = (&paths[best], &paths[second]);
        self.adjust(backlog.now, slow);
        let round_trips = slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64().max(1e-6);
        // X: what the fast path sends meanwhile, its window growing by a segment per round trip
        let meanwhile = f64::from(fast.segment) * (fast.segments() + (round_trips - 1.0) / 2.0) * round_trips;
        let window = u64::from(backlog.peer_rwnd) + backlog.outstanding;
        let left = window as f64 - f64::from(slow.flightsize) - f64::from(slow.segment);
        (meanwhile * self.lambda <= left).then_some(second)
    }
}

/// Earliest completion first (Lim et al. 2017, algorithm 1). What is left to send is what waits, as far as the peer's window
/// lets it go.
#[derive(Debug, Default)]
pub struct Ecf {
    waiting: bool,
}

impl Ecf {
    /// beta of the paper: hysteresis of the decision to wait.
    const BETA: f64 = 0.25;
}

impl Scheduler for Ecf {
    fn choose(&mut self, paths: &[Candidate], backlog: &Backlog) -> Option<usize> {
        let best = fastest(paths, |_| true)?;
        if paths[best].has_room {
            return Some(best);
        }
        let second = fastest(paths, |path| path.has_room)?;
        let (fast, slow) = (&paths[best], &paths[second]);
        let (rtt_f, rtt_s) = (fast.srtt.as_secs_f64(), slow.srtt.as_secs_f64());
        let deviation = fast.rttvar.max(slow.rttvar).as_secs_f64();
        let left = backlog.unsent.min(u64::from(backlog.peer_rwnd)) as f64 / f64::from(fast.segment.max(1));
        let rounds = 1.0 + left / fast.segments().max(1.0);
        let hysteresis = if self.waiting { 1.0 + Self::BETA } else { 1.0 };
        if rounds * rtt_f < hysteresis * (rtt_s + deviation) {
            if left / slow.segments().max(1.0) * rtt_s >= 2.0 * rtt_f + deviation {
                self.waiting = true;
                return None;
            }
        } else {
            self.waiting = false;
        }
        Some(second)
    }

    fn counts_unsent(&self) -> bool {
        true
    }
}

/// The first path with room among those that `preferred` names, and then among all.
fn next_with_room(paths: &[Candidate], preferred: impl Fn(u8) -> bool) -> Option<usize> {
    let with_room = || paths.iter().enumerate().filter(|(_, path)| path.has_room);
    let first = with_room().find(|(_, path)| preferred(path.id));
    first.or_else(|| with_room().next()).map(|(i, _)| i)
}

/// The path with the least SRTT that `usable` allows; the first of equals.
fn fastest(paths: &[Candidate], usable: impl Fn(&Candidate) -> bool) -> Option<usize> {
    let usable = paths.iter().enumerate().filter(|(_, path)| usable(path));
    usable.min_by_key(|(i, path)| (path.srtt, *i)).map(|(i, _)| i)
}

#[cfg(test)]
mod tests;
