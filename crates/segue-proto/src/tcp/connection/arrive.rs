//! Segments that come in: RFC 9293 section 3.10.7, with the checks of RFC 5961 and RFC 7323.

use super::{Connection, Opening, Reset};
use crate::tcp::config::MAX_WINDOW_SCALE;
use crate::tcp::event::{Event, State};
use crate::tcp::receiver::Arrived;
use crate::tcp::sender::{Negotiated, Place};
use crate::tcp::timestamps::Paws;
use crate::time::Instant;
use segue_wire::Data;
use segue_wire::tcp::{TcpFlags, TcpOptions, TcpSegment};

impl Connection {
    /// Takes a segment for this connection.
    pub(in crate::tcp) fn handle_segment(&mut self, now: Instant, segment: &mut TcpSegment) {
        self.counters.segments_received += 1;
        match self.state {
            State::Closed => self.counters.refused.unexpected += 1,
            State::SynSent => self.in_syn_sent(now, segment),
            _ => self.in_other_states(now, segment),
        }
    }

    /// A SYN for a port that listens: section 3.10.7.2, third.
    pub(in crate::tcp) fn accept(&mut self, now: Instant, segment: &mut TcpSegment) {
        self.counters.segments_received += 1;
        self.state = State::SynReceived;
        self.take_syn(now, segment);
    }

    /// Section 3.10.7.3.
    #[inline(never)]
    fn in_syn_sent(&mut self, now: Instant, segment: &mut TcpSegment) {
        let acks = segment.flags.contains(TcpFlags::ACK);
        // first: the ACK bit
        if acks && segment.ack != self.sender.seq_of(1) {
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
            self.establish(now, &segment.options);
            self.begin_peer_window(segment);
            self.receiver.demand_ack();
            self.take_data(now, 1, segment);
        } else {
            // both ends opened at once (section 3.5, figure 7)
            self.state = State::SynReceived;
            self.send_syn_again();
        }
    }

    /// The peer's SYN: its number and options.
    fn take_syn(&mut self, now: Instant, segment: &TcpSegment) {
        let options = &segment.options;
        let scales = options.window_scale().filter(|_| self.config.window_scaling);
        self.receiver
            .on_syn(segment.seq, scales.map(|_| self.config.window_scale()));
        if let Some(t) = options.timestamps.filter(|_| self.config.timestamps) {
            self.timestamps.negotiate(now, t.value);
        }
        self.sender.negotiate(Negotiated {
            mss: options.mss(),
            timestamps: self.timestamps.are_used(),
            sack: options.sack_permitted() && self.config.sack,
            wscale: scales.map(|shift| shift.min(MAX_WINDOW_SCALE)),
        });
        self.begin_peer_window(segment);
    }

    /// The window of a SYN, or of what acknowledges one.
    fn begin_peer_window(&mut self, segment: &TcpSegment) {
        let at = self.receiver.position_of(segment.seq).max(0) as u64;
        self.sender.begin_peer_window(at, segment.window);
    }

    /// Both SYNs are acknowledged.
    fn establish(&mut self, now: Instant, options: &TcpOptions) {
        let Some(Opening { transmissions, .. }) = self.opening.take() else {
            debug_assert!(false, "established twice");
            return;
        };
        let echo = self.timestamps.echoed(options);
        self.sender.establish(now, transmissions, echo);
        self.state = State::Established;
        self.events.push_back(Event::Connected);
        if self.sender.is_closing() {
            self.note_close();
        }
    }

    /// Section 3.10.7.4.
    fn in_other_states(&mut self, now: Instant, segment: &mut TcpSegment) {
        let flags = segment.flags;
        let at = self.receiver.position_of(segment.seq);
        if !self.timestamp_is_good(now, segment) {
            return;
        }
        // first: the sequence number
        if !self.receiver.is_acceptable(at, segment.seq_len()) {
            self.on_unacceptable(now, at, segment);
            return;
        }
        let next = self.receiver.next();
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
        // RFC 7323 section 4.3, rule 2, of a segment that was not discarded for its acknowledgement (RFC 5961 section 5.2):
        // a forged timestamp would have PAWS refuse what is good
        if at <= self.receiver.last_ack_sent() as i64 {
            self.timestamps.update(now, &segment.options);
        }
        // seventh and eighth: data and FIN
        if segment.seq_len() > 0 {
            self.take_data(now, at, segment);
        }
    }

