//! Requests for objects of any size over one connection, and who answers them.
//!
//! A request says how long the answer is to be, and the server sends so many bytes: sizes are the client's to draw, and the
//! server needs to know nothing else. Requests may be sent one behind the other; they are answered in their order.
//!
//! ```text
//!   0                   1                   2                   3
//!   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  |                       "SEGU", 0x53454755                      |
//!  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  |              Length of the request, with this header          |
//!  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  |                                                               |
//!  |                     Length of the answer                      |
//!  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!  \        Synthetic bytes, from the beginning of the sequence    \
//!  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use super::account::{Account, Outgoing};
use super::connection::Connection;
use crate::time::Instant;
use bytes::Bytes;
use segue_wire::Data;
use std::collections::VecDeque;

/// Bytes of a request, the least and the most: its header, and what a server keeps until a request is whole.
pub const REQUEST: core::ops::RangeInclusive<u64> = HEADER as u64..=65_536;

/// The requests of a client on the connection at hand.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Those that wait for room in the send buffer.
    waiting: VecDeque<Bytes>,
    /// Where the answers to all others end in what is received.
    ends: VecDeque<u64>,
    /// Where the last of them does.
    end: u64,
}

/// Who answers: requests as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct ObjectServer {
    arrived: Vec<u8>,
    /// What arrived was no request: nothing is answered any more.
    is_confused: bool,
}

impl Requests {
    /// Asks for an object, by a request of so many bytes.
    pub fn ask(&mut self, request: u64, answer: u64) {
        let mut bytes = Vec::with_capacity(request as usize);
        bytes.extend(MAGIC.to_be_bytes());
        bytes.extend((request as u32).to_be_bytes());
        bytes.extend(answer.to_be_bytes());
        let len = (request as u32).saturating_sub(HEADER as u32);
        Data::Synthetic { offset: 0, len }.emit(&mut bytes);
        self.waiting.push_back(bytes.into());
        self.end = self.end.saturating_add(answer);
        self.ends.push_back(self.end);
    }

    /// Sends what there is room for.
    pub fn flush(&mut self, now: Instant, connection: &mut impl Connection, account: &mut Account) {
        while let Some(request) = self.waiting.front() {
            let len = request.len() as u64;
            if connection.send(now, Data::Bytes(request.clone())).is_err() {
                return;
            }
            self.waiting.pop_front();
            account.position.sent += len;
            account.stats.bytes_sent += len;
            account.stats.messages_sent += 1;
        }
    }

    /// Takes the answers off that are whole once so many bytes have been received. Gives how many there were.
    pub fn answered(&mut self, received: u64) -> usize {
        let whole = self.ends.partition_point(|end| *end <= received);
        self.ends.drain(..whole);
        whole
    }

    /// Whether nothing is waited for.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl ObjectServer {
    /// A part of what clients send has arrived. Adds the answers to requests that are whole to what is to be sent.
    pub fn on_received(&mut self, part: &Data, account: &mut Account, outgoing: &mut Outgoing) {
        if self.is_confused {
            return;
        }
        part.emit(&mut self.arrived);
        let mut done = 0;
        while let Some(header) = self.arrived[done..].first_chunk::<HEADER>() {
            let [magic, len, high, low] = words(header);
            if magic != MAGIC || !REQUEST.contains(&u64::from(len)) {
                account.stats.messages_corrupt += 1;
                self.is_confused = true;
                break;
            }
            let Some(request) = self.arrived.get(done..done + len as usize) else {
                break;
            };
            let rest = Bytes::copy_from_slice(&request[HEADER..]);
            account.stats.messages_corrupt += u64::from(!Data::Bytes(rest).is_synthetic_at(0));
            account.stats.responses += 1;
            outgoing.add(u64::from(high) << 32 | u64::from(low));
            done += len as usize;
        }
        self.arrived.drain(..done);
    }
}

