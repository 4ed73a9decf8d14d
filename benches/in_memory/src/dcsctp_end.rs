//! dcsctp.

use crate::{End, MESSAGE, PACKET, RECEIVE_BUFFER, SEND_BUFFER};
use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketState, SocketTime, StreamId,
};
use std::time::Duration;

const STREAM: StreamId = StreamId(0);

struct Dcsctp(Box<dyn DcSctpSocket>);

impl Dcsctp {
    fn advance(&mut self, now: u64) {
        self.0
            .advance_time(SocketTime::zero() + Duration::from_nanos(now));
    }
}

impl End for Dcsctp {
    fn connect(&mut self, now: u64) {
        self.advance(now);
        self.0.connect();
    }

    fn is_connected(&self) -> bool {
        self.0.state() == SocketState::Connected
    }

    fn has_room(&mut self) -> bool {
        self.0.buffered_amount(STREAM) + MESSAGE <= SEND_BUFFER
    }

    fn send(&mut self, now: u64, message: Vec<u8>) {
        self.advance(now);
        self.0
            .send(Message::new(STREAM, PpId(53), message), &SendOptions::default())
            .expect("there is room");
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) {
        while let Some(message) = self.0.get_next_message() {
            take(&message.payload);
        }
    }

    fn handle(&mut self, now: u64, packet: Bytes) {
        self.advance(now);
        self.0.handle_input(&packet);
    }

    fn transmit(&mut self, _: u64, put: &mut dyn FnMut(Bytes)) {
        while let Some(event) = self.0.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => put(packet.into()),
                SocketEvent::OnAborted(kind, reason) => panic!("aborted: {kind:?} {reason}"),
                _ => {}
            }
        }
    }

    fn timeout(&mut self) -> Option<u64> {
        let at = self.0.poll_timeout();
        (at != SocketTime::infinite_future()).then(|| (at - SocketTime::zero()).as_nanos() as u64)
    }

    fn handle_timeout(&mut self, now: u64) {
        self.advance(now);
    }
}

/// A client and a server.
pub fn pair() -> [Box<dyn End>; 2] {
    ["client", "server"].map(|name| {
        let options = Options {
            mtu: PACKET,
            max_receiver_window_buffer_size: RECEIVE_BUFFER as usize,
            max_send_buffer_size: SEND_BUFFER,
            per_stream_send_queue_limit: SEND_BUFFER,
            ..Options::default()
        };
        Box::new(Dcsctp(dcsctp::new_socket(name, &options))) as Box<dyn End>
    })
}
