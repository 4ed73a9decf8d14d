//! Analysis of captures: files or bytes in, one JSON document out, with progress and ended by Ctrl-C.

use crate::errors::CaptureError;
use crate::pool::SIGNAL_CHECK;
use pyo3::prelude::*;
use segue_capture::analyze::{Input, Options, Watch, analyze_inputs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};

/// Analyses one capture or two, each a file, or bytes under a name, and gives the result as one JSON document.
///
/// `progress(bytes)` is called with the bytes read so far (of two captures, each is read twice), from the calling thread;
/// what it raises ends the analysis and is raised here, as is Ctrl-C.
#[pyfunction]
#[pyo3(signature = (captures, series=false, max_flows=None, progress=None))]
pub(crate) fn analyze(
    py: Python<'_>,
    captures: Vec<(PathBuf, Option<Vec<u8>>)>,
    series: bool,
    max_flows: Option<usize>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let progress = progress.map(Bound::unbind);
    let watch = Arc::new(Watch::default());
    let inputs: Vec<Input> = captures
        .into_iter()
        .map(|(name, bytes)| match bytes {
            Some(bytes) => Input::Bytes(name.display().to_string(), bytes.into()),
            None => Input::File(name),
        })
        .map(|input| input.watched(&watch))
        .collect();
    let mut options = Options {
        series,
        ..Options::default()
    };
    if let Some(flows) = max_flows {
        options.max_reported_flows = flows;
    }
    let report = |watch: &Watch| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1(py, (watch.bytes_read(),))?;
            }
            Ok(())
        })
    };
    py.detach(|| in_thread(inputs, options, &watch, report))
}

/// Analyses in a thread of its own, reporting now and then; an error of `report` ends the analysis. It is not waited for
/// then: who reads a pipe that nobody writes into would be waited for ever.
fn in_thread(
    inputs: Vec<Input>,
    options: Options,
    watch: &Watch,
    report: impl Fn(&Watch) -> PyResult<()>,
) -> PyResult<String> {
    let (finished, done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let found = analyze_inputs(&inputs, &options).map(|analysis| {
            serde_json::to_string(&analysis).expect("an analysis is plain numbers and names")
        });
        // The receiver is gone only if the analysis was cancelled.
        let _ = finished.send(found);
    });
    loop {
        match done.recv_timeout(SIGNAL_CHECK) {
            Ok(found) => {
                report(watch)?;
                return found.map_err(|error| CaptureError::new_err(error.to_string()));
            }
            Err(RecvTimeoutError::Timeout) => report(watch).inspect_err(|_| watch.cancel())?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(CaptureError::new_err("the analysis ended without a result")),
            },
        }
    }
}
