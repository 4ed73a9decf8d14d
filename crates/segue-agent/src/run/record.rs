//! What the agent remembers of itself and shows: the last handovers, and everything that `status` says.

use super::interfaces::Interfaces;
use super::names::NameService;
use crate::metrics::Handovers;
use crate::role::{Shown, show, state_of_address};
use crate::status::{HandoverStatus, InterfaceStatus, LocatorStatus, Status};
use segue_agent::locators::Locators;
use segue_agent::moves::Moves;
use segue_agent::stack::Stack;
use segue_live::Clock;
use segue_proto::Instant;
use segue_proto::shim::{Count, ShimEvent};
use segue_wire::ilnp::Locator;
use std::collections::{BTreeMap, VecDeque};
use tracing::{info, warn};

/// Handovers that `status` shows.
const REMEMBERED: usize = 16;

/// What is remembered.
pub(super) struct Record {
    begun: Instant,
    role: &'static str,
    device: String,
    handovers: VecDeque<HandoverStatus>,
    counted: Handovers,
}

/// What there is to be shown, of those that have it.
pub(super) struct Showing<'a> {
    pub stack: &'a Stack,
    pub locators: &'a Locators,
    pub moves: &'a Moves,
    pub interfaces: &'a Interfaces,
    pub names: Option<&'a NameService>,
    /// Packets that the device and the kernel's routes did not take, by what `status` calls that.
    pub refused: [(&'static str, u64); 2],
    /// What the kernel has carried by itself.
    pub fast_path: Vec<Count>,
}

impl Record {
    /// Of an agent in a role that begins now.
    pub fn new(begun: Instant, role: &'static str, device: String) -> Self {
        Self {
            begun,
            role,
            device,
            handovers: VecDeque::new(),
            counted: Handovers::default(),
        }
    }

    /// All handovers since the agent began, in numbers.
    pub const fn handovers(&self) -> &Handovers {
        &self.counted
    }

    pub const fn role(&self) -> &'static str {
        self.role
    }

    /// Name of the TUN device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Something has happened: said in the log, and kept if it is part of a handover.
    pub fn note(&mut self, clock: &Clock, now: Instant, event: &ShimEvent) {
        self.counted.note(event);
        match event {
            ShimEvent::HandoffBegun { from, to } => {
                info!(from = from.map(tracing::field::display), %to, "handover: peers are told");
                if self.handovers.len() == REMEMBERED {
                    self.handovers.pop_front();
                }
                self.handovers.push_back(HandoverStatus {
                    time_unix_ns: clock.unix_ns(now),
                    from: *from,
                    to: *to,
                    delay_s: None,
                    failed: Vec::new(),
                });
            }
            ShimEvent::HandoffDone { to, delay } => {
                info!(%to, delay_ms = delay.as_secs_f64() * 1e3, "handover: every peer has acknowledged");
                if let Some(last) = self.handovers.back_mut() {
                    last.delay_s = Some(delay.as_secs_f64());
                }
            }
            ShimEvent::HandoffFailed { peer } => {
                warn!(%peer, "handover: the peer does not acknowledge");
                if let Some(last) = self.handovers.back_mut() {
                    last.failed.push(*peer);
                }
            }
            ShimEvent::FellBack { peer } => info!(%peer, "speaks only IPv6"),
            ShimEvent::RouteChanged { peer, to } => info!(%peer, %to, "its packets go another way"),
            _ => {}
        }
    }

    /// Everything that `status` shows.
    pub fn status(&self, now: Instant, of: &Showing<'_>) -> Status {
        let Shown {
            sessions,
            registration,
            correspondents,
            bindings,
        } = show(of.stack, now);
        Status {
            role: self.role.to_owned(),
            identity: of.stack.identity(),
            device: self.device.clone(),
            running_s: now.since(self.begun).as_secs_f64(),
            interfaces: interfaces(of),
            sessions,
            registration,
            correspondents,
            bindings,
            networks_without_options: of
                .stack
                .networks_without_options(now)
                .map(|l| l.to_string())
                .collect(),
            names: of.names.map(NameService::status),
            handovers: self.handovers.iter().cloned().collect(),
            counters: counters(of),
        }
    }
}

fn interfaces(of: &Showing<'_>) -> Vec<InterfaceStatus> {
    let role = of.stack.role();
    let all = of.interfaces.names().enumerate().map(|(number, name)| {
        let own = of.locators.wanted();
        let own = own.filter(|l| usize::from(l.interface.0) == number);
        let locators = own.map(|local| LocatorStatus {
            locator: Locator::of(local.address).to_string(),
            address: local.address,
            state: state_of_address(role, number, local.address).unwrap_or_else(|| "pending".to_owned()),
        });
        InterfaceStatus {
            name: name.to_owned(),
            is_there: of.interfaces.is_there(number),
            is_up: of.interfaces.is_up(number),
            in_use: of.moves.in_use() == Some(number),
            locators: locators.collect(),
        }
    });
    all.collect()
}

/// By part and name, those that are not zero.
fn counters(of: &Showing<'_>) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut counters: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut count = |part: &str, name: &str, number: u64| {
        if number > 0 {
            counters
                .entry(part.to_owned())
                .or_default()
                .insert(name.to_owned(), number);
        }
    };
    for (part, counts) in of.stack.role_counters() {
        for (name, number) in counts {
            count(part, name, number);
        }
    }
    let packets = of.stack.counters().list().into_iter().chain(of.refused);
    for (name, number) in packets.chain(of.stack.window_counters()) {
        count("packets", name, number);
    }
    for (name, number) in of.names.iter().flat_map(|names| names.counters()) {
        count("names", name, number);
    }
    for (name, number) in &of.fast_path {
        count("fast-path", name, *number);
    }
    for (name, refused) in of.interfaces.refused() {
        count("packets", &format!("refused_by_{name}"), refused);
    }
    counters
}
