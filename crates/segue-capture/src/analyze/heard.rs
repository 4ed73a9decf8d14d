//! A message of signalling, before the report.

use super::decode::Address;
use super::model::{Signal, SignalKind};

/// A signal before the report: with its time on the common clock, and the flow by number.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub time_ns: u64,
    pub capture: u8,
    pub interface: u32,
    pub kind: SignalKind,
    pub outer: (Address, Address),
    pub about: Option<Address>,
    pub flow: Option<u64>,
    /// It came to the host that was captured.
    pub inbound: bool,
    /// Its sender waits for an answer, which has this number or a later one.
    pub asks: bool,
    pub serial: Option<u32>,
}

impl Heard {
    /// For the report.
    pub(super) fn report(&self, start_ns: u64) -> Signal {
        Signal {
            time_s: self.time_ns.saturating_sub(start_ns) as f64 / 1e9,
            capture: self.capture,
            interface: self.interface,
            kind: self.kind,
            source: self.outer.0.ip(),
            destination: self.outer.1.ip(),
            about: self.about.map(Address::ip),
            flow: self.flow,
        }
    }
}

impl Heard {
    pub(super) const fn is_answer(&self) -> bool {
        matches!(
            self.kind,
            SignalKind::BindingAcknowledgement
                | SignalKind::HomeTest
                | SignalKind::CareOfTest
                | SignalKind::LocatorUpdateAcknowledgement
                | SignalKind::AsconfAcknowledgement
        )
    }

    /// Whether this answers a message, or a later copy of it.
    pub(super) fn answers(&self, message: &Self) -> bool {
        let from_him = message.outer.1 == self.outer.0;
        let fits = match (message.kind, self.kind) {
            (SignalKind::BindingUpdate, SignalKind::BindingAcknowledgement)
            | (SignalKind::HomeTestInit, SignalKind::HomeTest)
            | (SignalKind::CareOfTestInit, SignalKind::CareOfTest) => from_him,
            // locators of his may have changed meanwhile
            (SignalKind::LocatorUpdate, SignalKind::LocatorUpdateAcknowledgement) => {
                message.outer.1.nid() == self.outer.0.nid() && message.about == self.about
            }
            (SignalKind::AsconfAdd | SignalKind::AsconfSetPrimary, SignalKind::AsconfAcknowledgement) => true,
            _ => false,
        };
        let number = |s: &Self| s.serial.unwrap_or_default();
        fits && self.time_ns >= message.time_ns && number(self).wrapping_sub(number(message)) as i32 >= 0
    }
}
