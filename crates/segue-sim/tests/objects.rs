//! Web pages and films in the simulator.

use crate::common::{metrics, scenario_text};
use segue_sim::quality::Experience;
use segue_sim::quality::video::VideoMetrics;
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

fn video(m: &Metrics) -> &VideoMetrics {
    match &m.applications[0].experience {
        Experience::Video(video) => video,
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
fn a_film_plays_at_the_best_rate_that_the_link_carries() {
    for transport in ["tcp", "sctp"] {
        let ladder = "ladder = [\"500 kbit/s\", \"1 Mbit/s\", \"2 Mbit/s\", \"4 Mbit/s\"]";
        let m = metrics(&one_link("video", transport, "", ladder), &[], 1);
        let own = video(&m);
        assert_eq!(
            (own.stalls, own.stalled_at_end),
            (0, false),
            "{transport}: {own:?}"
        );
        // 250 kB at 8 Mbit/s
        assert!(
            (0.25..0.6).contains(&own.startup_delay_s.unwrap()),
            "{transport}: {own:?}"
        );
        assert_eq!(own.rate_switches, 3, "{transport}: {own:?}");
        assert!(own.mean_rate_bps.unwrap() > 3e6, "{transport}: {own:?}");
        assert!(
            (own.played_s + own.startup_delay_s.unwrap() - 400.0).abs() < 1.0,
            "{own:?}"
        );
        assert_eq!(m.corrupt_messages, 0);
    }
}

#[test]
fn a_film_stands_still_while_a_link_is_out_for_longer_than_its_buffer() {
    let out = "outages = [[\"100 s\", \"200 s\"]]";
    let text = one_link("video", "tcp", "", "").replace(
        "between = [\"a\", \"b\"]",
        &format!("between = [\"a\", \"r\"]\nrate = \"8 Mbit/s\"\ndelay = \"1 ms\"\n{out}\n\n[[link]]\nbetween = [\"r\", \"b\"]"),
    );
    let text = text.replace("host =", "router = [{ name = \"r\" }]\nhost =");
    let m = metrics(&text, &[], 1);
    let own = video(&m);
    assert_eq!(own.stalls, 1, "{own:?}");
    // 60 s of buffer are left at 100 s; TCP tries again at some time after 200 s
    let stall = own.stall_times[0];
    assert!(
        (150.0..165.0).contains(&stall.since_s) && stall.duration_s > 35.0,
        "{own:?}"
    );
}

#[test]
fn a_film_of_some_length_ends_and_closes_its_connection() {
    let m = metrics(&one_link("video", "tcp", "", "length = \"60 s\""), &[], 1);
    let own = video(&m);
    assert_eq!(
        (own.segments, own.stalls, own.stalled_at_end),
        (15, 0, false),
        "{own:?}"
    );
    assert!((own.played_s - 60.0).abs() < 1e-6, "{own:?}");
    assert_eq!(format!("{:?}", m.flows[0].end.state), "Closed");
}

#[test]
fn every_scheme_carries_pages_and_films() {
    for (file, minimum) in [("people/browse.toml", 15), ("people/film.toml", 60)] {
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
                    let met = web
                        .load_time_during_handovers_s
                        .as_ref()
                        .map_or(0, |met| met.count);
                    assert!(
                        web.load_time_s.is_some() && met < web.pages / 2,
                        "{set:?}: {web:?}"
                    );
                    (web.loaded_pages, web.pages - web.loaded_pages > 1)
                }
                Experience::Video(video) => (video.segments, video.startup_delay_s.is_none()),
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
fn what_pages_and_films_cannot_be_is_said_in_a_line() {
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
            "1 ms to 3600 s",
        ),
        ("web", "tcp", "reading = \"1 s\"", "web", "reading"),
        (
            "video",
            "tcp",
            "ladder = []",
            "application[0].video.ladder",
            "from the lowest up",
        ),
        (
            "video",
            "tcp",
            "ladder = [\"1 Mbit/s\", \"1 Mbit/s\"]",
            "application[0].video.ladder",
            "from the lowest up",
        ),
        (
            "video",
            "tcp",
            "segment = \"1 ms\"",
            "application[0].video.segment",
            "100 ms to 60 s",
        ),
        (
            "video",
            "tcp",
            "buffer = \"1 s\"",
            "application[0].video.buffer",
            "`segment` at least",
        ),
        (
            "video",
            "tcp",
            "startup = \"61 s\"",
            "application[0].video.startup",
            "no more than `buffer`",
        ),
        (
            "video",
            "tcp",
            "cushion = \"0 s\"",
            "application[0].video.cushion",
            "more than 0 s",
        ),
        (
            "video",
            "tcp",
            "reservoir = \"50 s\"",
            "application[0].video.reservoir",
            "together",
        ),
        (
            "video",
            "tcp",
            "length = \"0 s\"",
            "application[0].video.length",
            "more than 0 s",
        ),
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
