//! Plays a script: one event after the other in virtual time, whatever the protocol.
//!
//! Times are packetdrill's: a time with `+` counts from when the event before it happened, which for an expected packet is
//! when it was sent. A packet is judged when its line is reached; it may have been sent before, while calls were made, but
//! packets are judged in the order in which they were sent, and at the end none may be left that was sent before the last
//! event happened.

use super::ast::{Action, Call, Direction, Event, Expression, Packet, Script, When};
use super::stack::{Comparison, Outcome, Refusal, Returned, Sent, Stack};
use super::verdict::{Failure, Verdict};
use segue_proto::{Duration, Instant};
use std::collections::VecDeque;

/// A day: with more, a script would say nothing about times.
const MOST_TOLERANCE_US: u64 = 86_400_000_000;
/// packetdrill's tolerance unless `--tolerance_usecs` says another.
const TOLERANCE: Duration = Duration::from_micros(4_000);
/// How long a packet that may come at any time (`*`) is waited for.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The longest wait for one event: whatever runs so long is a slip of the pen.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);
/// Rounds of timers without a step of time after which a stack is taken to keep itself busy.
const MOST_ROUNDS: usize = 10_000;

/// Plays `script` on `stack`.
pub fn run(script: &Script, stack: &mut dyn Stack) -> Verdict {
    let mut runner = match Runner::new(script, stack) {
        Ok(runner) => runner,
        Err(stop) => return stop.into(),
    };
    match runner.play() {
        Ok(()) => Verdict::Passed,
        Err(stop) => stop.into(),
    }
}

/// Why a script is not played on.
enum Stop {
    Failed(Failure),
    Unmappable { line: usize, what: String },
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(failure) => Self::Failed(failure),
            Stop::Unmappable { line, what } => Self::Unmappable { line, what },
        }
    }
}

type Played<T> = Result<T, Stop>;

struct Runner<'a> {
    script: &'a Script,
    stack: &'a mut dyn Stack,
    tolerance: Duration,
    now: Instant,
    /// Packets sent and not yet judged, with the number of events that had begun by then.
    sent: VecDeque<(usize, Sent)>,
    /// Events that have begun.
    begun: usize,
    /// A call that has not returned.
    waiting: Option<Waiting<'a>>,
}

/// A call that has not returned.
struct Waiting<'a> {
    event: &'a Event,
    call: &'a Call,
    /// When it is to return.
    until: Instant,
}

impl<'a> Runner<'a> {
    fn new(script: &'a Script, stack: &'a mut dyn Stack) -> Played<Self> {
        let mut tolerance = TOLERANCE;
        for option in &script.options {
            if option.name == "tolerance_usecs" {
                let value = option.value.as_deref().and_then(|v| v.parse().ok());
                let value = value.filter(|v| *v <= MOST_TOLERANCE_US);
                tolerance = Duration::from_micros(value.ok_or_else(|| Stop::Unmappable {
                    line: option.line,
                    what:
                        "--tolerance_usecs without a whole number of microseconds, a day at most".to_owned(),
                })?);
            }
        }
        Ok(Self {
            script,
            stack,
            tolerance,
            now: Instant::ZERO,
            sent: VecDeque::new(),
            begun: 0,
            waiting: None,
        })
    }

