//! Web pages in the simulator.

use crate::common::{metrics, scenario_text};
use segue_sim::quality::Experience;
use segue_sim::quality::web::WebMetrics;
use segue_sim::{Metrics, Scenario};

/// An application between `a`, who asks, and `b`.
fn one_link(kind: &str, transport: &str, link: &str, table: &str) -> String {
    format!(
        r#"
name = "objects"
duration = "400 s"
host = [{{ name = "a" }}, {{ name = "b" }}]

[[link]]
between = ["a", "b"]
rate = "8 Mbit/s"
delay = "15 ms"
{link}

[[application]]
kind = "{kind}"
transport = "{transport}"
from = "a"
to = "b"

[application.{kind}]
{table}
"#
    )
}

fn web(m: &Metrics) -> &WebMetrics {
    match &m.applications[0].experience {
        Experience::Web(web) => web,
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str) -> String {
    Scenario::from_toml(text, "test", &[])
        .expect_err("refused")
        .to_string()
}

#[test]
fn pages_come_whole_over_tcp_and_sctp_with_typed_packets_and_real_bytes() {
    for transport in ["tcp", "sctp"] {
        let text = one_link("web", transport, "", "reading_time = \"2 s\"");
        let [typed, exact] = ["typed", "exact"].map(|wire| metrics(&text, &[("wire", wire)], 1));
        assert_eq!(typed.event_log_hash, exact.event_log_hash, "{transport}");
        assert_eq!(
            (typed.corrupt_messages, exact.corrupt_messages),
            (0, 0),
            "{transport}"
        );
        let own = web(&typed);
        assert_eq!(own, web(&exact), "{transport}");
        // 400 s, a page every 2 s and what it takes to load
        assert!((100..220).contains(&own.pages), "{transport}: {own:?}");
        assert!(own.pages - own.loaded_pages <= 1, "{transport}: {own:?}");
        let load = own.load_time_s.as_ref().expect("pages");
        // two round trips of 30 ms and 130 ms of parsing at least; at 8 Mbit/s 2 MB take 2 s
        assert!((0.06..2.0).contains(&load.median), "{transport}: {load:?}");
        assert!(load.p95 > load.median && own.load_time_during_handovers_s.is_none());
        // what arrived is what was asked for
        let received = typed
            .flows
            .iter()
            .find(|f| f.from == "b")
            .expect("answers")
            .transferred_bytes;
        assert!(
            received >= own.bytes && received - own.bytes < 4_000_000,
            "{transport}"
        );
    }
}

#[test]
fn every_scheme_carries_pages() {
    for (file, minimum) in [("people/browse.toml", 15)] {
        let text = scenario_text(file);
        for set in [
            ("scheme", "ilnp-soft"),
            ("case", "sigma"),
            ("scheme", "mip6"),
            ("scheme", "ilnp-hard"),
        ] {
            let m = metrics(&text, &[set], 1);
            assert!(m.handovers.len() >= 5, "{file}, {set:?}");
            let (done, stuck) = match &m.applications[0].experience {
                Experience::Web(web) => {
                    assert!(web.load_time_s.is_some());
                    (web.loaded_pages, web.pages - web.loaded_pages > 1)
                }
                other => panic!("{other:?}"),
            };
            assert!(done >= minimum && !stuck, "{file}, {set:?}: {done}");
            assert_eq!(m.corrupt_messages, 0, "{file}, {set:?}");
        }
    }
}

#[test]
fn several_readers_share_a_server_and_draw_for_themselves() {
    let more = "\n[[application]]\nkind = \"web\"\ntransport = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";
    let text = format!("{}{more}", one_link("web", "tcp", "", "reading_time = \"30 s\""));
    let m = metrics(&text, &[], 1);
    let [one, other] = &m.applications[..] else {
        panic!("two readers")
    };
    assert_eq!((one.application, other.application), (0, 1));
    assert_ne!(one.experience, other.experience);
    // the second does not change what the first draws: it has as many pages, of as many bytes, as by itself
    let alone = metrics(&one_link("web", "tcp", "", "reading_time = \"30 s\""), &[], 1);
    let bytes = |m: &Metrics| (web(m).objects, web(m).bytes);
    assert_eq!(bytes(&m), bytes(&alone));
}

#[test]
fn what_pages_cannot_be_is_said_in_a_line() {
    for (kind, transport, table, key, expected) in [
        ("web", "udp", "", "application[0].kind", "transport = \"udp\""),
        (
            "web",
            "tcp",
            "request = \"3 B\"",
            "application[0].web.request",
            "16 B",
        ),
        (
            "web",
            "tcp",
            "reading_time = \"0 s\"",
            "application[0].web.reading_time",
            "1 ms to 1 h",
        ),
        ("web", "tcp", "reading = \"1 s\"", "web", "reading"),
    ] {
        let line = refused(&one_link(kind, transport, "", table));
        assert!(line.contains(key) && line.contains(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
    let sized = one_link("web", "tcp", "", "").replace("to = \"b\"", "to = \"b\"\nsize = \"1 MB\"");
    let line = refused(&sized);
    assert!(
        line.contains("application[0].size") && line.contains("kind = \"web\""),
        "{line}"
    );
    // a server without an address that stays would have to open the connection itself
    let turned = scenario_text("people/browse.toml")
        .replace(
            "from = \"phone\"          # who asks\nto = \"server\"",
            "from = \"server\"\nto = \"phone\"",
        )
        .replace("scheme = \"ilnp-soft\"", "scheme = \"none\"");
    let line = refused(&turned);
    assert!(
        line.contains("application[0].to") && line.contains("phone"),
        "{line}"
    );
}
