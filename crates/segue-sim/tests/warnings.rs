//! What a run warns of.

use crate::common::{all_scenarios, metrics, metrics_of};
use segue_sim::Metrics;
use segue_sim::warnings::WarningKind;

const SIGMA: &str = include_str!("../../../scenarios/papers/sigma.toml");
const ILNP: &str = include_str!("../../../scenarios/papers/ilnp.toml");
const GAP: &str = include_str!("../../../scenarios/coverage-gap.toml");

/// Host and text of the warnings of a kind.
fn warned(m: &Metrics, kind: WarningKind) -> Vec<(Option<&str>, &str)> {
    let of_kind = m.warnings.iter().filter(|w| w.kind == kind);
    of_kind.map(|w| (w.host.as_deref(), w.text.as_str())).collect()
}

#[test]
fn sigma_does_nothing_for_tcp_and_says_so() {
    let set = [("duration", "20 s"), ("application.0.transport", "tcp")];
    let of_tcp = metrics(SIGMA, &set, 1);
    let [(Some("mh"), text)] = warned(&of_tcp, WarningKind::SchemeWithoutEffect)[..] else {
        panic!("{:?}", of_tcp.warnings)
    };
    assert!(
        text.starts_with("scheme = \"sigma\" has no effect on the flow from `cn` to `mh`"),
        "{text}"
    );
    // nor is it said where it has one, or where nobody moves
    let of_sctp = metrics(SIGMA, &set[..1], 1);
    assert_eq!(of_sctp.warnings, []);
}

#[test]
fn a_host_out_of_all_coverage_is_told_with_when_and_how_long() {
    let m = metrics(GAP, &[("duration", "40 s")], 1);
    let [(Some("mh"), text)] = warned(&m, WarningKind::OutOfCoverage)[..] else {
        panic!("{:?}", m.warnings)
    };
    assert!(text.starts_with("`mh` was out of reach of every cell "), "{text}");
    // one that leaves before it has an address is never served
    let away = [
        ("duration", "20 s"),
        ("mobile.speed", "50 m/s"),
        ("mobile.points", "[[\"0 m\", \"5 km\"]]"),
    ];
    let m = metrics(ILNP, &away, 1);
    assert_eq!(
        warned(&m, WarningKind::OutOfCoverage),
        [(
            Some("mn"),
            "`mn` was out of reach of every cell for 18.600 s from 1.400 s on"
        )]
    );
    let [(Some("cn"), text)] = warned(&m, WarningKind::NeverServed)[..] else {
        panic!("{:?}", m.warnings)
    };
    assert!(
        text.starts_with("application[0], from `cn` to `mn`, was never served"),
        "{text}"
    );
}

#[test]
fn a_fallback_to_plain_ipv6_is_told() {
    // the mobile node calls a host whose kernel reports the nonce
    let set = [
        ("duration", "20 s"),
        ("application.0.from", "mn"),
        ("application.0.to", "cn"),
        ("host.0.plain", "true"),
    ];
    let m = metrics(ILNP, &set, 1);
    let [(Some("mn"), text)] = warned(&m, WarningKind::Fallback)[..] else {
        panic!("{:?}", m.warnings)
    };
    assert!(text.starts_with("`mn` fell back to plain IPv6 with "), "{text}");
    assert_eq!(warned(&metrics(ILNP, &set[..3], 1), WarningKind::Fallback), []);
    // one that calls before the other has an address does not take its silence for ignorance of ILNP
    let early = [
        ("duration", "30 s"),
        ("application.0.start", "1 s"),
        ("ilnp.fallback_after", "1"),
    ];
    assert_eq!(warned(&metrics(ILNP, &early, 1), WarningKind::Fallback), []);
}

#[test]
fn a_correspondent_that_does_not_take_part_in_route_optimisation_is_told() {
    let set = [
        ("scheme", "mip6-ro"),
        ("duration", "60 s"),
        // it is cut off before the handover, and the mobile node's binding updates go nowhere
        ("link.0.outages", "[{ from = \"34 s\" }]"),
    ];
    let m = metrics(ILNP, &set, 1);
    let [(Some("mn"), text)] = warned(&m, WarningKind::Fallback)[..] else {
        panic!("{:?}", m.warnings)
    };
    assert!(text.starts_with("`cn` did not answer `mn` at "), "{text}");
    assert!(
        text.ends_with("no route optimisation, packets go by the home agent"),
        "{text}"
    );
    // it was there, or nobody asked it
    assert_eq!(warned(&metrics(ILNP, &set[..2], 1), WarningKind::Fallback), []);
    let by_tunnel = [("scheme", "mip6"), set[1], set[2]];
    assert_eq!(warned(&metrics(ILNP, &by_tunnel, 1), WarningKind::Fallback), []);
}

