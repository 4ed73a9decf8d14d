//! Every test is a trace: what happens to the host, and what SIGMA says and does about it.

mod renumbering;
mod zigzag;

use super::*;
use crate::contract::{CellId, InterfaceId, LinkEvent, LocalAddress};
use crate::sctp::{AddressChange, AddressRequest};
use crate::time::{Duration, Instant};
use crate::units::{Dbm, Decibel};
use core::net::Ipv6Addr;

const OLD: CellId = CellId(1);
const NEW: CellId = CellId(2);
const IF0: InterfaceId = InterfaceId(0);
const IF1: InterfaceId = InterfaceId(1);
const A2: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const A3: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
const L2: LocalAddress = LocalAddress {
    interface: IF0,
    address: A2,
};
const L3: LocalAddress = LocalAddress {
    interface: IF1,
    address: A3,
};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A mobile host that is connected to the old cell, with an association over A2.
struct Mobile {
    sigma: Sigma,
    now: Instant,
    /// Addresses that SCTP was told no interface has, or has again: beside the trail.
    gone: Vec<Ipv6Addr>,
}

impl Mobile {
    fn new(config: Config) -> Self {
        let mut mobile = Self {
            sigma: Sigma::new(config, &[IF0, IF1]),
            now: at(0),
            gone: Vec::new(),
        };
        mobile.beacon(0, IF0, OLD, -50.0);
        mobile.up(0, IF0, OLD);
        mobile.sigma.handle_address_ready(at(0), L2);
        mobile.sigma.handle_established(at(0), [L2], A2);
        let trail = mobile.trail();
        assert_eq!(
            trail,
            ["obtain-started", "link-up", "obtained", "attach if0 cell1"]
        );
        mobile
    }

    /// Comes into the new cell's reach, is connected to it at 200 ms, has an address at 700 ms, and A3 is added.
    fn until_add_sent(config: Config) -> Self {
        let mut mobile = Self::new(config);
        mobile.beacon(100, IF1, NEW, -80.0);
        assert_eq!(mobile.trail(), ["obtain-started", "attach if1 cell2"]);
        mobile.up(200, IF1, NEW);
        mobile.address(700, L3);
        assert_eq!(mobile.trail(), ["link-up", "obtained", "add-sent", "add 3"]);
        mobile
    }

    fn until_ready(config: Config) -> Self {
        let mut mobile = Self::until_add_sent(config);
        mobile.answer(800, AddressRequest::Add(A3), true);
        assert_eq!(mobile.trail(), ["add-acknowledged"]);
        mobile
    }

    fn step(&mut self, ms: u64) {
        assert!(at(ms) >= self.now, "time goes on");
        self.now = at(ms);
        while self.sigma.poll_timeout().is_some_and(|t| t < self.now) {
            let time = self.sigma.poll_timeout().unwrap();
            self.sigma.handle_timeout(time);
        }
    }
    fn link(&mut self, ms: u64, event: LinkEvent) {
        self.step(ms);
        self.sigma.handle_link(self.now, &event);
    }
    fn beacon(&mut self, ms: u64, interface: InterfaceId, cell: CellId, signal_dbm: f64) {
        self.link(
            ms,
            LinkEvent::Beacon {
                interface,
                cell,
                signal_dbm,
            },
        );
    }
    /// Beacons of both cells, heard by the radio that is in them.
    fn beacons(&mut self, ms: u64, old_dbm: f64, new_dbm: f64) {
        self.beacon(ms, IF0, OLD, old_dbm);
        self.beacon(ms, IF1, NEW, new_dbm);
    }
    fn up(&mut self, ms: u64, interface: InterfaceId, cell: CellId) {
        self.link(ms, LinkEvent::Up { interface, cell });
    }
    fn down(&mut self, ms: u64, interface: InterfaceId, cell: CellId) {
        self.link(ms, LinkEvent::Down { interface, cell });
    }
    fn overlap(&mut self, ms: u64, from: CellId, to: CellId, fraction: f64) {
        self.link(ms, LinkEvent::Overlap { from, to, fraction });
    }
    fn address(&mut self, ms: u64, local: LocalAddress) {
        self.step(ms);
        self.sigma.handle_address_ready(self.now, local);
    }
    fn answer(&mut self, ms: u64, request: AddressRequest, granted: bool) {
        self.step(ms);
        self.sigma.handle_answer(self.now, request, granted);
    }
    fn timeout(&mut self, ms: u64) {
        assert_eq!(self.sigma.poll_timeout(), Some(at(ms)));
        self.now = at(ms);
        self.sigma.handle_timeout(self.now);
    }

