//! TCP (RFC 9293) as machines: an [`Endpoint`] with its [`Connection`]s.
//!
//! ```text
//!   Endpoint      which connection a segment is for; listening ports; RSTs for what is for none
//!   Connection    the state; arrive (segments in), output (segments out)
//!     Sender      ack, losses, transmit, and what they are about, each part by itself
//!                 (sender/*, send_buffer, scoreboard, segment_size, rtt, congestion::*)
//!     Receiver    what has arrived, the window, when it is acknowledged (receiver, reassembly)
//! ```
//!
//! | what | where |
//! |---|---|
//! | states, opening and closing, simultaneous too, TIME-WAIT | RFC 9293 section 3.10; reuse in TIME-WAIT RFC 6191 |
//! | blind attacks: challenge ACKs, acceptable acknowledgements | RFC 5961 |
//! | initial sequence numbers; timestamps that tell nothing | RFC 6528; RFC 7323 section 7.1 |
//! | window scaling, timestamps, PAWS | RFC 7323 |
//! | SACK, DSACK | RFC 2018, RFC 2883 |
//! | timer | RFC 6298, or Linux's variant ([`RtoRule`]) |
//! | losses | RFC 6675, forward acknowledgement, RACK-TLP RFC 8985 ([`LossDetection`]); RFC 6582 without SACK; early retransmit RFC 5827; limited transmit RFC 3042 |
//! | the way down | at once, rate halving, PRR RFC 6937 and RFC 9937 ([`Reduction`]) |
//! | needless retransmissions | F-RTO RFC 5682, or RFC 4138 ([`FrtoRule`]); Eifel RFC 3522, DSACK RFC 3708 |
//! | networks that are known from before | Cottingham and Vidales, section 7; draft-ietf-tsvwg-careful-resume ([`Remedy`]) |
//! | windows | [`Reno`](crate::congestion::Reno) RFC 5681, [`Cubic`](crate::congestion::Cubic) RFC 9438, [`Hybla`](crate::congestion::Hybla), [`Veno`](crate::congestion::Veno); idle and unused windows RFC 2861 |
//! | silly windows, Nagle, closed windows | RFC 9293 sections 3.7.4, 3.8.6 |
//!
//! [`Profile`] bundles them as three Linuxes had them. Not there: ECN, urgent data (the pointer is ignored, the data is
//! taken as any other), Fast Open, keep-alives, and Linux's growing of buffers: a buffer has its size from the start.

mod challenges;
mod config;
mod connection;
mod connections;
mod counters;
mod endpoint;
mod ends;
mod event;
mod initial_numbers;
mod networks;
mod reassembly;
mod receiver;
mod rtt;
mod scoreboard;
mod segment_size;
mod send_buffer;
mod sender;
mod strays;
mod timestamps;
mod window_clamp;

pub use config::{
    Config, FrtoRule, InitialWindow, LossDetection, NagleRule, Profile, Reduction, Remedy, RtoRule, WindowUse,
};
pub use connection::Connection;
pub use counters::{Counters, EndpointCounters, RecoveryCounters, Refused};
pub use endpoint::Endpoint;
pub use event::{ConnectionId, Event, Outstanding, Phase, SendError, Snapshot, State};
pub use networks::Remembered;
pub use window_clamp::{ClampCounters, WindowClamp};
