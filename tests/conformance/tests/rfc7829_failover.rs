//! RFC 7829: destinations that have potentially failed, and quick failover.

use segue_conformance::expect;
use segue_conformance::script::chunks::sack;
use segue_conformance::script::{Script, ms, peer, quiet};
use segue_proto::sctp::{Config, Event, PathState};
use segue_wire::sctp::{Chunk, Parameter};

/// A peer of two confirmed addresses.
fn two_paths(pf_max_retrans: Option<u32>) -> Script {
    let config = Config {
        pf_max_retrans,
        ..quiet()
    };
    let mut t = Script::established_with(config, 1, vec![Parameter::Ipv6Address(peer(2))]);
    let info = expect!(t, Chunk::Heartbeat(info) => info.clone());
    t.send_from(peer(2), [Chunk::HeartbeatAck(info)]);
    t.events.clear();
    t
}

fn state_of(t: &Script, n: u16) -> Option<PathState> {
    t.association()
        .paths()
        .find(|p| p.destination == peer(n))
        .map(|p| p.state)
}

#[test]
fn s3_1_without_pfmr_one_timeout_does_not_move_new_data() {
    let mut t = two_paths(None);
    t.user_sends(10);
    t.wait(ms(1000));
    t.send_from(peer(2), [sack(t.our_tsn)]);
    t.forget();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
}

#[test]
fn s3_with_a_pfmr_of_0_the_first_timeout_moves_new_data_to_an_active_address() {
    let mut t = two_paths(Some(0));
    t.user_sends(10);
    t.wait(ms(1000));
    assert_eq!(state_of(&t, 1), Some(PathState::PotentiallyFailed));
    t.forget();
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(2)));
    // rule 1: the user is told
    t.expect_event(&Event::PathStateChanged {
        address: peer(1),
        state: PathState::PotentiallyFailed,
    });
}

#[test]
fn s3_a_potentially_failed_address_gets_heartbeats_every_rto_and_comes_back_when_one_is_answered() {
    // even where idle addresses get none
    let mut t = two_paths(Some(0));
    t.user_sends(10);
    t.wait(ms(1000));
    t.send_from(peer(2), [sack(t.our_tsn)]);
    let heartbeat = loop {
        let sent = t.receive();
        if let [Chunk::Heartbeat(info)] = &sent.chunks[..] {
            assert_eq!(sent.destination, peer(1));
            break info.clone();
        }
    };
    t.forget();
    t.send([Chunk::HeartbeatAck(heartbeat)]);
    assert_eq!(state_of(&t, 1), Some(PathState::Active));
    t.user_sends(10);
    expect!(t, Chunk::Data(_));
    assert_eq!(t.last.as_ref().map(|p| p.destination), Some(peer(1)));
}

#[test]
fn s3_unanswered_heartbeats_make_it_inactive_at_path_max_retrans() {
    let mut t = two_paths(Some(0));
    t.user_sends(10);
    t.wait(ms(1000));
    t.send_from(peer(2), [sack(t.our_tsn)]);
    // what goes to the other address keeps the association alive
    for _ in 0..300 {
        t.wait(ms(1000));
        let sent = t.take_all();
        for packet in sent.iter().filter(|p| p.destination == peer(2)) {
            if let [Chunk::Heartbeat(info)] = &packet.chunks[..] {
                t.send_from(peer(2), [Chunk::HeartbeatAck(info.clone())]);
            }
        }
        if state_of(&t, 1) == Some(PathState::Inactive) {
            let path = t.association().paths().find(|p| p.destination == peer(1));
            assert_eq!(path.map(|p| p.error_count), Some(6), "Path.Max.Retrans is 5");
            return;
        }
    }
    panic!("the address never became inactive");
}

#[test]
fn s3_if_all_addresses_have_failed_data_goes_to_one_of_them_all_the_same() {
    let mut t = two_paths(Some(0));
    for _ in 0..3 {
        t.user_sends(10);
        t.wait(ms(3000));
    }
    let data = t.take_all();
    assert!(
        data.iter()
            .filter(|p| matches!(p.chunks[0], Chunk::Data(_)))
            .count()
            > 3
    );
    assert!(t.association().is_established());
}
