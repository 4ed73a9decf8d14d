//! What an acknowledgement says: bytes that have arrived, in order or not (RFC 2018, RFC 2883), how long they took
//! (RFC 6298, RFC 7323), and the peer's window.

use super::arrive::is_before;
use super::connection::Connection;
use super::event::Event;
use super::recovery::Phase;
use super::scoreboard::Sent;
use crate::congestion::Acked;
use crate::time::{Duration, Instant};
use segue_wire::tcp::{SackBlock, TcpFlags, TcpSegment};

/// What the acknowledgement at hand did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// Bytes acknowledged in order.
    pub acked: u32,
    /// Bytes newly SACKed.
    pub sacked: u32,
    /// Bytes acknowledged in order that had been SACKed before; without SACK, what duplicate acknowledgements stood for.
    pub known: u32,
    /// Without SACK: bytes that left the network for a duplicate acknowledgement, whichever they are.
    pub presumed: u32,
    /// SND.UNA moved.
    pub advanced: bool,
    /// SND.UNA before.
    pub former_una: u64,
    /// Bytes in the network before.
    pub former_pipe: u32,
    /// A duplicate acknowledgement (RFC 5681 section 2).
    pub duplicate: bool,
    /// A duplicate of ours was reported.
    pub dsack: bool,
    /// It showed that something is lost.
    pub found_lost: bool,
    /// Something that was retransmitted is acknowledged in order.
    pub retransmitted_acked: bool,
    /// Something of the recovery at hand that was sent once only has arrived.
    pub original_arrived: bool,
    /// Timestamp that it echoes.
    pub echo: Option<u32>,
    /// First and last transmission of what was sent once and has arrived.
    pub first_sent: Option<Instant>,
    pub last_sent: Option<Instant>,
    /// How many segments the lowest one that arrived after higher ones and the highest span: the highest alone would be one.
    pub reordering: u32,
}

impl Report {
    /// Bytes that have left the network.
    pub fn delivered(&self) -> u32 {
        (self.acked - self.known) + self.sacked + self.presumed
    }

    fn note_arrival(&mut self, sent: &Sent, high: u64) {
        if sent.was_retransmitted() {
            return;
        }
        self.first_sent = Some(self.first_sent.map_or(sent.sent_at, |f| f.min(sent.sent_at)));
        self.last_sent = Some(self.last_sent.map_or(sent.sent_at, |l| l.max(sent.sent_at)));
        self.original_arrived |= sent.end <= high;
    }
}

impl Connection {
    /// An acknowledgement of `ack`, which is not older than SND.UNA and not beyond SND.NXT.
    pub(super) fn on_ack(&mut self, now: Instant, ack: u64, segment: &TcpSegment) {
        let nothing_to_learn = self.has_nothing_to_learn(ack, segment);
        let window = u32::from(segment.window) << self.snd_wscale;
        let mut report = Report {
            former_una: self.snd_una,
            former_pipe: self.pipe(),
            advanced: ack > self.snd_una,
            ..Report::default()
        };
        report.duplicate = !report.advanced
            && segment.seq_len() == 0
            && !segment.flags.intersects(TcpFlags::SYN | TcpFlags::FIN)
            && window == self.snd_wnd
            && !self.board.is_empty();
        self.take_window(now, ack, segment, window);
        if nothing_to_learn {
            // the data of a peer that is only sent to: what follows would come to the same
            self.rto_at = None;
            self.probe_at = None;
            return;
        }
        report.echo = segment
            .options
            .timestamps
            .filter(|t| self.timestamps && t.echo != 0)
            .map(|t| t.echo);
        if report.advanced {
            self.take_cumulative(now, ack, &mut report);
        }
        let blocks = segment.options.sack_blocks();
        if self.sack && !blocks.is_empty() {
            self.take_blocks(now, blocks, &mut report);
        }
        self.measure(now, &report);
        if report.reordering > 0 {
            self.on_reordering(report.reordering);
        }
        self.end_probe(&report);
        let (losses, duplicates) = (self.board.losses(), self.recovery.duplicates);
        if report.advanced && duplicates > 0 {
            // at least one segment is news
            report.known += (duplicates * self.mss).min(report.acked.saturating_sub(self.mss));
        }
        self.recover(now, &report);
        report.found_lost = self.board.losses() > losses;
        if self.recovery.duplicates > duplicates {
            report.presumed = self.mss;
        }
        self.open_window(now, &report);
        if self.board.is_empty() {
            self.rto_at = None;
            self.probe_at = None;
        } else if report.advanced {
            // RFC 6298 section 5.3
            self.rto_at = Some(now + self.rtt.rto());
            self.arm_probe(now);
        }
        if report.advanced {
            self.tell_of_progress();
        }
    }

