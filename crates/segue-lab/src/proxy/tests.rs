//! Two ends with an association between them that loses nothing, and what TCP would do by hand.

use super::*;
use bytes::Bytes;
use std::collections::BTreeMap;

const PORT: u16 = 9_001;
const STREAMS: u16 = 2;
const CHUNK: u32 = 1_000;

/// An end, and what its TCP was given.
struct Side {
    proxy: Proxy,
    /// By stream.
    written: BTreeMap<u16, Vec<u8>>,
    commands: Vec<Command>,
    /// Its program reads.
    reads: bool,
}

impl Side {
    fn new(role: Role) -> Self {
        Self {
            proxy: Proxy::new(role, STREAMS),
            written: BTreeMap::new(),
            commands: Vec::new(),
            reads: true,
        }
    }

    /// TCP does what it is told, and takes what there is.
    fn settle(&mut self) {
        loop {
            let commands: Vec<_> = std::iter::from_fn(|| self.proxy.poll_command()).collect();
            let any = !commands.is_empty();
            self.commands.extend(commands);
            let mut wrote = false;
            for stream in (0..STREAMS).filter(|_| self.reads) {
                while let Some(data) = self.proxy.incoming(stream).cloned() {
                    self.written.entry(stream).or_default().extend_from_slice(&data);
                    self.proxy.written(stream, data.len());
                    wrote = true;
                }
            }
            if !any && !wrote {
                return;
            }
        }
    }

    fn send(&mut self, stream: u16, data: &[u8]) {
        assert!(self.proxy.room(stream) as usize >= data.len(), "room");
        self.proxy.read(stream, Bytes::copy_from_slice(data));
    }

    /// A message as it comes from the association.
    fn takes(&mut self, stream: u16, message: Message) {
        let (identifier, body) = message.emit();
        self.proxy.handle_message(stream, identifier, body, true);
    }
}

/// The host whose programs connect, and the one that has the servers.
fn ends() -> (Side, Side) {
    (Side::new(Role::Opens), Side::new(Role::Accepts(vec![PORT])))
}

/// Carries messages until there are none. Gives their number.
fn carry(a: &mut Side, b: &mut Side) -> usize {
    let mut carried = 0;
    loop {
        let before = carried;
        a.settle();
        b.settle();
        while let Some(one) = a.proxy.poll_message(CHUNK) {
            b.proxy
                .handle_message(one.stream, one.payload_protocol_id, one.body, true);
            carried += 1;
        }
        while let Some(one) = b.proxy.poll_message(CHUNK) {
            a.proxy
                .handle_message(one.stream, one.payload_protocol_id, one.body, true);
            carried += 1;
        }
        if carried == before {
            a.settle();
            b.settle();
            return carried;
        }
    }
}

/// A connection that is open at both ends.
fn open(a: &mut Side, b: &mut Side) -> u16 {
    let stream = a.proxy.accepted(PORT).expect("a stream");
    carry(a, b);
    assert_eq!(b.commands.pop(), Some(Command::Connect { stream, port: PORT }));
    b.proxy.connected(stream);
    stream
}

fn nothing_is_dropped(side: &Side) {
    let Counters {
        malformed,
        unexpected,
        beyond_credit,
        ..
    } = side.proxy.counters();
    assert_eq!((malformed, unexpected, beyond_credit), (0, 0, 0));
}

#[test]
fn data_goes_both_ways_in_messages_that_fit_a_chunk() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    let long: Vec<u8> = (0..2_500u32).map(|n| n as u8).collect();
    a.send(stream, &long);
    b.send(stream, b"answer");
    assert_eq!(carry(&mut a, &mut b), 3 + 1);
    assert_eq!(b.written[&stream], long);
    assert_eq!(a.written[&stream], b"answer");
    nothing_is_dropped(&a);
    nothing_is_dropped(&b);
}

#[test]
fn what_is_sent_before_the_server_has_accepted_waits_for_it() {
    let (mut a, mut b) = ends();
    let stream = a.proxy.accepted(PORT).unwrap();
    a.send(stream, b"early");
    carry(&mut a, &mut b);
    assert!(b.written.is_empty());
    b.proxy.connected(stream);
    b.settle();
    assert_eq!(b.written[&stream], b"early");
}

