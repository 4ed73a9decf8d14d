//! Runs in Rust threads, with the interpreter lock released, in job order, and ended by Ctrl-C.

use crate::engine;
use crate::errors::JobError;
use crate::outputs::Wanted;
use crate::result::Run;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use segue_sim::Scenario;
use segue_sim::assertion::Assertion;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
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
    /// Read once, with the files that it names: what is identified is what is run.
    parsed: Arc<OnceLock<Result<Parsed, JobError>>>,
}

/// A scenario and the conditions on its run.
struct Parsed {
    scenario: Scenario,
    conditions: Vec<Assertion>,
}

impl Job {
    fn parsed(&self) -> Result<&Parsed, JobError> {
        let parsed = self.parsed.get_or_init(|| {
            let scenario = engine::parse(&self.text, &self.file, &self.overrides)?;
            let conditions = engine::conditions(&scenario, &self.conditions)?;
            Ok(Parsed { scenario, conditions })
        });
        parsed.as_ref().map_err(JobError::clone)
    }
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
            parsed: Arc::default(),
        }
    }

    /// What its results follow from, as a digest (SHA-256): the scenario with its overrides and the files that it names, the seed,
    /// the conditions, and whether tables are recorded; not where.
    fn identity(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let digest = py.detach(|| {
            let scenario = &self.parsed()?.scenario;
            let traces = self.wanted.traces();
            Ok::<_, JobError>(engine::identity(scenario, self.seed, traces, &self.conditions))
        })?;
        Ok(PyBytes::new(py, &digest).unbind())
    }

    /// Whether tables are recorded.
    #[getter]
    const fn traces(&self) -> bool {
        self.wanted.traces()
    }

    /// Whether there is a folder for tables or captures.
    #[getter]
    const fn writes_files(&self) -> bool {
        self.wanted.trace_folder.is_some() || self.wanted.pcap_folder.is_some()
    }

    /// The same with tables in this folder, as Parquet files.
    fn tracing_into(&self, folder: PathBuf) -> Self {
        let mut job = self.clone();
        job.wanted.trace = false;
        job.wanted.trace_folder = Some(folder);
        job
    }
}

/// Runs one scenario.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, job: Job) -> PyResult<Py<PyAny>> {
    let mut runs = run_many(py, vec![job], 1, None, None)?;
    Ok(runs.remove(0))
}

/// Runs jobs on `threads` threads; results are in the order of the jobs, whatever the number of threads: runs, or what
/// `keep(index, run)` gives, after which the run is not held any longer.
///
/// Every scenario is checked before the first run begins. `keep(index, run)` and `progress(done, total)` are called from the calling
/// thread, as runs end; what they raise ends the runs and is raised here, as is Ctrl-C. Of runs that have ended no more than
/// twice the number of threads wait to be taken.
#[pyfunction]
#[pyo3(signature = (jobs, threads, progress=None, keep=None))]
pub(crate) fn run_many(
    py: Python<'_>,
    jobs: Vec<Job>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
    keep: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let total = jobs.len();
    let threads = threads.clamp(1, total.max(1));
    let parsed = py.detach(|| {
        read(&jobs, threads);
        let parsed = jobs.iter().map(|job| Ok((job.parsed()?, job)));
        parsed.collect::<Result<Vec<_>, JobError>>()
    })?;
    let observer = Observer {
        progress: progress.map(Bound::unbind),
        keep: keep.map(Bound::unbind),
        total,
    };
    py.detach(|| in_threads(&parsed, threads, &observer))
}

/// Identities of jobs, in their order: see [`Job::identity`].
///
/// Scenarios are read on `threads` threads. Of several that are wrong, the first one's error is raised.
#[pyfunction]
pub(crate) fn identities(py: Python<'_>, jobs: Vec<Job>, threads: usize) -> PyResult<Vec<Py<PyBytes>>> {
    py.detach(|| read(&jobs, threads.clamp(1, jobs.len().max(1))));
    jobs.iter().map(|job| job.identity(py)).collect()
}

/// Reads the scenarios of jobs that have not been read yet.
fn read(jobs: &[Job], threads: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // an error is kept, for whoever asks for the job in its turn
                    let _ = job.parsed();
                }
            });
        }
    });
}

/// What Python wants to be told, and given.
struct Observer {
    progress: Option<Py<PyAny>>,
    keep: Option<Py<PyAny>>,
    total: usize,
}

impl Observer {
    /// Says how many are done; an error if that is the end.
    fn report(&self, done: usize) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = &self.progress {
                progress.call1(py, (done, self.total))?;
            }
            Ok(())
        })
    }

    /// What is kept of the run of a job.
    fn kept(&self, index: usize, run: Run) -> PyResult<Py<PyAny>> {
        Python::attach(|py| {
            let run = Py::new(py, run)?.into_any();
            match &self.keep {
                Some(keep) => keep.call1(py, (index, run)),
                None => Ok(run),
            }
        })
    }
}

/// Runs every scenario; an error of the observer, or of a run, ends them all.
fn in_threads(jobs: &[(&Parsed, &Job)], threads: usize, observer: &Observer) -> PyResult<Vec<Py<PyAny>>> {
    let cancel = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let (finished, done) = mpsc::sync_channel::<Finished>(threads);
    let kept = std::thread::scope(|scope| {
        for _ in 0..threads {
            let finished = finished.clone();
            let (cancel, next) = (&cancel, &next);
            scope.spawn(move || {
                while !cancel.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((Parsed { scenario, conditions }, job)) = jobs.get(index) else {
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
                    // the receiver is gone only if the runs were cancelled
                    if finished.send((index, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(finished);
        let kept = take(done, jobs.len(), observer);
        if kept.is_err() {
            cancel.store(true, Ordering::Relaxed);
        }
        kept
    });
    // without an error, there is a result of each job
    Ok(kept?.into_iter().flatten().collect())
}

/// A job's number, and what became of it.
type Finished = (usize, Result<Run, JobError>);

/// Takes what the workers finish, until every one of them has gone. Of several jobs that fail, the first one's error is given.
fn take(done: Receiver<Finished>, total: usize, observer: &Observer) -> PyResult<Vec<Option<Py<PyAny>>>> {
    let mut kept: Vec<Option<Py<PyAny>>> = (0..total).map(|_| None).collect();
    let mut failed: Option<(usize, JobError)> = None;
    let mut count = 0;
    observer.report(count)?;
    loop {
        match done.recv_timeout(SIGNAL_CHECK) {
            Ok((index, Ok(run))) => {
                count += 1;
                kept[index] = Some(observer.kept(index, run)?);
            }
            Ok((index, Err(error))) => {
                if failed.as_ref().is_none_or(|(first, _)| index < *first) {
                    failed = Some((index, error));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        observer.report(count)?;
    }
    match failed {
        Some((_, error)) => Err(error.into()),
        None => Ok(kept),
    }
}
