//! How a call sounds: the E-model of ITU-T G.107 (06/2015), from delay and loss.
//!
//! ```text
//! R = 93.2 - Id - Ie,eff
//! ```
//!
//! 93.2 is Ro - Is and the listener echo without delay, all with the default values of G.107 table 2, which hold for what does
//! not come from the network: TELR 65 dB, WEPL 110 dB, RLR 2 dB, No -61.18 dBm0p.

use libm::{exp, log2, log10, pow, sqrt};

/// Codec and network, as the E-model has them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Impairments {
    /// Mouth to ear, one way (Ta), milliseconds.
    pub delay_ms: f64,
    /// Share of speech lost (Ppl), 0 to 1.
    pub loss: f64,
    /// Mean length of bursts of losses, by what it would be if losses were independent (`BurstR`): 1 or more.
    pub burst_ratio: f64,
    /// The codec's.
    pub codec: Equipment,
}

/// What a codec does to speech (G.113 appendix I).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Equipment {
    /// Equipment impairment factor without losses (Ie).
    pub ie: f64,
    /// Packet-loss robustness factor (Bpl).
    pub bpl: f64,
}

impl Equipment {
    /// G.711 with packet-loss concealment (its appendix I).
    pub const G711_CONCEALED: Self = Self { ie: 0.0, bpl: 25.1 };
    /// G.711 without: losses are silence.
    pub const G711_BARE: Self = Self { ie: 0.0, bpl: 4.3 };
    /// GSM-EFR, which AMR at 12.2 kbit/s is.
    pub const GSM_EFR: Self = Self { ie: 5.0, bpl: 10.0 };
}

impl Impairments {
    /// The rating R, at most 93.2; no less than 0, which is the end of the scale.
    #[must_use]
    pub fn r(&self) -> f64 {
        (BASE - self.id() - self.ie_eff()).max(0.0)
    }

    /// What delay takes: equation 7-18, with Tr = 2 Ta and T = Ta.
    #[must_use]
    pub fn id(&self) -> f64 {
        talker_echo(self.delay_ms) + listener_echo(self.delay_ms) - listener_echo(0.0)
            + too_long(self.delay_ms)
    }

    /// Whether losses are within what the model is for: the permitted ranges of Ppl and `BurstR` in G.107 (03/2005) table 2,
    /// from memory; later editions have longer bursts where little is lost.
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        self.loss <= MOST_LOSS && self.burst_ratio <= MOST_BURST_RATIO
    }

    /// What codec and losses take: equation 7-29.
    #[must_use]
    pub fn ie_eff(&self) -> f64 {
        let Equipment { ie, bpl } = self.codec;
        let percent = self.loss * 100.0;
        ie + (95.0 - ie) * percent / (percent / self.burst_ratio.max(1.0) + bpl)
    }
}

/// The mean opinion score that a rating is expected to get: G.107 annex B. No less than 1, the worst there is.
#[must_use]
pub fn mos(r: f64) -> f64 {
    if r >= 100.0 {
        return 4.5;
    }
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

/// Idte, equations 7-19 to 7-22: with STMR at its default of 15 dB no correction is due.
fn talker_echo(t: f64) -> f64 {
    if t < 1.0 {
        return 0.0;
    }
    let terv = TELR - 40.0 * log10((1.0 + t / 10.0) / (1.0 + t / 150.0)) + 6.0 * exp(-0.3 * t * t);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let roe = -1.5 * (NO - RLR);
    let half = (roe - re) / 2.0;
    (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-t))
}

/// Idle, equations 7-25 and 7-26.
fn listener_echo(t: f64) -> f64 {
    let rle = 10.5 * (WEPL + 7.0) * pow(2.0 * t + 1.0, -0.25);
    let half = (RO - rle) / 2.0;
    half + sqrt(half * half + 169.0)
}

/// Idd, equations 7-27 and 7-28: too long also without echo.
fn too_long(ta: f64) -> f64 {
    if ta <= 100.0 {
        return 0.0;
    }
    let x = log2(ta / 100.0);
    let sixth = |y: f64| pow(1.0 + pow(y, 6.0), 1.0 / 6.0);
    25.0 * (sixth(x) - 3.0 * sixth(x / 3.0) + 2.0)
}

