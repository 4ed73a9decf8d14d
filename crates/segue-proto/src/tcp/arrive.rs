//! Segments that come in: RFC 9293 section 3.10.7, with the checks of RFC 5961 and RFC 7323.

use super::connection::{Connection, Reset};
use super::event::{Event, State};
use crate::time::{Duration, Instant};
use segue_wire::tcp::{TcpFlags, TcpSegment};
use segue_wire::{Data, SeqNumber};

impl Connection {
    /// Takes a segment for this connection.
    pub(super) fn handle_segment(&mut self, now: Instant, segment: &mut TcpSegment) {
        self.counters.segments_received += 1;
        match self.state {
            State::Closed => self.counters.refused.unexpected += 1,
            State::SynSent => self.in_syn_sent(now, segment),
            _ => self.in_other_states(now, segment),
        }
    }

    /// A SYN for a port that listens: section 3.10.7.2, third.
    pub(super) fn accept(&mut self, now: Instant, segment: &mut TcpSegment) {
        self.counters.segments_received += 1;
        self.state = State::SynReceived;
        self.take_syn(now, segment);
    }

    /// Section 3.10.7.3.
    #[inline(never)]
    fn in_syn_sent(&mut self, now: Instant, segment: &mut TcpSegment) {
        let acks = segment.flags.contains(TcpFlags::ACK);
        // first: the ACK bit
        if acks && segment.ack != self.seq_of(1) {
            self.counters.refused.impossible_acks += 1;
            if !segment.flags.contains(TcpFlags::RST) {
                self.reset_pending = Some(Reset::Answer(segment.ack));
            }
            return;
        }
        // second: the RST bit
        if segment.flags.contains(TcpFlags::RST) {
            if acks {
                self.end(Event::Refused);
            } else {
                self.counters.refused.doubtful_resets += 1;
            }
            return;
        }
        // fourth: the SYN bit
        if !segment.flags.contains(TcpFlags::SYN) {
            self.counters.refused.unexpected += 1;
            return;
        }
        self.take_syn(now, segment);
        if acks {
            self.acknowledge_syn(now, segment);
            self.establish(now);
            self.update_send_window(segment, u32::from(segment.window));
            self.ack_now = true;
            self.take_data(now, 1, segment);
        } else {
            // both ends opened at once (section 3.5, figure 7)
            self.state = State::SynReceived;
            self.syn_pending = true;
        }
    }

    /// The peer's SYN: its number and options.
    fn take_syn(&mut self, now: Instant, segment: &TcpSegment) {
        self.irs = segment.seq;
        self.reassembly.pass_control();
        self.negotiate(now, &segment.options);
        // windows in a SYN are never scaled (RFC 7323 section 2.2)
        self.update_send_window(segment, u32::from(segment.window));
    }

    /// Our SYN has arrived.
    #[inline(never)]
    fn acknowledge_syn(&mut self, now: Instant, segment: &TcpSegment) {
        if let Some(syn) = self.board.pop_acked(1) {
            let echoed = segment
                .options
                .timestamps
                .filter(|_| self.timestamps)
                .map(|t| t.echo);
            let rtt = match echoed {
                _ if self.syn_transmissions == 1 => Some(now.since(syn.sent_at)),
                Some(echo) if echo != 0 => Some(self.since_ts(now, echo)),
                _ => None,
            };
            match rtt {
                Some(rtt) => self.rtt.measure(rtt, 1, 1),
                None => self.rtt.fall_back(),
            }
        }
        self.snd_una = 1;
        self.rto_at = None;
        self.syn_pending = false;
    }

    /// Section 3.10.7.4.
    fn in_other_states(&mut self, now: Instant, segment: &mut TcpSegment) {
        let flags = segment.flags;
        let at = self.peer_position_of(segment.seq);
        if !self.timestamp_is_good(now, segment) {
            return;
        }
        // first: the sequence number
        if !self.is_acceptable(at, segment.seq_len()) {
            self.on_unacceptable(now, at, segment);
            return;
        }
        let next = self.reassembly.next();
        // second: the RST bit (RFC 5961 section 3.2)
        if flags.contains(TcpFlags::RST) {
            if at == next as i64 {
                self.on_reset();
            } else {
                self.counters.refused.doubtful_resets += 1;
                self.challenge(now);
            }
            return;
        }
        // fourth: the SYN bit (RFC 5961 section 4.2)
        if flags.contains(TcpFlags::SYN) {
            self.counters.refused.unexpected_syns += 1;
            self.challenge(now);
            return;
        }
        // fifth: the ACK bit
        if !flags.contains(TcpFlags::ACK) {
            self.counters.refused.no_ack += 1;
            return;
        }
        if !self.take_ack(now, segment) {
            return;
        }
        if let Some(t) = segment.options.timestamps.filter(|_| self.timestamps) {
            // RFC 7323 section 4.3, rule 2, of a segment that was not discarded for its acknowledgement (RFC 5961 section 5.2):
            // a forged timestamp would have PAWS refuse what is good
            if at <= self.last_ack_sent as i64 && !is_before(t.value, self.ts_recent) {
                self.ts_recent = t.value;
                self.ts_recent_at = now;
            }
        }
        // seventh and eighth: data and FIN
        if segment.seq_len() > 0 {
            self.take_data(now, at, segment);
        }
    }

