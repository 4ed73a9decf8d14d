//! Links whose rate, round trip and loss come from a file: measured networks.
//!
//! Both kinds are known to the end from the beginning, so that when a packet will have been sent can be worked out when it
//! is queued, as on a link of constant rate: the hop stays one event.

use crate::constellation::LIGHT_M_PER_S;
use segue_proto::units::BitRate;
use segue_proto::{Duration, Instant};

/// Bytes that a delivery opportunity of Mahimahi carries.
const OPPORTUNITY: u32 = 1500;

/// What a link does over time.
#[derive(Clone, PartialEq, Debug)]
pub enum LinkTrace {
    /// Mahimahi (Netravali et al., USENIX ATC 2015): moments, in milliseconds, at which 1500 bytes can leave. The file begins
    /// again when it has ended. What is not used of an opportunity is gone; a packet may take several.
    Opportunities {
        /// Moments within the first pass, in order.
        at_ms: Vec<u64>,
        /// Length of a pass.
        period_ms: u64,
    },
    /// Rows of time, rate, round trip and loss; each holds until the next, the last for ever.
    Rows(Vec<Row>),
}

/// A row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// From when.
    pub from: Instant,
    /// Rate, bit/s; zero for an outage.
    pub rate_bps: f64,
    /// Half of the round trip; nothing for the link's own delay.
    pub delay: Option<Duration>,
    /// Probability of loss; nothing for the link's own.
    pub loss: Option<f64>,
}

/// What a link has by itself, where the trace says nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Own {
    /// Rate, bit/s.
    pub rate_bps: f64,
    /// Delay.
    pub delay: Duration,
}

impl Own {
    /// Of a direction of a link.
    #[must_use]
    pub fn of(rate: BitRate, delay: Duration) -> Self {
        Self {
            rate_bps: rate.bits_per_second() as f64,
            delay,
        }
    }
}

/// How far a link has come in its trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// Number of the opportunity, over all passes, and bytes of it that are used.
    opportunity: u64,
    used: u32,
}

impl LinkTrace {
    /// Reads Mahimahi's `.up` or `.down`: a whole number of milliseconds in each line, not decreasing.
    ///
    /// # Errors
    /// The line, from 1, and what is wrong there.
    pub fn mahimahi(text: &str) -> Result<Self, (usize, String)> {
        let mut at_ms: Vec<u64> = Vec::new();
        for (number, line) in lines(text) {
            let ms: u64 = line.parse().map_err(|_| {
                let problem = format!("`{}`: expected a whole number of milliseconds", short(line));
                (number, problem)
            })?;
            if at_ms.last().is_some_and(|last| *last > ms) {
                return Err((
                    number,
                    format!("{ms} ms: expected no less than in the line before"),
                ));
            }
            if ms > LONGEST_MS {
                return Err((number, format!("{ms} ms: expected at most {LONGEST_MS}")));
            }
            at_ms.push(ms);
        }
        let period_ms = at_ms.last().copied().unwrap_or(0);
        if period_ms == 0 {
            return Err((1, "expected an opportunity after 0 ms".to_owned()));
        }
        Ok(Self::Opportunities { at_ms, period_ms })
    }

