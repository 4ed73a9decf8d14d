//! When a cell is there, whatever the place: scripted coverage, `present = ["0 s..20 s", "40 s.."]`.

use segue_proto::Duration;
use segue_proto::units::UnitError;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// From a time of the run, until another or its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins.
    pub from: Duration,
    /// When it ends; nothing for never.
    pub until: Option<Duration>,
}

/// The windows in which a cell is there, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Presence(Vec<Window>);

impl Presence {
    /// The windows.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        &self.0
    }

    /// Whether it is there at the beginning.
    #[must_use]
    pub fn at_the_beginning(&self) -> bool {
        self.0.first().is_some_and(|w| w.from.is_zero())
    }

    /// The windows of a run that lasts so long, seconds.
    pub(crate) fn seconds(&self, duration: Duration) -> Vec<(f64, f64)> {
        let within = self.0.iter().filter(|w| w.from < duration);
        within
            .map(|w| {
                let until = w.until.map_or(duration, |u| u.min(duration));
                (w.from.as_secs_f64(), until.as_secs_f64())
            })
            .collect()
    }

    /// What is left of the windows outside another; `None` if that is nothing.
    pub(crate) fn without(&self, from: Duration, until: Option<Duration>) -> Option<Self> {
        let mut left = Vec::new();
        for window in &self.0 {
            let ends_by = |at: Duration| window.until.is_some_and(|end| end <= at);
            if ends_by(from) || until.is_some_and(|until| window.from >= until) {
                left.push(*window);
                continue;
            }
            if window.from < from {
                left.push(Window {
                    from: window.from,
                    until: Some(from),
                });
            }
            if let Some(until) = until
                && !ends_by(until)
            {
                left.push(Window {
                    from: until,
                    until: window.until,
                });
            }
        }
        Self::checked(left).ok()
    }

    fn checked(windows: Vec<Window>) -> Result<Self, &'static str> {
        let in_order = windows
            .windows(2)
            .all(|pair| pair[0].until.is_some_and(|until| until < pair[1].from));
        if in_order && !windows.is_empty() {
            Ok(Self(windows))
        } else {
            Err("expected windows in order that do not touch, such as [\"0 s..20 s\", \"40 s..\"]")
        }
    }
}

impl FromStr for Window {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = |expected| UnitError::NotARange {
            text: text.to_owned(),
            expected,
        };
        let a_window = "a window such as \"20 s..40 s\" or \"40 s..\"";
        let (from, until) = text.split_once("..").ok_or_else(|| wrong(a_window))?;
        let from = from.trim().parse()?;
        let until: Option<Duration> = match until.trim() {
            "" => None,
            until => Some(until.parse()?),
        };
        if until.is_some_and(|until| until <= from) {
            return Err(wrong(
                "a window that ends after it begins, such as \"20 s..40 s\" or \"40 s..\"",
            ));
        }
        Ok(Self { from, until })
    }
}

impl Serialize for Presence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|w| match w.until {
            Some(until) => format!("{}..{until}", w.from),
            None => format!("{}..", w.from),
        }))
    }
}

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Presence;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("windows such as [\"0 s..20 s\", \"40 s..\"]")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Presence, E> {
        let window = text.parse().map_err(E::custom)?;
        Ok(Presence(vec![window]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Presence, A::Error> {
        let mut windows = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            windows.push(text.parse().map_err(de::Error::custom)?);
        }
        Presence::checked(windows).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_run_only_what_lies_in_it_is_told() {
        let presence = read("[\"0 s..20 s\", \"40 s..90 s\", \"100 s..\"]").unwrap();
        let whole = [(0.0, 20.0), (40.0, 90.0), (100.0, 120.0)];
        assert_eq!(presence.seconds(Duration::from_secs(120)), whole);
        assert_eq!(
            presence.seconds(Duration::from_secs(60)),
            [(0.0, 20.0), (40.0, 60.0)]
        );
    }

    #[test]
    fn what_is_taken_out_of_windows_leaves_what_is_beside_it() {
        let s = Duration::from_secs;
        let presence = read("[\"0 s..20 s\", \"40 s..\"]").unwrap();
        let left =
            |from, until: Option<u64>| presence.without(s(from), until.map(s)).map(|p| p.seconds(s(100)));
        assert_eq!(
            left(10, Some(12)).unwrap(),
            [(0.0, 10.0), (12.0, 20.0), (40.0, 100.0)]
        );
        assert_eq!(left(15, Some(50)).unwrap(), [(0.0, 15.0), (50.0, 100.0)]);
        assert_eq!(left(20, Some(40)).unwrap(), [(0.0, 20.0), (40.0, 100.0)]);
        assert_eq!(left(50, None).unwrap(), [(0.0, 20.0), (40.0, 50.0)]);
        assert_eq!(left(0, None), None);
    }

    fn read(text: &str) -> Result<Presence, String> {
        #[derive(Deserialize)]
        struct File {
            present: Presence,
        }
        toml::from_str::<File>(&format!("present = {text}"))
            .map(|f| f.present)
            .map_err(|e| e.message().to_owned())
    }

    #[test]
    fn windows_are_read_in_order() {
        let s = Duration::from_secs;
        let two = read("[\"0 s..20 s\", \"40 s..\"]").unwrap();
        let expected = [
            Window {
                from: s(0),
                until: Some(s(20)),
            },
            Window {
                from: s(40),
                until: None,
            },
        ];
        assert_eq!(two.windows(), expected);
        assert!(two.at_the_beginning());
        assert!(!read("\"1 s..\"").unwrap().at_the_beginning());
    }

    #[test]
    fn what_is_no_window_is_refused() {
        assert_eq!(
            read("\"20 s..10 s\"").unwrap_err(),
            "`20 s..10 s`: expected a window that ends after it begins, such as \"20 s..40 s\" or \"40 s..\""
        );
        for text in [
            "\"20 s\"",
            "\"20 s..20 s\"",
            "\"20..30\"",
            "[]",
            "[\"0 s..\", \"40 s..\"]",
            "[\"0 s..40 s\", \"40 s..\"]",
            "7",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
