//! The sending half of a connection.
//!
//! [`Sender`] composes owners, each with what it alone may change: the stream, the peer's window, the size of segments, the
//! scoreboard, how losses are found, what recovery is in, round trips, timers. What it does with them is by topic in `ack`
//! (what an acknowledgement says), `losses` (recovery) and `transmit` (what is sent, and when).

mod ack;
mod detection;
mod frto;
mod losses;
mod network;
mod peer_window;
mod pending;
mod rack;
mod recovery;
mod reduction;
mod report;
mod stream;
mod timers;
mod transmit;
mod undo;
mod usage;

pub(super) use losses::Expiry;
pub(super) use stream::Progress;
pub(super) use transmit::Span;

use super::config::Config;
use super::counters::RecoveryCounters;
use super::event::{Outstanding, SendError, Snapshot, State};
use super::networks::Remembered;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::segment_size::SegmentSize;
use super::timestamps::Clock;
use crate::congestion::{CongestionControl, Start};
use crate::time::{Duration, Instant};
use detection::Detection;
use network::OnNetwork;
use peer_window::PeerWindow;
use pending::Pending;
use recovery::Recovery;
use reduction::Level;
use segue_wire::{Data, SeqNumber};
use std::sync::Arc;
use stream::Stream;
use timers::{Timer, Timers};
use usage::Usage;

/// What a connection sends.
#[derive(Debug)]
pub(super) struct Sender {
    config: Arc<Config>,
    clock: Clock,
    counters: RecoveryCounters,
    stream: Stream,
    peer: PeerWindow,
    size: SegmentSize,
    board: Scoreboard,
    detection: Detection,
    recovery: Recovery,
    window: Box<dyn CongestionControl>,
    usage: Usage,
    rtt: Rtt,
    /// The network that the peer is in, if such things are remembered.
    network: Option<Box<OnNetwork>>,
    timers: Timers,
    pending: Pending,
}

/// What the peer's SYN says of what it takes, and both ends' of how it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Negotiated {
    pub mss: Option<u16>,
    pub timestamps: bool,
    pub sack: bool,
    /// Shift count of the peer's windows, if both ends scale theirs.
    pub wscale: Option<u8>,
}

impl Sender {
    pub fn new(now: Instant, config: &Arc<Config>, iss: SeqNumber, clock: Clock, overhead: u32) -> Self {
        let size = SegmentSize::new(config, overhead);
        Self {
            config: Arc::clone(config),
            clock,
            counters: RecoveryCounters::default(),
            stream: Stream::new(iss, config.send_buffer),
            peer: PeerWindow::default(),
            size,
            board: Scoreboard::default(),
            detection: Detection::new(config, false),
            recovery: Recovery::new(),
            window: begin_window(config, size.mss(), size.mss(), None),
            usage: Usage::new(now),
            rtt: Rtt::new(config),
            network: None,
            timers: Timers::default(),
            pending: Pending::default(),
        }
    }

    /// Takes as much data as there is room for. Returns the bytes taken.
    pub fn send(&mut self, data: &Data) -> Result<u32, SendError> {
        self.stream.push(data)
    }

    /// Takes all of the data or nothing.
    pub fn send_all(&mut self, data: Data) -> Result<(), SendError> {
        self.stream.push_all(data)
    }

    /// What is given next has been in the making since then.
    pub fn busy_from(&mut self, since: Instant) {
        self.stream.busy_from(since);
    }

    /// Since when there has always been data that was not acknowledged.
    #[inline]
    pub fn busy_since(&self) -> Option<Instant> {
        self.stream.busy_since()
    }

    /// Bytes that there is room for.
    pub fn room(&self) -> u64 {
        self.stream.room()
    }

    /// A FIN goes behind the last byte.
    pub fn close(&mut self) {
        self.stream.close();
    }

    /// Whether a FIN goes behind the last byte.
    pub fn is_closing(&self) -> bool {
        self.stream.is_closing()
    }

    /// Whether the FIN is acknowledged.
    pub fn is_fin_acked(&self) -> bool {
        self.stream.is_fin_acked()
    }

    /// Whether all data is acknowledged.
    pub fn is_data_acked(&self) -> bool {
        self.stream.una() >= self.stream.data_end()
    }

    /// The connection is over.
    pub fn stop(&mut self) {
        self.timers.stop_all();
        self.pending.forget_probes();
    }

    /// The connection is in TIME-WAIT: nothing is retransmitted any more.
    pub fn stop_retransmitting(&mut self) {
        self.timers.stop(Timer::Retransmission);
        self.timers.stop(Timer::Probe);
    }

