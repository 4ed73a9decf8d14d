//! Packets on their way into the socket: those of one length that go one way are handed over with one call.

use crate::socket::{MAX_BATCH, MAX_SEGMENTS, PacketSocket, Route};
use segue_wire::sctp::SctpPacket;
use std::io;

/// Packets that wait for the next flush.
pub(crate) struct Outbox {
    route: Option<Route>,
    bytes: Vec<u8>,
    /// Length of the first, and of every other but the last.
    segment: usize,
    count: usize,
    /// The last is shorter: nothing may follow it.
    closed: bool,
}

/// Packets that could not be sent.
#[derive(Default)]
pub(crate) struct Failed {
    pub batches: u64,
    pub error: Option<io::Error>,
}

impl Outbox {
    pub(crate) const fn new() -> Self {
        Self {
            route: None,
            bytes: Vec::new(),
            segment: 0,
            count: 0,
            closed: false,
        }
    }

    /// Adds a packet; what cannot go with it is sent first.
    pub(crate) fn push(
        &mut self,
        socket: &mut PacketSocket,
        route: Route,
        packet: &SctpPacket,
        failed: &mut Failed,
    ) {
        let len = packet.buffer_len();
        let fits = self.route == Some(route)
            && !self.closed
            && len <= self.segment
            && self.count < MAX_SEGMENTS
            && self.bytes.len() + len <= MAX_BATCH;
        if !fits {
            self.flush(socket, failed);
            self.route = Some(route);
            self.segment = len;
        }
        let start = self.bytes.len();
        packet.emit(&mut self.bytes);
        debug_assert_eq!(self.bytes.len() - start, len);
        self.closed = len < self.segment;
        self.count += 1;
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self, socket: &mut PacketSocket, failed: &mut Failed) {
        if let Some(route) = self.route.take()
            && let Err(e) = socket.send(&route, &self.bytes, self.segment)
        {
            failed.batches += 1;
            failed.error = Some(e);
        }
        self.bytes.clear();
        self.count = 0;
        self.closed = false;
    }
}
