//! The programs of a run: what the applications of the scenario are in real time, started in the namespaces of their hosts,
//! with their output and how they ended.

use super::directory::Directory;
use super::privileges::RUN;
use crate::stop;
use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use segue_live::{Clock, Namespace};
use segue_proto::{Duration, Instant};
use serde::Serialize;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How often it is looked whether a program is to be started or has ended.
const LOOK: std::time::Duration = std::time::Duration::from_millis(5);
/// Of what a program said last, so many characters are repeated.
const MOST_SAID: usize = 300;
/// Programs have this long to end when they are asked to.
const GRACE: Duration = Duration::from_secs(1);

/// A program that is to run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Number of its application.
    pub(super) application: usize,
    /// `client` or `server`.
    pub(super) role: &'static str,
    /// Number and name of its host.
    pub(super) host: (usize, String),
    pub(super) namespace: Namespace,
    pub(super) command: Vec<String>,
    /// When it is started; nothing for before the run begins.
    pub(super) start: Option<Duration>,
    /// When a program of ours begins, which is started before: starting one takes some milliseconds, in which the simulator's
    /// would have sent.
    pub(super) begins: Option<Duration>,
}

/// The file that a program's standard output goes to.
pub(super) fn output_of(application: usize, role: &str) -> String {
    format!("app{application}-{role}.out")
}

/// A program that has run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ended {
    application: usize,
    role: &'static str,
    host: String,
    command: Vec<String>,
    /// Seconds of the run; before its beginning, zero.
    started_s: Option<f64>,
    ended_s: Option<f64>,
    /// Its exit status, if it ended by itself or when it was asked to.
    exit_status: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
    /// It had to be ended.
    stopped: bool,
    stdout: Option<String>,
    stderr: Option<String>,
    /// Of one that failed: the last line of its standard error.
    said_last: Option<String>,
}

impl Ended {
    /// Whether it ended as it should: by itself with status 0, or because the run was over.
    pub(super) fn is_well(&self) -> bool {
        self.started_s.is_some() && (self.stopped || self.exit_status == Some(0))
    }

    /// Which it is: `application 0 client`.
    pub(super) fn name(&self) -> String {
        format!("application {} {}", self.application, self.role)
    }

    /// Of one that failed, in a line: how, and what it said last.
    pub(super) fn failure(&self) -> Option<String> {
        let how = match (self.exit_status, self.signal) {
            _ if self.is_well() => return None,
            _ if self.started_s.is_none() => "did not start".to_owned(),
            (Some(status), _) => format!("failed with exit status {status}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        };
        let name = format!("program {} {} at {}", self.application, self.role, self.host);
        let said = self.said_last.as_deref();
        let said = said.map_or_else(String::new, |line| format!(": {line}"));
        Some(format!("{name} {how}{said}"))
    }

    /// Takes the last line that it wrote to its standard error, if it failed.
    pub(super) fn read_last_line(&mut self, directory: &Directory) {
        let Some(file) = self.stderr.as_deref().filter(|_| !self.is_well()) else {
            return;
        };
        let text = directory.read(file).unwrap_or_default();
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        self.said_last = last.map(|line| line.chars().take(MOST_SAID).collect());
    }

    pub(super) fn describe(&self) -> String {
        let how = match (self.exit_status, self.signal) {
            _ if self.started_s.is_none() => "did not start".to_owned(),
            _ if self.stopped => "ran to the end".to_owned(),
            (Some(status), _) => format!("exit status {status}"),
            (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
        };
        format!(
            "{} {} at {}: {how}: {}",
            self.application,
            self.role,
            self.host,
            self.command.join(" ")
        )
    }
}

/// What the programs are run with.
pub(super) struct Stage<'a> {
    pub(super) directory: &'a Directory,
    /// What their environment has as the run that they belong to.
    pub(super) run: String,
    pub(super) clock: Clock,
    pub(super) begin: Instant,
    /// Of each host, how many addresses have become usable: without one, a client waits.
    pub(super) addresses: &'a [AtomicU32],
    /// Set when the run is over.
    pub(super) over: &'a AtomicBool,
}

struct Running {
    plan: Plan,
    outputs: (String, String),
    child: Option<Child>,
    ended: Ended,
}

/// Programs that have been planned, and those of them that run.
pub(super) struct Programs<'a> {
    stage: Stage<'a>,
    all: Vec<Running>,
}

impl<'a> Programs<'a> {
    /// Starts those that are there before the run begins.
    pub(super) fn begin(stage: Stage<'a>, plans: Vec<Plan>) -> anyhow::Result<Self> {
        let running = |plan: Plan| Running {
            outputs: (
                output_of(plan.application, plan.role),
                format!("app{}-{}.err", plan.application, plan.role),
            ),
            child: None,
            ended: Ended {
                application: plan.application,
                role: plan.role,
                host: plan.host.1.clone(),
                command: plan.command.clone(),
                started_s: None,
                ended_s: None,
                exit_status: None,
                signal: None,
                stopped: false,
                stdout: None,
                stderr: None,
                said_last: None,
            },
            plan,
        };
        let mut programs = Self {
            stage,
            all: plans.into_iter().map(running).collect(),
        };
        for number in 0..programs.all.len() {
            if programs.all[number].plan.start.is_none() {
                programs.start(number)?;
            }
        }
        Ok(programs)
    }

