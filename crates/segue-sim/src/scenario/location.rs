//! What the location manager must be.

use super::model::ScenarioFile;
use super::validate::{Problem, is_host, problem};
use segue_proto::location::{Identity, parse_name};

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    let Some(l) = &s.location else {
        let by_name = s.application.iter().position(|a| a.by_name);
        return by_name.map_or(Ok(()), |i| {
            problem(
                format!("application[{i}].by_name"),
                "who knows the name? expected [location] with a server",
            )
        });
    };
    if s.mobile.is_empty() {
        return problem("location", "expected [mobile]: there is nobody to be located");
    }
    let wired = s.link.iter().any(|link| link.between.contains(&l.server));
    if !is_host(s, &l.server) || !wired || s.mobile.of(&l.server).is_some() {
        return problem(
            "location.server",
            format!(
                "`{}`: expected the name of a host on a [[link]] that does not move",
                l.server
            ),
        );
    }
    let zone = match parse_name(&l.zone) {
        Ok(zone) => zone,
        Err(message) => return problem("location.zone", message),
    };
    if l.identity.is_some() && s.mobile.len() > 1 {
        return problem(
            "location.identity",
            "expected it to be left out: several hosts move",
        );
    }
    for mobile in s.mobile.iter() {
        let identity = crate::build::identity(l, mobile);
        if let Err(e) = Identity::parse(&identity).and_then(|i| i.name(&zone)) {
            return problem("location.identity", e.to_string());
        }
    }
    let second = 1_000_000_000;
    if l.ttl.as_nanos() % second != 0 {
        return problem("location.ttl", "expected whole seconds");
    }
    if s.application.iter().any(|a| a.by_name && a.from == l.server) {
        return problem(
            "location.server",
            format!(
                "`{}` looks names up itself: expected a host without an application that is `by_name`",
                l.server
            ),
        );
    }
    for (i, a) in s.application.iter().enumerate().filter(|(_, a)| a.by_name) {
        if s.mobile.of(&a.to).is_none() {
            let known: Vec<String> = s.mobile.iter().map(|m| format!("`{}`", m.host)).collect();
            return problem(
                format!("application[{i}].to"),
                format!("expected {}: only a mobile host has a name", known.join(" or ")),
            );
        }
    }
    Ok(())
}
