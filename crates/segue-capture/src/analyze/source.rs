//! Bytes of captures, wherever they come from.

use std::io::{Error, Read};

/// Bytes of a capture, as they come.
pub(super) type Source = Box<dyn Read + Send>;

/// What the operating system says, without its number for it.
pub(super) fn words(error: &Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
