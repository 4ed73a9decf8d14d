//! What of a scenario is done how in real time, and what cannot be done.

use super::host::Host;
use super::programs::{self, Plan};
use super::schemes::Others;
use crate::text::read_text;
use anyhow::{Context as _, bail};
use nix::errno::Errno;
use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket};
use segue_proto::Duration;
use segue_proto::app::Transport;
use segue_proto::tcp::Config;
use segue_sim::carried;
use segue_sim::realtime::{KernelApplication, Realtime};
use segue_sim::scenario::Scenario;
use segue_sim::scenario::model::{ApplicationEntry, ApplicationKind};
use segue_sim::scenario::schemes::Scheme;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;

/// The first port that connections of built-in applications are opened from, and the first that they go to: one for each.
const FIRST_CLIENT_PORT: u16 = 40_000;
const FIRST_SERVER_PORT: u16 = 9_000;
/// What built-in applications send where the scenario does not say: as in the simulator.
const DEFAULT_MESSAGE: u64 = 1000;

/// The largest message of a built-in application: it is made as a whole.
const LARGEST_MESSAGE: u64 = 64_000_000;

/// How long before it begins a program of ours is started.
const EARLY: Duration = Duration::from_millis(300);

/// The port that the connections of an application go to.
pub(super) fn server_port(application: usize) -> u16 {
    FIRST_SERVER_PORT + application as u16
}

/// Refuses a congestion control that this kernel does not have: no route could be made, and no packet would find one.
pub(super) fn check_congestion_control(scenario: &Scenario, file: &Path) -> anyhow::Result<()> {
    let wanted = RouteMetrics::of(scenario).congestion_control;
    let applications = &scenario.file().application;
    if applications.iter().all(|a| a.transport == Transport::Sctp) || kernel_has(&wanted)? {
        return Ok(());
    }
    let there = read_text(Path::new(CONGESTION_CONTROLS)).unwrap_or_default();
    bail!(
        "{}: tcp.congestion_control: this kernel has no {wanted}: expected one of those that it has: {}",
        file.display(),
        there.split_whitespace().collect::<Vec<_>>().join(", ")
    )
}

/// Where a kernel lists those it has; one that is a module is there once it has been used.
const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Whether the kernel has it, or can load it. It is asked by a socket, since that loads a module, as a route would.
fn kernel_has(congestion_control: &str) -> anyhow::Result<bool> {
    let socket = socket(
        AddressFamily::Inet6,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    );
    let socket = socket.context("a TCP socket")?;
    let tried = setsockopt(&socket, TcpCongestion, &OsString::from(congestion_control));
    // one that is not for every user is there for routes
    Ok(tried != Err(Errno::ENOENT))
}

/// Refuses what only the simulator can do.
pub(super) fn check(scenario: &Scenario, file: &Path) -> anyhow::Result<()> {
    let s = scenario.file();
    let refuse = |key: String, why: &str| -> anyhow::Result<()> { bail!("{}: {key}: {why}", file.display()) };
    for (number, a) in s.application.iter().enumerate() {
        let key = |k: &str| format!("application[{number}].{k}");
        for (name, size) in [("message", a.message), ("response", a.response)] {
            let is_ours = a.command.is_empty() && a.transport != Transport::Sctp;
            if is_ours && size.is_some_and(|size| size.bytes() > LARGEST_MESSAGE) {
                return refuse(
                    key(name),
                    "a program has it in its memory: expected 64 MB at most",
                );
            }
        }
        let is_built_in = matches!(
            a.kind,
            ApplicationKind::Bulk | ApplicationKind::ConstantRate | ApplicationKind::RequestResponse
        );
        if a.command.is_empty() && !is_built_in {
            return refuse(
                key("kind"),
                "only the simulator has it: expected \"bulk\", \"constant-rate\" or \"request-response\", or a `command`",
            );
        }
        if a.by_name {
            return refuse(
                key("by_name"),
                "segue lab has no location manager yet: expected it to be left out",
            );
        }
        if a.transport == Transport::Sctp && !a.command.is_empty() {
            return refuse(
                key("command"),
                "programs use the kernel's TCP and UDP: expected transport = \"tcp\" or \"udp\"",
            );
        }
    }
    if s.location.is_some() {
        return refuse(
            "location".to_owned(),
            "segue lab has no location manager yet: expected it to be left out",
        );
    }
    if matches!(
        s.scheme,
        Scheme::Single | Scheme::Failover | Scheme::MsctpBest | Scheme::MsctpWorst
    ) && s.application.iter().any(|a| a.transport != Transport::Sctp)
    {
        return refuse(
            "scheme".to_owned(),
            "is SCTP's: expected applications with transport = \"sctp\"",
        );
    }
    if let Some((number, why)) = carried::conflict(s) {
        return refuse(format!("application[{number}]"), &why);
    }
    if let Some((key, why)) = Others::of(scenario).and_then(|others| others.missing(scenario)) {
        return refuse(key, &why);
    }
    Ok(())
}

