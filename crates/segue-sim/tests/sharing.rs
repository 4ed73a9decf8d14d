//! Cells whose bearers share what the cell carries.

use crate::common::{metrics, scenario_text};
use segue_sim::{Metrics, Scenario};

/// What the cell carries down and up, bit/s, and the length of a packet of a message of 1000 bytes over UDP.
const RATES: [f64; 2] = [20e6, 10e6];
const PACKET: f64 = 1048.0;
const SLOT_S: f64 = 1e-3;
/// Greatest delay that the preset draws for each packet.
const JITTER_S: f64 = 8e-3;

/// Phones that stay at these distances from the antenna of a cell of 100 m, and are sent 30 Mbit/s each, or send it.
fn cell(distances: &[f64], sharing: &str, up: bool) -> String {
    let mut text = format!(
        r#"
name = "cell"
duration = "12 s"
[l2]
latency = "10 ms"
[address]
resolution = "100 ms"
[[host]]
name = "server"
[[router]]
name = "enb"
[[cell]]
name = "cell"
router = "enb"
position = ["0 m", "0 m"]
radius = "100 m"
technology = "lte"
bearer.down.rate = "20 Mbit/s"
bearer.up.rate = "10 Mbit/s"
{sharing}
[[link]]
between = ["server", "enb"]
rate = "10 Gbit/s"
delay = "1 ms"
queue = "1000 packets"
"#
    );
    for (number, distance) in distances.iter().enumerate() {
        let phone = format!("phone{number}");
        let [from, to] = if up {
            [&phone[..], "server"]
        } else {
            ["server", &phone[..]]
        };
        text += &format!(
            r#"
[[host]]
name = "{phone}"
radios = 1
[[mobile]]
host = "{phone}"
pattern = "still"
from = ["{distance} m", "0 m"]
speed = "0 m/s"
[[application]]
kind = "constant-rate"
transport = "udp"
from = "{from}"
to = "{to}"
rate = "30 Mbit/s"
message = "1000 B"
start = "1 s"
"#
        );
    }
    text
}

/// What each phone got, or had taken from it, in each second from the third on.
fn by_second(m: &Metrics) -> Vec<Vec<f64>> {
    let own = m.flows.iter().filter(|f| f.transferred_bytes > 0);
    own.map(|f| {
        f.received_bytes_by_second[3..11]
            .iter()
            .map(|b| *b as f64)
            .collect()
    })
    .collect()
}

/// A share of the time of a cell at a rate, in messages of 1000 bytes in a second: within a turn at either end of it, which may
/// arrive in the one second or the other, and the packet that is being sent.
fn is_about(bytes: f64, rate_bps: f64, share: f64) -> bool {
    let of_packets = rate_bps / 8.0 * 1000.0 / PACKET;
    let within = of_packets * (2.0 * SLOT_S + JITTER_S * share) + 1000.0;
    (bytes - of_packets * share).abs() <= within
}

#[test]
fn n_saturated_hosts_get_an_nth_of_the_cell_each_both_ways() {
    for scheduler in ["round-robin", "proportional-fair"] {
        for (way, up) in [(0, false), (1, true)] {
            for n in [1, 4, 10] {
                let text = cell(&vec![50.0; n], &format!("sharing = \"{scheduler}\""), up);
                let all = by_second(&metrics(&text, &[], 1));
                assert_eq!(all.len(), n);
                for bytes in all.into_iter().flatten() {
                    let case = format!("{scheduler}, {n}, {up}: {bytes}");
                    assert!(is_about(bytes, RATES[way], 1.0 / n as f64), "{case}");
                }
            }
        }
    }
    // and what they had to themselves was as much for each
    let dedicated = by_second(&metrics(&cell(&[50.0, 50.0], "", false), &[], 1));
    assert!(
        dedicated
            .into_iter()
            .flatten()
            .all(|bytes| is_about(bytes, RATES[0], 1.0))
    );
}

#[test]
fn hosts_whose_places_allow_different_rates_have_the_same_time_each() {
    let distances: [f64; 3] = [15.0, 40.0, 90.0];
    for scheduler in ["round-robin", "proportional-fair"] {
        for (way, up) in [(0, false), (1, true)] {
            let sharing = format!("sharing = {{ scheduler = \"{scheduler}\", edge_snr = \"3 dB\" }}");
            let all = by_second(&metrics(&cell(&distances, &sharing, up), &[], 1));
            // 3 dB at the border, and 30 dB more with each tenth of the distance, of 4.4 / 0.6 or 2.0 / 0.4 bit/s/Hz at most
            let most = [4.4 / 0.6, 2.0 / 0.4][way];
            for (own, distance) in all.into_iter().zip(distances) {
                let snr = 10_f64.powf(0.3) * (100.0 / distance).powi(3);
                let rate = RATES[way] * ((1.0 + snr).log2() / most).min(1.0);
                for bytes in own {
                    let case = format!("{scheduler}, {distance} m, {up}: {bytes}");
                    assert!(is_about(bytes, rate, 1.0 / 3.0), "{case}");
                }
            }
        }
    }
}

