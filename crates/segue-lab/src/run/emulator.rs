//! The loop: packets of the hosts' kernels into the network of the scenario, and out of it again when they are due.

use super::host::Host;
use super::proxies::{Place, Proxies};
use crate::link::{LONGEST_PACKET, RECEIVES_PER_TURN, wait, wait_for};
use crate::stop;
use anyhow::Context as _;
use bytes::Bytes;
use core::net::Ipv6Addr;
use nix::poll::PollFlags;
use segue_capture::rows::{Row, Rows, Spill};
use segue_lab::lateness::{Lateness, Pulse};
use segue_live::Clock;
use segue_proto::{Duration, Instant, InterfaceId};
use segue_sim::realtime::{KernelChange, Realtime};
use segue_sim::sink::Sink;
use segue_wire::{Packet, Payload};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How long it goes on at most without giving away what has been recorded: little at a time, since packets wait meanwhile.
const WRITES_EVERY: Duration = Duration::from_millis(10);

/// What the kernels did with the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counters {
    /// Packets that the kernels sent.
    pub(super) from_kernels: u64,
    /// Of them, those that were not IPv6 or are malformed.
    pub(super) malformed: u64,
    /// Packets given to the kernels.
    pub(super) to_kernels: u64,
    /// Of them, those that they did not take.
    pub(super) refused: u64,
}

/// An address that came or went.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Change {
    time_s: f64,
    /// Number of the host.
    host: u32,
    address: Ipv6Addr,
    usable: bool,
}

impl Row for Change {
    const BYTES: usize = 8 + 4 + 16 + 1;

    fn put(self, to: &mut Vec<u8>) {
        self.time_s.put(to);
        self.host.put(to);
        self.address.put(to);
        self.usable.put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        Self {
            time_s: Row::read(from),
            host: Row::read(from),
            address: Row::read(from),
            usable: Row::read(from),
        }
    }
}

/// What is left of it at the end.
pub(super) struct Carried<'a> {
    pub(super) network: Realtime<'a>,
    pub(super) lateness: Lateness,
    pub(super) counters: Counters,
    pub(super) changes: Vec<Change>,
    pub(super) proxies: Proxies,
}

/// The network at work.
pub(super) struct Emulator<'a> {
    network: Realtime<'a>,
    hosts: Vec<Host>,
    proxies: Proxies,
    clock: Clock,
    /// The zero of the run.
    begin: Instant,
    lateness: Lateness,
    /// Of this loop, in the time of the run.
    pulse: Pulse,
    counters: Counters,
    changes: Rows<Change>,
    /// Of each host, how many addresses have become usable.
    addresses: &'a [AtomicU32],
}

impl<'a> Emulator<'a> {
    /// The network between the kernels of `hosts`, whose run begins at `begin` of `clock`; rows of its result go to `spill`.
    pub(super) fn new(
        mut network: Realtime<'a>,
        (hosts, proxies): (Vec<Host>, Proxies),
        (clock, begin): (Clock, Instant),
        addresses: &'a [AtomicU32],
        spill: &Spill,
    ) -> Self {
        let mut changes = Rows::default();
        network.keep_rows_in(spill);
        changes.keep_in(spill);
        Self {
            network,
            hosts,
            proxies,
            clock,
            begin,
            lateness: Lateness::default(),
            pulse: Pulse::new(Instant::ZERO),
            counters: Counters::default(),
            changes,
            addresses,
        }
    }

    /// What the TCP of each host's kernel has counted.
    pub(super) fn tcp_counters(&self) -> anyhow::Result<Vec<BTreeMap<String, u64>>> {
        let each = self.hosts.iter().map(Host::tcp_counters);
        each.collect::<io::Result<_>>()
            .context("counters of a network namespace")
    }