    fn play(&mut self) -> Played<()> {
        let script = self.script;
        if let Some(shell) = &script.setup {
            let done = self.stack.shell(self.now, shell);
            done.map_err(|refusal| refused(shell.line, refusal))?;
        }
        for event in &script.events {
            self.event(event)?;
            self.begun += 1;
        }
        self.await_call()?;
        if let Some(shell) = &script.cleanup {
            let done = self.stack.shell(self.now, shell);
            done.map_err(|refusal| refused(shell.line, refusal))?;
        }
        match (script.events.last(), self.sent.front()) {
            (Some(last), Some((begun, sent))) if *begun + 1 < self.begun && self.stack.all_is_expected() => {
                Err(Stop::Failed(Failure {
                    line: last.line,
                    due: format!("{}, and by then nothing that no line expects", last.text),
                    came: self.shown(sent),
                    difference: None,
                }))
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &'a Event) -> Played<()> {
        let refused = |refusal| refused(event.line, refusal);
        if self
            .range(event.when)
            .is_some_and(|(_, to)| to > self.now + LONGEST_WAIT)
        {
            return Err(refused(Refusal("a wait of more than a day".to_owned())));
        }
        match &event.action {
            Action::Packet(packet) if packet.direction == Direction::Out => self.expect(event, packet)?,
            Action::Packet(packet) => {
                self.reach(event)?;
                self.stack.inject(self.now, packet).map_err(refused)?;
            }
            Action::Call(call) => {
                self.reach(event)?;
                self.await_call()?;
                self.call(event, call)?;
            }
            Action::Shell(shell) => {
                self.reach(event)?;
                self.stack.shell(self.now, shell).map_err(refused)?;
            }
            Action::Code(code) => {
                self.reach(event)?;
                if let Comparison::Differs(difference) = self.stack.code(self.now, code).map_err(refused)? {
                    return Err(Stop::Failed(Failure {
                        line: event.line,
                        due: event.text.clone(),
                        came: difference,
                        difference: None,
                    }));
                }
            }
        }
        self.settle()
    }

    /// A packet is due.
    fn expect(&mut self, event: &Event, due: &Packet) -> Played<()> {
        let range = self.range(event.when);
        while !self.expect_one(event, due, range)? {}
        Ok(())
    }

    /// One packet for the line of a packet that is due. Whether it was the last of that line.
    fn expect_one(&mut self, event: &Event, due: &Packet, range: Option<(Instant, Instant)>) -> Played<bool> {
        let latest = range.map_or(self.now + PATIENCE, |(_, to)| to + self.tolerance);
        self.settle()?;
        while self.sent.is_empty() {
            if !self.step(latest)? {
                break;
            }
        }
        let due_text = self.due(event, range);
        let failure = |came, difference| {
            Err(Stop::Failed(Failure {
                line: event.line,
                due: due_text.clone(),
                came,
                difference,
            }))
        };
        let Some((_, sent)) = self.sent.pop_front() else {
            return failure(format!("nothing until {}", seconds(latest)), None);
        };
        // numbers are learnt before the packet is written with them
        let compared = self.stack.compare(due, &sent);
        let compared = compared.map_err(|refusal| refused(event.line, refusal))?;
        let failure = |difference| failure(self.shown(&sent), Some(difference));
        if let Comparison::Differs(difference) = &compared {
            return failure(difference.clone());
        }
        if let Some((from, to)) = range {
            if sent.at + self.tolerance < from {
                return failure(format!("{} too early", from - sent.at));
            }
            if sent.at > latest {
                return failure(format!("{} too late", sent.at - to));
            }
        }
        self.now = self.now.max(sent.at);
        Ok(compared == Comparison::Same)
    }

    /// The application calls.
    fn call(&mut self, event: &'a Event, call: &'a Call) -> Played<()> {
        let outcome = self.stack.call(self.now, call);
        let outcome = outcome.map_err(|refusal| refused(event.line, refusal))?;
        let until = match (call.until, event.when) {
            (None, _) => None,
            (Some(until), When::At(_)) => Some(Instant::ZERO + until.min(LONGEST_WAIT)),
            // the runner has waited for the event's own time already
            (Some(until), When::After(span)) => {
                Some(self.now + until.min(LONGEST_WAIT).saturating_sub(span.from))
            }
            (Some(_), When::Any) => Some(self.now),
        };
        match (outcome, until) {
            (Outcome::Waits, Some(until)) => {
                self.waiting = Some(Waiting { event, call, until });
                Ok(())
            }
            (Outcome::Waits, None) => Err(Stop::Failed(Failure {
                line: event.line,
                due: event.text.clone(),
                came: "the call does not return".to_owned(),
                difference: None,
            })),
            (outcome, until) => self.returned(event, call, outcome, until),
        }
    }

    /// Holds what a call returned against the script.
    fn returned(&self, event: &Event, call: &Call, outcome: Outcome, until: Option<Instant>) -> Played<()> {
        let failure = |came, difference| {
            Err(Stop::Failed(Failure {
                line: event.line,
                due: event.text.clone(),
                came,
                difference,
            }))
        };
        let Returned { value, errno } = match outcome {
            Outcome::Returned(returned) => returned,
            Outcome::Differs(came) => return failure(came, None),
            Outcome::Waits => return Ok(()),
        };
        let came = match errno {
            Some(errno) => format!("{}(...) = {value} {errno}", call.name),
            None => format!("{}(...) = {value}", call.name),
        };
        let due = match &call.result {
            Expression::Any => None,
            Expression::Number(number) => Some(*number),
            other => {
                let what = format!("{other:?} as the result of a call");
                return Err(refused(event.line, Refusal(what)));
            }
        };
        if due.is_some_and(|due| due != value) {
            return failure(came, None);
        }
        if let (Some(due), came_errno) = (call.errno.as_deref(), errno)
            && came_errno.map(synonym) != Some(synonym(due))
        {
            return failure(came, None);
        }
        if let Some(until) = until {
            let off = if until > self.now {
                until - self.now
            } else {
                self.now - until
            };
            if off > self.tolerance {
                let came = format!("{came} at {}", seconds(self.now));
                return failure(came, Some(format!("{off} off the time at which it is to return")));
            }
        }
        Ok(())
    }

    /// Waits until the call that has not returned does.
    fn await_call(&mut self) -> Played<()> {
        while let Some(waiting) = &self.waiting {
            let latest = waiting.until + self.tolerance;
            let (line, due) = (waiting.event.line, waiting.event.text.clone());
            if !self.step(latest)? && self.waiting.is_some() {
                return Err(Stop::Failed(Failure {
                    line,
                    due,
                    came: format!("the call has not returned by {}", seconds(latest)),
                    difference: None,
                }));
            }
        }
        Ok(())
    }

    /// Time passes until an event is due.
    fn reach(&mut self, event: &Event) -> Played<()> {
        self.settle()?;
        let Some((from, to)) = self.range(event.when) else {
            return Ok(());
        };
        while self.step(from)? {}
        if self.now > to + self.tolerance {
            return Err(Stop::Failed(Failure {
                line: event.line,
                due: self.due(event, Some((from, to))),
                came: format!("its turn came at {}", seconds(self.now)),
                difference: None,
            }));
        }
        self.now = self.now.max(from);
        Ok(())
    }

    /// When an event is due, from and to; `None` for any time.
    fn range(&self, when: When) -> Option<(Instant, Instant)> {
        let (base, span) = match when {
            When::Any => return None,
            When::At(span) => (Instant::ZERO, span),
            When::After(span) => (self.now, span),
        };
        Some((base + span.from, base + span.to))
    }

    /// The next timer expires, if it is due by `latest`; otherwise it is `latest`.
    fn step(&mut self, latest: Instant) -> Played<bool> {
        let Some(at) = self.stack.poll_timeout().filter(|at| *at <= latest) else {
            self.now = self.now.max(latest);
            return Ok(false);
        };
        self.now = self.now.max(at);
        self.stack.handle_timeout(self.now);
        self.settle()?;
        Ok(true)
    }

    /// Takes what the stack sends, lets its due timers expire, and asks whether the call that waits has returned.
    fn settle(&mut self) -> Played<()> {
        for _ in 0..MOST_ROUNDS {
            while let Some(sent) = self.stack.poll_transmit(self.now) {
                self.sent.push_back((self.begun, sent));
            }
            if let Some(waiting) = self.waiting.take() {
                let outcome = self.stack.call(self.now, waiting.call);
                match outcome.map_err(|refusal| refused(waiting.event.line, refusal))? {
                    Outcome::Waits => self.waiting = Some(waiting),
                    outcome => {
                        let until = Some(waiting.until);
                        self.returned(waiting.event, waiting.call, outcome, until)?;
                        continue;
                    }
                }
            }
            if self.stack.poll_timeout().is_none_or(|at| at > self.now) {
                return Ok(());
            }
            self.stack.handle_timeout(self.now);
        }
        panic!(
            "{}: the stack has timers without end at {}",
            self.script.file,
            seconds(self.now)
        )
    }

    fn due(&self, event: &Event, range: Option<(Instant, Instant)>) -> String {
        match range {
            Some((from, to)) if from == to => format!("{} (at {})", event.text, seconds(from)),
            Some((from, to)) => format!("{} (from {} to {})", event.text, seconds(from), seconds(to)),
            None => event.text.clone(),
        }
    }

    fn shown(&self, sent: &Sent) -> String {
        format!("{} (at {})", self.stack.describe(sent), seconds(sent.at))
    }
}

fn refused(line: usize, Refusal(what): Refusal) -> Stop {
    Stop::Unmappable { line, what }
}

fn seconds(at: Instant) -> String {
    format!("{:.6} s", at.as_secs_f64())
}

/// Two names of one error are one.
fn synonym(errno: &str) -> &str {
    match errno {
        "EWOULDBLOCK" => "EAGAIN",
        other => other,
    }
}
