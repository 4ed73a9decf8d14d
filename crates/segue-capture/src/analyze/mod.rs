//! Handover numbers from any capture: pcap and pcapng, of one host or of both ends.
//!
//! [`analyze`] reads one or two captures as a stream, finds flows that survive a change of address (TCP over Mobile IPv6 or
//! ILNPv6, MPTCP, SCTP, QUIC, WireGuard) and others, and gives for each handover what the papers measure. Memory does not
//! depend on the length of a capture: flows, paths and everything else that is remembered have limits, and
//! [`Analysis::limits`] says which of them were hit.
//!
//! ```
//! use segue_capture::analyze::{Error, Input, Options, analyze_inputs};
//! let nothing = Input::Bytes("nothing.pcap".to_owned(), [].into());
//! let error = analyze_inputs(&[nothing], &Options::default()).unwrap_err();
//! assert!(matches!(error, Error::Empty { .. }));
//! ```

mod adaptation;
mod counts;
mod decode;
mod endings;
mod engine;
mod fates;
mod flows;
mod found;
mod heard;
mod input;
mod kinds;
mod model;
mod offset;
mod places;
mod protocol;
mod reader;
mod report;
mod signal;
mod watch;

pub use adaptation::{AdaptationTime, BIN_NS, Bin, MAX_BINS, ThroughputBins, adaptation_time};
pub use flows::rates::RTT_KEPT;
pub use input::{Error, Input};
pub use model::{
    Analysis, Around, CaptureInterface, CaptureReport, ClockOffset, Direction, DirectionReport, EndCounts,
    Endpoint, Flow, Handover, HandoverKind, Interruption, Mobility, Options, Partial, Path, PathShare,
    Protocol, SegmentMark, Series, Share, Signal, SignalKind, Spread, Vantage, Warning, WarningKind,
};
pub use watch::Watch;

use engine::{Engine, Outcome};
use offset::{Common, Samples};
use reader::Reader;
use std::path::PathBuf;

/// Version of [`Analysis`].
const FORMAT: u32 = 2;

/// Captures of several interfaces are out of order by less than this.
const WENT_BACK_NS: u64 = 1_000_000_000;

/// Analyses one capture, or two of the same traffic: the mobile node's and its correspondent's, in any order. Times are
/// those of the first.
///
/// # Errors
/// If a file cannot be read at all or is no capture; one that breaks off is analysed as far as it goes, see
/// [`CaptureReport::partial`].
pub fn analyze(files: &[PathBuf], options: &Options) -> Result<Analysis, Error> {
    let inputs: Vec<Input> = files.iter().map(|f| Input::from(f.as_path())).collect();
    analyze_inputs(&inputs, options)
}

/// As [`analyze`], of captures that need not be files.
///
/// # Errors
/// As [`analyze`].
pub fn analyze_inputs(inputs: &[Input], options: &Options) -> Result<Analysis, Error> {
    if inputs.is_empty() || inputs.len() > 2 {
        return Err(Error::Count(inputs.len()));
    }
    let open = |input: &Input| Reader::open(input.open()?, &input.name());
    let mut common = Common::default();
    if let [first, second] = inputs {
        let first = Samples::of(&mut open(first)?);
        let second = Samples::of(&mut open(second)?);
        common = Common::of(&first, &second);
    }
    let mut streams = Vec::with_capacity(2);
    for input in inputs {
        streams.push(Stream::new(open(input)?, input.name(), streams.len(), &common));
    }
    let start_ns = streams.iter().filter_map(|s| s.time_ns).min().unwrap_or_default();
    // what has nothing in common is no two ends of anything
    let two = inputs.len() == 2;
    let apart = two && common.clocks.offset.is_none() && common.left_out.is_none();
    let new = |_| Engine::new(options, two, common.places.clone(), start_ns);
    let mut engines: Vec<Engine> = (0..1 + usize::from(apart)).map(new).collect();
    let mut end_ns = start_ns;
    while let Some(number) = next(&streams) {
        let stream = &mut streams[number];
        if let Some(time_ns) = stream.time_ns {
            end_ns = end_ns.max(time_ns);
            if common.left_out != Some(number) {
                let engine = &mut engines[if apart { number } else { 0 }];
                engine.packet(number as u8, time_ns, &stream.reader.record());
            }
        }
        stream.advance(&common);
    }
    let outcomes = engines.into_iter().map(Engine::finish);
    let whole = outcomes.reduce(Outcome::and);
    let whole = whole.unwrap_or_else(|| new(0).finish());
    Ok(assemble(whole, streams, &common, start_ns, end_ns))
}

