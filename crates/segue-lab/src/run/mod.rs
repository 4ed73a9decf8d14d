//! `segue-lab run`: a scenario with the kernels and programs of this machine.
//!
//! The network of the scenario is the simulator's own, under the clock ([`segue_sim::realtime`]); its hosts are network
//! namespaces whose kernels have TCP and UDP; its applications are programs.

mod carrier;
mod directory;
mod emulator;
mod host;
mod machine;
mod options;
mod outcome;
mod owner;
mod plan;
mod privileges;
mod programs;
mod proxies;
mod received;
mod rows;
mod schemes;

pub(crate) use options::RunCommand;

use crate::stop;
use crate::text::read_text;
use anyhow::{Context as _, anyhow, bail};
use directory::Directory;
use emulator::Emulator;
use host::Host;
use outcome::Outcome;
use owner::{Owner, ProgramsOf};
use plan::RouteMetrics;
use privileges::Privileges;
use programs::{Ended, Programs, Stage};
use proxies::Proxies;
use schemes::{Others, Pair, Tunnels};
use segue_lab::lateness::LatenessReport;
use segue_live::{
    Awake, Clock, Standstill, StandstillWatch, command_line, ordinary_priority, raise_priority, set_nice,
};
use segue_proto::{Duration, Instant};
use segue_sim::assertion::Assertion;
use segue_sim::carried::carries;
use segue_sim::output::{RunOptions, RunOutput};
use segue_sim::realtime::{KernelHost, Realtime};
use segue_sim::scenario::Scenario;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The most processors that are kept awake: one for the network, the others for what programs have to do at a time.
const MOST_AWAKE: usize = 4;
/// Programs run before the other work of the machine, where that may be.
const PROGRAMS_NICE: i32 = -10;
/// From the start of the servers to the zero of the run.
const LEAD: Duration = Duration::from_millis(500);

/// The file of a record that has its tables: a line for each piece of them, by columns.
const TABLES: &str = "tables.jsonl";

/// It was stopped by a signal.
const EXIT_INTERRUPTED: u8 = 130;
/// So many packets were late that the figures say nothing.
const EXIT_TOO_LATE: u8 = 3;
/// A condition does not hold, or a program failed.
const EXIT_FAILED: u8 = 1;

/// Runs the scenario, prints what it came to, and gives the exit status.
pub(crate) fn run(options: &RunCommand) -> anyhow::Result<u8> {
    privileges::leave_run()?;
    let mut is_accepted = false;
    match run_through(options, &mut is_accepted) {
        // what a signal does to programs that it was sent to as well is no error
        Err(_) if stop::asked() => Ok(interrupted()),
        Err(error) if is_accepted => {
            command_line::say("segue-lab", &format!("{error:#}"));
            Ok(EXIT_FAILED)
        }
        done => done,
    }
}

fn interrupted() -> u8 {
    command_line::say("segue lab", "interrupted");
    EXIT_INTERRUPTED
}

/// Runs it. What goes wrong once it `is_accepted` is no wrong input any more.
fn run_through(options: &RunCommand, is_accepted: &mut bool) -> anyhow::Result<u8> {
    if let (Some(_), None) = (&options.report, &options.record) {
        bail!("--report: is made by `segue lab run`: expected that, or --record DIR");
    }
    let given = Assertion::of_command_line(&options.asserts).map_err(|error| anyhow!(error))?;
    let scenario = read(&options.scenario, &options.settings)?;
    let conditions: Vec<Assertion> = scenario.file().assert.iter().cloned().chain(given).collect();
    let others = Others::of(&scenario);
    if let (Some(_), Some(condition)) = (others, conditions.first()) {
        bail!(
            "assert: `{condition}`: the figures of this scheme are what programs read: expected no conditions"
        );
    }
    let missing = if scenario.file().scheme.is_of_others() {
        Some("no model of this scheme")
    } else {
        carries(scenario.file()).then_some("no proxy that carries TCP over this scheme")
    };
    if let (true, Some(missing)) = (options.predict, missing) {
        eprintln!("segue lab: the simulator has {missing}: there is no prediction");
    }
    plan::check(&scenario, &options.scenario)?;
    plan::check_congestion_control(&scenario, &options.scenario)?;
    stop::catch_signals().context("signals")?;
    let owner = Owner::this()?;
    let mut removed = match nix::unistd::geteuid().is_root() {
        true => owner::remove_abandoned(),
        false => Vec::new(),
    };
    removed.extend(owner::end_abandoned());
    for name in removed {
        command_line::say(
            "segue lab",
            &format!("removed {name}, which an earlier run had left"),
        );
    }
    let privileges = Privileges::gain()?;
    if privileges == Privileges::UserNamespace {
        eprintln!(
            "segue lab: without root, in a user namespace: packets have no real-time priority; how late they were is said"
        );
    }
    if let Some(path) = &options.junit {
        writable(path)?;
    }
    let path = options.out.clone().map_or_else(temporary, Ok)?;
    let mut unneeded = Unneeded(options.out.is_none().then(|| path.clone()));
    let mut directory = Directory::open(&path)?;
    let record = options.record.as_deref();
    let tables = record.map(|folder| Directory::open(folder).map(|d| d.path().join(TABLES)));
    let trace = tables.is_some();
    directory.begin(tables.transpose()?)?;
    let seed = options.seed.unwrap_or(scenario.file().seed);
    let recorded = RunOptions {
        seed: Some(seed),
        trace,
        pcap: true,
    };
    let real = in_real_time(
        (&scenario, others),
        &recorded,
        (owner, privileges),
        &mut directory,
        is_accepted,
    )?;
    directory.end()?;
    let Some(real) = real else {
        return Ok(interrupted());
    };
    let predicted = unless_asked(|| {
        (options.predict && missing.is_none())
            .then(|| predict(&scenario, seed))
            .transpose()
    });
    let Some(prediction) = predicted.transpose()? else {
        return Ok(interrupted());
    };
    let Some(outcome) =
        unless_asked(|| Outcome::new(real, prediction, &directory, &conditions, options.out.is_none()))
    else {
        return Ok(interrupted());
    };
    unneeded.0 = None;
    if let Some(path) = &options.junit {
        outcome
            .write_junit(path)
            .with_context(|| path.display().to_string())?;
    }
    if let Some(folder) = record {
        outcome
            .write_record(folder)
            .with_context(|| folder.display().to_string())?;
    }
    let printed = match options.json {
        true => outcome.print_json(),
        false => outcome.print().map_err(anyhow::Error::from),
    };
    // a reader who has had enough does not change what the run came to
    match printed {
        Err(error) if !command_line::is_broken_pipe(&error) => return Err(error),
        _ => {}
    }
    let _ = outcome.say_verdicts();
    let _ = outcome.say_failures();
    Ok(if outcome.too_late() {
        EXIT_TOO_LATE
    } else if outcome.conditions_hold() && outcome.programs_are_well() {
        0
    } else {
        EXIT_FAILED
    })
}

