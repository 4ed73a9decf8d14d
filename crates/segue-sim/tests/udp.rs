//! Applications over UDP in the simulator.

use crate::common::{metrics, scenario_text};
use segue_sim::{RunOptions, Scenario, run};

/// Messages of 200 bytes every 20 ms from `a` to `b`, which takes them for 10 s; further lines of TOML for the link and
/// the application.
fn one_link(link: &str, application: &str) -> String {
    format!(
        r#"
name = "one link"
duration = "20 s"
host = [{{ name = "a" }}, {{ name = "b" }}]

[[link]]
between = ["a", "b"]
rate = "8 Mbit/s"
delay = "15 ms"
{link}

[[application]]
kind = "constant-rate"
transport = "udp"
from = "a"
to = "b"
rate = "80 kbit/s"
message = "200 B"
{application}
"#
    )
}

/// The scenario of paper 004, with a voice call from the correspondent instead of its transfer.
const CALL: [(&str, &str); 4] = [
    ("application.0.kind", "constant-rate"),
    ("application.0.transport", "udp"),
    ("application.0.rate", "80 kbit/s"),
    ("application.0.message", "200 B"),
];

fn refused(text: &str) -> String {
    Scenario::from_toml(text, "test", &[])
        .expect_err("refused")
        .to_string()
}

#[test]
fn what_is_lost_is_not_sent_again_and_what_arrives_is_whole() {
    let link = "loss = { model = \"bernoulli\", probability = 0.1 }\njitter = \"60 ms\"\nreorder = true\n\
                duplicate = 0.05";
    for wire in ["typed", "exact"] {
        let m = metrics(&one_link(link, "size = \"100 kB\""), &[("wire", wire)], 3);
        let flow = &m.flows[0];
        assert_eq!((flow.counts.packets_sent, flow.counts.retransmissions), (500, 0));
        assert!((20..90).contains(&flow.counts.lost_packets), "{:?}", flow.counts);
        assert_eq!(flow.transferred_bytes, 200 * (500 - flow.counts.lost_packets));
        assert_eq!(m.corrupt_messages, 0, "{wire}");
        // it has sent all it had: nobody waits for what was lost
        assert_eq!(format!("{:?}", flow.end.state), "Idle");
    }
}

#[test]
fn typed_packets_and_real_bytes_give_the_same_run() {
    let hash = |wire: &str| {
        let link = "loss = { model = \"bernoulli\", probability = 0.05 }";
        metrics(&one_link(link, ""), &[("wire", wire)], 7).event_log_hash
    };
    assert_eq!(hash("typed"), hash("exact"));
}

#[test]
fn a_path_that_dies_leaves_a_dead_flow() {
    let text = one_link("", "").replace(
        "between = [\"a\", \"b\"]",
        "between = [\"a\", \"r\"]\nrate = \"8 Mbit/s\"\ndelay = \"1 ms\"\noutages = [[\"8 s\", \"30 s\"]]\n\n[[link]]\nbetween = [\"r\", \"b\"]",
    );
    let m = metrics(
        &text.replace("host =", "router = [{ name = \"r\" }]\nhost ="),
        &[],
        1,
    );
    let end = &m.flows[0].end;
    assert_eq!(format!("{:?}", end.state), "Dead");
    let since = end.dead_since_s.expect("dead since then");
    assert!((7.9..8.1).contains(&since), "{since}");
}

#[test]
fn a_call_survives_with_ilnp_and_mobile_ip_and_soft_handoff_loses_nothing() {
    let text = scenario_text("papers/ilnp.toml");
    for scheme in ["ilnp-soft", "ilnp-hard", "mip6", "mip6-ro"] {
        let mut set = CALL.to_vec();
        set.push(("scheme", scheme));
        let m = metrics(&text, &set, 1);
        let flow = &m.flows[0];
        assert_eq!(flow.counts.retransmissions, 0, "{scheme}");
        assert_eq!(
            format!("{:?}", flow.end.state),
            "Active",
            "{scheme}: {:?}",
            flow.end
        );
        assert_eq!(m.corrupt_messages, 0, "{scheme}");
        let lost = flow.counts.lost_packets;
        if scheme == "ilnp-soft" {
            assert_eq!(lost, 0, "{:?}", flow.counts);
        } else {
            // no more than were sent in the silence, which is 4 s at most
            assert!(lost <= 200, "{scheme}: {lost}");
        }
        assert_eq!(
            flow.transferred_bytes,
            200 * (flow.counts.packets_sent - lost - flow.counts.in_flight_packets)
        );
    }
}

#[test]
fn without_a_shim_a_socket_keeps_its_address_and_the_call_dies() {
    let text = scenario_text("papers/ilnp.toml");
    let mut set = CALL.to_vec();
    set.push(("scheme", "none"));
    let m = metrics(&text, &set, 1);
    let end = &m.flows[0].end;
    assert_eq!(format!("{:?}", end.state), "Dead");
    // the node called first, as it is the one that has no address that stays; cell L2 is left at 35 s
    assert!(m.flows[0].transferred_bytes > 0);
    let since = end.dead_since_s.expect("dead since then");
    assert!((34.9..35.1).contains(&since), "{since}");
}

#[test]
fn the_packets_table_has_the_datagrams_by_their_place() {
    let text = one_link("", "size = \"600 B\"");
    for wire in ["typed", "exact"] {
        let set = [("wire".to_owned(), wire.to_owned())];
        let scenario = Scenario::from_toml(&text, "test", &set).expect("a scenario");
        let options = RunOptions {
            trace: true,
            ..RunOptions::default()
        };
        let trace = run(&scenario, options).expect("runs").trace.expect("tables");
        let p = &trace.packets;
        let received = (0..p.kind.len()).filter(|i| p.action[*i] == "received" && p.kind[*i] == "DATA");
        let rows: Vec<_> = received.map(|i| (p.kind[i], p.tsn[i], p.connection[i])).collect();
        let row = |place| ("DATA", Some(place), Some(0));
        assert_eq!(rows, [row(0), row(200), row(400)], "{wire}");
    }
}

#[test]
fn what_udp_cannot_do_is_refused() {
    let text = one_link("", "");
    let with = |from: &str, to: &str| refused(&text.replace(from, to));
    let bulk = with("\"constant-rate\"", "\"bulk\"").replace("rate = \"80 kbit/s\"\n", "");
    assert!(bulk.contains("application[0]."), "{bulk}");
    let long = with("message = \"200 B\"", "message = \"1233 B\"");
    assert!(
        long.contains("application[0].message: expected 15 B to 1232 B"),
        "{long}"
    );
    let rest = refused(&one_link("", "size = \"100001 B\""));
    assert!(
        rest.contains("application[0].size: expected whole messages of 200 B"),
        "{rest}"
    );
}
