//! Where an association stands (RFC 9260 section 4), with what it has only while it stands there: the opening has a cookie,
//! retransmissions and T1, the shutdown T2-shutdown and T5-shutdown-guard. What belongs to a state ends with it.

use crate::sctp::ids::DestinationId;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::hint::cold_path;
use segue_wire::sctp::ErrorCause;

/// State of an association (RFC 9260 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum State {
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
    Closed,
}

/// A state with its data.
#[derive(Debug)]
pub(in crate::sctp) struct Phase(Stage);

#[derive(Debug)]
enum Stage {
    /// COOKIE-WAIT and COOKIE-ECHOED.
    Opening(Box<Opening>),
    Established,
    ShutdownPending,
    ShutdownSent {
        /// None before the SHUTDOWN is out, and while no packet can leave.
        t2_shutdown: Option<Instant>,
        t5_shutdown_guard: Instant,
    },
    ShutdownReceived,
    ShutdownAckSent {
        t2_shutdown: Option<Instant>,
        /// Of an end that had sent a SHUTDOWN (section 9.2).
        t5_shutdown_guard: Option<Instant>,
    },
    Closed,
}

/// The handshake from the side that began it.
#[derive(Debug)]
struct Opening {
    step: Step,
    /// Which destination INIT and COOKIE ECHO go to.
    destination: DestinationId,
    /// When either last went out.
    sent: Option<Instant>,
    /// T1-init or T1-cookie; none while no packet can leave.
    t1: Option<Instant>,
    /// Of the INIT, or of the COOKIE ECHO.
    retransmissions: u32,
    /// Cookies that came back too late.
    stale_cookies: u32,
    /// The longer life that the next cookie is asked for, milliseconds.
    cookie_preservative: Option<u32>,
}

#[derive(Debug)]
enum Step {
    /// COOKIE-WAIT.
    Init,
    /// COOKIE-ECHOED.
    CookieEcho {
        cookie: Bytes,
        /// What was wrong with the INIT ACK, to be reported beside the cookie (section 3.2.1).
        errors: Vec<ErrorCause>,
    },
}

/// What opens an association, to be sent now.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::sctp) enum OpeningChunk {
    Init { cookie_preservative: Option<u32> },
    CookieEcho { cookie: Bytes, errors: Vec<ErrorCause> },
}

/// What ends an association, to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum ShutdownChunk {
    Shutdown,
    ShutdownAck,
}

/// What is to be done about an opening that has met with an obstacle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum Retry {
    /// INIT or COOKIE ECHO again.
    Again,
    /// It was tried often enough (Max.Init.Retransmits).
    GiveUp,
}

/// What a SHUTDOWN of the peer's means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum OnShutdown {
    /// What it acknowledges counts, and the shutdown goes on once everything is.
    Acknowledges,
    /// It acknowledges what was never sent.
    Impossible,
    /// Both ends sent one: it is answered at once.
    Crosses,
    /// It was answered, and the answer did not arrive.
    Repeats,
    /// There is nothing to shut down.
    Unexpected,
}

/// A timer of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sctp) enum PhaseTimer {
    T1,
    T2Shutdown,
    T5ShutdownGuard,
}

impl Phase {
    /// Before the handshake: nothing was sent, and the INIT will go to `destination`.
    pub(in crate::sctp) fn new(destination: DestinationId) -> Self {
        Self(Stage::Opening(Box::new(Opening {
            step: Step::Init,
            destination,
            sent: None,
            t1: None,
            retransmissions: 0,
            stale_cookies: 0,
            cookie_preservative: None,
        })))
    }

    #[inline]
    pub(in crate::sctp) fn state(&self) -> State {
        // nearly always, and asked several times of a packet
        if let Stage::Established = self.0 {
            return State::Established;
        }
        cold_path();
        self.state_otherwise()
    }

    #[inline(never)]
    fn state_otherwise(&self) -> State {
        match &self.0 {
            Stage::Opening(opening) => match opening.step {
                Step::Init => State::CookieWait,
                Step::CookieEcho { .. } => State::CookieEchoed,
            },
            Stage::Established => State::Established,
            Stage::ShutdownPending => State::ShutdownPending,
            Stage::ShutdownSent { .. } => State::ShutdownSent,
            Stage::ShutdownReceived => State::ShutdownReceived,
            Stage::ShutdownAckSent { .. } => State::ShutdownAckSent,
            Stage::Closed => State::Closed,
        }
    }

    #[inline]
    pub(in crate::sctp) const fn is_opening(&self) -> bool {
        matches!(self.0, Stage::Opening(_))
    }

    #[inline]
    pub(in crate::sctp) const fn is_closed(&self) -> bool {
        matches!(self.0, Stage::Closed)
    }

    /// Whether the peer has an association too, or had one until a moment ago.
    #[inline]
    pub(in crate::sctp) const fn is_up(&self) -> bool {
        !matches!(self.0, Stage::Opening(_) | Stage::Closed)
    }