/// What a run in real time leaves.
pub(super) struct Real {
    output: RunOutput,
    lateness: LatenessReport,
    counters: emulator::Counters,
    changes: Vec<emulator::Change>,
    received: Vec<received::Received>,
    left_out: Vec<plan::LeftOut>,
    /// What packets show is not what an application gets.
    is_by_reads: bool,
    /// What shims, home agents and proxies counted, by node.
    node_counters: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// What the TCP of the kernels counted, by host.
    tcp_counters: BTreeMap<String, BTreeMap<String, u64>>,
    programs: Vec<Ended>,
    hosts: Vec<outcome::HostRecord>,
    real_time_priority: bool,
    processors_kept_awake: usize,
    programs_nice: i32,
    /// What the machine below had of this one's processors while packets were carried.
    steal: Option<Duration>,
    privileges: Privileges,
}

/// Runs it; nothing if it was interrupted. Namespaces are gone when this returns.
fn in_real_time(
    (scenario, others): (&Scenario, Option<Others>),
    options: &RunOptions,
    (owner, privileges): (Owner, Privileges),
    directory: &mut Directory,
    is_accepted: &mut bool,
) -> anyhow::Result<Option<Real>> {
    let seed = options.seed.unwrap_or(scenario.file().seed);
    // the last to go
    let _programs = ProgramsOf(owner);
    let mut network = Realtime::new(scenario, seed, options)?;
    let kernel_hosts = network.hosts();
    let metrics = RouteMetrics::of(scenario);
    let mut hosts = Vec::new();
    for host in &kernel_hosts {
        hosts.push(Host::make(owner.name(hosts.len()), host, &metrics, others)?);
    }
    let planned = plan::programs((scenario, others), &mut network, &hosts)?;
    let _tunnels = match others {
        Some(Others::Wireguard) => tunnels(scenario, &network, &mut hosts)?,
        _ => Tunnels::default(),
    };
    let proxies = Proxies::make(scenario, &network, &hosts)?;
    let records = outcome::host_records(&kernel_hosts, &hosts);
    let addresses: Vec<AtomicU32> = hosts.iter().map(|_| AtomicU32::new(0)).collect();
    let over = AtomicBool::new(false);
    machine::settle(directory.path());
    let clock = Clock::new();
    let begin = clock.now() + LEAD;
    let end = Instant::ZERO + scenario.file().duration;
    let outputs = Directory::open(directory.path())?;
    let spill = rows::store(directory.path())?;
    let stage = Stage {
        directory: &outputs,
        run: owner.name(0),
        clock,
        begin,
        addresses: &addresses,
        over: &over,
    };
    let awake = Awake::keep(MOST_AWAKE);
    // inherited by what is started from here; whatever else the machine does is not to delay what programs write
    let programs_nice = set_nice(PROGRAMS_NICE).map_or(0, |()| PROGRAMS_NICE);
    let programs = Programs::begin(stage, planned.programs)?;
    std::thread::scope(|scope| {
        let programs = std::thread::Builder::new().spawn_scoped(scope, || {
            let ended = programs.run();
            // one that could not be started ends the run
            over.fetch_or(ended.is_err(), Ordering::Relaxed);
            ended
        });
        let programs = programs.context("a thread")?;
        // without the privilege, the network is as exact as the machine is idle
        let real_time_priority = raise_priority().is_ok();
        let mut emulator = Emulator::new(network, (hosts, proxies), (clock, begin), &addresses, &spill);
        let watch = StandstillWatch::begin(MOST_AWAKE);
        let steal_before = machine::steal();
        let carried = emulator.carry(end, &over, directory);
        let steal = machine::steal();
        ordinary_priority();
        let stood = watch.map(|watch| in_the_run(watch.end(), begin));
        over.store(true, Ordering::Relaxed);
        let programs = programs
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // a command that there is not is wrong input, whenever it was to begin
        *is_accepted = !programs.as_ref().is_err_and(names_no_program);
        let ended = carried?;
        if stop::asked() {
            return Ok(None);
        }
        let mut programs = programs?;
        programs.iter_mut().for_each(|p| p.read_last_line(directory));
        let tcp = emulator.tcp_counters()?;
        let carried = emulator.end();
        let counters = carried.network.counters();
        let counters = with_proxies(counters, &kernel_hosts, &carried.proxies);
        let given = carried.proxies.into_given();
        let mut output = carried.network.finish(ended, directory)?;
        let is_by_reads = others.is_some() || carries(scenario.file());
        if !is_by_reads {
            let timeouts = tcp.iter().filter_map(|own| own.get(host::TIMEOUTS));
            output.metrics.timeouts += timeouts.sum::<u64>();
        }
        let names = kernel_hosts.iter().map(|host| host.name.clone());
        Ok(Some(Real {
            output,
            tcp_counters: names.zip(tcp).collect(),
            lateness: carried.lateness.report(stood.as_deref()),
            counters: carried.counters,
            node_counters: counters,
            changes: carried.changes,
            received: received::received(directory, &planned.receivers, begin, &given),
            left_out: planned.left_out,
            is_by_reads,
            programs,
            hosts: records,
            real_time_priority,
            processors_kept_awake: awake.len(),
            programs_nice,
            steal: steal
                .zip(steal_before)
                .map(|(after, before)| after.saturating_sub(before)),
            privileges,
        }))
    })
}

