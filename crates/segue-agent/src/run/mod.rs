//! `segue-agent run`: the machines, joined with the kernel. One thread waits in one place for packets, changes of the network,
//! deadlines, requests and signals.
//!
//! ```text
//!   Running      the loop: waits, and has each done what is due
//!   Interfaces   the interfaces of the list, what is open on them, and which packets that arrive are the agent's
//!   Holdings     what the kernel holds for the agent: addresses, routes, rules
//!   FastPath     what the kernel carries past all of this; carrying.rs tells it and asks it
//!   Device       the kernel's two ends, the TUN device and its routes; traffic.rs has every packet's way
//!   NameService  the sockets of names: of applications that ask, and of servers that are asked
//!   Record       what is remembered, and what `status` shows
//!   Traces       those who read packets along; capture.rs hands them over
//! ```

mod capture;
mod carrying;
mod holdings;
mod interfaces;
mod names;
mod network;
mod record;
mod seldom;
mod traffic;

use crate::control::{Control, Request, Response};
use crate::file;
use crate::kernel::{Programs, Requests};
use crate::metrics::{Metrics, Page};
use crate::privileges;
use crate::role::{Setup, selected};
use crate::seccomp;
use crate::status::Status;
use crate::trace::Traces;
use anyhow::{Context as _, bail};
use holdings::Holdings;
use interfaces::{Interfaces, Readable, held};
use names::NameService;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use record::{Record, Showing};
use segue_agent::config::{Config, MetricsAt};
use segue_agent::fast_path::FastPath;
use segue_agent::locators::{Change, Held, Locators};
use segue_agent::moves::{Moves, NotUsable};
use segue_agent::names::Records;
use segue_agent::networks::{Networks, Remedies};
use segue_agent::stack::{Role, Stack};
use segue_live::{AddressWatch, Buffers, Clock};
use segue_proto::address::AddressEvent;
use segue_proto::contract::LocalAddress;
use segue_proto::shim::ShimEvent;
use segue_proto::{Instant, InterfaceId};
use seldom::Seldom;
use smallvec::SmallVec;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use tracing::{info, warn};
use traffic::Device;

/// `segue-agent run`.
pub(crate) fn run(file: &Path) -> anyhow::Result<u8> {
    let config = file::read(file)?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("SEGUE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // whoever reads the log may be gone
        .log_internal_errors(false)
        .init();
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGINT);
    ends.add(Signal::SIGTERM);
    ends.thread_block()?;
    let signals = SignalFd::with_flags(&ends, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let user = privileges::find(config.agent.user.as_deref())?;
    let socket = config.agent.socket.clone();
    let control = Control::open(&socket)?;
    let confines = config.agent.seccomp;
    let metrics = config.agent.metrics.as_ref().map(Metrics::open).transpose()?;
    let sockets = [
        Some(socket.as_path()),
        config.agent.metrics.as_ref().and_then(MetricsAt::path),
    ];
    let sockets: Vec<PathBuf> = sockets.into_iter().flatten().map(Path::to_owned).collect();
    let mut running = Running::begin(config)?;
    // whatever is made once is made before
    let seldom = running.seldom(&control, &signals)?;
    privileges::drop_to(user.as_ref(), &sockets)?;
    if confines && let Err(error) = seccomp::confine() {
        // it is one wall of several: behind it there are two capabilities
        warn!(%error, "system calls are not confined: agent.seccomp = false says that this is meant");
    }
    let identity = running.stack.identity().map(tracing::field::display);
    let (role, device) = (running.record.role(), running.record.device());
    info!(role, identity, device, "ready");
    // outside systemd there is nobody to be told
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let done = running.carry(control, metrics, &signals, &seldom);
    // whatever ends it
    running.end();
    done.map(|()| 0)
}

/// The agent while it runs.
struct Running {
    clock: Clock,
    stack: Stack,
    locators: Locators,
    moves: Moves,
    interfaces: Interfaces,
    holdings: Holdings,
    device: Device,
    /// Of an ILNPv6 host, where the kernel can.
    fast_path: Option<FastPath<Programs>>,
    /// Of an ILNPv6 host.
    names: Option<NameService>,
    /// For packets, on both sides.
    buffers: Buffers,
    record: Record,
    traces: Traces,
    networks: Networks,
    /// Of the network in use.
    remedies: Remedies,
}

/// What there is to wait for, and what can be read of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Signals,
    /// Only wakes the loop.
    Alarm,
    Control,
    Device,
    Interfaces(Readable),
    /// With what is waited for.
    Names(PollFlags),
    Traces,
    Metrics,
    /// One of those that are [`Seldom`].
    Seldom,
}

