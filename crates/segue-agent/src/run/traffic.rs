//! The packets, on both sides of the stack. Each passes one place on its way: [`from_kernel`](Running::take_from_kernel) and
//! [`to_kernel`](Device::send) on the applications' side, [`from_port`](Running::take_from_port) and
//! [`drain`](Running::drain)'s two on the networks'.

use super::Running;
use super::capture::Place;
use crate::kernel::{Routed, offload_of};
use anyhow::Context as _;
use segue_agent::fast_path::Seen;
use segue_live::{Buffers, Offload, SuperTun};
use segue_proto::InterfaceId;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use tracing::warn;

/// Packets of one descriptor before the others have their turn.
const RECEIVES_PER_TURN: usize = 64;

/// The kernel's two ends: its device, and its routes.
pub(super) struct Device {
    tun: SuperTun,
    routed: Routed,
    /// Packets that the kernel did not take from the device.
    refused: u64,
    /// For the headers of a packet.
    head: Vec<u8>,
}

impl Device {
    /// Makes the device.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn open(name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            tun: SuperTun::open(name)?,
            routed: Routed::open().context("raw socket")?,
            refused: 0,
            head: Vec::new(),
        })
    }

    /// Packets that the device and the routes did not take, by what `status` calls that.
    pub const fn refused(&self) -> [(&'static str, u64); 2] {
        [
            // Packets for applications that the kernel did not take from the device.
            ("refused_by_device", self.refused),
            // Packets of a home agent or correspondent that the kernel's routes did not take.
            ("refused_by_routes", self.routed.refused()),
        ]
    }

    /// What there is to wait for.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }

    /// Has the kernel receive a packet.
    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        let taken = match &packet.payload {
            Payload::Raw(raw) => {
                self.head.clear();
                packet.emit_headers(&mut self.head);
                let offload = offload_of(packet, self.head.len() as u16);
                self.tun.send(offload, [&self.head, &raw.bytes])?
            }
            _ => self.tun.send(Offload::default(), [&packet.to_vec(), &[]])?,
        };
        self.refused += u64::from(!taken);
        Ok(())
    }
}

impl Running {
    /// What the kernel sends to the device.
    pub(super) fn take_from_kernel(&mut self) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let now = self.clock.now();
            let received = self.device.tun.receive(&mut self.buffers);
            let Some((offload, packet)) = received.context("TUN device")? else {
                self.note_drained(self.holdings.device(), now);
                return Ok(());
            };
            self.trace_bytes(Place::Device, true, &packet, offload);
            let seen = self.fast_path.as_ref().and_then(|_| Seen::sent(&packet));
            self.stack
                .handle_kernel(now, packet, state_of(offload), offload.segment_size);
            self.drain()?;
            if let Some(seen) = seen {
                self.offer(self.clock.now(), seen);
            }
        }
        Ok(())
    }

    /// What is the agent's of what arrives at the interface at a place.
    pub(super) fn take_from_port(&mut self, number: usize) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let now = self.clock.now();
            let received = self.interfaces.receive(number, &mut self.buffers)?;
            let Some((offload, packet)) = received else {
                if let Some(index) = self.interfaces.port_index(number) {
                    self.note_drained(index, now);
                }
                return Ok(());
            };
            let (state, segment_size) = (state_of(offload), offload.segment_size);
            let interface = InterfaceId(number as u8);
            self.trace_bytes(Place::Interface(interface), false, &packet, offload);
            self.stack
                .handle_wire(now, interface, packet, state, segment_size);
            self.drain()?;
        }
        Ok(())
    }

    /// What the stack has to say goes to where it belongs.
    pub(super) fn drain(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        if let Some(names) = &mut self.names {
            names.serve(now, &mut self.stack);
        }
        while let Some(packet) = self.stack.poll_kernel() {
            self.trace(Place::Device, false, &packet);
            self.device.send(&packet).context("TUN device")?;
            if self.fast_path.is_some()
                && let Some(seen) = Seen::received(&packet)
            {
                self.offer(self.clock.now(), seen);
            }
            give_back(&mut self.buffers, packet);
        }
        while let Some(transmit) = self.stack.poll_wire() {
            self.trace(Place::Interface(transmit.interface), true, &transmit.packet);
            self.interfaces.send(now, &transmit)?;
            give_back(&mut self.buffers, transmit.packet);
        }
        while let Some(packet) = self.stack.poll_routed() {
            self.trace(Place::Routes, true, &packet);
            self.device.routed.send(&packet).context("raw socket")?;
        }
        if self.stack.take_change()
            && let Err(error) = self.holdings.set_routes(self.stack.role())
        {
            warn!(%error, "not all routes to {} are as they are to be", self.record.device());
        }
        while let Some(event) = self.stack.poll_event() {
            self.note(now, &event);
        }
        Ok(())
    }
}

/// The memory of a packet that is on its way is used again.
fn give_back(buffers: &mut Buffers, packet: Packet) {
    if let Payload::Raw(raw) = packet.payload {
        buffers.give_back(raw.bytes);
    }
}

pub(super) fn state_of(offload: Offload) -> ChecksumState {
    if offload.partial_checksum.is_some() {
        ChecksumState::Partial
    } else {
        ChecksumState::Complete
    }
}
