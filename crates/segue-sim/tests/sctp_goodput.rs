//! SCTP against closed forms: header overhead on a lossless link, the PFTK formula under random loss.

mod common;

use common::{metrics, one_link};

/// IPv6 header, SCTP common header, DATA chunk header: bytes of a packet that are not user data.
const OVERHEAD: f64 = 40.0 + 12.0 + 16.0;

#[test]
fn a_lossless_link_is_filled_up_to_the_headers() {
    for (rate, delay, rate_bps) in [("2 Mbit/s", "30 ms", 2e6), ("50 Mbit/s", "5 ms", 50e6)] {
        let sctp = "receive_buffer = \"1 MiB\"\nsend_buffer = \"2 MiB\"";
        let text = one_link(rate, delay, "queue = \"2000 packets\"", sctp, "");
        let m = metrics(&text, &[("duration", "60 s")], 1);
        let payload = f64::from(((1500 - OVERHEAD as u32) / 4) * 4);
        let expected = rate_bps * payload / (payload + OVERHEAD);
        let ratio = m.throughput_bps / expected;
        assert!(
            (0.99..=1.0).contains(&ratio),
            "{rate}: {} of {expected} bit/s",
            m.throughput_bps
        );
    }
}

/// Throughput in packets/s by Padhye, Firoiu, Towsley and Kurose (1998), equation 30: loss rate `p`, round-trip time
/// and first timeout in seconds, `b` packets per acknowledgement.
fn pftk(p: f64, rtt: f64, t0: f64, b: f64) -> f64 {
    let fast = rtt * (2.0 * b * p / 3.0).sqrt();
    let timeout = t0 * (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (fast + timeout)
}

#[test]
fn goodput_under_random_loss_is_what_pftk_says() {
    let sctp = "receive_buffer = \"1 MiB\"\nsend_buffer = \"2 MiB\"\nrto_min = \"1 s\"";
    for p in [0.001, 0.003, 0.01, 0.02, 0.05] {
        let link = format!("queue = \"1000 packets\"\nloss = {{ model = \"bernoulli\", probability = {p} }}");
        let text = one_link("10 Mbit/s", "20 ms", &link, sctp, "");
        let mut goodputs: Vec<f64> = (1..=5)
            .map(|seed| metrics(&text, &[("duration", "300 s")], seed).throughput_bps)
            .collect();
        goodputs.sort_by(f64::total_cmp);
        let payload = f64::from(((1500 - OVERHEAD as u32) / 4) * 4);
        let link_limit = 10e6 * payload / 1500.0;
        let expected = (pftk(p, 0.0412, 1.0, 2.0) * payload * 8.0).min(link_limit);
        let ratio = goodputs[2] / expected;
        assert!(
            (0.8..=1.2).contains(&ratio),
            "p {p}: {:.0} against {expected:.0} bit/s: {ratio:.2}",
            goodputs[2]
        );
    }
}
