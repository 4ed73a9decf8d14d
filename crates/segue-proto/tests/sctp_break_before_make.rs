//! Break before make: the old address is gone before there is a new one (RFC 5061 section 5.3.2).

use crate::common::*;
use segue_proto::sctp::{
    AddressChange, AddressRequest, Config, Event, PmtuDiscovery, Reliability, SendOptions,
};
use segue_proto::{Duration, Instant};
use segue_wire::sctp::{AsconfParameter, Chunk, Parameter};
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
    assert_eq!(kinds, [0xc001, 0xc004]);
    let granted = [
        (AddressRequest::Add(address(B, 2)), true),
        (AddressRequest::SetPrimary(address(B, 2)), true),
    ];
    assert_eq!(answered(&net), granted);
    // one round trip of 20 ms, not a timeout
    assert_eq!(data_after(&net, B, start), [(20, address(B, 2), address(A, 1))]);
    assert_eq!(net.association(A).primary_path(), address(B, 2));
    assert_eq!(net.messages[A].len(), 2);
    assert!(net.has_event(B, &Event::Resumed));

    // the peer's data comes: the former address is deleted
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(100));
    assert_eq!(
        answered(&net)[2..],
        [(AddressRequest::Delete(address(B, 1)), true)]
    );
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
}

#[test]
fn nothing_is_deleted_before_what_the_peer_lost_has_come_again() {
    let mut net = Net::established(Config::default(), [1, 1]);
    roam(&mut net, &[]);
    net.command(B, |b, now| b.local_address_removed(now, address(B, 1)));
    for i in 0..4 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(ms(100));
    // new data arrives where what was lost before it does not, until `hole` ends
    let hole = net.now + Duration::from_secs(3);
    let first = first_tsn(&net);
    net.rule = Box::new(move |d| {
        let is_first = d.data().any(|c| c.tsn == first);
        if is_first && d.at < hole {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    gain(&mut net, 2);
    net.run_for(ms(200));
    net.send(A, 0, synthetic(4000, 1000));
    net.run_for(ms(700));
    assert!(net.messages[B].is_empty(), "the first is missing");
    assert_eq!(
        data_after(&net, A, hole - Duration::from_secs(3))[0].2,
        address(B, 2)
    );
    assert_eq!(answered(&net).len(), 2, "{:?}", answered(&net));
    net.run_for(Duration::from_secs(8));
    assert_eq!(net.messages[B].len(), 5);
    assert_eq!(
        answered(&net)[2..],
        [(AddressRequest::Delete(address(B, 1)), true)]
    );
}

#[test]
fn an_idle_peer_is_asked_to_delete_after_rto_max() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, 1);
    gain(&mut net, 2);
    net.run_for(Duration::from_secs(59));
    assert_eq!(peer_addresses(&net), [address(B, 1), address(B, 2)]);
    net.run_for(Duration::from_secs(2));
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
}

#[test]
fn an_address_that_is_back_before_its_deletion_stays() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, 1);
    gain(&mut net, 2);
    net.run_for(ms(100));
    gain(&mut net, 1);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(Duration::from_secs(100));
    assert_eq!(peer_addresses(&net), [address(B, 1), address(B, 2)]);
    lose(&mut net, 2);
    net.send(B, 0, synthetic(0, 1000));
    net.run_for(ms(100));
    assert_eq!(net.messages[A].len(), 1);
    assert!(!net.association(B).is_stranded());
}

#[test]
fn a_host_that_moves_often_leaves_few_addresses_behind() {
    let mut net = Net::established(Config::default(), [1, 1]);
    for n in 1..=20 {
        lose(&mut net, n);
        gain(&mut net, n + 1);
        net.run_for(ms(100));
    }
    // the present one, and the last four
    let kept: Vec<_> = (17..=21).map(|n| address(B, n)).collect();
    let mut known = peer_addresses(&net);
    known.sort_unstable();
    assert_eq!(known, kept);
}