/// A capture being read.
struct Stream {
    name: String,
    number: usize,
    reader: Reader,
    /// Of the packet that is next, on the common clock.
    time_ns: Option<u64>,
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
    fn new(reader: Reader, name: String, number: usize, common: &Common) -> Self {
        let mut stream = Self {
            name,
            number,
            reader,
            time_ns: None,
            packets: 0,
            wire_bytes: 0,
            truncated: 0,
            first_ns: None,
            last_ns: None,
            before_ns: 0,
            went_back: 0,
            back_ns: 0,
        };
        stream.advance(common);
        stream
    }

    fn advance(&mut self, common: &Common) {
        let own_ns = self.reader.advance();
        if let Some(time_ns) = own_ns {
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
        }
        self.time_ns = match self.number {
            0 => own_ns,
            _ => own_ns.map(|ns| common.clocks.to_first(ns)),
        };
    }
}

/// The stream with the earliest packet.
fn next(streams: &[Stream]) -> Option<usize> {
    let times = streams
        .iter()
        .enumerate()
        .filter_map(|(n, s)| Some((s.time_ns?, n)));
    times.min().map(|(_, n)| n)
}

fn assemble(
    mut whole: Outcome,
    streams: Vec<Stream>,
    common: &Common,
    start_ns: u64,
    end_ns: u64,
) -> Analysis {
    whole.signals.sort_by_key(|s| s.time_ns);
    let mut results = whole.results.finish(&whole.signals, start_ns);
    let mut limits = whole.limits;
    if results.handovers_dropped > 0 {
        *limits.entry("handovers-beyond-limit").or_default() += results.handovers_dropped;
    }
    let interface_name = |(capture, interface): (u8, u32)| {
        let stream = streams.get(usize::from(capture))?;
        stream.reader.interface_name(interface)
    };
    for path in results.flows.iter_mut().flat_map(|f| &mut f.paths) {
        path.interface = interface_name(path.seen_at);
    }
    Analysis {
        format: FORMAT,
        start_time_ns: start_ns,
        duration_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
        clock_offset: common.clocks.offset,
        flows_total: whole.flows_total,
        flows_evicted: whole.evicted,
        flows: results.flows,
        handovers: results.handovers,
        interruptions: results.interruptions,
        shares: results.shares,
        signals: whole.signals.iter().map(|s| s.report(start_ns)).collect(),
        limits,
        warnings: warnings(&streams, common),
        captures: streams
            .iter()
            .zip(&whole.counts)
            .map(|(stream, counts)| CaptureReport {
                file: stream.name.clone(),
                format: stream.reader.format(),
                interfaces: stream.reader.interfaces(),
                packets: stream.packets,
                wire_bytes: stream.wire_bytes,
                truncated_packets: stream.truncated,
                first_time_ns: stream.first_ns,
                last_time_ns: stream.last_ns,
                time_went_back: stream.went_back,
                counts: counts.by_name(),
                partial: stream.reader.partial().cloned(),
            })
            .collect(),
    }
}

/// What a reader has to know first.
fn warnings(streams: &[Stream], common: &Common) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |kind, text| {
        found.push(Warning {
            kind,
            host: None,
            flow: None,
            text,
        });
    };
    if let ([first, second], Some(left_out)) = (streams, common.left_out) {
        let (used, other) = if left_out == 1 {
            (first, second)
        } else {
            (second, first)
        };
        warn(
            WarningKind::SameEnd,
            format!(
                "{} and {} were captured at the same host: what was lost between the ends cannot be told, and {} is left out",
                first.name,
                second.name,
                if used.name == other.name {
                    "the smaller"
                } else {
                    &other.name
                },
            ),
        );
    } else if let [first, second] = streams
        && first.packets > 0
        && second.packets > 0
        && common.clocks.offset.is_none()
    {
        warn(
            WarningKind::NothingInCommon,
            format!(
                "{} and {} have no packets in common: each is analysed by itself, and their clocks are taken to agree",
                first.name, second.name
            ),
        );
    }
    for stream in streams.iter().filter(|s| s.back_ns > WENT_BACK_NS) {
        warn(
            WarningKind::TimeWentBack,
            format!(
                "{}: times go back by up to {:.3} s: no length of time in it can be trusted",
                stream.name,
                stream.back_ns as f64 / 1e9
            ),
        );
    }
    found
}

#[cfg(test)]
mod tests;
