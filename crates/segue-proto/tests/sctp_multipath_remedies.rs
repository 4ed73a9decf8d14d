//! What is used beside CMT against a receive buffer that a slow path blocks: schedulers, buffer splitting, opportunistic
//! retransmission, NR-SACK, coupled windows.

use crate::common::*;
use segue_proto::congestion::Coupling;
use segue_proto::sctp::multipath::{BufferSplit, SchedulerKind};
use segue_proto::sctp::{Config, MultipathConfig, Profile, SackRoute};
use segue_proto::{Duration, Instant};
use segue_wire::Tsn;
use segue_wire::sctp::{Chunk, GapAckBlock, NrSack, Sack};

const MESSAGE: u32 = 1400;

fn multipath(receive_buffer: u32, multipath: MultipathConfig) -> Config {
    Config {
        receive_buffer,
        send_buffer: 4 << 20,
        rto_min: ms(500),
        sack_route: SackRoute::Arrival,
        multipath: Some(multipath),
        ..Config::new(Profile::Rfc4960)
    }
}

/// A link from A to B: bit/s, one-way delay, queue in packets. Back, the delay alone.
type Link = (u64, Duration, u64);

const FAST: Link = (2_000_000, ms(20), 30);
const SLOW: Link = (250_000, ms(80), 30);

/// The links to B's two addresses.
fn join(net: &mut Net, links: [Link; 2]) {
    let mut free_at = [Instant::ZERO; 2];
    net.rule = Box::new(move |d| {
        let second = [d.packet.ip.destination, d.packet.ip.source].contains(&address(B, 2));
        let (bit_rate, delay, queue) = links[usize::from(second)];
        if d.from == B {
            return vec![delay];
        }
        let bits = 8 * d.packet.to_vec().len() as u64;
        let lasts = Duration::from_nanos(bits * 1_000_000_000 / bit_rate);
        let free = &mut free_at[usize::from(second)];
        let begins = (*free).max(d.at);
        if begins.since(d.at) > lasts * queue {
            return Vec::new();
        }
        *free = begins + lasts;
        vec![free.since(d.at) + delay]
    });
}

/// Sends `messages` messages over both links; returns when nine in ten had arrived, in whatever order, for a loss that
/// waits for a timeout at the very end, or does not, is chance; and the network when all can be read.
fn transfer(config: Config, messages: u32) -> (Duration, Net) {
    let mut net = Net::established(config, [1, 2]);
    net.keep_log = false;
    join(&mut net, [FAST, SLOW]);
    let begins = net.now;
    let mut sent = 0;
    let mut most_at = None;
    while net.messages[B].len() < messages as usize {
        while sent < messages && net.association(A).send_space() > MESSAGE as usize {
            net.send(A, 0, synthetic(u64::from(sent * MESSAGE), MESSAGE));
            sent += 1;
        }
        assert!(
            net.step(begins + Duration::from_secs(120)),
            "the transfer stopped"
        );
        if most_at.is_none() && arrived(&net) * 10 >= u64::from(messages) * 9 {
            most_at = Some(net.now);
        }
        net.association(A).check_invariants().expect("A");
        net.association(B).check_invariants().expect("B");
    }
    for (i, message) in net.messages[B].iter().enumerate() {
        let sent = synthetic(i as u64 * u64::from(MESSAGE), MESSAGE);
        assert_eq!(message.parts[..], [sent]);
    }
    (most_at.expect("nine in ten").since(begins), net)
}

/// Chunks that B has, each counted once.
fn arrived(net: &Net) -> u64 {
    net.association(B).counters().data_chunks_received
}

const SMALL: u32 = 64 * 1024;
const LARGE: u32 = 1 << 20;
const MESSAGES: u32 = 1000;
/// Nine in ten messages over the fast link alone, without a pause; over the slow one, 42 s; over both, 4.7 s.
const FAST_ALONE: Duration = ms(5300);

#[test]
fn every_scheduler_carries_everything_and_uses_both_paths() {
    use SchedulerKind as K;
    for scheduler in [
        K::RoundRobin,
        K::Turns,
        K::FillFirst,
        K::LowestRtt,
        K::LargestCwnd,
        K::Blest,
        K::Ecf,
    ] {
        let config = MultipathConfig {
            scheduler,
            ..MultipathConfig::default()
        };
        let took = transfer(multipath(LARGE, config), MESSAGES).0;
        assert!(took < FAST_ALONE, "{scheduler:?}: {took:?}");
    }
}

#[test]
fn where_the_peers_window_is_the_limit_round_robin_gives_each_path_the_same() {
    let config = multipath(16 * 1024, MultipathConfig::default());
    let mut net = Net::established(config, [1, 2]);
    join(&mut net, [FAST, SLOW]);
    for i in 0..MESSAGES {
        net.send(A, 0, synthetic(u64::from(i * MESSAGE), MESSAGE));
    }
    net.run_for(ms(20_000));
    let begins = net.now;
    net.run_for(ms(10_000));
    let on = |n| {
        let own = net
            .log
            .iter()
            .filter(|d| d.from == A && d.at >= begins && d.packet.ip.destination == address(B, n));
        own.flat_map(Departure::data).count()
    };
    let (first, second) = (on(1), on(2));
    assert!(second > 50 && first.abs_diff(second) <= 2, "{first} and {second}");
}

