//! Packets for those who read along ([`crate::trace`]): a super-packet in its segments, with checksums that are whole, as it is or
//! was on the network.

use super::Running;
use crate::control::{Response, line_of};
use crate::kernel::whole;
use crate::trace::{MOST_READERS, Passing, TraceRequest};
use bytes::Bytes;
use segue_live::Offload;
use segue_proto::{Instant, InterfaceId};
use segue_wire::Packet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

/// Where a packet passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The device, between applications and the shim.
    Device,
    /// The kernel's own routes, whatever interface they lead to.
    Routes,
    Interface(InterfaceId),
}

impl Place {
    /// As the answer to the request numbers them.
    const fn number(self) -> u8 {
        match self {
            Self::Device => 0,
            Self::Routes => 1,
            Self::Interface(interface) => interface.0.saturating_add(2),
        }
    }
}

impl Running {
    /// Somebody reads along from now on.
    pub(super) fn begin_trace(&mut self, now: Instant, stream: UnixStream, request: TraceRequest) {
        if self.traces.is_full() {
            let message = format!("trace: {MOST_READERS} read already: expected no more");
            // the agent has nothing more to say to him
            let _ = (&stream).write(&line_of(Response::Error(message)));
            return;
        }
        let own = [self.record.device(), "routes"].into_iter();
        let names = own.chain(self.interfaces.names()).map(str::to_owned);
        let head = line_of(Response::Trace {
            interfaces: names.collect(),
        });
        self.traces.begin(now, stream, request, head);
    }

    /// A packet in bytes, as the kernel hands it over. Nothing is done unless somebody reads.
    pub(super) fn trace_bytes(&mut self, place: Place, sent: bool, bytes: &Bytes, offload: Offload) {
        if self.traces.is_idle() {
            return;
        }
        let state = super::traffic::state_of(offload);
        match Packet::parse_raw(bytes, state, offload.segment_size) {
            Ok(packet) => self.trace(place, sent, &packet),
            Err(_) => self.trace_whole(place, sent, bytes),
        }
    }

    /// A packet. Nothing is done unless somebody reads.
    pub(super) fn trace(&mut self, place: Place, sent: bool, packet: &Packet) {
        if self.traces.is_idle() {
            return;
        }
        for bytes in whole(packet) {
            self.trace_whole(place, sent, &bytes);
        }
    }

    fn trace_whole(&mut self, place: Place, sent: bool, bytes: &[u8]) {
        self.traces.take(&Passing {
            interface: place.number(),
            sent,
            time_ns: self.clock.unix_ns(self.clock.now()),
            bytes,
        });
    }
}
