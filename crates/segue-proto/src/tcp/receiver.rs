//! The receiving half of a connection: the window that is offered, what has arrived, and when it is acknowledged.

use super::config::Config;
use super::reassembly::{Range, Reassembly, Taken};
use super::segment_size::LEAST_MSS;
use crate::time::{Duration, Instant};
use segue_wire::tcp::{MAX_SACK_BLOCKS, SackBlock, TcpOptions};
use segue_wire::{Data, SeqNumber};

/// What a connection receives.
#[derive(Debug)]
pub(super) struct Receiver {
    irs: SeqNumber,
    reassembly: Reassembly,
    /// Shift count of the windows that are offered; `None` unless both ends scale theirs.
    wscale: Option<u8>,
    /// Right edge of the window that was offered.
    right_edge: u64,
    /// RCV.NXT when last acknowledged.
    last_ack_sent: u64,
    /// Longest segment that came.
    longest: u32,
    /// Position of the peer's FIN, once it is known.
    fin_at: Option<u64>,
    ack_now: bool,
    ack_at: Option<Instant>,
    quick_acks: u32,
    last_data: Option<Instant>,
    /// What came twice, and is to be reported (RFC 2883).
    duplicate: Option<Range>,
    readable_told: bool,
}

/// Data and FIN of a segment.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Position of its first byte (SYN passed).
    pub at: i64,
    pub data: Data,
    pub fin: bool,
}