    /// Reads CSV with a heading: `time_s`, and perhaps `rate_bps`, `rtt_s` or `distance_m`, and `loss`. What it has not, the link
    /// has by itself; a distance, metres, adds to its delay what light takes for it.
    ///
    /// # Errors
    /// The line, from 1, and what is wrong there.
    pub fn csv(text: &str, own: Own) -> Result<Self, (usize, String)> {
        const COLUMNS: &str =
            "expected a heading with time_s, and one or more of rate_bps, rtt_s or distance_m, and loss";
        let mut all = lines(text);
        let (number, heading) = all.next().ok_or((1, COLUMNS.to_owned()))?;
        let names: Vec<&str> = heading.split(',').map(str::trim).collect();
        let known = ["time_s", "rate_bps", "rtt_s", "distance_m", "loss"];
        if let Some(other) = names.iter().find(|n| !known.contains(n)) {
            return Err((number, format!("`{}`: {COLUMNS}", short(other))));
        }
        let column = |name: &str| names.iter().position(|n| *n == name);
        let (rate, rtt, distance) = (column("rate_bps"), column("rtt_s"), column("distance_m"));
        let Some(time) =
            column("time_s").filter(|_| names.len() > 1 && (rtt.is_none() || distance.is_none()))
        else {
            return Err((number, COLUMNS.to_owned()));
        };
        let loss = column("loss");
        let mut rows: Vec<Row> = Vec::new();
        for (number, line) in all {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if cells.len() != names.len() {
                let problem = format!("{} columns: expected {}", cells.len(), names.len());
                return Err((number, problem));
            }
            let value = |at: usize, most: f64| {
                let value: Result<f64, _> = cells[at].parse();
                value.ok().filter(|v| (0.0..=most).contains(v)).ok_or_else(|| {
                    let problem = format!(
                        "{} = `{}`: expected a number from 0 to {most}",
                        names[at],
                        short(cells[at])
                    );
                    (number, problem)
                })
            };
            let from = Instant::ZERO + Duration::from_secs_f64(value(time, 1e6)?);
            if rows.last().is_some_and(|last| last.from >= from) {
                return Err((number, "time_s: expected more than in the line before".to_owned()));
            }
            let rtt = rtt.map(|at| value(at, 3600.0)).transpose()?;
            let distance = distance.map(|at| value(at, 1e12)).transpose()?;
            let far = distance.map(|m| own.delay + Duration::from_secs_f64(m / LIGHT_M_PER_S));
            rows.push(Row {
                from,
                rate_bps: rate.map_or(Ok(own.rate_bps), |at| value(at, 1e13))?,
                delay: rtt.map(|rtt| Duration::from_secs_f64(rtt / 2.0)).or(far),
                loss: loss.map(|at| value(at, 1.0)).transpose()?,
            });
        }
        match rows.last() {
            None => Err((number, "expected rows below the heading".to_owned())),
            Some(last) if last.rate_bps < 1.0 => Err((
                lines(text).last().map_or(1, |(number, _)| number),
                "rate_bps: expected at least 1 in the last row, which holds for ever".to_owned(),
            )),
            Some(_) => Ok(Self::Rows(rows)),
        }
    }

    /// When `length` bytes have been sent that begin at `start`, no earlier than what was sent before.
    #[must_use]
    pub fn sent_by(&self, cursor: &mut Cursor, start: Instant, length: u32) -> Instant {
        match self {
            Self::Opportunities { at_ms, period_ms } => {
                let time = |n: u64| {
                    let (pass, place) = (n / at_ms.len() as u64, n % at_ms.len() as u64);
                    Instant::from_nanos((pass * period_ms + at_ms[place as usize]) * 1_000_000)
                };
                // those that passed before anything was there
                if time(cursor.opportunity) < start {
                    let pass = start.as_nanos() / 1_000_000 / period_ms;
                    cursor.opportunity = cursor
                        .opportunity
                        .max(pass.saturating_sub(1) * at_ms.len() as u64);
                    while time(cursor.opportunity) < start {
                        cursor.opportunity += 1;
                    }
                    cursor.used = 0;
                }
                let mut left = length;
                loop {
                    let room = OPPORTUNITY - cursor.used;
                    if left <= room {
                        cursor.used += left;
                        return time(cursor.opportunity);
                    }
                    left -= room;
                    cursor.opportunity += 1;
                    cursor.used = 0;
                }
            }
            Self::Rows(rows) => {
                let mut at = rows.partition_point(|r| r.from <= start).saturating_sub(1);
                let (mut now, mut bits) = (start, f64::from(length) * 8.0);
                loop {
                    let rate = rows[at].rate_bps;
                    let end = rows.get(at + 1).map(|next| next.from);
                    let needed = if rate > 0.0 { bits / rate } else { f64::INFINITY };
                    match end {
                        Some(end) if needed > end.since(now).as_secs_f64() => {
                            bits -= rate * end.since(now).as_secs_f64();
                            (now, at) = (end, at + 1);
                        }
                        _ => return now + Duration::from_secs_f64(needed),
                    }
                }
            }
        }
    }