    /// What the SYNs say (RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2).
    pub fn negotiate(&mut self, negotiated: Negotiated) {
        self.peer = PeerWindow::new(negotiated.wscale.unwrap_or(0));
        self.detection = Detection::new(&self.config, negotiated.sack);
        self.size
            .negotiate(&self.config, negotiated.mss, negotiated.timestamps);
        self.window.set_segment(self.size.mss());
    }

    /// The window of a SYN, or of what acknowledges one, that begins `at`.
    pub fn begin_peer_window(&mut self, at: u64, window: u16) {
        // windows in a SYN are never scaled (RFC 7323 section 2.2)
        self.peer.begin(at, self.stream.una(), u32::from(window));
    }

    /// Our SYN has arrived, after so many `transmissions`; the acknowledgement echoes this timestamp of ours.
    pub fn establish(&mut self, now: Instant, transmissions: u32, echo: Option<u32>) {
        if let Some(syn) = self.board.pop_acked(1) {
            let rtt = match echo {
                _ if transmissions == 1 => Some(now.since(syn.sent_at())),
                Some(echo) => Some(self.clock.since(now, echo)),
                None => None,
            };
            match rtt {
                Some(rtt) => self.rtt.measure(rtt, 1, 1),
                None => self.rtt.fall_back(),
            }
        }
        self.stream.acknowledge(1);
        self.timers.stop(Timer::Retransmission);
        self.timers.forget_retries();
        // RFC 5681 section 3.1: if the SYN was lost, one segment; as Linux, if it was lost twice
        let initial_window = if transmissions > 2 {
            self.size.mss()
        } else {
            self.config.initial_window.bytes(self.size.mss())
        };
        self.window = begin_window(&self.config, self.size.mss(), initial_window, self.rtt.srtt());
        self.stream.begin_round();
        self.usage.begin(now);
    }

    /// The path carries packets of at most so many bytes. What is outstanding in longer ones is lost, which says nothing of
    /// congestion: it is sent again as after a timeout, with the window as it is (RFC 8201 section 5.4; RFC 1191 section 6.4).
    pub fn on_path_mtu(&mut self, mtu: u32) {
        let before = self.size.mss();
        if !self.size.on_path_mtu(&self.config, mtu) {
            return;
        }
        let mss = self.size.mss();
        self.window.set_segment(mss);
        if mss < before {
            let long: Vec<usize> = (0..self.board.segments() as usize)
                .filter(|i| self.board.at(*i).is_some_and(|s| s.len() > mss))
                .collect();
            for index in long {
                self.board.mark_lost(index);
            }
            if self.board.has_lost() && self.recovery.is_calm() {
                self.recovery.begin_repair(self.stream.next());
                self.timers.stop(Timer::Reorder);
                self.timers.stop(Timer::Probe);
            }
        }
    }

    /// A shim makes packets so much longer on their way down.
    pub fn on_overhead(&mut self, overhead: u32) {
        self.size.on_overhead(&self.config, overhead);
        self.window.set_segment(self.size.mss());
    }

    /// Bytes of data per segment that the peer is told to send at most.
    pub fn announced_mss(&self) -> u32 {
        self.size.announced(&self.config)
    }

    /// The peer is in another network, which is known perhaps: gives what was seen of the one that it left.
    pub fn change_network(&mut self, now: Instant, known: Option<Remembered>) -> Option<Remembered> {
        let left = self.network.take().unwrap_or_default();
        let seen = left.seen(&self.rtt);
        let remedy = self.config.remedy;
        let resumes = known.filter(|_| remedy.careful_resume);
        self.network = Some(Box::new(OnNetwork::entered(now, resumes)));
        let Some(known) = known else { return seen };
        let margin = known.srtt.as_secs_f64() * remedy.rtt_margin.max(0.0);
        self.rtt
            .assume(known.srtt + Duration::from_secs_f64(margin), known.variation);
        if let Some(armed) = self.timers.at(Timer::Retransmission) {
            // what is under way has as long as anything has in that network; what a timeout has found lost waits no
            // longer than it would have
            let there = now + self.rtt.rto();
            let at = if self.timers.retries() == 0 {
                there
            } else {
                there.min(armed)
            };
            self.timers.start(Timer::Retransmission, at);
        }
        if resumes.is_some() {
            // what the other network carried is nothing to return to
            self.recovery.on_other_network(self.stream.next());
            let initial = network::INITIAL_WINDOW * self.size.mss();
            self.window.set_cwnd(self.window.cwnd().min(initial));
            if let Some(capacity) = known.capacity {
                self.window.set_ssthresh(capacity.max(2 * self.size.mss()));
            }
        }
        seen
    }

