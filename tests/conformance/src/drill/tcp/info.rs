//! `tcp_info`: what `%{ }%` asks of a connection.

use crate::drill::stack::Refusal;
use segue_proto::tcp::{Connection, Phase};

/// The value of `name`: one of Linux's `tcp_info`, or a constant of it. Windows count segments, times microseconds.
///
/// # Errors
/// If there is no such value here, or no connection.
pub fn value(name: &str, connection: Option<&Connection>) -> Result<i64, Refusal> {
    if let Some(state) = STATES.iter().position(|s| *s == name) {
        return Ok(state as i64);
    }
    let Some(field) = name.strip_prefix("tcpi_") else {
        return Refusal::new(format!("the name `{name}`, which has no value"));
    };
    let Some(connection) = connection else {
        return Refusal::new(format!("`{name}` without a connection"));
    };
    let now = connection.snapshot();
    let outstanding = connection.outstanding();
    let micros = |time: Option<segue_proto::Duration>| time.map_or(0, |t| t.as_nanos() / 1000) as i64;
    let segments = |bytes: u32| i64::from(bytes / now.mss.max(1));
    Ok(match field {
        "snd_cwnd" => segments(now.cwnd),
        "snd_ssthresh" if now.ssthresh == u32::MAX => INFINITE_SSTHRESH,
        "snd_ssthresh" => segments(now.ssthresh),
        "ca_state" => match now.phase {
            Phase::Open => 0,
            Phase::Disorder => 1,
            Phase::Recovery => 3,
            Phase::Loss => 4,
        },
        "unacked" => i64::from(outstanding.segments),
        "sacked" => i64::from(outstanding.sacked),
        "lost" => i64::from(outstanding.lost),
        "retrans" => i64::from(outstanding.retransmitted),
        "total_retrans" => connection.counters().recovery.retransmissions as i64,
        "reordering" => i64::from(now.reordering),
        "snd_mss" => i64::from(now.mss),
        "advmss" => i64::from(connection.announced_mss()),
        "rtt" => micros(now.srtt),
        "min_rtt" => micros(now.shortest_rtt),
        "rto" => micros(Some(now.rto)),
        "snd_wnd" => i64::from(now.snd_wnd),
        _ => return Refusal::new(format!("`{name}`, which our TCP does not know")),
    })
}

/// TCP_INFINITE_SSTHRESH.
const INFINITE_SSTHRESH: i64 = 0x7fff_ffff;
/// The states of loss recovery, by their numbers.
const STATES: [&str; 5] = [
    "TCP_CA_Open",
    "TCP_CA_Disorder",
    "TCP_CA_CWR",
    "TCP_CA_Recovery",
    "TCP_CA_Loss",
];
