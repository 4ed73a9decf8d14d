//! Whatever happens to a mobile host in whatever order, SIGMA asks for nothing that would cut its own association.

use proptest::prelude::*;
use segue_proto::contract::LocalAddress;
use segue_proto::sctp::{AddressChange, AddressRequest};
use segue_proto::sigma::{Bundle, Command, Config, Delete, Policy, Sigma, WhenMissed};
use segue_proto::{CellId, Duration, Instant, InterfaceId, LinkEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// Something that happens, with a time to wait before it.
#[derive(Clone, Debug)]
enum Happening {
    Beacon {
        interface: u8,
        cell: u16,
        signal_dbm: i8,
    },
    Up {
        interface: u8,
    },
    Down {
        interface: u8,
    },
    Address {
        interface: u8,
    },
    AddressLost {
        interface: u8,
    },
    /// The valid lifetime of an address is over, wherever its link is.
    Expired {
        interface: u8,
        cell: u16,
    },
    /// The oldest unanswered request is answered.
    Answer {
        granted: bool,
    },
    Overlap {
        fraction: u8,
    },
    GoingDown {
        interface: u8,
        after_ms: u16,
    },
    /// The plan has the other radio's cell next.
    Planned {
        after_ms: u16,
    },
}

fn happening() -> impl Strategy<Value = (u16, Happening)> {
    let interface = 0..2_u8;
    let kind = prop_oneof![
        4 => (interface.clone(), 1..4_u16, -90..-40_i8).prop_map(|(interface, cell, signal_dbm)| {
            Happening::Beacon { interface, cell, signal_dbm }
        }),
        3 => interface.clone().prop_map(|interface| Happening::Up { interface }),
        1 => interface.clone().prop_map(|interface| Happening::Down { interface }),
        3 => interface.clone().prop_map(|interface| Happening::Address { interface }),
        1 => interface.clone().prop_map(|interface| Happening::AddressLost { interface }),
        1 => (interface.clone(), 1..4_u16).prop_map(|(interface, cell)| Happening::Expired { interface, cell }),
        4 => prop::bool::weighted(0.9).prop_map(|granted| Happening::Answer { granted }),
        1 => (0..=100_u8).prop_map(|fraction| Happening::Overlap { fraction }),
        1 => (interface, 0..2000_u16)
            .prop_map(|(interface, after_ms)| Happening::GoingDown { interface, after_ms }),
        1 => (0..2000_u16).prop_map(|after_ms| Happening::Planned { after_ms }),
    ];
    (0..1500_u16, kind)
}

fn config() -> impl Strategy<Value = Config> {
    let policy = prop_oneof![
        Just(Policy::Signal),
        Just(Policy::Overlap),
        Just(Policy::FirstReady),
        Just(Policy::LastMoment),
        Just(Policy::Planned)
    ];
    let when_missed = prop_oneof![
        Just(WhenMissed::WhenReady),
        Just(WhenMissed::LinkLoss),
        Just(WhenMissed::NextDecision),
        Just(WhenMissed::QueuedAsconf),
        Just(WhenMissed::RetransmittedAsconf)
    ];
    let delete = prop_oneof![
        Just(Delete::OnLinkDown),
        Just(Delete::AfterSwitch),
        Just(Delete::Deactivate)
    ];
    let bundle = prop_oneof![
        Just(Bundle::None),
        Just(Bundle::AddPrimary),
        Just(Bundle::PrimaryDelete),
        Just(Bundle::All)
    ];
    let all = (policy, when_missed, delete, bundle, 0..3_u32);
    all.prop_map(
        |(policy, when_missed, delete, bundle, deactivated_limit)| Config {
            policy,
            when_missed,
            delete,
            bundle,
            deactivated_limit,
            ..Config::default()
        },
    )
}

/// The association as SCTP would keep it, and the radios as the driver would.
struct World {
    sigma: Sigma,
    now: Instant,
    cells: [Option<CellId>; 2],
    up: [bool; 2],
    usable: BTreeMap<Ipv6Addr, u8>,
    /// Addresses of ours: whether the peer has granted them, and whether they are being deleted.
    members: BTreeMap<Ipv6Addr, (bool, bool)>,
    /// Members that the peer sends nothing to.
    deactivated: BTreeSet<Ipv6Addr>,
    /// Members that SCTP knows no interface has.
    gone: BTreeSet<Ipv6Addr>,
    route: Ipv6Addr,
    waiting: VecDeque<AddressRequest>,
}

fn address(interface: u8, cell: CellId) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, cell.0, 0, 0, 0, 0, u16::from(interface) + 1)
}