    /// Events, then commands.
    fn trail(&mut self) -> Vec<String> {
        let mut trail = Vec::new();
        while let Some(event) = self.sigma.poll_event() {
            assert!(event.time <= self.now);
            trail.push(event.kind.name().to_owned());
        }
        while let Some(command) = self.sigma.poll_command() {
            let net = |a: Ipv6Addr| a.segments()[2];
            trail.push(match command {
                Command::StartAttach { interface, cell } => {
                    format!("attach if{} cell{}", interface.0, cell.0)
                }
                Command::AddAddress(local) => format!("add {}", net(local.address)),
                Command::SetPrimary { address } => format!("primary {}", net(address)),
                Command::SetRoute { address } => format!("route {}", net(address)),
                Command::UpdateLocation { address } => format!("location {}", net(address)),
                Command::DeleteAddress { address } => format!("delete {}", net(address)),
                Command::DeactivateAddress { address } => format!("deactivate {}", net(address)),
                Command::AddressGone { address } => {
                    self.gone.push(address);
                    continue;
                }
                Command::AddressBack(local) => {
                    self.gone.retain(|a| *a != local.address);
                    continue;
                }
                Command::Change(changes) => changes
                    .iter()
                    .map(|c| match c {
                        AddressChange::Add(local) => format!("add {}", net(local.address)),
                        AddressChange::SetPrimary(address) => format!("primary {}", net(address)),
                        AddressChange::Delete(address) => format!("delete {}", net(address)),
                        AddressChange::Deactivate(address) => format!("deactivate {}", net(address)),
                        AddressChange::Activate(address) => format!("activate {}", net(address)),
                    })
                    .collect::<Vec<_>>()
                    .join(" + "),
            });
        }
        trail
    }
}

/// What a switch to the network numbered so looks like.
fn switch_to(net: u16) -> Vec<String> {
    ["route-changed", "location-updated", "set-primary-sent"]
        .map(str::to_owned)
        .into_iter()
        .chain([
            format!("route {net}"),
            format!("location {net}"),
            format!("primary {net}"),
        ])
        .collect()
}

fn with(first: &str, mut rest: Vec<String>) -> Vec<String> {
    rest.insert(0, first.to_owned());
    rest
}