    /// PAWS (RFC 7323 section 5.3, rule R1), and section 3.2: once negotiated, timestamps are on every segment.
    fn timestamp_is_good(&mut self, now: Instant, segment: &TcpSegment) -> bool {
        if segment.flags.contains(TcpFlags::RST) {
            return true;
        }
        match self.timestamps.check(now, &segment.options) {
            Paws::Good => true,
            Paws::Missing => {
                self.counters.refused.no_timestamp += 1;
                false
            }
            Paws::Old => {
                self.counters.refused.old_timestamp += 1;
                let at = self.receiver.position_of(segment.seq);
                self.receiver.note_duplicate(&self.config, at, segment.data.len());
                self.receiver.demand_ack();
                false
            }
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
            if self.state == State::SynReceived && self.receiver.is_syn(segment.seq) {
                if segment.flags.contains(TcpFlags::ACK) && segment.ack == self.sender.seq_of(1) {
                    // the answer to ours, where both ends opened at once (section 3.5, figure 7)
                    self.take_ack(now, segment);
                    self.receiver.demand_ack();
                } else {
                    self.send_syn_again();
                }
                return;
            }
            self.counters.refused.unexpected_syns += 1;
            self.challenge(now);
            return;
        }
        if at < self.receiver.next() as i64 && segment.seq_len() > 0 {
            self.counters.duplicate_segments += 1;
            self.receiver.note_duplicate(&self.config, at, segment.data.len());
        } else {
            self.counters.refused.outside_window += 1;
        }
        self.receiver.enter_quick_acks(&self.config);
        self.receiver.demand_ack();
        if self.is_synchronized()
            && segment.flags.contains(TcpFlags::ACK)
            && self.receiver.is_within_or_at_edge(at)
        {
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
            State::Closing | State::LastAck | State::TimeWait if self.sender.is_data_acked() => Event::Closed,
            _ => Event::Reset,
        };
        self.end(event);
    }

    /// A challenge ACK (RFC 5961), of which there are not too many (section 7).
    #[inline(never)]
    fn challenge(&mut self, now: Instant) {
        if self.challenges.take(now, self.config.challenge_acks) {
            self.counters.challenge_acks += 1;
            self.receiver.demand_ack();
        }
    }

    /// The ACK field: section 3.10.7.4, fifth. Whether the rest of the segment is to be looked at.
    fn take_ack(&mut self, now: Instant, segment: &TcpSegment) -> bool {
        let ack = self.sender.position_of(segment.ack);
        if self.state == State::SynReceived && !self.complete_handshake(now, ack, segment) {
            return false;
        }
        let place = self.sender.place(ack);
        if place != Place::Current {
            return self.take_other_ack(now, place, segment);
        }
        let at = self.receiver.position_of(segment.seq).max(0) as u64;
        let echo = self.timestamps.echoed(&segment.options);
        let heard = self.sender.on_ack(now, ack as u64, at, echo, segment);
        self.counters.refused.impossible_sacks += u64::from(heard.impossible_sacks);
        if heard.progress.writable {
            self.tell(Event::Writable);
        }
        if heard.progress.dry {
            self.tell(Event::SendersDry);
        }
        if self.state == State::Established {
            return true;
        }
        let fin_acked = self.sender.is_fin_acked();
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

    #[inline(never)]
    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// The ACK field in SYN-RECEIVED: whether it is for our SYN.
    #[inline(never)]
    fn complete_handshake(&mut self, now: Instant, ack: i64, segment: &TcpSegment) -> bool {
        if ack != 1 || !self.sender.has_outstanding() {
            self.counters.refused.impossible_acks += 1;
            self.reset_pending = Some(Reset::Answer(segment.ack));
            return false;
        }
        self.establish(now, &segment.options);
        true
    }

    /// An acknowledgement that is not between SND.UNA and SND.NXT (RFC 5961 section 5.2). Whether the rest of the segment is
    /// to be looked at.
    #[inline(never)]
    fn take_other_ack(&mut self, now: Instant, place: Place, segment: &TcpSegment) -> bool {
        if place == Place::Impossible {
            self.counters.refused.impossible_acks += 1;
            self.challenge(now);
            return false;
        }
        // old: nothing is news in it but perhaps its SACK blocks, and its data
        self.sender.on_old_ack(segment);
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
        if self.state == State::FinWait2 {
            self.wait_at = Some(now + self.config.fin_wait_2);
        }
        let received = self
            .receiver
            .take(now, &self.config, self.sender.rto(), Arrived { at, data, fin });
        self.counters.data_bytes_received += received.new_bytes;
        self.counters.duplicate_segments += u64::from(received.duplicate);
        self.counters.out_of_order_segments += u64::from(received.out_of_order);
        self.counters.refused.data_after_close += u64::from(received.after_close);
        if received.readable {
            self.events.push_back(Event::Readable);
        }
        if received.closed {
            self.on_fin(now);
        }
    }

    /// Section 3.10.7.4, eighth: the peer's FIN, and all before it, has arrived.
    #[inline(never)]
    fn on_fin(&mut self, now: Instant) {
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
                if at + i64::from(segment.seq_len()) > self.receiver.next() as i64 {
                    self.counters.refused.data_after_close += 1;
                }
                self.receiver.demand_ack();
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
        self.sender.stop_retransmitting();
        self.events.push_back(Event::Closed);
    }

    /// Whether a new SYN may take the place of this connection, which is in TIME-WAIT (RFC 9293 section 3.6.1, MAY-2;
    /// RFC 6191): its number or its timestamp must be higher than any that was used.
    pub(in crate::tcp) fn yields_to(&self, segment: &TcpSegment) -> bool {
        let newer = self.timestamps.is_newer(&segment.options);
        self.state == State::TimeWait && (newer || self.receiver.next_seq().before(segment.seq))
    }
}
