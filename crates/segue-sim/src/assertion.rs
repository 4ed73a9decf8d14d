//! Conditions on what a run came to, as somebody's CI has them: `interruption < 50 ms`, `loss <= 1 %`, `throughput > 5 Mbit/s`.

use crate::output::Metrics;
use segue_capture::record::FlowState;
use segue_proto::Duration;
use segue_proto::units::BitRate;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A condition.
#[derive(Clone, PartialEq, Debug)]
pub struct Assertion {
    text: String,
    quantity: Quantity,
    comparison: Comparison,
    limit: f64,
}

/// What a condition comes to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// The condition, as written.
    pub condition: String,
    /// Whether it holds.
    pub holds: bool,
    /// In words: the condition, and what the run has.
    pub text: String,
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quantity {
    Interruption,
    MedianInterruption,
    HandoverLatency,
    LongestGap,
    Loss,
    Lost,
    LostToHandover,
    Retransmissions,
    Throughput,
    Handovers,
    DeadFlows,
    CorruptMessages,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Seconds,
    Share,
    BitsPerSecond,
    Count,
}

const QUANTITIES: [(&str, Quantity, Unit); 12] = [
    ("interruption", Quantity::Interruption, Unit::Seconds),
    ("interruption.median", Quantity::MedianInterruption, Unit::Seconds),
    ("handover_latency", Quantity::HandoverLatency, Unit::Seconds),
    ("longest_gap", Quantity::LongestGap, Unit::Seconds),
    ("loss", Quantity::Loss, Unit::Share),
    ("lost", Quantity::Lost, Unit::Count),
    ("lost_to_handover", Quantity::LostToHandover, Unit::Count),
    ("retransmissions", Quantity::Retransmissions, Unit::Count),
    ("throughput", Quantity::Throughput, Unit::BitsPerSecond),
    ("handovers", Quantity::Handovers, Unit::Count),
    ("dead_flows", Quantity::DeadFlows, Unit::Count),
    ("corrupt_messages", Quantity::CorruptMessages, Unit::Count),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Other,
}

/// The longer of two that begin alike comes first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Other),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

/// Why something is no condition.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct AssertionError {
    text: String,
    problem: String,
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let text = text.trim();
        let wrong = |problem: String| AssertionError {
            text: text.to_owned(),
            problem,
        };
        let no_condition = || wrong("expected a condition such as `interruption < 50 ms`".to_owned());
        let at = text.find(['<', '>', '=', '!']).ok_or_else(no_condition)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(no_condition)?;
        let value = rest[sign.len()..].trim();
        let (_, quantity, unit) = QUANTITIES
            .into_iter()
            .find(|(known, ..)| *known == name)
            .ok_or_else(|| {
                let names: Vec<&str> = QUANTITIES.iter().map(|(name, ..)| *name).collect();
                wrong(format!("`{name}`: expected one of {}", names.join(", ")))
            })?;
        let limit = unit
            .parse(value)
            .ok_or_else(|| wrong(format!("`{value}`: expected {}", unit.expected())))?;
        Ok(Self {
            text: text.to_owned(),
            quantity,
            comparison,
            limit,
        })
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Assertion {
    /// The texts that are a condition, as a regular expression, with those that are a time and a rate.
    pub(crate) fn forms(time: &str, rate: &str) -> String {
        let signs = COMPARISONS.map(|(sign, _)| sign).join("|");
        let forms = QUANTITIES.map(|(name, _, unit)| {
            let limit = match unit {
                Unit::Seconds => time,
                Unit::BitsPerSecond => rate,
                Unit::Share => "(100|[0-9]{1,2}(\\.[0-9]{0,9})?) *%",
                Unit::Count => "[0-9]{1,18}",
            };
            format!("{} *({signs}) *{limit}", name.replace('.', "\\."))
        });
        format!("({})", forms.join("|"))
    }
}

impl Serialize for Assertion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Assertion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl Unit {
    fn parse(self, text: &str) -> Option<f64> {
        match self {
            Self::Seconds => text.parse::<Duration>().ok().map(|d| d.as_secs_f64()),
            Self::BitsPerSecond => text.parse::<BitRate>().ok().map(|r| r.bits_per_second() as f64),
            Self::Share => {
                let percent = text.strip_suffix('%')?.trim().parse::<f64>().ok()?;
                (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
            }
            Self::Count => text.parse::<u64>().ok().map(|n| n as f64),
        }
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Seconds => "a time such as 50 ms",
            Self::BitsPerSecond => "a rate such as 5 Mbit/s",
            Self::Share => "a share such as 1 %",
            Self::Count => "a whole number",
        }
    }

    /// A lower bound has "≥" before it, and is never rounded up.
    fn show_found(self, found: Found) -> String {
        match found.is_bound {
            false => self.show(found.value),
            true => format!("≥ {}", self.show((found.value * 1e4 + 1e-6).floor() / 1e4)),
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{:.1} ms", value * 1e3),
            Self::BitsPerSecond => format!("{:.3} Mbit/s", value / 1e6),
            Self::Share => format!("{:.3} %", value * 100.0),
            Self::Count => format!("{value}"),
        }
    }
}

