//! What an acknowledgement says: bytes that have arrived, in order or not (RFC 2018, RFC 2883), how long they took
//! (RFC 6298, RFC 7323), and the peer's window.

use super::network::{Delivery, Jump};
use super::report::{Effect, InOrder, Report, Sacked};
use super::timers::Timer;
use super::{Progress, Sender};
use crate::congestion::{Acked, Loss};
use crate::tcp::event::Phase;
use crate::tcp::scoreboard::Sent;
use crate::tcp::timestamps::is_before;
use crate::time::{Duration, Instant};
use segue_wire::tcp::{SackBlock, TcpFlags, TcpSegment};

/// What the rest of the connection is to know of an acknowledgement.
#[derive(Clone, Copy, Default)]
pub(in crate::tcp) struct Heard {
    pub progress: Progress,
    /// SACK blocks that cannot be.
    pub impossible_sacks: u32,
}

impl Sender {
    /// An acknowledgement of `ack`, which is not older than SND.UNA and not beyond SND.NXT, by a segment that begins `at`. It
    /// echoes this timestamp of ours.
    pub fn on_ack(
        &mut self,
        now: Instant,
        ack: u64,
        at: u64,
        echo: Option<u32>,
        segment: &TcpSegment,
    ) -> Heard {
        let nothing_to_learn = self.has_nothing_to_learn(ack, segment);
        let window = self.peer.scaled(segment.window);
        let former_pipe = self.pipe();
        let advanced = ack > self.stream.una();
        let duplicate = !advanced
            && segment.seq_len() == 0
            && !segment.flags.intersects(TcpFlags::SYN | TcpFlags::FIN)
            && window == self.peer.size()
            && !self.board.is_empty();
        if self.peer.take(at, ack, window) {
            self.on_window_opened(now, ack);
        }
        // a peer that answers is there, however small its window; what was sent again by the timer still waits for this (RFC 5681
        // section 3.1) where it acknowledges nothing
        if advanced || !self.timers.is_running(Timer::Retransmission) {
            self.timers.forget_retries();
        } else if self.peer.size() == 0 {
            // the window was shrunk over what is outstanding (RFC 9293 section 3.8.6)
            self.timers.note_answer();
        }
        if nothing_to_learn {
            // the data of a peer that is only sent to: what follows would come to the same
            self.stop_retransmitting();
            return Heard::default();
        }
        let duplicates = self.recovery.duplicates();
        let (report, impossible_sacks) = self.read(now, (ack, echo), segment, duplicate);
        self.measure(now, &report);
        if report.reordering > 0 {
            self.detection.on_reordering(report.reordering);
        }
        if self.recovery.end_probe(self.stream.una(), &report) {
            self.on_probe_that_repaired();
        }
        let losses = self.board.losses();
        let is_window_set = self.recover(now, &report);
        // without SACK: something left the network for a duplicate acknowledgement
        let presumed = if self.recovery.duplicates() > duplicates {
            self.size.mss()
        } else {
            0
        };
        let effect = Effect {
            delivered: report.delivered + presumed,
            advanced,
            found_lost: self.board.losses() > losses,
        };
        self.open_window(now, &report, effect, former_pipe, is_window_set);
        if self.board.is_empty() {
            self.stop_retransmitting();
        } else if advanced {
            // RFC 6298 section 5.3
            self.timers.start(Timer::Retransmission, now + self.rtt.rto());
            self.arm_probe(now);
        }
        let progress = if advanced {
            self.stream.progress()
        } else {
            Progress::default()
        };
        Heard {
            progress,
            impossible_sacks,
        }
    }

    /// What the acknowledgement says, and how many of its SACK blocks could not be.
    #[inline]
    fn read(
        &mut self,
        now: Instant,
        (ack, echo): (u64, Option<u32>),
        segment: &TcpSegment,
        duplicate: bool,
    ) -> (Report, u32) {
        let former_una = self.stream.una();
        let advanced = ack > former_una;
        let in_order = if advanced {
            self.take_cumulative(now, ack, echo)
        } else {
            InOrder::default()
        };
        let blocks = segment.options.sack_blocks();
        let sacked = if self.has_sack() && !blocks.is_empty() {
            self.take_blocks(now, blocks, former_una, echo)
        } else {
            Sacked::default()
        };
        let duplicates = self.recovery.duplicates();
        let mut known = in_order.known;
        if advanced && duplicates > 0 {
            // what duplicate acknowledgements stood for; at least one segment is news
            let mss = self.size.mss();
            known += (duplicates * mss).min(in_order.acked.saturating_sub(mss));
        }
        let report = Report {
            acked: in_order.acked,
            sacked: sacked.bytes,
            delivered: (in_order.acked - known) + sacked.bytes,
            advanced,
            duplicate,
            dsack: sacked.dsack,
            retransmitted_acked: in_order.retransmitted,
            echo,
            arrivals: in_order.arrivals.and(sacked.arrivals),
            reordering: in_order.reordering.max(sacked.reordering),
        };
        (report, sacked.impossible)
    }

