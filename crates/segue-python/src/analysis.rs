//! Analysis of captures: files or bytes in, one JSON document out, with progress and ended by Ctrl-C.

use crate::errors::CaptureError;
use crate::pool::SIGNAL_CHECK;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use segue_capture::analyze::{Analysis, Error, Glance, Input, Options, Watch, analyze_inputs, analyze_live};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Analyses one capture or two, each a file, standard input ("-"), or bytes under a name, and gives the result as one JSON
/// document.
///
/// `progress(bytes)` is called with the bytes read so far (of two captures, each is read twice), from the calling thread;
/// what it raises ends the analysis and is raised here, as is Ctrl-C. `live(document)` is called some times a second, if it is
/// given, with what was found by then in the only capture. Then Ctrl-C ends the capture: what came by then is the result, and
/// only a second one ends the analysis.
#[pyfunction]
#[pyo3(signature = (captures, series=false, max_flows=None, progress=None, live=None))]
pub(crate) fn analyze(
    py: Python<'_>,
    captures: Vec<(PathBuf, Option<Vec<u8>>)>,
    series: bool,
    max_flows: Option<usize>,
    progress: Option<Bound<'_, PyAny>>,
    live: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let watch = Arc::new(Watch::default());
    let inputs: Vec<Input> = captures
        .into_iter()
        .map(|(name, bytes)| match bytes {
            Some(bytes) => Input::Bytes(name.display().to_string(), bytes.into()),
            None if name.as_os_str() == STANDARD_INPUT => Input::StandardInput,
            None => Input::File(name),
        })
        .collect();
    let mut options = Options {
        series,
        ..Options::default()
    };
    if let Some(flows) = max_flows {
        options.max_reported_flows = flows;
    }
    let callers = Callers {
        watch,
        progress: progress.map(Bound::unbind),
        live: live.map(Bound::unbind),
    };
    py.detach(|| callers.analyze(inputs, options))
}

/// What the thread that analyses says.
enum Said {
    /// What was found by now.
    Glance(String),
    /// The result.
    Found(Result<String, Error>),
}

/// Whom to tell how far the analysis has come.
struct Callers {
    watch: Arc<Watch>,
    progress: Option<Py<PyAny>>,
    live: Option<Py<PyAny>>,
}

impl Callers {
    /// Analyses in a thread of its own, reporting now and then; an error of whom it is reported to ends the analysis. It is not
    /// waited for then: who reads a pipe that nobody writes into would be waited for ever.
    fn analyze(&self, inputs: Vec<Input>, options: Options) -> PyResult<String> {
        let (says, said) = mpsc::channel();
        let watch = Arc::clone(&self.watch);
        let is_live = self.live.is_some();
        let thread = std::thread::spawn(move || {
            let found = match &inputs[..] {
                // The receiver is gone only if the analysis was cancelled.
                [input] if is_live => analyze_live(input, &options, &watch, |glance: &Glance| {
                    let _ = says.send(Said::Glance(json(glance)));
                }),
                _ => {
                    let watched: Vec<Input> = inputs.into_iter().map(|i| i.watched(&watch)).collect();
                    analyze_inputs(&watched, &options)
                }
            };
            let _ = says.send(Said::Found(found.map(|analysis: Analysis| json(&analysis))));
        });
        loop {
            match said.recv_timeout(SIGNAL_CHECK) {
                Ok(Said::Glance(document)) => self.report(Some(&document))?,
                Ok(Said::Found(found)) => {
                    self.report(None)?;
                    return found.map_err(|error| CaptureError::new_err(error.to_string()));
                }
                Err(RecvTimeoutError::Timeout) => self.report(None)?,
                Err(RecvTimeoutError::Disconnected) => match thread.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(CaptureError::new_err("the analysis ended without a result")),
                },
            }
        }
    }

    /// Reports; what is raised meanwhile ends the analysis, or, the first time that it is Ctrl-C, a live capture.
    fn report(&self, glance: Option<&str>) -> PyResult<()> {
        Python::attach(|py| match self.told(py, glance) {
            Err(error)
                if self.live.is_some()
                    && error.is_instance_of::<PyKeyboardInterrupt>(py)
                    && !self.watch.is_ended() =>
            {
                self.watch.end();
                Ok(())
            }
            Err(error) => {
                self.watch.cancel();
                Err(error)
            }
            Ok(()) => Ok(()),
        })
    }

    fn told(&self, py: Python<'_>, glance: Option<&str>) -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = &self.progress {
            progress.call1(py, (self.watch.bytes_read(),))?;
        }
        if let (Some(live), Some(glance)) = (&self.live, glance) {
            live.call1(py, (glance,))?;
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("an analysis is plain numbers and names")
}