impl World {
    fn new(config: Config) -> Self {
        let interfaces = [InterfaceId(0), InterfaceId(1)];
        let (now, cell) = (Instant::ZERO, CellId(1));
        let home = address(0, cell);
        let local = LocalAddress {
            interface: interfaces[0],
            address: home,
        };
        let mut sigma = Sigma::new(config, &interfaces);
        sigma.handle_link(
            now,
            &LinkEvent::Beacon {
                interface: interfaces[0],
                cell,
                signal_dbm: -50.0,
            },
        );
        sigma.handle_link(
            now,
            &LinkEvent::Up {
                interface: interfaces[0],
                cell,
            },
        );
        sigma.set_can_deactivate(true);
        sigma.handle_address_ready(now, local);
        sigma.handle_established(now, [local], home);
        while sigma.poll_command().is_some() {}
        Self {
            sigma,
            now,
            cells: [Some(cell), None],
            up: [true, false],
            usable: [(home, 0)].into(),
            deactivated: BTreeSet::new(),
            gone: BTreeSet::new(),
            members: [(home, (true, false))].into(),
            route: home,
            waiting: VecDeque::new(),
        }
    }

    fn happen(&mut self, wait_ms: u16, happening: &Happening) {
        self.now += Duration::from_millis(u64::from(wait_ms));
        while let Some(time) = self.sigma.poll_timeout().filter(|t| *t <= self.now) {
            self.sigma.handle_timeout(time.max(self.now));
            self.obey();
        }
        match *happening {
            Happening::Beacon {
                interface,
                cell,
                signal_dbm,
            } => {
                let (interface, cell) = (InterfaceId(interface), CellId(cell));
                let event = LinkEvent::Beacon {
                    interface,
                    cell,
                    signal_dbm: f64::from(signal_dbm),
                };
                self.sigma.handle_link(self.now, &event);
            }
            Happening::Up { interface } => {
                let i = usize::from(interface);
                if let (Some(cell), false) = (self.cells[i], self.up[i]) {
                    self.up[i] = true;
                    let event = LinkEvent::Up {
                        interface: InterfaceId(interface),
                        cell,
                    };
                    self.sigma.handle_link(self.now, &event);
                }
            }
            Happening::Down { interface } => {
                let i = usize::from(interface);
                if let Some(cell) = self.cells[i].take() {
                    self.up[i] = false;
                    self.usable.retain(|_, own| *own != interface);
                    let event = LinkEvent::Down {
                        interface: InterfaceId(interface),
                        cell,
                    };
                    self.sigma.handle_link(self.now, &event);
                }
            }
            Happening::Address { interface } => {
                let i = usize::from(interface);
                if let (Some(cell), true) = (self.cells[i], self.up[i]) {
                    let address = address(interface, cell);
                    if self.usable.insert(address, interface).is_none() {
                        let local = LocalAddress {
                            interface: InterfaceId(interface),
                            address,
                        };
                        self.sigma.handle_address_ready(self.now, local);
                    }
                }
            }
            Happening::AddressLost { interface } => {
                let lost = self.usable.iter().find(|u| *u.1 == interface).map(|u| *u.0);
                if let Some(address) = lost {
                    self.usable.remove(&address);
                    self.sigma.handle_address_lost(self.now, address);
                }
            }
            Happening::Expired { interface, cell } => {
                let address = address(interface, CellId(cell));
                self.usable.remove(&address);
                self.sigma.handle_address_expired(self.now, address);
            }
            Happening::Answer { granted } => self.answer(granted),
            Happening::Overlap { fraction } => {
                if let [Some(from), Some(to)] = self.cells {
                    let fraction = f64::from(fraction) / 100.0;
                    self.sigma
                        .handle_link(self.now, &LinkEvent::Overlap { from, to, fraction });
                }
            }
            Happening::GoingDown { interface, after_ms } => {
                if let Some(cell) = self.cells[usize::from(interface)] {
                    let after = Duration::from_millis(u64::from(after_ms));
                    let event = LinkEvent::GoingDown {
                        interface: InterfaceId(interface),
                        cell,
                        after,
                    };
                    self.sigma.handle_link(self.now, &event);
                }
            }
            Happening::Planned { after_ms } => {
                if let [Some(from), Some(to)] = self.cells {
                    let event = LinkEvent::Planned {
                        from,
                        to,
                        prefix: Ipv6Addr::new(0x2001, 0xdb8, to.0, 0, 0, 0, 0, 0),
                        after: Duration::from_millis(u64::from(after_ms)),
                    };
                    self.sigma.handle_link(self.now, &event);
                }
            }
        }
        self.obey();
    }

    fn answer(&mut self, granted: bool) {
        let Some(request) = self.waiting.pop_front() else {
            return;
        };
        match request {
            AddressRequest::Add(a) if granted => self.members.get_mut(&a).unwrap().0 = true,
            AddressRequest::Add(a) => self.forget(a),
            AddressRequest::Delete(a) if granted => self.forget(a),
            AddressRequest::Delete(a) => self.members.get_mut(&a).unwrap().1 = false,
            AddressRequest::Deactivate(a) if !granted => drop(self.deactivated.remove(&a)),
            AddressRequest::SetPrimary(_) | AddressRequest::Deactivate(_) | AddressRequest::Activate(_) => {}
        }
        self.sigma.handle_answer(self.now, request, granted);
    }