#[test]
fn a_half_that_is_closed_leaves_the_other_open() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    a.send(stream, b"request");
    a.proxy.read_end(stream);
    carry(&mut a, &mut b);
    assert_eq!(b.written[&stream], b"request");
    assert_eq!(b.commands, [Command::Shutdown { stream }]);
    b.send(stream, b"response");
    carry(&mut a, &mut b);
    assert_eq!(a.written[&stream], b"response");
    assert_eq!(a.commands, []);
    b.proxy.read_end(stream);
    carry(&mut a, &mut b);
    assert_eq!(a.commands, [Command::Close { stream }]);
    assert_eq!(
        b.commands,
        [Command::Shutdown { stream }, Command::Close { stream }]
    );
    nothing_is_dropped(&a);
    nothing_is_dropped(&b);
}

#[test]
fn the_end_of_data_waits_until_the_program_has_it_all() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    b.reads = false;
    a.send(stream, b"last words");
    a.proxy.read_end(stream);
    carry(&mut a, &mut b);
    assert_eq!(b.commands, []);
    b.proxy.written(stream, 4);
    b.settle();
    assert_eq!(b.commands, [], "a part of it is not all");
    b.reads = true;
    b.settle();
    assert_eq!(b.written[&stream], b" words");
    assert_eq!(b.commands, [Command::Shutdown { stream }]);
}

#[test]
fn a_reset_goes_over_and_drops_what_waits() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    b.reads = false;
    a.send(stream, b"never read");
    carry(&mut a, &mut b);
    a.send(stream, b"never sent");
    a.proxy.failed(stream);
    carry(&mut a, &mut b);
    assert_eq!(b.commands, [Command::Reset { stream }]);
    assert_eq!(b.proxy.incoming(stream), None);
    assert_eq!(a.proxy.accepted(PORT), Some(stream), "both ends are done with it");
    nothing_is_dropped(&a);
    nothing_is_dropped(&b);
}

#[test]
fn nothing_follows_the_end() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    a.send(stream, b"last words");
    a.proxy.read_end(stream);
    a.proxy.failed(stream);
    // neither the data nor its end
    assert_eq!(carry(&mut a, &mut b), 2);
    nothing_is_dropped(&a);
    nothing_is_dropped(&b);
}

#[test]
fn what_was_under_way_when_a_connection_was_reset_is_no_nonsense() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    a.send(stream, b"under way");
    let under_way = a.proxy.poll_message(CHUNK).unwrap();
    b.proxy.failed(stream);
    let reset = b.proxy.poll_message(CHUNK).unwrap();
    b.proxy
        .handle_message(stream, under_way.payload_protocol_id, under_way.body, true);
    a.proxy
        .handle_message(stream, reset.payload_protocol_id, reset.body, true);
    carry(&mut a, &mut b);
    assert_eq!(a.commands, [Command::Reset { stream }]);
    assert_eq!(b.proxy.incoming(stream), None);
    nothing_is_dropped(&b);
}

#[test]
fn a_connection_that_the_server_refuses_is_reset_at_the_client() {
    let (mut a, mut b) = ends();
    let stream = a.proxy.accepted(PORT).unwrap();
    carry(&mut a, &mut b);
    b.proxy.refused(stream);
    carry(&mut a, &mut b);
    assert_eq!(a.commands, [Command::Reset { stream }]);
    assert_eq!(b.proxy.counters().refused, 1);
    assert_eq!(a.proxy.accepted(PORT), Some(stream));
}

#[test]
fn a_port_that_is_nobodys_is_refused_without_a_connection() {
    let (mut a, mut b) = ends();
    let stream = a.proxy.accepted(22).unwrap();
    carry(&mut a, &mut b);
    assert_eq!(b.commands, []);
    assert_eq!(a.commands, [Command::Reset { stream }]);
    assert_eq!(b.proxy.counters().refused, 1);
}

#[test]
fn streams_are_used_again_and_no_more_connect_than_there_are() {
    let (mut a, mut b) = ends();
    let first = open(&mut a, &mut b);
    let second = open(&mut a, &mut b);
    assert_ne!(first, second);
    assert!(!a.proxy.can_accept());
    assert_eq!(a.proxy.accepted(PORT), None);
    a.send(first, b"one");
    a.proxy.read_end(first);
    b.proxy.read_end(first);
    carry(&mut a, &mut b);
    let again = open(&mut a, &mut b);
    assert_eq!(again, first);
    a.send(again, b"two");
    carry(&mut a, &mut b);
    assert_eq!(b.written[&again], b"onetwo");
    assert_eq!(b.proxy.counters().connections, 3);
    nothing_is_dropped(&b);
}