    /// The earliest timer.
    #[inline]
    pub(in crate::sctp) fn next_timer(&self) -> Option<Instant> {
        if let Stage::Established = self.0 {
            return None;
        }
        cold_path();
        match &self.0 {
            Stage::Opening(opening) => opening.t1,
            Stage::ShutdownSent {
                t2_shutdown,
                t5_shutdown_guard,
            } => earlier(*t2_shutdown, Some(*t5_shutdown_guard)),
            Stage::ShutdownAckSent {
                t2_shutdown,
                t5_shutdown_guard,
            } => earlier(*t2_shutdown, *t5_shutdown_guard),
            Stage::Established | Stage::ShutdownPending | Stage::ShutdownReceived | Stage::Closed => None,
        }
    }

    /// The timer that is due, T5-shutdown-guard before T2-shutdown.
    pub(in crate::sctp) fn due(&self, now: Instant) -> Option<PhaseTimer> {
        let due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        let (t1, t2, t5) = match &self.0 {
            Stage::Opening(opening) => (opening.t1, None, None),
            Stage::ShutdownSent {
                t2_shutdown,
                t5_shutdown_guard,
            } => (None, *t2_shutdown, Some(*t5_shutdown_guard)),
            Stage::ShutdownAckSent {
                t2_shutdown,
                t5_shutdown_guard,
            } => (None, *t2_shutdown, *t5_shutdown_guard),
            Stage::Established | Stage::ShutdownPending | Stage::ShutdownReceived | Stage::Closed => {
                return None;
            }
        };
        if due(t1) {
            Some(PhaseTimer::T1)
        } else if due(t5) {
            Some(PhaseTimer::T5ShutdownGuard)
        } else {
            due(t2).then_some(PhaseTimer::T2Shutdown)
        }
    }

    /// No packet can leave: the timers that wait for answers stop.
    pub(in crate::sctp) fn stop_timers(&mut self) {
        match &mut self.0 {
            Stage::Opening(opening) => opening.t1 = None,
            Stage::ShutdownSent { t2_shutdown, .. } | Stage::ShutdownAckSent { t2_shutdown, .. } => {
                *t2_shutdown = None;
            }
            _ => {}
        }
    }

    /// The association ends. Returns false if it had ended.
    pub(in crate::sctp) fn close(&mut self) -> bool {
        let open = !self.is_closed();
        self.0 = Stage::Closed;
        open
    }
}

/// The handshake (RFC 9260 section 5).
impl Phase {
    /// INIT or COOKIE ECHO, and the destination that it goes to; nothing of an association that is up.
    pub(in crate::sctp) fn opening_chunk(&self) -> Option<(OpeningChunk, DestinationId)> {
        let Stage::Opening(opening) = &self.0 else {
            return None;
        };
        let chunk = match &opening.step {
            Step::Init => OpeningChunk::Init {
                cookie_preservative: opening.cookie_preservative,
            },
            Step::CookieEcho { cookie, errors } => OpeningChunk::CookieEcho {
                cookie: cookie.clone(),
                errors: errors.clone(),
            },
        };
        Some((chunk, opening.destination))
    }

    /// The destination that INIT and COOKIE ECHO go to.
    pub(in crate::sctp) fn opening_destination(&self) -> Option<DestinationId> {
        match &self.0 {
            Stage::Opening(opening) => Some(opening.destination),
            _ => None,
        }
    }

    /// [`opening_chunk`](Self::opening_chunk) was sent, and T1 expires at `t1`.
    pub(in crate::sctp) fn opening_chunk_sent(&mut self, now: Instant, t1: Instant) {
        if let Stage::Opening(opening) = &mut self.0 {
            opening.sent = Some(now);
            opening.t1 = Some(t1);
        }
    }

    /// T1 expired (section 5.1, rules B and C): once more, to the `alternate` address if there is one.
    pub(in crate::sctp) fn on_t1(
        &mut self,
        max_init_retransmits: u32,
        alternate: Option<DestinationId>,
    ) -> Retry {
        let Stage::Opening(opening) = &mut self.0 else {
            return Retry::GiveUp;
        };
        opening.retransmissions += 1;
        if opening.retransmissions > max_init_retransmits {
            return Retry::GiveUp;
        }
        opening.destination = alternate.unwrap_or(opening.destination);
        Retry::Again
    }

    /// The INIT ACK came from `destination`: COOKIE-ECHOED.
    pub(in crate::sctp) fn on_init_ack(
        &mut self,
        destination: Option<DestinationId>,
        cookie: Bytes,
        errors: Vec<ErrorCause>,
    ) {
        if let Stage::Opening(opening) = &mut self.0 {
            opening.step = Step::CookieEcho { cookie, errors };
            opening.destination = destination.unwrap_or(opening.destination);
            opening.retransmissions = 0;
        }
    }

