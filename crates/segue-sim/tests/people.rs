//! Traffic of people in the simulator: how calls sound.

use crate::common::{metrics, scenario_text};
use segue_sim::quality::Experience;
use segue_sim::quality::voice::VoiceMetrics;
use segue_sim::{Metrics, RunOptions, Scenario, run};

/// One direction of a call from `a` to `b` of 20 s.
fn call(link: &str, application: &str, voice: &str) -> String {
    format!(
        r#"
name = "call"
duration = "21 s"
host = [{{ name = "a" }}, {{ name = "b" }}]

[[link]]
between = ["a", "b"]
rate = "8 Mbit/s"
delay = "15 ms"
{link}

[[application]]
kind = "voice"
from = "a"
to = "b"
start = "1 s"
{application}

[application.voice]
{voice}
"#
    )
}

fn voice(m: &Metrics) -> Vec<&VoiceMetrics> {
    let all = m.applications.iter().filter_map(|a| match &a.experience {
        Experience::Voice(voice) => Some(voice),
        _ => None,
    });
    all.collect()
}

fn refused(text: &str) -> String {
    Scenario::from_toml(text, "test", &[])
        .expect_err("refused")
        .to_string()
}

#[test]
fn a_call_over_a_quiet_link_is_as_good_as_the_codec_and_its_delay() {
    for (transport, wire) in [
        ("udp", "typed"),
        ("udp", "exact"),
        ("sctp", "typed"),
        ("sctp", "exact"),
    ] {
        let text = call("", &format!("transport = \"{transport}\""), "");
        let m = metrics(&text, &[("wire", wire)], 1);
        let [own] = voice(&m)[..] else { panic!("one call") };
        // the last frames are still to be played when it ends
        assert!((990..=1000).contains(&own.whole.frames), "{own:?}");
        assert_eq!(
            (own.whole.lost_frames, own.whole.late_frames),
            (0, 0),
            "{transport}"
        );
        // 20 ms of frame, 15 ms of link, 60 ms of buffer, and what the link needs to send it
        let delay = own.whole.delay_s.unwrap();
        assert!((0.095..0.0956).contains(&delay), "{transport}: {delay}");
        assert!((4.3..4.4).contains(&own.whole.mos.unwrap()), "{own:?}");
        assert_eq!(m.corrupt_messages, 0);
    }
}

#[test]
fn random_losses_are_what_the_rating_says_of_them() {
    let link = "loss = { model = \"bernoulli\", probability = 0.05 }";
    let rated = |concealment: &str| {
        let m = metrics(
            &call(link, "transport = \"udp\"", concealment),
            &[("duration", "300 s")],
            3,
        );
        let whole = voice(&m)[0].whole;
        assert_eq!(whole.lost_frames, m.flows[0].counts.lost_packets);
        let loss = whole.loss.unwrap();
        assert!((0.04..0.06).contains(&loss), "{loss}");
        assert!(whole.burst_ratio.unwrap() < 1.1, "losses are independent");
        whole.r.unwrap()
    };
    // Ie,eff of 5 %: 15.8 and 51.1; Id of some 2.3
    let (concealed, bare) = (rated("concealment = true"), rated("concealment = false"));
    assert!((72.0..78.5).contains(&concealed), "{concealed}");
    assert!((33.0..44.0).contains(&bare), "{bare}");
}

#[test]
fn over_sctp_a_frame_that_is_given_up_holds_up_nobody_and_without_that_all_arrive() {
    let link = "loss = { model = \"bernoulli\", probability = 0.05 }";
    let whole = |lifetime: &str| voice(&metrics(&call(link, "", lifetime), &[], 3))[0].whole;
    let (all, fresh) = (whole(""), whole("lifetime = \"50 ms\""));
    // one is still under way at the end
    assert!(all.lost_frames <= 1 && all.late_frames > 30, "{all:?}");
    assert!(fresh.lost_frames > 10 && fresh.late_frames < 10, "{fresh:?}");
    // it is heard as late as over UDP, for frames are not kept behind one that is missing
    assert!(fresh.delay_s.unwrap() < 0.11, "{fresh:?}");
}

