//! What is sent, and when: retransmissions first, then new data as the windows allow (RFC 9293 section 3.8.6,
//! RFC 6675 section 4, NextSeg).

use super::Sender;
use super::timers::Timer;
use crate::tcp::config::{LossDetection, NagleRule, WindowUse};
use crate::tcp::event::Phase;
use crate::time::Instant;
use segue_wire::Data;

/// A segment that is to be sent, before it is made: what lies between two positions. What is decided, and made of it, are
/// apart, so that a packet can be made where it is to be: moving one costs more than most of what is done here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) struct Span {
    pub start: u64,
    pub end: u64,
}

/// What the octets of a segment are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) struct Content {
    /// Bytes of data.
    pub len: u32,
    /// Nothing has been given that lies behind them.
    pub is_last: bool,
    pub fin: bool,
    /// See [`SendBuffer::synthetic_offset`](crate::tcp::send_buffer::SendBuffer::synthetic_offset).
    pub synthetic_offset: Option<u64>,
}

impl Sender {
    /// Whether there may be something to send, or to do about it. `false` is certain.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !self.board.is_empty() || self.stream.next() < self.stream.end() || self.pending.has_probe()
    }

    /// An empty segment, which is there to acknowledge.
    pub fn nothing(&self) -> Span {
        let next = self.stream.next();
        Span {
            start: next,
            end: next,
        }
    }

    /// A segment with data or FIN, if one may go.
    pub fn next_data(&mut self, now: Instant) -> Option<Span> {
        if self.board.is_empty() && self.stream.next() >= self.stream.end() {
            return None;
        }
        self.stream.note_busy(now);
        if self.pending.has_probe() {
            return self.send_probe(now);
        }
        let cwnd = self.window.cwnd();
        let pipe = self.pipe();
        if !self.recovery.is_new_data_first()
            && let Some(index) = self.board.next_lost()
        {
            return self.retransmit_if(now, index, pipe, cwnd);
        }
        let segment = self.send_new_data(now, pipe, cwnd);
        if segment.is_some() {
            return segment;
        }
        if self.recovery.phase() == Phase::Recovery && self.has_sack() && !self.detection.uses_rack() {
            return self.send_what_may_be_missing(now, pipe, cwnd);
        }
        None
    }

    #[inline(never)]
    fn send_probe(&mut self, now: Instant) -> Option<Span> {
        if self.pending.take_window_probe() {
            return Some(self.send_window_probe(now));
        }
        self.pending.take_loss_probe();
        self.send_loss_probe(now)
    }

    /// A lost segment, if cwnd has room for it or it goes anyway.
    #[inline(never)]
    fn retransmit_if(&mut self, now: Instant, index: usize, pipe: u32, cwnd: u32) -> Option<Span> {
        let sent = self.board.at(index)?;
        // what the peer has no room for any more is not sent again, but for the first
        if sent.start() >= self.right_edge() && index > 0 {
            return None;
        }
        let len = sent.len().min(self.size.mss());
        // what goes anyway does so once, and not again where there is room
        let goes_anyway = self.pending.take_retransmission();
        if pipe + len > cwnd && !goes_anyway {
            return None;
        }
        Some(self.retransmit(now, index))
    }

    /// Rules 3 and 4 of NextSeg (RFC 6675 section 4), where nothing new can be sent.
    #[inline(never)]
    fn send_what_may_be_missing(&mut self, now: Instant, pipe: u32, cwnd: u32) -> Option<Span> {
        if pipe + self.size.mss() > cwnd {
            return None;
        }
        if let Some(index) = self.recovery.next_forward(&self.board) {
            return Some(self.retransmit(now, index));
        }
        // rescue: the last one, once
        let last = *self.board.last()?;
        let due = self.config.loss_detection == LossDetection::Rfc6675
            && !self.recovery.is_rescued()
            && !last.is_sacked()
            && !last.was_retransmitted();
        due.then(|| {
            self.recovery.on_rescue();
            let index = self.board.segments() as usize - 1;
            self.retransmit(now, index)
        })
    }

    #[inline(never)]
    fn retransmit(&mut self, now: Instant, index: usize) -> Span {
        let fin = |s: &Self, end: u64| end > s.stream.data_end();
        if let Some(sent) = self.board.at(index)
            && sent.len() - u32::from(fin(self, sent.end())) > self.size.mss()
        {
            self.board.split(index, self.size.mss());
        }
        let sent = *self.board.at(index).expect("the caller has looked");
        self.board.on_retransmit(now, index, self.stream.next());
        self.recovery.on_retransmit(self.clock.at(now), sent.len());
        self.counters.retransmissions += 1;
        let at = now + self.rtt.rto();
        if index == 0 {
            self.timers.start(Timer::Retransmission, at);
        } else {
            self.timers.ensure(Timer::Retransmission, at);
        }
        Span {
            start: sent.start(),
            end: sent.end(),
        }
    }

    fn send_new_data(&mut self, now: Instant, pipe: u32, cwnd: u32) -> Option<Span> {
        let Some(end) = self.new_segment_end(pipe, cwnd) else {
            self.note_what_is_held_back(now, pipe, cwnd);
            return None;
        };
        if self.board.is_empty() {
            if let Some(idle) = self.stream.idle(now) {
                self.window.on_transmit_start(now, idle);
            }
            self.restart_after_idle(now);
        }
        self.stream.note_sent(now);
        Some(self.send_new(now, end))
    }

    /// How far a new segment would reach, if one may go now.
    fn new_segment_end(&self, pipe: u32, cwnd: u32) -> Option<u64> {
        let left = self.stream.unsent_bytes();
        let fin_left = self.stream.is_fin_unsent();
        if left == 0 && !fin_left {
            return None;
        }
        if self.recovery.phase() == Phase::Disorder && !self.config.limited_transmit {
            return None;
        }
        let room = self.right_edge().saturating_sub(self.stream.next());
        let len = left.min(u64::from(self.size.mss())).min(room);
        if room == 0 || pipe + len as u32 > cwnd {
            return None;
        }
        if len < u64::from(self.size.mss()) && !self.may_be_short(len, left) {
            return None;
        }
        let fin = fin_left && len == left && room > len;
        if len == 0 && !fin {
            return None;
        }
        Some(self.stream.next() + len + u64::from(fin))
    }

    /// Whether a segment of `len` bytes may go, which is less than a full one.
    #[inline(never)]
    fn may_be_short(&self, len: u64, left: u64) -> bool {
        if len < left {
            // sender's silly window syndrome (RFC 9293 section 3.8.6.2.1, rule 3)
            return len >= u64::from(self.peer.greatest() / 2);
        }
        // Nagle's algorithm (section 3.7.4)
        let waits = self.config.nagle
            && match self.config.nagle_rule {
                NagleRule::Rfc9293 => self.stream.next() > self.stream.una(),
                NagleRule::Minshall => self.stream.is_short_outstanding(),
            };
        !waits || self.is_closing()
    }

    /// Sends what lies between SND.NXT and `end`. The caller says whether that counts as use of the path.
    fn send_new(&mut self, now: Instant, end: u64) -> Span {
        let start = self.stream.advance(end);
        if end - start < u64::from(self.size.mss()) {
            self.stream.note_short(end);
        }
        self.board.push(now, start, end);
        self.recovery.on_transmit((end - start) as u32);
        self.timers.stop(Timer::Persist);
        self.timers.ensure(Timer::Retransmission, now + self.rtt.rto());
        self.arm_probe(now);
        self.note_use(now);
        Span { start, end }
    }

    /// RFC 8985 section 7.3: new data if there is any, or the last segment again.
    #[inline(never)]
    fn send_loss_probe(&mut self, now: Instant) -> Option<Span> {
        let high = self.stream.next();
        let segment = if self.may_send_new_data() {
            let left = self.stream.end() - self.stream.next();
            let room = self.right_edge() - self.stream.next();
            let end = self.stream.next() + left.min(room).min(u64::from(self.size.mss()));
            self.recovery.on_probe(high, false);
            self.stream.note_sent(now);
            self.send_new(now, end)
        } else {
            let index = (self.board.segments() as usize).checked_sub(1)?;
            self.recovery.on_probe(high, true);
            self.retransmit(now, index)
        };
        self.timers.start(Timer::Retransmission, now + self.rtt.rto());
        Some(segment)
    }

    /// RFC 9293 section 3.8.6.1: at least one octet of new data, or the one that was sent already.
    #[inline(never)]
    fn send_window_probe(&mut self, now: Instant) -> Span {
        self.counters.window_probes += 1;
        let segment = if self.board.is_empty() {
            let room = self.right_edge().saturating_sub(self.stream.next());
            let left = self.stream.end() - self.stream.next();
            let end = self.stream.next() + left.min(room.max(1)).min(u64::from(self.size.mss()));
            self.send_new(now, end)
        } else {
            self.retransmit(now, 0)
        };
        // no timeout of the path: the window is closed
        self.stop_retransmitting();
        self.timers.start(Timer::Persist, self.next_window_probe(now));
        segment
    }

    /// Data waits, nothing is outstanding, and the window does not let it go: probes will find out when it does.
    pub fn arm_persist(&mut self, now: Instant) {
        if self.board.is_empty() && self.stream.next() < self.stream.end() {
            self.timers.ensure(Timer::Persist, self.next_window_probe(now));
        }
    }

    fn next_window_probe(&self, now: Instant) -> Instant {
        now + self.timers.persist_interval(self.rtt.rto(), self.config.rto_max)
    }

    /// The SYN goes out, once more perhaps.
    #[inline(never)]
    pub fn send_syn(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.board.push(now, 0, 1);
        } else {
            self.counters.retransmissions += 1;
            self.board.on_retransmit(now, 0, 1);
        }
        self.timers.start(Timer::Retransmission, now + self.rtt.rto());
    }

    /// What the octets of a segment are: how many are data, and whether that is the last there is; the rest is a FIN.
    #[inline]
    pub fn content(&self, span: Span) -> Content {
        let end = span.end.min(self.stream.data_end());
        let len = end.saturating_sub(span.start) as u32;
        Content {
            len,
            is_last: end == self.stream.data_end(),
            fin: span.end > end.max(span.start),
            synthetic_offset: self.stream.synthetic_offset(span.start, len),
        }
    }

    /// The data of a segment.
    pub fn data(&self, start: u64, len: u32) -> Data {
        self.stream.slice(start, len)
    }
}