/// What the scenario has the kernels' TCP do, by the metrics of routes: ip-route(8).
#[derive(Clone, Debug)]
pub(super) struct RouteMetrics {
    /// The algorithm, as the kernel names it.
    pub(super) congestion_control: String,
    /// The most data of a segment, if not what the MTU leaves.
    max_segment: Option<u64>,
    /// The least retransmission timeout, if not the kernel's.
    rto_min: Option<Duration>,
}

impl RouteMetrics {
    /// Those of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Self {
        let tcp = &scenario.file().tcp;
        let of_profile = || Config::new(tcp.profile).congestion_control;
        let algorithm = tcp.congestion_control.unwrap_or_else(of_profile);
        Self {
            congestion_control: format!("{algorithm:?}").to_lowercase(),
            max_segment: tcp.max_segment.map(|b| b.bytes()),
            rto_min: tcp.rto_min,
        }
    }

    /// As a line of ip(8) has them behind the route.
    pub(super) fn words(&self) -> String {
        let mut words = vec![format!("congctl {}", self.congestion_control)];
        // what is advertised is data and the options of each segment
        words.extend(
            self.max_segment
                .map(|most| format!("advmss {}", most + TIMESTAMPS)),
        );
        words.extend(
            self.rto_min
                .map(|least| format!("rto_min {}ms", least.as_millis())),
        );
        words.join(" ")
    }
}

/// Bytes that the timestamps option takes of each segment, padding included (RFC 7323 section 3.2 and appendix A).
const TIMESTAMPS: u64 = 12;

/// Which programs there are to run.
#[derive(Debug, Default)]
pub(super) struct Planned {
    pub(super) programs: Vec<Plan>,
    /// Programs of ours that get data.
    pub(super) receivers: Vec<Receiver>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Who gets the data of an application, and says when.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) application: usize,
    /// Number and name of its host.
    pub(super) host: (u32, String),
    /// The file that it says it in, if it is of ours.
    pub(super) output: Option<String>,
    /// Time between two messages; zero where there is none.
    pub(super) pacing: Duration,
}

/// An application that the scheme has nothing for.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeftOut {
    application: usize,
    why: &'static str,
}

