//! What answers a packet. Every chunk that answers one of the packet at hand goes through here, so that a packet is
//! answered by one packet and not by one per chunk; and an address from which nobody has proven to hear us gets no
//! longer packet than came from it. Otherwise a peer that claims another's address would make of a packet many, or a
//! long one of a short one. What does not fit is not sent: whoever asked asks again.

use bytes::Bytes;
use core::hint::cold_path;
use core::net::Ipv6Addr;
use segue_wire::sctp::chunk_type::{ERROR, HEARTBEAT_ACK};
use segue_wire::sctp::{COMMON_HEADER_LEN, Chunk, ErrorCause};
use smallvec::SmallVec;

/// Answers to the packet at hand.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// The packet at hand, while its chunks are worked off.
    packet: Option<Asking>,
    answers: Answers,
}

/// A packet that may be answered.
#[derive(Clone, Copy, Debug)]
struct Asking {
    from: Ipv6Addr,
    /// Bytes of SCTP that may still go there for it, if they are limited.
    limit: Option<usize>,
}

#[derive(Debug, Default)]
struct Answers {
    heartbeat_acks: Vec<Bytes>,
    causes: Vec<ErrorCause>,
    chunks: Vec<Chunk>,
    /// Control packets that the answer goes behind, if not behind all.
    behind: Option<usize>,
}

/// The answers to a packet, all of them.
#[derive(Debug)]
pub(super) struct Reply {
    packet: Asking,
    answers: Answers,
}

impl Replies {
    /// A packet arrived from `from`, which may be answered with `limit` bytes of SCTP, if they are limited.
    pub(super) fn begin(&mut self, from: Ipv6Addr, limit: Option<usize>) {
        self.packet = Some(Asking { from, limit });
    }

    /// Reports an error of the packet at hand: in one ERROR chunk with all others of that packet.
    pub(super) fn report(&mut self, cause: ErrorCause) {
        self.answers.causes.push(cause);
    }

    /// Answers a HEARTBEAT.
    pub(super) fn acknowledge_heartbeat(&mut self, info: Bytes) {
        self.answers.heartbeat_acks.push(info);
    }

    /// Answers with a chunk, before whatever else the chunk that it answers brings about: `behind` are the control packets
    /// that there were.
    pub(super) fn answer(&mut self, behind: usize, chunk: Chunk) {
        self.answers.behind.get_or_insert(behind);
        self.answers.chunks.push(chunk);
    }

    /// The packet at hand is refused whole.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether a HEARTBEAT may go to an address because that is where the packet at hand came from, and leaves room for
    /// an ASCONF-ACK, which needs `auth_len` bytes of AUTH; if so, it has taken its part of what may go there.
    pub(super) fn spend_on_heartbeat(&mut self, to: Ipv6Addr, auth_len: u32) -> bool {
        let answer = COMMON_HEADER_LEN + ASCONF_ACK_HEADER + auth_len as usize;
        let Some(packet) = self.packet.as_mut().filter(|p| p.from == to) else {
            return false;
        };
        match &mut packet.limit {
            None => true,
            Some(limit) if *limit >= HEARTBEAT_PACKET + answer => {
                *limit -= HEARTBEAT_PACKET;
                true
            }
            Some(_) => false,
        }
    }

    /// The packet at hand is worked off: what answers it, if anything does. Whatever comes later answers nothing.
    #[inline]
    pub(super) fn end(&mut self) -> Option<Reply> {
        let packet = self.packet.take();
        if self.answers.is_empty() {
            return None;
        }
        cold_path();
        let answers = core::mem::take(&mut self.answers);
        packet.map(|packet| Reply { packet, answers })
    }
}

impl Answers {
    fn is_empty(&self) -> bool {
        self.heartbeat_acks.is_empty() && self.causes.is_empty() && self.chunks.is_empty()
    }
}

impl Reply {
    /// Where it goes.
    pub(super) fn destination(&self) -> Ipv6Addr {
        self.packet.from
    }

    /// Whether it answers a HEARTBEAT.
    pub(super) fn acknowledges_heartbeat(&self) -> bool {
        !self.answers.heartbeat_acks.is_empty()
    }

    /// Control packets that it goes behind, if not behind all.
    pub(super) fn behind(&self) -> Option<usize> {
        self.answers.behind
    }

    /// Types of the chunks that there are to send.
    pub(super) fn chunk_types(&self) -> SmallVec<[u8; 4]> {
        let heartbeat_ack = self.acknowledges_heartbeat().then_some(HEARTBEAT_ACK);
        let error = (!self.answers.causes.is_empty()).then_some(ERROR);
        let others = self.answers.chunks.iter().map(Chunk::chunk_type);
        heartbeat_ack.into_iter().chain(error).chain(others).collect()
    }

    /// What fits a packet of `mtu` bytes, `auth_len` of which an AUTH chunk takes, and what may go there at all: the chunks that
    /// were asked for, HEARTBEAT ACKs, and an ERROR with as many causes as fit (RFC 9260 section 3.3.10 asks for none
    /// of them to be repeated).
    pub(super) fn into_chunks(self, mtu: u32, auth_len: u32) -> SmallVec<[Chunk; 1]> {
        let limit = self.packet.limit.unwrap_or(usize::MAX);
        let mut room = Room {
            chunks: SmallVec::new(),
            mtu: (mtu.saturating_sub(auth_len) as usize).saturating_sub(IPV6_HEADER_LEN + COMMON_HEADER_LEN),
            limit: limit.saturating_sub(COMMON_HEADER_LEN + auth_len as usize),
        };
        for chunk in self.answers.chunks {
            room.push(chunk);
        }
        for info in self.answers.heartbeat_acks {
            room.push(Chunk::HeartbeatAck(info));
        }
        let mut causes: Vec<ErrorCause> = Vec::new();
        let mut left = room.mtu.min(room.limit).saturating_sub(4);
        for cause in self.answers.causes {
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
        chunks
    }
}

const IPV6_HEADER_LEN: usize = 40;
/// Length of a HEARTBEAT of ours with its IPv6 header, bytes.
const HEARTBEAT_PACKET: usize = IPV6_HEADER_LEN + COMMON_HEADER_LEN + 4 + 4 + 24;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::testing::address;
    use segue_wire::AsconfSerial;
    use segue_wire::sctp::AsconfAck;

