//! Hosts that change their addresses: across a gap in coverage, and back and forth across a border.

use crate::common::{all_scenarios, metrics};

fn scenario(name: &str) -> String {
    let found = all_scenarios().into_iter().find(|(path, _)| path.ends_with(name));
    found.expect("the scenario is there").1
}

/// Seconds without data in a crossing of the gap: 4 s without coverage, less than 0.2 s of missed beacons before the host
/// notices, then a beacon, attaching, router discovery, a second of duplicate address detection, and two round trips.
const GAP_S: std::ops::Range<f64> = 4.0..6.0;

#[test]
fn an_association_outlives_the_time_without_any_address_and_data_resumes_at_once() {
    for bundle in ["all", "none"] {
        let m = metrics(&scenario("coverage-gap.toml"), &[("handover.bundle", bundle)], 1);
        // 20 s from one end to the other, over 120 s
        assert!(
            m.handovers.len() >= 5,
            "{bundle}: {} handovers",
            m.handovers.len()
        );
        let mut gaps: Vec<f64> = m.handovers.iter().filter_map(|h| h.interruption_s).collect();
        gaps.sort_by(f64::total_cmp);
        // a solicitation that is lost on the radio channel is repeated after RTR_SOLICITATION_INTERVAL, 4 s
        let longest = gaps[gaps.len() - 1];
        assert!(
            GAP_S.contains(&gaps[gaps.len() / 2]),
            "{bundle}: {gaps:?} s without data"
        );
        assert!(longest < GAP_S.end + 4.0, "{bundle}: {gaps:?} s without data");
    }
}

#[test]
fn deactivated_addresses_carry_the_data_of_a_zigzag() {
    let text = scenario("zigzag.toml");
    for overrides in [
        &[][..],
        &[("handover.bundle", "all")],
        &[("address.retain", "false")],
        &[("sctp.address_deactivation", "false")],
        &[("address.valid_lifetime", "18 s")],
        &[("address.method", "fixed")],
        &[("address.method", "dhcpv6"), ("address.retrans_timer", "200 ms")],
    ] {
        let m = metrics(&text, overrides, 1);
        // 11 s from turn to turn, over 120 s
        assert!(
            m.handovers.len() >= 9,
            "{overrides:?}: {} handovers",
            m.handovers.len()
        );
        assert!(
            m.longest_gap_s < 1.0,
            "{overrides:?}: {} s without data",
            m.longest_gap_s
        );
    }
}

/// At 12 m/s the overlap lasts 0.83 s, less than duplicate address detection alone. A host that turns round for want of an
/// address makes no handover in that crossing: medians are over the others.
#[test]
fn too_fast_for_duplicate_address_detection_a_deactivated_address_still_comes_in_time() {
    let text = scenario("zigzag.toml");
    let interruption_s = |delete| {
        let overrides = [("handover.delete", delete), ("mobile.speed", "12 m/s")];
        let m = metrics(&text, &overrides, 1);
        assert!(m.handovers.len() >= 55, "{delete}: {}", m.handovers.len());
        m.interruption_s.expect("there are handovers").median
    };
    let deleted_s = interruption_s("on-link-down");
    let deactivated_s = interruption_s("deactivate");
    // a packet every 8 ms
    assert!(deactivated_s < 0.016, "{deactivated_s} s without data");
    // 0.15 s until the link is up and 1.03 s more for the address, less the overlap
    assert!((0.3..0.5).contains(&deleted_s), "{deleted_s} s without data");
}
