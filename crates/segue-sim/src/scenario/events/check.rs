//! Keys of an event: which its kind takes, and what they may be.

use super::super::validate::{Problem, problem, written};
use super::{EventEntry, EventKind};
use segue_proto::Duration;

/// Times that a flapping link may go down.
const MOST_FLAPS: u64 = 10_000;

/// What is wrong with an event, whatever it happens to.
pub(super) fn keys(
    event: &EventEntry,
    duration: Duration,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    if event.at >= duration {
        let expected = format!("expected a time before `duration`, {}", written(duration));
        return problem(key("at"), expected);
    }
    super::readdressing::keys(event, key)?;
    let replaces = matches!(event.kind, EventKind::Renumber | EventKind::AddressChange);
    if event.lasts.is_some_and(|lasts| lasts.is_zero()) && !replaces {
        return problem(key("for"), "expected more than 0 s");
    }
    let one_way = event.kind == EventKind::OneWayLoss;
    if event.towards.is_some() != one_way {
        let expected = if one_way {
            "expected the end that no longer hears, as towards = \"NAME\""
        } else {
            "has no effect with this kind: expected it to be left out"
        };
        return problem(key("towards"), expected);
    }
    if event.loss.is_some() && !matches!(event.kind, EventKind::OneWayLoss | EventKind::Blackhole) {
        return problem(
            key("loss"),
            "has no effect with this kind: expected it to be left out",
        );
    }
    match (event.kind, event.period, event.lasts) {
        (EventKind::Flap, Some(period), Some(lasts)) => {
            if lasts.as_nanos() / period.as_nanos() > MOST_FLAPS {
                return problem(key("period"), format!("expected at most {MOST_FLAPS} of them"));
            }
            Ok(())
        }
        (EventKind::Flap, None, _) => problem(key("period"), "expected a time such as period = \"500 ms\""),
        (EventKind::Flap, _, None) => problem(key("for"), "expected a time such as for = \"5 s\""),
        (_, Some(_), _) => problem(
            key("period"),
            "has no effect with this kind: expected it to be left out",
        ),
        _ => Ok(()),
    }
}