    const MTU: u32 = 1500;

    fn begun(limit: Option<usize>) -> Replies {
        let mut replies = Replies::default();
        replies.begin(address(0), limit);
        replies
    }

    fn chunks(replies: &mut Replies) -> Vec<Chunk> {
        let reply = replies.end();
        assert!(replies.end().is_none(), "a packet is answered once");
        assert!(!replies.spend_on_heartbeat(address(0), 0), "no packet is at hand");
        reply.map_or_else(Vec::new, |r| r.into_chunks(MTU, 0).into_vec())
    }

    fn error(id: u16) -> ErrorCause {
        ErrorCause::UnsupportedHmacIdentifier(id)
    }

    fn asconf_ack(serial: u32) -> Chunk {
        Chunk::AsconfAck(Box::new(AsconfAck {
            serial_number: AsconfSerial(serial),
            responses: Vec::new(),
        }))
    }

    #[test]
    fn an_answer_is_no_longer_than_what_it_answers_may_have() {
        // common header, chunk header, parameter header, four bytes
        for (limit, answers) in [(23, 0), (24, 1), (35, 1), (36, 2)] {
            let mut replies = begun(Some(limit));
            for info in [b"abcd", b"abcd", b"efgh"] {
                replies.acknowledge_heartbeat(Bytes::from_static(info));
            }
            assert_eq!(chunks(&mut replies).len(), answers, "{limit}");
        }
    }

    #[test]
    fn one_error_chunk_has_every_cause_once_that_fits() {
        // common header, chunk header, and causes of eight bytes
        for (limit, fit) in [
            (Some(23), 0),
            (Some(24), 1),
            (Some(31), 1),
            (Some(32), 2),
            (None, 3),
        ] {
            let mut replies = begun(limit);
            for id in [1, 1, 2, 3] {
                replies.report(error(id));
            }
            let chunks = chunks(&mut replies);
            let causes = chunks.iter().map(|c| match c {
                Chunk::Error(causes) => causes.len(),
                other => panic!("{other:?}"),
            });
            assert_eq!(causes.sum::<usize>(), fit, "{limit:?}");
            assert_eq!(chunks.len(), usize::from(fit > 0));
        }
    }

    #[test]
    fn a_heartbeat_goes_for_an_answer_if_the_answer_to_an_asconf_still_fits() {
        // 84 bytes of HEARTBEAT with its headers, 12 of common header, 8 of ASCONF-ACK
        for (limit, times) in [(103, 0), (104, 1), (187, 1), (188, 2)] {
            let mut replies = begun(Some(limit));
            assert!(!replies.spend_on_heartbeat(address(5), 0));
            let taken = (0..3)
                .filter(|_| replies.spend_on_heartbeat(address(0), 0))
                .count();
            assert_eq!(taken, times, "{limit}");
        }
        assert!(
            !begun(Some(104)).spend_on_heartbeat(address(0), 1),
            "AUTH has no room"
        );
        assert!(begun(None).spend_on_heartbeat(address(0), 28));
    }

    #[test]
    fn a_reply_goes_back_behind_what_there_was_when_it_was_first_asked_for_with_the_error_in_front() {
        let mut replies = begun(None);
        replies.acknowledge_heartbeat(Bytes::from_static(b"info"));
        replies.answer(2, asconf_ack(7));
        replies.answer(5, asconf_ack(8));
        replies.report(error(1));
        let reply = replies.end().expect("there is something to say");
        assert_eq!((reply.destination(), reply.behind()), (address(0), Some(2)));
        assert!(reply.acknowledges_heartbeat());
        let types = |chunks: &[Chunk]| -> Vec<u8> { chunks.iter().map(Chunk::chunk_type).collect() };
        let chunks = reply.into_chunks(MTU, 0);
        assert_eq!(types(&chunks), [ERROR, 0x80, 0x80, HEARTBEAT_ACK]);
        // what waits behind nothing in particular waits behind all
        let mut replies = begun(None);
        replies.report(error(1));
        let reply = replies.end().expect("there is something to say");
        assert_eq!((reply.behind(), &reply.chunk_types()[..]), (None, &[ERROR][..]));
    }

    #[test]
    fn a_chunk_alone_may_be_longer_than_the_mtu_and_a_second_one_may_not() {
        let long = Bytes::from(vec![1; 1000]);
        let mut replies = begun(None);
        replies.acknowledge_heartbeat(long.clone());
        replies.acknowledge_heartbeat(Bytes::from(vec![2; 1000]));
        let reply = replies.end().expect("there is something to say");
        assert_eq!(reply.into_chunks(576, 0)[..], [Chunk::HeartbeatAck(long)]);
    }

    #[test]
    fn a_packet_that_is_refused_is_not_answered() {
        let mut replies = begun(None);
        replies.report(error(1));
        replies.acknowledge_heartbeat(Bytes::from_static(b"info"));
        replies.forget();
        assert!(replies.end().is_none());
        // what it asked for does not answer the next
        replies.begin(address(1), None);
        assert!(replies.end().is_none());
    }
}
