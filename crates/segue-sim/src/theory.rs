//! The least time that a transfer across two access networks takes: equations (3) to (5) of paper 003, clamped.
//!
//! Budzisz, Ferrús, Casadevall and Amer have a file of L bits pass the first network alone until t_1, both for t_dwell, and
//! the second one alone after that, at the rates bw_1 and bw_2 of their links:
//!
//! | scheme | rate in the overlap | time, if the file outlasts the overlap |
//! |---|---|---|
//! | `cmt` | bw_1 + bw_2 | (3) t_1 + L/bw_2 - (t_1 + t_dwell) bw_ratio |
//! | `msctp-worst` | bw_2 | (4) t_1 + L/bw_2 - t_1 bw_ratio |
//! | `msctp-best`, and `failover` | bw_1 | (5) t_1 + t_dwell + L/bw_2 - (t_1 + t_dwell) bw_ratio |
//! | `single` | bw_1, which lasts | L/bw_1 |
//!
//! The equations hold as long as the file ends after the overlap; for one that ends before they give too little, even less
//! than t_1. Here the rate is summed up from the beginning until the file is through, which is the same where they hold and
//! right where they do not.
//!
//! A link's rate counts less the headers: user data of a full packet by its length as IPv6 packet.

use crate::build;
use crate::capacity;
use crate::scenario::model::{LinkEntry, OutageEntry, ScenarioFile};
use crate::scenario::schemes::Scheme;
use segue_proto::Duration;
use segue_proto::units::BitRate;

/// IPv6 header, SCTP common header, header of a DATA chunk, bytes.
const HEADERS: u64 = 40 + 12 + 16;

/// The least time from `begin` for the first application with a size, with the schemes of paper 003 and a receiver on two
/// links, seconds. Nothing with other schemes, on a link whose rate is a trace's, or if the links carry too little before the
/// end of the run.
#[must_use]
pub fn transfer_time_s(s: &ScenarioFile, begin: Duration) -> Option<f64> {
    let application = s.application.iter().find(|a| a.size.is_some())?;
    let on = |l: &&LinkEntry| l.between.contains(&application.to);
    let links: Vec<&LinkEntry> = s.link.iter().filter(on).collect();
    if !s.scheme.is_multihomed() || links.len() != 2 {
        return None;
    }
    // the one that is up first is left for the other
    let (first, second) = if is_up(links[0], Duration::ZERO) {
        (links[0], links[1])
    } else {
        (links[1], links[0])
    };
    let share = payload_share(s);
    let towards = |link| capacity::towards(link, &application.to);
    let (of_first, of_second) = (towards(first)?, towards(second)?);
    let rate = |link, rate: BitRate, at| {
        if is_up(link, at) {
            rate.bits_per_second() as f64 * share
        } else {
            0.0
        }
    };
    let mut left = application.size?.bytes() as f64 * 8.0;
    let mut at = begin;
    while at < s.duration {
        let end = next_change(&links, at).min(s.duration);
        let (one, two) = (rate(first, of_first, at), rate(second, of_second, at));
        let used = match s.scheme {
            Scheme::Cmt => one + two,
            Scheme::Single => one,
            Scheme::MsctpWorst if two > 0.0 => two,
            _ if one > 0.0 => one,
            _ => two,
        };
        let carried = used * (end - at).as_secs_f64();
        if carried >= left {
            return Some((at - begin).as_secs_f64() + left / used);
        }
        left -= carried;
        at = end;
    }
    None
}

/// User data of a full packet by its length.
fn payload_share(s: &ScenarioFile) -> f64 {
    let config = build::sctp_config(s);
    let room = u64::from(config.mtu) - HEADERS;
    let payload = config
        .max_chunk_data
        .map_or(room, |most| u64::from(most).min(room));
    payload as f64 / (payload.next_multiple_of(4) + HEADERS) as f64
}

fn is_up(link: &LinkEntry, at: Duration) -> bool {
    let covers = |o: &OutageEntry| o.from <= at && o.to.is_none_or(|to| at < to);
    !link.outages.iter().any(covers)
}

