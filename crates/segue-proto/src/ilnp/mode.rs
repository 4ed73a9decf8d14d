//! How far things are with a peer.

use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;

/// How far things are with a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Its locators are not known yet: packets to it wait.
    Unresolved,
    /// Packets to it carry a nonce; it has not answered with one yet.
    Probing,
    /// It speaks ILNPv6.
    Ilnp,
    /// It does not, or was silent when it was spoken to with a nonce: packets are plain IPv6.
    Plain(Plain),
}

impl Mode {
    /// Plain IPv6, if that is spoken.
    pub(super) const fn plain(self) -> Option<Plain> {
        match self {
            Self::Plain(plain) => Some(plain),
            _ => None,
        }
    }

    /// Whether plain IPv6 is spoken between this host's address `local` and the peer's `remote`.
    pub(super) fn is_plain_between(self, local: Ipv6Addr, remote: Ipv6Addr) -> bool {
        self.plain().map(Plain::addresses) == Some((local, remote))
    }
}

/// Plain IPv6 with a peer (RFC 6741 section 10): between which addresses, and what says that it speaks nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    /// Ours. It stays while it can, since the peer's transport knows it.
    local: Ipv6Addr,
    /// The peer's.
    remote: Ipv6Addr,
    because: Because,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Because {
    /// Its kernel reported the nonce, or it was heard without one: since then, or since the last call that tried the nonce
    /// again.
    Shown(Instant),
    /// It was heard neither with the nonce nor without, which may be the way to it: packets go in both forms by turns.
    Silent {
        /// The last packet with a nonce, or when there had been enough of them.
        tried: Instant,
        /// Whether one without it followed.
        plain_sent: bool,
    },
}

impl Plain {
    /// With a peer whose kernel has just reported the nonce.
    pub(super) const fn reported(now: Instant, local: Ipv6Addr, remote: Ipv6Addr) -> Self {
        Self {
            local,
            remote,
            because: Because::Shown(now),
        }
    }

    /// With a peer that has not answered packets with a nonce.
    pub(super) const fn unanswered(now: Instant, local: Ipv6Addr, remote: Ipv6Addr) -> Self {
        let because = Because::Silent {
            tried: now,
            plain_sent: false,
        };
        Self {
            local,
            remote,
            because,
        }
    }

    /// Our address and the peer's.
    pub(super) const fn addresses(self) -> (Ipv6Addr, Ipv6Addr) {
        (self.local, self.remote)
    }

    /// The same from another address of ours, since that one is gone.
    pub(super) const fn at(self, local: Ipv6Addr) -> Self {
        Self { local, ..self }
    }

    /// Whether anything has shown that the peer speaks plain IPv6. If not, what answers with a nonce is its answer, as it was
    /// before the first plain packet: no transport of the peer's knows this host by another address yet.
    pub(super) const fn is_shown(self) -> bool {
        matches!(self.because, Because::Shown(_))
    }

    /// The peer was heard without a nonce.
    pub(super) const fn heard(self, now: Instant) -> Self {
        match self.because {
            Because::Shown(_) => self,
            Because::Silent { .. } => Self::reported(now, self.local, self.remote),
        }
    }

    /// A packet without a nonce goes to it.
    pub(super) const fn sent(mut self) -> Self {
        if let Because::Silent { plain_sent, .. } = &mut self.because {
            *plain_sent = true;
        }
        self
    }

    /// What is the case after the next packet, if that tries the nonce: where plain IPv6 was not answered either, `after` so
    /// long a time.
    pub(super) fn with_nonce(self, now: Instant, after: Duration) -> Option<Self> {
        match self.because {
            Because::Silent { tried, plain_sent } if plain_sent && now.since(tried) >= after => {
                Some(Self::unanswered(now, self.local, self.remote))
            }
            _ => None,
        }
    }

    /// What is the case after the next call, if that tries the nonce beside what goes on in plain IPv6.
    pub(super) fn with_another_call(self, now: Instant) -> Option<Self> {
        match self.because {
            Because::Shown(since) if now.since(since) >= CALLS_TRY_AGAIN => {
                Some(Self::reported(now, self.local, self.remote))
            }
            _ => None,
        }
    }
}

/// Time between calls that try the nonce with a peer that was heard in plain IPv6. One that still knows nothing else has such
/// a call answered when it is repeated.
const CALLS_TRY_AGAIN: Duration = Duration::from_secs(600);
