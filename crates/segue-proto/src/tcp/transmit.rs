//! What is sent, and when: retransmissions first, then new data as the windows allow (RFC 9293 section 3.8.6,
//! RFC 6675 section 4, NextSeg), then acknowledgements that nothing else carries.

use super::config::LossDetection;
use super::connection::{Connection, Reset};
use super::event::State;
use super::recovery::Phase;
use crate::time::Instant;
use segue_wire::tcp::{MAX_SACK_BLOCKS, SackBlock, TcpFlags, TcpOptions, TcpSegment, Timestamps};
use segue_wire::{Data, Ipv6Header, Packet, Payload, SeqNumber};

/// A segment that is to be sent, before it is made. What is decided, and made of it, are apart, so that a packet can be
/// made where it is to be: moving one costs more than most of what is done here.
#[derive(Clone, Copy, Debug)]
enum Outgoing {
    Reset(Reset),
    Syn,
    /// What lies between two positions: data, FIN, both, or nothing, and then it is there to acknowledge.
    Data {
        start: u64,
        end: u64,
    },
}

impl Connection {
    /// Writes the packet of the next segment to send to `packet`; whether there is one. Poll until `false` after every
    /// other call.
    pub(super) fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Some(outgoing) = self.next_segment(now) else {
            return false;
        };
        self.counters.segments_sent += 1;
        match outgoing {
            Outgoing::Data { start, end } => self.write_data(now, start, end, packet),
            Outgoing::Syn => self.write_syn(now, packet),
            Outgoing::Reset(reset) => self.write_reset(now, reset, packet),
        }
        true
    }

    /// Whether [`poll_transmit_into`](Self::poll_transmit_into) may have something to give or to do. `false` is certain.
    #[inline]
    pub(super) fn may_transmit(&self) -> bool {
        self.ack_now
            || !self.board.is_empty()
            || self.snd_nxt < self.send_end()
            || self.reset_pending.is_some()
            || self.syn_pending
            || self.probe_pending
            || self.window_probe_pending
            || self.state == State::Closed
    }

    fn next_segment(&mut self, now: Instant) -> Option<Outgoing> {
        if self.reset_pending.is_some() || self.syn_pending {
            return self.next_control(now);
        }
        if self.is_synchronized() {
            let segment = self.next_data(now);
            if segment.is_some() {
                return segment;
            }
        }
        if self.ack_now {
            let (start, end) = (self.snd_nxt, self.snd_nxt);
            return Some(Outgoing::Data { start, end });
        }
        self.arm_persist(now);
        None
    }

    /// A RST or SYN.
    #[inline(never)]
    fn next_control(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(reset) = self.reset_pending.take() {
            return Some(Outgoing::Reset(reset));
        }
        Some(self.send_syn(now))
    }

    /// A segment with data or FIN, if one may go.
    fn next_data(&mut self, now: Instant) -> Option<Outgoing> {
        if self.board.is_empty() && self.snd_nxt >= self.send_end() {
            return None;
        }
        if self.window_probe_pending || self.probe_pending {
            return self.send_probe(now);
        }
        let cwnd = self.window.cwnd();
        let pipe = self.pipe();
        if !self.recovery.new_data_first
            && let Some(index) = self.board.next_lost()
        {
            return self.retransmit_if(now, index, pipe, cwnd);
        }
        let segment = self.send_new_data(now, pipe, cwnd);
        if segment.is_some() {
            return segment;
        }
        if self.recovery.phase == Phase::Recovery && self.sack && !self.uses_rack() {
            return self.send_what_may_be_missing(now, pipe, cwnd);
        }
        None
    }

    #[inline(never)]
    fn send_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if core::mem::take(&mut self.window_probe_pending) {
            return Some(self.send_window_probe(now));
        }
        self.probe_pending = false;
        self.send_loss_probe(now)
    }

    /// A lost segment, if cwnd has room for it or it goes anyway.
    #[inline(never)]
    fn retransmit_if(&mut self, now: Instant, index: usize, pipe: u32, cwnd: u32) -> Option<Outgoing> {
        let sent = self.board.at(index)?;
        // what the peer has no room for any more is not sent again, but for the first
        if sent.start >= self.snd_una + u64::from(self.snd_wnd) && index > 0 {
            return None;
        }
        let len = sent.len().min(self.mss);
        if pipe + len > cwnd && !core::mem::take(&mut self.forced) {
            return None;
        }
        self.forced = false;
        Some(self.retransmit(now, index))
    }

    /// Rules 3 and 4 of NextSeg (RFC 6675 section 4), where nothing new can be sent.
    #[inline(never)]
    fn send_what_may_be_missing(&mut self, now: Instant, pipe: u32, cwnd: u32) -> Option<Outgoing> {
        if pipe + self.mss > cwnd {
            return None;
        }
        if let Some(index) = self.board.next_below_sacked(self.recovery.forward_from) {
            self.recovery.forward_from = self.board.at(index)?.end;
            return Some(self.retransmit(now, index));
        }
        // rescue: the last one, once
        let last = *self.board.last()?;
        let due = self.config.loss_detection == LossDetection::Rfc6675
            && !self.recovery.rescued
            && !last.is_sacked()
            && !last.was_retransmitted();
        due.then(|| {
            self.recovery.rescued = true;
            let index = self.board.segments() as usize - 1;
            self.retransmit(now, index)
        })
    }

    #[inline(never)]
    fn retransmit(&mut self, now: Instant, index: usize) -> Outgoing {
        let fin = |s: &Self, end: u64| end > s.buffer.end();
        if let Some(sent) = self.board.at(index)
            && sent.len() - u32::from(fin(self, sent.end)) > self.mss
        {
            self.board.split(index, self.mss);
        }
        let sent = *self.board.at(index).expect("the caller has looked");
        self.board.on_retransmit(now, index, self.snd_nxt);
        let ts = self.ts_now(now);
        self.recovery.on_retransmit(ts);
        self.recovery.way_down.note_sent(sent.len());
        self.counters.retransmissions += 1;
        if index == 0 || self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.rto());
        }
        Outgoing::Data {
            start: sent.start,
            end: sent.end,
        }
    }

    /// Whether new data could go as far as the peer's window is concerned.
    pub(super) fn may_send_new_data(&self) -> bool {
        self.snd_nxt < self.send_end() && self.snd_nxt < self.snd_una + u64::from(self.snd_wnd)
    }

    fn send_new_data(&mut self, now: Instant, pipe: u32, cwnd: u32) -> Option<Outgoing> {
        let Some(end) = self.new_segment_end(pipe, cwnd) else {
            self.note_what_is_held_back(now, pipe, cwnd);
            return None;
        };
        if self.board.is_empty() {
            if let Some(last) = self.last_data_sent {
                self.window.on_transmit_start(now, now.since(last));
            }
            self.restart_after_idle(now);
        }
        self.last_data_sent = Some(now);
        Some(self.send_new(now, end))
    }

    /// How far a new segment would reach, if one may go now.
    fn new_segment_end(&self, pipe: u32, cwnd: u32) -> Option<u64> {
        let left = self.buffer.end().saturating_sub(self.snd_nxt);
        let fin_left = self.fin_queued && self.snd_nxt <= self.buffer.end();
        if left == 0 && !fin_left {
            return None;
        }
        if self.recovery.phase == Phase::Disorder && !self.config.limited_transmit {
            return None;
        }
        let room = (self.snd_una + u64::from(self.snd_wnd)).saturating_sub(self.snd_nxt);
        let len = left.min(u64::from(self.mss)).min(room);
        if room == 0 || pipe + len as u32 > cwnd {
            return None;
        }
        if len < u64::from(self.mss) && !self.may_be_short(len, left) {
            return None;
        }
        let fin = fin_left && len == left && room > len;
        if len == 0 && !fin {
            return None;
        }
        Some(self.snd_nxt + len + u64::from(fin))
    }

    /// Whether a segment of `len` bytes may go, which is less than a full one.
    #[inline(never)]
    fn may_be_short(&self, len: u64, left: u64) -> bool {
        if len < left {
            // sender's silly window syndrome (RFC 9293 section 3.8.6.2.1, rule 3)
            return len >= u64::from(self.max_snd_wnd / 2);
        }
        // Nagle's algorithm (section 3.7.4)
        !self.config.nagle || self.fin_queued || self.snd_nxt <= self.snd_una
    }

    /// Sends what lies between SND.NXT and `end`. The caller says whether that counts as use of the path.
    fn send_new(&mut self, now: Instant, end: u64) -> Outgoing {
        let start = self.snd_nxt;
        self.snd_nxt = end;
        self.board.push(now, start, end);
        self.recovery.way_down.note_sent((end - start) as u32);
        self.persist_at = None;
        if self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.rto());
        }
        self.arm_probe(now);
        self.note_use(now);
        Outgoing::Data { start, end }
    }

    /// RFC 8985 section 7.3: new data if there is any, or the last segment again.
    #[inline(never)]
    fn send_loss_probe(&mut self, now: Instant) -> Option<Outgoing> {
        let high = self.snd_nxt;
        let segment = if self.may_send_new_data() {
            let left = self.send_end() - self.snd_nxt;
            let room = self.snd_una + u64::from(self.snd_wnd) - self.snd_nxt;
            let end = self.snd_nxt + left.min(room).min(u64::from(self.mss));
            self.recovery.probe = Some((high, false));
            self.last_data_sent = Some(now);
            self.send_new(now, end)
        } else {
            let index = (self.board.segments() as usize).checked_sub(1)?;
            self.recovery.probe = Some((high, true));
            self.retransmit(now, index)
        };
        self.rto_at = Some(now + self.rtt.rto());
        Some(segment)
    }

    /// RFC 9293 section 3.8.6.1: at least one octet of new data, or the one that was sent already.
    #[inline(never)]
    fn send_window_probe(&mut self, now: Instant) -> Outgoing {
        self.counters.window_probes += 1;
        let segment = if self.board.is_empty() {
            let room = (self.snd_una + u64::from(self.snd_wnd)).saturating_sub(self.snd_nxt);
            let left = self.send_end() - self.snd_nxt;
            let end = self.snd_nxt + left.min(room.max(1)).min(u64::from(self.mss));
            self.send_new(now, end)
        } else {
            self.retransmit(now, 0)
        };
        // no timeout of the path: the window is closed
        self.rto_at = None;
        self.probe_at = None;
        self.persist_at = Some(now + self.persist_interval());
        segment
    }

    /// Data waits, nothing is outstanding, and the window does not let it go: probes will find out when it does.
    fn arm_persist(&mut self, now: Instant) {
        let stuck = self.persist_at.is_none()
            && self.is_synchronized()
            && self.board.is_empty()
            && self.snd_nxt < self.send_end();
        if stuck {
            self.persist_at = Some(now + self.persist_interval());
        }
    }

    #[inline(never)]
    fn send_syn(&mut self, now: Instant) -> Outgoing {
        self.syn_pending = false;
        self.syn_transmissions += 1;
        if self.syn_transmissions > 1 {
            self.counters.retransmissions += 1;
        }
        let first = self.board.is_empty();
        if first {
            self.board.push(now, 0, 1);
        } else {
            self.board.on_retransmit(now, 0, 1);
        }
        self.rto_at = Some(now + self.rtt.rto());
        Outgoing::Syn
    }

    #[inline(never)]
    fn write_syn(&mut self, now: Instant, packet: &mut Packet) {
        let answers = self.state == State::SynReceived;
        let config = &self.config;
        let mut options = TcpOptions::default();
        options.set_mss(self.announced_mss() as u16);
        // RFC 7323 section 2.5 and 3.2, RFC 2018 section 2: an answer offers what the SYN did
        if config.window_scaling && (!answers || self.scaling) {
            options.set_window_scale(config.window_scale());
        }
        if config.sack && (!answers || self.sack) {
            options.set_sack_permitted();
        }
        if config.timestamps && (!answers || self.timestamps) {
            options.timestamps = Some(Timestamps {
                value: self.ts_now(now),
                echo: self.ts_recent,
            });
        }
        let window = self.config.receive_buffer.min(u32::from(u16::MAX));
        self.rcv_adv = self.reassembly.next() + u64::from(window);
        let flags = if answers {
            self.acknowledged();
            TcpFlags::SYN | TcpFlags::ACK
        } else {
            TcpFlags::SYN
        };
        let data = Data::Bytes(bytes::Bytes::new());
        self.write(packet, self.iss, flags, options, window as u16, data);
    }

    #[inline(never)]
    fn write_reset(&mut self, now: Instant, reset: Reset, packet: &mut Packet) {
        // RFC 7323 section 3.2: a RST should have timestamps as well, and an echo is only valid in an acknowledgement
        let (seq, flags, timestamps) = match reset {
            Reset::Answer(seq) => (seq, TcpFlags::RST, None),
            Reset::Abort => (
                self.seq_of(self.snd_nxt),
                TcpFlags::RST | TcpFlags::ACK,
                self.timestamps_now(now),
            ),
        };
        let data = Data::Bytes(bytes::Bytes::new());
        self.write(
            packet,
            seq,
            flags,
            TcpOptions::with_timestamps(timestamps),
            0,
            data,
        );
    }

    fn write_data(&mut self, now: Instant, start: u64, end: u64, packet: &mut Packet) {
        let data_end = end.min(self.buffer.end());
        let len = data_end.saturating_sub(start) as u32;
        let mut flags = TcpFlags::ACK;
        if end > data_end.max(start) {
            flags = flags | TcpFlags::FIN;
        }
        if len > 0 {
            self.counters.data_segments_sent += 1;
            self.counters.data_bytes_sent += u64::from(len);
            if data_end == self.buffer.end() {
                flags = flags | TcpFlags::PSH;
            }
        } else if end == start {
            self.counters.acks_sent += 1;
        }
        // SACK blocks would make a full segment too long: they go by themselves
        let reports = self.reassembly.has_gap() || self.duplicate.is_some();
        let window = self.window_to_offer();
        if end == start || !reports {
            self.acknowledged();
        } else {
            self.ack_now = true;
        }
        let offset = self.buffer.synthetic_offset(start, len);
        let data = Data::Synthetic {
            offset: offset.unwrap_or_default(),
            len,
        };
        let options = TcpOptions::with_timestamps(self.timestamps_now(now));
        self.write(packet, self.seq_of(start), flags, options, window, data);
        if offset.is_none() || (reports && end == start) {
            self.write_rare(start, len, packet);
        }
    }

    /// What few segments have: SACK blocks, where there is no data, and data that is kept as bytes.
    #[inline(never)]
    fn write_rare(&mut self, start: u64, len: u32, packet: &mut Packet) {
        let Payload::Tcp(segment) = &mut packet.payload else {
            return;
        };
        if len > 0 {
            segment.data = self.buffer.slice(start, len);
        } else if self.sack {
            self.add_sack_blocks(&mut segment.options);
        }
    }

    /// What was received is acknowledged by the segment at hand.
    fn acknowledged(&mut self) {
        let next = self.reassembly.next();
        if next > self.last_ack_sent || self.ack_now {
            self.quick_acks = self.quick_acks.saturating_sub(1);
        }
        self.last_ack_sent = next;
        self.ack_now = false;
        self.ack_at = None;
    }

    fn timestamps_now(&self, now: Instant) -> Option<Timestamps> {
        self.timestamps.then(|| Timestamps {
            value: self.ts_now(now),
            echo: self.ts_recent,
        })
    }

    /// RFC 2018 section 4, with a duplicate first (RFC 2883 section 4).
    #[inline(never)]
    fn add_sack_blocks(&mut self, options: &mut TcpOptions) {
        let most = if self.timestamps {
            MAX_SACK_BLOCKS - 1
        } else {
            MAX_SACK_BLOCKS
        };
        let duplicate = self.duplicate.take();
        let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        let mut count = 0;
        // a duplicate within a block that is reported is followed by that block
        let ranges = duplicate.iter().chain(self.reassembly.recent());
        for (block, range) in blocks.iter_mut().zip(ranges.take(most)) {
            block.left = self.irs.add(range.0 as u32);
            block.right = self.irs.add(range.1 as u32);
            count += 1;
        }
        options.set_sack_blocks(&blocks[..count]);
    }

    /// RCV.WND: the right edge never moves back (RFC 9293 section 3.8.6, SHLD-14), and forward only by a segment or half
    /// the buffer (section 3.8.6.2.2).
    fn window_to_offer(&mut self) -> u16 {
        let next = self.reassembly.next();
        let offered = self.rcv_adv.saturating_sub(next);
        let free = self.free_receive_buffer();
        let step = u64::from(self.rcv_mss.min(self.config.receive_buffer / 2));
        let unit = 1u64 << self.rcv_wscale;
        let mut window = if free >= offered + step || free == u64::from(self.config.receive_buffer) {
            free & !(unit - 1)
        } else {
            offered
        };
        // rounded up where rounding down would take back what was offered
        window = (window.max(offered) + (unit - 1)) & !(unit - 1);
        window = window.min(u64::from(u16::MAX) << self.rcv_wscale);
        self.rcv_adv = self.rcv_adv.max(next + window);
        (window >> self.rcv_wscale) as u16
    }

    /// Part of its callers, so that nothing is put together anywhere but in its place.
    #[inline(always)]
    fn write(
        &self,
        packet: &mut Packet,
        seq: SeqNumber,
        flags: TcpFlags,
        options: TcpOptions,
        window: u16,
        data: Data,
    ) {
        let ack = if flags.contains(TcpFlags::ACK) {
            self.irs.add(self.reassembly.next() as u32)
        } else {
            SeqNumber(0)
        };
        packet.ip = Ipv6Header {
            source: self.local.address,
            destination: self.remote,
            traffic_class: 0,
            hop_limit: HOP_LIMIT,
            flow_label: 0,
        };
        packet.extensions.clear();
        packet.payload = Payload::Tcp(TcpSegment {
            source_port: self.local_port,
            destination_port: self.remote_port,
            seq,
            ack,
            flags,
            window,
            options,
            data,
        });
    }
}

/// Hop limit of what is sent.
pub(super) const HOP_LIMIT: u8 = 64;