/// When a link next goes down or comes up.
fn next_change(links: &[&LinkEntry], at: Duration) -> Duration {
    let changes = links.iter().flat_map(|l| &l.outages);
    let times = changes.flat_map(|o| [Some(o.from), o.to]).flatten();
    times.filter(|t| *t > at).min().unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    const CMT: &str = include_str!("../../../scenarios/papers/cmt.toml");
    /// The share of user data in packets of 1520 bytes.
    const SHARE: f64 = 1452.0 / 1520.0;

    fn theory(scheme: &str, ratio: f64, t_dwell: f64) -> f64 {
        let set = [
            ("scheme", scheme.to_owned()),
            ("bw_ratio", ratio.to_string()),
            ("t_dwell", format!("{t_dwell} s")),
            ("duration", "2000 s".to_owned()),
            ("t_0", "0 s".to_owned()),
        ]
        .map(|(k, v)| (k.to_owned(), v));
        let scenario = Scenario::from_toml(CMT, "cmt.toml", &set).expect("a scenario");
        transfer_time_s(scenario.file(), Duration::ZERO).expect("a time")
    }

    /// The equations as printed, for 8 MB.
    fn equation(scheme: &str, ratio: f64, t_dwell: f64) -> f64 {
        let (t_1, whole) = (2.0, 64e6 / (384e3 * SHARE));
        match scheme {
            "cmt" => t_1 + whole - (t_1 + t_dwell) * ratio,
            "msctp-worst" => t_1 + whole - t_1 * ratio,
            _ => t_1 + t_dwell + whole - (t_1 + t_dwell) * ratio,
        }
    }

    #[test]
    fn the_equations_hold_where_the_file_outlasts_the_overlap() {
        for scheme in ["cmt", "msctp-worst", "msctp-best", "failover"] {
            for (ratio, t_dwell) in [(1.0, 2.0), (1.0, 40.0), (4.0, 2.0), (4.0, 20.0), (14.0, 2.0)] {
                let (ours, theirs) = (theory(scheme, ratio, t_dwell), equation(scheme, ratio, t_dwell));
                assert!(
                    (ours - theirs).abs() < 1e-6,
                    "{scheme} {ratio} {t_dwell}: {ours} {theirs}"
                );
            }
        }
    }

    #[test]
    fn a_file_that_ends_within_the_overlap_is_clamped() {
        // at ratio 14 and 40 s, equation (3) gives less than no time
        assert!(equation("cmt", 14.0, 40.0) < 0.0);
        let fast = 14.0 * 384e3 * SHARE;
        let both = 15.0 * 384e3 * SHARE;
        let expected = 2.0 + (64e6 - 2.0 * fast) / both;
        assert!((theory("cmt", 14.0, 40.0) - expected).abs() < 1e-6);
        assert!((theory("msctp-best", 14.0, 40.0) - 64e6 / fast).abs() < 1e-6);
        assert!((theory("single", 4.0, 2.0) - 64e6 / (4.0 * 384e3 * SHARE)).abs() < 1e-6);
    }

    #[test]
    fn the_rate_of_a_link_is_that_towards_the_receiver_and_none_if_it_varies() {
        let with = |between: &str, more: &str| {
            let text = CMT.replace(
                "between = [\"ap1\", \"mn\"]",
                &format!("between = {between}\n{more}"),
            );
            let scenario =
                Scenario::from_toml(&text, "cmt.toml", &[("scheme".to_owned(), "single".to_owned())]);
            transfer_time_s(scenario.expect("a scenario").file(), Duration::ZERO)
        };
        let slow = "up = { rate = \"100 kbit/s\", delay = \"15 ms\", queue = \"50 packets\" }";
        let time = with("[\"ap1\", \"mn\"]", "").expect("a time");
        assert_eq!(with("[\"ap1\", \"mn\"]", slow), Some(time));
        assert_eq!(with("[\"mn\", \"ap1\"]", ""), Some(time));
        let back = with("[\"mn\", \"ap1\"]", &slow.replace("100 kbit/s", "3072 kbit/s"));
        assert!((back.expect("a time") - time / 2.0).abs() < 1e-6);
        let trace = "trace = { text = \"time_s,rate_bps\\n0,1000000\", format = \"csv\" }";
        assert_eq!(with("[\"ap1\", \"mn\"]", trace), None);
    }

    #[test]
    fn a_file_that_ends_before_the_overlap_takes_the_first_link_alone() {
        let set = [("file_size", "100 kB")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let scenario = Scenario::from_toml(CMT, "cmt.toml", &set).expect("a scenario");
        let time = transfer_time_s(scenario.file(), Duration::ZERO).expect("a time");
        assert!((time - 8e5 / (4.0 * 384e3 * SHARE)).abs() < 1e-6, "{time}");
    }
}
