//! Time per spoofed packet at 100 and at 10,000 associations:
//!
//! ```text
//! cargo run --release -p segue-conformance --example spoofed
//! ```

use segue_conformance::crowd::Crowd;

#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock, and prints"
)]
fn main() {
    const ROUNDS: u32 = 2000;
    let mut crowds = [100, 10_000].map(|count| (count, Crowd::new(count)));
    println!(
        "microseconds a packet, with {:?} associations",
        crowds.each_ref().map(|c| c.0)
    );
    for (kind, (name, _)) in crowds[0].1.spoofed().into_iter().enumerate() {
        let times = crowds.each_mut().map(|(_, crowd)| {
            let packet = crowd.spoofed().swap_remove(kind).1;
            let begin = std::time::Instant::now();
            for _ in 0..ROUNDS {
                crowd.take(packet.clone());
            }
            begin.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
        });
        println!("{:8.2} {:8.2}  {name}", times[0], times[1]);
    }
}
