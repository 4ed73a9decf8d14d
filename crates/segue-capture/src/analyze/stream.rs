//! A capture on its way to an engine, and what is counted of it as a whole.

use super::counts::Counts;
use super::input::Error;
use super::model::{CaptureReport, Warning, WarningKind};
use super::offset::Clocks;
use super::reader::{Next, Reader, Record};

/// Captures of several interfaces are out of order by less than this.
const WENT_BACK_NS: u64 = 1_000_000_000;

/// A capture being read.
pub(super) struct Stream {
    name: String,
    number: usize,
    reader: Reader,
    clocks: Clocks,
    /// What is next, with its time on the common clock.
    next: Next,
    packets: u64,
    wire_bytes: u64,
    truncated: u64,
    /// Earliest and latest packet, and the one before.
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    before_ns: u64,
    went_back: u64,
    /// By how much, at most.
    back_ns: u64,
}

impl Stream {
    /// The first or the second of the captures, at its first packet.
    pub(super) fn new(reader: Reader, name: String, number: usize, clocks: Clocks) -> Self {
        let mut stream = Self {
            name,
            number,
            reader,
            clocks,
            next: Next::Pending,
            packets: 0,
            wire_bytes: 0,
            truncated: 0,
            first_ns: None,
            last_ns: None,
            before_ns: 0,
            went_back: 0,
            back_ns: 0,
        };
        while stream.next == Next::Pending {
            stream.advance();
        }
        stream
    }

    /// What is next.
    pub(super) const fn next(&self) -> Next {
        self.next
    }

    /// The time of the packet that is next, if one is.
    pub(super) const fn time_ns(&self) -> Option<u64> {
        match self.next {
            Next::Packet(time_ns) => Some(time_ns),
            Next::Pending | Next::End => None,
        }
    }

    /// The packet that is next.
    pub(super) fn record(&self) -> Record<'_> {
        self.reader.record()
    }

    /// Which of the captures it is.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// As errors and reports name it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Packets so far.
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// The name of an interface, if the file says so.
    pub(super) fn interface_name(&self, number: u32) -> Option<String> {
        self.reader.interface_name(number)
    }

    /// Goes on to the next packet.
    pub(super) fn advance(&mut self) {
        self.next = self.reader.advance();
        let Next::Packet(time_ns) = self.next else {
            return;
        };
        let record = self.reader.record();
        self.packets += 1;
        self.wire_bytes += u64::from(record.wire_len);
        self.truncated += u64::from((record.bytes.len() as u64) < u64::from(record.wire_len));
        self.went_back += u64::from(self.before_ns > time_ns);
        self.before_ns = time_ns;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        let last_ns = self.last_ns.map_or(time_ns, |last| last.max(time_ns));
        self.back_ns = self.back_ns.max(last_ns - time_ns);
        self.last_ns = Some(last_ns);
        if self.number > 0 {
            self.next = Next::Packet(self.clocks.to_first(time_ns));
        }
    }

    /// An error if there is to be no result, although something was read.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.reader.refused() {
            None => Ok(()),
            Some(reason) => Err(Error::Io {
                file: self.name.clone(),
                reason: reason.clone(),
            }),
        }
    }

    /// What is to be known of its times before they are believed.
    pub(super) fn warning(&self) -> Option<Warning> {
        (self.back_ns > WENT_BACK_NS).then(|| Warning {
            kind: WarningKind::TimeWentBack,
            host: None,
            flow: None,
            text: format!(
                "{}: times go back by up to {:.3} s: no length of time in it can be trusted",
                self.name,
                self.back_ns as f64 / 1e9
            ),
        })
    }

    /// What was read, and what an engine counted of it.
    pub(super) fn report(&self, counts: &Counts) -> CaptureReport {
        CaptureReport {
            file: self.name.clone(),
            format: self.reader.format(),
            interfaces: self.reader.interfaces(),
            packets: self.packets,
            wire_bytes: self.wire_bytes,
            truncated_packets: self.truncated,
            first_time_ns: self.first_ns,
            last_time_ns: self.last_ns,
            time_went_back: self.went_back,
            counts: counts.by_name(),
            partial: self.reader.partial().cloned(),
        }
    }
}