    /// Delay and probability of loss for what is sent at `time`, where the trace has them.
    #[must_use]
    pub fn at(&self, time: Instant) -> (Option<Duration>, Option<f64>) {
        match self {
            Self::Opportunities { .. } => (None, None),
            Self::Rows(rows) => {
                let row = &rows[rows.partition_point(|r| r.from <= time).saturating_sub(1)];
                (row.delay, row.loss)
            }
        }
    }
}

/// Longest pass: a day.
const LONGEST_MS: u64 = 86_400_000;

/// Lines that are not empty and no comments, with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// A word of a message, not endless.
pub(crate) fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Own = Own {
        rate_bps: 8000.0,
        delay: Duration::from_millis(5),
    };

    fn ms(n: u64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    #[test]
    fn opportunities_carry_1500_bytes_each_and_begin_again() {
        let trace = LinkTrace::mahimahi("3\n3\n10\n").unwrap();
        let mut cursor = Cursor::default();
        // two small packets share one, a third takes the rest of it and the next
        let sent = [700, 700, 1500, 1500].map(|length| trace.sent_by(&mut cursor, ms(0), length));
        assert_eq!(sent, [ms(3), ms(3), ms(3), ms(10)]);
        // those at 13 and 13 are gone by 14
        assert_eq!(trace.sent_by(&mut cursor, ms(14), 1500), ms(20));
        assert_eq!(trace.sent_by(&mut cursor, ms(20), 100), ms(23));
        assert_eq!(trace.sent_by(&mut cursor, ms(5001), 1500), ms(5003));
    }

    #[test]
    fn a_packet_takes_the_rates_that_it_meets() {
        let trace = LinkTrace::csv(
            "time_s,rate_bps,rtt_s,loss\n0,8000,0.1,0\n1,0,0.1,0\n2,16000,0.5,0.25\n",
            OWN,
        )
        .unwrap();
        let mut cursor = Cursor::default();
        // 500 bytes at 8 kbit/s, then an outage, then the other 500 at 16 kbit/s
        assert_eq!(trace.sent_by(&mut cursor, ms(500), 1000), ms(2250));
        assert_eq!(trace.sent_by(&mut cursor, ms(3000), 1000), ms(3500));
        assert_eq!(trace.at(ms(0)), (Some(Duration::from_millis(50)), Some(0.0)));
        assert_eq!(trace.at(ms(9000)), (Some(Duration::from_millis(250)), Some(0.25)));
    }

    #[test]
    fn light_takes_a_millisecond_for_300_km_beside_what_a_link_has_by_itself() {
        let trace = LinkTrace::csv("time_s,distance_m\n0,299792.458\n1,2997924.58\n", OWN).unwrap();
        assert_eq!(trace.at(ms(0)), (Some(Duration::from_millis(6)), None));
        assert_eq!(trace.at(ms(1000)), (Some(Duration::from_millis(15)), None));
        // its own 8 kbit/s
        assert_eq!(trace.sent_by(&mut Cursor::default(), ms(0), 100), ms(100));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line) in [
            ("1\nx\n", 2),
            ("5\n\n4\n", 3),
            ("", 1),
            ("0\n", 1),
            ("1\n-1\n", 2),
        ] {
            assert_eq!(LinkTrace::mahimahi(text).map_err(|e| e.0), Err(line), "{text:?}");
        }
        for (text, line) in [
            ("", 1),
            ("time_s,bandwidth\n", 1),
            ("time_s\n0\n", 1),
            ("time_s,rate_bps\n", 1),
            ("# measured\ntime_s,rate_bps\n0,1000\n0,2000\n", 4),
            ("time_s,rate_bps\n0,1000,5\n", 2),
            ("time_s,rate_bps,loss\n0,1000,1.5\n", 2),
            ("time_s,rtt_s,distance_m\n0,1,1\n", 1),
            ("time_s,distance_m\n0,-1\n", 2),
            ("time_s,rate_bps\n0,nan\n", 2),
            ("time_s,rate_bps\n0,1000\n1,0\n", 3),
        ] {
            assert_eq!(LinkTrace::csv(text, OWN).map_err(|e| e.0), Err(line), "{text:?}");
        }
    }
}