fn missing(when_missed: WhenMissed) -> Config {
    Config {
        when_missed,
        ..Config::default()
    }
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_handover_takes_five_steps() {
    let mut m = Mobile::until_ready(Config::default());
    m.beacons(900, -70.0, -71.0);
    assert_eq!(m.trail(), nothing());
    m.beacons(1000, -72.0, -69.0);
    assert_eq!(m.trail(), with("decision-point", switch_to(3)));
    assert_eq!(m.sigma.serving(), Some(A3));
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    assert_eq!(m.trail(), ["set-primary-acknowledged"]);
    m.down(2000, IF0, OLD);
    assert_eq!(m.trail(), ["link-down", "delete-sent", "delete 2"]);
    m.answer(2050, AddressRequest::Delete(A2), true);
    assert_eq!(m.trail(), ["delete-acknowledged"]);
    assert_eq!(m.sigma.poll_timeout(), None);
}

#[test]
fn and_the_way_back_takes_them_again() {
    let mut m = Mobile::until_ready(Config::default());
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.down(2000, IF0, OLD);
    m.answer(2050, AddressRequest::Delete(A2), true);
    m.trail();
    m.beacon(9000, IF0, OLD, -80.0);
    m.up(9100, IF0, OLD);
    m.address(9600, L2);
    assert_eq!(
        m.trail(),
        [
            "obtain-started",
            "link-up",
            "obtained",
            "add-sent",
            "attach if0 cell1",
            "add 2"
        ]
    );
    m.answer(9700, AddressRequest::Add(A2), true);
    m.beacons(10_000, -60.0, -75.0);
    assert_eq!(
        m.trail(),
        with("add-acknowledged", with("decision-point", switch_to(2)))
    );
}

#[test]
fn hysteresis_holds_the_switch_back() {
    let mut m = Mobile::until_ready(Config {
        hysteresis: Decibel::new(3.0),
        ..Config::default()
    });
    m.beacons(1000, -70.0, -67.0);
    assert_eq!(m.trail(), nothing());
    m.beacons(1100, -70.1, -66.9);
    assert_eq!(m.trail(), with("decision-point", switch_to(3)));
}

#[test]
fn first_ready_switches_on_the_answer_to_add() {
    let mut m = Mobile::until_add_sent(Config {
        policy: Policy::FirstReady,
        ..Config::default()
    });
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(
        m.trail(),
        with("add-acknowledged", with("decision-point", switch_to(3)))
    );
}

#[test]
fn overlap_switches_at_its_fraction_of_the_way() {
    let mut m = Mobile::until_ready(Config {
        policy: Policy::Overlap,
        fraction: 0.75,
        ..Config::default()
    });
    m.overlap(900, OLD, NEW, 0.5);
    m.beacons(950, -90.0, -40.0);
    assert_eq!(m.trail(), nothing());
    m.overlap(1000, OLD, NEW, 0.75);
    assert_eq!(m.trail(), with("decision-point", switch_to(3)));
}

#[test]
fn last_moment_switches_the_margin_before_the_predicted_loss() {
    let config = Config {
        policy: Policy::LastMoment,
        margin: Duration::from_millis(150),
        ..Config::default()
    };
    let mut m = Mobile::until_ready(config);
    m.link(
        1000,
        LinkEvent::GoingDown {
            interface: IF0,
            cell: OLD,
            after: Duration::from_millis(500),
        },
    );
    assert_eq!(m.trail(), nothing());
    m.timeout(1350);
    assert_eq!(m.trail(), with("decision-point", switch_to(3)));
    assert_eq!(m.sigma.poll_timeout(), None);
}

fn planned(after_ms: u64) -> LinkEvent {
    LinkEvent::Planned {
        from: OLD,
        to: NEW,
        prefix: Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0),
        after: Duration::from_millis(after_ms),
    }
}

#[test]
fn planned_switches_the_margin_before_the_next_cell_serves() {
    let config = Config {
        policy: Policy::Planned,
        margin: Duration::from_millis(150),
        ..Config::default()
    };
    let mut m = Mobile::until_ready(config.clone());
    m.link(1000, planned(500));
    m.beacons(1100, -80.0, -40.0);
    assert_eq!(m.trail(), nothing());
    m.timeout(1350);
    assert_eq!(m.trail(), with("decision-point", switch_to(3)));
    assert_eq!(m.sigma.poll_timeout(), None);

    // told too late for the margin: at once; and late as it is, when the address is ready
    let mut m = Mobile::until_add_sent(config);
    m.link(750, planned(100));
    m.timeout(750);
    assert_eq!(m.trail(), ["decision-point", "missed"]);
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), with("add-acknowledged", switch_to(3)));
}

#[test]
fn when_ready_switches_late_but_at_once() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::WhenReady));
    m.beacons(720, -72.0, -69.0);
    m.beacons(740, -73.0, -68.0);
    assert_eq!(m.trail(), ["decision-point", "missed"]);
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), with("add-acknowledged", switch_to(3)));
}

