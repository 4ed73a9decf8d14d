//! Least times between what happens again and again: with less, a run would be made of nothing else, and not end.

use super::model::{AddressMethod, ScenarioFile};
use super::validate::{Problem, problem, written};
use segue_proto::Duration;

/// Least time of a retransmission timer: what RetransTimer is counted in (RFC 4861 section 4.2), and as fine as timers
/// of hosts are.
const LEAST_TIMER: Duration = Duration::from_millis(1);

/// Longest time that a timer is set to.
const LONGEST: Duration = Duration::from_secs(3600);

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    let a = &s.address;
    let key = |k: &str| format!("address.ra_interval_{k}");
    advertisements(&key, a.ra_interval_min, a.ra_interval_max)?;
    if a.method == AddressMethod::Slaac && !(LEAST_TIMER..=LONGEST).contains(&a.retrans_timer) {
        return problem(
            "address.retrans_timer",
            "expected 1 ms to 3600 s: it is counted in milliseconds (RFC 4861 section 4.2)",
        );
    }
    Ok(())
}

/// RTO.Max of a `section` is no less than the others, each with whether it was set: that is then the one to change.
pub(super) fn bounds(
    section: &str,
    max: Duration,
    others: [(&str, Duration, bool); 2],
) -> Result<(), Problem> {
    for (name, rto, set) in others {
        if rto > max && set {
            return problem(
                format!("{section}.{name}"),
                format!("expected at most rto_max, {}", written(max)),
            );
        }
        if rto > max {
            return problem(
                format!("{section}.rto_max"),
                format!("expected at least {name}, {}", written(rto)),
            );
        }
    }
    Ok(())
}

/// MinRtrAdvInterval and MaxRtrAdvInterval, at the keys that `key` makes of "min" and "max".
pub(super) fn advertisements(
    key: &impl Fn(&str) -> String,
    min: Duration,
    max: Duration,
) -> Result<(), Problem> {
    if min > max {
        return problem(key("min"), format!("expected at most ra_interval_max, {max}"));
    }
    Ok(())
}
