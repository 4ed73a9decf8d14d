//! Prefixes and addresses that are replaced, routers that hang, and both ends at once, in the scenarios of the lab: what each
//! scheme makes of it.

use crate::common::metrics;
use segue_capture::record::FlowState;
use segue_proto::app::Transport;
use segue_sim::Metrics;

/// When it happens.
const AT: f64 = 12.0;
/// Until a new address is there, and its peer knows: an advertisement, resolution, a round trip or two.
const SOON: f64 = 0.05;

/// A scenario of the lab with both networks there all the time, the second from 1 s on, and an event at 12 s.
fn lab(name: &str, event: &str, overrides: &[(&str, &str)]) -> Metrics {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/lab");
    let text = std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap();
    let there = [
        ("duration", "20 s"),
        ("cell.one.present", "0 s.."),
        ("cell.two.present", "1 s.."),
        // paced by the clock, and an end to it
        ("application.0.start", "2 s"),
        ("application.0.size", "30 MB"),
    ];
    let overrides: Vec<_> = there.iter().chain(overrides).copied().collect();
    metrics(
        &format!("{text}\n[[event]]\nat = \"12 s\"\n{event}\n"),
        &overrides,
        1,
    )
}

/// The longest time without new data of the flows to `cn` of this transport, seconds, and when it began.
fn longest_gap(m: &Metrics, transport: Transport) -> (f64, f64) {
    let flows = m
        .flows
        .iter()
        .filter(|f| f.to == "cn" && f.transport == transport);
    let gaps = flows.map(|f| (f.end.longest_gap_s, f.end.longest_gap_at_s.unwrap_or_default()));
    gaps.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

fn moved_after(m: &Metrics, at: f64) -> usize {
    m.handovers
        .iter()
        .filter(|h| h.time >= at && h.time < at + 1.0)
        .count()
}

/// A network that is used, and a scheme that uses it.
const MOVERS: [(&str, &str); 5] = [
    ("ilnp-soft", "two"),
    ("ilnp-hard", "two"),
    ("mip6", "two"),
    ("mip6-ro", "two"),
    ("sigma-lan", "one"),
];

fn is_dead(m: &Metrics, transport: Transport) -> Vec<bool> {
    let flows = m
        .flows
        .iter()
        .filter(|f| f.to == "cn" && f.transport == transport);
    flows.map(|f| f.end.state == FlowState::Dead).collect()
}

#[test]
fn a_renumbered_network_is_a_handover_to_who_can_move_and_is_there_in_time_without_grace() {
    for (scheme, network) in MOVERS {
        for grace in ["0 s", "3 s"] {
            let event = format!("kind = \"renumber\"\non = \"{network}\"\nfor = \"{grace}\"");
            let m = lab(scheme, &event, &[]);
            assert!(m.flows.iter().all(|f| f.end.state != FlowState::Dead), "{scheme}");
            assert!(moved_after(&m, AT) > 0, "{scheme}, {grace}");
            let lost: u64 = m.flows.iter().map(|f| f.counts.lost_packets).sum();
            assert_eq!(lost, 0, "{scheme}, {grace}");
            let gaps = m
                .handovers
                .iter()
                .filter(|h| h.time >= AT)
                .filter_map(|h| h.interruption_s);
            // a line each 50 ms is the slowest of the flows
            assert!(gaps.fold(0.0, f64::max) < 0.05 + SOON, "{scheme}, {grace}");
            // the end of the grace is nothing to who has moved
            assert_eq!(moved_after(&m, AT + 3.0), 0, "{scheme}, {grace}");
        }
    }
}

#[test]
fn without_a_scheme_a_connection_dies_when_its_prefix_is_no_longer_routed() {
    let event = |grace: &str| format!("kind = \"renumber\"\non = \"one\"{grace}");
    let flash = lab("none", &event("\nfor = \"0 s\""), &[]);
    assert_eq!(is_dead(&flash, Transport::Tcp), [true, true]);
    let (gap, at) = longest_gap(&flash, Transport::Tcp);
    assert!(gap > 7.0 && (AT..AT + 0.1).contains(&at), "{gap} s from {at} s");
    // no network filters sources, and datagrams ask for no answer
    assert_eq!(is_dead(&flash, Transport::Udp), [false]);
    let graceful = lab("none", &event("\nfor = \"3 s\""), &[]);
    // the first had sent all before
    assert_eq!(is_dead(&graceful, Transport::Tcp), [false, true]);
    assert!((AT + 3.0..AT + 4.0).contains(&longest_gap(&graceful, Transport::Tcp).1));
    let kept = lab("none", &event(""), &[]);
    assert_eq!(is_dead(&kept, Transport::Tcp), [false, false]);
}

#[test]
fn what_begins_after_a_renumbering_begins_from_the_new_address() {
    let late = [("application.1.start", "13 s")];
    let m = lab("none", "kind = \"renumber\"\non = \"one\"\nfor = \"0 s\"", &late);
    // the bulk transfer began before
    assert_eq!(is_dead(&m, Transport::Tcp), [true, false]);
}

#[test]
fn an_autoconfigured_address_takes_a_second_of_detection_longer() {
    let slaac = [("address.method", "slaac"), ("ilnp.detect_silence", "false")];
    let event = "kind = \"renumber\"\non = \"two\"\nfor = \"3 s\"";
    let m = lab("ilnp-soft", event, &slaac);
    let times: Vec<f64> = m
        .handovers
        .iter()
        .map(|h| h.time)
        .filter(|at| *at >= AT)
        .collect();
    // to the other network at once, and back when the address is ready
    assert!(times.iter().any(|at| *at < AT + SOON), "{times:?}");
    assert!(
        times.iter().any(|at| (AT + 1.0..AT + 1.0 + SOON).contains(at)),
        "{times:?}"
    );
}

#[test]
fn a_router_that_hangs_is_left_by_who_looks_for_silence() {
    for (scheme, network) in MOVERS {
        let router = if network == "two" { "r2" } else { "r1" };
        let m = lab(scheme, &format!("kind = \"router-down\"\non = \"{router}\""), &[]);
        assert!(m.flows.iter().all(|f| f.end.state != FlowState::Dead), "{scheme}");
        assert!(moved_after(&m, AT) > 0, "{scheme}");
        let paced = if scheme == "sigma-lan" {
            // two timeouts, of 100 and 200 ms
            longest_gap(&m, Transport::Sctp).0 < 0.5
        } else {
            longest_gap(&m, Transport::Udp).0 < 0.105
        };
        assert!(paced, "{scheme}");
    }
    let m = lab("none", "kind = \"router-down\"\non = \"r1\"", &[]);
    assert!(m.flows.iter().all(|f| f.end.state == FlowState::Dead));
}

/// It goes on with what it had: bindings of a home agent are still there.
#[test]
fn a_home_agent_that_hung_goes_on() {
    let event = "kind = \"router-down\"\non = \"r1\"\nfor = \"1 s\"";
    let m = lab("mip6", event, &[]);
    assert!(m.flows.iter().all(|f| f.end.state != FlowState::Dead));
    let (gap, at) = longest_gap(&m, Transport::Udp);
    assert!(
        gap > 1.0 && gap < 1.02 && (AT - 0.01..AT + 0.01).contains(&at),
        "{gap} s from {at} s"
    );
}

#[test]
fn an_address_that_is_replaced_is_a_handover_on_the_same_link() {
    for (scheme, network) in MOVERS {
        for grace in ["0 s", "2 s"] {
            let event =
                format!("kind = \"address-change\"\non = \"mn\"\nnetwork = \"{network}\"\nfor = \"{grace}\"");
            let m = lab(scheme, &event, &[]);
            assert!(m.flows.iter().all(|f| f.end.state != FlowState::Dead), "{scheme}");
            // an identifier is no lease
            let moves = !scheme.starts_with("ilnp");
            assert_eq!(moved_after(&m, AT) > 0, moves, "{scheme}, {grace}");
            let gaps = m
                .handovers
                .iter()
                .filter(|h| h.time >= AT)
                .filter_map(|h| h.interruption_s);
            assert!(gaps.fold(0.0, f64::max) < 0.05 + SOON, "{scheme}, {grace}");
        }
    }
}

#[test]
fn without_a_scheme_a_connection_dies_with_its_address() {
    let event = |grace: &str| format!("kind = \"address-change\"\non = \"mn\"\nfor = \"{grace}\"");
    let at_once = lab("none", &event("0 s"), &[]);
    assert!(at_once.flows.iter().all(|f| f.end.state == FlowState::Dead));
    let later = lab("none", &event("2 s"), &[]);
    let (_, at) = longest_gap(&later, Transport::Udp);
    assert!((AT + 1.99..AT + 2.0).contains(&at), "{at} s");
}

#[test]
fn two_hosts_that_move_at_once_find_each_other_again() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/lab/both-ends-move.toml"
    );
    let m = metrics(&std::fs::read_to_string(file).unwrap(), &[], 1);
    assert!(m.flows.iter().all(|f| f.end.state != FlowState::Dead));
    let of = |host: &str, from: f64, to: f64| {
        let own = m
            .handovers
            .iter()
            .filter(|h| h.host == host && (from..to).contains(&h.time));
        own.filter_map(|h| h.interruption_s).fold(0.0, f64::max)
    };
    for host in ["a", "b"] {
        // softly: what goes to where the other was arrives
        let soft = of(host, 4.0, 5.0);
        assert!(soft > 0.0 && soft <= 0.05 + SOON, "{host}: {soft} s");
        // what goes there the second time does not, and is repeated after `ilnp.lu_timeout`, a second
        let hard = of(host, 8.0, 11.0);
        assert!(hard > 1.0 && hard < 4.0, "{host}: {hard} s");
    }
}
