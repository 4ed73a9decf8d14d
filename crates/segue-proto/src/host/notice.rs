//! What applications are told.

use crate::app::{Application, Connection};
use crate::time::Instant;
use core::hint::cold_path;

/// What an application is told of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    Connected,
    /// The peer began anew.
    Restarted,
    Readable,
    Writable,
    /// Everything sent has arrived.
    Dry,
    /// A timer of the application's own is due.
    Due,
}

impl Notice {
    pub fn give(self, now: Instant, application: &mut Application, connection: &mut impl Connection) {
        match self {
            Self::Connected => {
                cold_path();
                application.on_connected(now, connection);
            }
            Self::Restarted => {
                cold_path();
                application.on_restarted(now, connection);
            }
            Self::Readable => application.on_readable(now, connection),
            Self::Writable => application.on_writable(now, connection),
            Self::Dry => application.on_dry(now, connection),
            Self::Due => {
                cold_path();
                application.on_timeout(now, connection);
            }
        }
    }
}
