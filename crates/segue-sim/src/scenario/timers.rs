//! Least times between what happens again and again: with less, a run would be made of nothing else, and not end.

use super::model::{AddressMethod, ScenarioFile};
use super::validate::{Problem, problem, written};
use segue_proto::Duration;

/// A time unit of IEEE 802.11, in which beacon intervals are counted.
const TIME_UNIT: Duration = Duration::from_micros(1024);

/// What RFC 6275 section 7.5 allows MinRtrAdvInterval and MaxRtrAdvInterval to be lowered to.
const LEAST_MIN_RTR_ADV_INTERVAL: Duration = Duration::from_millis(30);
const LEAST_MAX_RTR_ADV_INTERVAL: Duration = Duration::from_millis(70);

/// Least time of a retransmission timer: what RetransTimer is counted in (RFC 4861 section 4.2), and as fine as timers
/// of hosts are.
const LEAST_TIMER: Duration = Duration::from_millis(1);

/// Longest time that a timer is set to.
const LONGEST: Duration = Duration::from_secs(3600);

/// Most neighbour solicitations per address.
const MOST_SOLICITATIONS: u32 = 100;

/// Most attempts to send a frame: the range of the retry limits of IEEE 802.11.
pub(super) const MOST_ATTEMPTS: u32 = 255;

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    radio(s)?;
    addresses(s)?;
    retransmissions(s)
}

fn radio(s: &ScenarioFile) -> Result<(), Problem> {
    if s.l2.beacon_period < TIME_UNIT {
        return problem(
            "l2.beacon_period",
            format!("expected at least {TIME_UNIT}: the time unit of IEEE 802.11"),
        );
    }
    Ok(())
}

fn addresses(s: &ScenarioFile) -> Result<(), Problem> {
    let a = &s.address;
    let key = |k: &str| format!("address.ra_interval_{k}");
    advertisements(&key, a.ra_interval_min, a.ra_interval_max)?;
    if a.method == AddressMethod::Slaac && !(LEAST_TIMER..=LONGEST).contains(&a.retrans_timer) {
        return problem(
            "address.retrans_timer",
            "expected 1 ms to 3600 s: it is counted in milliseconds (RFC 4861 section 4.2)",
        );
    }
    if a.dad_transmits > MOST_SOLICITATIONS {
        return problem(
            "address.dad_transmits",
            format!("expected at most {MOST_SOLICITATIONS}"),
        );
    }
    for (key, delay) in [("server_delay", a.server_delay), ("ra_delay", a.ra_delay)] {
        if delay > LONGEST {
            return problem(format!("address.{key}"), "expected at most 3600 s");
        }
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
    for (name, interval, least) in [
        ("min", min, LEAST_MIN_RTR_ADV_INTERVAL),
        ("max", max, LEAST_MAX_RTR_ADV_INTERVAL),
    ] {
        if interval < least {
            return problem(
                key(name),
                format!("expected at least {least} (RFC 6275 section 7.5)"),
            );
        }
    }
    if min > max {
        return problem(key("min"), format!("expected at most ra_interval_max, {max}"));
    }
    if max > LONGEST {
        return problem(key("max"), "expected at most 3600 s");
    }
    Ok(())
}

fn retransmissions(s: &ScenarioFile) -> Result<(), Problem> {
    let sctp = &s.sctp;
    let retry = s.location.as_ref().map(|l| l.retry);
    for (key, timer) in [
        ("sctp.rto_initial", sctp.rto_initial),
        ("sctp.rto_min", sctp.rto_min),
        ("sctp.rto_max", sctp.rto_max),
        ("location.retry", retry),
    ] {
        if timer.is_some_and(|t| !(LEAST_TIMER..=LONGEST).contains(&t)) {
            return problem(key, "expected 1 ms to 3600 s");
        }
    }
    if sctp.hb_interval.is_some_and(|i| i > LONGEST * 1000) {
        return problem("sctp.hb_interval", "expected at most 3600000 s");
    }
    Ok(())
}