/// So many are waited for without a word of memory.
const FEW: usize = 24;

type Sources = SmallVec<[Source; FEW]>;

impl Running {
    fn begin(config: Config) -> anyhow::Result<Self> {
        let clock = Clock::through_sleep();
        let now = clock.now();
        let machine = config.agent;
        let networks = Networks::new(config.networks);
        let Setup {
            stack,
            name,
            locators,
            identifier_key,
            overhead,
            destinations,
            names,
        } = Setup::new(&machine, config.role, config.names.as_deref())?;
        let listen = config.names.map(|names| names.listen).unwrap_or_default();
        let names = names.map(|names| NameService::open(names, listen)).transpose()?;
        let requests = Requests::new().context("rtnetlink")?;
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
        let device = Device::open(&machine.device)?;
        let index = if_nametoindex(machine.device.as_str())?;
        let stack = if networks.have_windows() {
            stack.with_windows_watched()
        } else {
            stack
        };
        let mut holdings = Holdings::set_up(
            requests,
            (index, &machine.device),
            destinations,
            &stack,
            overhead,
            &machine.interfaces,
        )?;
        // the device and its routes are nobody else's: what is left is not of an agent that runs
        holdings.clear(&locators, &held, &machine.interfaces)?;
        let guard = format!("segue-{}", machine.device);
        let selected = selected(stack.role(), locators.identifier());
        let interfaces = Interfaces::new(machine.interfaces, addresses, index, &guard, selected)?;
        let is_ilnp = matches!(stack.role(), Role::Ilnp(_)) && machine.fast_path;
        let identity = stack.identity().filter(|_| is_ilnp);
        let fast_path = carrying::load(identity, (&machine.device, index));
        let mut running = Self {
            clock,
            stack,
            locators,
            moves: Moves::new(interfaces.count(), machine.hold_down),
            interfaces,
            holdings,
            device,
            fast_path,
            names,
            buffers: Buffers::default(),
            record: Record::new(now, name, machine.device),
            traces: Traces::default(),
            networks,
            remedies: Remedies::default(),
        };
        running.refresh(now)?;
        running.take_network()?;
        if running.locators.misses_its_network() {
            warn!("{identifier_key}: no interface has an address of its network yet: waiting for one");
        }
        if running.stack.misses_own_address() {
            warn!("correspondent: no interface has its address yet: waiting for one");
        }
        Ok(running)
    }

    /// What stays open for as long as the agent runs.
    fn seldom(&self, control: &Control, signals: &SignalFd) -> io::Result<Seldom> {
        let changes = self.interfaces.changes().into_iter();
        let fixed = [
            (Source::Signals, signals.as_fd()),
            (Source::Alarm, self.holdings.alarm()),
            (Source::Control, control.listener()),
        ];
        let all = changes.map(|(readable, fd)| (Source::Interfaces(readable), fd));
        Seldom::new(all.chain(fixed))
    }

    /// Until a signal comes.
    fn carry(
        &mut self,
        mut control: Control,
        mut metrics: Option<Metrics>,
        signals: &SignalFd,
        seldom: &Seldom,
    ) -> anyhow::Result<()> {
        loop {
            self.drain()?;
            let now = self.clock.now();
            self.check_carried(now);
            let ready = self.wait(now, &control, metrics.as_ref(), seldom)?;
            if ready.contains(&Source::Signals) && signals.read_signal().context("signals")?.is_some() {
                return Ok(());
            }
            let now = self.clock.now();
            self.look_at_carried(now);
            if self.stack.poll_timeout().is_some_and(|at| at <= now) {
                self.stack.handle_timeout(now);
                self.drain()?;
            }
            if let Some(to) = self.moves.handle_timeout(now) {
                self.use_interface(now, to);
                self.drain()?;
            }
            let is_ready = |readable| ready.contains(&Source::Interfaces(readable));
            let ways = is_ready(Readable::Neighbors) && self.interfaces.take_ways()?;
            let retry = self.interfaces.poll_timeout().is_some_and(|at| at <= now);
            if is_ready(Readable::Network) || ways || retry {
                self.take_network()?;
                self.drain()?;
            }
            if self.holdings.poll_timeout() <= now {
                self.refresh(now)?;
            }
            let asked = ready.iter().any(|source| matches!(source, Source::Names(_)));
            if let Some(names) = &mut self.names
                && (asked || names.poll_timeout().is_some_and(|at| at <= now))
            {
                names.turn(now, &self.stack);
                self.drain()?;
            }
            if ready.contains(&Source::Device) {
                self.take_from_kernel()?;
            }
            for source in &ready {
                if let Source::Interfaces(Readable::Port(number)) = source {
                    self.take_from_port(*number)?;
                }
            }
            if ready.contains(&Source::Control) || control.poll_timeout().is_some() {
                for (stream, request) in control.turn(now, |request| self.respond(now, &request)) {
                    self.begin_trace(now, stream, request);
                }
            }
            self.traces.turn(now);
            if let Some(metrics) = &mut metrics
                && (ready.contains(&Source::Metrics) || metrics.poll_timeout().is_some())
            {
                metrics.turn(now, || Page::of(&self.status(now), self.record.handovers()));
            }
        }
    }

