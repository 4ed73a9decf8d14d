//! What is sent, and when: retransmissions first, then new data as the windows allow (RFC 9293 section 3.8.6,
//! RFC 6675 section 4, NextSeg), then acknowledgements that nothing else carries.

use super::config::LossDetection;
use super::connection::Connection;
use super::event::State;
use super::recovery::Phase;
use crate::contract::Transmit;
use crate::time::Instant;
use segue_wire::tcp::{MAX_SACK_BLOCKS, SackBlock, TcpFlags, TcpOptions, TcpSegment, Timestamps};
use segue_wire::{Data, Ipv6Header, Packet, Payload, SeqNumber};

impl Connection {
    /// The next segment to send. Poll until `None` after every other call.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        // a packet is made where its caller wants it: moving it costs more than most of what is done here
        let transmit = self.next_packet(now);
        self.counters.segments_sent += u64::from(transmit.is_some());
        transmit
    }

    fn next_packet(&mut self, now: Instant) -> Option<Transmit> {
        if let Some(seq) = self.reset_pending.take() {
            return Some(self.packet(
                seq,
                TcpFlags::RST,
                TcpOptions::default(),
                0,
                Data::Bytes(bytes::Bytes::new()),
            ));
        }
        if self.syn_pending {
            return Some(self.send_syn(now));
        }
        if self.is_synchronized() {
            let packet = self.next_data(now);
            if packet.is_some() {
                return packet;
            }
        }
        if self.ack_now {
            return Some(self.send_ack(now));
        }
        self.arm_persist(now);
        None
    }

    /// A segment with data or FIN, if one may go.
    fn next_data(&mut self, now: Instant) -> Option<Transmit> {
        if self.board.is_empty() && self.snd_nxt >= self.send_end() {
            return None;
        }
        if core::mem::take(&mut self.window_probe_pending) {
            return Some(self.send_window_probe(now));
        }
        if core::mem::take(&mut self.probe_pending) {
            return self.send_loss_probe(now);
        }
        let cwnd = self.window.cwnd();
        let pipe = self.pipe();
        if !self.recovery.new_data_first
            && let Some(index) = self.board.next_lost()
        {
            return self.retransmit_if(now, index, pipe, cwnd);
        }
        let packet = self.send_new_data(now, pipe, cwnd);
        if packet.is_some() {
            return packet;
        }
        if self.recovery.phase == Phase::Recovery && self.sack && !self.uses_rack() {
            return self.send_what_may_be_missing(now, pipe, cwnd);
        }
        None
    }

    /// A lost segment, if cwnd has room for it or it goes anyway.
    fn retransmit_if(&mut self, now: Instant, index: usize, pipe: u32, cwnd: u32) -> Option<Transmit> {
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
    fn send_what_may_be_missing(&mut self, now: Instant, pipe: u32, cwnd: u32) -> Option<Transmit> {
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
    fn retransmit(&mut self, now: Instant, index: usize) -> Transmit {
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
        self.recovery.prr_out += sent.len();
        self.counters.retransmissions += 1;
        if index == 0 || self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.rto());
        }
        self.data_packet(now, sent.start, sent.end)
    }

    /// Whether new data could go as far as the peer's window is concerned.
    pub(super) fn may_send_new_data(&self) -> bool {
        self.snd_nxt < self.send_end() && self.snd_nxt < self.snd_una + u64::from(self.snd_wnd)
    }

    fn send_new_data(&mut self, now: Instant, pipe: u32, cwnd: u32) -> Option<Transmit> {
        let end = self.new_segment_end(pipe, cwnd)?;
        if self.board.is_empty() {
            self.restart_after_idle(now);
        }
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
        if len < u64::from(self.mss) && len < left {
            // sender's silly window syndrome (RFC 9293 section 3.8.6.2.1, rule 3)
            if len < u64::from(self.max_snd_wnd / 2) {
                return None;
            }
        } else if len < u64::from(self.mss)
            && self.config.nagle
            && !self.fin_queued
            && self.snd_nxt > self.snd_una
        {
            return None;
        }
        let fin = fin_left && len == left && room > len;
        if len == 0 && !fin {
            return None;
        }
        Some(self.snd_nxt + len + u64::from(fin))
    }

    /// Sends what lies between SND.NXT and `end`.
    fn send_new(&mut self, now: Instant, end: u64) -> Transmit {
        let start = self.snd_nxt;
        self.snd_nxt = end;
        self.board.push(now, start, end);
        self.recovery.prr_out += (end - start) as u32;
        self.last_data_sent = Some(now);
        self.persist_at = None;
        if self.rto_at.is_none() {
            self.rto_at = Some(now + self.rtt.rto());
        }
        self.arm_probe(now);
        self.validate_window(now);
        self.data_packet(now, start, end)
    }

    /// RFC 5681 section 4.1 and RFC 2861: nothing was sent for an RTO.
    fn restart_after_idle(&mut self, now: Instant) {
        let Some(last) = self.last_data_sent.filter(|_| self.config.idle_restart) else {
            return;
        };
        let (idle, rto) = (now.since(last), self.rtt.rto());
        if idle > rto {
            self.window.on_idle(idle.as_nanos() / rto.as_nanos().max(1));
            self.unused_since = now;
            self.most_used = 0;
        }
    }

    /// RFC 2861 section 3.2: the application has not filled the window for an RTO, while nothing but itself kept it.
    fn validate_window(&mut self, now: Instant) {
        let flight = self.board.flightsize();
        let cwnd = self.window.cwnd();
        if flight + self.mss > cwnd {
            self.unused_since = now;
            self.most_used = 0;
            return;
        }
        self.most_used = self.most_used.max(flight);
        if !self.config.cwnd_validation || now.since(self.unused_since) < self.rtt.rto() {
            return;
        }
        let used = self.most_used.max(self.config.initial_window.bytes(self.mss));
        if self.recovery.phase == Phase::Open && self.wanted.is_none() && used < cwnd {
            self.window.set_ssthresh(self.window.ssthresh().max(cwnd / 4 * 3));
            self.window.set_cwnd((cwnd + used) / 2);
        }
        self.unused_since = now;
        self.most_used = 0;
    }

    /// RFC 8985 section 7.3: new data if there is any, or the last segment again.
    #[inline(never)]
    fn send_loss_probe(&mut self, now: Instant) -> Option<Transmit> {
        let high = self.snd_nxt;
        let packet = if self.may_send_new_data() {
            let left = self.send_end() - self.snd_nxt;
            let room = self.snd_una + u64::from(self.snd_wnd) - self.snd_nxt;
            let end = self.snd_nxt + left.min(room).min(u64::from(self.mss));
            self.recovery.probe = Some((high, false));
            self.send_new(now, end)
        } else {
            let index = (self.board.segments() as usize).checked_sub(1)?;
            self.recovery.probe = Some((high, true));
            self.retransmit(now, index)
        };
        self.rto_at = Some(now + self.rtt.rto());
        Some(packet)
    }

    /// RFC 9293 section 3.8.6.1: at least one octet of new data, or the one that was sent already.
    #[inline(never)]
    fn send_window_probe(&mut self, now: Instant) -> Transmit {
        self.counters.window_probes += 1;
        let packet = if self.board.is_empty() {
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
        packet
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
    fn send_syn(&mut self, now: Instant) -> Transmit {
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
        let answers = self.state == State::SynReceived;
        let config = &self.config;
        let mut options = TcpOptions::default();
        let mss = config
            .mtu
            .saturating_sub(super::connection::HEADERS + self.overhead)
            .min(u32::from(u16::MAX));
        options.set_mss(mss as u16);
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
        self.packet(
            self.iss,
            flags,
            options,
            window as u16,
            Data::Bytes(bytes::Bytes::new()),
        )
    }

    fn send_ack(&mut self, now: Instant) -> Transmit {
        self.counters.acks_sent += 1;
        let mut options = TcpOptions::with_timestamps(self.timestamps_now(now));
        if self.sack && (self.reassembly.has_gap() || self.duplicate.is_some()) {
            self.add_sack_blocks(&mut options);
        }
        let window = self.window_to_offer();
        self.acknowledged();
        self.packet(
            self.seq_of(self.snd_nxt),
            TcpFlags::ACK,
            options,
            window,
            Data::Bytes(bytes::Bytes::new()),
        )
    }

    fn data_packet(&mut self, now: Instant, start: u64, end: u64) -> Transmit {
        let data_end = end.min(self.buffer.end());
        let len = data_end.saturating_sub(start) as u32;
        let data = self.buffer.slice(start, len);
        let mut flags = TcpFlags::ACK;
        if end > data_end {
            flags = flags | TcpFlags::FIN;
        }
        if len > 0 {
            self.counters.data_segments_sent += 1;
            self.counters.data_bytes_sent += u64::from(len);
            if data_end == self.buffer.end() {
                flags = flags | TcpFlags::PSH;
            }
        }
        let options = TcpOptions::with_timestamps(self.timestamps_now(now));
        let window = self.window_to_offer();
        // SACK blocks would make a full segment too long: they go by themselves
        if !self.reassembly.has_gap() && self.duplicate.is_none() {
            self.acknowledged();
        } else {
            self.ack_now = true;
        }
        self.packet(self.seq_of(start), flags, options, window, data)
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
        window = window.max(offered).next_multiple_of(unit);
        window = window.min(u64::from(u16::MAX) << self.rcv_wscale);
        self.rcv_adv = self.rcv_adv.max(next + window);
        (window >> self.rcv_wscale) as u16
    }

    fn packet(
        &self,
        seq: SeqNumber,
        flags: TcpFlags,
        options: TcpOptions,
        window: u16,
        data: Data,
    ) -> Transmit {
        let ack = if flags.contains(TcpFlags::ACK) {
            self.irs.add(self.reassembly.next() as u32)
        } else {
            SeqNumber(0)
        };
        let packet = Packet {
            ip: Ipv6Header {
                source: self.local.address,
                destination: self.remote,
                traffic_class: 0,
                hop_limit: HOP_LIMIT,
                flow_label: 0,
            },
            extensions: Vec::new(),
            payload: Payload::Tcp(TcpSegment {
                source_port: self.local_port,
                destination_port: self.remote_port,
                seq,
                ack,
                flags,
                window,
                options,
                data,
            }),
        };
        Transmit {
            interface: self.local.interface,
            packet,
        }
    }
}

/// Hop limit of what is sent.
pub(super) const HOP_LIMIT: u8 = 64;
