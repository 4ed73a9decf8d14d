//! Setting up, exchanging data and tearing down, as packet traces.

mod common;

use common::*;
use segue_proto::sctp::{Config, Event, Profile, SendError};
use segue_wire::Data;
use segue_wire::sctp::{Chunk, ErrorCause};

#[test]
fn four_way_handshake_data_and_shutdown() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    net.connect();
    net.run_for(ms(100));
    assert_eq!(
        net.trace(),
        ["A INIT", "B INIT-ACK", "A COOKIE-ECHO", "B COOKIE-ACK"]
    );
    assert!(net.has_event(A, &Event::Connected) && net.has_event(B, &Event::Connected));
    net.log.clear();
    net.send(A, 3, Data::Bytes("hello".into()));
    net.run_for(ms(300));
    assert_eq!(net.trace(), ["A DATA", "B SACK"]);
    assert_eq!(
        net.log[1].at - net.log[0].at,
        ms(210),
        "the SACK is delayed by 200 ms"
    );
    assert_eq!(net.messages[B][0].stream_id, 3);
    assert_eq!(net.messages[B][0].parts[..], [Data::Bytes("hello".into())]);
    assert!(net.has_event(A, &Event::SendersDry));
    net.log.clear();
    net.command(A, |a, now| a.shutdown(now));
    net.run_for(ms(100));
    assert_eq!(
        net.trace(),
        ["A SHUTDOWN", "B SHUTDOWN-ACK", "A SHUTDOWN-COMPLETE"]
    );
    assert!(net.has_event(A, &Event::Closed) && net.has_event(B, &Event::Closed));
    assert_eq!(net.command_after_close(), None);
}

impl Net {
    fn command_after_close(&mut self) -> Option<()> {
        let now = self.now;
        self.ends[A].handle_timeout(now);
        self.ends[A].association(self.ids[A]?).map(|_| ())
    }
}

#[test]
fn every_second_packet_is_acknowledged_at_once() {
    // RFC 9260 section 6.2
    let mut net = Net::established(Config::default(), [1, 1]);
    let chunk = net.association(A).max_message_in_one_chunk();
    assert_eq!(chunk, 1500 - 40 - 12 - 16);
    for i in 0..2 {
        net.send(A, 0, synthetic(u64::from(i * chunk), chunk));
    }
    net.run_for(ms(100));
    assert_eq!(net.trace(), ["A DATA", "A DATA", "B SACK"]);
}