    /// PAWS (RFC 7323 section 5.3, rule R1), and section 3.2: once negotiated, timestamps are on every segment.
    fn timestamp_is_good(&mut self, now: Instant, segment: &TcpSegment) -> bool {
        if !self.timestamps || segment.flags.contains(TcpFlags::RST) {
            return true;
        }
        let Some(t) = segment.options.timestamps else {
            self.counters.refused.no_timestamp += 1;
            return false;
        };
        let outdated = now.since(self.ts_recent_at) > PAWS_LIFE;
        if is_before(t.value, self.ts_recent) && !outdated {
            self.counters.refused.old_timestamp += 1;
            self.note_duplicate(self.peer_position_of(segment.seq), segment.data.len());
            self.ack_now = true;
            return false;
        }
        true
    }

    /// Table 6 of section 3.10.7.4.
    fn is_acceptable(&self, at: i64, len: u32) -> bool {
        let next = self.reassembly.next() as i64;
        let edge = (self.rcv_adv as i64).max(next);
        let last = at + i64::from(len.max(1)) - 1;
        let inside = |p: i64| next <= p && p < edge;
        match (len, edge - next) {
            (0, 0) => at == next,
            (0, _) => inside(at) || at == next,
            (_, 0) => false,
            _ => inside(at) || inside(last),
        }
    }

    #[inline(never)]
    fn on_unacceptable(&mut self, now: Instant, at: i64, segment: &TcpSegment) {
        if segment.flags.contains(TcpFlags::RST) {
            self.counters.refused.outside_window += 1;
            return;
        }
        if segment.flags.contains(TcpFlags::SYN) {
            // the SYN that made this connection: its answer was lost
            if self.state == State::SynReceived && segment.seq == self.irs {
                if segment.flags.contains(TcpFlags::ACK) && segment.ack == self.seq_of(1) {
                    // the answer to ours, where both ends opened at once (section 3.5, figure 7)
                    self.take_ack(now, segment);
                    self.ack_now = true;
                } else {
                    self.syn_pending = true;
                }
                return;
            }
            self.counters.refused.unexpected_syns += 1;
            self.challenge(now);
            return;
        }
        if at < self.reassembly.next() as i64 && segment.seq_len() > 0 {
            self.counters.duplicate_segments += 1;
            self.note_duplicate(at, segment.data.len());
        } else {
            self.counters.refused.outside_window += 1;
        }
        self.enter_quick_acks();
        self.ack_now = true;
        // its acknowledgement may be good all the same (section 3.10.7.4, MAY-25 aside: RFC 1122 section 4.2.2.20 (g))
        if self.is_synchronized() && segment.flags.contains(TcpFlags::ACK) {
            self.take_ack(now, segment);
        }
        // a FIN again: TIME-WAIT begins anew (section 3.10.7.4, eighth)
        if self.state == State::TimeWait && segment.flags.contains(TcpFlags::FIN) {
            self.wait_at = Some(now + self.config.time_wait);
        }
    }

    /// A RST where it must be (section 3.10.7.4, second).
    #[inline(never)]
    fn on_reset(&mut self) {
        let event = match self.state {
            State::SynReceived if self.active => Event::Refused,
            // all the data has arrived, if not the FIN
            State::Closing | State::LastAck | State::TimeWait if self.snd_una >= self.buffer.end() => {
                Event::Closed
            }
            _ => Event::Reset,
        };
        self.end(event);
    }

    /// A challenge ACK (RFC 5961), of which there are not too many (section 7).
    #[inline(never)]
    pub(super) fn challenge(&mut self, now: Instant) {
        let second = now.as_nanos() / 1_000_000_000;
        if self.challenges.0 != second {
            self.challenges = (second, 0);
        }
        if self.challenges.1 < self.config.challenge_acks {
            self.challenges.1 += 1;
            self.counters.challenge_acks += 1;
            self.ack_now = true;
        }
    }

