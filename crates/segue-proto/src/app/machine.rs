//! What is of one kind of application alone: which machine does it, and what that is told.

use super::Record;
use super::account::Outgoing;
use super::config::Kind;
use super::constant_rate::ConstantRate;
use super::object::ObjectServer;
use super::on_off::OnOff;
use super::request::{Client, Server};
use super::video::Video;
use super::voice::{Hearing, Speaker, Telephone};
use super::web::Web;
use crate::random::Stream;
use crate::time::Instant;

/// What is of one kind alone. A bulk transfer is what is outgoing, and a sink what every application does with what comes.
#[derive(Debug)]
pub(super) enum Machine {
    Bulk,
    Sink,
    ConstantRate(ConstantRate),
    Client(Client),
    Server(Server),
    OnOff(Box<OnOff>),
    Telephone(Box<Telephone>),
    ObjectServer(ObjectServer),
    Web(Box<Web>),
    Video(Box<Video>),
}

impl Machine {
    /// The machine of a kind, and what waits to be sent as it begins.
    pub fn new(kind: &Kind, random: impl FnOnce() -> Stream) -> (Self, Outgoing) {
        let mut outgoing = Outgoing::default();
        let machine = match kind {
            Kind::Bulk { total, message } => {
                outgoing = Outgoing {
                    left: total.map(|b| b.bytes()),
                    message: message.map(|b| b.bytes()),
                };
                Self::Bulk
            }
            Kind::Sink => Self::Sink,
            Kind::ConstantRate { rate, message, total } => {
                Self::ConstantRate(ConstantRate::new(*rate, *message, *total))
            }
            Kind::RequestClient {
                request,
                response,
                think,
                count,
            } => Self::Client(Client::new(*request, *response, *think, *count)),
            Kind::RequestServer { request, response } => Self::Server(Server::new(*request, *response)),
            Kind::OnOff(config) => Self::OnOff(Box::new(OnOff::new(*config, random()))),
            Kind::Voice(config) => Self::Telephone(Box::new(Telephone {
                speaker: Some(Speaker::new(*config, random())),
                hearing: Hearing::default(),
            })),
            Kind::VoiceReceiver => Self::Telephone(Box::new(Telephone {
                speaker: None,
                hearing: Hearing::default(),
            })),
            Kind::ObjectServer => Self::ObjectServer(ObjectServer::default()),
            Kind::Web(config) => Self::Web(Box::new(Web::new(*config, random()))),
            Kind::Video(config) => Self::Video(Box::new(Video::new(config.clone()))),
        };
        (machine, outgoing)
    }

    /// Whether it goes on over the next connection with what it has from the one before: its stream, and an account of all of
    /// them.
    pub const fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::OnOff(_) | Self::Telephone(_) | Self::Web(_) | Self::Video(_)
        )
    }

    /// Whether something of it may be due.
    #[inline]
    pub const fn has_timers(&self) -> bool {
        !matches!(
            self,
            Self::Bulk | Self::Sink | Self::Server(_) | Self::ObjectServer(_)
        )
    }

    /// What its kind alone keeps an account of.
    pub fn record(&self) -> Option<Record<'_>> {
        match self {
            Self::Telephone(telephone) => Some(Record::Calls {
                made: telephone.speaker.as_ref().map_or(&[], Speaker::calls),
                heard: telephone.hearing.calls(),
            }),
            Self::Web(web) => Some(Record::Pages(web.pages())),
            Self::Video(video) => Some(Record::Viewing(video.viewing())),
            _ => None,
        }
    }

    pub fn on_connected(&mut self, now: Instant) {
        match self {
            Self::ConstantRate(sender) => sender.on_connected(now),
            Self::Client(client) => client.on_connected(now),
            Self::OnOff(source) => source.on_connected(now),
            Self::Telephone(telephone) => telephone.speaker.iter_mut().for_each(|s| s.on_connected(now)),
            Self::Web(web) => web.on_connected(now),
            Self::Video(video) => video.on_connected(now),
            Self::Bulk | Self::Sink | Self::Server(_) | Self::ObjectServer(_) => {}
        }
    }

    pub fn on_closed(&mut self) {
        match self {
            Self::ConstantRate(sender) => sender.on_closed(),
            Self::Client(client) => client.on_closed(),
            Self::OnOff(source) => source.on_closed(),
            Self::Telephone(telephone) => telephone.speaker.iter_mut().for_each(Speaker::on_closed),
            Self::Web(web) => web.on_closed(),
            Self::Video(video) => video.on_closed(),
            Self::Bulk | Self::Sink | Self::Server(_) | Self::ObjectServer(_) => {}
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::ConstantRate(sender) => sender.poll_timeout(),
            Self::Client(client) => client.poll_timeout(),
            Self::OnOff(source) => source.poll_timeout(),
            Self::Telephone(telephone) => telephone.speaker.as_ref()?.poll_timeout(),
            Self::Web(web) => web.poll_timeout(),
            Self::Video(video) => video.poll_timeout(),
            Self::Bulk | Self::Sink | Self::Server(_) | Self::ObjectServer(_) => None,
        }
    }
}
