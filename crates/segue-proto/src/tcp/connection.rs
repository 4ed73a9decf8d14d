//! A connection: what it consists of, and what its user does with it. The rest is by topic in `arrive` (segments that
//! come in), `ack` (what an acknowledgement says), `recovery` and `rack` (losses), `transmit` (what is sent, and when)
//! and `timers`.
//!
//! Numbers of the sequence space are kept as *positions*, 64 bits wide and counted from the SYN, which is position 0 in
//! either direction: they never wrap. A sequence number is a position plus ISS or IRS, modulo 2^32.

use super::config::{Config, LossDetection};
use super::counters::Counters;
use super::event::{Event, SendError, State};
use super::rack::Rack;
use super::reassembly::{Range, Reassembly};
use super::recovery::Recovery;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::send_buffer::SendBuffer;
use super::usage::Usage;
use crate::congestion::{CongestionControl, Start};
use crate::contract::LocalAddress;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::tcp::{HEADER_LEN, TcpOptions};
use segue_wire::{Data, SeqNumber};
use std::collections::VecDeque;
use std::sync::Arc;

/// A TCP connection of an [`Endpoint`](super::Endpoint).
#[derive(Debug)]
pub struct Connection {
    pub(super) config: Arc<Config>,
    pub(super) local: LocalAddress,
    pub(super) remote: Ipv6Addr,
    pub(super) local_port: u16,
    pub(super) remote_port: u16,
    pub(super) state: State,
    /// It began with our SYN.
    pub(super) active: bool,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,

    // what was negotiated
    /// MSS that the peer announced.
    pub(super) peer_mss: u32,
    pub(super) path_mtu: u32,
    /// Bytes by which a shim makes packets longer on their way down.
    pub(super) overhead: u32,
    /// Data per segment.
    pub(super) mss: u32,
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    /// Both ends scale their windows.
    pub(super) scaling: bool,
    /// Shift counts of the peer's windows and of ours.
    pub(super) snd_wscale: u8,
    pub(super) rcv_wscale: u8,

    // sending: variables of RFC 9293 section 3.3.1, as positions
    pub(super) iss: SeqNumber,
    pub(super) snd_una: u64,
    pub(super) snd_nxt: u64,
    pub(super) snd_wnd: u32,
    pub(super) snd_wl1: u64,
    pub(super) snd_wl2: u64,
    /// The greatest window that the peer ever offered.
    pub(super) max_snd_wnd: u32,
    pub(super) buffer: SendBuffer,
    /// A FIN goes behind the last byte.
    pub(super) fin_queued: bool,
    pub(super) board: Scoreboard,
    pub(super) window: Box<dyn CongestionControl>,
    pub(super) recovery: Recovery,
    pub(super) rack: Rack,
    pub(super) rtt: Rtt,
    /// The network that the peer is in, if such things are remembered.
    pub(super) network: Option<Box<super::networks::OnNetwork>>,
    /// Data up to here belongs to the round at hand.
    pub(super) round_end: u64,
    /// Last time that data was sent.
    pub(super) last_data_sent: Option<Instant>,
    pub(super) usage: Usage,
    /// A SYN or SYN-ACK is to be sent.
    pub(super) syn_pending: bool,
    pub(super) syn_transmissions: u32,
    pub(super) reset_pending: Option<Reset>,
    /// A segment may go whatever cwnd says: the first of a recovery, or a probe.
    pub(super) forced: bool,
    /// A tail loss probe is due; a probe of the peer's window is.
    pub(super) probe_pending: bool,
    pub(super) window_probe_pending: bool,
    /// Room that the user waits for.
    pub(super) wanted: Option<u32>,
    /// The user is to be told when everything has arrived.
    pub(super) dry_pending: bool,

    // receiving
    pub(super) irs: SeqNumber,
    pub(super) reassembly: Reassembly,
    /// Right edge of the window that was offered.
    pub(super) rcv_adv: u64,
    /// RCV.NXT when last acknowledged.
    pub(super) last_ack_sent: u64,
    /// Longest segment that came.
    pub(super) rcv_mss: u32,
    /// Position of the peer's FIN, once it is known.
    pub(super) fin_at: Option<u64>,
    pub(super) ts_offset: u32,
    pub(super) ts_recent: u32,
    pub(super) ts_recent_at: Instant,
    pub(super) ack_now: bool,
    pub(super) quick_acks: u32,
    pub(super) last_data_received: Option<Instant>,
    pub(super) duplicate: Option<Range>,
    pub(super) readable_told: bool,
    /// Second of the driver's clock, and challenge ACKs sent in it.
    pub(super) challenges: (u64, u32),

