//! `segue-agent run`: the machines, joined with the kernel. One thread waits in one place for packets, changes of the network,
//! deadlines, requests and signals.

use crate::control::{Control, Request, Response};
use crate::file;
use crate::kernel::{
    Guard, NextHops, Port, Requests, Routed, Routes, Rules, VALID_FOR, add, mtu_of, offload_of, remove,
    set_up_device,
};
use crate::privileges;
use crate::role::{Destinations, Setup, Shown, selected, show, state_of_address};
use crate::status::{HandoverStatus, InterfaceStatus, LocatorStatus, Status};
use anyhow::{Context as _, bail};
use bytes::Bytes;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use segue_agent::config::Config;
use segue_agent::locators::{Change, Held, Locators};
use segue_agent::moves::{Moves, NotUsable};
use segue_agent::stack::Stack;
use segue_live::{AddressWatch, CarrierWatch, Clock, HostAddress, Offload, Select, SuperTun};
use segue_proto::address::AddressEvent;
use segue_proto::contract::{LocalAddress, Transmit};
use segue_proto::shim::ShimEvent;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::ilnp::Locator;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use tracing::{debug, info, warn};

/// Packets of one descriptor before the others have their turn.
const RECEIVES_PER_TURN: usize = 64;
/// The kernel is asked to go on holding addresses so often.
const REFRESH_EVERY: Duration = Duration::from_secs(20);
/// An interface that cannot be opened or guarded is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Handovers that `status` shows.
const REMEMBERED: usize = 16;
/// Of interfaces that are not there yet.
const USUAL_MTU: u32 = 1500;
/// RFC 8200 section 5.
const LEAST_MTU: u32 = 1280;
/// What is kept free of a packet at least. A Linux that forwards a super-packet (the host of a container, a router that has put
/// segments together) asks whether its segments fit, and takes the length of TCP's header from where it is without an extension
/// header: up to 60 bytes instead of 20, by whatever the sequence number is. With 40 bytes free they always do.
const LEAST_FREE: u32 = 40;