impl Assertion {
    /// The conditions of a command line, each after its `--assert`.
    ///
    /// # Errors
    /// The first that is none, in one line.
    pub fn of_command_line(texts: &[String]) -> Result<Vec<Self>, String> {
        let parse = |text: &String| text.parse().map_err(|error| format!("--assert {error}"));
        texts.iter().map(parse).collect()
    }

    /// Whether it holds of a run. It does not hold of a number that nobody measured, nor because one of which a lower bound is
    /// known is small enough.
    #[must_use]
    pub fn check(&self, metrics: &Metrics) -> Verdict {
        let found = self.quantity.of(metrics);
        let holds = found.is_some_and(|found| self.holds_of(found));
        let unit = QUANTITIES.iter().find(|(_, q, _)| *q == self.quantity);
        let unit = unit.map_or(Unit::Count, |(.., unit)| *unit);
        let word = if holds { "holds" } else { "does not hold" };
        let said = match (found, self.quantity) {
            (Some(found), _) => unit.show_found(found),
            (None, Quantity::Interruption | Quantity::MedianInterruption) => {
                let longest = Quantity::LongestGap.of(metrics);
                let longest = longest.map_or_else(String::new, |gap| Unit::Seconds.show_found(gap));
                format!("none measured; the longest gap is {longest}")
            }
            (None, _) => "none measured".to_owned(),
        };
        Verdict {
            condition: self.text.clone(),
            holds,
            text: format!("{}: {word}: {said}", self.text),
        }
    }

    fn holds_of(&self, found: Found) -> bool {
        let Found { value, is_bound } = found;
        match self.comparison {
            Comparison::Less => !is_bound && value < self.limit,
            Comparison::AtMost => !is_bound && value <= self.limit,
            Comparison::More => value > self.limit,
            Comparison::AtLeast => value >= self.limit,
            Comparison::Equal => !is_bound && value.total_cmp(&self.limit).is_eq(),
            Comparison::Other if is_bound => value > self.limit,
            Comparison::Other => value.total_cmp(&self.limit).is_ne(),
        }
    }
}

/// What a run has of a quantity.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Found {
    value: f64,
    /// It is no less, and may be greater.
    is_bound: bool,
}

impl Found {
    const fn exact(value: f64) -> Self {
        Self {
            value,
            is_bound: false,
        }
    }
}

impl Quantity {
    /// Nothing if the run has none of it.
    fn of(self, m: &Metrics) -> Option<Found> {
        let lost = m.packets_lost_to_handover + m.packets_lost_to_queue + m.packets_lost_otherwise;
        let dead = m.flows.iter().filter(|f| f.end.state == FlowState::Dead).count();
        let value = match self {
            Self::Interruption => return interruption(m),
            Self::MedianInterruption => {
                return m.interruption_s.as_ref().map(|s| Found {
                    value: s.median,
                    is_bound: s.median_censored,
                });
            }
            Self::HandoverLatency => m.handover_latency_s.as_ref()?.max,
            Self::LongestGap => {
                return Some(Found {
                    value: m.longest_gap_s,
                    is_bound: m.longest_gap_is_bound(),
                });
            }
            Self::Loss => lost as f64 / m.packets_sent.max(1) as f64,
            Self::Lost => lost as f64,
            Self::LostToHandover => m.packets_lost_to_handover as f64,
            Self::Retransmissions => m.packets_retransmitted as f64,
            Self::Throughput => m.throughput_bps,
            Self::Handovers => m.handovers.len() as f64,
            Self::DeadFlows => dead as f64,
            Self::CorruptMessages => m.corrupt_messages as f64,
        };
        Some(Found::exact(value))
    }
}