    /// Starts what is due and notes what has ended, until the run is over; then ends what still runs.
    pub(super) fn run(mut self) -> anyhow::Result<Vec<Ended>> {
        let is_over = |stage: &Stage<'_>| stage.over.load(Ordering::Relaxed) || stop::asked();
        while !is_over(&self.stage) {
            let now = self.stage.clock.now();
            for number in 0..self.all.len() {
                if self.is_due(number, now) {
                    self.start(number)?;
                }
            }
            self.note_ended(false);
            pause();
        }
        self.end(Signal::SIGTERM);
        let limit = self.stage.clock.now() + GRACE;
        while self.all.iter().any(|p| p.child.is_some()) && self.stage.clock.now() < limit {
            self.note_ended(true);
            pause();
        }
        self.end(Signal::SIGKILL);
        while self.all.iter().any(|p| p.child.is_some()) {
            self.note_ended(true);
            pause();
        }
        Ok(self.all.iter().map(|p| p.ended.clone()).collect())
    }

    fn is_due(&self, number: usize, now: Instant) -> bool {
        let program = &self.all[number];
        let addresses = &self.stage.addresses[program.plan.host.0];
        program.ended.started_s.is_none()
            && addresses.load(Ordering::Relaxed) > 0
            && program
                .plan
                .start
                .is_some_and(|start| now >= self.stage.begin + start)
    }

    /// A child is in the namespace of the thread that makes it.
    fn start(&mut self, number: usize) -> anyhow::Result<()> {
        let now = self.now_s();
        let program = &mut self.all[number];
        let create = |name: &str| self.stage.directory.create(name);
        let outputs: (File, File) = (create(&program.outputs.0)?, create(&program.outputs.1)?);
        let (command, run) = (&program.plan.command, &self.stage.run);
        let begins = program.plan.begins.map(|at| self.stage.begin + at);
        let begins = begins.map(|at| format!("--begin-at={}", at.as_nanos()));
        let spawned = program.plan.namespace.within(|| {
            Command::new(&command[0])
                .args(&command[1..])
                .args(begins)
                .env(RUN, run)
                .stdin(Stdio::null())
                .stdout(outputs.0)
                .stderr(outputs.1)
                .spawn()
        });
        let child = spawned.with_context(|| {
            format!(
                "application[{}].{}: `{}`",
                program.plan.application,
                if program.plan.role == "server" {
                    "server"
                } else {
                    "command"
                },
                command[0]
            )
        })?;
        program.child = Some(child);
        program.ended.started_s = Some(now);
        program.ended.stdout = Some(program.outputs.0.clone());
        program.ended.stderr = Some(program.outputs.1.clone());
        Ok(())
    }

    fn now_s(&self) -> f64 {
        self.stage.clock.now().since(self.stage.begin).as_secs_f64()
    }

    /// Notes which have ended; `over`: because they were asked to.
    fn note_ended(&mut self, over: bool) {
        let now = self.now_s();
        for program in &mut self.all {
            let Some(child) = &mut program.child else { continue };
            if let Ok(Some(status)) = child.try_wait() {
                program.child = None;
                let status: ExitStatus = status;
                (program.ended.exit_status, program.ended.signal) = (status.code(), status.signal());
                program.ended.ended_s = Some(now);
                program.ended.stopped = over;
            }
        }
    }

    /// Sends a signal to those that still run: clients first, so that servers see them go.
    fn end(&mut self, signal: Signal) {
        let (clients, servers): (Vec<_>, Vec<_>) = self.all.iter().partition(|p| p.plan.role == "client");
        for program in clients.into_iter().chain(servers) {
            if let Some(child) = &program.child {
                let _ = kill(Pid::from_raw(child.id() as i32), signal);
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own waits for programs")]
fn pause() {
    std::thread::sleep(LOOK);
}

impl Drop for Programs<'_> {
    fn drop(&mut self) {
        for program in &mut self.all {
            if let Some(child) = &mut program.child {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
