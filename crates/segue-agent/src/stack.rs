//! The shim between the TUN device and the interfaces of a machine whose kernel keeps everything else.
//!
//! ```text
//!   kernel's TCP     identity <-> identity
//!   TUN device       handle_kernel() | poll_kernel()
//!   ------------------------------------------------
//!   shim
//!   ------------------------------------------------
//!   interfaces       handle_wire() | poll_wire()
//! ```
//!
//! Addresses, routers and neighbours are the kernel's business. Packets are carried in bytes, without understanding
//! ([`Payload::Raw`]), as long as the kernel made them: up to 64 kB of TCP at once. The contract is that of every machine (see
//! [`segue_proto::contract`]).

use bytes::Bytes;
use segue_proto::address::AddressEvent;
use segue_proto::contract::Transmit;
use segue_proto::ilnp::Ilnp;
use segue_proto::shim::{Inbound, Shim as _, ShimEvent};
use segue_proto::{Instant, InterfaceId};
use segue_wire::Packet;
use segue_wire::raw::ChecksumState;
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// Packets, and those that went nowhere by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackCounters {
    /// Packets that the kernel sent; a super-packet is one.
    pub from_kernel: u64,
    /// Packets given to the kernel.
    pub to_kernel: u64,
    /// Packets received over interfaces.
    pub received: u64,
    /// Packets sent over interfaces.
    pub sent: u64,
    /// From the kernel, but not from the identity: its own multicast on the device, say.
    pub not_from_identity: u64,
    /// Up from the shim, but not for the identity: nobody has these addresses.
    pub not_for_identity: u64,
    /// What does not parse, bad checksums of ICMPv6 included.
    pub malformed: u64,
}

impl StackCounters {
    /// By name.
    #[must_use]
    pub fn list(&self) -> [(&'static str, u64); 7] {
        [
            ("from_kernel", self.from_kernel),
            ("to_kernel", self.to_kernel),
            ("received", self.received),
            ("sent", self.sent),
            ("not_from_identity", self.not_from_identity),
            ("not_for_identity", self.not_for_identity),
            ("malformed", self.malformed),
        ]
    }
}

/// The machine.
#[derive(Debug)]
pub struct Stack {
    shim: Ilnp,
    to_kernel: VecDeque<Packet>,
    to_wire: VecDeque<Transmit>,
    events: VecDeque<ShimEvent>,
    counters: StackCounters,
}

impl Stack {
    /// With a shim that has no locators yet.
    #[must_use]
    pub fn new(shim: Ilnp) -> Self {
        Self {
            shim,
            to_kernel: VecDeque::new(),
            to_wire: VecDeque::new(),
            events: VecDeque::new(),
            counters: StackCounters::default(),
        }
    }

    /// The shim.
    #[must_use]
    pub const fn shim(&self) -> &Ilnp {
        &self.shim
    }

    /// The address that applications see.
    #[must_use]
    pub fn identity(&self) -> Ipv6Addr {
        self.shim.identity()
    }

    /// Packets counted.
    #[must_use]
    pub const fn counters(&self) -> StackCounters {
        self.counters
    }

    /// Takes a packet that the kernel sent over the TUN device.
    pub fn handle_kernel(
        &mut self,
        now: Instant,
        bytes: &Bytes,
        checksum: ChecksumState,
        segment_size: Option<u16>,
    ) {
        self.counters.from_kernel += 1;
        let Ok(packet) = Packet::parse_raw(bytes, checksum, segment_size) else {
            self.counters.malformed += 1;
            return;
        };
        if packet.ip.source != self.shim.identity() || packet.ip.destination.is_multicast() {
            self.counters.not_from_identity += 1;
            return;
        }
        let transmit = self.shim.outbound(now, packet);
        self.send(transmit);
        self.settle(now);
    }

    /// Takes a packet for one of the agent's addresses that arrived over an interface.
    pub fn handle_wire(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        bytes: &Bytes,
        checksum: ChecksumState,
        segment_size: Option<u16>,
    ) {
        self.counters.received += 1;
        let Ok(packet) = Packet::parse_raw(bytes, checksum, segment_size) else {
            self.counters.malformed += 1;
            return;
        };
        if let Inbound::Up(packet) = self.shim.inbound(now, interface, packet) {
            if packet.ip.destination == self.shim.identity() {
                self.counters.to_kernel += 1;
                self.to_kernel.push_back(packet);
            } else {
                self.counters.not_for_identity += 1;
            }
        }
        self.settle(now);
    }

    /// A locator came, went, or is not to be used any more.
    pub fn handle_address(&mut self, now: Instant, event: &AddressEvent) {
        self.shim.handle_address(now, event);
        self.settle(now);
    }

    /// Another interface is to be used.
    pub fn prefer(&mut self, now: Instant, interface: InterfaceId) {
        self.shim.prefer(now, interface);
        self.settle(now);
    }

    /// Works off the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.shim.handle_timeout(now);
        self.settle(now);
    }

    /// The next packet for the kernel. Poll until `None` after every other call.
    pub fn poll_kernel(&mut self) -> Option<Packet> {
        self.to_kernel.pop_front()
    }

    /// The next packet for an interface. Poll until `None` after every other call.
    pub fn poll_wire(&mut self) -> Option<Transmit> {
        self.to_wire.pop_front()
    }

    /// The next event. Poll until `None` after every other call.
    pub fn poll_event(&mut self) -> Option<ShimEvent> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.shim.poll_timeout()
    }

    fn settle(&mut self, now: Instant) {
        loop {
            let mut quiet = true;
            while let Some(transmit) = self.shim.poll_transmit(now) {
                quiet = false;
                self.send(Some(transmit));
            }
            while let Some(event) = self.shim.poll_event() {
                quiet = false;
                // no directory yet: what is known of peers is in the shim's configuration
                if let ShimEvent::LookUp { peer } = event {
                    self.shim.handle_found(now, peer, &[]);
                }
                self.events.push_back(event);
            }
            if quiet {
                return;
            }
        }
    }

    fn send(&mut self, transmit: Option<Transmit>) {
        if let Some(transmit) = transmit {
            self.counters.sent += 1;
            self.to_wire.push_back(transmit);
        }
    }
}
