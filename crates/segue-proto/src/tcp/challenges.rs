//! Challenge ACKs, of which there are not too many (RFC 5961 section 7).

use crate::time::Instant;

/// Challenge ACKs sent in one second of the driver's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    second: u64,
    sent: u32,
}

impl Challenges {
    /// Whether another may be sent now, of so many per second; then it is counted.
    pub fn take(&mut self, now: Instant, most: u32) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if self.second != second {
            *self = Self { second, sent: 0 };
        }
        let may = self.sent < most;
        self.sent += u32::from(may);
        may
    }
}