/// Two networks, and a host between them, which forwards nothing.
fn apart(to: &str) -> String {
    let ends = [
        ("a", "left"),
        ("left", "between"),
        ("between", "right"),
        ("right", "b"),
    ];
    let links = ends.map(|(one, other)| {
        format!("[[link]]\nbetween = [\"{one}\", \"{other}\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n")
    });
    format!(
        "name = \"apart\"\nduration = \"10 s\"\nscheme = \"none\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"between\"\n\
         [[host]]\nname = \"b\"\n[[router]]\nname = \"left\"\n[[router]]\nname = \"right\"\n{}[[application]]\nkind = \"bulk\"\n\
         transport = \"tcp\"\nfrom = \"a\"\nto = \"{to}\"\n",
        links.concat()
    )
}

#[test]
fn a_router_without_a_route_is_told_with_how_often_and_where_to() {
    let m = metrics(&apart("b"), &[], 1);
    let [(Some("left"), text)] = warned(&m, WarningKind::NoRoute)[..] else {
        panic!("{:?}", m.warnings)
    };
    // a SYN at once and three more, after 1 s, 3 s and 7 s
    assert_eq!(
        text,
        "`left` had no route for 4 packets, the first to 2001:db8:ff03::2 at 0.002 s"
    );
    assert_eq!(
        warned(&metrics(&apart("between"), &[], 1), WarningKind::NoRoute),
        []
    );
}

#[test]
fn an_application_whose_packets_find_no_way_is_never_served() {
    let m = metrics(&apart("b"), &[], 1);
    assert_eq!(
        warned(&m, WarningKind::NeverServed),
        [(
            Some("a"),
            "application[0], from `a` to `b`, was never served: not a byte of it arrived"
        )]
    );
    assert_eq!(metrics(&apart("between"), &[], 1).warnings, []);
}