    /// Waits until something can be read or is due, and says what can be read.
    fn wait(
        &self,
        now: Instant,
        control: &Control,
        metrics: Option<&Metrics>,
        seldom: &Seldom,
    ) -> anyhow::Result<Sources> {
        let deadlines = [
            self.stack.poll_timeout(),
            self.moves.poll_timeout(),
            control.poll_timeout(),
            metrics.and_then(Metrics::poll_timeout),
            self.traces.poll_timeout(),
            self.interfaces.poll_timeout(),
            self.names.as_ref().and_then(NameService::poll_timeout),
            Some(self.holdings.poll_timeout()),
            self.fast_path.as_ref().and_then(FastPath::poll_timeout),
        ];
        let timeout = deadlines.into_iter().flatten().min().map(|at| at.since(now));
        let timeout = timeout.map(|t| TimeSpec::from_duration(std::time::Duration::from_nanos(t.as_nanos())));
        let fixed = [
            (Source::Device, self.device.as_fd()),
            (Source::Seldom, seldom.as_fd()),
        ];
        let ports = self.interfaces.ports();
        let names = self.names.iter().flat_map(NameService::descriptors);
        let all = fixed
            .into_iter()
            .chain(ports.map(|(readable, fd)| (Source::Interfaces(readable), fd)))
            .map(|(source, fd)| (source, fd, PollFlags::POLLIN));
        let control = control
            .descriptors()
            .map(|(flags, fd)| (Source::Control, fd, flags));
        let names = names.map(|(flags, fd)| (Source::Names(flags), fd, flags));
        let traces = self.traces.descriptors().map(|found| (Source::Traces, found));
        let metrics = metrics.into_iter().flat_map(Metrics::descriptors);
        let those_who_ask = traces.chain(metrics.map(|found| (Source::Metrics, found)));
        let those_who_ask = those_who_ask.map(|(source, (fd, writes))| {
            let write = if writes {
                PollFlags::POLLOUT
            } else {
                PollFlags::empty()
            };
            (source, fd, PollFlags::POLLIN | write)
        });
        let (sources, mut fds): (Sources, SmallVec<[PollFd<'_>; FEW]>) = all
            .chain(control)
            .chain(names)
            .chain(those_who_ask)
            .map(|(source, fd, flags): (Source, BorrowedFd<'_>, PollFlags)| (source, PollFd::new(fd, flags)))
            .unzip();
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for packets"),
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|r| !r.is_empty());
        let ready = sources.into_iter().zip(&fds).filter(|(_, fd)| is_ready(fd));
        let mut ready: Sources = ready.map(|(source, _)| source).collect();
        if ready.contains(&Source::Seldom) {
            seldom.add_ready(&mut ready).context("waiting for changes")?;
        }
        Ok(ready)
    }

    /// Interfaces and addresses have changed: what that means to the locators, and which interface is used now.
    fn take_network(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        self.interfaces.take_changes(now)?;
        self.check_ways_of_carried(now);
        self.attach_programs();
        let device = self.holdings.device();
        // as long as nothing has been heard of it, it is as it was set up
        if let Some(up) = self.interfaces.has_carrier(device) {
            self.holdings
                .handle_device(up, &self.interfaces.addresses_of(device));
        }
        // what they take differs, and changes
        for number in 0..self.interfaces.count() {
            let interface = InterfaceId(number as u8);
            let index = self.interfaces.index_of(interface);
            if let Some(mtu) = index.and_then(|index| self.holdings.mtu_of(index)) {
                self.stack.set_mtu(interface, mtu);
            }
        }
        let held = self.interfaces.held();
        let up: Vec<bool> = (0..self.interfaces.count())
            .map(|number| self.interfaces.is_up(number))
            .collect();
        let now = self.clock.now();
        self.take_own_addresses(now, &held);
        let mut events = Vec::new();
        for change in self.locators.reconcile(&held, &up) {
            match change {
                Change::Add(local) => self.hold(local),
                Change::Remove(local) => self.release(local),
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
        let (usable, metered) = (self.usable(), self.metered());
        self.moves.note_metered(&metered);
        if let Some(to) = self.moves.handle_usable(now, &usable) {
            self.use_interface(now, to);
        }
        for event in lost {
            self.stack.handle_address(now, &event);
        }
        self.publish(now, &held);
        self.fit_network();
        Ok(())
    }

    /// The host's own name is to have its locators, and the kernel's own addresses.
    fn publish(&mut self, now: Instant, held: &[Held]) {
        let (Some(names), Some(locators)) = (&mut self.names, self.stack.advertised()) else {
            return;
        };
        let own = held.iter().filter(|h| {
            let up = self.interfaces.is_up(h.interface);
            up && h.global && !h.deprecated && !self.locators.is_own(h.address, h.prefix_length)
        });
        let addresses = own.map(|h| h.address).collect();
        names.publish(now, Records { locators, addresses });
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
        self.interfaces.select(now, selected);
    }

    /// Which interfaces can be used: those with a locator that lead on to the world, or those with a locator if none does.
    fn usable(&mut self) -> Vec<bool> {
        let with_locator = (0..self.interfaces.count()).map(|number| {
            if self.stack.needs_address() {
                self.locators.is_usable(number)
            } else {
                self.interfaces.is_up(number)
            }
        });
        let with_locator = with_locator.collect();
        self.interfaces.leading_on(with_locator)
    }

    fn hold(&mut self, local: LocalAddress) {
        if let Some(index) = self.interfaces.index_of(local.interface) {
            let is_held_elsewhere = self.locators.is_held_elsewhere(local);
            self.holdings.hold(index, local.address, is_held_elsewhere);
        }
    }

    fn release(&mut self, local: LocalAddress) {
        if let Some(index) = self.interfaces.index_of(local.interface) {
            self.holdings.release(index, local.address);
        }
    }

    fn refresh(&mut self, now: Instant) -> anyhow::Result<()> {
        // the calendar may have been set since
        let calendar = Clock::through_sleep();
        self.stack.handle_clock(calendar.unix_ns(Instant::ZERO));
        let wanted: Vec<LocalAddress> = self.locators.wanted().collect();
        for local in wanted {
            self.hold(local);
        }
        self.holdings.restore();
        self.holdings.set_alarm(now).context("alarm for addresses")
    }

    /// Another interface is used from now on: decided here, not by the shim.
    fn use_interface(&mut self, now: Instant, number: usize) {
        info!(interface = self.interfaces.name(number), "in use");
        self.fit_network();
        self.stack.prefer(now, InterfaceId(number as u8));
    }

    fn note(&mut self, now: Instant, event: &ShimEvent) {
        match event {
            ShimEvent::HandoffBegun { .. } => self.follow(now),
            ShimEvent::UpdateDirectory => self.publish(now, &self.interfaces.held()),
            _ => {}
        }
        self.record.note(&self.clock, now, event);
    }

    /// The shim leaves a network by itself if nothing gets through.
    fn follow(&mut self, now: Instant) {
        let Some(to) = self.stack.interface().map(|interface| usize::from(interface.0)) else {
            return;
        };
        if self.moves.in_use().is_some_and(|in_use| in_use != to) {
            let interface = self.interfaces.name(to);
            warn!(interface, "in use: nothing got through the other network");
            self.moves.handle_silence(now, to);
            self.fit_network();
        }
    }

    fn respond(&mut self, now: Instant, request: &Request) -> Response {
        match request {
            Request::Status => Response::Status(Box::new(self.status(now))),
            Request::Handover { interface } => self.hand_over(now, interface),
            // these are answered by packets
            Request::Trace(_) => Response::Error("trace: expected a connection of its own".to_owned()),
        }
    }

    fn status(&self, now: Instant) -> Status {
        let of = Showing {
            stack: &self.stack,
            locators: &self.locators,
            moves: &self.moves,
            interfaces: &self.interfaces,
            names: self.names.as_ref(),
            refused: self.device.refused(),
            fast_path: self
                .fast_path
                .as_ref()
                .map(FastPath::counters)
                .unwrap_or_default(),
        };
        self.record.status(now, &of)
    }

    fn hand_over(&mut self, now: Instant, interface: &str) -> Response {
        let Some(number) = self.interfaces.names().position(|name| name == interface) else {
            let names: Vec<&str> = self.interfaces.names().collect();
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

    /// Gives back what the machine was asked to hold; the rest goes with the descriptors.
    fn end(mut self) {
        let wanted: Vec<LocalAddress> = self.locators.wanted().collect();
        for local in wanted {
            self.release(local);
        }
        info!("ended");
    }
}