    /// Whether nothing is outstanding, in a calm connection, so that an acknowledgement can only tell of the window.
    #[inline]
    fn has_nothing_to_learn(&self, ack: u64, segment: &TcpSegment) -> bool {
        self.board.is_empty()
            && ack == self.snd_una
            && self.snd_una <= self.round_end
            && self.recovery.phase == Phase::Open
            && self.recovery.duplicates == 0
            && self.recovery.probe.is_none()
            && segment.options.sack_blocks().is_empty()
    }

    /// An acknowledgement older than SND.UNA: its SACK blocks may be news all the same.
    #[inline(never)]
    pub(super) fn on_old_ack(&mut self, segment: &TcpSegment) {
        let blocks = segment.options.sack_blocks();
        if self.sack && self.board.sacked_segments() > 0 {
            for block in blocks {
                let (left, right) = (self.position_of(block.left), self.position_of(block.right));
                if self.is_plausible(left, right) && left >= self.snd_una as i64 {
                    self.board.sack(left as u64, right as u64, |_, _| {});
                }
            }
        }
    }

    /// RFC 9293 section 3.10.7.4, fifth: SND.WND, unless the segment is older than the one it was taken from.
    fn take_window(&mut self, now: Instant, ack: u64, segment: &TcpSegment, window: u32) {
        let at = self.peer_position_of(segment.seq).max(0) as u64;
        if self.snd_wl1 < at || (self.snd_wl1 == at && self.snd_wl2 <= ack) {
            let was_closed = self.snd_wnd == 0;
            self.snd_wnd = window;
            self.max_snd_wnd = self.max_snd_wnd.max(window);
            (self.snd_wl1, self.snd_wl2) = (at, ack);
            if was_closed && window > 0 {
                self.on_window_opened(now, ack);
            }
        }
        // a peer that answers is there, however small its window
        self.retries = 0;
    }

    #[inline(never)]
    fn on_window_opened(&mut self, now: Instant, ack: u64) {
        if self.persist_at.take().is_some() {
            self.persist_backoff = 0;
            // probes do not keep the window alive
            self.restart_after_idle(now);
            // the octet that probed the window was not taken
            if ack < self.snd_nxt {
                self.board.mark_lost(0);
                self.forced = true;
            }
        }
    }

    fn take_cumulative(&mut self, now: Instant, ack: u64, report: &mut Report) {
        let high = self.recovery.high;
        let forward = self.board.highest_sacked();
        let segments_to_forward = if forward > 0 {
            self.board.index_of(forward - 1) + 1
        } else {
            0
        };
        let mut passed = 0;
        while let Some(sent) = self.board.pop_acked(ack) {
            report.acked += sent.len();
            if sent.is_sacked() {
                report.known += sent.len();
            } else {
                report.note_arrival(&sent, high);
                // a gap that was filled without a retransmission: reordering
                if !sent.was_retransmitted() && passed < segments_to_forward {
                    report.reordering = report.reordering.max((segments_to_forward - passed) as u32);
                }
                if self.uses_rack() {
                    self.rack_delivered(now, &sent, report.echo);
                }
            }
            report.retransmitted_acked |= sent.was_retransmitted();
            passed += 1;
        }
        report.acked += self.board.trim(ack);
        self.snd_una = ack;
        self.buffer.release(ack);
    }

    #[inline(never)]
    fn take_blocks(&mut self, now: Instant, blocks: &[SackBlock], report: &mut Report) {
        let high = self.recovery.high;
        let former_forward = self.board.highest_sacked();
        let mut lowest_late: Option<u64> = None;
        let mut highest_new = 0;
        let uses_rack = self.uses_rack();
        let mut delivered: smallvec::SmallVec<[Sent; 4]> = smallvec::SmallVec::new();
        for (number, block) in blocks.iter().enumerate() {
            let (left, right) = (self.position_of(block.left), self.position_of(block.right));
            if number == 0 && self.is_dsack(left, right, blocks.get(1)) {
                self.on_dsack(left, right, report);
                continue;
            }
            if !self.is_plausible(left, right) {
                self.counters.refused.impossible_sacks += 1;
                continue;
            }
            if right <= self.snd_una as i64 {
                continue;
            }
            self.board.sack(left.max(0) as u64, right as u64, |_, sent| {
                report.sacked += sent.len();
                report.note_arrival(sent, high);
                highest_new = highest_new.max(sent.end);
                if !sent.was_retransmitted() && sent.end <= former_forward {
                    lowest_late = Some(lowest_late.map_or(sent.start, |l| l.min(sent.start)));
                }
                if uses_rack {
                    delivered.push(*sent);
                }
            });
        }
        if let Some(at) = lowest_late {
            let forward = self.board.index_of(self.board.highest_sacked() - 1) + 1;
            let distance = forward.saturating_sub(self.board.index_of(at)) as u32;
            report.reordering = report.reordering.max(distance);
        }
        for sent in &delivered {
            self.rack_delivered(now, sent, report.echo);
        }
        if highest_new > 0 && self.config.lost_retransmissions && self.board.has_retransmissions() {
            self.mark_lost_retransmissions(highest_new);
        }
    }

