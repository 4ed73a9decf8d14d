//! Adaptation time, the same function for simulated and captured packets.

use pyo3::prelude::*;
use segue_capture::analyze::ThroughputBins;

/// t_a (seconds), threshold (bit/s) and bins (end in seconds after the first packet, bit/s) of data packets that arrived over a
/// new path, by section 5 of Cottingham and Vidales; t_a and threshold are `None` if not even one bin is complete.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn adaptation_time(times_ns: Vec<u64>, lengths: Vec<u64>) -> (Option<f64>, Option<f64>, Vec<(f64, f64)>) {
    let mut bins = ThroughputBins::default();
    for (time_ns, bytes) in times_ns.into_iter().zip(lengths) {
        bins.add(time_ns, bytes);
    }
    let result = bins.adaptation_time();
    let points = bins.bins().iter();
    (
        result.map(|r| r.adaptation_time_s),
        result.map(|r| r.threshold_bps),
        points
            .map(|b| (b.end_ns as f64 / 1e9, b.throughput_bps))
            .collect(),
    )
}