    /// RFC 8985 section 7.4: a tail loss probe made good a loss, which costs as any other does.
    #[inline(never)]
    fn on_probe_that_repaired(&mut self) {
        self.window.on_loss(Loss {
            now: self.stream.last_sent().unwrap_or(Instant::ZERO),
            flightsize: self.board.flightsize(),
            cut_already: false,
        });
    }

    /// Whether nothing is outstanding, in a calm connection, so that an acknowledgement can only tell of the window.
    #[inline]
    fn has_nothing_to_learn(&self, ack: u64, segment: &TcpSegment) -> bool {
        self.board.is_empty()
            && ack == self.stream.una()
            && !self.stream.is_round_over()
            && self.recovery.is_idle()
            && segment.options.sack_blocks().is_empty()
    }

    /// An acknowledgement older than SND.UNA: its SACK blocks may be news all the same.
    #[inline(never)]
    pub fn on_old_ack(&mut self, segment: &TcpSegment) {
        let blocks = segment.options.sack_blocks();
        if self.has_sack() && self.board.sacked_segments() > 0 {
            for block in blocks {
                let (left, right) = (self.position_of(block.left), self.position_of(block.right));
                if self.is_plausible(left, right) && left >= self.stream.una() as i64 {
                    self.board.sack(left as u64, right as u64, |_, _| {});
                }
            }
        }
    }

    #[inline(never)]
    fn on_window_opened(&mut self, now: Instant, ack: u64) {
        if self.timers.end_persist() {
            // probes do not keep the window alive
            self.restart_after_idle(now);
            // the octet that probed the window was not taken
            if ack < self.stream.next() {
                self.board.mark_lost(0);
                self.pending.demand_retransmission();
            }
        }
    }

    fn take_cumulative(&mut self, now: Instant, ack: u64, echo: Option<u32>) -> InOrder {
        let mut taken = InOrder::default();
        let high = self.recovery.high();
        let forward = self.board.highest_sacked();
        let segments_to_forward = if forward > 0 {
            self.board.index_of(forward - 1) + 1
        } else {
            0
        };
        let mut passed = 0;
        while let Some(sent) = self.board.pop_acked(ack) {
            taken.acked += sent.len();
            if sent.is_sacked() {
                taken.known += sent.len();
            } else {
                taken.arrivals.note(&sent, high);
                // a gap that was filled without a retransmission: reordering
                if !sent.was_retransmitted() && passed < segments_to_forward {
                    taken.reordering = taken.reordering.max((segments_to_forward - passed) as u32);
                }
                if self.detection.uses_rack() {
                    self.on_delivered(now, &sent, echo);
                }
            }
            taken.retransmitted |= sent.was_retransmitted();
            passed += 1;
        }
        taken.acked += self.board.trim(ack);
        self.stream.acknowledge(ack);
        taken
    }

    #[inline(never)]
    fn take_blocks(
        &mut self,
        now: Instant,
        blocks: &[SackBlock],
        former_una: u64,
        echo: Option<u32>,
    ) -> Sacked {
        let mut sacked = Sacked::default();
        let high = self.recovery.high();
        let former_forward = self.board.highest_sacked();
        let mut lowest_late: Option<u64> = None;
        let mut highest_new = 0;
        let uses_rack = self.detection.uses_rack();
        let mut delivered: smallvec::SmallVec<[Sent; 4]> = smallvec::SmallVec::new();
        for (number, block) in blocks.iter().enumerate() {
            let (left, right) = (self.position_of(block.left), self.position_of(block.right));
            if number == 0 && self.is_dsack(left, right, blocks.get(1)) {
                sacked.dsack = self.on_dsack(left, right, former_una);
                sacked.impossible += u32::from(!sacked.dsack);
                continue;
            }
            if !self.is_plausible(left, right) {
                sacked.impossible += 1;
                continue;
            }
            if right <= self.stream.una() as i64 {
                continue;
            }
            self.board.sack(left.max(0) as u64, right as u64, |_, sent| {
                sacked.bytes += sent.len();
                sacked.arrivals.note(sent, high);
                highest_new = highest_new.max(sent.end());
                if !sent.was_retransmitted() && sent.end() <= former_forward {
                    lowest_late = Some(lowest_late.map_or(sent.start(), |l| l.min(sent.start())));
                }
                if uses_rack {
                    delivered.push(*sent);
                }
            });
        }
        if let Some(at) = lowest_late {
            let forward = self.board.index_of(self.board.highest_sacked() - 1) + 1;
            let distance = forward.saturating_sub(self.board.index_of(at)) as u32;
            sacked.reordering = distance;
        }
        for sent in &delivered {
            self.on_delivered(now, sent, echo);
        }
        if highest_new > 0 && self.config.lost_retransmissions && self.board.has_retransmissions() {
            self.mark_lost_retransmissions(highest_new);
        }
        sacked
    }

