//! What is reported of all captures together.

use super::engine::Outcome;
use super::flows::paths::Spot;
use super::model::{Analysis, CutFlow, Flow, Path, Warning, WarningKind};
use super::offset::Common;
use super::stream::Stream;

/// Version of [`Analysis`].
const FORMAT: u32 = 2;

/// The result, of what was read and of what engines found in it.
pub(super) fn assemble(
    mut whole: Outcome,
    streams: &[Stream],
    common: &Common,
    start_ns: u64,
    end_ns: u64,
) -> Analysis {
    whole.signals.sort_by_key(|s| s.time_ns);
    let results = whole.results.finish(&whole.signals, start_ns);
    let mut limits = whole.limits;
    if results.handovers_dropped > 0 {
        *limits.entry("handovers-beyond-limit").or_default() += results.handovers_dropped;
    }
    if results.cut.beyond() > 0 {
        *limits.entry("cut-flows-beyond-limit").or_default() += results.cut.beyond();
    }
    let cut_flows = results.cut.finish();
    let warnings = warnings(streams, common, &cut_flows);
    Analysis {
        format: FORMAT,
        start_time_ns: start_ns,
        duration_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
        clock_offset: common.clocks.offset,
        flows_total: whole.flows_total,
        flows_evicted: whole.evicted,
        flows: results
            .flows
            .into_iter()
            .map(|f| with_interfaces(f, streams))
            .collect(),
        handovers: results.handovers,
        interruptions: results.interruptions,
        cut_flows,
        shares: results.shares,
        signals: whole.signals.iter().map(|s| s.report(start_ns)).collect(),
        limits,
        warnings,
        captures: streams
            .iter()
            .zip(&whole.counts)
            .map(|(stream, counts)| stream.report(counts))
            .collect(),
    }
}

/// A flow whose paths are told by the names of the interfaces that they were seen on.
pub(super) fn with_interfaces(flow: Flow, streams: &[Stream]) -> Flow {
    let name = |spot: Spot| {
        let stream = streams.iter().find(|s| s.number() == usize::from(spot.capture))?;
        // that of a capture of all interfaces is "any"
        match spot.device {
            0 => stream.interface_name(spot.interface),
            device => Some(format!("interface {device}")),
        }
    };
    let paths = flow.paths.into_iter().map(|path| Path {
        interface: name(path.seen_at),
        ..path
    });
    Flow {
        paths: paths.collect(),
        ..flow
    }
}

/// What a reader has to know first.
fn warnings(streams: &[Stream], common: &Common, cut: &[CutFlow]) -> Vec<Warning> {
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
                first.name(),
                second.name(),
                if used.name() == other.name() {
                    "the smaller"
                } else {
                    other.name()
                },
            ),
        );
    } else if let [first, second] = streams
        && first.packets() > 0
        && second.packets() > 0
        && common.clocks.offset.is_none()
    {
        warn(
            WarningKind::NothingInCommon,
            format!(
                "{} and {} have no packets in common: each is analysed by itself, and their clocks are taken to agree",
                first.name(),
                second.name()
            ),
        );
    }
    found.extend(streams.iter().filter_map(Stream::warning));
    found.extend(headers_cut_off(cut));
    found
}

fn headers_cut_off(cut: &[CutFlow]) -> Option<Warning> {
    let needed_bytes = cut.iter().map(|c| c.needed_bytes).max()?;
    let flows = match cut.len() {
        1 => "a flow".to_owned(),
        many => format!("{many} flows"),
    };
    Some(Warning {
        kind: WarningKind::HeadersCutOff,
        host: None,
        flow: None,
        text: format!(
            "nothing can be said of {flows}, because the snap length cut off headers: at least {needed_bytes} bytes of each packet are needed"
        ),
    })
}