#[test]
fn who_pauses_sends_as_much_less() {
    let text = call("", "transport = \"udp\"", "codec = \"amr\"");
    let m = metrics(&text, &[("duration", "1000 s")], 1);
    let own = voice(&m)[0];
    let share = own.whole.frames as f64 / (999.0 * 50.0);
    // ITU-T P.59 table 1: 38.53 %
    assert!((0.35..0.42).contains(&share), "{share}");
    assert_eq!(own.whole.lost_frames, 0);
    // the best that GSM-EFR can be: 93.2 less 5, and some 2.3 for the delay
    assert!((85.4..86.4).contains(&own.whole.r.unwrap()), "{own:?}");
}

#[test]
fn what_who_calls_does_not_hear_of_the_answer_is_rated_as_lost() {
    // `COOKIE ACK` and the first frame are sent in one packet, 45 ms after the first
    for (transport, from) in [("udp", "0 s"), ("sctp", "1.04 s")] {
        let silent = format!("silences = [{{ from = \"{from}\", towards = \"a\" }}]");
        let text = call(&silent, &format!("transport = \"{transport}\""), "two_way = true")
            .replace("{ name = \"b\" }", "{ name = \"b\" }, { name = \"c\" }")
            + r#"
[[link]]
between = ["c", "b"]
rate = "8 Mbit/s"
delay = "15 ms"

[[application]]
kind = "voice"
from = "c"
to = "b"
start = "1 s"
voice = { two_way = true }
"# + &format!("transport = \"{transport}\"\n");
        let m = metrics(&text, &[], 1);
        let [_, answer, there, back] = voice(&m)[..] else {
            panic!("two calls")
        };
        let whole = &answer.whole;
        assert!((980..=1000).contains(&whole.frames), "{transport}: {whole:?}");
        assert_eq!(whole.lost_frames, whole.frames, "{transport}");
        assert_eq!((whole.r, whole.mos), (Some(0.0), Some(1.0)), "{transport}");
        // the other call is as it was
        for own in [there, back] {
            assert_eq!(own.whole.lost_frames, 0, "{transport}: {own:?}");
            assert!(own.whole.frames > 900, "{transport}: {own:?}");
        }
    }
}

#[test]
fn every_scheme_carries_a_call_and_a_hard_handoff_is_heard() {
    let text = scenario_text("people/call.toml");
    let mut heard = Vec::new();
    for set in [
        ("scheme", "ilnp-soft"),
        ("case", "sigma"),
        ("scheme", "mip6-ro"),
        ("scheme", "ilnp-hard"),
    ] {
        let m = metrics(&text, &[set], 1);
        let calls = voice(&m);
        assert_eq!(calls.len(), 2, "{set:?}");
        for own in calls {
            assert!(own.whole.frames > 4600, "{set:?}: {own:?}");
            assert!(own.handovers.len() >= 3, "{set:?}: {own:?}");
            for h in &own.handovers {
                assert!(h.begin_s < h.time && h.time <= h.end_s, "{set:?}: {h:?}");
                assert!(h.quality.frames <= 500, "{set:?}: {h:?}");
            }
        }
        // what the phone hears around its handovers
        let down = voice(&m)[0].handovers.iter().map(|h| h.quality.mos.unwrap());
        heard.push((set.1, down.fold(5.0, f64::min)));
    }
    let of = |scheme: &str| heard.iter().find(|(s, _)| *s == scheme).unwrap().1;
    assert!(of("ilnp-soft") > 4.2, "{heard:?}");
    assert!(of("mip6-ro") < of("ilnp-soft") - 0.2, "{heard:?}");
}

#[test]
fn the_same_seed_says_the_same_and_another_pauses_otherwise() {
    let text = call("", "transport = \"udp\"", "codec = \"evs\"");
    let frames = |seed| {
        let m = metrics(&text, &[], seed);
        (m.event_log_hash.clone(), voice(&m)[0].whole.frames)
    };
    assert_eq!(frames(1), frames(1));
    assert_ne!(frames(1).1, frames(2).1);
}