#[test]
fn a_decision_taken_back_is_not_carried_out_when_ready() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::WhenReady));
    m.beacons(720, -72.0, -69.0);
    m.beacons(740, -68.0, -73.0);
    assert_eq!(m.trail(), ["decision-point", "missed", "retracted"]);
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), ["add-acknowledged"]);
}

#[test]
fn turning_round_in_the_overlap_takes_its_decision_back() {
    let mut m = Mobile::until_add_sent(Config {
        policy: Policy::Overlap,
        ..Config::default()
    });
    m.overlap(720, OLD, NEW, 0.5);
    m.overlap(740, NEW, OLD, 0.5);
    assert_eq!(m.trail(), ["decision-point", "missed", "retracted"]);
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), ["add-acknowledged"]);
}

#[test]
fn link_loss_waits_for_the_old_link_to_go() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::LinkLoss));
    m.beacons(720, -72.0, -69.0);
    m.answer(800, AddressRequest::Add(A3), true);
    m.beacons(900, -80.0, -60.0);
    assert_eq!(m.trail(), ["decision-point", "missed", "add-acknowledged"]);
    m.down(1500, IF0, OLD);
    assert_eq!(m.trail(), with("link-down", switch_to(3)));
    m.answer(1600, AddressRequest::SetPrimary(A3), true);
    assert_eq!(m.trail(), ["set-primary-acknowledged", "delete-sent", "delete 2"]);
}

#[test]
fn next_decision_waits_for_the_next_beacon() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::NextDecision));
    m.beacons(720, -72.0, -69.0);
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), ["decision-point", "missed", "add-acknowledged"]);
    m.beacon(820, IF1, NEW, -60.0);
    assert_eq!(m.trail(), with("decision-point", switch_to(3)));
}

#[test]
fn next_decision_of_a_place_is_the_loss_of_the_link_if_the_host_does_not_come_by_again() {
    let config = Config {
        policy: Policy::Overlap,
        when_missed: WhenMissed::NextDecision,
        ..Config::default()
    };
    let mut m = Mobile::until_add_sent(config);
    m.overlap(720, OLD, NEW, 0.5);
    m.answer(800, AddressRequest::Add(A3), true);
    m.beacons(900, -90.0, -40.0);
    assert_eq!(m.trail(), ["decision-point", "missed", "add-acknowledged"]);
    m.down(1500, IF0, OLD);
    assert_eq!(m.trail(), with("link-down", switch_to(3)));
}

#[test]
fn queued_asconf_moves_the_route_only_when_the_peer_has_answered() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::QueuedAsconf));
    m.beacons(720, -72.0, -69.0);
    assert_eq!(
        m.trail(),
        ["decision-point", "missed", "set-primary-sent", "primary 3"]
    );
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.sigma.serving(), Some(A2));
    m.answer(900, AddressRequest::SetPrimary(A3), true);
    assert_eq!(
        m.trail(),
        [
            "add-acknowledged",
            "set-primary-acknowledged",
            "route-changed",
            "location-updated",
            "route 3",
            "location 3"
        ]
    );
}

#[test]
fn queued_asconf_is_queued_behind_an_address_that_comes_after_the_decision() {
    let mut m = Mobile::new(missing(WhenMissed::QueuedAsconf));
    m.beacon(100, IF1, NEW, -80.0);
    m.up(200, IF1, NEW);
    m.beacons(300, -80.0, -60.0);
    m.trail();
    m.address(700, L3);
    assert_eq!(
        m.trail(),
        ["obtained", "add-sent", "set-primary-sent", "add 3", "primary 3"]
    );
}

#[test]
fn queued_asconf_over_a_dead_link_is_rerouted_after_one_t4_rto() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::QueuedAsconf));
    m.beacons(720, -72.0, -69.0);
    m.sigma.handle_asconf_sent(at(720), Duration::from_secs(3));
    m.trail();
    m.down(1500, IF0, OLD);
    assert_eq!(m.trail(), ["link-down"]);
    m.timeout(4500);
    assert_eq!(
        m.trail(),
        ["route-changed", "location-updated", "route 3", "location 3"]
    );
}

