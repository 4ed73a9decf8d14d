//! `ping`: round-trip times of messages that a `listen --echo` returns.

use crate::calling::{Call, in_words};
use crate::options::Ping;
use crate::report::{Report, with_causes};
use crate::session::Shutdown;
use crate::setup;
use anyhow::{Result, bail};
use bytes::Bytes;
use nix::sys::signalfd::SignalFd;
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
    let now = driver.now();
    let mut pinger = Pinger {
        report: Report::new(options.common.json, now),
        signals,
        id,
        call: Some(Call::new(now, calling, &driver, options.common.remote_udp_port)),
        sent: 0,
        round_trips: Vec::new(),
        next: None,
        replied: now,
        closing: false,
        ending: None,
    };
    let done = pinger.turns(&mut driver, &options);
    if done.is_err() {
        // the peer is not to wait for who is gone
        pinger.abort(&mut driver);
    }
    driver.send_now();
    let ended = setup::end_capture(&mut driver, &options.common);
    let status = setup::first_failure(done, ended)?;
    pinger.summary(driver.now())?;
    let silent = pinger.sent > 0 && pinger.round_trips.is_empty();
    Ok(if status == 0 && silent { 1 } else { status })
}

struct Pinger {
    report: Report,
    signals: SignalFd,
    id: AssociationId,
    /// Until the association is up.
    call: Option<Call>,
    sent: u64,
    round_trips: Vec<Duration>,
    next: Option<Instant>,
    /// When the last message came back.
    replied: Instant,
    closing: bool,
    ending: Option<Shutdown>,
}

impl Pinger {
    /// Until the association has ended.
    fn turns(&mut self, driver: &mut Driver, options: &Ping) -> Result<u8> {
        let mut status = 0;
        loop {
            driver.turn(self.next_at(), &[self.signals.as_fd()])?;
            let now = driver.now();
            if let Some(ending) = setup::pending(&self.signals) {
                status = ending.status();
                if self.closing {
                    self.abort(driver);
                    return Ok(status);
                }
                self.ending = Some(Shutdown {
                    cause: ending,
                    since: now,
                });
                self.shut_down(now, driver);
            }
            while let Some(event) = driver.poll_event() {
                if let DriverEvent::Association(_, event) = event
                    && let Some(failed) = self.on_event(now, driver, event)?
                {
                    return Ok(status.max(failed));
                }
            }
            if self
                .ending
                .is_some_and(|ending| now >= ending.over_at(self.replied))
            {
                eprintln!("segue-sctp: the peer does not answer: its association is aborted");
                self.abort(driver);
                return Ok(status.max(1));
            }
            if let Some(waiting) = &mut self.call
                && !self.closing
                && waiting.is_over(now, &self.report)?
            {
                status = 1;
                self.shut_down(now, driver);
            }
            let all = options.count.is_some_and(|count| self.sent >= count);
            if !self.closing && self.next.is_some_and(|at| at <= now) {
                if all {
                    // an interval was left for the last answer
                    self.shut_down(now, driver);
                } else {
                    self.send(now, driver, options.size.bytes() as usize, options.interval);
                }
            }
            if !self.closing && all && self.round_trips.len() as u64 == self.sent {
                self.shut_down(now, driver);
            }
        }
    }

    /// When there is something to do of its own accord.
    fn next_at(&self) -> Option<Instant> {
        if self.closing {
            return self.ending.map(|ending| ending.over_at(self.replied));
        }
        self.next.or(self.call.as_ref().map(Call::next_at))
    }

    /// The status, if the association has ended.
    fn on_event(&mut self, now: Instant, driver: &mut Driver, event: Event) -> Result<Option<u8>> {
        match event {
            Event::Connected => {
                self.next = Some(now);
                self.call = None;
            }
            Event::Unreachable { address, reason } => {
                let why = in_words(reason);
                let text = format!("{address} is unreachable: {why}");
                let fields = json!({"address": address, "reason": why});
                self.report.say(now, "unreachable", fields, &text)?;
            }
            Event::Readable => self.read(now, driver)?,
            Event::Closed => return Ok(Some(0)),
            Event::Lost => {
                self.report
                    .say(now, "lost", json!({}), "the peer does not answer")?;
                return Ok(Some(1));
            }
            Event::Aborted { causes } => {
                let names: Vec<&str> = causes.iter().map(ErrorCause::name).collect();
                let text = with_causes("the peer refuses", &names);
                self.report.say(now, "aborted", json!({"causes": names}), &text)?;
                return Ok(Some(1));
            }
            _ => {}
        }
        Ok(None)
    }

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
            self.replied = now;
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

    fn abort(&self, driver: &mut Driver) {
        let now = driver.now();
        if let Some(association) = driver.association_mut(self.id) {
            association.abort(now, Bytes::from_static(b"interrupted"));
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