#[test]
fn what_a_call_cannot_be_is_said_in_a_line() {
    for (application, table, key, expected) in [
        (
            "transport = \"tcp\"",
            "",
            "application[0].transport",
            "\"udp\" or \"sctp\"",
        ),
        (
            "transport = \"udp\"\nrate = \"1 Mbit/s\"",
            "",
            "application[0].rate",
            "kind = \"voice\"",
        ),
        ("transport = \"udp\"", "codec = \"mp3\"", "voice", "g711"),
        (
            "transport = \"udp\"",
            "pause = \"1 ms\"",
            "application[0].voice.pause",
            "20 ms",
        ),
        (
            "transport = \"udp\"",
            "playout_delay = \"1 min\"",
            "application[0].voice.playout_delay",
            "10 s",
        ),
        (
            "transport = \"udp\"",
            "lifetime = \"1 s\"",
            "application[0].voice.lifetime",
            "left out",
        ),
        (
            "",
            "lifetime = \"0 s\"",
            "application[0].voice.lifetime",
            "more than 0 s",
        ),
        (
            "",
            "codec = \"amr\"\nconcealment = false",
            "application[0].voice.concealment",
            "g711",
        ),
        ("", "ie = 100.0", "application[0].voice.ie", "0 to less than 95"),
        (
            "",
            "bpl = 0.0",
            "application[0].voice.bpl",
            "0.1 to less than 1000",
        ),
        (
            "",
            "codec = \"evs\"\nie = 3.0",
            "application[0].voice.bpl",
            "both",
        ),
    ] {
        let line = refused(&call("", application, table));
        assert!(line.contains(key) && line.contains(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
    let line = refused(&call("", "", "").replace("kind = \"voice\"", "kind = \"bulk\""));
    assert!(
        line.contains("application[0].voice") && line.contains("left out"),
        "{line}"
    );
    let list = call("", "voice = []", "").replace("[application.voice]", "");
    let line = refused(&list);
    assert!(line.contains("expected a table: [application.voice]"), "{line}");
}

#[test]
fn applications_of_machines_have_nothing_to_say_of_people() {
    let text = scenario_text("bench/bulk.toml");
    let scenario = Scenario::from_toml(&text, "bulk", &[("duration".to_owned(), "1 s".to_owned())]).unwrap();
    assert!(
        run(&scenario, RunOptions::default())
            .unwrap()
            .metrics
            .applications
            .is_empty()
    );
}

#[test]
fn a_source_that_is_on_and_off_has_its_mean_rate_over_every_transport() {
    for (transport, distribution) in [
        ("udp", "distribution = \"exponential\""),
        ("tcp", "distribution = \"exponential\""),
        ("sctp", "distribution = \"pareto\"\nshape = 1.9"),
    ] {
        let text = call(
            "",
            &format!("transport = \"{transport}\"\nrate = \"400 kbit/s\"\nmessage = \"500 B\""),
            "",
        );
        let table = format!("[application.on_off]\non = \"500 ms\"\noff = \"1500 ms\"\n{distribution}");
        let text = text
            .replace("kind = \"voice\"", "kind = \"on-off\"")
            .replace("[application.voice]", &table);
        let m = metrics(&text, &[("duration", "10000 s")], 1);
        let rate = m.flows[0].transferred_bytes as f64 * 8.0 / 9_999.0;
        assert!((rate / 100_000.0 - 1.0).abs() < 0.08, "{transport}: {rate}");
        assert_eq!(m.corrupt_messages, 0, "{transport}");
        assert!(m.applications.is_empty());
    }
}

#[test]
fn what_a_source_that_is_on_and_off_cannot_be_is_said_in_a_line() {
    let rate = "transport = \"udp\"\nrate = \"1 Mbit/s\"";
    for (application, table, key, expected) in [
        (
            "transport = \"udp\"",
            "",
            "application[0].rate",
            "kind = \"on-off\"",
        ),
        (
            "rate = \"1 Mbit/s\"\nsize = \"1 MB\"",
            "",
            "application[0].size",
            "kind = \"on-off\"",
        ),
        (
            "transport = \"udp\"\nrate = \"1 Mbit/s\"\nmessage = \"10 B\"",
            "",
            "application[0].message",
            "datagram",
        ),
        (rate, "on = \"0 s\"", "application[0].on_off.on", "1 ms to 3600 s"),
        (rate, "shape = 1.5", "application[0].on_off.shape", "left out"),
        (
            rate,
            "distribution = \"pareto\"\nshape = 1.0",
            "application[0].on_off.shape",
            "1.05 to 100",
        ),
        (rate, "distribution = \"normal\"", "on_off", "exponential"),
    ] {
        let text = call("", application, "")
            .replace("kind = \"voice\"", "kind = \"on-off\"")
            .replace("[application.voice]", &format!("[application.on_off]\n{table}"));
        let line = refused(&text);
        assert!(line.contains(key) && line.contains(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
