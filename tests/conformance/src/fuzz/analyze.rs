//! `segue analyze` on any bytes.

use segue_capture::analyze::{Analysis, Input, Options, analyze_inputs};
use segue_capture::record::FlowState;
use std::collections::BTreeMap;

/// Flows followed at a time: few, so that they make room for one another.
const LIVE: usize = 8;

/// Flows reported.
const REPORTED: usize = 4;

/// Bytes that what is compressed unpacks to, before it is refused; offsets are in those.
const MOST_UNPACKED: u64 = 257 << 20;

/// One capture, or the same bytes as the two captures of both ends: an error of one line, or a result that holds together.
///
/// # Panics
/// If the result contradicts itself.
pub fn analyze(bytes: &[u8]) {
    let Some((&how, bytes)) = bytes.split_first() else {
        return;
    };
    let input = |name: &str, bytes: &[u8]| Input::Bytes(name.to_owned(), bytes.into());
    let inputs = match how % 3 {
        0 => vec![input("one", bytes)],
        1 => vec![input("one", bytes), input("same", bytes)],
        // cut in two where the first byte says
        _ => {
            let (first, second) = bytes.split_at(bytes.len() * usize::from(how) / 256);
            vec![input("first", first), input("second", second)]
        }
    };
    let options = Options {
        series: true,
        max_live_flows: LIVE,
        max_reported_flows: REPORTED,
        ..Options::default()
    };
    match analyze_inputs(&inputs, &options) {
        Ok(analysis) => holds_together(&analysis, MOST_UNPACKED.max(bytes.len() as u64)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fn holds_together(analysis: &Analysis, len: u64) {
    assert!(analysis.flows.len() <= REPORTED);
    assert!(analysis.flows.len() as u64 <= analysis.flows_total);
    for capture in &analysis.captures {
        assert!(capture.partial.as_ref().is_none_or(|p| p.offset <= len));
        let by_interface: u64 = capture.interfaces.iter().map(|i| i.packets).sum();
        assert_eq!(by_interface, capture.packets);
        assert!(capture.truncated_packets <= capture.packets);
    }
    let flows: BTreeMap<u64, _> = analysis.flows.iter().map(|f| (f.id, f)).collect();
    for flow in &analysis.flows {
        for direction in [&flow.forward, &flow.reverse] {
            assert!(direction.useful_bytes <= direction.data_bytes);
            let end = &direction.end;
            assert_eq!(end.dead_since_s.is_some(), end.state == FlowState::Dead);
            assert!(!end.censored || end.state == FlowState::Dead);
            assert!(direction.throughput_bps.is_finite() && end.longest_gap_s.is_finite());
            assert!(direction.duplicate_packets + direction.out_of_order_packets <= direction.data_packets);
            if let Some(ends) = direction.ends {
                assert!(ends.lost_packets + ends.in_flight_packets <= ends.packets_sent);
                assert!(ends.spurious_retransmissions <= ends.retransmissions);
            }
        }
    }
    for handover in &analysis.handovers {
        let record = &handover.record;
        assert!(handover.from_path != handover.to_path);
        assert!(record.interruption_s.is_some_and(|s| s >= 0.0));
        assert_eq!(record.latency_s.is_none(), record.censored);
        for number in &handover.signals {
            assert!((*number as usize) < analysis.signals.len());
        }
        if let Some(flow) = record.flow.and_then(|id| flows.get(&id)) {
            assert!(flow.paths.iter().any(|p| p.id == handover.to_path));
        }
    }
}