/// Ends of the permitted ranges of Ppl, as a share, and of `BurstR`.
const MOST_LOSS: f64 = 0.2;
const MOST_BURST_RATIO: f64 = 2.0;
/// R with all default values and without delay.
const BASE: f64 = 93.2;
/// Default values of table 2, and what follows from them.
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
const RLR: f64 = 2.0;
const NO: f64 = -61.18;
const RO: f64 = 94.77;

#[cfg(test)]
mod tests {
    use super::*;

    fn call(delay_ms: f64, loss: f64, codec: Equipment) -> Impairments {
        Impairments {
            delay_ms,
            loss,
            burst_ratio: 1.0,
            codec,
        }
    }

    /// G.107 table B.1, and the default rating of section 7.7.
    #[test]
    fn ratings_get_the_scores_of_g107() {
        let best = call(0.0, 0.0, Equipment::G711_CONCEALED).r();
        assert!((best - 93.2).abs() < 1e-9, "{best}");
        for (r, score) in [
            (best, 4.41),
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
        ] {
            assert!((mos(r) - score).abs() < 0.008, "{r}: {}, {score}", mos(r));
        }
        assert_eq!((mos(0.0), mos(3.0), mos(100.0)), (1.0, 1.0, 4.5));
    }

    /// Cole and Rosenbluth (2001), section 3.3, fitted this line to G.107 with its default values.
    #[test]
    fn delay_takes_what_the_published_line_says() {
        for delay in [20.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0] {
            let line = 0.024 * delay
                + if delay > 177.3 {
                    0.11 * (delay - 177.3)
                } else {
                    0.0
                };
            let id = call(delay, 0.0, Equipment::G711_CONCEALED).id();
            assert!((id - line).abs() < 2.0, "{delay} ms: {id}, {line}");
        }
    }

    /// De Vleeschauwer et al. (2000), table 3: without echo and losses, the delays at which a codec of so much Ie is rated 70,
    /// on a scale that began at 94.3.
    #[test]
    fn without_echo_delay_takes_what_published_bounds_say() {
        for (delay, ie) in [(400.0, 0.0), (342.0, 5.0), (294.0, 10.0), (251.0, 15.0)] {
            let both = too_long(delay) + ie;
            assert!((both - 24.3).abs() < 0.4, "{delay} ms: {both}");
        }
    }

    /// G.113 (02/2001) table I.3: Ie of G.711 under independent losses, of which Bpl is the fit.
    #[test]
    fn losses_take_what_the_table_of_g113_says() {
        let table = [
            (0.01, 25.0, 5.0),
            (0.02, 35.0, 7.0),
            (0.03, 45.0, 10.0),
            (0.05, 55.0, 15.0),
        ];
        for (loss, bare, concealed) in table {
            let ie = |codec| call(0.0, loss, codec).ie_eff();
            let (b, c) = (ie(Equipment::G711_BARE), ie(Equipment::G711_CONCEALED));
            assert!((c - concealed).abs() < 1.5, "{loss}: {c}, {concealed}");
            assert!((b - bare).abs() < 7.5, "{loss}: {b}, {bare}");
        }
    }

    #[test]
    fn the_model_is_for_bursts_of_twice_the_length_of_random_ones_and_a_fifth_lost_at_most() {
        let with = |loss: f64, burst_ratio: f64| Impairments {
            burst_ratio,
            ..call(100.0, loss, Equipment::G711_CONCEALED)
        };
        assert!(with(0.0, 1.0).is_in_range() && with(0.2, 2.0).is_in_range());
        assert!(!with(0.01, 2.01).is_in_range() && !with(0.21, 1.0).is_in_range());
    }

    #[test]
    fn losses_in_bursts_take_more_and_all_that_can_be_lost_is_95() {
        let mut lossy = call(0.0, 0.05, Equipment::G711_CONCEALED);
        let independent = lossy.ie_eff();
        lossy.burst_ratio = 4.0;
        // 95 * 5 / (5 / 4 + 25.1)
        assert!((lossy.ie_eff() - 18.027).abs() < 0.01, "{}", lossy.ie_eff());
        assert!(independent < 16.0);
        lossy.loss = 1.0;
        lossy.burst_ratio = f64::INFINITY;
        assert!(lossy.ie_eff() > 95.0);
        assert_eq!(lossy.r(), 0.0);
    }
}
