//! What applications must be.

use super::model::{ApplicationEntry, ApplicationKind, ScenarioFile};
use super::validate::{Problem, is_host, problem, written};
use segue_proto::app;
use std::collections::BTreeMap;

/// Messages per second that a constant-rate sender may be asked for: each is an event.
const MOST_MESSAGES_PER_SECOND: f64 = 100_000.0;

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    for (i, a) in s.application.iter().enumerate() {
        let key = |k: &str| format!("application[{i}].{k}");
        for (k, name) in [("from", &a.from), ("to", &a.to)] {
            if !is_host(s, name) {
                return problem(key(k), format!("`{name}`: expected the name of a host"));
            }
        }
        if a.start >= s.duration {
            return problem(
                key("start"),
                format!(
                    "expected a time before `duration`, {}: nothing is sent after that",
                    written(s.duration)
                ),
            );
        }
        if a.from == a.to {
            return problem(key("to"), "expected another host than `from`");
        }
        super::traffic::check(a, &key)?;
        used(a).map_err(|k| Problem {
            key: key(k),
            expected: format!(
                "has no effect with kind = \"{}\": expected it to be left out",
                name_of(a.kind)
            ),
        })?;
        if let ApplicationKind::ConstantRate | ApplicationKind::OnOff = a.kind {
            constant_rate(a, &key)?;
        }
        if a.transport == app::Transport::Udp {
            over_udp(a, &key)?;
        }
        programs(a, &key)?;
        reachable(s, a, &key)?;
        super::traffic::asks(s, a, &key)?;
    }
    one_server_each(s)?;
    one_association_each(s)
}

/// What runs in the place of an application where there are programs.
fn programs(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    if a.command.is_empty() && !a.server.is_empty() {
        return problem(
            key("server"),
            "belongs to a `command`: expected that too, such as [\"iperf3\", \"-c\", \"{peer}\"]",
        );
    }
    for (k, words) in [("command", &a.command), ("server", &a.server)] {
        if words.first().is_some_and(|program| program.trim().is_empty()) {
            return problem(key(k), "expected the name of a program, and then its arguments");
        }
        let unknown = words.iter().find_map(|word| unknown_place(word));
        if let Some(unknown) = unknown {
            return problem(key(k), format!("`{unknown}`: expected {{peer}} or {{port}}"));
        }
    }
    Ok(())
}

/// A name in braces that nothing is put in the place of.
fn unknown_place(word: &str) -> Option<&str> {
    let begin = word.find('{')?;
    let end = begin + word[begin..].find('}')? + 1;
    let place = &word[begin..end];
    let is_name = place[1..place.len() - 1].chars().all(|c| c.is_ascii_lowercase());
    if is_name && place.len() > 2 && !["{peer}", "{port}"].contains(&place) {
        return Some(place);
    }
    unknown_place(&word[end..])
}

/// A host has one SCTP port, and two transport addresses have one association between them (RFC 9260 section 1.3): what
/// comes second waits for the end of the first, which has to have one.
fn one_association_each(s: &ScenarioFile) -> Result<(), Problem> {
    let sctp = |a: &ApplicationEntry| a.transport == app::Transport::Sctp;
    let endless = |a: &ApplicationEntry| a.size.is_none();
    for (i, a) in s.application.iter().enumerate().filter(|(_, a)| sctp(a)) {
        let ends = |b: &ApplicationEntry| {
            [&b.from, &b.to]
                .into_iter()
                .all(|end| [&a.from, &a.to].contains(&end))
        };
        let before = |(j, b): &(usize, &ApplicationEntry)| (b.start, *j) < (a.start, i);
        let mut earlier = s.application.of(&a.from).filter(before);
        if let Some((other, _)) = earlier.find(|(_, b)| sctp(b) && ends(b) && endless(b)) {
            return problem(
                format!("application[{i}]"),
                format!(
                    "`{}` and `{}` have an SCTP association by application[{other}], which does not end: expected a size there, or transport = \"tcp\"",
                    a.from, a.to
                ),
            );
        }
    }
    Ok(())
}