/// Those since a run began, in its time.
fn in_the_run(stood: Vec<Standstill>, begin: Instant) -> Vec<Standstill> {
    let since = stood.into_iter().filter(|s| s.until > begin);
    let of_run = |at: Instant| Instant::ZERO + at.since(begin);
    since
        .map(|s| Standstill {
            from: of_run(s.from),
            until: of_run(s.until),
        })
        .collect()
}

/// Whether it is that a program is not there, or is none.
fn names_no_program(error: &anyhow::Error) -> bool {
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
    let found = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    found.is_some_and(|error| kinds.contains(&error.kind()))
}

/// What was counted by node, with what proxies counted.
fn with_proxies(
    mut counters: BTreeMap<String, BTreeMap<&'static str, u64>>,
    hosts: &[KernelHost],
    proxies: &Proxies,
) -> BTreeMap<String, BTreeMap<&'static str, u64>> {
    for (host, own) in proxies.counters() {
        let name = hosts[host as usize].name.clone();
        counters.entry(name).or_default().extend(own.named());
    }
    counters
}

/// Tunnels between the ends of each application.
fn tunnels(scenario: &Scenario, network: &Realtime<'_>, hosts: &mut [Host]) -> anyhow::Result<Tunnels> {
    let ends = scenario
        .file()
        .application
        .iter()
        .filter_map(|a| network.application(a));
    let pairs = ends.map(|ends| Pair {
        client: ends.client,
        server: ends.server,
        address: ends.peer,
    });
    Tunnels::make(hosts, &pairs.collect())
}

/// The same in the simulator.
fn predict(scenario: &Scenario, seed: u64) -> anyhow::Result<RunOutput> {
    let options = RunOptions {
        seed: Some(seed),
        ..RunOptions::default()
    };
    Ok(segue_sim::run(scenario, options)?)
}

fn read(path: &Path, settings: &[(String, String)]) -> anyhow::Result<Scenario> {
    let text = read_text(path)?;
    let name = path.display().to_string();
    Scenario::from_toml(&text, &name, settings).map_err(|error| anyhow!("{error}"))
}

/// Does it, unless it is asked to stop before or after.
fn unless_asked<T>(step: impl FnOnce() -> T) -> Option<T> {
    if stop::asked() {
        return None;
    }
    let done = step();
    (!stop::asked()).then_some(done)
}

/// A folder for what nobody has asked for: without a result that names it, it goes.
struct Unneeded(Option<PathBuf>);

impl Drop for Unneeded {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// A new folder, of this user alone.
fn temporary() -> anyhow::Result<PathBuf> {
    let template = std::env::temp_dir().join("segue-lab.XXXXXX");
    nix::unistd::mkdtemp(&template).with_context(|| template.display().to_string())
}

/// Sees to it that a file can be written, before there is something to lose.
fn writable(path: &Path) -> anyhow::Result<()> {
    // a pipe that nobody reads is an error at once
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path);
    file.map(drop).with_context(|| path.display().to_string())
}
