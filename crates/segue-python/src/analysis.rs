//! What Python sees of `segue_capture::analyze`.

use crate::errors::CaptureError;
use pyo3::prelude::*;
use segue_capture::analyze::{Options, analyze as run};
use std::path::PathBuf;

/// Analyses one capture, or two of the same traffic; gives `segue_capture::analyze::Analysis` as one JSON document. The
/// interpreter lock is released meanwhile.
#[pyfunction]
#[pyo3(signature = (files, series = false, min_gap_s = None, throughput_window_s = None, max_flows = None))]
pub(crate) fn analyze(
    py: Python<'_>,
    files: Vec<PathBuf>,
    series: bool,
    min_gap_s: Option<f64>,
    throughput_window_s: Option<f64>,
    max_flows: Option<usize>,
) -> PyResult<String> {
    let defaults = Options::default();
    let options = Options {
        series,
        min_gap_s: min_gap_s.unwrap_or(defaults.min_gap_s),
        throughput_window_s: throughput_window_s.unwrap_or(defaults.throughput_window_s),
        max_reported_flows: max_flows.unwrap_or(defaults.max_reported_flows),
        ..defaults
    };
    let analysis = py.detach(|| run(&files, &options));
    let analysis = analysis.map_err(|e| CaptureError::new_err(e.to_string()))?;
    serde_json::to_string(&analysis).map_err(|e| CaptureError::new_err(e.to_string()))
}
