//! A Binding Update that waits for its answer, and the binding that comes of it.

use super::pace::Retransmission;
use crate::mip6::return_routability::BindingManagementKey;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;

/// A binding that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(in crate::mip6) struct Registered {
    care_of_address: Ipv6Addr,
    since: Instant,
    expires: Instant,
    refresh: Instant,
    /// It was said that it is to be refreshed.
    told: bool,
}

/// What is to be done about a binding now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mip6) enum Due {
    Nothing,
    /// It is to be refreshed.
    Refresh,
    /// It is over.
    Expired,
}

impl Registered {
    /// The binding that an update asked for, granted for so long; to be refreshed so long after the update was sent, which was
    /// at `sent`.
    pub fn new(
        now: Instant,
        pending: &PendingUpdate,
        sent: Instant,
        lifetime: Duration,
        refresh: Duration,
    ) -> Self {
        Self {
            care_of_address: pending.care_of_address,
            since: now,
            expires: sent + lifetime,
            refresh: sent + refresh,
            told: false,
        }
    }

    pub fn care_of_address(&self) -> Ipv6Addr {
        self.care_of_address
    }

    pub fn since(&self) -> Instant {
        self.since
    }

    pub fn expires(&self) -> Instant {
        self.expires
    }

    pub fn is_valid(&self, now: Instant) -> bool {
        self.expires > now
    }

    /// Whether it is to be refreshed, whether that was said or not.
    pub fn is_to_be_refreshed(&self, now: Instant) -> bool {
        self.refresh <= now
    }

    pub fn poll_timeout(&self) -> Instant {
        if self.told {
            self.expires
        } else {
            self.refresh.min(self.expires)
        }
    }

    /// What is to be done about it now; it is said once.
    pub fn take_due(&mut self, now: Instant) -> Due {
        if self.expires <= now {
            Due::Expired
        } else if self.refresh <= now && !self.told {
            self.told = true;
            Due::Refresh
        } else {
            Due::Nothing
        }
    }
}

/// A Binding Update that has not been acknowledged, with its retransmissions.
#[derive(Clone, Copy, Debug)]
pub(in crate::mip6) struct PendingUpdate {
    /// The care-of address that it names, the home address if it deletes.
    care_of_address: Ipv6Addr,
    /// In units of 4 seconds; zero deletes.
    lifetime: u16,
    /// Sequence number of the first transmission.
    first_sequence: u16,
    /// When that was.
    first_sent: Instant,
    /// When it was sent last.
    last_sent: Instant,
    retransmission: Retransmission,
    /// What authenticates it at a correspondent.
    authorization: Option<Authorization>,
    /// It was reported that no answer comes.
    reported: bool,
}

/// What authenticates a Binding Update at a correspondent: of both tokens, or of one, and the indices of their nonces.
#[derive(Clone, Copy, Debug)]
pub(in crate::mip6) struct Authorization {
    pub key: BindingManagementKey,
    pub nonce_indices: (u16, u16),
}

impl PendingUpdate {
    /// An update with this sequence number, sent now, and again after `timeout`.
    pub fn new(
        now: Instant,
        care_of_address: Ipv6Addr,
        lifetime: u16,
        sequence: u16,
        timeout: Duration,
    ) -> Self {
        Self {
            care_of_address,
            lifetime,
            first_sequence: sequence,
            first_sent: now,
            last_sent: now,
            retransmission: Retransmission::begin(now, timeout),
            authorization: None,
            reported: false,
        }
    }

    /// The same to a correspondent.
    pub fn authorized(self, authorization: Authorization) -> Self {
        Self {
            authorization: Some(authorization),
            ..self
        }
    }

    /// Nobody waits for the answer.
    pub fn in_vain(self) -> Self {
        Self {
            reported: true,
            ..self
        }
    }

    pub fn care_of_address(&self) -> Ipv6Addr {
        self.care_of_address
    }

    pub fn lifetime(&self) -> u16 {
        self.lifetime
    }

    /// What authenticates it at a correspondent.
    pub fn authorization(&self) -> Option<Authorization> {
        self.authorization
    }

    pub fn retransmission(&self) -> &Retransmission {
        &self.retransmission
    }

    /// It was reported that no answer comes.
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Whether an acknowledgement with `sequence` answers one of the transmissions, of which `last` was the last.
    pub fn answers(&self, sequence: u16, last: u16) -> bool {
        sequence.wrapping_sub(self.first_sequence) <= last.wrapping_sub(self.first_sequence)
    }

    /// When it was sent first.
    pub fn first_sent(&self) -> Instant {
        self.first_sent
    }

    /// When the transmission with `sequence` was sent, of which `last` was the last. Of one in between it is not known: that is then
    /// taken for the first, so that a binding is not thought to last longer than it does.
    pub fn sent_at(&self, sequence: u16, last: u16) -> Instant {
        if sequence == last {
            self.last_sent
        } else {
            self.first_sent
        }
    }

    /// The transmission that is due has to wait until then.
    pub fn postpone(&mut self, until: Instant) {
        self.retransmission.postpone(until);
    }

    /// It is sent again. Whether it had been sent before.
    pub fn again(&mut self, now: Instant, max: Duration) -> bool {
        let retransmits = self.retransmission.is_begun();
        self.retransmission.again(now, max);
        self.last_sent = now;
        retransmits
    }

    /// It is to be reported that no answer comes, unless it was. Whether it is.
    pub fn report(&mut self) -> bool {
        !core::mem::replace(&mut self.reported, true)
    }

    /// The transmission to come is another update: it has this number.
    pub fn renumber(&mut self, sequence: u16) {
        self.first_sequence = sequence;
        self.first_sent = self.retransmission.next();
        self.last_sent = self.first_sent;
    }

    /// The transmission to come is after so long.
    pub fn put_off(&mut self, now: Instant, timeout: Duration) {
        self.retransmission = Retransmission::begin(now, timeout);
    }
}