#[test]
fn what_is_outstanding_on_a_silent_path_moves_with_the_primary_before_its_timeout() {
    let mut net = Net::established(Config::default(), [1, 1]);
    for i in 0..4 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(ms(300));
    roam(&mut net, &[]);
    net.command(B, |b, now| b.local_address_removed(now, address(B, 1)));
    net.send(A, 0, synthetic(4000, 1000));
    // longer than round trip and SACK delay, shorter than RTO.Min
    net.run_for(ms(500));
    let start = net.now;
    gain(&mut net, 2);
    net.run_for(ms(100));
    assert_eq!(net.messages[B].len(), 5);
    assert_eq!(data_after(&net, A, start), [(30, address(A, 1), address(B, 2))]);
    assert_eq!(net.association(A).counters().t3_expiries, 0);
}

#[test]
fn an_answer_over_the_new_path_does_not_vouch_for_the_old_one() {
    let mut net = Net::established(Config::default(), [1, 1]);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(300));
    // received, and not acknowledged when the address goes
    net.send(A, 0, synthetic(1000, 1000));
    net.run_for(ms(20));
    roam(&mut net, &[]);
    net.command(B, |b, now| b.local_address_removed(now, address(B, 1)));
    for i in 2..6 {
        net.send(A, 0, synthetic(i * 1000, 1000));
    }
    net.run_for(Duration::from_secs(4));
    let start = net.now;
    gain(&mut net, 2);
    net.run_for(ms(100));
    let acknowledged = net.log.iter().position(|d| {
        let sack = |c: &Chunk| matches!(c, Chunk::Sack(_));
        d.from == B && d.at >= start && d.sctp().chunks.iter().any(sack)
    });
    let verified = net.log.iter().position(|d| {
        let answer = |c: &Chunk| matches!(c, Chunk::HeartbeatAck(_));
        d.from == B && d.at >= start && d.sctp().chunks.iter().any(answer)
    });
    assert!(acknowledged.is_some() && acknowledged < verified);
    assert_eq!(net.messages[B].len(), 6);
}

#[test]
fn what_is_outstanding_on_a_path_that_answers_stays_when_the_primary_moves() {
    let mut net = Net::established(Config::default(), [1, 2]);
    net.send(A, 0, synthetic(0, 1000));
    net.run_for(ms(300));
    net.log.clear();
    net.send(A, 0, synthetic(1000, 1000));
    net.command(B, |b, now| b.request_set_primary(now, address(B, 2)))
        .unwrap();
    net.run_for(ms(300));
    assert_eq!(net.association(A).primary_path(), address(B, 2));
    assert_eq!(net.association(A).counters().data_chunks_retransmitted, 0);
}

#[test]
fn an_answer_that_goes_to_the_old_address_is_asked_for_again_as_soon_as_the_peer_uses_the_new_one() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, 1);
    net.run_for(ms(300));
    let mut lost = false;
    net.rule = Box::new(move |d| {
        let answer = d.sctp().chunks.iter().any(|c| matches!(c, Chunk::AsconfAck(_)));
        if answer && !core::mem::replace(&mut lost, true) {
            vec![]
        } else {
            vec![ms(10)]
        }
    });
    let start = net.now;
    net.log.clear();
    gain(&mut net, 2);
    net.send(B, 0, synthetic(0, 1000));
    net.run_for(ms(500));
    // the HEARTBEAT that came too early is answered as soon as anything may be sent
    let confirmed = Event::PeerAddressConfirmed(address(B, 2));
    let (at, _) = net.events[A].iter().find(|(_, e)| *e == confirmed).unwrap();
    assert_eq!((*at - start).as_millis(), 50);
    // ASCONF; HEARTBEAT; the same ASCONF; ASCONF-ACK
    assert_eq!(data_after(&net, B, start), [(40, address(B, 2), address(A, 1))]);
    let asconfs = net.log.iter().filter(|d| {
        let is_asconf = |c: &Chunk| matches!(c, Chunk::Asconf(_));
        d.sctp().chunks.iter().any(is_asconf)
    });
    assert_eq!(asconfs.count(), 2);
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
    assert_eq!(net.association(A).primary_path(), address(B, 2));
    net.run_for(Duration::from_secs(61));
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
}