#[test]
fn retransmitted_asconf_is_lost_with_the_old_link_and_repaired_after_one_t4_rto() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::RetransmittedAsconf));
    m.beacons(720, -72.0, -69.0);
    m.answer(800, AddressRequest::Add(A3), true);
    m.beacons(900, -75.0, -65.0);
    assert_eq!(m.trail(), ["decision-point", "missed", "add-acknowledged"]);
    m.down(1500, IF0, OLD);
    assert_eq!(m.trail(), ["link-down", "set-primary-sent", "primary 3"]);
    assert_eq!(
        m.sigma.serving(),
        Some(A2),
        "acknowledgements still go down the dead route"
    );
    m.sigma.handle_asconf_sent(at(1500), Duration::from_secs(3));
    m.timeout(4500);
    assert_eq!(
        m.trail(),
        ["route-changed", "location-updated", "route 3", "location 3"]
    );
    m.answer(4600, AddressRequest::SetPrimary(A3), true);
    assert_eq!(m.trail(), ["set-primary-acknowledged", "delete-sent", "delete 2"]);
}

#[test]
fn add_unanswered_at_the_loss_of_the_link_is_routed_over_the_new_one() {
    let mut m = Mobile::until_add_sent(missing(WhenMissed::LinkLoss));
    m.down(750, IF0, OLD);
    assert_eq!(m.trail(), ["link-down", "route 3"]);
    m.answer(3700, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), with("add-acknowledged", switch_to(3)));
}

#[test]
fn a_host_between_cells_switches_as_soon_as_it_can() {
    let mut m = Mobile::new(Config::default());
    m.down(1000, IF0, OLD);
    assert_eq!(m.trail(), ["link-down"]);
    m.beacon(2000, IF1, NEW, -80.0);
    m.up(2200, IF1, NEW);
    m.address(2700, L3);
    assert_eq!(
        m.trail(),
        [
            "obtain-started",
            "link-up",
            "obtained",
            "add-sent",
            "attach if1 cell2",
            "add 3",
            "route 3"
        ]
    );
    m.answer(2800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), with("add-acknowledged", switch_to(3)));
}

#[test]
fn the_same_cell_found_again_goes_on_with_its_address() {
    let mut m = Mobile::new(Config::default());
    m.down(1000, IF0, OLD);
    m.beacon(2000, IF0, OLD, -80.0);
    m.up(2200, IF0, OLD);
    m.address(2700, L2);
    assert_eq!(
        m.trail(),
        [
            "link-down",
            "obtain-started",
            "link-up",
            "obtained",
            "attach if0 cell1"
        ]
    );
    assert_eq!(m.sigma.serving(), Some(A2));
}

#[test]
fn a_zigzag_before_the_delete_needs_no_new_address() {
    let mut m = Mobile::until_ready(Config::default());
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.trail();
    m.beacons(1500, -65.0, -75.0);
    assert_eq!(m.trail(), with("decision-point", switch_to(2)));
    m.answer(1550, AddressRequest::SetPrimary(A2), true);
    m.down(2500, IF1, NEW);
    assert_eq!(
        m.trail(),
        ["set-primary-acknowledged", "link-down", "delete-sent", "delete 3"]
    );
}

#[test]
fn delete_after_switch_waits_its_delay_and_a_zigzag_cancels_it() {
    let config = Config {
        delete: Delete::AfterSwitch,
        ..Config::default()
    };
    let mut m = Mobile::until_ready(config.clone());
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.trail();
    m.timeout(2050);
    assert_eq!(m.trail(), ["delete-sent", "delete 2"]);

    let mut m = Mobile::until_ready(config);
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.beacons(1500, -65.0, -75.0);
    m.answer(1550, AddressRequest::SetPrimary(A2), true);
    m.trail();
    m.timeout(2550);
    assert_eq!(m.trail(), ["delete-sent", "delete 3"]);
}