    /// The peer says that the cookie is older than its life by `staleness_us` (section 5.2.6): a longer life is asked for.
    /// `None` of an association that has echoed none.
    pub(in crate::sctp) fn on_stale_cookie(
        &mut self,
        now: Instant,
        staleness_us: u32,
        max_init_retransmits: u32,
    ) -> Option<Retry> {
        let Stage::Opening(opening) = &mut self.0 else {
            return None;
        };
        let Step::CookieEcho { .. } = opening.step else {
            return None;
        };
        opening.stale_cookies += 1;
        if opening.stale_cookies > max_init_retransmits {
            return Some(Retry::GiveUp);
        }
        // the round trip of COOKIE ECHO and ERROR, and of what was missing no more than a second: a long life is an
        // invitation to replay the cookie
        let round_trip = opening.sent.map_or(Duration::ZERO, |at| now.since(at));
        let missing = Duration::from_micros(u64::from(staleness_us)) + Duration::from_millis(1);
        let increment = round_trip + missing.min(Duration::from_secs(1));
        let increment_ms = u32::try_from(increment.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
        opening.cookie_preservative = Some(increment_ms);
        opening.step = Step::Init;
        Some(Retry::Again)
    }

    /// The handshake begins again from another address of ours: the cookie was made for the former.
    pub(in crate::sctp) fn begin_again(&mut self) {
        if let Stage::Opening(opening) = &mut self.0 {
            opening.step = Step::Init;
        }
    }

    /// The association is up: a COOKIE ACK came, or a cookie.
    pub(in crate::sctp) fn establish(&mut self) {
        self.0 = Stage::Established;
    }
}

/// The graceful end (RFC 9260 section 9.2).
impl Phase {
    /// The user asks for the end. Returns false of an association that is not up, or is being shut down.
    pub(in crate::sctp) fn begin_shutdown(&mut self) -> bool {
        let begins = matches!(self.0, Stage::Established);
        if begins {
            self.0 = Stage::ShutdownPending;
        }
        begins
    }

    /// Everything sent was acknowledged: what is to be sent for the shutdown to go on, if one is under way. `guard` is
    /// T5-shutdown-guard's: section 9.2 gives it to the sender of the SHUTDOWN.
    pub(in crate::sctp) fn on_all_acknowledged(
        &mut self,
        now: Instant,
        guard: Duration,
    ) -> Option<ShutdownChunk> {
        match self.0 {
            Stage::ShutdownPending => {
                self.0 = Stage::ShutdownSent {
                    t2_shutdown: None,
                    t5_shutdown_guard: now + guard,
                };
                Some(ShutdownChunk::Shutdown)
            }
            Stage::ShutdownReceived => {
                self.0 = Stage::ShutdownAckSent {
                    t2_shutdown: None,
                    t5_shutdown_guard: None,
                };
                Some(ShutdownChunk::ShutdownAck)
            }
            _ => None,
        }
    }

    /// SHUTDOWN or SHUTDOWN ACK, whichever the state has one send again.
    #[inline]
    pub(in crate::sctp) fn shutdown_chunk(&self) -> Option<ShutdownChunk> {
        if let Stage::Established = self.0 {
            return None;
        }
        cold_path();
        match self.0 {
            Stage::ShutdownSent { .. } => Some(ShutdownChunk::Shutdown),
            Stage::ShutdownAckSent { .. } => Some(ShutdownChunk::ShutdownAck),
            _ => None,
        }
    }

    /// SHUTDOWN or SHUTDOWN ACK was sent, and T2-shutdown expires at `t2`.
    pub(in crate::sctp) fn shutdown_chunk_sent(&mut self, t2: Instant) {
        if let Stage::ShutdownSent { t2_shutdown, .. } | Stage::ShutdownAckSent { t2_shutdown, .. } =
            &mut self.0
        {
            *t2_shutdown = Some(t2);
        }
    }

    /// The peer sent a SHUTDOWN; `is_possible` if what it acknowledges was sent.
    pub(in crate::sctp) fn on_shutdown(&mut self, is_possible: bool) -> OnShutdown {
        match self.0 {
            Stage::Established | Stage::ShutdownPending | Stage::ShutdownReceived => {
                if !is_possible {
                    return OnShutdown::Impossible;
                }
                self.0 = Stage::ShutdownReceived;
                OnShutdown::Acknowledges
            }
            Stage::ShutdownSent {
                t2_shutdown,
                t5_shutdown_guard,
            } => {
                self.0 = Stage::ShutdownAckSent {
                    t2_shutdown,
                    t5_shutdown_guard: Some(t5_shutdown_guard),
                };
                OnShutdown::Crosses
            }
            Stage::ShutdownAckSent { .. } => OnShutdown::Repeats,
            Stage::Opening(_) | Stage::Closed => OnShutdown::Unexpected,
        }
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
