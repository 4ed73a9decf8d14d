//! Radio channels: one shared half-duplex medium on which beacons, data and signalling contend.
//!
//! The model is the distributed coordination function of IEEE 802.11 (carrier sense with slotted binary exponential
//! back-off, positive acknowledgement and retries) among the stations of a channel, each frame costing its air time.
//! Left out: hidden stations (all stations of a channel hear each other), capture, rate adaptation, EIFS, RTS/CTS, and
//! the back-off that follows a station's last frame.

use crate::scheduler::{Event, Scheduler};
use crate::store::PacketRef;
use segue_proto::random::Stream;
use segue_proto::units::BitRate;
use segue_proto::{Duration, Instant};
use std::collections::VecDeque;

/// Timing and sizes of a channel. Defaults are those of IEEE 802.11b with the long preamble.
#[derive(Clone, PartialEq, Debug)]
pub struct ChannelConfig {
    /// Rate of unicast frames.
    pub rate: BitRate,
    /// Rate of beacons, multicast frames and acknowledgements.
    pub basic_rate: BitRate,
    /// Slot time.
    pub slot: Duration,
    /// Short inter-frame space.
    pub sifs: Duration,
    /// DCF inter-frame space.
    pub difs: Duration,
    /// Preamble and PLCP header.
    pub preamble: Duration,
    /// MAC header, LLC/SNAP header and FCS around a packet, bytes.
    pub overhead_bytes: u32,
    /// Acknowledgement frame, bytes.
    pub ack_bytes: u32,
    /// Least contention window, slots less one.
    pub cw_min: u32,
    /// Greatest contention window, slots less one.
    pub cw_max: u32,
    /// Times a unicast frame is sent before it is dropped.
    pub attempts: u32,
    /// Frames waiting per station.
    pub queue_packets: usize,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            rate: BitRate::from_bits_per_second(11_000_000),
            basic_rate: BitRate::from_bits_per_second(1_000_000),
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            preamble: Duration::from_micros(192),
            overhead_bytes: 36,
            ack_bytes: 14,
            cw_min: 31,
            cw_max: 1023,
            attempts: 7,
            queue_packets: 50,
        }
    }
}

/// A station of a channel, access points included. There may be any number of them: one costs nothing until it sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StationId(pub u32);

/// What a station sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A packet to one station, acknowledged and retried.
    Unicast {
        /// Receiver.
        to: StationId,
        /// Packet.
        packet: PacketRef,
        /// Packet length, bytes.
        length: u32,
        /// Goes before what is not urgent.
        urgent: bool,
    },
    /// A packet to all stations, sent once.
    Broadcast {
        /// Packet.
        packet: PacketRef,
        /// Packet length, bytes.
        length: u32,
        /// Goes before what is not urgent.
        urgent: bool,
    },
    /// A beacon, sent once.
    Beacon {
        /// Cell that it announces.
        cell: u16,
        /// Frame body, bytes.
        length: u32,
    },
}

impl Frame {
    /// Whether it goes before others.
    const fn is_urgent(&self) -> bool {
        match self {
            Self::Unicast { urgent, .. } | Self::Broadcast { urgent, .. } => *urgent,
            Self::Beacon { .. } => true,
        }
    }
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was received: by the addressee of a unicast frame, by everybody in reach otherwise.
    Sent(StationId, Frame),
    /// It was given up after its attempts, and the last one failed for want of a receiver in reach.
    OutOfReach(StationId, Frame),
    /// It was given up after its attempts, or sent once, and collided.
    Collided(StationId, Frame),
}

#[derive(Debug)]
struct Station {
    id: StationId,
    queue: VecDeque<Frame>,
    /// Back-off left, slots; drawn when the station begins to contend.
    backoff: Option<u32>,
    /// When it would begin to send if the medium stays idle.
    start: Option<Instant>,
    window: u32,
    attempts: u32,
}

