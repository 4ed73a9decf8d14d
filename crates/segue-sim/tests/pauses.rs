//! Pauses of applications: while nothing is to come, nothing is interrupted.

use crate::common::{metrics, scenario_text};
use segue_sim::Metrics;
use segue_sim::quality::Experience;

/// The longest time that somebody who reads waited for a page, seconds.
fn longest_wait(m: &Metrics) -> f64 {
    let waits = m.applications.iter().filter_map(|a| match &a.experience {
        Experience::Web(web) => Some(web.load_time_s.as_ref()?.max),
        _ => None,
    });
    waits.reduce(f64::max).expect("pages were read")
}

/// The longest time without new data of each flow, seconds, and the longest interruption of all.
fn silences(m: &Metrics) -> (Vec<f64>, f64) {
    let gaps = m.flows.iter().map(|f| f.end.longest_gap_s).collect();
    let interruptions = m.flows.iter().filter_map(|f| f.interruption_s);
    let handovers = m.handovers.iter().filter_map(|h| h.interruption_s);
    (gaps, interruptions.chain(handovers).fold(0.0, f64::max))
}

/// Reading takes 10 s on average, and a page hardly ever one.
#[test]
fn no_silence_of_who_reads_is_longer_than_the_wait_for_a_page() {
    let text = scenario_text("people/browse.toml");
    for (key, value) in [
        ("scheme", "ilnp-soft"),
        ("scheme", "ilnp-hard"),
        ("scheme", "mip6"),
        ("scheme", "mip6-ro"),
        ("case", "sigma"),
    ] {
        let m = metrics(&text, &[(key, value)], 1);
        let (gaps, interruption) = silences(&m);
        let wait = longest_wait(&m);
        assert!(gaps.iter().all(|gap| *gap <= wait), "{value}: {gaps:?}, {wait}");
        assert!(interruption <= wait, "{value}: {interruption}, {wait}");
        let moved = m.handovers.iter().filter(|h| h.flow.is_some()).count();
        assert!(moved > 5, "{value}: {moved}");
    }
}

/// Who asks for a page where there is no network waits from then on, although SCTP has no address to send from. That is what
/// the longest of all waits are.
#[test]
fn who_asks_without_a_network_waits_from_then_on() {
    let text = scenario_text("coverage-gap.toml");
    let (text, _) = text.split_once("[[application]]").unwrap();
    let page = "[[application]]\nkind = \"web\"\nfrom = \"mh\"\nto = \"cn\"\nstart = \"2 s\"\n\
                [application.web]\nreading_time = \"3 s\"\n";
    let m = metrics(&format!("{text}{page}"), &[("duration", "600 s")], 1);
    let asks = m.flows.iter().find(|f| f.from == "mh").unwrap();
    let wait = longest_wait(&m);
    assert!(wait > 2.0, "{wait}");
    let gap = asks.end.longest_gap_s;
    assert!(gap <= wait && gap > wait - 1.0, "{gap}, {wait}");
}

/// A source of constant rate never pauses: without an address, a shim lets nothing of it go, and it is silent for as long.
#[test]
fn what_a_shim_does_not_let_go_is_waited_for() {
    for scheme in ["ilnp-hard", "ilnp-soft", "mip6", "mip6-ro"] {
        let text = scenario_text(&format!("lab/{scheme}.toml"));
        let gap = [
            ("cell.one.present", "0 s..8 s"),
            ("cell.two.present", "11 s.."),
            ("duration", "15 s"),
            ("application.0.start", "14.8 s"),
            ("application.1.start", "14.8 s"),
        ];
        let m = metrics(&text, &gap, 1);
        let paced = m
            .flows
            .iter()
            .find(|f| f.from == "mn" && f.begin_s < 4.0)
            .unwrap();
        let silent = paced.end.longest_gap_s;
        assert!((3.0..4.5).contains(&silent), "{scheme}: {silent}");
        assert!(paced.interruption_s.unwrap() >= 3.0, "{scheme}");
    }
}

/// Bursts of a second and pauses of ten, over every transport: a burst is not interrupted by the pause before it.
#[test]
fn a_source_that_is_off_is_not_silent() {
    for transport in ["udp", "tcp", "sctp"] {
        let text = format!(
            "name = \"bursts\"\nduration = \"300 s\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
             [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\ndelay = \"15 ms\"\n\
             [[application]]\nkind = \"on-off\"\ntransport = \"{transport}\"\nfrom = \"a\"\nto = \"b\"\n\
             rate = \"400 kbit/s\"\nmessage = \"500 B\"\n\
             [application.on_off]\non = \"1 s\"\noff = \"10 s\"\ndistribution = \"exponential\"\n"
        );
        let m = metrics(&text, &[], 1);
        let [flow] = &m.flows[..] else { panic!("one flow") };
        // 10 ms between two messages, 15 ms on the way; where Nagle's algorithm holds one back, an acknowledgement that may be late
        assert!(
            flow.end.longest_gap_s < 0.25,
            "{transport}: {}",
            flow.end.longest_gap_s
        );
        assert!(flow.transferred_bytes > 0);
    }
}
