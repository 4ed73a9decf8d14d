//! When to switch.

use crate::contract::{CellId, LinkEvent};
use crate::time::{Duration, Instant};
use crate::units::Decibel;
use core::fmt;
use smallvec::SmallVec;

/// A handover decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Switch to this cell now.
    Go(CellId),
    /// Do not switch to this cell after all.
    Retract(CellId),
}

/// Decides when the host switches from the cell in use to another.
///
/// A policy may decide for the same cell again and again: a decision that finds the new address not ready has been
/// missed, and every later one is another chance for [`WhenMissed::NextDecision`](super::WhenMissed::NextDecision).
pub trait HandoverPolicy: Send + fmt::Debug {
    /// A link event while the association is routed over `serving`.
    fn on_link_event(&mut self, now: Instant, event: &LinkEvent, serving: CellId) -> Option<Decision>;

    /// The address in `candidate` became ready.
    fn on_ready(&mut self, now: Instant, candidate: CellId, serving: CellId) -> Option<Decision> {
        let _ = (now, candidate, serving);
        None
    }

    /// The same for another association of the host, which has heard what this one has.
    fn for_another(&self) -> Box<dyn HandoverPolicy>;

    /// Whether every address is switched to as soon as it is ready: then step 3 may be asked for with step 2.
    fn goes_at_once(&self) -> bool {
        false
    }

    /// Whether the peer is told of links that are lost.
    fn leaves_lost_links(&self) -> bool {
        true
    }

    /// The association is routed over `serving` from now on.
    fn on_switched(&mut self, now: Instant, serving: CellId) {
        let _ = (now, serving);
    }

    /// The time of `poll_timeout` has come. `candidates` are the other cells connected to, best first.
    fn on_timeout(&mut self, now: Instant, candidates: &[CellId]) -> Option<Decision> {
        let _ = (now, candidates);
        None
    }

    /// When `on_timeout` is to be called. Poll again after every other call.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// [`Policy::Signal`](super::Policy::Signal).
#[derive(Clone, Debug)]
pub struct Signal {
    hysteresis: Decibel,
    /// Last signal heard of each cell, dBm.
    heard: SmallVec<[(CellId, f64); 4]>,
    /// Cell that was last decided for.
    wanted: Option<CellId>,
}

impl Signal {
    /// Switches when another cell is stronger by more than `hysteresis`.
    #[must_use]
    pub fn new(hysteresis: Decibel) -> Self {
        Self {
            hysteresis,
            heard: SmallVec::new(),
            wanted: None,
        }
    }

    fn signal(&self, cell: CellId) -> Option<f64> {
        self.heard.iter().find(|h| h.0 == cell).map(|h| h.1)
    }
}

impl HandoverPolicy for Signal {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, _now: Instant, event: &LinkEvent, serving: CellId) -> Option<Decision> {
        match *event {
            LinkEvent::Beacon { cell, signal_dbm, .. } => {
                match self.heard.iter_mut().find(|h| h.0 == cell) {
                    Some(heard) => heard.1 = signal_dbm,
                    None => self.heard.push((cell, signal_dbm)),
                }
                let own = self.signal(serving)?;
                let best = self
                    .heard
                    .iter()
                    .filter(|h| h.0 != serving && h.1 > own + self.hysteresis.db())
                    .max_by(|a, b| a.1.total_cmp(&b.1))
                    .map(|h| h.0);
                let before = core::mem::replace(&mut self.wanted, best);
                match (before, best) {
                    // Evaluated with the beacons of the cell it is about.
                    (_, Some(to)) if cell == to || before != best => Some(Decision::Go(to)),
                    (Some(to), None) => Some(Decision::Retract(to)),
                    _ => None,
                }
            }
            LinkEvent::Down { cell, .. } => {
                self.heard.retain(|h| h.0 != cell);
                (self.wanted == Some(cell)).then(|| {
                    self.wanted = None;
                    Decision::Retract(cell)
                })
            }
            _ => None,
        }
    }

    fn on_switched(&mut self, _now: Instant, _serving: CellId) {
        self.wanted = None;
    }
}

/// [`Policy::Overlap`](super::Policy::Overlap).
#[derive(Clone, Debug)]
pub struct Overlap {
    fraction: f64,
}

impl Overlap {
    /// Switches when `fraction` of the overlap is passed.
    #[must_use]
    pub fn new(fraction: f64) -> Self {
        Self { fraction }
    }
}

