//! Applications: what sends and receives the data whose fate a handover is measured by.
//!
//! An [`Application`] serves one connection. It speaks to the transport through [`Connection`], which an SCTP
//! association, a TCP connection and a socket of UDP implement. User data is synthetic ([`segue_wire::Data::Synthetic`]), so
//! that a receiver can check every byte without any being stored, and messages of a bulk transfer cost no allocation.

mod account;
mod application;
mod config;
mod connection;
mod constant_rate;
mod distribution;
mod machine;
mod object;
mod on_off;
mod request;
mod video;
mod voice;
mod web;

pub use application::Application;
pub use config::{Config, DATAGRAM, Kind, Role, Transport};
pub use connection::{Connection, SendRefused};
pub use distribution::{Holding, HoldingKind};
pub use object::REQUEST;
pub use on_off::OnOffConfig;
pub use video::{Segment, Stall, VideoConfig, Viewing};
pub use voice::{Codec, FRAME_INTERVAL, Frame, HeardCall, VoiceCall, VoiceConfig};
pub use web::{Page, WebConfig};

use crate::time::{Duration, Instant};

/// What an application reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppEvent {
    /// Its connection is established.
    Connected,
    /// The first user data arrived.
    FirstByte,
    /// Everything it had to send was sent and acknowledged.
    TransferComplete {
        /// Bytes sent.
        bytes: u64,
    },
    /// A response was received in full, or a whole web page, or a segment of a film.
    ResponseReceived {
        /// Time since its request, or since that for the page.
        latency: Duration,
    },
    /// Its connection is gone.
    Disconnected,
}

/// What applications of one kind keep an account of, over all their connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Record<'a> {
    /// Calls.
    Calls {
        /// What it said.
        made: &'a [VoiceCall],
        /// What it heard.
        heard: &'a [HeardCall],
    },
    /// The web pages that somebody asked for.
    Pages(&'a [Page]),
    /// What came of a film.
    Viewing(&'a Viewing),
}

/// What an application has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// User bytes handed to the transport.
    pub bytes_sent: u64,
    /// User bytes received.
    pub bytes_received: u64,
    /// Messages handed to the transport.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Messages whose content was not what was expected at their place.
    pub messages_corrupt: u64,
    /// Messages that were due while the send buffer was full, and not sent (constant rate).
    pub messages_skipped: u64,
    /// Responses received in full (request client); objects received, or asked for (web, video).
    pub responses: u64,
    /// Sum of their latencies; of the load times of pages (web), of segments (video).
    pub response_time: Duration,
    /// When the first user data came.
    pub first_received: Option<Instant>,
    /// When the last user data came.
    pub last_received: Option<Instant>,
}

#[cfg(test)]
mod tests;