    fn forget(&mut self, address: Ipv6Addr) {
        self.members.remove(&address);
        self.deactivated.remove(&address);
        self.gone.remove(&address);
    }

    /// Carries the commands out as SCTP would, and checks that it could.
    fn obey(&mut self) {
        while let Some(command) = self.sigma.poll_command() {
            match command {
                Command::StartAttach { interface, cell } => {
                    let own = &mut self.cells[usize::from(interface.0)];
                    assert!(own.is_none(), "attaches a radio that is busy");
                    *own = Some(cell);
                    assert_ne!(self.cells[0], self.cells[1], "two radios in one cell");
                }
                Command::AddAddress(local) => self.change(AddressChange::Add(local)),
                Command::SetPrimary { address } => self.change(AddressChange::SetPrimary(address)),
                Command::DeleteAddress { address } => self.change(AddressChange::Delete(address)),
                Command::DeactivateAddress { address } => self.change(AddressChange::Deactivate(address)),
                Command::Change(changes) => {
                    assert!(changes.len() > 1);
                    changes.iter().for_each(|change| self.change(change));
                }
                Command::AddressGone { address } => {
                    assert!(
                        !self.usable.contains_key(&address),
                        "gives up an address that works"
                    );
                    assert!(self.members.contains_key(&address), "gives up a stranger");
                    assert!(self.gone.insert(address), "gives up an address twice");
                }
                Command::AddressBack(local) => {
                    assert!(
                        self.usable.contains_key(&local.address),
                        "takes a dead address back"
                    );
                    assert!(
                        self.gone.remove(&local.address),
                        "takes back what was not given up"
                    );
                }
                Command::SetRoute { address } => {
                    assert!(self.usable.contains_key(&address), "routes over a dead address");
                    assert!(
                        self.members.get(&address).is_some_and(|m| !m.1),
                        "routes over a stranger"
                    );
                    self.route = address;
                }
                Command::UpdateLocation { address } => assert_eq!(address, self.route),
            }
        }
        while self.sigma.poll_event().is_some() {}
    }

    /// What SCTP is asked to ask for.
    fn change(&mut self, change: AddressChange) {
        match change {
            AddressChange::Add(local) => {
                assert!(
                    self.usable.contains_key(&local.address),
                    "adds an address the host has not"
                );
                assert!(!self.members.contains_key(&local.address), "adds a member");
                self.members.insert(local.address, (false, false));
            }
            AddressChange::SetPrimary(address) => {
                assert!(self.usable.contains_key(&address), "makes a dead address primary");
                assert!(
                    self.members.get(&address).is_some_and(|m| !m.1),
                    "makes a stranger primary"
                );
                assert!(
                    !self.deactivated.contains(&address),
                    "makes a deactivated address primary"
                );
            }
            AddressChange::Delete(address) => {
                assert_ne!(Some(address), self.sigma.serving(), "deletes the address in use");
                let member = self.members.get_mut(&address).expect("deletes a member");
                assert_eq!(
                    *member,
                    (true, false),
                    "deletes an address once, and when it is granted"
                );
                member.1 = true;
                let left = self.members.values().filter(|m| !m.1).count();
                assert!(left > 0, "deletes the last address");
            }
            AddressChange::Deactivate(address) => {
                assert_ne!(
                    Some(address),
                    self.sigma.serving(),
                    "deactivates the address in use"
                );
                assert_eq!(
                    self.members.get(&address),
                    Some(&(true, false)),
                    "deactivates a member"
                );
                assert!(self.deactivated.insert(address), "deactivates an address twice");
            }
            AddressChange::Activate(address) => {
                assert!(self.usable.contains_key(&address), "activates a dead address");
                assert!(self.deactivated.remove(&address), "activates an active address");
            }
        }
        self.waiting.push_back(change.request());
        self.sigma.handle_asconf_sent(self.now, Duration::from_secs(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_order_of_events_cuts_the_association(
        config in config(),
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        let mut world = World::new(config);
        for (wait_ms, happening) in &happenings {
            world.happen(*wait_ms, happening);
        }
        // When everything has been answered and one link is up with a granted address, that is the one in use.
        while !world.waiting.is_empty() {
            world.answer(true);
            world.obey();
        }
        while let Some(time) = world.sigma.poll_timeout() {
            world.now = world.now.max(time);
            world.sigma.handle_timeout(world.now);
            world.obey();
            while !world.waiting.is_empty() {
                world.answer(true);
                world.obey();
            }
        }
        let serving = world.sigma.serving().unwrap();
        let ready = world.usable.keys().any(|a| world.members.get(a) == Some(&(true, false)));
        prop_assert!(!ready || world.usable.contains_key(&serving), "stays on a dead address");
    }
}