    /// RFC 2883 section 4: a first block of what was acknowledged already, or that lies within the second.
    fn is_dsack(&self, left: i64, right: i64, second: Option<&SackBlock>) -> bool {
        if left >= right {
            return false;
        }
        if right <= self.stream.una() as i64 {
            return true;
        }
        second.is_some_and(|block| {
            self.position_of(block.left) <= left && right <= self.position_of(block.right)
        })
    }

    /// Whether such a block can be.
    fn on_dsack(&mut self, left: i64, right: i64, former_una: u64) -> bool {
        // older than anything that is still thought about: it tells nothing
        if left < 0 || right > self.stream.next() as i64 {
            return false;
        }
        self.counters.dsacks_received += 1;
        self.recovery.on_dsack(right as u64, former_una);
        self.detection.on_dsack(self.stream.una(), self.stream.next());
        true
    }

    /// Whether a SACK block can be.
    fn is_plausible(&self, left: i64, right: i64) -> bool {
        left < right
            && right <= self.stream.next() as i64
            && left >= self.stream.una() as i64 - i64::from(self.peer.greatest())
    }

    /// RFC 6298, with Karn's algorithm; where something was retransmitted, by its timestamp (RFC 7323 section 4). What
    /// is only SACKed is not measured: it may have been reported before, by an acknowledgement that was lost.
    fn measure(&mut self, now: Instant, report: &Report) {
        let by_time = report
            .arrivals
            .first_sent()
            .filter(|_| report.advanced && !report.retransmitted_acked)
            .map(|sent| now.since(sent));
        if let Some(rtt) = by_time.or_else(|| self.time_by_timestamp(now, report)) {
            self.rtt.measure(rtt, self.stream.una(), self.stream.next());
            if let Some(network) = &mut self.network {
                network.on_round_trip(now, rtt);
            }
        }
    }

    #[inline(never)]
    fn time_by_timestamp(&self, now: Instant, report: &Report) -> Option<Duration> {
        report
            .echo
            .filter(|_| report.advanced && report.acked > 0)
            .map(|echo| self.clock.since(now, echo))
            // a clock that only counts milliseconds
            .filter(|rtt| !rtt.is_zero())
    }

    /// cwnd after the acknowledgement: opened outside fast recovery, brought down within, unless F-RTO has set it.
    fn open_window(&mut self, now: Instant, report: &Report, effect: Effect, former_pipe: u32, is_set: bool) {
        let round_start = self.stream.is_round_over();
        if round_start {
            self.stream.begin_round();
        }
        if self.config.remedy.remembers() {
            self.remember_delivery(now, effect.delivered, round_start);
        }
        if is_set {
            return;
        }
        if self.recovery.phase() == Phase::Recovery {
            self.reduce(effect);
            return;
        }
        if !report.advanced {
            return;
        }
        let window_was_full = self.is_window_used(former_pipe);
        self.window.on_ack(Acked {
            now,
            // what was SACKed before has opened the window then, or was part of a recovery that it brought down
            bytes: effect.delivered,
            cumulative_advanced: true,
            window_was_full,
            in_fast_recovery: false,
            open: self.recovery.phase() == Phase::Open,
            flight_empty: self.board.is_empty(),
            round_start,
            una: self.stream.una(),
            next: self.stream.next(),
            rtt: report
                .arrivals
                .last_sent()
                .filter(|_| !report.retransmitted_acked)
                .map(|sent| now.since(sent).max(Duration::from_nanos(1))),
            srtt: self.rtt.srtt(),
        });
        if window_was_full {
            self.usage.begin(now);
        }
    }

    /// What the network that the peer is in delivers is remembered, and what was remembered of it is used.
    #[inline(never)]
    fn remember_delivery(&mut self, now: Instant, bytes: u32, round_start: bool) {
        let delivery = Delivery {
            now,
            bytes,
            round_start,
            calm: self.recovery.is_calm(),
            in_fast_recovery: self.recovery.phase() == Phase::Recovery,
            una: self.stream.una(),
            mss: self.size.mss(),
            cwnd: self.window.cwnd(),
        };
        match self.network.get_or_insert_default().on_delivery(delivery) {
            Some(Jump::To(cwnd)) => self.window.set_cwnd(cwnd),
            Some(Jump::Back(most)) => {
                self.window.set_ssthresh(most);
                self.window.set_cwnd(self.window.cwnd().min(most));
            }
            None => {}
        }
    }

    /// RACK is told of a segment that has arrived.
    fn on_delivered(&mut self, now: Instant, sent: &Sent, echo: Option<u32>) {
        let is_older = sent.was_retransmitted()
            && echo.is_some_and(|echo| is_before(echo, self.clock.at(sent.sent_at())));
        self.detection.on_delivered(now, sent, &self.rtt, is_older);
    }
}