#[test]
fn a_host_alone_in_a_cell_has_the_run_that_it_has_with_a_bearer_to_itself() {
    let hall = scenario_text("populations/hall.toml");
    let line = hall.lines().find(|line| line.starts_with("sharing")).unwrap();
    let alone = [("phones", "1"), ("duration", "8 s")];
    let dedicated = metrics(&hall.replace(line, ""), &alone, 1);
    assert!(dedicated.throughput_bps > 20e6, "{}", dedicated.throughput_bps);
    for scheduler in ["round-robin", "proportional-fair"] {
        let shared = metrics(
            &hall.replace(line, &format!("sharing = \"{scheduler}\"")),
            &alone,
            1,
        );
        assert_eq!(shared.event_log_hash, dedicated.event_log_hash, "{scheduler}");
    }
}

#[test]
fn a_hall_is_shared_in_proportion_to_what_places_allow_and_no_more_than_it_carries() {
    let hall = scenario_text("populations/hall.toml");
    let m = metrics(&hall, &[("phones", "20"), ("duration", "20 s")], 1);
    let [phones] = &m.populations[..] else {
        panic!("{:?}", m.populations)
    };
    assert_eq!((phones.hosts, phones.dead_flows), (20, 0));
    assert!(
        m.throughput_bps < 22e6 && m.throughput_bps > 22e6 / 7.5,
        "{}",
        m.throughput_bps
    );
    // rates are from a seventh of the greatest on: nobody is further from another than that
    let goodput = phones.goodput_bps.as_ref().unwrap();
    assert!(goodput.max / goodput.min < 7.5, "{goodput:?}");
    let fairness = phones.fairness.unwrap();
    assert!((0.5..0.99).contains(&fairness), "{fairness}");
    // where all have the same rate, all have the same
    let line = hall.lines().find(|line| line.starts_with("sharing")).unwrap();
    let equal = hall.replace(line, "sharing = \"proportional-fair\"");
    let equal = metrics(&equal, &[("phones", "20"), ("duration", "20 s")], 1);
    let fairness = equal.populations[0].fairness.unwrap();
    assert!(fairness > 0.97, "{fairness}");
}

#[test]
fn what_waits_for_a_host_that_is_gone_takes_no_time_of_the_others() {
    let text = cell(&[50.0, 50.0], "sharing = \"round-robin\"", false);
    // the second walks out of the cell after 5 s
    let still = "pattern = \"still\"\nfrom = [\"50 m\", \"0 m\"]\nspeed = \"0 m/s\"";
    let (first, second) = text.split_at(text.rfind("[[mobile]]").unwrap());
    let leaves = "pattern = \"waypoints\"\nfrom = [\"50 m\", \"0 m\"]\npoints = [[\"300 m\", \"0 m\"]]\nspeed = \"10 m/s\"";
    let m = metrics(&format!("{first}{}", second.replace(still, leaves)), &[], 1);
    let stayed = &m.flows[0].received_bytes_by_second;
    assert!(is_about(stayed[3] as f64, RATES[0], 0.5), "{stayed:?}");
    for second in 7..11 {
        assert!(is_about(stayed[second] as f64, RATES[0], 1.0), "{stayed:?}");
    }
    let left = &m.flows[1];
    assert!(
        left.counts.lost_by_cause["out-of-reach"] > 1000,
        "{:?}",
        left.counts
    );
    assert!(left.received_bytes_by_second.len() <= 6);
}

#[test]
fn what_a_shared_cell_cannot_be_is_said() {
    let refused = |text: &str, key: &str, value: &str| {
        let overrides = [(key.to_owned(), value.to_owned())];
        let line = Scenario::from_toml(text, "cell.toml", &overrides)
            .unwrap_err()
            .to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let text = cell(&[50.0], "sharing = { scheduler = \"round-robin\" }", false);
    for (key, value, expected) in [
        ("cell.cell.sharing.slot", "0 s", "expected 10 us to 1 s"),
        ("cell.cell.sharing.window", "1 ms", "expected more than a slot"),
        ("cell.cell.sharing.edge_snr", "-11 dB", "expected -10 dB"),
        ("cell.cell.sharing.scheduler", "fair", "proportional-fair"),
        (
            "cell.cell.sharing",
            "3",
            "expected \"round-robin\" or \"proportional-fair\"",
        ),
        ("cell.cell.bearer.down.set_up", "1 ms", "expected \"0 s\""),
    ] {
        let line = refused(&text, key, value);
        assert!(line.contains(expected), "{line}");
    }
    let wlan = text.replace("\"lte\"", "\"wlan-802.11g\"\nchannel = 1");
    let wlan = wlan.replace(
        "bearer.down.rate = \"20 Mbit/s\"\nbearer.up.rate = \"10 Mbit/s\"\n",
        "",
    );
    let line = Scenario::from_toml(&wlan, "cell.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(
        line.contains("cell[0].sharing") && line.contains("bearers"),
        "{line}"
    );
    // a preset has its slot; as it is run, it is written
    let scenario = Scenario::from_toml(&text.replace("\"lte\"", "\"5g\""), "cell.toml", &[]).unwrap();
    let sharing = scenario.file().cell[0].sharing.clone().unwrap();
    assert_eq!(
        (sharing.slot.as_nanos(), sharing.window.as_millis()),
        (500_000, 500)
    );
    assert_eq!(
        Scenario::from_toml(&scenario.to_toml(), "cell.toml", &[]).unwrap(),
        scenario
    );
    let dedicated = Scenario::from_toml(&cell(&[50.0], "", false), "cell.toml", &[]).unwrap();
    assert_eq!(dedicated.file().cell[0].sharing, None);
}
