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
mod ahead;
mod assembly;
mod counts;
mod cuts;
mod decode;
mod endings;
mod engine;
mod fates;
mod flows;
mod found;
mod glance;
mod heard;
mod input;
mod kinds;
mod lane;
mod live;
mod model;
mod offset;
mod places;
mod protocol;
mod reader;
mod report;
mod signal;
mod source;
mod stream;
mod unpack;
mod watch;

pub use adaptation::{AdaptationTime, BIN_NS, Bin, MAX_BINS, ThroughputBins, adaptation_time};
pub use flows::rates::RTT_KEPT;
pub use glance::{Glance, GlancedFlow};
pub use input::{Error, Input};
pub use live::analyze_live;
pub use model::{
    Analysis, Around, CaptureInterface, CaptureReport, ClockOffset, CutFlow, Direction, DirectionReport,
    EndCounts, Endpoint, Flow, Handover, HandoverKind, Interruption, Mobility, Options, Partial, Path,
    PathShare, Protocol, SegmentMark, Series, Share, Signal, SignalKind, Spread, Vantage, Warning,
    WarningKind,
};
pub use watch::Watch;

use lane::Run;
use offset::{Common, Samples};
use reader::Reader;
use std::path::PathBuf;
use stream::Stream;

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
    let two = inputs.len() == 2;
    if let Some(once) = inputs.iter().find(|i| two && !i.can_be_read_again()) {
        return Err(Error::Once { file: once.name() });
    }
    let common = match inputs {
        [first, second] => common(first, second)?,
        _ => Common::default(),
    };
    let mut streams = Vec::with_capacity(2);
    for input in inputs {
        let reader = Reader::open(input)?;
        streams.push(Stream::new(reader, input.name(), streams.len(), common.clocks));
    }
    Run::new(streams, common, options).whole()
}

/// What two captures have in common.
fn common(first: &Input, second: &Input) -> Result<Common, Error> {
    let [one, other] = samples(first, second, None)?;
    let [one, other] = match Common::both_have(&one, &other) {
        None => [one, other],
        less => samples(first, second, less)?,
    };
    Ok(Common::of(&one, &other))
}

/// Samples of both, each read on a core of its own.
fn samples(first: &Input, second: &Input, both_have: Option<usize>) -> Result<[Samples; 2], Error> {
    let of = |input: &Input| Samples::of(Reader::open(input)?, &input.name(), both_have);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| of(second));
        let first = of(first);
        let second = second.join();
        Ok([
            first?,
            second.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
        ])
    })
}

#[cfg(test)]
mod tests;
