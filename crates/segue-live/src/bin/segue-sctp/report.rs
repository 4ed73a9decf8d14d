//! What the tools print: lines for a person, or one JSON object per line.

use segue_proto::Instant;
use segue_proto::sctp::Refused;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Prints what happens.
pub(crate) struct Report {
    json: bool,
    start: Instant,
}

impl Report {
    pub(crate) const fn new(json: bool, start: Instant) -> Self {
        Self { json, start }
    }

    /// Says that `event` happened: `text` to a person, `fields` beside the time as JSON. Times are in nanoseconds of the
    /// machine's monotonic clock, the same for all programs that run on it.
    pub(crate) fn say(&self, now: Instant, event: &str, fields: Value, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let mut object = Map::new();
            object.insert("event".to_owned(), event.into());
            object.insert("time_ns".to_owned(), now.as_nanos().into());
            if let Value::Object(fields) = fields {
                object.extend(fields);
            }
            writeln!(out, "{}", Value::Object(object))?;
        } else {
            writeln!(out, "{:10.6} {text}", now.since(self.start).as_secs_f64())?;
        }
        out.flush()
    }
}

/// A text, and the causes that were given.
pub(crate) fn with_causes(what: &str, causes: &[&str]) -> String {
    if causes.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {}", causes.join(", "))
    }
}

/// What an association did not act on, by reason.
pub(crate) fn refused(refused: &Refused) -> Value {
    json!({
        "bad_tag": refused.bad_tag,
        "after_close": refused.after_close,
        "unexpected": refused.unexpected,
        "unknown": refused.unknown,
        "impossible_acks": refused.impossible_acks,
        "beyond_window": refused.beyond_window,
        "bad_stream": refused.bad_stream,
        "bad_heartbeat_acks": refused.bad_heartbeat_acks,
        "bad_asconf_serial": refused.bad_asconf_serial,
        "unauthenticated": refused.unauthenticated,
        "bad_auth": refused.bad_auth,
    })
}
