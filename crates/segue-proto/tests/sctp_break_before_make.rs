//! Break before make: the old address is gone before there is a new one (RFC 5061 section 5.3.2).

mod common;

use common::*;
use segue_proto::sctp::{AddressChange, AddressRequest, Config, Event};
use segue_proto::{Duration, Instant};
use segue_wire::sctp::{AsconfParameter, Chunk};
use std::net::Ipv6Addr;

/// Packets take 10 ms, and only those between addresses that the hosts have at the time arrive.
fn roam(net: &mut Net, owned: &[u16]) {
    net.owned[B] = owned.iter().map(|&n| address(B, n)).collect();
}

fn lose(net: &mut Net, n: u16) {
    net.owned[B].retain(|a| *a != address(B, n));
    net.command(B, |b, now| b.local_address_removed(now, address(B, n)));
}

fn gain(net: &mut Net, n: u16) {
    net.owned[B].push(address(B, n));
    net.command(B, |b, now| b.local_address_added(now, local(B, n)));
}

fn answered(net: &Net) -> Vec<(AddressRequest, bool)> {
    net.events[B]
        .iter()
        .filter_map(|(_, e)| match e {
            Event::AsconfAnswered { results, .. } => Some(results),
            _ => None,
        })
        .flatten()
        .map(|r| (r.request, r.outcome.is_ok()))
        .collect()
}

/// When data left `host` after `since`, and between which addresses.
fn data_after(net: &Net, host: usize, since: Instant) -> Vec<(u64, Ipv6Addr, Ipv6Addr)> {
    net.log
        .iter()
        .filter(|d| d.from == host && d.at >= since && d.data().next().is_some())
        .map(|d| {
            (
                (d.at - since).as_millis(),
                d.packet.ip.source,
                d.packet.ip.destination,
            )
        })
        .collect()
}

fn peer_addresses(net: &Net) -> Vec<Ipv6Addr> {
    let mut all: Vec<_> = net.association(A).paths().map(|p| p.destination).collect();
    all.dedup();
    all
}

#[test]
fn asconf_from_the_new_address_takes_the_place_of_the_old_and_data_follows_its_answer() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.send(B, 0, synthetic(0, 1000));
    net.run_for(ms(300));
    lose(&mut net, 1);
    assert!(net.has_event(B, &Event::Stranded));
    net.send(B, 0, synthetic(1000, 1000));
    net.log.clear();
    net.run_for(Duration::from_secs(2));
    assert!(
        net.log.iter().all(|d| d.from == A),
        "nothing leaves a host that has no address"
    );

    let start = net.now;
    gain(&mut net, 2);
    net.run_for(ms(100));
    let asconf = net.log.iter().find(|d| d.from == B && d.at >= start).unwrap();
    assert_eq!(asconf.packet.ip.source, address(B, 2));
    let [Chunk::Auth(_), Chunk::Asconf(chunk)] = asconf.sctp().chunks.as_slice() else {
        panic!("{:?}", names(asconf.sctp()));
    };
    assert_eq!(chunk.address, address(B, 1), "an address that the peer knows");
    let kinds: Vec<_> = chunk
        .parameters
        .iter()
        .map(AsconfParameter::parameter_type)
        .collect();
    assert_eq!(kinds, [0xc001, 0xc004, 0xc002]);
    assert_eq!(
        answered(&net),
        [
            (AddressRequest::Add(address(B, 2)), true),
            (AddressRequest::SetPrimary(address(B, 2)), true),
            (AddressRequest::Delete(address(B, 1)), true),
        ]
    );
    // one round trip of 20 ms, not a timeout
    assert_eq!(data_after(&net, B, start), [(20, address(B, 2), address(A, 1))]);
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
    assert_eq!(net.messages[A].len(), 2);
    assert!(net.has_event(B, &Event::Resumed));
}

#[test]
fn the_peer_sends_again_as_soon_as_the_new_address_is_verified() {
    let mut net = Net::established(Config::default(), [1, 1]);
    roam(&mut net, &[]);
    net.command(B, |b, now| b.local_address_removed(now, address(B, 1)));
    for i in 0..8 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    // long enough for a backed-off RTO of 4 s and a window of one packet
    net.run_for(Duration::from_secs(4));
    assert_eq!(net.association(A).counters().t3_expiries, 2);
    let start = net.now;
    gain(&mut net, 2);
    net.run_for(ms(200));
    // ASCONF 10 ms, ASCONF-ACK and HEARTBEAT 10 ms, HEARTBEAT ACK 10 ms
    let data = data_after(&net, A, start);
    assert!(
        data.iter().filter(|d| d.2 == address(B, 2)).all(|d| d.0 >= 30),
        "no data before the path is verified (section 5.3, F1): {data:?}"
    );
    let at_once = data.iter().filter(|d| d.0 == 30).count();
    assert!(
        at_once >= 3,
        "a new path's window, not what the timeouts left: {data:?}"
    );
    assert_eq!(net.messages[B].len(), 8);
    let path = net.association(A).paths().next().unwrap();
    assert_eq!(
        (path.destination, path.rto),
        (address(B, 2), Duration::from_secs(1))
    );
}

