//! All that is wrong with a scenario file at once, and where.
//!
//! A scenario is refused for the first thing that is wrong with it. Here that is put right for the time being, by a value that the key
//! may have, and the rest is looked at. What is then wrong with one such value and not with another is nobody's fault but the value's:
//! it is not told.

use super::standing_in::Attempt;
use super::{ScenarioError, overrides};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most that is said of a file.
const MOST: usize = 50;

/// Something that is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Line and column, from 1 on; nothing for what is wrong in another file.
    pub at: Option<(usize, usize)>,
    /// Which key, and what was expected.
    pub error: ScenarioError,
}

/// What is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problems {
    /// In the order of the file.
    pub found: Vec<Found>,
    /// What was found could not be put right for the time being, so that there may be more.
    pub more: bool,
}

/// All that is wrong with a scenario file. `file` names it in messages, and files that it names are found from there.
#[must_use]
pub fn problems(text: &str, file: &str) -> Problems {
    let (written, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let found = all_not_toml(text, file, errors);
        return Problems { found, more: true };
    }
    let mut problems = Problems::default();
    let mut attempt = Attempt::new(text.parse().unwrap_or_default(), file);
    while let Some(error) = attempt.refused() {
        let told = attempt.as_written(&error);
        let again = problems.found.iter().any(|found| found.error == told);
        if again || problems.found.len() == MOST || attempt.is_set_aside(&error) || attempt.is_over() {
            problems.more = true;
            break;
        }
        if let Some(replaced) = attempt.replaced_by(&error) {
            if attempt.replace_again(replaced) {
                continue;
            }
            problems.more = true;
            break;
        }
        if attempt.sets_aside(&error) {
            continue;
        }
        let span = (error.source == file)
            .then(|| place(written.get_ref(), &told.key))
            .flatten();
        let at = span.map(|start| position(text, start));
        problems.found.push(Found { at, error: told });
        if !attempt.repair(&error) {
            problems.more = true;
            break;
        }
    }
    problems.found.sort_by_key(|found| found.at);
    problems
}

/// The first that are wrong with a text that is no TOML; of a line that is none, the first that is wrong with it.
fn all_not_toml(text: &str, file: &str, mut errors: Vec<toml::de::Error>) -> Vec<Found> {
    errors.sort_by_key(|error| error.span().map(|span| span.start));
    let mut found: Vec<Found> = Vec::new();
    for error in &errors {
        // where it is takes longer to find the further down it is
        if found.len() == MOST {
            break;
        }
        let one = not_toml(text, file, error);
        let line = |found: &Found| found.at.map(|at| at.0);
        if found.last().is_none_or(|last| line(last) != line(&one)) {
            found.push(one);
        }
    }
    found
}

fn not_toml(text: &str, file: &str, error: &toml::de::Error) -> Found {
    Found {
        at: error.span().map(|span| position(text, span.start)),
        error: ScenarioError::new(file, "", format!("is not TOML: {}", error.message())),
    }
}

/// Where the key is, or the nearest around it that the file has.
fn place(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let dotted = overrides::with_dots(key);
    let mut at: Option<&Spanned<DeValue<'_>>> = None;
    let mut start = None;
    for part in dotted.split('.') {
        let inside = match at.map(Spanned::get_ref) {
            None => Some(table),
            Some(DeValue::Table(table)) => Some(table),
            Some(_) => None,
        };
        if let Some(inside) = inside {
            let Some((name, value)) = inside.iter().find(|(name, _)| name.get_ref() == part) else {
                break;
            };
            start = Some(name.span().start);
            at = Some(value);
            continue;
        }
        let Some(DeValue::Array(entries)) = at.map(Spanned::get_ref) else {
            break;
        };
        let Some(entry) = part.parse().ok().and_then(|number: usize| entries.get(number)) else {
            break;
        };
        start = Some(entry.span().start);
        at = Some(entry);
    }
    start
}