/// How cwnd is used.
impl Sender {
    /// A segment has been sent.
    fn note_use(&mut self, now: Instant) {
        let flight = self.board.flightsize();
        let cwnd = self.window.cwnd();
        let used = if self.config.window_use == WindowUse::LastWindow {
            let held_back = self.pipe() + self.size.mss() > cwnd;
            self.usage
                .note(self.stream.una(), self.stream.next(), flight, held_back);
            self.is_window_used(flight)
        } else {
            flight + self.size.mss() > cwnd
        };
        if used {
            self.usage.begin(now);
        } else {
            self.validate_unfilled_window(now, flight, cwnd);
        }
    }

    /// No segment could be sent: perhaps because of cwnd.
    #[inline]
    fn note_what_is_held_back(&mut self, now: Instant, pipe: u32, cwnd: u32) {
        if pipe + self.size.mss() > cwnd
            && self.config.window_use == WindowUse::LastWindow
            && self.may_send_new_data()
        {
            self.note_use(now);
        }
    }

    /// RFC 2861 section 3.2: the application has not filled the window for an RTO, while nothing but itself kept it.
    #[inline(never)]
    fn validate_unfilled_window(&mut self, now: Instant, flight: u32, cwnd: u32) {
        let most_used = self.usage.note_unfilled(now, flight, self.rtt.rto());
        let Some(most_used) = most_used.filter(|_| self.config.cwnd_validation) else {
            return;
        };
        let used = most_used.max(self.config.initial_window.bytes(self.size.mss()));
        if self.recovery.phase() == Phase::Open && !self.stream.is_room_wanted() && used < cwnd {
            self.window.set_ssthresh(self.window.ssthresh().max(cwnd / 4 * 3));
            self.window.set_cwnd((cwnd + used) / 2);
        }
        self.usage.begin(now);
    }

    /// RFC 5681 section 4.1 and RFC 2861: nothing was sent for an RTO.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        let Some(idle) = self.stream.idle(now).filter(|_| self.config.idle_restart) else {
            return;
        };
        let rto = self.rtt.rto();
        if idle > rto {
            self.window.on_idle(idle.as_nanos() / rto.as_nanos().max(1));
            self.usage.begin(now);
        }
    }
}
