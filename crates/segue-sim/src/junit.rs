//! What a run came to as a file that CI services read: JUnit's XML, as Ant and Maven's Surefire write it.

use crate::assertion::Verdict;
use std::fmt::Write as _;

/// A test case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    name: String,
    outcome: Outcome,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Outcome {
    Passed,
    /// What was to be so is not.
    Failed(String),
    /// It could not be found out.
    Error(String),
}

impl Case {
    /// One that passed.
    #[must_use]
    pub fn passed(name: &str) -> Self {
        Self::new(name, Outcome::Passed)
    }

    /// One of which something does not hold.
    #[must_use]
    pub fn failed(name: &str, why: &str) -> Self {
        Self::new(name, Outcome::Failed(why.to_owned()))
    }

    /// One of which nothing could be found out.
    #[must_use]
    pub fn error(name: &str, why: &str) -> Self {
        Self::new(name, Outcome::Error(why.to_owned()))
    }

    fn new(name: &str, outcome: Outcome) -> Self {
        let name = name.to_owned();
        Self { name, outcome }
    }
}

impl From<&Verdict> for Case {
    fn from(verdict: &Verdict) -> Self {
        match verdict.holds {
            true => Self::passed(&verdict.condition),
            false => Self::failed(&verdict.condition, &verdict.text),
        }
    }
}

/// The document: a suite that took `seconds`, of a scenario's cases.
#[must_use]
pub fn document(suite: &str, scenario: &str, seconds: f64, cases: &[Case]) -> String {
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{seconds:.3}\">\n",
        escaped(suite),
        cases.len(),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Error(_))),
    );
    for case in cases {
        let mut line = format!(
            "  <testcase classname=\"{}\" name=\"{}\"",
            escaped(scenario),
            escaped(&case.name)
        );
        let told = match &case.outcome {
            Outcome::Passed => None,
            Outcome::Failed(why) => Some(("failure", why)),
            Outcome::Error(why) => Some(("error", why)),
        };
        match told {
            None => line.push_str(" />"),
            Some((kind, why)) => {
                let _ = write!(line, "><{kind} message=\"{}\" /></testcase>", escaped(why));
            }
        }
        xml.push_str(&line);
        xml.push('\n');
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// As the value of an attribute; what XML 1.0 has no way to say is left out (its section 2.2).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_does_not_hold_is_a_failure_and_its_signs_are_escaped() {
        let verdict = |holds, text: &str| Verdict {
            condition: "loss < 1 %".to_owned(),
            holds,
            text: text.to_owned(),
        };
        let cases = [
            Case::from(&verdict(true, "")),
            Case::from(&verdict(false, "loss < 1 %: does not hold: 2 %")),
            Case::error("emulation", "\"late\" & \u{1}busy"),
        ];
        assert_eq!(
            document("segue run", "a&b", 1.5, &cases),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"segue run\" tests=\"3\" failures=\"1\" errors=\"1\" time=\"1.500\">\n\
             \x20 <testcase classname=\"a&amp;b\" name=\"loss &lt; 1 %\" />\n\
             \x20 <testcase classname=\"a&amp;b\" name=\"loss &lt; 1 %\"><failure message=\"loss &lt; 1 %: does not hold: 2 %\" /></testcase>\n\
             \x20 <testcase classname=\"a&amp;b\" name=\"emulation\"><error message=\"&quot;late&quot; &amp; busy\" /></testcase>\n\
             </testsuite>\n"
        );
    }
}