/// The first key that the application's kind has no use for.
fn used(a: &ApplicationEntry) -> Result<(), &'static str> {
    let used: &[&str] = match a.kind {
        ApplicationKind::Bulk => &["size", "message"],
        ApplicationKind::ConstantRate => &["rate", "size", "message"],
        ApplicationKind::RequestResponse => &["message", "response"],
        ApplicationKind::OnOff => &["rate", "message"],
        ApplicationKind::Voice | ApplicationKind::Web | ApplicationKind::Video => &[],
    };
    let there = [
        ("rate", a.rate.is_some()),
        ("size", a.size.is_some()),
        ("message", a.message.is_some()),
        ("response", a.response.is_some()),
    ];
    let unused = there
        .into_iter()
        .find(|(k, is_there)| *is_there && !used.contains(k));
    unused.map_or(Ok(()), |(k, _)| Err(k))
}

pub(super) fn name_of(kind: ApplicationKind) -> &'static str {
    match kind {
        ApplicationKind::Bulk => "bulk",
        ApplicationKind::ConstantRate => "constant-rate",
        ApplicationKind::RequestResponse => "request-response",
        ApplicationKind::OnOff => "on-off",
        ApplicationKind::Voice => "voice",
        ApplicationKind::Web => "web",
        ApplicationKind::Video => "video",
    }
}

fn constant_rate(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let Some(rate) = a.rate.map(|r| r.bits_per_second()).filter(|r| *r > 0) else {
        return problem(
            key("rate"),
            format!("expected a rate above 0 bit/s for kind = \"{}\"", name_of(a.kind)),
        );
    };
    let message = a.message.unwrap_or(crate::build::DEFAULT_MESSAGE).bytes();
    if rate as f64 / (message as f64 * 8.0) > MOST_MESSAGES_PER_SECOND {
        return problem(
            key("rate"),
            "expected at most 100000 messages per second: a lower rate or a longer message",
        );
    }
    Ok(())
}

/// What is lost over UDP is not sent again, and an application must do without it.
fn over_udp(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    if a.kind == ApplicationKind::Voice {
        return Ok(());
    }
    if !matches!(a.kind, ApplicationKind::ConstantRate | ApplicationKind::OnOff) {
        return problem(
            key("kind"),
            "expected \"constant-rate\", \"on-off\" or \"voice\" with transport = \"udp\", which sends nothing again and has no window",
        );
    }
    let message = a.message.unwrap_or(crate::build::DEFAULT_MESSAGE).bytes();
    if !app::DATAGRAM.contains(&message) {
        let (least, most) = (app::DATAGRAM.start(), app::DATAGRAM.end());
        return problem(
            key("message"),
            format!(
                "expected {least} B to {most} B with transport = \"udp\": a datagram that every way carries"
            ),
        );
    }
    // the last message is what is left
    let last = a.size.map_or(0, |size| size.bytes() % message);
    if last != 0 {
        return problem(
            key("size"),
            format!("expected whole messages of {message} B with transport = \"udp\""),
        );
    }
    Ok(())
}

/// A host that is connected to has an address that stays: on a wire, by name, or an identity.
fn reachable(s: &ScenarioFile, a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let server = crate::build::server(s, a);
    let mut links = s.link.iter().filter(|l| l.between.contains(server)).peekable();
    let wired_at_times = links.peek().is_some();
    if links.any(|l| l.outages.is_empty()) || a.by_name || s.scheme.has_shim() {
        return Ok(());
    }
    let end = if *server == a.from { "from" } else { "to" };
    let expected = if wired_at_times {
        format!(
            "every [[link]] of `{server}` has outages, and it would lose its address with them: expected the outages on \
             another [[link]], one more without, by_name, or a `scheme` with identities"
        )
    } else {
        format!(
            "`{server}` has no address that stays: expected a [[link]] to it, by_name, or a `scheme` with identities"
        )
    };
    problem(key(end), expected)
}

/// A host's one port of a transport serves one kind of application: the host that is connected to must know what for.
fn one_server_each(s: &ScenarioFile) -> Result<(), Problem> {
    let mut serving: BTreeMap<&String, Vec<(app::Transport, app::Kind)>> = BTreeMap::new();
    for (i, a) in s.application.iter().enumerate() {
        let host = crate::build::server(s, a);
        let kind = crate::build::kind(a, *host == a.from);
        let own = serving.entry(host).or_default();
        let before = own.iter().find(|(over, _)| *over == a.transport);
        if before.is_some_and(|(_, does)| *does != kind) {
            return problem(
                format!("application[{i}]"),
                format!(
                    "host `{host}` is connected to by another application already: expected one such application a host, or several that it does the same for"
                ),
            );
        }
        if before.is_none() {
            own.push((a.transport, kind));
        }
    }
    Ok(())
}
