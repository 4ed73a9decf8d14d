//! Runs in Rust threads, with the interpreter lock released, in job order, and ended by Ctrl-C.

use crate::engine;
use crate::errors::JobError;
use crate::outputs::Wanted;
use crate::result::Run;
use pyo3::prelude::*;
use segue_sim::Scenario;
use segue_sim::assertion::Assertion;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often a waiting call looks for Ctrl-C.
pub(crate) const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// One run of [`run_many`].
#[pyclass(frozen, from_py_object, module = "segue._native")]
#[derive(Clone)]
pub(crate) struct Job {
    text: String,
    file: String,
    overrides: Vec<(String, String)>,
    seed: Option<u64>,
    wanted: Wanted,
    conditions: Vec<String>,
}

#[pymethods]
impl Job {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    #[pyo3(signature = (text, file, overrides, seed=None, trace=false, trace_folder=None, pcap_folder=None, conditions=None))]
    fn new(
        text: String,
        file: String,
        overrides: Vec<(String, String)>,
        seed: Option<u64>,
        trace: bool,
        trace_folder: Option<PathBuf>,
        pcap_folder: Option<PathBuf>,
        conditions: Option<Vec<String>>,
    ) -> Self {
        Self {
            text,
            file,
            overrides,
            seed,
            wanted: Wanted {
                trace,
                trace_folder,
                pcap_folder,
            },
            conditions: conditions.unwrap_or_default(),
        }
    }
}

/// Runs one scenario.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, job: Job) -> PyResult<Run> {
    let mut runs = run_many(py, vec![job], 1, None)?;
    Ok(runs.remove(0))
}

/// Runs jobs on `threads` threads; results are in the order of the jobs, whatever the number of threads.
///
/// Every scenario is checked before the first run begins. `progress(done, total)` is called from the calling thread;
/// what it raises ends the runs and is raised here, as is Ctrl-C.
#[pyfunction]
#[pyo3(signature = (jobs, threads, progress=None))]
pub(crate) fn run_many(
    py: Python<'_>,
    jobs: Vec<Job>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Run>> {
    let scenarios = py.detach(|| {
        jobs.iter()
            .map(|job| {
                let scenario = engine::parse(&job.text, &job.file, &job.overrides)?;
                let conditions = engine::conditions(&scenario, &job.conditions)?;
                Ok((scenario, conditions, job))
            })
            .collect::<Result<Vec<_>, JobError>>()
    })?;
    let progress = progress.map(Bound::unbind);
    let total = scenarios.len();
    let report = |done: usize| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1(py, (done, total))?;
            }
            Ok(())
        })
    };
    py.detach(|| in_threads(&scenarios, threads.clamp(1, total.max(1)), report))
}

/// Runs every scenario, reporting how many are done now and then; an error of `report` ends the runs.
fn in_threads(
    scenarios: &[(Scenario, Vec<Assertion>, &Job)],
    threads: usize,
    report: impl Fn(usize) -> PyResult<()>,
) -> PyResult<Vec<Run>> {
    let cancel = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<Result<Run, JobError>>>> =
        scenarios.iter().map(|_| Mutex::new(None)).collect();
    let (finished, done) = mpsc::channel::<()>();
    let outcome = std::thread::scope(|scope| {
        for _ in 0..threads {
            let finished = finished.clone();
            let (cancel, next, slots) = (&cancel, &next, &slots);
            scope.spawn(move || {
                while !cancel.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((scenario, conditions, job)) = scenarios.get(index) else {
                        break;
                    };
                    let result = match engine::run(scenario, job.seed, &job.wanted, conditions, cancel) {
                        Ok(Some(run)) => Ok(run),
                        Ok(None) => break,
                        Err(error) => Err(error),
                    };
                    if result.is_err() {
                        cancel.store(true, Ordering::Relaxed);
                    }
                    *slots[index]
                        .lock()
                        .expect("no run panics while it stores its result") = Some(result);
                    // The receiver is gone only if the runs were cancelled.
                    let _ = finished.send(());
                }
            });
        }
        drop(finished);
        let outcome = wait(&done, &report);
        if outcome.is_err() {
            cancel.store(true, Ordering::Relaxed);
        }
        outcome
    });
    outcome?;
    let mut runs = Vec::with_capacity(slots.len());
    for slot in slots {
        match slot
            .into_inner()
            .expect("no run panics while it stores its result")
        {
            Some(result) => runs.push(result?),
            // Cancelled by the error of a later job, which comes next.
            None => continue,
        }
    }
    Ok(runs)
}

/// Waits until every worker has gone.
fn wait(done: &Receiver<()>, report: &impl Fn(usize) -> PyResult<()>) -> PyResult<()> {
    let mut count = 0;
    report(count)?;
    loop {
        match done.recv_timeout(SIGNAL_CHECK) {
            Ok(()) => count += 1,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return report(count),
        }
        count += done.try_iter().count();
        report(count)?;
    }
}
