//! Plays a script on the stack that it is for.

use super::SyntaxError;
use super::ast::{Action, Call, Expression, Script};
use super::parse::{asked_for, parse};
use super::runner::run;
use super::sctp::SctpStack;
use super::stack::Refusal;
use super::tcp::TcpStack;
use super::verdict::Verdict;
use segue_proto::{sctp, tcp};

/// How scripts are played.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Names that `#ifdef` finds; if there are none, each that a script asks for is tried alone until the script passes.
    pub defined: Vec<String>,
    /// The specification whose constants SCTP has.
    pub sctp: sctp::Profile,
    /// Whose TCP.
    pub tcp: tcp::Profile,
}

/// A script that was played.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    /// What it came to.
    pub verdict: Verdict,
    /// The name that `#ifdef` found, if the script asks for one: a script that has several implementations' habits passes if it
    /// passes with one of them.
    pub platform: Option<String>,
}

/// Plays the script `source` of `file`.
///
/// ```
/// use segue_conformance::drill::play::{Settings, play};
/// use segue_conformance::drill::verdict::Verdict;
///
/// let script = "+0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3
/// +0 bind(3, ..., ...) = 0
/// +0 listen(3, 1) = 0
/// +0 < sctp: INIT[flgs=0, tag=1, a_rwnd=1500, os=1, is=1, tsn=1]
/// +0 > sctp: INIT_ACK[flgs=0, tag=2, a_rwnd=..., os=..., is=..., tsn=1, ...]";
/// let played = play("init.pkt", script, &Settings::default()).unwrap();
/// assert_eq!(played.verdict, Verdict::Passed);
/// ```
///
/// # Errors
/// If it is not the language.
pub fn play(file: &str, source: &str, settings: &Settings) -> Result<Played, SyntaxError> {
    let names = asked_for(source);
    if names.is_empty() || !settings.defined.is_empty() {
        let defined: Vec<&str> = settings.defined.iter().map(String::as_str).collect();
        let script = parse(file, source, &defined)?;
        return Ok(Played {
            verdict: play_script(&script, settings),
            platform: None,
        });
    }
    let mut first = None;
    for name in names {
        let script = parse(file, source, &[name])?;
        let played = Played {
            verdict: play_script(&script, settings),
            platform: Some(name.to_owned()),
        };
        if played.verdict == Verdict::Passed {
            return Ok(played);
        }
        first.get_or_insert(played);
    }
    Ok(first.expect("some name was asked for"))
}

/// Plays a script that was parsed.
#[must_use]
pub fn play_script(script: &Script, settings: &Settings) -> Verdict {
    let unmappable = |(line, Refusal(what))| Verdict::Unmappable { line, what };
    let socket = script.events.iter().find_map(|event| match &event.action {
        Action::Call(call) if call.name == "socket" => Some((event.line, call)),
        _ => None,
    });
    let Some((line, socket)) = socket else {
        return unmappable((1, Refusal("a script without a socket".to_owned())));
    };
    match protocol(socket) {
        Some("IPPROTO_SCTP") => match SctpStack::new(script, settings.sctp) {
            Ok(mut stack) => run(script, &mut stack),
            Err(refusal) => unmappable(refusal),
        },
        Some("IPPROTO_TCP") => match TcpStack::new(script, settings.tcp) {
            Ok(mut stack) => run(script, &mut stack),
            Err(refusal) => unmappable(refusal),
        },
        Some(other) => unmappable((line, Refusal(format!("a socket of {other}")))),
        None => unmappable((line, Refusal("a socket whose protocol is not named".to_owned()))),
    }
}

fn protocol(socket: &Call) -> Option<&str> {
    match socket.arguments.get(2) {
        Some(Expression::Name(name)) => Some(name),
        _ => None,
    }
}
