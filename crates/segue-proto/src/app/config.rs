//! What an application does, and with whom.

use super::object::REQUEST;
use super::on_off::OnOffConfig;
use super::video::VideoConfig;
use super::voice::VoiceConfig;
use super::web::WebConfig;
use crate::location::Name;
use crate::time::Duration;
use crate::udp;
use crate::units::{BitRate, Bytes};
use core::net::Ipv6Addr;
use segue_wire::payload::PLACEABLE_LEN;
use serde::{Deserialize, Serialize};

/// Who opens the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Waits for peers. Every connection accepted gets an application of its own.
    Listen,
    /// Connects to a peer at `start`, or as soon after it as there is an address to connect from.
    Connect {
        /// Addresses of the peer.
        peer: Vec<Ipv6Addr>,
        /// Port of the peer.
        port: u16,
        /// When, from the driver's zero.
        start: Duration,
    },
    /// Looks the peer up by the host's location client at `start`, and connects to the addresses that are found. A
    /// name that cannot be resolved is looked up again every second.
    ConnectByName {
        /// Name of the peer.
        name: Name,
        /// Port of the peer.
        port: u16,
        /// When, from the driver's zero.
        start: Duration,
    },
}

/// What it does once connected. In a scenario file: a table with `kind` and the kind's own keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// Sends as fast as the transport takes it, like FTP.
    Bulk {
        /// Bytes to send; nothing for no end. The connection is shut down after the last one.
        #[serde(default)]
        total: Option<Bytes>,
        /// Bytes per message; nothing for what fits one DATA chunk, and over TCP for as much as there is room for.
        #[serde(default)]
        message: Option<Bytes>,
    },
    /// Receives, checks and counts.
    Sink,
    /// Sends messages of one size at a constant rate.
    ConstantRate {
        /// Rate of user data.
        rate: BitRate,
        /// Bytes per message.
        message: Bytes,
        /// Bytes to send; nothing for no end.
        #[serde(default)]
        total: Option<Bytes>,
    },
    /// Sends a request, waits for the response, thinks, and starts again.
    RequestClient {
        /// Bytes per request.
        request: Bytes,
        /// Bytes per response: must agree with the server.
        response: Bytes,
        /// Time between a response and the next request.
        #[serde(default)]
        think: Duration,
        /// Number of requests; nothing for no end.
        #[serde(default)]
        count: Option<u64>,
    },
    /// Answers every `request` bytes with `response` bytes.
    RequestServer {
        /// Bytes per request: must agree with the client.
        request: Bytes,
        /// Bytes per response.
        response: Bytes,
    },
    /// Sends messages of one size at a constant rate while it is on.
    OnOff(OnOffConfig),
    /// Talks, and hears who talks too.
    Voice(VoiceConfig),
    /// Hears calls, and says nothing.
    VoiceReceiver,
    /// Sends who asks as many bytes as it asks for.
    ObjectServer,
    /// Reads web pages, of an object server.
    Web(WebConfig),
    /// Watches a film, of an object server.
    Video(VideoConfig),
}

/// What carries an application's data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// An SCTP association.
    #[default]
    Sctp,
    /// A TCP connection, to the first address of the peer.
    Tcp,
    /// A socket of UDP, to the first address of the peer: for messages at a constant rate.
    Udp,
}

/// An application of a host.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Over what.
    pub transport: Transport,
    /// Who opens the connection.
    pub role: Role,
    /// What it does.
    pub kind: Kind,
}

impl Config {
    /// What is wrong with these values, if anything.
    ///
    /// # Errors
    /// One line that names the key and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if matches!(&self.role, Role::Connect { peer, .. } if peer.is_empty()) {
            return Err("peer: expected at least one address".to_owned());
        }
        self.check_values()?;
        if self.transport == Transport::Udp {
            return self.check_datagrams();
        }
        Ok(())
    }

    /// What does not hang on the transport, but for TCP and calls.
    fn check_values(&self) -> Result<(), String> {
        let zero = |key: &str| Err(format!("{key}: expected more than zero"));
        match &self.kind {
            Kind::Voice(_) | Kind::VoiceReceiver if self.transport == Transport::Tcp => {
                Err("kind: expected \"voice\" over UDP or SCTP, which keep messages apart".to_owned())
            }
            Kind::Voice(VoiceConfig {
                pauses: Some((talk, pause)),
                ..
            }) if talk.is_zero() || pause.is_zero() => Err("pauses: expected more than zero".to_owned()),
            Kind::Video(config)
                if config.ladder.is_empty()
                    || config.ladder.iter().any(|rate| rate.bits_per_second() == 0) =>
            {
                Err("ladder: expected at least one rate above zero".to_owned())
            }
            Kind::Video(config) if !config.ladder.is_sorted() => {
                Err("ladder: expected rates from the lowest up".to_owned())
            }
            Kind::Video(config) if config.segment.is_zero() => zero("segment"),
            Kind::Video(config) if config.cushion.is_zero() => zero("cushion"),
            Kind::Web(WebConfig { request_bytes, .. }) | Kind::Video(VideoConfig { request_bytes, .. })
                if !REQUEST.contains(request_bytes) =>
            {
                Err(format!(
                    "request: expected {} B to {} B",
                    REQUEST.start(),
                    REQUEST.end()
                ))
            }
            Kind::OnOff(config) if config.rate.bits_per_second() == 0 => zero("rate"),
            Kind::OnOff(config) if config.message.bytes() == 0 => zero("message"),
            Kind::OnOff(config) if config.on.mean().is_zero() => zero("on"),
            Kind::OnOff(config) if !config.on.has_mean() || !config.off.has_mean() => {
                Err("shape: expected more than 1".to_owned())
            }
            Kind::Bulk {
                message: Some(message),
                ..
            } if message.bytes() == 0 => zero("message"),
            Kind::ConstantRate { rate, .. } if rate.bits_per_second() == 0 => zero("rate"),
            Kind::ConstantRate { message, .. } if message.bytes() == 0 => zero("message"),
            Kind::RequestClient {
                request, response, ..
            }
            | Kind::RequestServer { request, response }
                if request.bytes() == 0 || response.bytes() == 0 =>
            {
                zero("request and response")
            }
            _ => Ok(()),
        }
    }

    /// What is lost over UDP nobody sends again, so that an application must do without it, and tell by a datagram alone
    /// where it belongs.
    fn check_datagrams(&self) -> Result<(), String> {
        match &self.kind {
            Kind::Sink | Kind::Voice(_) | Kind::VoiceReceiver => Ok(()),
            Kind::ConstantRate { message, .. } | Kind::OnOff(OnOffConfig { message, .. })
                if DATAGRAM.contains(&message.bytes()) =>
            {
                Ok(())
            }
            Kind::ConstantRate { .. } | Kind::OnOff(_) => Err(format!(
                "message: expected {} B to {} B over UDP, one datagram",
                DATAGRAM.start(),
                DATAGRAM.end()
            )),
            _ => Err("kind: expected \"constant-rate\", \"on-off\" or \"voice\" over UDP".to_owned()),
        }
    }
}

/// Bytes of a message over UDP: so many that they say where they belong, and no more than every way carries.
pub const DATAGRAM: core::ops::RangeInclusive<u64> = PLACEABLE_LEN as u64..=udp::MAX_DATA as u64;
