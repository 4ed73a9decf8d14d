use super::*;
use crate::random::Stream;

const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const PORT: u16 = 9;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn endpoint(address: Ipv6Addr) -> Endpoint {
    let mut endpoint = Endpoint::new(Box::new(Stream::new(1, "udp")));
    endpoint.add_local_address(LocalAddress {
        interface: InterfaceId(0),
        address,
    });
    endpoint
}

fn server() -> Endpoint {
    let mut server = endpoint(SERVER);
    server.listen(PORT);
    server
}

/// Hands over what `from` sends. How many datagrams there were, and how many had a socket.
fn pass(now: Instant, from: &mut Endpoint, to: &mut Endpoint) -> (usize, usize) {
    let (mut sent, mut taken) = (0, 0);
    while let Some(transmit) = from.poll_transmit() {
        let Payload::Udp(datagram) = &transmit.packet.payload else {
            panic!("{transmit:?}")
        };
        let ip = transmit.packet.ip;
        sent += 1;
        taken += usize::from(to.handle_datagram(now, InterfaceId(0), (ip.source, ip.destination), datagram));
    }
    (sent, taken)
}

fn data(offset: u64) -> Data {
    Data::Synthetic { offset, len: 100 }
}

#[test]
fn a_receiver_reports_each_second_until_data_comes_and_every_five_while_it_does() {
    let (mut client, mut server) = (endpoint(CLIENT), server());
    let id = client.connect(SERVER, PORT).expect("a socket");
    client.report(at(0), id);
    // the first is lost
    assert!(
        client
            .poll_transmit()
            .is_some_and(|t| t.packet.buffer_len() == 48 + REPORT_LEN)
    );
    assert_eq!(client.poll_timeout(), Some(at(1000)));
    client.handle_timeout(at(1000));
    assert_eq!(pass(at(1010), &mut client, &mut server), (1, 1));
    let (theirs, event) = server.poll_event().expect("a peer");
    assert_eq!((event, server.poll_event()), (Event::Accepted, None));
    // one that comes again makes no other socket
    client.handle_timeout(at(2000));
    assert_eq!(pass(at(2010), &mut client, &mut server), (1, 1));
    assert_eq!(server.poll_event(), None);
    let say = |server: &mut Endpoint, client: &mut Endpoint, now, offset| {
        server.command(theirs, |s| s.send(data(offset)));
        assert_eq!(pass(now, server, client), (1, 1));
        assert_eq!(client.poll_event(), Some((id, Event::Readable)));
        assert_eq!(client.command(id, Socket::recv), Some(Some(data(offset))));
    };
    say(&mut server, &mut client, at(2500), 0);
    assert_eq!(client.poll_timeout(), Some(at(7500)));
    let reports = client.socket(id).map(|s| (s.reported, s.arrived));
    assert_eq!(reports, Some((3, 1)));
    // five more after the last data, and again when there is some
    for n in 0..4 {
        client.handle_timeout(at(7500 + 5000 * n));
    }
    say(&mut server, &mut client, at(23_000), 100);
    let mut reports = 4;
    while let Some(due) = client.poll_timeout() {
        client.handle_timeout(due);
        reports += 1;
    }
    assert_eq!(
        pass(at(50_000), &mut client, &mut server).0,
        reports - 1,
        "the last one is that it stops"
    );
    assert_eq!(reports, 4 + 5 + 1);
    say(&mut server, &mut client, at(90_000), 200);
    assert_eq!(client.poll_timeout(), Some(at(95_000)));
}

#[test]
fn a_socket_keeps_its_ends_and_datagrams_their_bounds() {
    let (mut client, mut server) = (endpoint(CLIENT), server());
    let id = client.connect(SERVER, PORT).expect("a socket");
    assert_eq!(client.poll_transmit(), None, "it has nothing to say yet");
    client.remove_local_address(CLIENT);
    assert_eq!(client.connect(SERVER, PORT), None, "from no address");
    client.command(id, |s| [0, 100].map(|offset| s.send(data(offset))));
    assert_eq!(pass(at(0), &mut client, &mut server), (2, 2));
    let (theirs, _) = server.poll_event().expect("a peer");
    let received = [0, 1, 2].map(|_| server.command(theirs, Socket::recv).flatten());
    assert_eq!(received, [Some(data(0)), Some(data(100)), None]);
}

#[test]
fn nothing_is_taken_where_nobody_listens_nor_from_more_peers_than_are_served() {
    let (mut client, mut deaf) = (endpoint(CLIENT), endpoint(SERVER));
    let id = client.connect(SERVER, PORT).expect("a socket");
    client.report(at(0), id);
    assert_eq!(pass(at(0), &mut client, &mut deaf), (1, 0));
    assert_eq!(deaf.counters().no_port, 1);

    let mut server = server();
    let call = |n: usize| UdpDatagram {
        source_port: 1 + (n % 60_000) as u16,
        destination_port: PORT,
        data: data(0),
    };
    let taken = (0..=MAX_PEERS)
        .filter(|n| server.handle_datagram(at(0), InterfaceId(0), (CLIENT, SERVER), &call(*n)));
    assert_eq!(taken.count(), MAX_PEERS);
    assert_eq!(server.counters().too_many_peers, 1);
    assert!(
        server.handle_datagram(at(0), InterfaceId(0), (CLIENT, SERVER), &call(7)),
        "whom it knows"
    );
}

#[test]
fn what_no_way_need_carry_is_refused() {
    let mut client = endpoint(CLIENT);
    let id = client.connect(SERVER, PORT).expect("a socket");
    let of = |len| Data::Synthetic { offset: 0, len };
    assert_eq!(
        client.command(id, |s| s.send(of(MAX_DATA + 1))),
        Some(Err(TooLong))
    );
    assert_eq!(client.command(id, |s| s.send(of(MAX_DATA))), Some(Ok(())));
    assert_eq!(client.poll_transmit().map(|t| t.packet.buffer_len()), Some(1280));
}

#[test]
fn a_datagram_is_there_when_it_is_given_or_since_it_was_in_the_making() {
    let mut client = endpoint(CLIENT);
    let id = client.connect(SERVER, PORT).expect("a socket");
    let mut packet = Packet::EMPTY;
    let mut busy_since = |client: &mut Endpoint, now| {
        let departure = client.poll_transmit_into(now, &mut packet)?;
        departure.busy_since
    };
    client.command(id, |s| s.send(data(0)));
    assert_eq!(busy_since(&mut client, at(5)), Some(at(5)));
    client.command(id, |s| {
        s.made_since(at(5));
        s.send(data(100))
    });
    assert_eq!(busy_since(&mut client, at(25)), Some(at(5)));
    client.command(id, |s| s.send(data(200)));
    assert_eq!(busy_since(&mut client, at(26)), Some(at(26)));
    assert_eq!(busy_since(&mut client, at(27)), None, "nothing to send");
}