#[test]
fn a_program_that_does_not_read_stops_its_own_connection_and_no_other() {
    let (mut a, mut b) = ends();
    let stuck = open(&mut a, &mut b);
    let other = open(&mut a, &mut b);
    b.reads = false;
    let mut sent = 0;
    while a.proxy.room(stuck) > 0 {
        let data = vec![0; a.proxy.room(stuck) as usize];
        a.send(stuck, &data);
        sent += data.len();
        carry(&mut a, &mut b);
    }
    assert_eq!(sent, WINDOW as usize);
    a.send(other, b"goes through");
    carry(&mut a, &mut b);
    assert_eq!(
        b.proxy.incoming(other).map(|data| &data[..]),
        Some(&b"goes through"[..])
    );
    // it reads, and its connection goes on
    b.reads = true;
    carry(&mut a, &mut b);
    assert_eq!(b.written[&stuck].len(), sent);
    assert!(a.proxy.room(stuck) > 0);
    nothing_is_dropped(&a);
    nothing_is_dropped(&b);
}

#[test]
fn connections_take_turns() {
    let (mut a, mut b) = ends();
    let (first, second) = (open(&mut a, &mut b), open(&mut a, &mut b));
    a.send(first, &[1; 3_000]);
    a.send(second, &[2; 100]);
    let turns: Vec<u16> = std::iter::from_fn(|| a.proxy.poll_message(CHUNK))
        .map(|m| m.stream)
        .collect();
    assert_eq!(turns, [first, second, first, first]);
}

#[test]
fn no_more_is_read_than_can_be_sent_soon() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    a.send(stream, &vec![0; READ_AHEAD as usize]);
    assert_eq!(a.proxy.room(stream), 0);
    a.proxy.poll_message(CHUNK).unwrap();
    assert_eq!(a.proxy.room(stream), CHUNK);
}

#[test]
fn nonsense_of_a_peer_is_dropped_and_counted() {
    let mut b = Side::new(Role::Accepts(vec![PORT]));
    b.takes(0, Message::Data(Bytes::from_static(b"of no connection")));
    b.takes(0, Message::End(Reason::Closed));
    b.takes(STREAMS, Message::Open(PORT));
    assert_eq!(b.proxy.counters().unexpected, 3);
    b.takes(0, Message::Open(PORT));
    b.takes(0, Message::Open(PORT));
    b.takes(0, Message::Credit(1));
    assert_eq!(
        b.proxy.counters().unexpected,
        5,
        "opened twice, and more credit than there is"
    );
    b.takes(0, Message::Fin);
    b.takes(0, Message::Fin);
    b.takes(0, Message::Data(Bytes::from_static(b"after the end")));
    assert_eq!(b.proxy.counters().unexpected, 7);
    b.proxy
        .handle_message(0, 0x1234, Bytes::from_static(b"whose?"), true);
    b.proxy
        .handle_message(0, 0x5345_4701, Bytes::from_static(b"a piece"), false);
    assert_eq!(b.proxy.counters().malformed, 2);
    b.settle();
    assert_eq!(
        b.commands,
        [Command::Connect {
            stream: 0,
            port: PORT
        }]
    );
    // and who does not accept is not connected to
    let mut a = Side::new(Role::Opens);
    a.takes(0, Message::Open(PORT));
    a.settle();
    assert_eq!((a.proxy.counters().unexpected, a.commands.len()), (1, 0));
}

#[test]
fn who_sends_more_than_was_granted_loses_the_connection() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    b.takes(stream, Message::Data(Bytes::from(vec![0; WINDOW as usize])));
    b.takes(stream, Message::Data(Bytes::from_static(b"x")));
    assert_eq!(b.proxy.counters().beyond_credit, 1);
    carry(&mut a, &mut b);
    assert_eq!(b.commands, [Command::Reset { stream }]);
    assert_eq!(a.commands, [Command::Reset { stream }]);
    assert_eq!(b.proxy.incoming(stream), None, "and nothing of it is kept");
}

#[test]
fn an_end_before_its_time_is_a_reset() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    b.takes(stream, Message::End(Reason::Closed));
    b.settle();
    assert_eq!(b.commands, [Command::Reset { stream }]);
}

#[test]
fn an_association_that_ends_resets_what_it_carried() {
    let (mut a, mut b) = ends();
    let stream = open(&mut a, &mut b);
    a.send(stream, b"lost");
    a.proxy.lose_all();
    a.settle();
    assert_eq!(a.commands, [Command::Reset { stream }]);
    assert_eq!(a.proxy.poll_message(CHUNK), None);
    assert_eq!(a.proxy.accepted(PORT), Some(stream));
}