#[test]
fn a_queue_that_drops_more_than_a_twentieth_is_overloaded() {
    let text = |flows: usize| {
        let application = "[[application]]\nkind = \"bulk\"\ntransport = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";
        format!(
            "name = \"load\"\nduration = \"60 s\"\nscheme = \"none\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
             [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"4 packets\"\n{}",
            application.repeat(flows)
        )
    };
    let overloaded = metrics(&text(30), &[], 1);
    let [(None, line)] = warned(&overloaded, WarningKind::Overload)[..] else {
        panic!("{:?}", overloaded.warnings)
    };
    assert!(
        line.starts_with("the queue of the link from `a` to `b` was overloaded: "),
        "{line}"
    );
    assert_eq!(
        metrics(&text(1), &[("link.0.queue", "100 packets")], 1).warnings,
        []
    );
}

#[test]
fn a_cell_whose_queue_drops_more_than_a_twentieth_is_overloaded() {
    let set = [
        ("duration", "20 s"),
        ("application.0.start", "10 s"),
        ("radio.queue", "1"),
    ];
    let m = metrics(ILNP, &set, 1);
    let [(None, text)] = warned(&m, WarningKind::Overload)[..] else {
        panic!("{:?}", m.warnings)
    };
    assert!(
        text.starts_with("a queue of the radio channel of `L2` was overloaded: "),
        "{text}"
    );
    assert_eq!(metrics(ILNP, &set[..2], 1).warnings, []);
}

#[test]
fn ilnp_hard_moves_to_what_remains_where_both_networks_were_in_reach_from_the_start() {
    let there = [
        ("scheme", "ilnp-hard"),
        ("duration", "40 s"),
        ("mobile.from", "[\"55 m\", \"0 m\"]"),
        ("mobile.start", "20 s"),
    ];
    for to in ["[[\"110 m\", \"0 m\"]]", "[[\"0 m\", \"0 m\"]]"] {
        for seed in 1..4 {
            let set: Vec<_> = there.into_iter().chain([("mobile.points", to)]).collect();
            let m = metrics(ILNP, &set, seed);
            assert_eq!(warned(&m, WarningKind::Fallback), [], "to {to}, seed {seed}");
            let seconds = &m.flows[0].received_bytes_by_second;
            assert!(
                seconds.len() >= 40 && seconds[39] > 1_000_000,
                "to {to}, seed {seed}: {seconds:?}"
            );
        }
    }
}

#[test]
fn scenarios_of_the_repository_warn_of_nothing_but_what_they_show() {
    for (path, text) in all_scenarios() {
        let m = metrics_of(&path, &text, &[("duration", "50 s")], 1);
        let shows = |kind| match kind {
            WarningKind::OutOfCoverage => ["coverage-gap", "vertical", "campus-walk"]
                .iter()
                .any(|s| path.contains(s)),
            // of the lab's proxy there is no model
            WarningKind::SchemeWithoutEffect | WarningKind::KeyWithoutEffect => path.contains("sigma-tcp"),
            _ => false,
        };
        let unexpected: Vec<_> = m.warnings.iter().filter(|w| !shows(w.kind)).collect();
        assert!(unexpected.is_empty(), "{path}: {unexpected:?}");
    }
}

#[test]
fn a_rate_that_no_way_carries_is_told() {
    let text = |from: &str, to: &str, rate: &str| {
        format!(
            "name = \"rate\"\nduration = \"5 s\"\nscheme = \"none\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
             [[router]]\nname = \"r\"\n[[link]]\nbetween = [\"a\", \"r\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n\
             up = {{ rate = \"100 kbit/s\", delay = \"1 ms\", queue = \"50 packets\" }}\n[[link]]\nbetween = [\"r\", \"b\"]\nrate = \"1 Mbit/s\"\n\
             delay = \"1 ms\"\n[[application]]\nkind = \"constant-rate\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\n"
        )
    };
    let told = |from, to, rate| {
        let m = metrics(&text(from, to, rate), &[], 1);
        let own = warned(&m, WarningKind::Overload);
        let own = own.iter().filter(|(_, line)| line.starts_with("application[0]"));
        own.map(|(host, line)| (host.map(str::to_owned), (*line).to_owned()))
            .collect::<Vec<_>>()
    };
    let [(host, line)] = &told("a", "b", "50 Mbit/s")[..] else {
        panic!("no warning");
    };
    assert_eq!(host.as_deref(), Some("a"));
    assert!(
        line.contains("50 times what the way between them carries"),
        "{line}"
    );
    // what the slowest link carries is no more than it can have meant, and the way back is slower
    assert_eq!(told("a", "b", "1 Mbit/s"), []);
    assert_eq!(told("b", "a", "1 Mbit/s").len(), 1);
    assert_eq!(told("b", "a", "100 kbit/s"), []);
}

#[test]
fn a_rate_that_all_paths_at_once_do_not_carry_is_told_with_what_they_do() {
    // a receiver with so many links of 1 Mbit/s
    let told = |paths: u64, rate: &str| {
        let link = "[[link]]\nbetween = [\"r\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\noutages = [{ from = \"4 s\" }]\n";
        let text = format!(
            "name = \"paths\"\nduration = \"5 s\"\nscheme = \"cmt\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
             [[router]]\nname = \"r\"\n[[link]]\nbetween = [\"a\", \"r\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n{}\
             [[application]]\nkind = \"constant-rate\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\n",
            link.repeat(paths as usize)
        );
        let m = metrics(&text, &[], 1);
        let own = warned(&m, WarningKind::Overload);
        let own = own.iter().find(|(_, line)| line.starts_with("application[0]"));
        own.map(|(_, line)| (*line).to_owned())
    };
    let line = told(2, "6 Mbit/s").expect("a warning");
    let said = "asks for 6 Mbit/s, 3 times what the way between them carries at best, 2 Mbit/s: ";
    assert!(line.contains(said), "{line}");
    assert_eq!(
        told(1, "6 Mbit/s").map(|line| line.contains("6 times")),
        Some(true)
    );
    assert_eq!(told(4, "6 Mbit/s"), None);
}
