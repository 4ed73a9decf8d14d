//! What comes to home agents and to the location manager, and what becomes of it where that takes time.

use crate::common::metrics;
use segue_sim::Metrics;
use segue_sim::load::{LoadedAs, NodeLoad};

const SCALE: &str = include_str!("../../../scenarios/populations/scale.toml");

/// Twenty phones for 20 s, all of which have their first network by then, and half of which have handed over.
fn phones(scheme: &str, overrides: &[(&str, &str)]) -> Metrics {
    let mut all = vec![
        ("scheme", scheme),
        ("phones", "20"),
        ("probes", "2"),
        ("duration", "20 s"),
    ];
    all.extend_from_slice(overrides);
    metrics(SCALE, &all, 1)
}

fn load(metrics: &Metrics, role: LoadedAs) -> &NodeLoad {
    let mut of_role = metrics.loads.iter().filter(|load| load.role == role);
    of_role.next().unwrap_or_else(|| panic!("{role:?}"))
}

fn sent(metrics: &Metrics, kind: &str) -> u64 {
    metrics
        .signalling
        .by_kind
        .get(kind)
        .map_or(0, |count| count.packets)
}

#[test]
fn every_update_that_is_sent_comes_to_whom_it_is_for() {
    let mobile = phones("mip6", &[]);
    let agent = load(&mobile, LoadedAs::HomeAgent);
    assert!(agent.updates >= 20 && agent.updates == sent(&mobile, "BU"));
    // without route optimisation all data and all acknowledgments go through it
    assert!(agent.packets > mobile.packets_sent, "{} packets", agent.packets);
    assert_eq!((agent.dropped, agent.by_second.len()), (0, 20));
    assert_eq!(
        agent.packets,
        agent.by_second.iter().map(|s| u64::from(s.packets)).sum::<u64>()
    );
    // two microseconds for a packet, a hundred for an update
    let busy: f64 = agent.by_second.iter().map(|s| s.busy).sum();
    let expected = 2e-6 * (agent.packets - agent.updates) as f64 + 1e-4 * agent.updates as f64;
    assert!((busy - expected).abs() < 1e-9, "{busy} and {expected}");

    let optimised = phones("mip6-ro", &[]);
    let agent = load(&optimised, LoadedAs::HomeAgent);
    // tests of home addresses go through its tunnel, and data once the correspondent has a binding does not
    assert!(sent(&optimised, "HOTI") > 0 && agent.signalling >= agent.updates + sent(&optimised, "HOTI"));
    assert!(
        agent.packets < mobile.packets_sent / 4,
        "{} packets",
        agent.packets
    );

    for scheme in ["sigma", "ilnp-soft"] {
        let named = phones(scheme, &[]);
        let manager = load(&named, LoadedAs::LocationManager);
        assert!(manager.updates > 0, "{scheme}");
        assert_eq!(manager.updates, sent(&named, "DNS-UPDATE"), "{scheme}");
        assert!(!named.loads.iter().any(|load| load.role == LoadedAs::HomeAgent));
    }
}

#[test]
fn a_home_agent_with_more_packets_than_it_has_time_for_drops_them_and_connections_get_what_it_carries() {
    // 20 phones take some 475 packets a second, and acknowledge every other one; it has time for 200
    let takes = r#"{ packet = "5 ms", update = "5 ms", queue = "50 packets" }"#;
    let slow = phones("mip6", &[("router.home.processing", takes)]);
    let agent = load(&slow, LoadedAs::HomeAgent);
    let full = agent
        .by_second
        .iter()
        .filter(|second| second.busy > 0.999)
        .count();
    assert!(full >= 15, "{full} seconds");
    assert!(agent.dropped > 100, "{}", agent.dropped);
    // fifty wait beside the one that is worked on
    assert!(
        (agent.longest_stay_s - 0.255).abs() < 0.005,
        "{}",
        agent.longest_stay_s
    );
    let lost: u64 = slow
        .flows
        .iter()
        .filter_map(|f| f.counts.lost_by_cause.get("overload"))
        .sum();
    assert!(lost > 50 && lost <= agent.dropped, "{lost}");
    let quick = phones("mip6", &[]);
    assert!(slow.delivered_bytes < quick.delivered_bytes / 4 * 3);
    assert!(slow.delivered_bytes > 0);
}

#[test]
fn a_host_that_takes_time_delays_what_comes_to_it() {
    let few = [("phones", "10"), ("probes", "1"), ("duration", "40 s")];
    let takes = r#"{ packet = "5 ms", update = "5 ms" }"#;
    let late = phones(
        "mip6-ro",
        &[&few[..], &[("host.source.processing", takes)]].concat(),
    );
    assert!(load(&late, LoadedAs::Node).longest_stay_s >= 0.005);
    // a test of the care-of address and a Binding Update wait for it; the first registration looks for duplicates
    let at_once = phones("mip6-ro", &few);
    let delays = |m: &Metrics| -> Vec<f64> {
        let moved = m.handovers.iter().filter(|h| h.time > 5.0 && h.host != "phone0");
        moved.filter_map(|h| h.handoff_delay_s).collect()
    };
    let (late, at_once) = (delays(&late), delays(&at_once));
    assert!(late.len() >= 5 && late.len() == at_once.len());
    for (late, at_once) in late.iter().zip(&at_once) {
        assert!((0.009..0.2).contains(&(late - at_once)), "{late} and {at_once}");
    }
}