#[test]
fn requests_and_shutdowns_of_a_host_without_addresses_wait_and_count_no_errors() {
    let patient = Config {
        association_max_retrans: 1000,
        ..Config::default()
    };
    let impatient = Config {
        association_max_retrans: 3,
        pmtu_discovery: PmtuDiscovery::Probing,
        ..Config::default()
    };
    let mut net = Net::new([patient, impatient], [1, 1], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    // one request is out when the address goes, the next one is made without any
    net.command(B, |b, now| b.reset_streams(now, &[1])).unwrap();
    lose(&mut net, 1);
    net.log.clear();
    net.command(B, |b, now| b.add_streams(now, 3, 0)).unwrap();
    net.run_for(Duration::from_secs(3600));
    let said: Vec<_> = net
        .log
        .iter()
        .filter(|d| d.from == B)
        .map(|d| names(d.sctp()))
        .collect();
    assert!(said.is_empty(), "{said:?}");
    assert!(net.association(B).is_established());
    gain(&mut net, 1);
    net.run_for(ms(1000));
    assert!(net.has_event(B, &Event::Resumed));
    let outcomes = net.events[B].iter().filter_map(|(_, e)| match e {
        Event::StreamRequestAnswered { outcome, .. } => Some(*outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [Ok(()), Ok(())]);
    // the same of a shutdown that begins there
    lose(&mut net, 1);
    net.command(B, |b, now| b.shutdown(now));
    net.run_for(Duration::from_secs(200));
    assert!(!net.association(B).is_closed());
    gain(&mut net, 1);
    net.run_for(ms(1000));
    assert!(net.has_event(B, &Event::Closed));
}

#[test]
fn a_message_given_up_by_a_host_without_addresses_is_passed_over_later() {
    // RFC 3758 section 3.5, rule C5: T3-rtx of the FORWARD TSN
    let patient = Config {
        association_max_retrans: 1000,
        ..Config::default()
    };
    let mut net = Net::established(patient, [1, 1]);
    net.rule = Box::new(|_| vec![]);
    let brief = SendOptions {
        reliability: Reliability::Timed { lifetime: ms(50) },
        ..SendOptions::default()
    };
    net.command(B, |b, now| b.send(now, 0, synthetic(0, 100), brief))
        .unwrap();
    net.run_for(ms(1100));
    assert_eq!(net.association(B).counters().forward_tsns_sent, 1);
    lose(&mut net, 1);
    net.run_for(Duration::from_secs(3600));
    assert!(net.association(B).is_established());
    assert_eq!(net.association(B).paths().next().unwrap().error_count, 1);
    net.rule = Box::new(|_| vec![ms(10)]);
    gain(&mut net, 1);
    net.run_for(ms(300));
    net.send(B, 0, synthetic(100, 100));
    net.run_for(ms(300));
    assert_eq!(net.association(A).counters().forward_tsns_received, 1);
    assert_eq!(net.messages[A].len(), 1);
}

#[test]
fn a_peer_that_talks_to_a_host_without_usable_addresses_fills_no_memory() {
    let mut net = Net::established(Config::default(), [1, 1]);
    lose(&mut net, 1);
    // the ASCONF that adds the new address is not answered
    net.rule = Box::new(|_| vec![]);
    let packet = net.forge(B, address(A, 1), [Chunk::Heartbeat(vec![7; 1000].into())]);
    gain(&mut net, 2);
    for _ in 0..100 {
        net.inject(B, packet.clone());
    }
    // the peer answers at last
    net.rule = Box::new(|_| vec![ms(10)]);
    net.log.clear();
    net.run_for(Duration::from_secs(5));
    assert!(!net.association(B).is_stranded());
    let echoed = net
        .log
        .iter()
        .filter(|d| names(d.sctp()).contains(&"HEARTBEAT-ACK") && d.from == B);
    assert!(
        echoed.count() <= 2,
        "the last of the hundred is answered, and the peer's own"
    );
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

/// From an address that is to be deleted nothing leaves but the ASCONF (F6), and where there is no other the peer refuses it (D8).
#[test]
fn asking_to_delete_the_only_address_to_send_from_strands_until_the_peer_refuses() {
    let mut net = Net::established(Config::default(), [1, 2]);
    lose(&mut net, 2);
    net.run_for(ms(100));
    net.command(B, |b, now| b.delete_address(now, address(B, 1)))
        .unwrap();
    assert!(net.association(B).is_stranded() && net.has_event(B, &Event::Stranded));
    net.send(B, 0, synthetic(0, 1000));
    assert!(!net.has_event(B, &Event::Resumed));
    net.run_for(ms(100));
    assert!(!net.association(B).is_stranded() && net.has_event(B, &Event::Resumed));
    assert_eq!(net.messages[A].len(), 1);
    assert_eq!(net.association(B).counters().t3_expiries, 0);
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
    assert_eq!(net.association(A).primary_path(), address(B, 3));
    // 2 was added, by the repeated request, and is deleted with 1
    net.run_for(Duration::from_secs(61));
    assert_eq!(peer_addresses(&net), [address(B, 3)]);
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
    net.owned[B].push(address(B, 2));
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
    assert_eq!(peer_addresses(&net), [address(B, 2)]);
    lose(&mut net, 2);
    gain(&mut net, 3);
    net.run_for(ms(500));
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

#[test]
fn the_asconf_goes_where_the_routing_table_reaches_from_the_new_address() {
    let mut net = Net::established(Config::default(), [2, 1]);
    // two networks: nothing of the first is reached from the second
    net.rule = Box::new(|d| {
        let network = |a: Ipv6Addr| a.segments()[3];
        let same = network(d.packet.ip.source) == network(d.packet.ip.destination);
        if same || d.from == A { vec![ms(10)] } else { vec![] }
    });
    lose(&mut net, 1);
    net.run_for(ms(300));
    let start = net.now;
    net.command(B, |b, now| {
        assert!(b.set_primary_path(now, address(A, 1)).is_ok());
        b.set_source(address(A, 1), None);
        b.set_source(address(A, 2), Some(address(B, 2)));
    });
    gain(&mut net, 2);
    net.run_for(ms(30));
    let way = |d: &&Departure| d.from == B && d.at == start;
    let first = net.log.iter().find(way).unwrap();
    assert_eq!(first.packet.ip.destination, address(A, 2));
    assert!(!net.association(B).is_stranded());
}

#[test]
fn an_address_that_the_host_has_lost_is_offered_to_nobody_and_no_association_sends_from_it() {
    let mut net = Net::established(Config::default(), [1, 2]);
    assert_eq!(net.association(B).route(), local(B, 1));
    net.send(B, 0, synthetic(0, 1000));
    net.log.clear();
    // of the endpoint, not of the association
    let now = net.now;
    net.ends[B].local_address_removed(now, address(B, 1));
    net.drain();
    assert_eq!(net.association(B).route(), local(B, 2));
    // what was outstanding goes out again, and what is new goes out, from the other
    net.send(B, 0, synthetic(1000, 1000));
    let sent = data_after(&net, B, now);
    assert_eq!(sent, [(0, address(B, 2), address(A, 1)); 2]);
    net.ids[B] = net.ends[B].connect(now, &[address(A, 7)], PORT);
    net.drain();
    let (source, offered) = net
        .log
        .iter()
        .find_map(|d| match &d.sctp().chunks[..] {
            [Chunk::Init(init)] => Some((d.packet.ip.source, &init.parameters)),
            _ => None,
        })
        .expect("an INIT");
    assert_eq!(source, address(B, 2));
    assert!(!offered.contains(&Parameter::Ipv6Address(address(B, 1))));
    // it has it again: both may send from it
    net.ends[B].local_address_added(now, local(B, 1));
    assert!(net.ends[B].connect(now, &[address(A, 8)], PORT).is_some());
    net.log.clear();
    net.drain();
    assert!(net.log.iter().any(|d| d.packet.ip.destination == address(A, 8)));
    // and without any it stands still, and tells so
    net.events[B].clear();
    for n in [1, 2] {
        net.ends[B].local_address_removed(now, address(B, n));
    }
    net.log.clear();
    net.run_for(Duration::from_secs(10));
    assert!(net.has_event(B, &Event::Stranded));
    assert!(net.log.iter().all(|d| d.from == A));
    assert_eq!(net.ends[B].connect(net.now, &[address(A, 9)], PORT), None);
}