#[test]
fn blest_waits_for_the_fast_path_where_the_buffer_is_small() {
    let with = |scheduler| {
        let config = MultipathConfig {
            scheduler,
            ..MultipathConfig::default()
        };
        transfer(multipath(SMALL, config), MESSAGES)
    };
    let (turns, net) = with(SchedulerKind::RoundRobin);
    assert_eq!(net.association(A).counters().multipath.waits, 0);
    let (blest, net) = with(SchedulerKind::Blest);
    assert!(net.association(A).counters().multipath.waits > 0);
    assert!(blest < turns, "{blest:?} against {turns:?}");
}

#[test]
fn a_path_that_has_used_up_its_part_of_the_receive_buffer_waits() {
    let used_up = |buffer_split| {
        let config = MultipathConfig {
            buffer_split,
            ..MultipathConfig::default()
        };
        let (_, net) = transfer(multipath(SMALL, config), MESSAGES);
        net.association(A).counters().multipath.shares_used_up
    };
    assert_eq!(used_up(BufferSplit::None), 0);
    // 4 MB of send buffer are more than any path can use
    assert_eq!(used_up(BufferSplit::Sender), 0);
    assert!(used_up(BufferSplit::Receiver) > 0);
    assert!(used_up(BufferSplit::Both) > 0);
}

#[test]
fn a_path_that_holds_the_others_up_is_helped_out_and_penalised() {
    let with = |opportunistic| {
        let config = MultipathConfig {
            opportunistic,
            ..MultipathConfig::default()
        };
        transfer(multipath(SMALL, config), MESSAGES)
    };
    let (without, net) = with(false);
    assert_eq!(net.association(A).counters().multipath.chunks_rescheduled, 0);
    let (with, net) = with(true);
    let counters = net.association(A).counters().multipath;
    assert!(
        counters.chunks_rescheduled > 0 && counters.penalties > 0,
        "{counters:?}"
    );
    assert!(counters.penalties <= counters.chunks_rescheduled);
    assert!(with < without, "{with:?} against {without:?}");
}

#[test]
fn every_coupling_carries_everything() {
    use Coupling as C;
    let all = [C::Uncoupled, C::Lia, C::Olia, C::Balia, C::Rp1, C::Rp2];
    let times = all.map(|congestion| {
        let config = MultipathConfig {
            congestion,
            ..MultipathConfig::default()
        };
        transfer(multipath(LARGE, config), MESSAGES).0
    });
    // the paths share nothing here: who couples them gains nothing by it
    assert!(times.iter().all(|t| *t >= times[0] - ms(100)), "{times:?}");
    assert!(times.iter().all(|t| *t < FAST_ALONE), "{times:?}");
}

fn nr_sacks() -> MultipathConfig {
    MultipathConfig {
        nr_sack: true,
        ..MultipathConfig::default()
    }
}

/// The names of B's acknowledgements while A sends 60 messages over two links.
fn acknowledgements(a: MultipathConfig, b: MultipathConfig) -> Vec<&'static str> {
    let mut net = Net::new([multipath(LARGE, a), multipath(LARGE, b)], [1, 2], ms(10), 1);
    net.connect();
    net.run_for(ms(500));
    net.log.clear();
    join(&mut net, [FAST, SLOW]);
    for i in 0..60 {
        net.send(A, 0, synthetic(u64::from(i * MESSAGE), MESSAGE));
    }
    net.run_for(ms(5000));
    assert_eq!(net.messages[B].len(), 60);
    let from_b = net.log.iter().filter(|d| d.from == B);
    let chunks = from_b.flat_map(|d| d.sctp().chunks.clone());
    chunks
        .filter_map(|c| match c {
            Chunk::Sack(_) => Some("SACK"),
            Chunk::NrSack(n) => {
                assert!(
                    n.sack.gap_ack_blocks.is_empty(),
                    "all that is kept is kept for good"
                );
                Some("NR-SACK")
            }
            _ => None,
        })
        .collect()
}

#[test]
fn nr_sacks_are_sent_if_both_ends_have_them() {
    let both = acknowledgements(nr_sacks(), nr_sacks());
    assert!(
        both.len() > 10 && both.iter().all(|name| *name == "NR-SACK"),
        "{both:?}"
    );
    for (a, b) in [
        (nr_sacks(), MultipathConfig::default()),
        (MultipathConfig::default(), nr_sacks()),
    ] {
        let one = acknowledgements(a, b);
        assert!(
            one.len() > 10 && one.iter().all(|name| *name == "SACK"),
            "{one:?}"
        );
    }
}