/// Line and column of a byte.
fn position(text: &str, start: usize) -> (usize, usize) {
    let before = text.get(..start).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (
        before.matches('\n').count() + 1,
        before[line..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: &str = include_str!("../../../../scenarios/bench/bulk.toml");

    /// Line and column, and what is said.
    type Said = (Option<(usize, usize)>, String);

    fn all(text: &str) -> (Vec<Said>, bool) {
        let problems = problems(text, "f.toml");
        let found = problems
            .found
            .into_iter()
            .map(|found| (found.at, found.error.to_string()));
        (found.collect(), problems.more)
    }

    #[test]
    fn a_scenario_without_a_fault_has_none() {
        assert_eq!(all(BULK), (Vec::new(), false));
    }

    #[test]
    fn everything_is_said_at_once_in_the_order_of_the_file() {
        let text = BULK
            .replace("duration = \"60 s\"", "duration = 60")
            .replace("sack_frequency = 2", "sack_frequenzy = 2")
            .replace("kind = \"bulk\"", "kind = \"bulkt\"");
        let line = |of: &str| {
            text.lines()
                .position(|line| line.starts_with(of))
                .map(|line| (line + 1, 1))
        };
        let (found, more) = all(&text);
        let places: Vec<_> = found.iter().map(|(at, _)| *at).collect();
        assert_eq!(
            places,
            [line("duration"), line("sack_frequenzy"), line("kind")],
            "{found:?}"
        );
        assert!(found[0].1.contains("has no unit"), "{found:?}");
        assert!(found[1].1.contains("did you mean `sack_frequency`?"), "{found:?}");
        assert!(found[2].1.contains("expected one of bulk"), "{found:?}");
        assert!(!more);
    }

    #[test]
    fn what_depends_on_a_key_that_is_wrong_is_not_told() {
        let voice = include_str!("../../../../scenarios/templates/wifi-to-5g.toml")
            .replace("kind = \"voice\"", "kind = \"vocie\"");
        let technology = include_str!("../../../../scenarios/templates/wifi-to-5g.toml").replace(
            "technology = \"wlan-802.11n\"\nrouter",
            "technology = \"6g\"\nrouter",
        );
        let duration = include_str!("../../../../scenarios/templates/wifi-to-5g.toml")
            .replace("duration = \"60 s\"", "duration = \"60\"");
        for (text, key) in [
            (&voice, "application[0].kind"),
            (&technology, "cell[0].technology"),
            (&duration, "duration"),
        ] {
            let (found, more) = all(text);
            assert_eq!((found.len(), more), (1, false), "{found:?}");
            assert!(found[0].1.contains(key), "{found:?}");
        }
    }

    #[test]
    fn what_is_wrong_beside_a_stand_in_is_told() {
        let text = BULK
            .replace("duration = \"60 s\"", "duration = \"60\"\nscheme = \"sigmaa\"")
            .replace("sack_frequency = 2", "sack_frequency = 0");
        let (found, more) = all(&text);
        assert_eq!((found.len(), more), (3, false), "{found:?}");
        assert!(
            found[2].1.contains("sctp.sack_frequency: expected at least 1"),
            "{found:?}"
        );
    }

    #[test]
    fn a_key_that_is_spelt_wrongly_is_not_missed_too() {
        let text = BULK.replace("duration = ", "duratoin = ");
        let (found, more) = all(&text);
        assert_eq!((found.len(), more), (1, false), "{found:?}");
        assert!(found[0].1.contains("did you mean `duration`?"), "{found:?}");
    }

    #[test]
    fn what_follows_from_a_wrong_count_is_not_told() {
        let phones = include_str!("../../../../scenarios/populations/phones.toml");
        let counted = phones.matches("\ncount = ").count();
        for wrong in ["\"{x}\"", "-1"] {
            let lines = phones.lines().map(|line| match line.strip_prefix("count = ") {
                Some(_) => format!("count = {wrong}\n"),
                None => format!("{line}\n"),
            });
            let (found, _) = all(&lines.collect::<String>());
            assert_eq!(found.len(), counted, "{found:?}");
            assert!(
                found.iter().all(|(_, said)| said.contains(".count: ")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_entry_that_is_none_does_not_hide_the_next() {
        let text = "name = \"x\"\nduration = \"9 s\"\napplication = [3, { kind = \"bulk\", from = \"a\", to = \"b\", siz = \"1 MB\" }]\n\
                    host = [{ name = \"a\" }, { name = \"b\" }]\n\
                    link = [{ between = [\"a\", \"b\"], rate = \"1 Mbit/s\", delay = \"1 ms\" }]\n";
        let (found, more) = all(text);
        assert!(!more && found.len() == 2, "{found:?}");
        assert_eq!(found[0].0, Some((3, 16)), "{found:?}");
        assert!(
            found[1]
                .1
                .contains("application[1].siz: unknown key: did you mean `size`?"),
            "{found:?}"
        );
        assert!(found[1].0 > found[0].0, "{found:?}");
    }

    #[test]
    fn what_hides_the_rest_says_so() {
        let text = BULK.replace("to = \"receiver\"", "to = \"nobody\"");
        let (found, more) = all(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1.contains("expected the name of a host") && more);
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_places() {
        let (found, more) = all("a = \nb = 1\nc = = 2\n");
        let lines: Vec<_> = found.iter().filter_map(|(at, _)| at.map(|at| at.0)).collect();
        assert_eq!((lines, more), (vec![1, 3], true));
    }
}