/// What became of the data and the FIN of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Received {
    /// Bytes that are in order now and were not.
    pub new_bytes: u64,
    /// The user is to be told that there is something to read.
    pub readable: bool,
    /// Some or all of it was there already.
    pub duplicate: bool,
    /// It came before something that was due earlier.
    pub out_of_order: bool,
    /// It contradicts a FIN, and was not taken.
    pub after_close: bool,
    /// The FIN has been reached.
    pub closed: bool,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        Self {
            irs: SeqNumber(0),
            reassembly: Reassembly::new(0),
            wscale: None,
            right_edge: 0,
            last_ack_sent: 0,
            longest: LEAST_MSS,
            fin_at: None,
            ack_now: false,
            ack_at: None,
            quick_acks: config.quick_acks,
            last_data: None,
            duplicate: None,
            readable_told: false,
        }
    }

    /// The peer's SYN, at this number. `wscale` is the shift count of our windows if both ends scale theirs.
    pub fn on_syn(&mut self, irs: SeqNumber, wscale: Option<u8>) {
        self.irs = irs;
        self.wscale = wscale;
        self.reassembly.pass_control();
    }

    /// Whether this is the number of the peer's SYN.
    pub fn is_syn(&self, seq: SeqNumber) -> bool {
        seq == self.irs
    }

    /// Whether both ends scale their windows.
    pub fn scales(&self) -> bool {
        self.wscale.is_some()
    }

    /// RCV.NXT, as a position.
    #[inline]
    pub fn next(&self) -> u64 {
        self.reassembly.next()
    }

    /// RCV.NXT.
    #[inline]
    pub fn next_seq(&self) -> SeqNumber {
        self.irs.add(self.reassembly.next() as u32)
    }

    /// Position of a sequence number of the peer's, near RCV.NXT.
    pub fn position_of(&self, seq: SeqNumber) -> i64 {
        let next = self.reassembly.next();
        let distance = seq.distance_from(self.irs.add(next as u32)) as i32;
        next as i64 + i64::from(distance)
    }

    /// RCV.NXT when last acknowledged: Last.ACK.sent of RFC 7323.
    pub fn last_ack_sent(&self) -> u64 {
        self.last_ack_sent
    }

    /// Bytes that the user may take.
    pub fn ready_bytes(&self) -> u64 {
        self.reassembly.ready_bytes()
    }

    /// Whether everything up to the FIN was received and taken.
    pub fn is_at_end(&self) -> bool {
        self.fin_at.is_some_and(|at| self.reassembly.next() > at) && self.reassembly.ready_bytes() == 0
    }

    /// The next data in order. Where there is none, the user is told of the next that comes.
    pub fn pop(&mut self) -> Option<Data> {
        let data = self.reassembly.pop();
        if data.is_none() {
            self.readable_told = false;
        }
        data
    }

    /// The user has read: an update of the window is due if its right edge can move by two segments, or half the buffer
    /// (RFC 9293 section 3.8.6.2.2).
    pub fn tell_of_room(&mut self, config: &Config) {
        if self.fin_at.is_some() {
            return;
        }
        let edge = self.reassembly.next() + self.free(config);
        let step = u64::from((2 * self.longest).min(config.receive_buffer / 2));
        if edge >= self.right_edge + step.max(1) && self.right_edge - self.reassembly.next() < step.max(1) {
            self.ack_now = true;
        }
    }

    /// Table 6 of RFC 9293 section 3.10.7.4.
    pub fn is_acceptable(&self, at: i64, len: u32) -> bool {
        let next = self.reassembly.next() as i64;
        let edge = (self.right_edge as i64).max(next);
        let last = at + i64::from(len.max(1)) - 1;
        let inside = |p: i64| next <= p && p < edge;
        match (len, edge - next) {
            (0, 0) => at == next,
            (0, _) => inside(at) || at == next,
            (_, 0) => false,
            _ => inside(at) || inside(last),
        }
    }

    /// Whether a segment that is not acceptable may acknowledge all the same: one at the right edge of the window. That is where
    /// a peer acknowledges from that has filled it; with a window of zero the edge is RCV.NXT (RFC 9293 section 3.10.7.4, "special
    /// allowance ... to accept valid ACKs"). From anywhere else somebody off the path could acknowledge without a guess of the
    /// window, on which RFC 5961 section 5 relies.
    pub fn is_within_or_at_edge(&self, at: i64) -> bool {
        let next = self.reassembly.next() as i64;
        (next..=(self.right_edge as i64).max(next)).contains(&at)
    }

    /// Takes the data and the FIN of a segment that is in the window, in part at least. `rto` is the timeout of what this end
    /// sends.
    #[inline]
    pub fn take(&mut self, now: Instant, config: &Config, rto: Duration, arrived: Arrived) -> Received {
        let len = arrived.data.len();
        self.longest = self.longest.max(len as u32);
        if self.last_data.is_some_and(|at| now.since(at) > rto) {
            self.enter_quick_acks(config);
        }
        self.last_data = Some(now);
        let room = (self.right_edge.max(self.reassembly.next()) as i64 - arrived.at).max(0) as usize;
        // nearly always it is inside the window, and nothing is known of a FIN
        if len > room || arrived.at < 1 || arrived.fin || self.fin_at.is_some() {
            self.take_end_of_data(now, config, arrived, room)
        } else {
            self.take_in(now, config, arrived.at as u64, arrived.data)
        }
    }

    /// The data of a segment that is cut by the window, or has or may contradict a FIN. There is so much `room` for it.
    #[inline(never)]
    fn take_end_of_data(&mut self, now: Instant, config: &Config, arrived: Arrived, room: usize) -> Received {
        let Arrived {
            at,
            mut data,
            mut fin,
        } = arrived;
        // beyond the window: cut off
        if data.len() > room {
            data = data.slice(0, room);
            fin = false;
        }
        let end = at + data.len() as i64;
        // before position 1 there is only the SYN
        let start = at.max(1);
        let skip = (start - at) as usize;
        let contradicts = match self.fin_at {
            Some(known) if fin => known != end as u64,
            Some(known) => end as u64 > known,
            None => false,
        };
        if contradicts {
            return Received {
                after_close: true,
                ..Received::default()
            };
        }
        if fin {
            self.fin_at = Some(end as u64);
        }
        let mut received = Received::default();
        if data.len() > skip {
            received = self.take_in(now, config, start as u64, data.slice(skip, data.len() - skip));
        }
        match self.fin_at {
            Some(at) if self.reassembly.next() >= at => {
                if self.reassembly.next() == at {
                    self.reassembly.pass_control();
                }
                self.ack_now = true;
                received.closed = true;
            }
            Some(at) if fin => {
                self.reassembly.note_fin(at);
                self.ack_now = true;
            }
            _ => {}
        }
        received
    }

    /// Data at a position inside the window.
    fn take_in(&mut self, now: Instant, config: &Config, at: u64, data: Data) -> Received {
        let mut received = Received::default();
        if data.is_empty() {
            return received;
        }
        let ready = self.reassembly.ready_bytes();
        let expected = self.reassembly.expects(at);
        let mut in_order = true;
        if expected {
            self.reassembly.append(data);
        } else {
            let taken = self.take_unexpected(config, at, data);
            received.duplicate = taken.duplicate.is_some();
            received.out_of_order = taken.out_of_order;
            in_order = taken.in_order;
        }
        received.new_bytes = self.reassembly.ready_bytes() - ready;
        if in_order && !self.readable_told {
            self.readable_told = true;
            received.readable = true;
        }
        self.schedule_ack(now, config, expected);
        received
    }

    /// Data that is a duplicate, beyond a gap, or fills one.
    #[inline(never)]
    fn take_unexpected(&mut self, config: &Config, at: u64, data: Data) -> Taken {
        let taken = self.reassembly.take(at, data);
        if taken.duplicate.is_some() {
            self.duplicate = taken.duplicate.filter(|_| config.dsack);
        }
        taken
    }

    /// RFC 5681 section 4.2: segments that are out of order, fill a gap or are duplicates are acknowledged at once;
    /// others, which were expected, at the second full-sized one, or after a while.
    fn schedule_ack(&mut self, now: Instant, config: &Config, expected: bool) {
        let unacknowledged = self.reassembly.next() - self.last_ack_sent;
        let full = u64::from(config.ack_frequency) * u64::from(self.longest);
        if !expected || self.quick_acks > 0 || unacknowledged >= full || self.reassembly.has_gap() {
            self.ack_now = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + config.ack_delay);
        }
    }

    /// A segment that is not taken came twice, and is reported.
    pub fn note_duplicate(&mut self, config: &Config, at: i64, len: usize) {
        if config.dsack && len > 0 && at > 0 {
            self.duplicate = Some((at as u64, at as u64 + len as u64));
        }
    }

    /// An acknowledgement is due.
    pub fn demand_ack(&mut self) {
        self.ack_now = true;
    }

    /// Whether an acknowledgement is due.
    #[inline]
    pub fn must_ack(&self) -> bool {
        self.ack_now
    }

    /// The next acknowledgements are sent at once.
    pub fn enter_quick_acks(&mut self, config: &Config) {
        self.quick_acks = self.quick_acks.max(config.quick_acks);
    }

    /// When the acknowledgement that is put off is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ack_at
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_at = None;
            self.ack_now = true;
        }
    }

    /// The connection is over: nothing is acknowledged any more.
    pub fn stop(&mut self) {
        self.ack_at = None;
        self.ack_now = false;
    }

    /// What was received is acknowledged by the segment at hand.
    pub fn acknowledged(&mut self) {
        let next = self.reassembly.next();
        if next > self.last_ack_sent || self.ack_now {
            self.quick_acks = self.quick_acks.saturating_sub(1);
        }
        self.last_ack_sent = next;
        self.ack_now = false;
        self.ack_at = None;
    }

    /// Whether there is something to report by SACK blocks.
    pub fn has_reports(&self) -> bool {
        self.reassembly.has_gap() || self.duplicate.is_some()
    }

    /// RFC 2018 section 4, with a duplicate first (RFC 2883 section 4).
    pub fn add_sack_blocks(&mut self, options: &mut TcpOptions) {
        let most = if options.timestamps.is_some() {
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

    /// The window of a SYN, which is never scaled (RFC 7323 section 2.2).
    pub fn offer_first_window(&mut self, config: &Config) -> u16 {
        let window = config.receive_buffer.min(u32::from(u16::MAX));
        self.right_edge = self.reassembly.next() + u64::from(window);
        window as u16
    }

    /// RCV.WND: the right edge never moves back (RFC 9293 section 3.8.6, SHLD-14), and forward only by a segment or half
    /// the buffer (section 3.8.6.2.2).
    pub fn offer_window(&mut self, config: &Config) -> u16 {
        let next = self.reassembly.next();
        let offered = self.right_edge.saturating_sub(next);
        let free = self.free(config);
        let step = u64::from(self.longest.min(config.receive_buffer / 2));
        let wscale = self.wscale.unwrap_or(0);
        let unit = 1u64 << wscale;
        let mut window = if free >= offered + step || free == u64::from(config.receive_buffer) {
            free & !(unit - 1)
        } else {
            offered
        };
        // rounded up where rounding down would take back what was offered
        window = (window.max(offered) + (unit - 1)) & !(unit - 1);
        window = window.min(u64::from(u16::MAX) << wscale);
        self.right_edge = self.right_edge.max(next + window);
        (window >> wscale) as u16
    }

    fn free(&self, config: &Config) -> u64 {
        u64::from(config.receive_buffer).saturating_sub(self.reassembly.ready_bytes())
    }
}