fn words(header: &[u8; HEADER]) -> [u32; 4] {
    let word = |n: usize| {
        let bytes = header[4 * n..].first_chunk().copied();
        u32::from_be_bytes(bytes.unwrap_or_default())
    };
    [word(0), word(1), word(2), word(3)]
}

const MAGIC: u32 = 0x5345_4755;
const HEADER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::SendRefused;

    /// Takes so many messages.
    struct Room(usize, Vec<Data>);

    impl Connection for Room {
        fn send(&mut self, _now: Instant, data: Data) -> Result<(), SendRefused> {
            self.0 = self.0.checked_sub(1).ok_or(SendRefused::Full)?;
            self.1.push(data);
            Ok(())
        }
        fn max_message(&self) -> u32 {
            1000
        }
        fn recv(&mut self, _take: impl FnOnce(&[Data], bool)) -> bool {
            false
        }
        fn close(&mut self, _now: Instant) {}
    }

    /// What a client sends that asks for these objects, byte by byte.
    fn sent(asked: &[(u64, u64)], room: usize) -> (Requests, Vec<u8>) {
        let mut requests = Requests::default();
        for (request, answer) in asked {
            requests.ask(*request, *answer);
        }
        let mut connection = Room(room, Vec::new());
        requests.flush(Instant::ZERO, &mut connection, &mut Account::default());
        let mut bytes = Vec::new();
        connection.1.iter().for_each(|data| data.emit(&mut bytes));
        (requests, bytes)
    }

    #[test]
    fn a_server_answers_what_it_is_asked_for_however_requests_arrive() {
        let (_, bytes) = sent(&[(350, 10_710), (16, 5_000_000_000), (20, 0)], 9);
        assert_eq!(bytes.len(), 386);
        for piece in [1, 7, 350, 386] {
            let (mut server, mut account) = (ObjectServer::default(), Account::default());
            let mut outgoing = Outgoing::default();
            for piece in bytes.chunks(piece) {
                let data = Data::Bytes(Bytes::copy_from_slice(piece));
                server.on_received(&data, &mut account, &mut outgoing);
            }
            assert_eq!(outgoing.left, Some(5_000_010_710), "{piece}");
            assert_eq!((account.stats.responses, account.stats.messages_corrupt), (3, 0));
        }
    }

    #[test]
    fn what_is_no_request_is_counted_and_not_answered() {
        let (_, mut bytes) = sent(&[(50, 1000), (50, 1000)], 9);
        bytes[30] ^= 1;
        bytes[51] ^= 1;
        let (mut server, mut account) = (ObjectServer::default(), Account::default());
        let mut outgoing = Outgoing::default();
        server.on_received(&Data::Bytes(bytes.into()), &mut account, &mut outgoing);
        assert_eq!((outgoing.left, account.stats.messages_corrupt), (Some(1000), 2));
        let (_, more) = sent(&[(50, 1000)], 9);
        server.on_received(&Data::Bytes(more.into()), &mut account, &mut outgoing);
        assert_eq!(outgoing.left, Some(1000));
    }

    #[test]
    fn more_than_can_be_counted_may_be_asked_for() {
        let (_, bytes) = sent(&[(16, u64::MAX), (16, 1000), (16, u64::MAX)], 9);
        let mut outgoing = Outgoing::default();
        let data = Data::Bytes(bytes.into());
        ObjectServer::default().on_received(&data, &mut Account::default(), &mut outgoing);
        assert_eq!(outgoing.left, Some(u64::MAX));
    }

    #[test]
    fn requests_wait_for_room_and_answers_are_told_apart_by_their_length() {
        let (mut requests, bytes) = sent(&[(100, 1000), (100, 0), (100, 500)], 1);
        assert_eq!(bytes.len(), 100);
        requests.flush(Instant::ZERO, &mut Room(9, Vec::new()), &mut Account::default());
        assert_eq!((requests.answered(999), requests.answered(1000)), (0, 2));
        assert!(!requests.is_empty());
        assert_eq!((requests.answered(1500), requests.is_empty()), (1, true));
    }
}