    /// The hosts go, with their namespaces; the network is left, and how its packets fared.
    pub(super) fn end(self) -> Carried<'a> {
        Carried {
            network: self.network,
            lateness: self.lateness,
            counters: self.counters,
            changes: self.changes.iter().collect(),
            proxies: self.proxies,
        }
    }

    /// Time of the run.
    fn now(&self) -> Instant {
        Instant::ZERO + self.clock.now().since(self.begin)
    }

    /// Time of the run, as a beat of the loop.
    fn beat(&mut self) -> Instant {
        let now = self.now();
        self.lateness.note_stall(self.pulse.beat(now));
        now
    }

    /// Carries packets until `end`, or until it is `over` before, or it is asked to stop. Gives when it ended.
    pub(super) fn carry(
        &mut self,
        end: Instant,
        over: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> anyhow::Result<Instant> {
        let mut buffer = vec![0; LONGEST_PACKET];
        let mut written = Instant::ZERO;
        self.wait_for_begin(&mut buffer)?;
        // a packet that came between the beginning and now has gone nowhere
        let begun = self.beat();
        self.lateness.note_wait(begun, begun.since(Instant::ZERO));
        if begun >= end {
            self.lateness.note_missed();
        }
        loop {
            let now = self.beat();
            self.network.handle_timeout(now.min(end));
            self.proxies.work(&mut self.network, now.min(end));
            self.drain()?;
            if now >= end || over.load(Ordering::Relaxed) || stop::asked() {
                return Ok(now.min(end));
            }
            if now.since(written) >= WRITES_EVERY {
                written = now;
                self.network.give(sink).context("what is recorded")?;
            }
            let next = self.network.poll_timeout().unwrap_or(end).min(end);
            let next = next.min(now + WRITES_EVERY);
            self.beat();
            self.pulse.waits_until(next);
            let (ready, places) = self.wait_until(next)?;
            let read = self.beat();
            let waited = self.pulse.behind();
            self.receive(&ready, &mut buffer)?;
            for place in places {
                self.lateness.note_wait(read, waited);
                self.proxies.handle_ready(place);
            }
        }
    }

    /// Waits for packets of the kernels, and for sockets of the proxies: which are ready.
    fn wait_until(&self, next: Instant) -> anyhow::Result<(Vec<bool>, Vec<Place>)> {
        let tuns = self.hosts.iter().flat_map(Host::tuns);
        let mut descriptors: Vec<_> = tuns.map(|tun| (tun.as_fd(), PollFlags::POLLIN)).collect();
        let tuns = descriptors.len();
        let wanted = self.proxies.wanted();
        descriptors.extend(wanted.iter().map(|(_, socket, flags)| (*socket, *flags)));
        let mut ready = wait_for(&descriptors, Some(next.since(self.now())))?;
        let places = wanted.iter().zip(&ready[tuns..]);
        let places = places.filter(|(_, ready)| **ready).map(|((place, ..), _)| *place);
        let places = places.collect();
        ready.truncate(tuns);
        Ok((ready, places))
    }

    /// What the kernels send before the run begins goes nowhere.
    fn wait_for_begin(&mut self, buffer: &mut [u8]) -> anyhow::Result<()> {
        while self.clock.now() < self.begin && !stop::asked() {
            wait(&[], Some(self.begin.since(self.clock.now())))?;
        }
        for tun in self.hosts.iter().flat_map(Host::tuns) {
            while tun.receive(buffer).context("TUN device")?.is_some() {}
        }
        Ok(())
    }

    /// Takes packets of the kernels. What falls due meanwhile goes out before the next is looked at.
    fn receive(&mut self, ready: &[bool], buffer: &mut [u8]) -> anyhow::Result<()> {
        let mut ready = ready.iter();
        let mut all_read = true;
        self.pulse.begins_to_read();
        for host in 0..self.hosts.len() {
            for device in 0..self.hosts[host].tuns().len() {
                if ready.next() != Some(&true) {
                    continue;
                }
                for received in 1..=RECEIVES_PER_TURN {
                    let tun = &self.hosts[host].tuns()[device];
                    let Some(length) = tun.receive(buffer).context("TUN device")? else {
                        break;
                    };
                    let bytes = Bytes::copy_from_slice(&buffer[..length]);
                    self.counters.from_kernels += 1;
                    all_read &= received < RECEIVES_PER_TURN;
                    let now = self.beat();
                    self.lateness.note_wait(now, self.pulse.behind());
                    let taken =
                        self.network
                            .handle_kernel(now, host as u32, InterfaceId(device as u8), &bytes);
                    self.counters.malformed += u64::from(taken.is_err());
                    self.drain()?;
                }
            }
        }
        if all_read {
            self.pulse.has_read_all();
        }
        Ok(())
    }

    /// What is there for the kernels goes to them.
    fn drain(&mut self) -> anyhow::Result<()> {
        while let Some((number, change)) = self.network.poll_change() {
            let host = number as usize;
            let (local, usable) = match change {
                KernelChange::AddressReady(local) => (local, true),
                KernelChange::AddressLost(local) => (local, false),
                KernelChange::AddressDeprecated(local) => {
                    self.hosts[host].address_deprecated(local).context("ip")?;
                    continue;
                }
            };
            self.hosts[host].address(local, usable).context("ip")?;
            self.addresses[host].fetch_add(u32::from(usable), Ordering::Relaxed);
            self.changes.push(Change {
                time_s: self.now().as_secs_f64(),
                host: number,
                address: local.address,
                usable,
            });
        }
        while let Some(late) = self.network.poll_lateness() {
            self.lateness.note(self.now(), late);
        }
        while let Some(delivery) = self.network.poll_delivery() {
            let Some(tun) = self.hosts[delivery.host as usize].tun(delivery.interface) else {
                continue;
            };
            let bytes = bytes_of(&delivery.packet);
            self.counters.to_kernels += 1;
            if !tun.send(&bytes).context("TUN device")? {
                self.counters.refused += 1;
            }
            let now = self.now();
            self.lateness.note(now, now.since(delivery.due));
        }
        Ok(())
    }
}

/// A packet as it goes to the kernel.
fn bytes_of(packet: &Packet) -> Vec<u8> {
    debug_assert!(
        !matches!(&packet.payload, Payload::Raw(raw) if raw.segment_size.is_some()),
        "devices without offloads send no super-packets"
    );
    packet.to_vec()
}