#[test]
fn an_address_that_was_obtained_anew_before_the_delete_is_not_deleted() {
    let mut m = Mobile::until_ready(Config {
        delete: Delete::AfterDelay,
        ..Config::default()
    });
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.down(1100, IF0, OLD);
    m.beacon(1500, IF0, OLD, -70.0);
    m.up(1500, IF0, OLD);
    m.address(1520, L2);
    m.trail();
    m.timeout(2050);
    assert!(m.trail().is_empty());
    // it is there for the way back
    m.beacons(3000, -65.0, -75.0);
    assert_eq!(m.trail(), with("decision-point", switch_to(2)));
}

#[test]
fn a_zigzag_after_the_delete_adds_the_address_again() {
    let mut m = Mobile::until_ready(Config {
        delete: Delete::AfterSwitch,
        ..Config::default()
    });
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.timeout(2050);
    m.answer(2100, AddressRequest::Delete(A2), true);
    m.trail();
    m.beacons(2500, -65.0, -75.0);
    assert_eq!(m.trail(), ["decision-point", "missed", "add-sent", "add 2"]);
    m.answer(2600, AddressRequest::Add(A2), true);
    assert_eq!(m.trail(), with("add-acknowledged", switch_to(2)));
}

#[test]
fn an_address_found_again_while_it_is_deleted_is_added_afterwards() {
    let mut m = Mobile::until_ready(Config::default());
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), true);
    m.down(1100, IF0, OLD);
    m.beacon(1110, IF0, OLD, -70.0);
    m.up(1110, IF0, OLD);
    m.address(1120, L2);
    m.trail();
    m.answer(1200, AddressRequest::Delete(A2), true);
    assert_eq!(m.trail(), ["delete-acknowledged", "add-sent", "add 2"]);
}

#[test]
fn an_address_that_the_peer_refuses_is_never_switched_to() {
    let mut m = Mobile::until_add_sent(Config::default());
    m.answer(800, AddressRequest::Add(A3), false);
    m.beacons(1000, -72.0, -69.0);
    assert_eq!(m.trail(), ["add-refused", "decision-point", "missed"]);
    m.down(1500, IF0, OLD);
    assert_eq!(m.trail(), ["link-down"]);
}

#[test]
fn losing_the_new_link_before_the_switch_deletes_its_address() {
    let mut m = Mobile::until_ready(Config::default());
    m.down(900, IF1, NEW);
    assert_eq!(m.trail(), ["link-down", "delete-sent", "delete 3"]);
    assert_eq!(m.sigma.serving(), Some(A2));
}

#[test]
fn losing_the_new_link_before_add_is_answered_deletes_its_address_after_that() {
    let mut m = Mobile::until_add_sent(Config::default());
    m.beacons(720, -72.0, -69.0);
    m.down(750, IF1, NEW);
    assert_eq!(m.trail(), ["decision-point", "missed", "link-down"]);
    m.answer(800, AddressRequest::Add(A3), true);
    assert_eq!(m.trail(), ["add-acknowledged", "delete-sent", "delete 3"]);
}

#[test]
fn losing_the_new_link_right_after_the_switch_goes_back() {
    let mut m = Mobile::until_ready(Config::default());
    m.beacons(1000, -72.0, -69.0);
    m.trail();
    m.down(1010, IF1, NEW);
    assert_eq!(m.trail(), with("link-down", switch_to(2)));
    m.answer(1100, AddressRequest::SetPrimary(A3), true);
    m.answer(1200, AddressRequest::SetPrimary(A2), true);
    assert_eq!(
        m.trail(),
        [
            "set-primary-acknowledged",
            "set-primary-acknowledged",
            "delete-sent",
            "delete 3"
        ]
    );
}

