//! What is said of all hosts that an entry with `count` stands for.

use crate::common::metrics;
use segue_capture::record::HandoverRecord;
use segue_sim::Metrics;
use segue_sim::population::PopulationMetrics;
use std::collections::BTreeSet;

const PHONES: &str = include_str!("../../../scenarios/populations/phones.toml");
const WALKERS: &str = include_str!("../../../scenarios/populations/walkers.toml");

fn population<'a>(metrics: &'a Metrics, name: &str) -> &'a PopulationMetrics {
    let found = metrics.populations.iter().find(|p| p.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:#?}", metrics.populations))
}

fn phones(overrides: &[(&str, &str)]) -> Metrics {
    let mut all = vec![("phones", "12"), ("duration", "70 s")];
    all.extend_from_slice(overrides);
    metrics(PHONES, &all, 1)
}

#[test]
fn a_population_is_what_its_hosts_and_their_flows_add_up_to() {
    let m = phones(&[]);
    let own = population(&m, "phone{i}");
    assert_eq!(m.populations.len(), 1, "all that move are just these");
    assert_eq!(
        (own.hosts, own.mobile_hosts, own.flows, own.dead_flows),
        (12, 12, 24, 0)
    );
    let values: Vec<f64> = m.handovers.iter().filter_map(|h| h.interruption_s).collect();
    let outages: usize = m.flows.iter().map(|f| f.end.outages.len()).sum();
    let interruption = own.interruption_s.as_ref().unwrap();
    assert_eq!(interruption.count as usize, values.len() + outages);
    assert!(values.len() >= 24, "{}", values.len());
    let of_all = m.interruption_s.as_ref().unwrap();
    assert_eq!((interruption.p95, interruption.max), (of_all.p95, of_all.max));
    assert_eq!(interruption.median, of_all.median);
    // the share of values at or below each step of the function is what counting finds
    let all: Vec<f64> = values
        .iter()
        .copied()
        .chain(
            m.flows
                .iter()
                .flat_map(|f| f.end.outages.iter().map(|o| o.duration_s)),
        )
        .collect();
    for (value, share) in &interruption.cdf {
        let below = all.iter().filter(|v| *v <= value).count();
        assert!((share - below as f64 / all.len() as f64).abs() < 1e-12);
    }
    let latencies = m.handovers.iter().filter(|h| h.latency_s.is_some()).count();
    assert_eq!(own.handover_latency_s.as_ref().unwrap().count as usize, latencies);
    let goodput = own.goodput_bps.as_ref().unwrap();
    let phones = m.hosts.iter().filter(|h| h.host.starts_with("phone"));
    let mean = phones.map(|h| h.throughput_bps).sum::<f64>() / 12.0;
    assert!((goodput.mean - mean).abs() < 1.0, "{} and {mean}", goodput.mean);
    // each sends 100 kbit/s, and is sent as much
    assert!((195e3..201e3).contains(&goodput.median), "{}", goodput.median);
    assert!(own.fairness.unwrap() > 0.999);
}

#[test]
fn a_handover_of_a_host_counts_once_whatever_scheme_and_however_many_flows() {
    for scheme in ["sigma", "ilnp-soft", "mip6-ro"] {
        let m = phones(&[("scheme", scheme)]);
        let own = population(&m, "phone{i}");
        // 30 s there, and 30 s back, begun within the first 30: at least one each. Rows of one move have the same beginning
        let completed = |h: &&HandoverRecord| h.from.is_some() && h.end_s.is_some();
        let handed_over: BTreeSet<(String, String)> = m
            .handovers
            .iter()
            .filter(completed)
            .map(|h| (h.host.clone(), format!("{:?}", h.begin_s)))
            .collect();
        assert!(own.handovers >= 12, "{scheme}: {}", own.handovers);
        assert_eq!(own.handovers, handed_over.len() as u64, "{scheme}");
        let by_minute = own.handovers as f64 / 12.0 / (70.0 / 60.0);
        assert!((own.handovers_per_host_and_minute - by_minute).abs() < 1e-9);
        assert_eq!((own.ping_pongs, own.ping_pong_rate), (0, Some(0.0)), "{scheme}");
        // each stays for some half a minute: with a minimum of a minute all that go back are ping-pongs
        let patient = phones(&[("scheme", scheme), ("metrics.minimum_time_of_stay", "60 s")]);
        assert_eq!(patient.event_log_hash, m.event_log_hash);
        let patient = population(&patient, "phone{i}");
        assert_eq!(patient.handovers, own.handovers);
        assert!(patient.ping_pongs > 0, "{scheme}");
        assert!(
            patient.ping_pongs <= own.handovers - 12,
            "{scheme}: the first is none"
        );
    }
}

#[test]
fn hosts_without_a_scheme_hand_over_when_their_radio_does_and_have_no_path_meanwhile() {
    let none = [
        ("scheme", "none"),
        ("application.0.transport", "udp"),
        ("application.1.transport", "udp"),
    ];
    let m = phones(&none);
    let own = population(&m, "phone{i}");
    assert!(own.handovers >= 12, "{}", own.handovers);
    let told = phones(&[]);
    let told = population(&told, "phone{i}");
    // the first address: up to 100 ms until a beacon, 100 ms of layer 2, 500 ms until the address
    let least = |p: &PopulationMetrics| p.without_path_share.as_ref().unwrap().min * 70.0;
    for population in [own, told] {
        assert!((0.6..0.8).contains(&least(population)), "{}", least(population));
    }
    // one radio alone is attached to one cell at a time
    let one: Vec<(&str, &str)> = none.iter().copied().chain([("host.2.radios", "1")]).collect();
    let single = phones(&one);
    let single = population(&single, "phone{i}");
    let share = |p: &PopulationMetrics| p.without_path_share.as_ref().unwrap().mean;
    assert!(
        share(single) > share(told) + 0.005,
        "{} and {}",
        share(single),
        share(told)
    );
}

#[test]
fn populations_are_named_by_their_entries_or_as_the_file_has_them() {
    let short = [("duration", "5 s"), ("thirds", "2")];
    let by_entry = metrics(WALKERS, &short, 1);
    let names: Vec<&str> = by_entry.populations.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["walker{i}"]);
    let thirds = [short[0], short[1], ("host.1.population", "third {i % 3}")];
    let by_thirds = metrics(WALKERS, &thirds, 1);
    let all: Vec<(&str, u64)> = by_thirds
        .populations
        .iter()
        .map(|p| (p.name.as_str(), p.hosts))
        .collect();
    assert_eq!(
        all,
        [
            ("third 0", 2),
            ("third 1", 2),
            ("third 2", 2),
            ("mobile hosts", 6)
        ]
    );
    assert_eq!(by_thirds.event_log_hash, by_entry.event_log_hash);
    let sum: u64 = by_thirds.populations[..3].iter().map(|p| p.flows).sum();
    assert_eq!(sum, by_thirds.populations[3].flows);
    // as it was run, it is written
    let overrides: Vec<_> = thirds
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let scenario = segue_sim::Scenario::from_toml(WALKERS, "walkers.toml", &overrides).unwrap();
    let again = metrics(&scenario.to_toml(), &[], 1);
    assert_eq!(again.populations, by_thirds.populations);
    let refused = segue_sim::Scenario::from_toml(
        WALKERS,
        "walkers.toml",
        &[("host.1.population".to_owned(), "\"\"".to_owned())],
    );
    let line = refused.unwrap_err().to_string();
    assert!(
        line.contains("host.1.population") && line.contains("1 to 100") && !line.contains('\n'),
        "{line}"
    );
}