    // timers
    pub(super) rto_at: Option<Instant>,
    pub(super) persist_at: Option<Instant>,
    pub(super) persist_backoff: u32,
    pub(super) ack_at: Option<Instant>,
    /// RACK's reordering timer, or early retransmit's.
    pub(super) reorder_at: Option<Instant>,
    /// Tail loss probe.
    pub(super) probe_at: Option<Instant>,
    /// TIME-WAIT, or FIN-WAIT-2.
    pub(super) wait_at: Option<Instant>,
    /// Timeouts in a row.
    pub(super) retries: u32,
}

/// A RST that is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reset {
    /// In answer to a segment that acknowledged this (RFC 9293 section 3.10.7.4, fifth).
    Answer(SeqNumber),
    /// The user aborts (section 3.10.5).
    Abort,
}

/// The two ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Pair {
    pub local: Ipv6Addr,
    pub local_port: u16,
    pub remote: Ipv6Addr,
    pub remote_port: u16,
}

/// What the endpoint decides about a connection.
pub(super) struct Beginning {
    pub local: LocalAddress,
    pub pair: Pair,
    pub iss: SeqNumber,
    /// Added to the clock in timestamps, so that they tell nothing of other connections (RFC 7323 section 7.1).
    pub ts_offset: u32,
    pub overhead: u32,
    pub active: bool,
}

impl Connection {
    pub(super) fn new(now: Instant, config: &Arc<Config>, beginning: &Beginning) -> Self {
        let mss = config
            .mtu
            .saturating_sub(HEADERS + beginning.overhead)
            .max(LEAST_MSS);
        let mut connection = Self {
            config: Arc::clone(config),
            local: beginning.local,
            remote: beginning.pair.remote,
            local_port: beginning.pair.local_port,
            remote_port: beginning.pair.remote_port,
            state: State::SynSent,
            active: beginning.active,
            events: VecDeque::new(),
            counters: Counters::default(),
            peer_mss: mss,
            path_mtu: config.mtu,
            overhead: beginning.overhead,
            mss,
            timestamps: false,
            sack: false,
            scaling: false,
            snd_wscale: 0,
            rcv_wscale: 0,
            iss: beginning.iss,
            snd_una: 0,
            snd_nxt: 0,
            snd_wnd: 0,
            snd_wl1: 0,
            snd_wl2: 0,
            max_snd_wnd: 0,
            buffer: SendBuffer::new(1),
            fin_queued: false,
            board: Scoreboard::default(),
            window: config.congestion_control.begin(&Start {
                segment: mss,
                initial_window: mss,
                credit: config.credit,
                slow_start: config.slow_start,
                cubic_curve: config.cubic_curve,
                reno_friendliness: config.reno_friendliness,
                rtt: None,
            }),
            recovery: Recovery::new(config.loss_detection == LossDetection::Fack),
            rack: Rack::default(),
            rtt: Rtt::new(config),
            network: None,
            round_end: 0,
            last_data_sent: None,
            usage: Usage::new(now),
            syn_pending: true,
            syn_transmissions: 0,
            reset_pending: None,
            forced: false,
            probe_pending: false,
            window_probe_pending: false,
            wanted: None,
            dry_pending: false,
            irs: SeqNumber(0),
            reassembly: Reassembly::new(0),
            rcv_adv: 0,
            last_ack_sent: 0,
            rcv_mss: LEAST_MSS,
            fin_at: None,
            ts_offset: beginning.ts_offset,
            ts_recent: 0,
            ts_recent_at: now,
            ack_now: false,
            quick_acks: config.quick_acks,
            last_data_received: None,
            duplicate: None,
            readable_told: false,
            challenges: (0, 0),
            rto_at: None,
            persist_at: None,
            persist_backoff: 0,
            ack_at: None,
            reorder_at: None,
            probe_at: None,
            wait_at: None,
            retries: 0,
        };
        connection.snd_nxt = 1;
        connection
    }

    /// Takes data to send: all of it, or as much as there is room for. Returns the bytes taken.
    ///
    /// # Errors
    /// If there is no room, or the connection is closing.
    pub fn send(&mut self, data: &Data) -> Result<u32, SendError> {
        if self.fin_queued || !self.may_still_send() {
            return Err(SendError::Closing);
        }
        let len = (data.len() as u64).min(self.send_room()) as u32;
        if len < data.len() as u32 {
            self.wanted = Some(1);
        }
        if len == 0 {
            return if data.is_empty() {
                Ok(0)
            } else {
                Err(SendError::BufferFull)
            };
        }
        self.buffer.push(data.slice(0, len as usize));
        self.dry_pending = true;
        Ok(len)
    }