#[test]
fn a_refused_set_primary_does_not_keep_the_old_address_for_ever() {
    let mut m = Mobile::until_ready(Config::default());
    m.beacons(1000, -72.0, -69.0);
    m.answer(1050, AddressRequest::SetPrimary(A3), false);
    m.trail();
    m.down(2000, IF0, OLD);
    assert_eq!(m.trail(), ["link-down", "delete-sent", "delete 2"]);
    m.answer(2100, AddressRequest::Delete(A2), false);
    assert_eq!(m.trail(), ["delete-refused"]);
}

#[test]
fn both_radios_hearing_one_cell_attach_once() {
    let mut m = Mobile {
        sigma: Sigma::new(Config::default(), &[IF0, IF1]),
        now: at(0),
        gone: Vec::new(),
    };
    m.beacon(0, IF0, OLD, -50.0);
    m.beacon(0, IF1, OLD, -50.0);
    assert_eq!(m.trail(), ["obtain-started", "attach if0 cell1"]);
    m.down(10, IF0, OLD);
    m.beacon(20, IF1, OLD, -50.0);
    assert_eq!(m.trail(), ["link-down", "obtain-started", "attach if1 cell1"]);
}

#[test]
fn a_cell_too_weak_is_not_attached_to() {
    let mut m = Mobile::new(Config {
        attach_threshold: Some(Dbm::new(-80.0)),
        ..Config::default()
    });
    m.beacon(100, IF1, NEW, -81.0);
    assert_eq!(m.trail(), nothing());
    m.beacon(200, IF1, NEW, -80.0);
    assert_eq!(m.trail(), ["obtain-started", "attach if1 cell2"]);
}

#[test]
fn an_address_won_before_the_association_is_added_when_it_is_established() {
    let mut sigma = Sigma::new(Config::default(), &[IF0, IF1]);
    for (interface, cell, local) in [(IF0, OLD, L2), (IF1, NEW, L3)] {
        sigma.handle_link(
            at(0),
            &LinkEvent::Beacon {
                interface,
                cell,
                signal_dbm: -50.0,
            },
        );
        sigma.handle_link(at(0), &LinkEvent::Up { interface, cell });
        sigma.handle_address_ready(at(0), local);
    }
    let mut m = Mobile {
        sigma,
        now: at(0),
        gone: Vec::new(),
    };
    m.trail();
    m.sigma.handle_established(at(0), [L2], A2);
    assert_eq!(m.trail(), ["add-sent", "add 3"]);
    m.sigma.handle_closed(at(1));
    m.beacons(2, -90.0, -40.0);
    m.down(3, IF0, OLD);
    assert_eq!(m.trail(), ["link-down"]);
}

#[test]
fn names_in_scenario_files_are_kebab_case() {
    use serde::Deserialize;
    use serde::de::value::{Error, MapDeserializer};
    let read = |entries: &[(&'static str, &'static str)]| {
        Config::deserialize(MapDeserializer::<_, Error>::new(entries.iter().copied()))
    };
    for (name, value) in [
        ("when-ready", WhenMissed::WhenReady),
        ("link-loss", WhenMissed::LinkLoss),
        ("next-decision", WhenMissed::NextDecision),
        ("queued-asconf", WhenMissed::QueuedAsconf),
        ("retransmitted-asconf", WhenMissed::RetransmittedAsconf),
    ] {
        assert_eq!(read(&[("when_missed", name)]), Ok(missing(value)));
    }
    let config = read(&[
        ("policy", "last-moment"),
        ("margin", "50 ms"),
        ("delete", "after-switch"),
    ])
    .unwrap();
    assert_eq!(config.policy, Policy::LastMoment);
    assert_eq!(config.margin, Duration::from_millis(50));
    assert_eq!(config.delete, Delete::AfterSwitch);
    assert!(read(&[("polcy", "signal")]).is_err());
    assert!(
        Config {
            fraction: 1.5,
            ..Config::default()
        }
        .check()
        .is_err()
    );
}