impl HandoverPolicy for Overlap {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, _now: Instant, event: &LinkEvent, serving: CellId) -> Option<Decision> {
        match *event {
            LinkEvent::Overlap { from, to, fraction } if from == serving && fraction >= self.fraction => {
                Some(Decision::Go(to))
            }
            // Coming back from there: the host turned round before it had switched.
            LinkEvent::Overlap { from, to, .. } if to == serving => Some(Decision::Retract(from)),
            LinkEvent::Down { cell, .. } if cell != serving => Some(Decision::Retract(cell)),
            _ => None,
        }
    }
}

/// [`Policy::FirstReady`](super::Policy::FirstReady).
#[derive(Clone, Debug)]
pub struct FirstReady;

impl HandoverPolicy for FirstReady {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, _: Instant, _: &LinkEvent, _: CellId) -> Option<Decision> {
        None
    }
    fn on_ready(&mut self, _: Instant, candidate: CellId, _: CellId) -> Option<Decision> {
        Some(Decision::Go(candidate))
    }
    fn goes_at_once(&self) -> bool {
        true
    }
}

/// [`Policy::LinkLoss`](super::Policy::LinkLoss).
#[derive(Clone, Debug)]
pub struct LinkLoss;

impl HandoverPolicy for LinkLoss {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, _: Instant, _: &LinkEvent, _: CellId) -> Option<Decision> {
        None
    }
}

/// [`Policy::PeerTimeouts`](super::Policy::PeerTimeouts).
#[derive(Clone, Debug)]
pub struct PeerTimeouts;

impl HandoverPolicy for PeerTimeouts {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, _: Instant, _: &LinkEvent, _: CellId) -> Option<Decision> {
        None
    }
    fn leaves_lost_links(&self) -> bool {
        false
    }
}

/// [`Policy::LastMoment`](super::Policy::LastMoment).
#[derive(Clone, Debug)]
pub struct LastMoment {
    margin: Duration,
    /// When, and which cell is lost then.
    at: Option<(Instant, CellId)>,
}

impl LastMoment {
    /// Switches `margin` before the loss of the link.
    #[must_use]
    pub fn new(margin: Duration) -> Self {
        Self { margin, at: None }
    }
}

impl HandoverPolicy for LastMoment {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, now: Instant, event: &LinkEvent, serving: CellId) -> Option<Decision> {
        match *event {
            LinkEvent::GoingDown { cell, after, .. } if cell == serving => {
                self.at = Some(((now + after - self.margin).max(now), cell));
                None
            }
            LinkEvent::Down { cell, .. } if cell == serving => {
                self.at = None;
                None
            }
            LinkEvent::Down { cell, .. } => Some(Decision::Retract(cell)),
            _ => None,
        }
    }

    fn on_switched(&mut self, _now: Instant, _serving: CellId) {
        self.at = None;
    }

    fn on_timeout(&mut self, now: Instant, candidates: &[CellId]) -> Option<Decision> {
        let (_, lost) = self.at.take_if(|(at, _)| *at <= now)?;
        if candidates.contains(&lost) {
            // an association that was not routed over it, and has this from one that was
            return None;
        }
        candidates.first().map(|&cell| Decision::Go(cell))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.at.map(|(at, _)| at)
    }
}

/// [`Policy::Planned`](super::Policy::Planned).
#[derive(Clone, Debug)]
pub struct Planned {
    margin: Duration,
    /// When, and to which cell.
    next: Option<(Instant, CellId)>,
}

impl Planned {
    /// Switches `margin` before the time that the plan has.
    #[must_use]
    pub fn new(margin: Duration) -> Self {
        Self { margin, next: None }
    }
}

impl HandoverPolicy for Planned {
    fn for_another(&self) -> Box<dyn HandoverPolicy> {
        Box::new(self.clone())
    }

    fn on_link_event(&mut self, now: Instant, event: &LinkEvent, _serving: CellId) -> Option<Decision> {
        match *event {
            LinkEvent::Planned { to, after, .. } => {
                self.next = Some(((now + after - self.margin).max(now), to));
                None
            }
            LinkEvent::Down { cell, .. } => Some(Decision::Retract(cell)),
            _ => None,
        }
    }

    fn on_timeout(&mut self, now: Instant, _candidates: &[CellId]) -> Option<Decision> {
        let (_, to) = self.next.take_if(|(at, _)| *at <= now)?;
        Some(Decision::Go(to))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }
}