    pub fn seq_of(&self, position: u64) -> SeqNumber {
        self.stream.seq_of(position)
    }

    /// SND.NXT.
    pub fn next_seq(&self) -> SeqNumber {
        self.stream.seq_of(self.stream.next())
    }

    /// Position of a sequence number of ours, near SND.UNA.
    pub fn position_of(&self, seq: SeqNumber) -> i64 {
        self.stream.position_of(seq)
    }

    /// Where an acknowledgement stands to what was sent.
    #[inline]
    pub fn place(&self, ack: i64) -> Place {
        let (una, next) = (self.stream.una() as i64, self.stream.next() as i64);
        if ack > next || ack < una - i64::from(self.peer.greatest()) {
            Place::Impossible
        } else if ack < una {
            Place::Old
        } else {
            Place::Current
        }
    }

    /// Whether the SYN waits for its acknowledgement.
    pub fn has_outstanding(&self) -> bool {
        !self.board.is_empty()
    }

    /// Whether the octet with this number is outstanding.
    pub fn is_outstanding(&self, seq: SeqNumber) -> bool {
        let at = self.position_of(seq);
        at >= self.stream.una() as i64 && at < self.stream.next() as i64
    }

    /// Both ends know SACK.
    pub fn has_sack(&self) -> bool {
        self.detection.has_sack()
    }

    /// The retransmission timeout.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub fn counters(&self) -> &RecoveryCounters {
        &self.counters
    }

    /// How a connection in this state does.
    pub fn snapshot(&self, state: State) -> Snapshot {
        Snapshot {
            state,
            phase: self.recovery.phase(),
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
            flightsize: self.board.flightsize(),
            snd_wnd: self.peer.size(),
            mss: self.size.mss(),
            srtt: self.rtt.srtt(),
            shortest_rtt: self.rtt.shortest(),
            rto: self.rtt.rto(),
            send_queue: self.stream.len(),
            reordering: self.detection.dup_thresh(),
        }
    }

    /// What is outstanding, by segment; each is looked at.
    pub fn outstanding(&self) -> Outstanding {
        let (lost, retransmitted) = self.board.lost_and_retransmitted();
        Outstanding {
            segments: self.board.segments(),
            sacked: self.board.sacked_segments() + self.recovery.duplicates(),
            lost,
            retransmitted,
        }
    }
}

impl Sender {
    /// Bytes thought to be in the network; without SACK, duplicate acknowledgements have taken a segment out each
    /// (RFC 5681 section 3.2, step 4).
    fn pipe(&self) -> u32 {
        let pipe = self.board.pipe();
        match self.recovery.duplicates() {
            0 => pipe,
            n => pipe.saturating_sub(n * self.size.mss()),
        }
    }

    /// Where the window stands.
    fn level(&self) -> Level {
        Level {
            mss: self.size.mss(),
            pipe: self.pipe(),
            cwnd: self.window.cwnd(),
            ssthresh: self.window.ssthresh(),
        }
    }

    /// Right edge of the peer's window.
    fn right_edge(&self) -> u64 {
        self.stream.una() + u64::from(self.peer.size())
    }

    /// Whether new data could go as far as the peer's window is concerned.
    fn may_send_new_data(&self) -> bool {
        self.stream.next() < self.stream.end() && self.stream.next() < self.right_edge()
    }

    /// Whether cwnd counts as used, where `pipe` bytes were in the network when the acknowledgement at hand came.
    #[inline]
    fn is_window_used(&self, pipe: u32) -> bool {
        self.usage
            .is_full(self.config.window_use, pipe, self.size.mss(), &*self.window)
    }
}

/// Where an acknowledgement stands to what was sent (RFC 5961 section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Between SND.UNA and SND.NXT.
    Current,
    /// Before SND.UNA, by no more than a window.
    Old,
    Impossible,
}

fn begin_window(
    config: &Config,
    segment: u32,
    initial_window: u32,
    rtt: Option<Duration>,
) -> Box<dyn CongestionControl> {
    config.congestion_control.begin(&Start {
        segment,
        initial_window,
        credit: config.credit,
        slow_start: config.slow_start,
        cubic_curve: config.cubic_curve,
        reno_friendliness: config.reno_friendliness,
        rtt,
    })
}
