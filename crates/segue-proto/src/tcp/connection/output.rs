//! The packets of a connection: what is to be sent goes out before acknowledgements that nothing else carries.

use super::{Connection, Reset};
use crate::tcp::ends::HOP_LIMIT;
use crate::tcp::event::State;
use crate::tcp::sender::Span;
use crate::time::Instant;
use segue_wire::tcp::{TcpFlags, TcpOptions, TcpSegment};
use segue_wire::{Data, Ipv6Header, Packet, Payload, SeqNumber};

/// A segment that is to be sent, before it is made.
#[derive(Clone, Copy, Debug)]
enum Outgoing {
    Reset(Reset),
    Syn,
    /// Data, FIN, both, or nothing, and then it is there to acknowledge.
    Data(Span),
}

impl Connection {
    /// Writes the packet of the next segment to send to `packet`; whether there is one. Poll until `false` after every
    /// other call.
    pub(in crate::tcp) fn poll_transmit_into(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Some(outgoing) = self.next_segment(now) else {
            return false;
        };
        self.counters.segments_sent += 1;
        match outgoing {
            Outgoing::Data(span) => self.write_data(now, span, packet),
            Outgoing::Syn => self.write_syn(now, packet),
            Outgoing::Reset(reset) => self.write_reset(now, reset, packet),
        }
        true
    }

    /// Whether [`poll_transmit_into`](Self::poll_transmit_into) may have something to give or to do. `false` is certain.
    #[inline]
    pub(in crate::tcp) fn may_transmit(&self) -> bool {
        self.receiver.must_ack()
            || self.sender.may_transmit()
            || self.reset_pending.is_some()
            || self.is_syn_pending()
            || self.state == State::Closed
    }

    fn next_segment(&mut self, now: Instant) -> Option<Outgoing> {
        if self.reset_pending.is_some() || self.is_syn_pending() {
            return self.next_control(now);
        }
        if self.is_synchronized()
            && let Some(span) = self.sender.next_data(now)
        {
            return Some(Outgoing::Data(span));
        }
        if self.receiver.must_ack() {
            return Some(Outgoing::Data(self.sender.nothing()));
        }
        if self.is_synchronized() {
            self.sender.arm_persist(now);
        }
        None
    }

    /// A RST or SYN.
    #[inline(never)]
    fn next_control(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(reset) = self.reset_pending.take() {
            return Some(Outgoing::Reset(reset));
        }
        let opening = self.opening.as_mut()?;
        opening.pending = false;
        opening.transmissions += 1;
        self.sender.send_syn(now);
        Some(Outgoing::Syn)
    }

    #[inline]
    fn is_syn_pending(&self) -> bool {
        self.opening.is_some_and(|opening| opening.pending)
    }

    #[inline(never)]
    fn write_syn(&mut self, now: Instant, packet: &mut Packet) {
        let answers = self.state == State::SynReceived;
        let config = &self.config;
        let mut options = TcpOptions::default();
        options.set_mss(self.announced_mss() as u16);
        // RFC 7323 section 2.5 and 3.2, RFC 2018 section 2: an answer offers what the SYN did
        if config.window_scaling && (!answers || self.receiver.scales()) {
            options.set_window_scale(config.window_scale());
        }
        if config.sack && (!answers || self.sender.has_sack()) {
            options.set_sack_permitted();
        }
        if config.timestamps && (!answers || self.timestamps.are_used()) {
            options.timestamps = Some(self.timestamps.offer(now));
        }
        let window = self.receiver.offer_first_window(&self.config);
        let flags = if answers {
            self.receiver.acknowledged();
            TcpFlags::SYN | TcpFlags::ACK
        } else {
            TcpFlags::SYN
        };
        let data = Data::Bytes(bytes::Bytes::new());
        self.write(packet, self.sender.seq_of(0), flags, options, window, data);
    }

    #[inline(never)]
    fn write_reset(&mut self, now: Instant, reset: Reset, packet: &mut Packet) {
        // RFC 7323 section 3.2: a RST should have timestamps as well, and an echo is only valid in an acknowledgement
        let (seq, flags, timestamps) = match reset {
            Reset::Answer(seq) => (seq, TcpFlags::RST, None),
            Reset::Abort => (
                self.sender.next_seq(),
                TcpFlags::RST | TcpFlags::ACK,
                self.timestamps.option(now),
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

    fn write_data(&mut self, now: Instant, span: Span, packet: &mut Packet) {
        let content = self.sender.content(span);
        let mut flags = TcpFlags::ACK;
        if content.fin {
            flags = flags | TcpFlags::FIN;
        }
        let only_acknowledges = span.start == span.end;
        if content.len > 0 {
            self.counters.data_segments_sent += 1;
            self.counters.data_bytes_sent += u64::from(content.len);
            if content.is_last {
                flags = flags | TcpFlags::PSH;
            }
        } else if only_acknowledges {
            self.counters.acks_sent += 1;
        }
        // SACK blocks would make a full segment too long: an acknowledgement that is due, and has some, goes by itself. One
        // that is not due would be more than one for each segment that came (RFC 5681 section 4.2)
        let reports = self.sender.has_sack() && self.receiver.has_reports();
        let window = self.receiver.offer_window(&self.config);
        if only_acknowledges || !(reports && self.receiver.must_ack()) {
            self.receiver.acknowledged();
        }
        let data = Data::Synthetic {
            offset: content.synthetic_offset.unwrap_or_default(),
            len: content.len,
        };
        let options = TcpOptions::with_timestamps(self.timestamps.option(now));
        self.write(
            packet,
            self.sender.seq_of(span.start),
            flags,
            options,
            window,
            data,
        );
        if content.synthetic_offset.is_none() || (reports && only_acknowledges) {
            self.write_rare(span.start, content.len, packet);
        }
    }

    /// What few segments have: SACK blocks, where there is no data, and data that is kept as bytes.
    #[inline(never)]
    fn write_rare(&mut self, start: u64, len: u32, packet: &mut Packet) {
        let Payload::Tcp(segment) = &mut packet.payload else {
            return;
        };
        if len > 0 {
            segment.data = self.sender.data(start, len);
        } else if self.sender.has_sack() {
            self.receiver.add_sack_blocks(&mut segment.options);
        }
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
            self.receiver.next_seq()
        } else {
            SeqNumber(0)
        };
        packet.ip = Ipv6Header {
            source: self.ends.local,
            destination: self.ends.remote,
            traffic_class: 0,
            hop_limit: HOP_LIMIT,
            flow_label: 0,
        };
        packet.extensions.clear();
        packet.payload = Payload::Tcp(TcpSegment {
            source_port: self.ends.local_port,
            destination_port: self.ends.remote_port,
            seq,
            ack,
            flags,
            window,
            options,
            data,
        });
    }
}
