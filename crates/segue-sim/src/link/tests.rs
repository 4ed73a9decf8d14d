use super::*;
use crate::link_trace::Own;
use segue_proto::units::Packets;

fn config(service: Service) -> LinkConfig {
    LinkConfig {
        rate: BitRate::from_bits_per_second(1_000_000),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(Packets::new(3)),
        loss: LossModel::Bernoulli { probability: 0.1 },
        jitter: Duration::from_millis(2),
        reorder: false,
        duplicate: 0.05,
        corrupt: 0.05,
        mtu: None,
        service,
    }
}

/// Offers packets at random times; gives (time, packet, fate) of arrivals and the packets refused.
fn drive(mut link: Link) -> (Vec<(Instant, u32, Fate)>, Vec<u32>) {
    let mut scheduler = Scheduler::default();
    let mut offers = Stream::new(2, "offers");
    let (mut arrivals, mut refused) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    let mut run = |link: &mut Link, scheduler: &mut Scheduler, end| {
        while let Some((at, event)) = scheduler.pop_until(end) {
            match event {
                Event::LinkArrival(0) => {
                    let arrival = link.on_arrival(scheduler);
                    arrivals.push((at, arrival.packet.0, arrival.fate));
                }
                Event::LinkDeparture { generation, .. } => {
                    link.on_departure(at, generation, scheduler, |p| PacketRef(p.0 + 10_000));
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    };
    for n in 0..2000 {
        now += Duration::from_nanos(offers.below(12_000_000));
        run(&mut link, &mut scheduler, now);
        let length = 200 + offers.below(1300) as u32;
        if !link.enqueue(now, PacketRef(n), length, &mut scheduler, || {
            PacketRef(n + 10_000)
        }) {
            refused.push(n);
        }
    }
    run(&mut link, &mut scheduler, Instant::MAX);
    (arrivals, refused)
}

#[test]
fn fifo_and_head_of_line_agree_on_a_constant_link() {
    let link = |service| Link::new(0, config(service), Stream::new(1, "link"));
    let fifo = drive(link(Service::Fifo));
    let line = drive(link(Service::HeadOfLine));
    assert!(!fifo.1.is_empty(), "the queue never filled");
    assert_eq!(fifo, line);
    let ms = Duration::from_millis;
    let set_up = |service| drive(link(service).with_set_up(ms(20), ms(2)));
    assert_eq!(set_up(Service::Fifo), set_up(Service::HeadOfLine));
    assert_ne!(set_up(Service::Fifo), fifo);
}

#[test]
fn a_bearer_is_set_up_for_the_first_packet_and_stays_for_those_that_come_soon() {
    for service in [Service::Fifo, Service::HeadOfLine] {
        let mut config = config(service);
        (config.loss, config.jitter, config.duplicate, config.corrupt) =
            (LossModel::None, Duration::ZERO, 0.0, 0.0);
        let ms = Duration::from_millis;
        let mut link = Link::new(0, config, Stream::new(1, "link")).with_set_up(ms(150), ms(500));
        let mut scheduler = Scheduler::default();
        let mut arrived = Vec::new();
        let mut run = |link: &mut Link, scheduler: &mut Scheduler, end| {
            while let Some((at, event)) = scheduler.pop_until(end) {
                match event {
                    Event::LinkArrival(0) => {
                        link.on_arrival(scheduler);
                        arrived.push(at.as_nanos() / 1_000_000);
                    }
                    Event::LinkDeparture { generation, .. } => {
                        link.on_departure(at, generation, scheduler, |p| p);
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
        };
        // 10 ms to send, 10 ms of delay: the second comes during the set-up, the third while the bearer is kept, the
        // fourth and the sixth after it was let go, for want of packets and with the sender
        let offers = [0, 100, 670, 1181, 1400, 1500];
        for (n, at) in offers.into_iter().enumerate() {
            let now = Instant::ZERO + ms(at);
            run(&mut link, &mut scheduler, now);
            if n == 5 {
                link.abandon(now, &mut scheduler);
            }
            let copy = || unreachable!();
            assert!(link.enqueue(now, PacketRef(n as u32), 1250, &mut scheduler, copy));
        }
        run(&mut link, &mut scheduler, Instant::MAX);
        assert_eq!(arrived, [170, 180, 690, 1351, 1420, 1670], "{service:?}");
    }
}

#[test]
fn a_packet_takes_its_transmission_time_and_the_delay() {
    let mut scheduler = Scheduler::default();
    let mut config = config(Service::Fifo);
    (config.loss, config.jitter, config.duplicate, config.corrupt) =
        (LossModel::None, Duration::ZERO, 0.0, 0.0);
    let mut link = Link::new(0, config, Stream::new(1, "link"));
    for n in 0..5 {
        let taken = link.enqueue(
            Instant::ZERO,
            PacketRef(n),
            1250,
            &mut scheduler,
            || unreachable!(),
        );
        assert_eq!(taken, n < 4, "one is sent, three wait, the fifth is refused");
    }
    let times: Vec<u64> = std::iter::from_fn(|| {
        let (at, _) = scheduler.pop_until(Instant::MAX)?;
        link.on_arrival(&mut scheduler);
        Some(at.as_nanos() / 1_000_000)
    })
    .collect();
    assert_eq!(times, [20, 30, 40, 50]);
}

#[test]
fn an_urgent_packet_goes_behind_the_one_being_sent_and_before_all_others_even_if_the_queue_is_full() {
    let mut scheduler = Scheduler::default();
    let mut config = config(Service::HeadOfLine);
    (config.loss, config.jitter, config.duplicate, config.corrupt) =
        (LossModel::None, Duration::ZERO, 0.0, 0.0);
    let mut link = Link::new(0, config, Stream::new(1, "link"));
    let mut offer = |n, urgent| {
        let copy = || unreachable!();
        link.enqueue_as(Instant::ZERO, PacketRef(n), 100, urgent, &mut scheduler, copy)
    };
    let taken: Vec<bool> = (0..5).map(|n| offer(n, false)).collect();
    assert_eq!(taken, [true, true, true, true, false]);
    assert!(offer(10, true) && offer(11, true));
    let mut arrived = Vec::new();
    while let Some((at, event)) = scheduler.pop_until(Instant::MAX) {
        match event {
            Event::LinkArrival(0) => arrived.push(link.on_arrival(&mut scheduler).packet.0),
            Event::LinkDeparture { generation, .. } => {
                link.on_departure(at, generation, &mut scheduler, |p| p);
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(arrived, [0, 10, 11, 1, 2, 3]);
}

#[test]
fn a_bearer_whose_link_went_down_while_it_was_set_up_is_set_up_anew() {
    let ms = Duration::from_millis;
    for service in [Service::Fifo, Service::HeadOfLine] {
        let plain = LinkConfig {
            delay: ms(200),
            loss: LossModel::None,
            jitter: Duration::ZERO,
            duplicate: 0.0,
            corrupt: 0.0,
            ..config(service)
        };
        let mut link = Link::new(0, plain, Stream::new(1, "link")).with_set_up(ms(500), ms(20));
        let mut scheduler = Scheduler::default();
        let copy = || unreachable!();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(link.enqueue(at(0), PacketRef(0), 1250, &mut scheduler, copy));
        link.go_down(at(100), &mut scheduler);
        link.come_up();
        assert!(link.enqueue(at(120), PacketRef(1), 1250, &mut scheduler, copy));
        let mut last = None;
        while let Some((at, event)) = scheduler.pop_until(Instant::MAX) {
            match event {
                Event::LinkArrival(0) => {
                    let arrival = link.on_arrival(&mut scheduler);
                    last = Some((at, arrival.packet.0, arrival.fate));
                }
                Event::LinkDeparture { generation, .. } => {
                    link.on_departure(at, generation, &mut scheduler, |p| p);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        assert_eq!(last, Some((at(830), 1, Fate::Arrives)), "{service:?}");
    }
}

/// Packets that arrive, of a hundred that are sent over a link which would have two of each, one every millisecond.
fn arriving(mut link: Link) -> usize {
    let mut scheduler = Scheduler::default();
    let mut arrived = 0;
    let mut run = |link: &mut Link, scheduler: &mut Scheduler, end| {
        while scheduler.pop_until(end).is_some() {
            let fate = link.on_arrival(scheduler).fate;
            arrived += usize::from(matches!(fate, Fate::Arrives | Fate::Repeated));
        }
    };
    for n in 0..100 {
        let now = Instant::ZERO + Duration::from_millis(u64::from(n));
        run(&mut link, &mut scheduler, now);
        let copy = || PacketRef(n + 100);
        assert!(link.enqueue(now, PacketRef(n), 100, &mut scheduler, copy));
    }
    run(&mut link, &mut scheduler, Instant::MAX);
    arrived
}

#[test]
fn nothing_is_duplicated_of_what_is_lost_while_everything_is() {
    let of = |loss| {
        let doubling = LinkConfig {
            loss,
            jitter: Duration::ZERO,
            duplicate: 1.0,
            corrupt: 0.0,
            ..config(Service::Fifo)
        };
        Link::new(0, doubling, Stream::new(1, "link"))
    };
    assert_eq!(arriving(of(LossModel::None)), 200);
    // a packet of 100 bytes has been sent 0.8 ms later
    let silent = |loss| Silence {
        from: Instant::ZERO + Duration::from_millis(20),
        until: Some(Instant::ZERO + Duration::from_millis(60)),
        loss,
    };
    assert_eq!(
        arriving(of(LossModel::None).with_silences(vec![silent(1.0)])),
        120
    );
    // of one that is lost to a silence there is no copy either way
    let partly = arriving(of(LossModel::None).with_silences(vec![silent(0.5)]));
    assert!(
        partly.is_multiple_of(2) && (130..190).contains(&partly),
        "{partly}"
    );
    let own = Own {
        rate_bps: 1e6,
        delay: Duration::from_millis(10),
    };
    let trace = LinkTrace::csv("time_s,loss\n0,0\n0.05,1\n", own).unwrap();
    assert_eq!(
        arriving(of(LossModel::None).with_trace(Some(Arc::new(trace)))),
        100
    );
    let fades = LossModel::Fades {
        probability: 0.05,
        duration: Duration::from_millis(10),
    };
    let faded = arriving(of(fades));
    assert!(faded.is_multiple_of(2) && faded < 160, "{faded}");
    assert_eq!(arriving(of(LossModel::Bernoulli { probability: 1.0 })), 0);
    // by chance one of the two is lost, as with netem
    let lossy = arriving(of(LossModel::Bernoulli { probability: 0.3 }));
    assert!((155..185).contains(&lossy), "{lossy}");
}

/// A link of 1 Mbit/s and 10 ms, on which every packet arrives as it was sent. One of 1250 bytes takes 10 ms to be sent.
fn plain(service: Service) -> LinkConfig {
    LinkConfig {
        loss: LossModel::None,
        jitter: Duration::ZERO,
        duplicate: 0.0,
        corrupt: 0.0,
        ..config(service)
    }
}

type Loser = fn(&mut Link, Instant, &mut Scheduler) -> Vec<PacketRef>;

/// Offers packets 0 to 3 at once and loses what is there after `lost_at` ms; then the link is up, and is offered packet 4 a
/// millisecond later. Gives what was lost, and the time of each arrival in ms.
fn interrupted(mut link: Link, length: u32, lost_at: u64, lose: Loser) -> (Vec<u32>, Vec<(u64, u32)>) {
    let mut scheduler = Scheduler::default();
    let mut arrived = Vec::new();
    let mut run = |link: &mut Link, scheduler: &mut Scheduler, end| {
        let mut last = Instant::ZERO;
        while let Some((at, event)) = scheduler.pop_until(end) {
            assert!(at >= last, "time goes back");
            last = at;
            match event {
                Event::LinkArrival(0) => {
                    let arrival = link.on_arrival(scheduler);
                    arrived.push((at.as_nanos() / 1_000_000, arrival.packet.0));
                }
                Event::LinkDeparture { generation, .. } => {
                    link.on_departure(at, generation, scheduler, |p| PacketRef(p.0 + 100));
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    };
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let offer = |link: &mut Link, scheduler: &mut Scheduler, now, n: u32| {
        let taken = link.enqueue(now, PacketRef(n), length, scheduler, || PacketRef(n + 100));
        assert!(taken);
    };
    for n in 0..4 {
        offer(&mut link, &mut scheduler, at(0), n);
    }
    run(&mut link, &mut scheduler, at(lost_at));
    let lost = lose(&mut link, at(lost_at), &mut scheduler);
    link.come_up();
    offer(&mut link, &mut scheduler, at(lost_at + 1), 4);
    run(&mut link, &mut scheduler, Instant::MAX);
    (lost.into_iter().map(|packet| packet.0).collect(), arrived)
}

#[test]
fn what_never_left_is_given_back_and_does_not_hold_up_what_is_sent_later() {
    // whether or not random numbers are drawn for packets
    for loss in [LossModel::None, LossModel::Bernoulli { probability: 0.0 }] {
        for service in [Service::Fifo, Service::HeadOfLine] {
            let link = || {
                Link::new(
                    0,
                    LinkConfig {
                        loss,
                        ..plain(service)
                    },
                    Stream::new(1, "link"),
                )
            };
            // the first has left, the second is being sent
            let abandoned = interrupted(link(), 1250, 15, Link::abandon);
            assert_eq!(abandoned, (vec![1, 2, 3], vec![(20, 0), (36, 4)]), "{service:?}");
            let down = interrupted(link(), 1250, 15, Link::go_down);
            assert_eq!(down, (vec![0, 1, 2, 3], vec![(36, 4)]), "{service:?}");
        }
    }
}

#[test]
fn a_packet_that_never_left_is_given_back_with_its_copy() {
    let doubling = LinkConfig {
        duplicate: 1.0,
        ..plain(Service::Fifo)
    };
    let link = Link::new(0, doubling, Stream::new(1, "link"));
    let (lost, arrived) = interrupted(link, 1250, 15, Link::abandon);
    assert_eq!(lost, [1, 101, 2, 102, 3, 103]);
    assert_eq!(arrived, [(20, 0), (20, 100), (36, 4), (36, 104)]);
}

#[test]
fn what_never_left_uses_up_nothing_of_a_trace() {
    let trace = Arc::new(LinkTrace::mahimahi("1000\n").unwrap());
    for service in [Service::Fifo, Service::HeadOfLine] {
        for (lose, arrived) in [
            (Link::abandon as Loser, vec![(1010, 0), (2010, 4)]),
            (Link::go_down, vec![(2010, 4)]),
        ] {
            let link = Link::new(0, plain(service), Stream::new(1, "link"));
            let link = link.with_trace(Some(trace.clone()));
            assert_eq!(interrupted(link, 1500, 1005, lose).1, arrived, "{service:?}");
        }
    }
}

#[test]
fn a_link_that_was_down_is_as_fast_as_its_trace_has_it() {
    // a way of a second in the trace, of 10 ms of its own
    let own = Own {
        rate_bps: 1e6,
        delay: Duration::from_millis(10),
    };
    let trace = Arc::new(LinkTrace::csv("time_s,rtt_s\n0,2\n", own).unwrap());
    let link = Link::new(0, plain(Service::Fifo), Stream::new(1, "link")).with_trace(Some(trace));
    let (lost, arrived) = interrupted(link, 1250, 15, Link::go_down);
    assert_eq!((lost.len(), arrived), (4, vec![(1026, 4)]));
}
