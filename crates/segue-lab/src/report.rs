//! What the program tells: one JSON object per line.

use segue_proto::Instant;
use serde_json::{Map, Value};
use std::io::{self, Write as _};

/// Says that `event` happened. Times are in nanoseconds of the machine's monotonic clock, the same for all programs that run
/// on it.
pub(crate) fn say(now: Instant, event: &str, fields: Value) -> io::Result<()> {
    let mut object = Map::new();
    object.insert("event".to_owned(), event.into());
    object.insert("time_ns".to_owned(), now.as_nanos().into());
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}", Value::Object(object))?;
    out.flush()
}