#[test]
fn a_host_without_addresses_counts_no_errors_however_long_it_takes() {
    let config = Config {
        association_max_retrans: 3,
        ..Config::default()
    };
    let mut net = Net::symmetric(config.clone(), [1, 1], 1);
    // the peer is patient enough
    net.ends[A] = segue_proto::sctp::Endpoint::new(
        Config {
            association_max_retrans: 1000,
            ..config
        },
        PORT,
        Box::new(segue_proto::random::Stream::new(1, "patient")),
    );
    net.ends[A].add_local_address(local(A, 1));
    net.connect();
    net.run_for(ms(500));
    net.send(B, 0, synthetic(0, 1000));
    net.command(B, |b, now| b.add_address(now, local(B, 7))).unwrap();
    lose(&mut net, 7);
    lose(&mut net, 1);
    assert_eq!(net.ends[B].poll_timeout(), None, "nothing is to be done");
    net.run_for(Duration::from_secs(3600));
    assert!(net.association(B).is_established());
    let path = net.association(B).paths().next().unwrap();
    assert_eq!(path.error_count, 0);
    gain(&mut net, 2);
    net.run_for(ms(200));
    assert_eq!(net.messages[A].len(), 1);
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
}

#[test]
fn the_same_address_come_back_needs_no_asconf_and_begins_a_new_path() {
    let mut net = Net::established(Config::default(), [1, 1]);
    for i in 0..4 {
        net.send(B, 0, synthetic(i * 1000, 1000));
    }
    lose(&mut net, 1);
    net.run_for(Duration::from_secs(30));
    let start = net.now;
    net.log.clear();
    gain(&mut net, 1);
    net.run_for(ms(300));
    assert!(
        !net.trace().iter().any(|t| t.contains("ASCONF")),
        "{:?}",
        net.trace()
    );
    let data = data_after(&net, B, start);
    assert_eq!(data[0].0, 0, "at once");
    assert_eq!(net.messages[A].len(), 4);
    let path = net.association(B).paths().next().unwrap();
    assert!(path.rto <= Duration::from_secs(1) && path.error_count == 0);
}