/// `segue-agent run`.
pub(crate) fn run(file: &Path) -> anyhow::Result<u8> {
    let config = file::read(file)?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("SEGUE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .init();
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGINT);
    ends.add(Signal::SIGTERM);
    ends.thread_block()?;
    let signals = SignalFd::with_flags(&ends, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let user = privileges::find(config.agent.user.as_deref())?;
    let socket = config.agent.socket.clone();
    let control = Control::open(&socket)?;
    let running = Running::begin(config)?;
    privileges::drop_to(user.as_ref(), &socket)?;
    let identity = running.stack.identity().map(tracing::field::display);
    info!(role = running.role, identity, device = running.device, "ready");
    // outside systemd there is nobody to be told
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    running.carry(control, &signals)
}

/// An interface of the list.
struct Slot {
    name: String,
    port: Option<Port>,
    /// Nothing was heard of it yet, or it is not there.
    up: bool,
}

/// The agent while it runs.
struct Running {
    clock: Clock,
    begun: Instant,
    role: &'static str,
    device: String,
    tun: SuperTun,
    stack: Stack,
    locators: Locators,
    moves: Moves,
    slots: Vec<Slot>,
    /// Which packets that arrive are the agent's.
    selected: Vec<Select>,
    guard: Guard,
    addresses: AddressWatch,
    carriers: CarrierWatch,
    /// Interfaces of the machine by number: up and with a carrier, or not.
    carrier: BTreeMap<u32, bool>,
    hops: NextHops,
    routed: Routed,
    requests: Requests,
    /// Of routing, while the agent runs.
    _rules: Option<Rules>,
    routes: Routes,
    destinations: Destinations,
    refresh_at: Instant,
    /// Goes off then, or when the machine wakes from a sleep in which that passed: what waits for a time span does not count a sleep.
    alarm: TimerFd,
    retry_at: Option<Instant>,
    handovers: VecDeque<HandoverStatus>,
    /// Packets that the kernel did not take from the device.
    refused_by_device: u64,
    head: Vec<u8>,
}

impl Running {
    fn begin(config: Config) -> anyhow::Result<Self> {
        let clock = Clock::through_sleep();
        let now = clock.now();
        let machine = config.agent;
        let Setup {
            stack,
            name,
            locators,
            identifier_key,
            overhead,
            destinations,
        } = Setup::new(&machine, config.role)?;
        let mut requests = Requests::new().context("rtnetlink")?;
        let addresses = AddressWatch::new().context("addresses of this machine")?;
        let held = held(&addresses, &machine.interfaces);
        if let Some(clash) = locators.clash(&held) {
            bail!(
                "{identifier_key}: {} has the address {}/{} already: expected an identifier that no address of this machine has",
                machine.interfaces[clash.interface],
                clash.address,
                clash.prefix_length
            );
        }
        for left in held
            .iter()
            .filter(|h| locators.is_own(h.address, h.prefix_length))
        {
            let name = &machine.interfaces[left.interface];
            info!(interface = name, address = %left.address, "found an address of an agent that was killed: removed");
            remove(&mut requests, if_nametoindex(name.as_str())?, left.address)?;
        }
        let tun = SuperTun::open(&machine.device)?;
        let indices = machine
            .interfaces
            .iter()
            .filter_map(|name| if_nametoindex(name.as_str()).ok());
        let mtus = indices.filter_map(|index| mtu_of(&mut requests, index));
        let mtu = mtus.min().unwrap_or(USUAL_MTU);
        let mtu = mtu.saturating_sub(overhead.max(LEAST_FREE)).max(LEAST_MTU);
        let device = if_nametoindex(machine.device.as_str())?;
        set_up_device(&mut requests, device, stack.identity(), mtu)
            .with_context(|| format!("TUN device {}", machine.device))?;
        let mut routes = Routes::new(device).context("rtnetlink")?;
        match routes.set(&destinations.routes(stack.role())) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && destinations.home_address().is_some() =>
            {
                bail!("mobile-node: its tables have routes already: expected one mobile node on a machine");
            }
            done => done.with_context(|| format!("routes to {}", machine.device))?,
        }
        let rules = destinations.home_address().map(Rules::set_up).transpose();
        let rules = rules.context("rules of routing")?;
        let guard = Guard::new(&format!("segue-{}", machine.device)).context("nftables")?;
        let selected = selected(stack.role(), locators.identifier());
        let slots = machine.interfaces.into_iter().map(|name| Slot {
            name,
            port: None,
            up: false,
        });
        let slots: Vec<Slot> = slots.collect();
        let mut running = Self {
            clock,
            begun: now,
            role: name,
            device: machine.device,
            tun,
            stack,
            locators,
            moves: Moves::new(slots.len(), machine.hold_down),
            slots,
            selected,
            guard,
            addresses,
            carriers: CarrierWatch::new(None).context("interfaces of this machine")?,
            carrier: BTreeMap::new(),
            hops: NextHops::new(device).context("routes and neighbours")?,
            routed: Routed::open().context("raw socket")?,
            requests,
            _rules: rules,
            routes,
            destinations,
            refresh_at: now + REFRESH_EVERY,
            alarm: TimerFd::new(
                ClockId::CLOCK_BOOTTIME,
                TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
            )?,
            retry_at: None,
            handovers: VecDeque::new(),
            refused_by_device: 0,
            head: Vec::new(),
        };
        running.refresh(now)?;
        running.take_network()?;
        if running.locators.misses_its_network() {
            warn!("{identifier_key}: no interface has an address of its network yet: waiting for one");
        }
        if running.stack.misses_own_address() {
            warn!("correspondent: no interface has its address yet: waiting for one");
        }
        debug!(mtu, "set up");
        Ok(running)
    }

    /// Until a signal comes.
    fn carry(mut self, mut control: Control, signals: &SignalFd) -> anyhow::Result<u8> {
        loop {
            self.drain()?;
            let now = self.clock.now();
            let ready = self.wait(now, &control, signals)?;
            if signals.read_signal()?.is_some() {
                self.end();
                return Ok(0);
            }
            let now = self.clock.now();
            if self.stack.poll_timeout().is_some_and(|at| at <= now) {
                self.stack.handle_timeout(now);
                self.drain()?;
            }
            if let Some(to) = self.moves.handle_timeout(now) {
                self.use_interface(now, to);
                self.drain()?;
            }
            let ways = ready.neighbors && self.hops.take_changes().context("routes and neighbours")?;
            if ready.network || ways || self.retry_at.is_some_and(|at| at <= now) {
                self.take_network()?;
                self.drain()?;
            }
            if self.refresh_at <= now {
                self.refresh(now)?;
            }
            if ready.device {
                self.take_from_kernel()?;
            }
            for number in ready.ports {
                self.take_from_port(number)?;
            }
            control.turn(now, |request| self.respond(now, &request));
        }
    }

    fn wait(&self, now: Instant, control: &Control, signals: &SignalFd) -> anyhow::Result<Ready> {
        let deadlines = [
            self.stack.poll_timeout(),
            self.moves.poll_timeout(),
            control.poll_timeout(),
            self.retry_at,
            Some(self.refresh_at),
        ];
        let timeout = deadlines.into_iter().flatten().min().map(|at| at.since(now));
        let timeout = timeout.map(|t| TimeSpec::from_duration(std::time::Duration::from_nanos(t.as_nanos())));
        let fixed = [
            signals.as_fd(),
            self.addresses.as_fd(),
            self.carriers.as_fd(),
            self.hops.as_fd(),
            self.tun.as_fd(),
            self.alarm.as_fd(),
        ];
        let ports: Vec<(usize, BorrowedFd<'_>)> = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(number, slot)| Some((number, slot.port.as_ref()?.as_fd())))
            .collect();
        let all = fixed
            .into_iter()
            .chain(ports.iter().map(|(_, fd)| *fd))
            .chain(control.descriptors());
        let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for packets"),
        }
        let is_ready = |place: usize| fds[place].revents().is_some_and(|r| !r.is_empty());
        Ok(Ready {
            network: is_ready(1) || is_ready(2),
            neighbors: is_ready(3),
            device: is_ready(4),
            ports: (0..ports.len())
                .filter(|n| is_ready(fixed.len() + n))
                .map(|n| ports[n].0)
                .collect(),
        })
    }

    /// Interfaces and addresses have changed: what that means to the locators, and which interface is used now.
    fn take_network(&mut self) -> anyhow::Result<()> {
        for change in self.carriers.changes().context("interfaces of this machine")? {
            self.carrier.insert(change.index, change.up);
        }
        self.addresses.changes().context("addresses of this machine")?;
        self.retry_at = None;
        for number in 0..self.slots.len() {
            if let Err(error) = self.open_port(number) {
                let slot = &self.slots[number];
                warn!(interface = slot.name, %error, "cannot be used");
                self.retry_at = Some(self.clock.now() + RETRY_AFTER);
            }
        }
        let names: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
        let held = held(&self.addresses, &names);
        let up: Vec<bool> = self.slots.iter().map(|slot| slot.up).collect();
        let now = self.clock.now();
        self.take_own_addresses(now, &held);
        let mut events = Vec::new();
        for change in self.locators.reconcile(&held, &up) {
            match change {
                Change::Add(local) => self.hold(local),
                Change::Remove(local) => {
                    if let Some(index) = self.index_of(local.interface)
                        && let Err(error) = remove(&mut self.requests, index, local.address)
                    {
                        warn!(address = %local.address, %error, "not removed");
                    }
                }
                Change::Tell(event) => events.push(event),
            }
        }
        // before one is lost, the next is in use: peers are told once
        let (lost, others): (Vec<AddressEvent>, Vec<AddressEvent>) = events
            .into_iter()
            .partition(|e| matches!(e, AddressEvent::Lost(_)));
        for event in others {
            self.stack.handle_address(now, &event);
        }
        let usable = self.usable();
        if let Some(to) = self.moves.handle_usable(now, &usable) {
            self.use_interface(now, to);
        }
        for event in lost {
            self.stack.handle_address(now, &event);
        }
        Ok(())
    }

    /// The kernel's own addresses have changed, perhaps: what is the agent's of what arrives is another, then.
    fn take_own_addresses(&mut self, now: Instant, held: &[Held]) {
        let own = held
            .iter()
            .filter(|h| h.global && !self.locators.is_own(h.address, h.prefix_length));
        let own: Vec<LocalAddress> = own
            .map(|h| LocalAddress {
                interface: InterfaceId(h.interface as u8),
                address: h.address,
            })
            .collect();
        self.stack.handle_own_addresses(now, &own);
        let selected = selected(self.stack.role(), self.locators.identifier());
        if selected == self.selected {
            return;
        }
        self.selected = selected;
        for slot in &mut self.slots {
            let Some(port) = &slot.port else { continue };
            // what is kept from the kernel is the agent's by then
            let done = port
                .select(&self.selected)
                .and_then(|()| self.guard.watch(&slot.name, &self.selected));
            if let Err(error) = done {
                warn!(interface = slot.name, %error, "opened again");
                slot.port = None;
                self.retry_at = Some(now + RETRY_AFTER);
            }
        }
    }

    /// Which interfaces can be used: those with a locator that lead on to the world, or those with a locator if none does. An address
    /// is there before its router is heard again.
    fn usable(&mut self) -> Vec<bool> {
        let with_locator: Vec<bool> = (0..self.slots.len())
            .map(|n| {
                if self.stack.needs_address() {
                    self.locators.is_usable(n)
                } else {
                    self.slots[n].up
                }
            })
            .collect();
        let hops = &mut self.hops;
        let leads = |(slot, usable): (&Slot, &bool)| {
            *usable && slot.port.as_ref().is_some_and(|port| hops.leads_on(port.index()))
        };
        let lead_on: Vec<bool> = self.slots.iter().zip(&with_locator).map(leads).collect();
        if lead_on.contains(&true) {
            lead_on
        } else {
            with_locator
        }
    }

    /// Opens, or forgets, what there is of an interface of the list.
    fn open_port(&mut self, number: usize) -> io::Result<()> {
        let slot = &mut self.slots[number];
        let index = if_nametoindex(slot.name.as_str()).ok();
        if slot.port.as_ref().map(Port::index) != index {
            slot.port = None;
            if index.is_some() {
                self.guard.watch(&slot.name, &self.selected)?;
                slot.port = Some(Port::open(&slot.name, &self.selected)?);
                info!(interface = slot.name, "opened");
            }
        }
        slot.up = index.is_some_and(|index| self.carrier.get(&index) == Some(&true));
        Ok(())
    }

    fn hold(&mut self, local: LocalAddress) {
        let Some(index) = self.index_of(local.interface) else {
            return;
        };
        if let Err(error) = add(&mut self.requests, index, local.address) {
            warn!(address = %local.address, %error, "the kernel does not hold it");
        }
    }

    fn index_of(&self, interface: InterfaceId) -> Option<u32> {
        let slot = self.slots.get(usize::from(interface.0))?;
        if_nametoindex(slot.name.as_str()).ok()
    }

    fn refresh(&mut self, now: Instant) -> io::Result<()> {
        let wanted: Vec<LocalAddress> = self.locators.wanted().collect();
        for local in wanted {
            self.hold(local);
        }
        self.refresh_at = now + REFRESH_EVERY;
        let at = std::time::Duration::from_nanos(self.refresh_at.as_nanos());
        let once = Expiration::OneShot(TimeSpec::from_duration(at));
        Ok(self.alarm.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }

    fn use_interface(&mut self, now: Instant, number: usize) {
        info!(interface = self.slots[number].name, "in use");
        self.stack.prefer(now, InterfaceId(number as u8));
    }

    fn take_from_kernel(&mut self) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let Some((offload, packet)) = self.tun.receive().context("TUN device")? else {
                return Ok(());
            };
            let bytes = Bytes::copy_from_slice(packet);
            self.stack
                .handle_kernel(self.clock.now(), &bytes, state_of(offload), offload.segment_size);
            self.drain()?;
        }
        Ok(())
    }

    fn take_from_port(&mut self, number: usize) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let slot = &mut self.slots[number];
            let Some(port) = &mut slot.port else { return Ok(()) };
            let Some(frame) = port
                .receive()
                .with_context(|| format!("interface {}", slot.name))?
            else {
                return Ok(());
            };
            let bytes = Bytes::copy_from_slice(port.packet(&frame));
            let interface = InterfaceId(number as u8);
            let state = state_of(frame.offload);
            self.stack.handle_wire(
                self.clock.now(),
                interface,
                &bytes,
                state,
                frame.offload.segment_size,
            );
            self.drain()?;
        }
        Ok(())
    }

    /// What the stack has to say goes to where it belongs.
    fn drain(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        while let Some(packet) = self.stack.poll_kernel() {
            let taken = self.give_to_device(&packet).context("TUN device")?;
            self.refused_by_device += u64::from(!taken);
        }
        while let Some(Transmit { interface, packet }) = self.stack.poll_wire() {
            let slot = self.slots.get_mut(usize::from(interface.0));
            let Some((name, port)) = slot.and_then(|s| Some((&s.name, s.port.as_mut()?))) else {
                continue;
            };
            let sent = port.send(now, &packet, &mut self.hops, &mut self.head);
            sent.with_context(|| format!("interface {name}"))?;
        }
        while let Some(packet) = self.stack.poll_routed() {
            self.routed.send(&packet).context("raw socket")?;
        }
        if self.stack.take_change()
            && let Err(error) = self.routes.set(&self.destinations.routes(self.stack.role()))
        {
            warn!(%error, "not all routes to {} are as they are to be", self.device);
        }
        while let Some(event) = self.stack.poll_event() {
            self.note(now, event);
        }
        Ok(())
    }

    fn give_to_device(&mut self, packet: &Packet) -> io::Result<bool> {
        match &packet.payload {
            Payload::Raw(raw) => {
                self.head.clear();
                packet.emit_headers(&mut self.head);
                let offload = offload_of(packet, self.head.len() as u16);
                self.tun.send(offload, [&self.head, &raw.bytes])
            }
            _ => self.tun.send(Offload::default(), [&packet.to_vec(), &[]]),
        }
    }

    fn note(&mut self, now: Instant, event: ShimEvent) {
        match event {
            ShimEvent::HandoffBegun { from, to } => {
                self.follow(now);
                info!(from = from.map(tracing::field::display), %to, "handover: peers are told");
                if self.handovers.len() == REMEMBERED {
                    self.handovers.pop_front();
                }
                self.handovers.push_back(HandoverStatus {
                    time_unix_ns: self.clock.unix_ns(now),
                    from,
                    to,
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
                    last.failed.push(peer);
                }
            }
            ShimEvent::FellBack { peer } => info!(%peer, "speaks only IPv6"),
            ShimEvent::RouteChanged { peer, to } => info!(%peer, %to, "its packets go another way"),
            _ => {}
        }
    }

    /// The shim leaves a network by itself if nothing gets through.
    fn follow(&mut self, now: Instant) {
        let Some(to) = self.stack.interface().map(|interface| usize::from(interface.0)) else {
            return;
        };
        if self.moves.in_use().is_some_and(|in_use| in_use != to) {
            warn!(
                interface = self.slots[to].name,
                "in use: nothing got through the other network"
            );
            self.moves.handle_silence(now, to);
        }
    }

    fn respond(&mut self, now: Instant, request: &Request) -> Response {
        match request {
            Request::Status => Response::Status(Box::new(self.status(now))),
            Request::Handover { interface } => {
                let Some(number) = self.slots.iter().position(|slot| slot.name == *interface) else {
                    let names: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
                    return Response::Error(format!("{interface}: expected one of {}", names.join(", ")));
                };
                match self.moves.ask(number) {
                    Ok(changed) => {
                        if changed {
                            self.use_interface(now, number);
                        }
                        Response::Handover { changed }
                    }
                    Err(NotUsable) => Response::Error(format!(
                        "{interface}: has no locator that can be used: expected an interface that is up, with a prefix of 64 bits"
                    )),
                }
            }
        }
    }

    fn status(&self, now: Instant) -> Status {
        let role = self.stack.role();
        let interfaces = self.slots.iter().enumerate().map(|(number, slot)| {
            let own = self
                .locators
                .wanted()
                .filter(|l| usize::from(l.interface.0) == number);
            let locators = own.map(|local| LocatorStatus {
                locator: Locator::of(local.address).to_string(),
                address: local.address,
                state: state_of_address(role, number, local.address).unwrap_or_else(|| "pending".to_owned()),
            });
            InterfaceStatus {
                name: slot.name.clone(),
                is_there: slot.port.is_some(),
                is_up: slot.up,
                in_use: self.moves.in_use() == Some(number),
                locators: locators.collect(),
            }
        });
        let mut counters: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        let mut count = |part: &str, name: &str, number: u64| {
            if number > 0 {
                counters
                    .entry(part.to_owned())
                    .or_default()
                    .insert(name.to_owned(), number);
            }
        };
        for (part, counts) in self.stack.role_counters() {
            for (name, number) in counts {
                count(part, name, number);
            }
        }
        for (name, number) in self.stack.counters().list() {
            count("packets", name, number);
        }
        count("packets", "refused_by_device", self.refused_by_device);
        count("packets", "refused_by_routes", self.routed.refused());
        for slot in &self.slots {
            let refused = slot.port.as_ref().map_or(0, Port::refused);
            count("packets", &format!("refused_by_{}", slot.name), refused);
        }
        let Shown {
            sessions,
            registration,
            correspondents,
            bindings,
        } = show(role, now);
        Status {
            role: self.role.to_owned(),
            identity: self.stack.identity(),
            device: self.device.clone(),
            running_s: now.since(self.begun).as_secs_f64(),
            interfaces: interfaces.collect(),
            sessions,
            registration,
            correspondents,
            bindings,
            handovers: self.handovers.iter().cloned().collect(),
            counters,
        }
    }

    /// Gives back what the machine was asked to hold; the rest goes with the descriptors.
    fn end(mut self) {
        let wanted: Vec<LocalAddress> = self.locators.wanted().collect();
        for local in wanted {
            if let Some(index) = self.index_of(local.interface)
                && let Err(error) = remove(&mut self.requests, index, local.address)
            {
                warn!(address = %local.address, %error, "not removed: it goes by itself within {VALID_FOR:?}");
            }
        }
        info!("ended");
    }
}

/// What can be read.
struct Ready {
    network: bool,
    neighbors: bool,
    device: bool,
    ports: Vec<usize>,
}

/// The addresses that the kernel holds on the interfaces of these names.
fn held(addresses: &AddressWatch, names: &[impl AsRef<str>]) -> Vec<Held> {
    let numbers: BTreeMap<u32, usize> = names
        .iter()
        .enumerate()
        .filter_map(|(number, name)| Some((if_nametoindex(name.as_ref()).ok()?, number)))
        .collect();
    let of_ours = |a: &HostAddress| {
        Some(Held {
            interface: *numbers.get(&a.interface_index)?,
            address: a.address,
            prefix_length: a.prefix_length,
            global: a.global,
            deprecated: a.deprecated,
        })
    };
    addresses.addresses().iter().filter_map(of_ours).collect()
}

fn state_of(offload: Offload) -> ChecksumState {
    if offload.partial_checksum.is_some() {
        ChecksumState::Partial
    } else {
        ChecksumState::Complete
    }
}
