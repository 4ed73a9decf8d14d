//! Every byte once and in order, whatever the network does.

use crate::common::{metrics, one_link};

#[test]
fn two_hundred_seeds_of_loss_duplication_reordering_and_corruption_deliver_every_byte() {
    let size = 200_000;
    for seed in 1..=200u64 {
        let loss = 0.002 * (seed % 25) as f64;
        let link = format!(
            "loss = {{ model = \"bernoulli\", probability = {loss} }}\njitter = \"8 ms\"\nreorder = true\n\
             duplicate = 0.03\ncorrupt = 0.02\nqueue = \"{} packets\"",
            5 + seed % 40
        );
        let wire = if seed % 4 == 0 { "exact" } else { "typed" };
        let text = one_link("8 Mbit/s", "15 ms", &link, "", &format!("size = \"{size} B\""));
        let m = metrics(&text, &[("duration", "400 s"), ("wire", wire)], seed);
        assert_eq!(m.delivered_bytes, size, "seed {seed}");
        assert_eq!(m.corrupt_messages, 0, "seed {seed}");
    }
}
