//! What answers a packet. Every chunk that answers one of the packet at hand goes through here, so that a packet is
//! answered by one packet and not by one per chunk; and an address from which nobody has proven to hear us gets no
//! longer packet than came from it. Otherwise a peer that claims another's address would make of a packet many, or a
//! long one of a short one. What does not fit is not sent: whoever asked asks again.

use super::SackRoute;
use super::association::{Association, ControlPacket, PACKET_HEADERS, State};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::sctp::chunk_type::{ASCONF_ACK, ERROR, HEARTBEAT_ACK};
use segue_wire::sctp::{Chunk, ErrorCause, SctpPacket};
use smallvec::SmallVec;

/// SCTP common header, bytes.
const COMMON_HEADER: usize = 12;

/// Answers to the packet at hand.
pub(super) struct Replies {
    /// Where the packet at hand came from, and bytes that may still go there for it.
    from: Ipv6Addr,
    limit: usize,
    heartbeat_acks: Vec<Bytes>,
    causes: Vec<ErrorCause>,
    chunks: Vec<Chunk>,
    /// Control packets that the answer goes behind, if not behind all.
    behind: Option<usize>,
}

impl Default for Replies {
    fn default() -> Self {
        Self {
            from: Ipv6Addr::UNSPECIFIED,
            limit: 0,
            heartbeat_acks: Vec::new(),
            causes: Vec::new(),
            chunks: Vec::new(),
            behind: None,
        }
    }
}

impl Replies {
    fn is_empty(&self) -> bool {
        self.heartbeat_acks.is_empty() && self.causes.is_empty() && self.chunks.is_empty()
    }

    fn chunk_types(&self) -> SmallVec<[u8; 4]> {
        let heartbeat_ack = (!self.heartbeat_acks.is_empty()).then_some(HEARTBEAT_ACK);
        let error = (!self.causes.is_empty()).then_some(ERROR);
        let others = self.chunks.iter().map(Chunk::chunk_type);
        heartbeat_ack.into_iter().chain(error).chain(others).collect()
    }
}

/// Length of a HEARTBEAT of ours with its IPv6 header, bytes.
const HEARTBEAT_PACKET: usize = PACKET_HEADERS as usize + 4 + 4 + 24;
/// Length of an ASCONF-ACK without a word, bytes.
const ASCONF_ACK_HEADER: usize = 8;

/// Chunks of a packet, within two limits.
struct Room {
    chunks: SmallVec<[Chunk; 1]>,
    /// Left in the MTU; one chunk alone may be longer, and is fragmented.
    mtu: usize,
    /// Left of what may go to the address at all.
    limit: usize,
}

impl Room {
    fn push(&mut self, chunk: Chunk) {
        let len = chunk.buffer_len();
        if len <= self.limit && (len <= self.mtu || self.chunks.is_empty()) && !self.chunks.contains(&chunk) {
            self.limit -= len;
            self.mtu = self.mtu.saturating_sub(len);
            self.chunks.push(chunk);
        }
    }
}

impl Association {
    /// Reports an error of the packet at hand: in one ERROR chunk with all others of that packet.
    pub(super) fn report(&mut self, cause: ErrorCause) {
        self.replies.causes.push(cause);
    }

    /// Answers a HEARTBEAT.
    pub(super) fn reply_to_heartbeat(&mut self, info: Bytes) {
        self.replies.heartbeat_acks.push(info);
    }

    /// Answers with a chunk, before whatever else the chunk that it answers brings about: `behind` are the control packets
    /// that there were.
    pub(super) fn reply_with(&mut self, behind: usize, chunk: Chunk) {
        self.replies.behind.get_or_insert(behind);
        self.replies.chunks.push(chunk);
    }

    /// The packet at hand is refused whole.
    pub(super) fn forget_replies(&mut self) {
        self.replies = Replies::default();
    }

    /// Bytes of SCTP that a packet from an address may be answered with.
    pub(super) fn reply_limit(&self, from: Ipv6Addr, packet: &SctpPacket) -> usize {
        if self.has_confirmed_address(from) {
            usize::MAX
        } else {
            packet.buffer_len()
        }
    }

    /// A packet arrived from `from`; `limit` as [`reply_limit`](Self::reply_limit) gives it.
    pub(super) fn begin_replies(&mut self, from: Ipv6Addr, limit: usize) {
        self.replies.from = from;
        self.replies.limit = limit;
    }

    /// Whether a HEARTBEAT may go to an address because that is where the packet at hand came from, and leaves room for
    /// the answer to an ASCONF.
    pub(super) fn takes_heartbeat_for_reply(&mut self, to: Ipv6Addr) -> bool {
        let answer = COMMON_HEADER + ASCONF_ACK_HEADER + self.auth.overhead(&[ASCONF_ACK]) as usize;
        let fits = self.replies.from == to && self.replies.limit >= HEARTBEAT_PACKET + answer;
        if fits {
            self.replies.limit -= HEARTBEAT_PACKET;
        }
        fits
    }

    /// Sends what answers the packet at hand, which came to `to`: what was asked for, HEARTBEAT ACKs, and an ERROR with as
    /// many causes as fit (RFC 9260 section 3.3.10 asks for none of them to be repeated).
    pub(super) fn send_replies(&mut self, to: Ipv6Addr) {
        if self.replies.is_empty() {
            // whatever comes later answers nothing
            self.replies.limit = 0;
            return;
        }
        let replies = core::mem::take(&mut self.replies);
        if self.state == State::Closed {
            return;
        }
        // section 8.3: over the path that is probed, if so configured
        let back = self.config.sack_route == SackRoute::Arrival && !replies.heartbeat_acks.is_empty();
        let arrived = self
            .local
            .iter()
            .find(|l| l.address.address == to && l.is_source());
        let source = arrived.filter(|_| back).map(|l| l.address);
        let overhead = self.auth.overhead(&replies.chunk_types());
        let mut room = Room {
            chunks: SmallVec::new(),
            mtu: self.config.mtu.saturating_sub(PACKET_HEADERS + overhead) as usize,
            limit: replies.limit.saturating_sub(COMMON_HEADER + overhead as usize),
        };
        for chunk in replies.chunks {
            room.push(chunk);
        }
        for info in replies.heartbeat_acks {
            room.push(Chunk::HeartbeatAck(info));
        }
        let mut causes: Vec<ErrorCause> = Vec::new();
        let mut left = room.mtu.min(room.limit).saturating_sub(4);
        for cause in replies.causes {
            let len = cause.buffer_len().next_multiple_of(4);
            if len > left || causes.contains(&cause) {
                continue;
            }
            left -= len;
            causes.push(cause);
        }
        let mut chunks = room.chunks;
        if !causes.is_empty() {
            chunks.insert(0, Chunk::Error(causes));
        }
        if !chunks.is_empty() {
            let behind = replies.behind.unwrap_or(usize::MAX);
            let answer = ControlPacket {
                source,
                destination: replies.from,
                verification_tag: self.peer_tag,
                chunks,
            };
            self.out.send_behind(behind, answer);
        }
    }
}