/// Standing still stops the heartbeats: they begin again with the address, whichever it is.
#[test]
fn the_same_address_come_back_is_a_resumption() {
    let config = Config {
        hb_interval: Some(Duration::from_secs(5)),
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    lose(&mut net, 1);
    assert!(net.has_event(B, &Event::Stranded));
    net.run_for(Duration::from_secs(20));
    assert!(!net.has_event(B, &Event::Resumed));
    let back = net.now;
    gain(&mut net, 1);
    assert!(net.has_event(B, &Event::Resumed));
    net.run_for(Duration::from_secs(20));
    let heartbeats = net.log.iter().filter(|d| {
        d.from == B && d.at > back && matches!(d.sctp().chunks.as_slice(), [Chunk::Heartbeat(_), ..])
    });
    assert!(
        heartbeats.count() >= 2,
        "heartbeats every 5 s and an RTO, 50 % jitter"
    );
}

#[test]
fn an_unanswered_asconf_goes_out_again_from_the_new_address_at_once_and_unchanged() {
    let mut net = Net::established(Config::default(), [1, 1]);
    roam(&mut net, &[3]);
    net.rule = Box::new(|d| {
        if d.packet.ip.source == address(B, 1) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    net.command(B, |b, now| b.add_address(now, local(B, 2))).unwrap();
    lose(&mut net, 2);
    lose(&mut net, 1);
    net.run_for(ms(100));
    let start = net.now;
    gain(&mut net, 3);
    net.run_for(ms(200));
    let asconfs: Vec<_> = net
        .log
        .iter()
        .filter_map(|d| match d.sctp().chunks.as_slice() {
            [Chunk::Auth(_), Chunk::Asconf(a)] => Some((d.at, d.packet.ip.source, a.clone())),
            _ => None,
        })
        .collect();
    // lost; again from 3; then what there is to ask for
    assert_eq!(asconfs.len(), 3);
    assert_eq!(asconfs[0].2, asconfs[1].2);
    assert_eq!((asconfs[1].0, asconfs[1].1), (start, address(B, 3)));
    assert_eq!(asconfs[2].0, start + ms(20));
    // 2 was added, by the repeated request, and then deleted with 1
    assert_eq!(peer_addresses(&net), [address(B, 3)]);
    assert_eq!(net.association(A).primary_path(), address(B, 3));
    let own: Vec<_> = net.association(B).local_addresses().collect();
    assert_eq!(own, [local(B, 3)]);
}

#[test]
fn an_answer_lost_with_the_address_it_went_to_is_given_again_to_the_next_one() {
    // the peer has deleted the address that the ASCONF names: its tag finds the association
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, 1);
    net.rule = Box::new(|d| {
        let lost = d.packet.ip.destination == address(B, 2) || d.packet.ip.source == address(A, 9);
        if lost { vec![] } else { vec![ms(10)] }
    });
    gain(&mut net, 2);
    net.run_for(ms(100));
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
    lose(&mut net, 2);
    gain(&mut net, 3);
    net.run_for(ms(500));
    assert_eq!(peer_addresses(&net), [address(B, 3)]);
    assert_eq!(net.association(A).primary_path(), address(B, 3));
    net.send(A, 0, synthetic(0, 1000));
    net.send(B, 0, synthetic(0, 1000));
    net.run_for(ms(100));
    assert_eq!((net.messages[A].len(), net.messages[B].len()), (1, 1));
}

#[test]
fn coming_back_to_an_address_whose_deletion_is_unanswered_settles_it() {
    let mut net = Net::established(Config::default(), [1, 2]);
    net.command(B, |b, now| b.set_route(now, address(B, 2))).unwrap();
    net.rule = Box::new(|d| {
        let gone = address(B, 2);
        if d.packet.ip.source == gone || d.packet.ip.destination == gone {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    lose(&mut net, 1);
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    lose(&mut net, 2);
    net.run_for(Duration::from_secs(1));
    gain(&mut net, 1);
    net.run_for(Duration::from_secs(1));
    // refused, for it is the source (F8): it stays, and needs nobody else
    assert_eq!(answered(&net), [(AddressRequest::Delete(address(B, 1)), false)]);
    assert!(!net.association(B).is_stranded());
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.messages[B].len(), 1);
}

#[test]
fn with_auto_asconf_off_nothing_is_asked_for_until_the_user_does() {
    let config = Config {
        auto_asconf: false,
        ..Config::default()
    };
    let mut net = Net::established(config, [1, 1]);
    lose(&mut net, 1);
    gain(&mut net, 2);
    net.run_for(Duration::from_secs(1));
    assert!(net.association(B).is_stranded());
    assert!(!net.trace().iter().any(|t| t == "B ASCONF"));
    net.command(B, |b, now| {
        b.change_addresses(
            now,
            &[
                AddressChange::Add(local(B, 2)),
                AddressChange::SetPrimary(address(B, 2)),
                AddressChange::Delete(address(B, 1)),
            ],
        )
    })
    .unwrap();
    net.run_for(ms(100));
    assert!(!net.association(B).is_stranded());
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
}

#[test]
fn one_of_two_addresses_gone_moves_what_is_outstanding_at_once() {
    let mut net = Net::established(Config::default(), [1, 2]);
    net.rule = Box::new(|d| {
        if d.packet.ip.source == address(B, 1) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    for i in 0..3 {
        net.send(B, 0, synthetic(i * 1000, 1000));
    }
    let start = net.now;
    lose(&mut net, 1);
    net.run_for(ms(15));
    let data = data_after(&net, B, start);
    assert!(data.iter().any(|d| d.1 == address(B, 2) && d.0 == 0), "{data:?}");
    net.run_for(ms(300));
    assert_eq!(net.messages[A].len(), 3);
    assert_eq!(net.association(B).counters().t3_expiries, 0);
    assert!(!net.has_event(B, &Event::Stranded));
}

#[test]
fn a_handshake_without_an_address_begins_again_from_the_next_one() {
    let mut net = Net::symmetric(Config::default(), [1, 1], 1);
    let now = net.now;
    net.ids[B] = net.ends[B].connect(now, &[address(A, 1)], PORT);
    net.ends[A].listen();
    net.rule = Box::new(|d| {
        if d.packet.ip.source == address(B, 1) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    net.drain();
    lose(&mut net, 1);
    net.run_for(Duration::from_secs(600));
    assert!(!net.has_event(B, &Event::Lost));
    gain(&mut net, 2);
    net.run_for(ms(100));
    assert!(net.association(B).is_established());
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
}