    /// The ACK field: section 3.10.7.4, fifth. Whether the rest of the segment is to be looked at.
    fn take_ack(&mut self, now: Instant, segment: &TcpSegment) -> bool {
        let ack = self.position_of(segment.ack);
        if self.state == State::SynReceived && !self.complete_handshake(now, ack, segment) {
            return false;
        }
        if ack < self.snd_una as i64 || ack > self.snd_nxt as i64 {
            return self.take_other_ack(now, ack, segment);
        }
        self.on_ack(now, ack as u64, segment);
        if self.state == State::Established {
            return true;
        }
        let fin_acked = self.fin_queued && self.snd_una == self.send_end();
        match self.state {
            State::FinWait1 if fin_acked => {
                self.state = State::FinWait2;
                self.wait_at = Some(now + self.config.fin_wait_2);
            }
            State::Closing if fin_acked => self.enter_time_wait(now),
            State::LastAck if fin_acked => self.end(Event::Closed),
            _ => {}
        }
        self.state != State::Closed
    }

    /// The ACK field in SYN-RECEIVED: whether it is for our SYN.
    #[inline(never)]
    fn complete_handshake(&mut self, now: Instant, ack: i64, segment: &TcpSegment) -> bool {
        if ack != 1 || self.board.is_empty() {
            self.counters.refused.impossible_acks += 1;
            self.reset_pending = Some(Reset::Answer(segment.ack));
            return false;
        }
        self.acknowledge_syn(now, segment);
        self.establish(now);
        true
    }

    /// An acknowledgement that is not between SND.UNA and SND.NXT (RFC 5961 section 5.2). Whether the rest of the segment is
    /// to be looked at.
    #[inline(never)]
    fn take_other_ack(&mut self, now: Instant, ack: i64, segment: &TcpSegment) -> bool {
        let oldest = self.snd_una as i64 - i64::from(self.max_snd_wnd);
        if ack < oldest || ack > self.snd_nxt as i64 {
            self.counters.refused.impossible_acks += 1;
            self.challenge(now);
            return false;
        }
        // old: nothing is news in it but perhaps its SACK blocks, and its data
        self.on_old_ack(segment);
        self.state != State::Closed
    }

