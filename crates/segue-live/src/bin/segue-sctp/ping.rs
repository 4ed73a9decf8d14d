//! `ping`: round-trip times of messages that a `listen --echo` returns.

use crate::calling::{Call, in_words};
use crate::options::Ping;
use crate::report::{Report, with_causes};
use crate::setup;
use anyhow::{Result, bail};
use segue_live::{Driver, DriverEvent};
use segue_proto::sctp::{AssociationId, Event, SendOptions};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use segue_wire::sctp::ErrorCause;
use serde_json::json;
use std::os::fd::AsFd as _;

/// Marks a message of ours; its number and time of departure follow.
const MAGIC: &[u8; 8] = b"segue-pg";
const HEADER: usize = 8 + 8 + 8;

/// `segue-sctp ping`.
pub(crate) fn ping(options: Ping) -> Result<u8> {
    if !(HEADER as u64..=60_000).contains(&options.size.bytes()) {
        bail!("--size: expected {HEADER} B to 60 kB");
    }
    if options.interval < Duration::from_millis(1) {
        bail!("--interval: expected at least 1 ms");
    }
    let calling = &options.calling;
    setup::check(calling)?;
    let port = setup::local_port(calling.local_port)?;
    let mut driver = setup::driver(&options.common, port, false)?;
    let signals = setup::signals()?;
    let id = driver.connect(&calling.peer, calling.port)?;
    let mut call = Some(Call::new(
        driver.now(),
        calling,
        &driver,
        options.common.remote_udp_port,
    ));
    let mut pinger = Pinger {
        report: Report::new(options.common.json, driver.now()),
        id,
        sent: 0,
        round_trips: Vec::new(),
        next: None,
        closing: false,
    };
    let mut status = 0;
    let mut ended = false;
    while !ended {
        let next = pinger.next.or(call.as_ref().map(Call::next_at));
        driver.turn(next.filter(|_| !pinger.closing), &[signals.as_fd()])?;
        let now = driver.now();
        if let Some(ending) = setup::pending(&signals) {
            status = ending.status();
            if pinger.closing {
                break;
            }
            pinger.shut_down(now, &mut driver);
        }
        while let Some(event) = driver.poll_event() {
            match event {
                DriverEvent::Association(_, Event::Connected) => {
                    pinger.next = Some(now);
                    call = None;
                }
                DriverEvent::Association(_, Event::Unreachable { address, reason }) => {
                    let why = in_words(reason);
                    let text = format!("{address} is unreachable: {why}");
                    let fields = json!({"address": address, "reason": why});
                    pinger.report.say(now, "unreachable", fields, &text)?;
                }
                DriverEvent::Association(_, Event::Readable) => pinger.read(now, &mut driver)?,
                DriverEvent::Association(_, Event::Closed) => ended = true,
                DriverEvent::Association(_, Event::Lost) => {
                    pinger
                        .report
                        .say(now, "lost", json!({}), "the peer does not answer")?;
                    (ended, status) = (true, 1);
                }
                DriverEvent::Association(_, Event::Aborted { causes }) => {
                    let names: Vec<&str> = causes.iter().map(ErrorCause::name).collect();
                    let text = with_causes("the peer refuses", &names);
                    pinger
                        .report
                        .say(now, "aborted", json!({"causes": names}), &text)?;
                    (ended, status) = (true, 1);
                }
                _ => {}
            }
        }
        if let Some(waiting) = &mut call
            && !pinger.closing
            && !ended
            && waiting.is_over(now, &pinger.report)?
        {
            status = 1;
            pinger.shut_down(now, &mut driver);
        }
        let all = options.count.is_some_and(|count| pinger.sent >= count);
        if !pinger.closing && pinger.next.is_some_and(|at| at <= now) {
            if all {
                // an interval was left for the last answer
                pinger.shut_down(now, &mut driver);
            } else {
                pinger.send(now, &mut driver, options.size.bytes() as usize, options.interval);
            }
        }
        if !pinger.closing && all && pinger.round_trips.len() as u64 == pinger.sent {
            pinger.shut_down(now, &mut driver);
        }
    }
    driver.send_now();
    setup::end_capture(&mut driver, &options.common)?;
    pinger.summary(driver.now())?;
    let silent = pinger.sent > 0 && pinger.round_trips.is_empty();
    Ok(if status == 0 && silent { 1 } else { status })
}

struct Pinger {
    report: Report,
    id: AssociationId,
    sent: u64,
    round_trips: Vec<Duration>,
    next: Option<Instant>,
    closing: bool,
}

impl Pinger {
    fn send(&mut self, now: Instant, driver: &mut Driver, size: usize, interval: Duration) {
        let mut message = MAGIC.to_vec();
        message.extend(self.sent.to_be_bytes());
        message.extend(now.as_nanos().to_be_bytes());
        message.resize(size, 0);
        if let Some(association) = driver.association_mut(self.id)
            && association
                .send(now, 0, Data::Bytes(message.into()), SendOptions::default())
                .is_ok()
        {
            self.sent += 1;
        }
        self.next = Some(self.next.map_or(now, |due| due + interval));
    }

    fn read(&mut self, now: Instant, driver: &mut Driver) -> Result<()> {
        let Some(association) = driver.association_mut(self.id) else {
            return Ok(());
        };
        while let Some(message) = association.recv() {
            let mut bytes = Vec::new();
            for part in &message.parts {
                part.emit(&mut bytes);
            }
            let Some((number, departed)) = read_header(&bytes) else {
                continue;
            };
            let round_trip = now.since(departed);
            self.round_trips.push(round_trip);
            let (local, peer) = (association.route().address, association.primary_path());
            self.report.say(
                now,
                "reply",
                json!({
                    "number": number,
                    "bytes": bytes.len(),
                    "round_trip_ns": round_trip.as_nanos(),
                    "local": local,
                    "peer": peer,
                }),
                &format!(
                    "{} bytes, number {number}, {:.3} ms, {local} to {peer}",
                    bytes.len(),
                    round_trip.as_nanos() as f64 / 1e6
                ),
            )?;
        }
        Ok(())
    }

    fn shut_down(&mut self, now: Instant, driver: &mut Driver) {
        self.closing = true;
        if let Some(association) = driver.association_mut(self.id) {
            association.shutdown(now);
        }
    }

    fn summary(&mut self, now: Instant) -> Result<()> {
        self.round_trips.sort_unstable();
        let of = |index: usize| self.round_trips.get(index).map(|d| d.as_nanos());
        let count = self.round_trips.len();
        let (least, median, most) = (of(0), of(count / 2), of(count.saturating_sub(1)));
        let ms = |ns: Option<u64>| ns.unwrap_or_default() as f64 / 1e6;
        let times = if count == 0 {
            String::new()
        } else {
            let (least, median, most) = (ms(least), ms(median), ms(most));
            format!("; least {least:.3} ms, median {median:.3} ms, most {most:.3} ms")
        };
        self.report.say(
            now,
            "summary",
            json!({
                "sent": self.sent,
                "received": count,
                "min_ns": least,
                "median_ns": median,
                "max_ns": most,
            }),
            &format!("{} sent, {count} returned{times}", self.sent),
        )?;
        Ok(())
    }
}

/// Number and time of departure.
fn read_header(bytes: &[u8]) -> Option<(u64, Instant)> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (departed, _) = rest.split_first_chunk::<8>()?;
    (magic == MAGIC).then(|| {
        (
            u64::from_be_bytes(*number),
            Instant::from_nanos(u64::from_be_bytes(*departed)),
        )
    })
}