/// The longest time without new data by a handover, in an outage, or around what the scenario has happen.
fn interruption(m: &Metrics) -> Option<Found> {
    let by_handovers = m.interruption_s.iter().map(|s| Found {
        value: s.max,
        is_bound: s.max_censored,
    });
    let around = m.flows.iter().filter_map(|f| f.around_events.as_ref());
    let around = around.map(|gap| Found {
        value: gap.duration_s,
        is_bound: gap.censored,
    });
    by_handovers.chain(around).reduce(|a, b| Found {
        value: a.value.max(b.value),
        is_bound: a.is_bound || b.is_bound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Metrics {
        let text = include_str!("../../../scenarios/bench/bulk.toml");
        let short = [("duration".to_owned(), "2 s".to_owned())];
        let scenario = crate::Scenario::from_toml(text, "bulk.toml", &short).unwrap();
        crate::run(&scenario, crate::RunOptions::default())
            .unwrap()
            .metrics
    }

    #[test]
    fn conditions_hold_or_not_by_what_the_run_has() {
        let metrics = run();
        let holds = |text: &str| text.parse::<Assertion>().unwrap().check(&metrics).holds;
        assert!(metrics.throughput_bps > 1e6 && metrics.handovers.is_empty());
        assert!(holds("throughput > 1 Mbit/s"));
        assert!(!holds("throughput < 1000 kbit/s"));
        assert!(holds("handovers == 0") && holds("dead_flows<1") && !holds("handovers != 0"));
        assert!(holds("loss < 50 %") && !holds("loss > 50%"));
        let said = "handovers >= 1"
            .parse::<Assertion>()
            .unwrap()
            .check(&metrics)
            .text;
        assert_eq!(said, "handovers >= 1: does not hold: 0");
    }

    #[test]
    fn no_condition_holds_of_what_was_not_measured() {
        let metrics = run();
        let said = |text: &str| text.parse::<Assertion>().unwrap().check(&metrics);
        let gap = format!("{:.1} ms", metrics.longest_gap_s * 1e3);
        for condition in [
            "interruption < 1 s",
            "interruption != 5 s",
            "interruption >= 0 ms",
        ] {
            let verdict = said(condition);
            let expected = format!("{condition}: does not hold: none measured; the longest gap is {gap}");
            assert_eq!((verdict.holds, verdict.text), (false, expected));
        }
        assert!(!said("interruption.median < 1 s").holds);
        assert_eq!(
            said("handover_latency < 1 s").text,
            "handover_latency < 1 s: does not hold: none measured"
        );
        assert!(said("longest_gap < 1 s").holds);
    }

    /// A network of one wire, which lets nothing through from 1 s on for so long.
    fn with_blackhole(lasts: &str) -> Metrics {
        let event = format!("kind = \"blackhole\"\non = \"wire\"\nat = \"1 s\"\n{lasts}");
        let text = format!(
            "name = \"wire\"\nduration = \"4 s\"\nscheme = \"none\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
             [[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"100 packets\"\n\
             [[application]]\nkind = \"constant-rate\"\ntransport = \"udp\"\nfrom = \"a\"\nto = \"b\"\nstart = \"100 ms\"\n\
             rate = \"800 kbit/s\"\nmessage = \"1000 B\"\n[[event]]\n{event}\n"
        );
        let scenario = crate::Scenario::from_toml(&text, "wire.toml", &[]).unwrap();
        let options = crate::RunOptions::default();
        crate::run(&scenario, options).unwrap().metrics
    }

    #[test]
    fn an_interruption_that_is_no_outage_is_judged_around_the_event() {
        // too short for an outage, which is of more than a second, and nobody moves
        let metrics = with_blackhole("for = \"900 ms\"");
        assert_eq!(metrics.interruption_s, None);
        let verdict = "interruption < 50 ms"
            .parse::<Assertion>()
            .unwrap()
            .check(&metrics);
        assert_eq!(
            (verdict.holds, verdict.text.as_str()),
            (false, "interruption < 50 ms: does not hold: 910.0 ms")
        );
        let events: Vec<_> = metrics
            .scenario_events
            .iter()
            .map(|e| (e.kind.as_str(), e.on.join(" "), e.at_s, e.for_s))
            .collect();
        assert_eq!(events, [("blackhole", "wire".to_owned(), 1.0, Some(0.9))]);
    }

    #[test]
    fn what_is_silent_to_the_end_is_a_lower_bound_and_holds_no_upper_limit() {
        let metrics = with_blackhole("");
        let said = |text: &str| text.parse::<Assertion>().unwrap().check(&metrics);
        let verdict = said("interruption < 9 s");
        assert!(!verdict.holds);
        assert!(
            verdict
                .text
                .starts_with("interruption < 9 s: does not hold: ≥ 29"),
            "{}",
            verdict.text
        );
        assert!(said("interruption > 2 s").holds && said("longest_gap > 2 s").holds);
        assert!(!said("longest_gap < 9 s").holds && !said("interruption == 2 s").holds);
    }

    #[test]
    fn a_flow_that_is_dead_makes_a_longer_gap_of_another_a_lower_bound() {
        let mut metrics = with_blackhole("for = \"1200 ms\"");
        let mut other = with_blackhole("").flows.remove(0);
        let silence_s = other.end.silence_s.unwrap();
        let holds = |m: &Metrics| "longest_gap < 4 s".parse::<Assertion>().unwrap().check(m).holds;
        assert!(holds(&metrics));
        // it had been silent for longer before, or it had not
        (metrics.longest_gap_s, metrics.flows[0].end.longest_gap_s) = (silence_s + 0.1, silence_s + 0.1);
        for censored in [true, false] {
            other.end.censored = censored;
            let flows = vec![metrics.flows[0].clone(), other.clone()];
            let both = Metrics {
                flows,
                ..metrics.clone()
            };
            assert!(both.longest_gap_is_bound() && !holds(&both));
        }
        assert!(holds(&metrics));
    }

    #[test]
    fn what_is_no_condition_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<Assertion>().unwrap_err().to_string();
        assert_eq!(
            refused("interruption"),
            "`interruption`: expected a condition such as `interruption < 50 ms`"
        );
        assert_eq!(
            refused("interruption < 50"),
            "`interruption < 50`: `50`: expected a time such as 50 ms"
        );
        assert_eq!(
            refused("loss < 0.5"),
            "`loss < 0.5`: `0.5`: expected a share such as 1 %"
        );
        assert!(refused("latency < 5 ms").starts_with("`latency < 5 ms`: `latency`: expected one of"));
    }
}