    /// Data and FIN of a segment that begins at position `at` (SYN passed).
    fn take_data(&mut self, now: Instant, at: i64, segment: &mut TcpSegment) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.on_data_after_fin(now, at, segment);
            return;
        }
        let nothing = Data::Synthetic { offset: 0, len: 0 };
        let data = core::mem::replace(&mut segment.data, nothing);
        let fin = segment.flags.contains(TcpFlags::FIN);
        self.rcv_mss = self.rcv_mss.max(data.len() as u32);
        if self
            .last_data_received
            .is_some_and(|at| now.since(at) > self.rtt.rto())
        {
            self.enter_quick_acks();
        }
        self.last_data_received = Some(now);
        if self.state == State::FinWait2 {
            self.wait_at = Some(now + self.config.fin_wait_2);
        }
        let room = (self.rcv_adv.max(self.reassembly.next()) as i64 - at).max(0) as usize;
        // nearly always it is inside the window, and nothing is known of a FIN
        if data.len() > room || at < 1 || fin || self.fin_at.is_some() {
            self.take_end_of_data(now, at, data, fin, room);
        } else {
            self.take_in(now, at as u64, data);
        }
    }

    /// The data of a segment that is cut by the window, or has or may contradict a FIN. There is so much `room` for it.
    #[inline(never)]
    fn take_end_of_data(&mut self, now: Instant, at: i64, mut data: Data, mut fin: bool, room: usize) {
        // beyond the window: cut off
        if data.len() > room {
            data = data.slice(0, room);
            fin = false;
        }
        let end = at + data.len() as i64;
        // before position 1 there is only the SYN
        let start = at.max(1);
        let skip = (start - at) as usize;
        if fin {
            if self.fin_at.is_some_and(|f| f != end as u64) {
                self.counters.refused.data_after_close += 1;
                return;
            }
            self.fin_at = Some(end as u64);
        } else if self.fin_at.is_some_and(|f| end as u64 > f) {
            self.counters.refused.data_after_close += 1;
            return;
        }
        if data.len() > skip {
            self.take_in(now, start as u64, data.slice(skip, data.len() - skip));
        }
        match self.fin_at {
            Some(at) if self.reassembly.next() >= at => self.on_fin(now, at),
            Some(at) if fin => {
                self.reassembly.note_fin(at);
                self.ack_now = true;
            }
            _ => {}
        }
    }

    /// Data at a position inside the window.
    fn take_in(&mut self, now: Instant, at: u64, data: Data) {
        if data.is_empty() {
            return;
        }
        let ready = self.reassembly.ready_bytes();
        let expected = self.reassembly.expects(at);
        let in_order = if expected {
            self.reassembly.append(data);
            true
        } else {
            self.take_unexpected(at, data)
        };
        self.counters.data_bytes_received += self.reassembly.ready_bytes() - ready;
        if in_order && !self.readable_told {
            self.readable_told = true;
            self.events.push_back(Event::Readable);
        }
        self.schedule_ack(now, expected);
    }

    /// Data that is a duplicate, beyond a gap, or fills one. Whether something is in order now that was not.
    #[inline(never)]
    fn take_unexpected(&mut self, at: u64, data: Data) -> bool {
        let taken = self.reassembly.take(at, data);
        if taken.duplicate.is_some() {
            self.counters.duplicate_segments += 1;
            self.duplicate = taken.duplicate.filter(|_| self.config.dsack);
        }
        if taken.out_of_order {
            self.counters.out_of_order_segments += 1;
        }
        taken.in_order
    }

    /// RFC 5681 section 4.2: segments that are out of order, fill a gap or are duplicates are acknowledged at once;
    /// others, which were expected, at the second full-sized one, or after a while.
    fn schedule_ack(&mut self, now: Instant, expected: bool) {
        let unacknowledged = self.reassembly.next() - self.last_ack_sent;
        let full = u64::from(self.config.ack_frequency) * u64::from(self.rcv_mss);
        if !expected || self.quick_acks > 0 || unacknowledged >= full || self.reassembly.has_gap() {
            self.ack_now = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + self.config.ack_delay);
        }
    }

    /// Section 3.10.7.4, eighth.
    #[inline(never)]
    fn on_fin(&mut self, now: Instant, at: u64) {
        if self.reassembly.next() == at {
            self.reassembly.pass_control();
        }
        self.ack_now = true;
        self.events.push_back(Event::PeerClosed);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    #[inline(never)]
    fn on_data_after_fin(&mut self, now: Instant, at: i64, segment: &TcpSegment) {
        match self.state {
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait => {
                // there can be nothing behind the FIN
                if at + i64::from(segment.seq_len()) > self.reassembly.next() as i64 {
                    self.counters.refused.data_after_close += 1;
                }
                self.ack_now = true;
                if self.state == State::TimeWait {
                    self.wait_at = Some(now + self.config.time_wait);
                }
            }
            _ => self.counters.refused.unexpected += 1,
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.wait_at = Some(now + self.config.time_wait);
        self.rto_at = None;
        self.probe_at = None;
        self.events.push_back(Event::Closed);
    }

    pub(super) fn enter_quick_acks(&mut self) {
        self.quick_acks = self.quick_acks.max(self.config.quick_acks);
    }

    fn note_duplicate(&mut self, at: i64, len: usize) {
        if self.config.dsack && len > 0 && at > 0 {
            self.duplicate = Some((at as u64, at as u64 + len as u64));
        }
    }

    /// SND.WND, from a segment whose window is to be taken.
    pub(super) fn update_send_window(&mut self, segment: &TcpSegment, window: u32) {
        self.snd_wnd = window;
        self.max_snd_wnd = self.max_snd_wnd.max(window);
        self.snd_wl1 = self.peer_position_of(segment.seq).max(0) as u64;
        self.snd_wl2 = self.snd_una;
    }

    /// Whether a new SYN may take the place of this connection, which is in TIME-WAIT (RFC 9293 section 3.6.1, MAY-2;
    /// RFC 6191): its number or its timestamp must be higher than any that was used.
    pub(super) fn yields_to(&self, segment: &TcpSegment) -> bool {
        let newer = match segment.options.timestamps.filter(|_| self.timestamps) {
            Some(t) => is_before(self.ts_recent, t.value),
            None => false,
        };
        let next = self.irs.add(self.reassembly.next() as u32);
        self.state == State::TimeWait && (newer || SeqNumber::before(next, segment.seq))
    }
}

/// Order of timestamps (RFC 7323 section 5.2).
pub(super) fn is_before(a: u32, b: u32) -> bool {
    SeqNumber(a).before(SeqNumber(b))
}

/// RFC 7323 section 5.5: a timestamp that was kept for so long says nothing any more.
const PAWS_LIFE: Duration = Duration::from_secs(24 * 86_400);
