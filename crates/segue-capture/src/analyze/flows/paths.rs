//! The ways that packets of a flow take, and where they are seen.

use crate::analyze::decode::{Address, Marks};

/// Paths of a flow that are told apart; packets of further ones count as of the last.
pub(super) const MAX_PATHS: usize = 64;

/// Where a packet was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Role {
    /// Nothing is known of it.
    Somewhere,
    /// At the host that sent it.
    Sender,
    /// At the host that it is for.
    Receiver,
}

impl Role {
    /// Index of the view.
    pub(in super::super) const fn place(self) -> usize {
        match self {
            Self::Somewhere | Self::Sender => 0,
            Self::Receiver => 1,
        }
    }
}

/// A packet, as far as its flow is concerned.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Sight {
    pub time_ns: u64,
    pub capture: u8,
    /// Interface of the capture, and of the host if its packets say so; zero if not.
    pub interface: u32,
    pub device: u32,
    pub role: Role,
    /// Source and destination of the outermost header.
    pub outer: (Address, Address),
    pub ports: (u16, u16),
    pub marks: Marks,
    /// Identification of the fragments that it comes in.
    pub fragments: Option<u32>,
    /// The receiver takes it: not so what comes to a locator that it has left.
    pub taken: bool,
    /// The other end was captured as well, as far as that is known.
    pub both: bool,
}

/// Where a packet was captured: number of the capture, its interface, and the host's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Spot {
    pub capture: u8,
    pub interface: u32,
    pub device: u32,
}

impl Sight {
    /// Where it was captured.
    pub(super) const fn spot(&self) -> Spot {
        Spot {
            capture: self.capture,
            interface: self.interface,
            device: self.device,
        }
    }
}

/// A way that packets take: all that tells it from others of the flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Way {
    pub direction: usize,
    pub outer: (Address, Address),
    pub ports: (u16, u16),
    pub tunnelled: bool,
    /// Where it was captured, if that tells paths apart.
    pub spot: Option<Spot>,
    pub place: usize,
}

impl Way {
    /// The way of a packet of this direction; if paths are `the_senders`, they look the same at both ends.
    pub(super) const fn of(direction: usize, sight: &Sight, the_senders: bool) -> Self {
        let (place, spot) = if the_senders {
            (0, None)
        } else {
            (sight.role.place(), Some(sight.spot()))
        };
        Self {
            direction,
            outer: sight.outer,
            ports: sight.ports,
            tunnelled: sight.marks.tunnelled,
            spot,
            place,
        }
    }
}

/// What was seen of a way by the end of the flow.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Taken {
    pub way: Way,
    /// Where the first packet was captured.
    pub seen_at: Spot,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Data by place: packets and bytes.
    pub data: [(u64, u64); 2],
}

/// A way that packets take, while they do.
#[derive(Clone, Debug)]
struct PathState {
    way: Way,
    seen_at: Spot,
    first_ns: u64,
    last_ns: u64,
    /// Last data that left or arrived by it.
    last_data_ns: Option<u64>,
    /// By place.
    data_packets: [u64; 2],
    data_bytes: [u64; 2],
}

/// The ways of a flow, numbered in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Paths {
    states: Vec<PathState>,
    /// Number of the path of the last packet, by direction and place.
    last: [[u16; 2]; 2],
    /// Packets on more paths than are told apart.
    beyond: u64,
}

impl Paths {
    /// The path that a packet of a direction takes by itself; gives its number.
    pub(super) fn take(&mut self, way: Way, sight: &Sight) -> u16 {
        let number = self.number(way, sight);
        self.last[way.direction][way.place] = number;
        number
    }

    /// Number of a path that something else than the direction's choice tells of.
    pub(super) fn number(&mut self, way: Way, sight: &Sight) -> u16 {
        let last = self.last[way.direction][way.place];
        let is = |p: &PathState| p.way == way;
        let number = if self.states.get(usize::from(last)).is_some_and(is) {
            last
        } else if let Some(known) = self.states.iter().position(is) {
            known as u16
        } else if self.states.len() < MAX_PATHS {
            self.add(way, sight)
        } else {
            self.beyond += 1;
            MAX_PATHS as u16 - 1
        };
        if let Some(path) = self.states.get_mut(usize::from(number)) {
            path.last_ns = sight.time_ns;
        }
        number
    }

    fn add(&mut self, way: Way, sight: &Sight) -> u16 {
        // most flows have one path in each direction
        if self.states.len() < 2 {
            self.states.reserve_exact(1);
        }
        self.states.push(PathState {
            way,
            seen_at: sight.spot(),
            first_ns: sight.time_ns,
            last_ns: sight.time_ns,
            last_data_ns: None,
            data_packets: [0; 2],
            data_bytes: [0; 2],
        });
        self.states.len() as u16 - 1
    }

    /// Data takes a path. Gives for how long it had carried none, as far as is known.
    pub(super) fn carry(&mut self, number: u16, sight: &Sight, bytes: u32) -> u64 {
        let place = sight.role.place();
        let Some(state) = self.states.get_mut(usize::from(number)) else {
            return u64::MAX;
        };
        state.data_packets[place] += 1;
        state.data_bytes[place] += u64::from(bytes);
        let before = state.last_data_ns.replace(sight.time_ns);
        before.map_or(u64::MAX, |last_ns| sight.time_ns.saturating_sub(last_ns))
    }

    /// For how long a path has carried no data, as far as is known.
    pub(super) fn quiet_ns(&self, number: u16, now_ns: u64) -> u64 {
        let used_ns = self.states.get(usize::from(number)).and_then(|p| p.last_data_ns);
        used_ns.map_or(u64::MAX, |last_ns| now_ns.saturating_sub(last_ns))
    }

    /// Number of the first path of a direction between these addresses and ports, whatever else tells paths apart.
    pub(super) fn between(&self, direction: usize, sight: &Sight) -> Option<u16> {
        let goes = |p: &PathState| {
            p.way.direction == direction && p.way.outer == sight.outer && p.way.ports == sight.ports
        };
        self.states.iter().position(goes).map(|n| n as u16)
    }

    /// The way that a direction took last, as it left its sender.
    pub(super) fn last_way(&self, direction: usize) -> Option<&Way> {
        let last = self.states.get(usize::from(self.last[direction][0]))?;
        Some(&last.way).filter(|way| way.direction == direction)
    }

    /// The way of that number.
    pub(in super::super) fn way(&self, number: u16) -> Option<&Way> {
        self.states.get(usize::from(number)).map(|p| &p.way)
    }

    /// Whether there is more than one, of both directions together.
    pub(super) fn are_several(&self) -> bool {
        self.states.len() > 1
    }

    /// Packets on more paths than are told apart.
    pub(super) const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What was seen of all, by number.
    pub(super) fn finish(self) -> Vec<Taken> {
        let taken = |p: PathState| Taken {
            way: p.way,
            seen_at: p.seen_at,
            first_ns: p.first_ns,
            last_ns: p.last_ns,
            data: [0, 1].map(|place| (p.data_packets[place], p.data_bytes[place])),
        };
        self.states.into_iter().map(taken).collect()
    }
}