impl Station {
    const fn new(id: StationId, window: u32, queue: VecDeque<Frame>) -> Self {
        Self {
            id,
            queue,
            backoff: None,
            start: None,
            window,
            attempts: 0,
        }
    }
}

/// A shared medium.
#[derive(Debug)]
pub struct Channel {
    index: u32,
    config: ChannelConfig,
    /// Those that have a frame: nobody else has a part in what happens. Lowest first.
    contending: Vec<Station>,
    /// Memory of queues, kept to be used again.
    queues: Vec<VecDeque<Frame>>,
    stream: Stream,
    /// Stations sending now, lowest first; empty while idle.
    sending: Vec<StationId>,
    idle_since: Instant,
    generation: u32,
}

impl Channel {
    /// A silent channel.
    #[must_use]
    pub fn new(index: u32, config: ChannelConfig, stream: Stream) -> Self {
        Self {
            index,
            config,
            contending: Vec::new(),
            queues: Vec::new(),
            stream,
            sending: Vec::new(),
            idle_since: Instant::ZERO,
            generation: 0,
        }
    }

    /// Queues a frame; beacons go before everything but a frame under way, urgent frames behind them. `false` if the queue
    /// is full (beacons are always taken: an access point sends its beacon as soon as the medium lets it).
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: StationId,
        frame: Frame,
        scheduler: &mut Scheduler,
    ) -> bool {
        let sending = self.sending.contains(&from);
        let place = self
            .place_of(from)
            .unwrap_or_else(|at| self.begin_to_contend(at, from));
        let station = &mut self.contending[place];
        // A frame that has been attempted keeps its place: its retry count is the station's.
        let behind = usize::from(sending || station.attempts > 0).min(station.queue.len());
        if matches!(frame, Frame::Beacon { .. }) {
            station.queue.insert(behind, frame);
        } else if frame.is_urgent() {
            let urgent = station.queue.iter().skip(behind).take_while(|f| f.is_urgent());
            let urgent = urgent.count();
            if urgent >= self.config.queue_packets {
                return false;
            }
            station.queue.insert(behind + urgent, frame);
        } else {
            if station.queue.len() >= self.config.queue_packets {
                return false;
            }
            station.queue.push_back(frame);
        }
        if self.sending.is_empty() && station.start.is_none() {
            // Medium idle: a station that finds it idle for DIFS sends at once (802.11 section 9.3.4.2).
            let ready = self.idle_since + self.config.difs;
            station.start = Some(if now >= ready && station.backoff.is_none() {
                now
            } else {
                let slots = draw(station, &mut self.stream);
                ready.max(now) + self.config.slot * u64::from(slots)
            });
            self.schedule_start(scheduler);
        }
        true
    }

    /// Drops the frames waiting at `from`, but for one under way, and gives them. Without that one the station has no part in
    /// the contention any more: if it was the next to send, whoever comes after it is. Count-downs freeze while the medium is
    /// busy and at no other time (802.11 section 9.3.4.3), so that nobody else's may wait for it. Retry count and contention
    /// window go with the frame: both are reset when it is discarded (sections 9.3.3 and 9.3.4.4).
    pub fn flush(&mut self, from: StationId, scheduler: &mut Scheduler) -> Vec<Frame> {
        let Ok(place) = self.place_of(from) else {
            return Vec::new();
        };
        if self.sending.contains(&from) {
            return self.contending[place].queue.drain(1..).collect();
        }
        let Station { mut queue, start, .. } = self.contending.remove(place);
        let frames = queue.drain(..).collect();
        self.queues.push(queue);
        if start.is_some_and(|start| self.first_start().is_none_or(|next| start < next)) {
            self.schedule_start(scheduler);
        }
        frames
    }

    /// A scheduled moment of the channel: a transmission begins or ends. `in_reach(from, to)` says whether a unicast
    /// receiver hears the sender now. Outcomes are appended.
    pub fn handle_event(
        &mut self,
        now: Instant,
        generation: u32,
        scheduler: &mut Scheduler,
        in_reach: impl Fn(StationId, StationId) -> bool,
        outcomes: &mut Vec<Outcome>,
    ) {
        if generation != self.generation {
            return;
        }
        if self.sending.is_empty() {
            self.begin(now, scheduler);
        } else {
            self.end(now, in_reach, outcomes);
            self.resume(now, scheduler);
        }
    }

    /// Air time of a frame with what follows it up to the end of its acknowledgement.
    #[must_use]
    pub fn air_time(&self, frame: &Frame) -> Duration {
        let c = &self.config;
        match frame {
            Frame::Unicast { length, .. } => {
                c.preamble
                    + c.rate.time_for(u64::from(c.overhead_bytes + length))
                    + c.sifs
                    + c.preamble
                    + c.basic_rate.time_for(u64::from(c.ack_bytes))
            }
            Frame::Broadcast { length, .. } | Frame::Beacon { length, .. } => {
                c.preamble + c.basic_rate.time_for(u64::from(c.overhead_bytes + length))
            }
        }
    }

    fn begin(&mut self, now: Instant, scheduler: &mut Scheduler) {
        let mut air_time = Duration::ZERO;
        for place in 0..self.contending.len() {
            let station = &mut self.contending[place];
            let (Some(start), Some(&frame)) = (station.start.take(), station.queue.front()) else {
                continue;
            };
            if start <= now {
                station.backoff = None;
                self.sending.push(station.id);
                air_time = air_time.max(self.air_time(&frame));
            } else {
                // The count-down freezes; a slot begun is counted again.
                let left = start
                    .since(now)
                    .as_nanos()
                    .div_ceil(self.config.slot.as_nanos().max(1));
                station.backoff = Some(left as u32);
            }
        }
        debug_assert!(!self.sending.is_empty(), "who was the next to send does");
        self.schedule(now + air_time, scheduler);
    }

    fn end(
        &mut self,
        now: Instant,
        in_reach: impl Fn(StationId, StationId) -> bool,
        outcomes: &mut Vec<Outcome>,
    ) {
        self.idle_since = now;
        let collided = self.sending.len() > 1;
        let mut sending = core::mem::take(&mut self.sending);
        for from in sending.drain(..) {
            let Ok(place) = self.place_of(from) else {
                continue;
            };
            let station = &mut self.contending[place];
            let Some(&frame) = station.queue.front() else {
                continue;
            };
            let (outcome, retry) = match frame {
                _ if collided => (
                    Outcome::Collided(from, frame),
                    matches!(frame, Frame::Unicast { .. }),
                ),
                Frame::Unicast { to, .. } if !in_reach(from, to) => (Outcome::OutOfReach(from, frame), true),
                _ => (Outcome::Sent(from, frame), false),
            };
            station.attempts += 1;
            if retry && station.attempts < self.config.attempts {
                station.window = (2 * station.window + 1).min(self.config.cw_max);
                continue;
            }
            station.queue.pop_front();
            (station.window, station.attempts) = (self.config.cw_min, 0);
            outcomes.push(outcome);
        }
        self.sending = sending;
        self.leave();
    }

    /// Where a station is among those that contend, or would be.
    fn place_of(&self, id: StationId) -> Result<usize, usize> {
        self.contending.binary_search_by_key(&id, |station| station.id)
    }

    /// A station has a part from now on, at this place.
    fn begin_to_contend(&mut self, place: usize, id: StationId) -> usize {
        let queue = self.queues.pop().unwrap_or_default();
        let station = Station::new(id, self.config.cw_min, queue);
        self.contending.insert(place, station);
        place
    }

    /// Those that have nothing to send have no part any more. They are as new: nothing is kept of them.
    fn leave(&mut self) {
        let gone = self.contending.extract_if(.., |station| station.queue.is_empty());
        self.queues.extend(gone.map(|station| station.queue));
    }

    /// The medium is idle again: every station with a frame counts down.
    fn resume(&mut self, now: Instant, scheduler: &mut Scheduler) {
        let ready = now + self.config.difs;
        for station in self.contending.iter_mut().filter(|s| !s.queue.is_empty()) {
            let slots = draw(station, &mut self.stream);
            station.start = Some(ready + self.config.slot * u64::from(slots));
        }
        self.schedule_start(scheduler);
    }

    /// When the first of those that count down begins to send.
    fn first_start(&self) -> Option<Instant> {
        self.contending.iter().filter_map(|station| station.start).min()
    }

    /// The first of those that count down is the next to send, and nobody that was so before.
    fn schedule_start(&mut self, scheduler: &mut Scheduler) {
        match self.first_start() {
            Some(start) => self.schedule(start, scheduler),
            None => self.generation = self.generation.wrapping_add(1),
        }
    }

    fn schedule(&mut self, at: Instant, scheduler: &mut Scheduler) {
        self.generation = self.generation.wrapping_add(1);
        scheduler.at(
            at,
            Event::Channel {
                channel: self.index,
                generation: self.generation,
            },
        );
    }
}