    /// RFC 2883 section 4: a first block of what was acknowledged already, or that lies within the second.
    fn is_dsack(&self, left: i64, right: i64, second: Option<&SackBlock>) -> bool {
        if left >= right {
            return false;
        }
        if right <= self.snd_una as i64 {
            return true;
        }
        second.is_some_and(|block| {
            self.position_of(block.left) <= left && right <= self.position_of(block.right)
        })
    }

    fn on_dsack(&mut self, left: i64, right: i64, report: &mut Report) {
        // older than anything that is still thought about: it tells nothing
        if left < 0 || right > self.snd_nxt as i64 {
            self.counters.refused.impossible_sacks += 1;
            return;
        }
        report.dsack = true;
        self.counters.dsacks_received += 1;
        self.recovery.note_dsack(right as u64, report.former_una);
        self.rack.note_dsack(self.snd_una, self.snd_nxt);
    }

    /// Whether a SACK block can be.
    fn is_plausible(&self, left: i64, right: i64) -> bool {
        left < right
            && right <= self.snd_nxt as i64
            && left >= self.snd_una as i64 - i64::from(self.max_snd_wnd)
    }

    /// RFC 6298, with Karn's algorithm; where something was retransmitted, by its timestamp (RFC 7323 section 4). What
    /// is only SACKed is not measured: it may have been reported before, by an acknowledgement that was lost.
    fn measure(&mut self, now: Instant, report: &Report) {
        let by_time = report
            .first_sent
            .filter(|_| report.advanced && !report.retransmitted_acked)
            .map(|sent| now.since(sent));
        if let Some(rtt) = by_time.or_else(|| self.time_by_timestamp(now, report)) {
            self.rtt.measure(rtt, self.snd_una, self.snd_nxt);
            self.note_round_trip(now, rtt);
        }
    }

    #[inline(never)]
    fn time_by_timestamp(&self, now: Instant, report: &Report) -> Option<Duration> {
        report
            .echo
            .filter(|_| report.advanced && report.acked > 0)
            .map(|echo| self.since_ts(now, echo))
            // a clock that only counts milliseconds
            .filter(|rtt| !rtt.is_zero())
    }

    /// cwnd after the acknowledgement: opened outside fast recovery, brought down within.
    fn open_window(&mut self, now: Instant, report: &Report) {
        let round_start = self.snd_una > self.round_end;
        if round_start {
            self.round_end = self.snd_nxt;
        }
        self.note_delivery(now, report.delivered(), round_start);
        if self.recovery.frto.take_has_set_window() {
            return;
        }
        if self.recovery.phase == Phase::Recovery {
            self.reduce(report);
            return;
        }
        if !report.advanced {
            return;
        }
        let window_was_full = self.is_window_used(report.former_pipe);
        self.window.on_ack(Acked {
            now,
            // what was SACKed before has opened the window then, or was part of a recovery that it brought down
            bytes: report.delivered(),
            cumulative_advanced: true,
            window_was_full,
            in_fast_recovery: false,
            open: self.recovery.phase == Phase::Open,
            flight_empty: self.board.is_empty(),
            round_start,
            una: self.snd_una,
            next: self.snd_nxt,
            rtt: report
                .last_sent
                .filter(|_| !report.retransmitted_acked)
                .map(|sent| now.since(sent).max(Duration::from_nanos(1))),
            srtt: self.rtt.srtt(),
        });
        if window_was_full {
            self.usage.begin(now);
        }
    }

    /// The user is told of room in the send buffer when a third of it is free, as Linux does, so that it is not woken
    /// for every acknowledgement.
    fn tell_of_progress(&mut self) {
        if let Some(wanted) = self.wanted
            && self.send_room() >= u64::from(wanted.max(self.config.send_buffer / 3))
        {
            self.wanted = None;
            self.tell(Event::Writable);
        }
        if self.dry_pending && self.snd_una >= self.buffer.end() {
            self.dry_pending = false;
            self.tell(Event::SendersDry);
        }
    }

    #[inline(never)]
    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Whether the acknowledgement is for a transmission before the first retransmission (Eifel, RFC 3522 section 3.2).
    pub(super) fn is_before_retransmission(&self, report: &Report) -> bool {
        match (self.recovery.first_retransmission, report.echo) {
            (Some(ts), Some(echo)) => is_before(echo, ts),
            _ => false,
        }
    }
}
