//! The layer-2 machine of one radio interface.

use super::latency::{DurationRange, Latency, Phase};
use crate::contract::{CellId, InterfaceId, LinkEvent};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How the loss of the cell is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// At the moment the coverage ends.
    #[default]
    Immediate,
    /// When `beacon_loss` beacons in a row did not come: `beacon_loss` + 1/2 times `beacon_period` after the last one.
    MissedBeacons,
}

/// Configuration of a radio interface's layer 2. `beacon_period` is a trait of the cells; it is here because the
/// interface counts with it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Time from the command to attach to Link_Up.
    pub latency: Latency,
    /// Time between two beacons of a cell.
    pub beacon_period: Duration,
    /// How the loss of the cell is noticed.
    pub loss_detection: LossDetection,
    /// Missed beacons after which the connection counts as lost; at least 1.
    pub beacon_loss: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            latency: Latency::default(),
            beacon_period: Duration::from_millis(100),
            loss_detection: LossDetection::default(),
            beacon_loss: 3,
        }
    }
}

/// What the interface is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Connected to nothing.
    Detached,
    /// In the middle of a handover.
    Attaching {
        /// Cell it attaches to.
        cell: CellId,
        /// Phase it is in.
        phase: Phase,
        /// When that phase ends.
        until: Instant,
    },
    /// Connected.
    Attached {
        /// Cell it is connected to.
        cell: CellId,
    },
}

/// What the driver passes on or records.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum L2Event {
    /// To be given to the host.
    Link(LinkEvent),
    /// A phase of the handover began: for traces.
    PhaseStarted {
        /// Cell attached to.
        cell: CellId,
        /// The phase.
        phase: Phase,
    },
    /// The handover ended without a connection, because the cell went out of reach. A `Link(Down)` for the same cell
    /// follows, so that the host knows that no `Up` will come.
    Aborted {
        /// Cell that was being attached to.
        cell: CellId,
    },
}

/// The layer-2 machine of one radio interface.
#[derive(Debug)]
pub struct Layer2 {
    interface: InterfaceId,
    config: Config,
    stream: Stream,
    state: State,
    /// Phases still to come.
    to_come: VecDeque<(Phase, DurationRange)>,
    last_beacon: Instant,
    events: VecDeque<L2Event>,
}

impl Layer2 {
    /// A detached interface; `stream` is drawn from for phases with a range.
    #[must_use]
    pub fn new(interface: InterfaceId, config: Config, stream: Stream) -> Self {
        Self {
            interface,
            config,
            stream,
            state: State::Detached,
            to_come: VecDeque::new(),
            last_beacon: Instant::ZERO,
            events: VecDeque::new(),
        }
    }

    /// What the interface is doing.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The cell connected to, if the handover to it is over: only then can packets pass.
    #[must_use]
    pub fn attached_cell(&self) -> Option<CellId> {
        match self.state {
            State::Attached { cell } => Some(cell),
            _ => None,
        }
    }

    /// Starts the handover to `cell`. A connection to another cell is given up at once (one radio); a handover to
    /// the same cell goes on. With a latency of zero the `Up` is there immediately.
    pub fn attach(&mut self, now: Instant, cell: CellId) {
        match self.state {
            State::Attached { cell: own } | State::Attaching { cell: own, .. } if own == cell => return,
            State::Attached { .. } | State::Attaching { .. } => self.detach(now),
            State::Detached => {}
        }
        self.to_come = self.config.latency.phases().into_iter().flatten().collect();
        self.last_beacon = now;
        self.next_phase(now, cell);
    }

    /// Gives up the connection or the handover.
    pub fn detach(&mut self, _now: Instant) {
        let cell = match self.state {
            State::Detached => return,
            State::Attached { cell } => cell,
            State::Attaching { cell, .. } => {
                self.events.push_back(L2Event::Aborted { cell });
                cell
            }
        };
        self.state = State::Detached;
        self.to_come.clear();
        self.events.push_back(L2Event::Link(LinkEvent::Down {
            interface: self.interface,
            cell,
        }));
    }

    /// A beacon was heard: passed on, and counted as a sign of life of the cell connected to.
    pub fn handle_beacon(&mut self, now: Instant, cell: CellId, signal_dbm: f64) {
        if self.state_cell() == Some(cell) {
            self.last_beacon = now;
        }
        self.events.push_back(L2Event::Link(LinkEvent::Beacon {
            interface: self.interface,
            cell,
            signal_dbm,
        }));
    }

    /// The coverage of `cell` ended at this interface. A handover to it is aborted; a connection is lost now or when
    /// its beacons are missed, as configured.
    pub fn handle_out_of_reach(&mut self, now: Instant, cell: CellId) {
        if self.state_cell() != Some(cell) {
            return;
        }
        let attaching = matches!(self.state, State::Attaching { .. });
        if attaching || self.config.loss_detection == LossDetection::Immediate {
            self.detach(now);
        }
    }

    /// Ends the phases that are due and notices missed beacons.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let State::Attaching { cell, until, .. } = self.state
            && until <= now
        {
            self.next_phase(until, cell);
        }
        if self.loss_deadline().is_some_and(|deadline| deadline <= now) {
            self.detach(now);
        }
    }

    /// When `handle_timeout` must be called next. Poll again after every other call.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Attaching { until, .. } => Some(until),
            _ => self.loss_deadline(),
        }
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<L2Event> {
        self.events.pop_front()
    }

    fn state_cell(&self) -> Option<CellId> {
        match self.state {
            State::Detached => None,
            State::Attached { cell } | State::Attaching { cell, .. } => Some(cell),
        }
    }

    fn loss_deadline(&self) -> Option<Instant> {
        let watched = self.config.loss_detection == LossDetection::MissedBeacons
            && matches!(self.state, State::Attached { .. });
        // Half a period more: the last of them is missed only once it is overdue, and a busy channel delays beacons.
        let half_periods = 2 * u64::from(self.config.beacon_loss.max(1)) + 1;
        watched.then(|| self.last_beacon + self.config.beacon_period * half_periods / 2)
    }

    /// Enters the next phase at `start`, the end of the one before; phases of no length are passed at once.
    fn next_phase(&mut self, start: Instant, cell: CellId) {
        while let Some((phase, range)) = self.to_come.pop_front() {
            let length = range.draw(&mut self.stream);
            if length.is_zero() {
                continue;
            }
            self.state = State::Attaching {
                cell,
                phase,
                until: start + length,
            };
            self.events.push_back(L2Event::PhaseStarted { cell, phase });
            return;
        }
        self.state = State::Attached { cell };
        self.last_beacon = self.last_beacon.max(start);
        self.events.push_back(L2Event::Link(LinkEvent::Up {
            interface: self.interface,
            cell,
        }));
    }
}