/// The programs of the applications, but for those over SCTP, which run in our machines, and those that a scheme leaves out.
pub(super) fn programs(
    (scenario, others): (&Scenario, Option<Others>),
    network: &mut Realtime<'_>,
    hosts: &[Host],
) -> anyhow::Result<Planned> {
    let ours = std::env::current_exe().context("this program")?;
    let ours = ours.display().to_string();
    // programs of others have their own
    let is_ours = others.and_then(Others::program).is_none();
    let no_delay = is_ours && scenario.file().tcp.nagle == Some(false);
    let part = |a: &ApplicationEntry, sends: bool| {
        let mut words = part(a, sends);
        if no_delay && a.transport == Transport::Tcp {
            words.push("--no-delay".to_owned());
        }
        words
    };
    let mut planned = Planned::default();
    for (number, a) in scenario.file().application.iter().enumerate() {
        if a.transport == Transport::Sctp {
            continue;
        }
        let no_datagrams = carried::is_left_out(scenario.file(), a);
        let no_datagrams = no_datagrams.then_some("the association carries TCP, not UDP");
        if let Some(why) = no_datagrams.or_else(|| others.and_then(|others| others.leaves_out(a))) {
            eprintln!("segue lab: application[{number}] is left out: {why}");
            planned.left_out.push(LeftOut {
                application: number,
                why,
            });
            continue;
        }
        let Some(ends) = network.application(a) else {
            bail!(
                "application[{number}].to: has no address that stays: expected a [[link]] to it, or a `scheme` with identities"
            );
        };
        let name = |host: u32| scenario.file().host[host as usize].name.clone();
        let plan = |role, host: u32, command, start: Option<Duration>| Plan {
            application: number,
            role,
            host: (host as usize, name(host)),
            namespace: hosts[host as usize].namespace().clone(),
            command,
            start,
            begins: None,
        };
        let ports = (server_port(number), FIRST_CLIENT_PORT + number as u16);
        let peer = others.and_then(|others| others.address(ends.server));
        let peer = peer.unwrap_or(ends.peer).to_string();
        let (server, client) = if a.command.is_empty() {
            network.opened_from(number, ports.1);
            let program = others.and_then(Others::program);
            let program = program.unwrap_or_else(|| vec![ours.clone(), "app".to_owned()]);
            let own = |argument: String| program.iter().cloned().chain([argument]).collect::<Vec<_>>();
            let mut server = own(format!("--listen={}", ports.0));
            let words = others.and_then(|others| others.words(a)).map(str::to_owned);
            server.extend(part(a, !ends.client_sends).into_iter().chain(words.clone()));
            let mut client = own(format!("--connect=[{peer}]:{}", ports.0));
            client.push(format!("--from-port={}", ports.1));
            client.extend(part(a, ends.client_sends).into_iter().chain(words));
            (server, client)
        } else {
            let filled = |word: &String| {
                word.replace("{peer}", &peer)
                    .replace("{port}", &ports.0.to_string())
            };
            let command = |words: &[String]| {
                let words: Vec<String> = words.iter().map(filled).collect();
                match others {
                    Some(others) => others.wrapped(words),
                    None => words,
                }
            };
            (command(&a.server), command(&a.command))
        };
        if a.command.is_empty() || carried::is_carried(scenario.file(), a) {
            planned.receivers.push(receiver(number, a, &ends, name));
        }
        if !server.is_empty() {
            planned.programs.push(plan("server", ends.server, server, None));
        }
        let client = plan("client", ends.client, client, Some(a.start));
        planned.programs.push(if is_ours && a.command.is_empty() {
            Plan {
                start: Some(a.start.saturating_sub(EARLY)),
                begins: Some(a.start),
                ..client
            }
        } else {
            client
        });
    }
    Ok(planned)
}

/// Who gets the data of an application: of requests it is who asked.
fn receiver(
    number: usize,
    a: &ApplicationEntry,
    ends: &KernelApplication,
    name: impl Fn(u32) -> String,
) -> Receiver {
    let asks = a.kind == ApplicationKind::RequestResponse;
    let (role, host) = match ends.client_sends == asks {
        true => ("client", ends.client),
        false => ("server", ends.server),
    };
    let pacing = a.rate.map_or(Duration::ZERO, |rate| {
        Duration::from_secs_f64(message(a) as f64 * 8.0 / rate.bits_per_second().max(1) as f64)
    });
    Receiver {
        application: number,
        host: (host, name(host)),
        output: a.command.is_empty().then(|| programs::output_of(number, role)),
        pacing,
    }
}

fn message(a: &ApplicationEntry) -> u64 {
    a.message.map_or(DEFAULT_MESSAGE, |b| b.bytes())
}

/// What a built-in application does at one end.
fn part(a: &ApplicationEntry, sends: bool) -> Vec<String> {
    let bytes = |b: Option<segue_proto::units::Bytes>| b.map_or(DEFAULT_MESSAGE, |b| b.bytes());
    let mut words = vec![
        match a.transport {
            Transport::Udp => "--udp",
            _ => "--tcp",
        }
        .to_owned(),
        match (a.kind, sends) {
            (ApplicationKind::RequestResponse, true) => "--ask",
            (ApplicationKind::RequestResponse, false) => "--answer",
            (_, true) => "--send",
            (_, false) => "--receive",
        }
        .to_owned(),
        format!("--message={}", bytes(a.message)),
        format!("--response={}", bytes(a.response)),
    ];
    if let (Some(rate), true) = (a.rate, sends) {
        words.push(format!("--rate={}", rate.bits_per_second()));
    }
    if let (Some(size), true) = (a.size, sends) {
        words.push(format!("--size={}", size.bytes()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_that_only_the_simulator_has_are_refused_in_a_line() {
        let text = include_str!("../../../../scenarios/people/call.toml");
        let scenario = Scenario::from_toml(text, "call.toml", &[]).unwrap();
        let said = check(&scenario, Path::new("call.toml")).unwrap_err().to_string();
        assert_eq!(
            said,
            "call.toml: application[0].kind: only the simulator has it: expected \"bulk\", \"constant-rate\" or \
             \"request-response\", or a `command`"
        );
    }
}