    /// Takes data to send: all of it or nothing. What is longer than the send buffer is taken when it is empty.
    ///
    /// # Errors
    /// If there is no room, or the connection is closing.
    pub fn send_all(&mut self, data: Data) -> Result<(), SendError> {
        if self.fin_queued || !self.may_still_send() {
            return Err(SendError::Closing);
        }
        if data.len() as u64 > self.send_room() && self.buffer.len() > 0 {
            self.wanted = Some((data.len() as u32).min(self.config.send_buffer));
            return Err(SendError::BufferFull);
        }
        self.dry_pending |= !data.is_empty();
        self.buffer.push(data);
        Ok(())
    }

    /// Bytes that there is room for.
    #[must_use]
    pub fn send_room(&self) -> u64 {
        u64::from(self.config.send_buffer).saturating_sub(self.buffer.len())
    }

    /// The next data received, if there is any; makes room for more.
    pub fn recv(&mut self) -> Option<Data> {
        let Some(data) = self.reassembly.pop() else {
            self.readable_told = false;
            return None;
        };
        self.tell_of_room();
        Some(data)
    }

    /// Whether the peer has closed its direction and everything it sent was taken.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.fin_at.is_some_and(|at| self.reassembly.next() > at) && self.reassembly.ready_bytes() == 0
    }

    /// Closes this direction once everything sent has arrived (RFC 9293 section 3.10.4).
    pub fn close(&mut self) {
        match self.state {
            State::SynSent => self.end(Event::Closed),
            State::SynReceived | State::Established | State::CloseWait if !self.fin_queued => {
                self.fin_queued = true;
                self.note_close();
            }
            _ => {}
        }
    }

    /// Resets the connection (RFC 9293 section 3.10.5).
    pub fn abort(&mut self) {
        if matches!(
            self.state,
            State::SynReceived | State::Established | State::FinWait1 | State::FinWait2 | State::CloseWait
        ) {
            self.reset_pending = Some(Reset::Abort);
        }
        if self.state != State::Closed {
            self.end(Event::Aborted);
        }
    }

    /// The path carries packets of at most so many bytes (RFC 9293 section 3.7.5, RFC 8201). What is outstanding in
    /// longer ones is lost.
    pub fn set_path_mtu(&mut self, mtu: u32) {
        let mtu = mtu.clamp(LEAST_MTU, self.config.mtu);
        if mtu == self.path_mtu {
            return;
        }
        self.path_mtu = mtu;
        let before = self.mss;
        self.update_mss();
        if self.mss < before {
            let long: Vec<usize> = (0..self.board.segments() as usize)
                .filter(|i| self.board.at(*i).is_some_and(|s| s.len() > self.mss))
                .collect();
            for index in long {
                self.board.mark_lost(index);
            }
        }
    }

    /// A shim makes packets so much longer on their way down.
    pub fn set_overhead(&mut self, overhead: u32) {
        self.overhead = overhead;
        self.update_mss();
    }

    /// The next event. Poll until `None` after every other call.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl Connection {
    pub(super) fn pair(&self) -> Pair {
        Pair {
            local: self.local.address,
            local_port: self.local_port,
            remote: self.remote,
            remote_port: self.remote_port,
        }
    }

    /// Whether these are its two ends.
    #[inline]
    pub(super) fn is_between(&self, pair: &Pair) -> bool {
        self.remote_port == pair.remote_port
            && self.local_port == pair.local_port
            && self.remote == pair.remote
            && self.local.address == pair.local
    }

    /// Whether all is said: its slot can go.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Closed
            && self.events.is_empty()
            && self.reset_pending.is_none()
            && self.reassembly.ready_bytes() == 0
    }

    pub(super) fn seq_of(&self, position: u64) -> SeqNumber {
        self.iss.add(position as u32)
    }

    /// Position of a sequence number of ours, near SND.UNA.
    pub(super) fn position_of(&self, seq: SeqNumber) -> i64 {
        let distance = seq.distance_from(self.seq_of(self.snd_una)) as i32;
        self.snd_una as i64 + i64::from(distance)
    }

    /// Position of a sequence number of the peer's, near RCV.NXT.
    pub(super) fn peer_position_of(&self, seq: SeqNumber) -> i64 {
        let next = self.reassembly.next();
        let distance = seq.distance_from(self.irs.add(next as u32)) as i32;
        next as i64 + i64::from(distance)
    }

    /// Position behind everything that is to be sent, FIN included.
    pub(super) fn send_end(&self) -> u64 {
        self.buffer.end() + u64::from(self.fin_queued)
    }

    pub(super) fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether data of the user may still be taken.
    fn may_still_send(&self) -> bool {
        matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        )
    }

    /// The user has closed: the state once there is a FIN to send.
    pub(super) fn note_close(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// What the peer's SYN offers (RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2).
    pub(super) fn negotiate(&mut self, now: Instant, options: &TcpOptions) {
        self.peer_mss = options.mss().map_or(DEFAULT_MSS, u32::from).max(LEAST_MSS);
        if let Some(t) = options.timestamps.filter(|_| self.config.timestamps) {
            self.timestamps = true;
            self.ts_recent = t.value;
            self.ts_recent_at = now;
        }
        if let Some(shift) = options.window_scale().filter(|_| self.config.window_scaling) {
            self.scaling = true;
            self.snd_wscale = shift.min(super::config::MAX_WINDOW_SCALE);
            self.rcv_wscale = self.config.window_scale();
        }
        self.sack = options.sack_permitted() && self.config.sack;
        self.update_mss();
    }

    /// RFC 9293 section 3.7.1, Eff.snd.MSS, less the options of every segment (RFC 6691).
    pub(super) fn update_mss(&mut self) {
        let path = self.path_mtu.saturating_sub(HEADERS + self.overhead);
        let options = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        let most = self.config.max_segment.unwrap_or(u32::MAX);
        let room = self.peer_mss.min(path).saturating_sub(options);
        self.mss = room.min(most).max(LEAST_MSS);
        self.window.set_segment(self.mss);
    }

    /// Both SYNs are acknowledged.
    pub(super) fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.retries = 0;
        // RFC 5681 section 3.1: if the SYN was lost, one segment; as Linux, if it was lost twice
        let initial = self.config.initial_window.bytes(self.mss);
        let initial_window = if self.syn_transmissions > 2 {
            self.mss
        } else {
            initial
        };
        self.window = self.config.congestion_control.begin(&Start {
            segment: self.mss,
            initial_window,
            credit: self.config.credit,
            slow_start: self.config.slow_start,
            cubic_curve: self.config.cubic_curve,
            reno_friendliness: self.config.reno_friendliness,
            rtt: self.rtt.srtt(),
        });
        self.round_end = self.snd_nxt;
        self.usage.begin(now);
        self.events.push_back(Event::Connected);
        if self.fin_queued {
            self.note_close();
        }
    }

    /// It is over.
    pub(super) fn end(&mut self, event: Event) {
        // nobody was told of a connection that never came about; of one in TIME-WAIT, all was told
        let known = self.state != State::TimeWait && (self.active || self.state != State::SynReceived);
        self.state = State::Closed;
        self.rto_at = None;
        self.persist_at = None;
        self.ack_at = None;
        self.reorder_at = None;
        self.probe_at = None;
        self.wait_at = None;
        self.syn_pending = false;
        self.probe_pending = false;
        self.window_probe_pending = false;
        self.ack_now = false;
        if known {
            self.events.push_back(event);
        }
    }

    /// The user has read: an update of the window is due if its right edge can move by two segments, or half the buffer
    /// (RFC 9293 section 3.8.6.2.2).
    fn tell_of_room(&mut self) {
        if !self.is_synchronized() || self.fin_at.is_some() {
            return;
        }
        let edge = self.reassembly.next() + self.free_receive_buffer();
        let step = u64::from((2 * self.rcv_mss).min(self.config.receive_buffer / 2));
        if edge >= self.rcv_adv + step.max(1) && self.rcv_adv - self.reassembly.next() < step.max(1) {
            self.ack_now = true;
        }
    }

    pub(super) fn free_receive_buffer(&self) -> u64 {
        u64::from(self.config.receive_buffer).saturating_sub(self.reassembly.ready_bytes())
    }

    /// The clock of timestamps: milliseconds (RFC 7323 section 5.4).
    pub(super) fn ts_now(&self, now: Instant) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.ts_offset)
    }

    /// Time since a timestamp of ours.
    pub(super) fn since_ts(&self, now: Instant, ts: u32) -> Duration {
        Duration::from_millis(u64::from(self.ts_now(now).wrapping_sub(ts)))
    }
}

/// IPv6 and TCP headers without options.
pub(super) const HEADERS: u32 = 40 + HEADER_LEN as u32;
/// Timestamps with their padding.
const TIMESTAMPS_LEN: u32 = 12;
/// RFC 9293 section 3.7.1: without an MSS option, over IPv6.
const DEFAULT_MSS: u32 = 1220;
/// Less is not believed: as Linux, against peers that want to be sent single bytes.
const LEAST_MSS: u32 = 48;
/// RFC 8200 section 5.
const LEAST_MTU: u32 = 1280;
