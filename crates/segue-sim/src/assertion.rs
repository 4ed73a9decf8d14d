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

/// What is compared; a run without any has zero.
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

    /// Whether it holds of a run.
    #[must_use]
    pub fn check(&self, metrics: &Metrics) -> Verdict {
        let value = self.quantity.of(metrics);
        let holds = match self.comparison {
            Comparison::Less => value < self.limit,
            Comparison::AtMost => value <= self.limit,
            Comparison::More => value > self.limit,
            Comparison::AtLeast => value >= self.limit,
            Comparison::Equal => value.total_cmp(&self.limit).is_eq(),
            Comparison::Other => value.total_cmp(&self.limit).is_ne(),
        };
        let unit = QUANTITIES.iter().find(|(_, q, _)| *q == self.quantity);
        let unit = unit.map_or(Unit::Count, |(.., unit)| *unit);
        let word = if holds { "holds" } else { "does not hold" };
        Verdict {
            condition: self.text.clone(),
            holds,
            text: format!("{}: {word}: {}", self.text, unit.show(value)),
        }
    }
}

impl Quantity {
    fn of(self, m: &Metrics) -> f64 {
        let lost = m.packets_lost_to_handover + m.packets_lost_to_queue + m.packets_lost_otherwise;
        let dead = m.flows.iter().filter(|f| f.end.state == FlowState::Dead).count();
        match self {
            Self::Interruption => m.interruption_s.as_ref().map_or(0.0, |s| s.max),
            Self::MedianInterruption => m.interruption_s.as_ref().map_or(0.0, |s| s.median),
            Self::HandoverLatency => m.handover_latency_s.as_ref().map_or(0.0, |s| s.max),
            Self::LongestGap => m.longest_gap_s,
            Self::Loss => lost as f64 / m.packets_sent.max(1) as f64,
            Self::Lost => lost as f64,
            Self::LostToHandover => m.packets_lost_to_handover as f64,
            Self::Retransmissions => m.packets_retransmitted as f64,
            Self::Throughput => m.throughput_bps,
            Self::Handovers => m.handovers.len() as f64,
            Self::DeadFlows => dead as f64,
            Self::CorruptMessages => m.corrupt_messages as f64,
        }
    }
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
        assert!(holds("interruption <= 0 ms"));
        assert!(holds("loss < 50 %") && !holds("loss > 50%"));
        let said = "handovers >= 1"
            .parse::<Assertion>()
            .unwrap()
            .check(&metrics)
            .text;
        assert_eq!(said, "handovers >= 1: does not hold: 0");
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