#[test]
fn what_an_nr_sack_reports_takes_no_room_in_the_send_buffer() {
    let with = |config: MultipathConfig| {
        let config = Config {
            send_buffer: SMALL,
            ..multipath(LARGE, config)
        };
        transfer(config, MESSAGES).0
    };
    let (sack, nr_sack) = (with(MultipathConfig::default()), with(nr_sacks()));
    assert!(
        nr_sack.as_secs_f64() < 0.9 * sack.as_secs_f64(),
        "{nr_sack:?} against {sack:?}"
    );
}

#[test]
fn a_receiver_cannot_take_back_what_it_promised_to_keep() {
    let mut net = Net::established(multipath(LARGE, nr_sacks()), [1, 2]);
    let tag = net.tag_of(A);
    net.run_for(ms(1000));
    net.log.clear();
    net.rule = Box::new(|_| Vec::new());
    let space = net.association(A).send_space();
    for i in 0..3 {
        net.send(A, 0, synthetic(i * 1400, MESSAGE));
    }
    let first = net
        .log
        .iter()
        .flat_map(Departure::data)
        .map(|d| d.tsn)
        .next()
        .expect("DATA");
    let block = |start, end| GapAckBlock { start, end };
    let acknowledge = |net: &mut Net, nr: Option<GapAckBlock>| {
        let nr_sack = NrSack {
            sack: Sack {
                cumulative_tsn_ack: first.previous(),
                a_rwnd: LARGE,
                gap_ack_blocks: Default::default(),
                duplicate_tsns: Box::default(),
                data_packets: 0,
            },
            nr_gap_ack_blocks: nr.into_iter().collect(),
        };
        let packet = net.forge_with_tag(A, address(B, 1), tag, [Chunk::NrSack(Box::new(nr_sack))]);
        net.inject(A, packet);
        net.association(A).check_invariants().expect("A");
    };
    acknowledge(&mut net, Some(block(2, 3)));
    assert_eq!(net.association(A).send_space(), space - MESSAGE as usize);
    // nothing is left to be sent again, whatever comes now
    acknowledge(&mut net, None);
    assert_eq!(net.association(A).send_space(), space - MESSAGE as usize);
    net.log.clear();
    net.run_for(ms(3000));
    let again: Vec<Tsn> = net.log.iter().flat_map(Departure::data).map(|d| d.tsn).collect();
    assert!(
        !again.is_empty() && again.iter().all(|t| *t == first),
        "{again:?}"
    );
    // blocks that cannot be are refused as those of a SACK are
    let refused = |net: &Net| net.association(A).counters().refused.impossible_acks;
    assert_eq!(refused(&net), 0);
    acknowledge(&mut net, Some(block(2, 4)));
    assert_eq!(refused(&net), 1);
    acknowledge(&mut net, Some(block(3, 2)));
    assert_eq!(refused(&net), 2);
    // with the association all of it goes, what is kept over there as well
    let abort = Chunk::Abort {
        reflected_tag: false,
        causes: Vec::new(),
    };
    let packet = net.forge_with_tag(A, address(B, 1), tag, [abort]);
    net.inject(A, packet);
    net.association(A).check_invariants().expect("A");
    assert_eq!(net.association(A).send_space(), 4 << 20);
}

#[test]
fn a_path_that_the_scheduler_passes_over_is_watched_by_heartbeats() {
    // RFC 9260 section 8.3: to ask whether it has room is not to send
    let config = MultipathConfig {
        scheduler: SchedulerKind::LowestRtt,
        ..MultipathConfig::default()
    };
    let mut net = Net::established(multipath(LARGE, config), [1, 2]);
    join(&mut net, [FAST, SLOW]);
    let to_second = |d: &&Departure| d.packet.ip.destination == address(B, 2);
    // more than the first can take at once, and then little
    for i in 0..100 {
        net.send(A, 0, synthetic(i * u64::from(MESSAGE), MESSAGE));
    }
    net.run_for(Duration::from_secs(10));
    let with_data = |d: &Departure| d.data().next().is_some();
    assert!(net.log.iter().filter(to_second).any(with_data));
    let little = |net: &mut Net, messages: u64| {
        for i in 0..messages {
            net.send(A, 0, synthetic(i * 100, 100));
            // two of them within the delay of a SACK
            net.run_for(ms(100));
        }
    };
    // until what is known of the first path has nothing of its queue
    little(&mut net, 300);
    net.log.clear();
    little(&mut net, 3300);
    let second: Vec<_> = net.log.iter().filter(to_second).collect();
    assert!(!second.iter().any(|d| with_data(d)));
    let is_heartbeat = |d: &&&Departure| names(d.sctp()).contains(&"HEARTBEAT");
    let heartbeats = second.iter().filter(is_heartbeat).count();
    assert!(heartbeats >= 9, "{heartbeats}");
}