/// The station's back-off, drawn if it has none.
fn draw(station: &mut Station, stream: &mut Stream) -> u32 {
    *station
        .backoff
        .get_or_insert_with(|| stream.below(u64::from(station.window) + 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(channel: &mut Channel, scheduler: &mut Scheduler, reach: bool) -> Vec<(Instant, Outcome)> {
        let mut done = Vec::new();
        let mut outcomes = Vec::new();
        while let Some((now, Event::Channel { generation, .. })) = scheduler.pop_until(Instant::MAX) {
            channel.handle_event(now, generation, scheduler, |_, _| reach, &mut outcomes);
            done.extend(outcomes.drain(..).map(|o| (now, o)));
        }
        done
    }

    fn unicast(n: u32) -> Frame {
        Frame::Unicast {
            to: StationId(1),
            packet: PacketRef(n),
            length: 1000,
            urgent: false,
        }
    }

    #[test]
    fn a_lone_frame_on_an_idle_channel_takes_its_air_time() {
        let mut scheduler = Scheduler::default();
        let mut channel = Channel::new(0, ChannelConfig::default(), Stream::new(1, "c"));
        let ap = StationId(0);
        let at = Instant::ZERO + Duration::from_millis(1);
        assert!(channel.enqueue(at, ap, unicast(0), &mut scheduler));
        let done = run(&mut channel, &mut scheduler, true);
        // 192 + 1036 * 8 / 11 + 10 + 192 + 14 * 8 us
        let us = done[0].0.since(at).as_nanos() as f64 / 1e3;
        assert!(
            (us - (192.0 + 1036.0 * 8.0 / 11.0 + 10.0 + 192.0 + 112.0)).abs() < 0.01,
            "{us} us"
        );
        assert_eq!(done[0].1, Outcome::Sent(ap, unicast(0)));
    }

    #[test]
    fn a_receiver_out_of_reach_costs_all_attempts() {
        let mut scheduler = Scheduler::default();
        let mut channel = Channel::new(0, ChannelConfig::default(), Stream::new(1, "c"));
        let ap = StationId(0);
        channel.enqueue(Instant::ZERO, ap, unicast(0), &mut scheduler);
        let done = run(&mut channel, &mut scheduler, false);
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].1, Outcome::OutOfReach(ap, unicast(0)));
        assert!(done[0].0 > Instant::ZERO + channel.air_time(&unicast(0)) * 7);
    }

    #[test]
    fn who_is_flushed_holds_up_nobody_whether_or_not_it_was_next_to_send() {
        let stations = [StationId(0), StationId(1)];
        for flushed in stations {
            let mut scheduler = Scheduler::default();
            let config = ChannelConfig::default();
            // a medium that was busy until now: both count down
            let mut channel = Channel::new(0, config.clone(), Stream::new(1, "c"));
            for station in stations {
                channel.enqueue(Instant::ZERO, station, unicast(station.0), &mut scheduler);
            }
            assert_eq!(channel.flush(flushed, &mut scheduler), [unicast(flushed.0)]);
            let other = StationId(1 - flushed.0);
            let [(at, outcome)] = run(&mut channel, &mut scheduler, true)[..] else {
                panic!("one frame is left");
            };
            assert_eq!(outcome, Outcome::Sent(other, unicast(other.0)));
            let longest = config.difs + config.slot * 31 + channel.air_time(&unicast(0));
            assert!(at <= Instant::ZERO + longest, "{at:?}");
        }
    }

    #[test]
    fn who_was_flushed_and_finds_the_medium_idle_has_no_back_off_left() {
        let mut scheduler = Scheduler::default();
        let mut channel = Channel::new(0, ChannelConfig::default(), Stream::new(1, "c"));
        let station = StationId(0);
        channel.enqueue(Instant::ZERO, station, unicast(0), &mut scheduler);
        channel.flush(station, &mut scheduler);
        let later = Instant::ZERO + Duration::from_secs(1);
        run(&mut channel, &mut scheduler, true);
        channel.enqueue(later, station, unicast(1), &mut scheduler);
        let done = run(&mut channel, &mut scheduler, true);
        assert_eq!(done[0].0, later + channel.air_time(&unicast(1)));
    }

    #[test]
    fn a_frame_after_those_that_were_flushed_has_all_attempts_and_the_least_window() {
        let mut scheduler = Scheduler::default();
        let mut channel = Channel::new(0, ChannelConfig::default(), Stream::new(1, "c"));
        let station = StationId(0);
        // a transmission that begins, or ends
        let turn = |channel: &mut Channel, scheduler: &mut Scheduler| {
            let mut outcomes = Vec::new();
            let Some((now, Event::Channel { generation, .. })) = scheduler.pop_until(Instant::MAX) else {
                panic!("it tries again");
            };
            channel.handle_event(now, generation, scheduler, |_, _| false, &mut outcomes);
            (now, outcomes.pop())
        };
        channel.enqueue(Instant::ZERO, station, unicast(0), &mut scheduler);
        let failed = (0..6).map(|_| turn(&mut channel, &mut scheduler)).last();
        let (now, None) = failed.unwrap() else {
            panic!("three of seven attempts")
        };
        assert_eq!(
            (channel.contending[0].attempts, channel.contending[0].window),
            (3, 255)
        );
        assert_eq!(channel.flush(station, &mut scheduler), [unicast(0)]);
        channel.enqueue(now, station, unicast(1), &mut scheduler);
        assert_eq!(channel.contending[0].window, 31);
        let mut attempts = 0;
        let outcome = loop {
            let (_, outcome) = turn(&mut channel, &mut scheduler);
            attempts += usize::from(!channel.sending.is_empty());
            if let Some(outcome) = outcome {
                break outcome;
            }
        };
        assert_eq!((attempts, outcome), (7, Outcome::OutOfReach(station, unicast(1))));
    }

    #[test]
    fn what_is_under_way_is_not_flushed_and_an_empty_medium_stays_idle() {
        let mut scheduler = Scheduler::default();
        let mut channel = Channel::new(0, ChannelConfig::default(), Stream::new(1, "c"));
        let at = Instant::ZERO + Duration::from_millis(1);
        for n in 0..2 {
            channel.enqueue(at, StationId(0), unicast(n), &mut scheduler);
        }
        let Some((now, Event::Channel { generation, .. })) = scheduler.pop_until(Instant::MAX) else {
            panic!("it begins to send");
        };
        channel.handle_event(now, generation, &mut scheduler, |_, _| true, &mut Vec::new());
        assert_eq!(channel.flush(StationId(0), &mut scheduler), [unicast(1)]);
        let done = run(&mut channel, &mut scheduler, true);
        assert_eq!(
            done,
            [(
                at + channel.air_time(&unicast(0)),
                Outcome::Sent(StationId(0), unicast(0))
            )]
        );
        channel.enqueue(
            at + Duration::from_secs(1),
            StationId(0),
            unicast(2),
            &mut scheduler,
        );
        assert_eq!(channel.flush(StationId(0), &mut scheduler), [unicast(2)]);
        assert_eq!(run(&mut channel, &mut scheduler, true), []);
    }

    #[test]
    fn saturated_stations_share_the_channel_and_collide_now_and_then() {
        let mut scheduler = Scheduler::default();
        let config = ChannelConfig {
            queue_packets: 2000,
            ..ChannelConfig::default()
        };
        let mut channel = Channel::new(0, config, Stream::new(3, "c"));
        let (a, b) = (StationId(0), StationId(1));
        for n in 0..2000 {
            channel.enqueue(Instant::ZERO, a, unicast(n), &mut scheduler);
            let length = 1000;
            channel.enqueue(
                Instant::ZERO,
                b,
                Frame::Broadcast {
                    packet: PacketRef(n),
                    length,
                    urgent: false,
                },
                &mut scheduler,
            );
        }
        let done = run(&mut channel, &mut scheduler, true);
        let collided = done
            .iter()
            .filter(|(_, o)| matches!(o, Outcome::Collided(..)))
            .count() as f64;
        // Two saturated stations collide in about 2 / (CWmin + 2) of the slots in which one of them sends
        // (Bianchi 2000 gives 0.06 for CWmin 31); only broadcast frames are lost to it.
        let share = collided / 2000.0;
        assert!((0.03..0.10).contains(&share), "collision share {share}");
        let early: Vec<_> = done
            .iter()
            .take(1000)
            .map(|(_, o)| matches!(o, Outcome::Sent(s, _) if *s == a))
            .collect();
        let from_a = early.iter().filter(|&&x| x).count();
        assert!((350..650).contains(&from_a), "station a got {from_a} of 1000");
    }

    #[test]
    fn a_beacon_goes_before_waiting_data() {
        let mut scheduler = Scheduler::default();
        let mut channel = Channel::new(0, ChannelConfig::default(), Stream::new(1, "c"));
        let ap = StationId(0);
        for n in 0..5 {
            channel.enqueue(Instant::ZERO, ap, unicast(n), &mut scheduler);
        }
        channel.enqueue(
            Instant::ZERO,
            ap,
            Frame::Beacon { cell: 0, length: 50 },
            &mut scheduler,
        );
        let done = run(&mut channel, &mut scheduler, true);
        let place = done
            .iter()
            .position(|(_, o)| matches!(o, Outcome::Sent(_, Frame::Beacon { .. })));
        assert_eq!(place, Some(0), "nothing had been sent when the beacon came");
    }

    #[test]
    fn an_urgent_frame_goes_before_waiting_data_and_behind_beacons_even_if_the_queue_is_full() {
        let mut scheduler = Scheduler::default();
        let config = ChannelConfig {
            queue_packets: 5,
            ..ChannelConfig::default()
        };
        let mut channel = Channel::new(0, config, Stream::new(1, "c"));
        let ap = StationId(0);
        let broadcast = |n, urgent| Frame::Broadcast {
            packet: PacketRef(n),
            length: 100,
            urgent,
        };
        let beacon = Frame::Beacon { cell: 0, length: 50 };
        let mut queue = |frame| channel.enqueue(Instant::ZERO, ap, frame, &mut scheduler);
        let taken: Vec<bool> = (0..6).map(|n| queue(broadcast(n, false))).collect();
        assert_eq!(taken, [true, true, true, true, true, false]);
        assert!(queue(broadcast(10, true)) && queue(beacon) && queue(broadcast(11, true)));
        let sent: Vec<Frame> = run(&mut channel, &mut scheduler, true)
            .into_iter()
            .filter_map(|(_, o)| match o {
                Outcome::Sent(_, frame) => Some(frame),
                _ => None,
            })
            .collect();
        assert_eq!(
            sent[..4],
            [
                beacon,
                broadcast(10, true),
                broadcast(11, true),
                broadcast(0, false)
            ]
        );
        assert_eq!(sent.len(), 8);
    }
}
