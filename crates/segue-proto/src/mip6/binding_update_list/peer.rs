//! A correspondent of a mobile node: its tests, and the binding that it has.

use super::pace::{Retransmission, UpdateRate};
use super::update::{Authorization, Due, PendingUpdate, Registered};
use crate::mip6::config::{LIFETIME_UNIT, MAX_TOKEN_LIFETIME};
use crate::mip6::return_routability::{BindingManagementKey, TokenKind};
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::mobility::Test;
use smallvec::SmallVec;

/// A correspondent.
#[derive(Debug)]
pub(in crate::mip6) struct Peer {
    /// When a packet was last sent to it.
    last_used: Instant,
    /// When a packet last came from it by the direct way.
    last_direct: Option<Instant>,
    /// Of the last Binding Update sent.
    sequence: u16,
    home: Proof,
    care_of: Proof,
    /// Tests under way.
    testing: Option<Retransmission>,
    /// A Binding Update under way.
    pending: Option<PendingUpdate>,
    /// Binding Updates in a row that it refused for what another could do better: their nonces have expired, or their
    /// sequence number is out of window.
    refusals: u32,
    /// The binding that it has of us.
    registered: Option<Registered>,
    /// Packets to it take the direct way.
    optimized: bool,
    /// Not tried again before.
    suspended_until: Option<Instant>,
    /// It does not know Mobile IPv6.
    unsupported: bool,
    updates: UpdateRate,
    /// Of tests: of each type, no more than that.
    tests: UpdateRate,
}

/// What shows a correspondent that the node is at an address.
#[derive(Debug, Default)]
struct Proof {
    token: Option<Token>,
    /// Cookies of the tests under way: the retransmissions each have their own (section 11.8), and an answer to an
    /// earlier one is as good a proof.
    cookies: SmallVec<[u64; 4]>,
}

impl Proof {
    fn token(&self, now: Instant, address: Ipv6Addr) -> Option<Token> {
        self.token.filter(|t| t.is_valid(now, address))
    }

    /// Keeps the cookies of the last few transmissions.
    fn remember(&mut self, cookie: u64) {
        if self.cookies.len() == MAX_COOKIES {
            self.cookies.remove(0);
        }
        self.cookies.push(cookie);
    }
}

/// A keygen token that was received.
#[derive(Clone, Copy, Debug)]
struct Token {
    nonce_index: u16,
    value: u64,
    received: Instant,
    /// The address that it is for.
    address: Ipv6Addr,
}

impl Token {
    fn is_valid(&self, now: Instant, address: Ipv6Addr) -> bool {
        self.address == address && now.since(self.received) < MAX_TOKEN_LIFETIME
    }
}

/// Which way a packet to a correspondent takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mip6) enum Use {
    Direct,
    /// By the home agent; the direct way may be tried.
    MayBeTried,
    ByHomeAgent,
}

/// What a timer of a correspondent has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mip6) enum Expiry {
    Nothing,
    /// The tests are to be sent, again perhaps.
    Tests {
        retransmits: bool,
    },
    /// The update is to be sent, again perhaps.
    Update {
        retransmits: bool,
    },
    /// It does not answer.
    GivesUp,
}

/// Tests that are to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::mip6) struct Tests {
    pub home: bool,
    /// Of this care-of address.
    pub care_of: Option<Ipv6Addr>,
}

impl Peer {
    pub fn new(now: Instant) -> Self {
        Self {
            last_used: now,
            last_direct: None,
            sequence: 0,
            home: Proof::default(),
            care_of: Proof::default(),
            testing: None,
            pending: None,
            refusals: 0,
            registered: None,
            optimized: false,
            suspended_until: None,
            unsupported: false,
            updates: UpdateRate::default(),
            tests: UpdateRate::default(),
        }
    }

    /// When a packet was last sent to it.
    pub fn last_used(&self) -> Instant {
        self.last_used
    }

    /// Packets to it take the direct way.
    pub fn is_optimized(&self) -> bool {
        self.optimized
    }

    /// The binding that it has of us.
    pub fn registered(&self) -> Option<&Registered> {
        self.registered.as_ref()
    }

    /// A Binding Update under way, and the number that was used last.
    pub fn pending(&self) -> Option<(PendingUpdate, u16)> {
        self.pending.map(|pending| (pending, self.sequence))
    }

    /// Whether something is under way that a handoff waits for.
    pub fn is_busy(&self) -> bool {
        self.testing.is_some() || self.pending.is_some_and(|p| !p.is_reported())
    }

    /// Whether it is to be told of another address: it has a binding of us, or is one that the node talks to.
    pub fn is_to_be_told(&self, now: Instant, talks_to: bool) -> bool {
        !self.unsupported && (talks_to || self.registered.is_some_and(|r| r.is_valid(now)))
    }

    /// Whether a packet came from it by the direct way so recently.
    pub fn has_come_directly(&self, now: Instant, within: Duration) -> bool {
        self.last_direct.is_some_and(|at| now.since(at) < within)
    }

    /// A packet goes to it.
    pub fn on_use(&mut self, now: Instant) -> Use {
        self.last_used = now;
        let suspended = self.suspended_until.is_some_and(|until| until > now);
        if self.optimized {
            Use::Direct
        } else if self.is_busy() || self.unsupported || suspended {
            Use::ByHomeAgent
        } else {
            Use::MayBeTried
        }
    }

    /// A packet came from it by the direct way.
    pub fn on_direct(&mut self, now: Instant) {
        self.last_direct = Some(now);
    }

    /// Nothing is under way any more.
    pub fn stop(&mut self) {
        self.testing = None;
        self.pending = None;
        self.home.cookies.clear();
        self.care_of.cookies.clear();
    }

    /// The node moves. Whether packets took the direct way.
    pub fn on_move(&mut self) -> bool {
        self.stop();
        self.refusals = 0;
        self.care_of.token = None;
        self.suspended_until = None;
        core::mem::take(&mut self.optimized)
    }

    /// It has no binding of us. Whether packets took the direct way.
    pub fn on_unregistered(&mut self) -> bool {
        self.registered = None;
        core::mem::take(&mut self.optimized)
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        [
            self.testing.map(|t| t.next()),
            self.pending.map(|p| p.retransmission().next()),
            self.registered.map(|r| r.poll_timeout()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// What is to be done about its binding.
    pub fn take_due(&mut self, now: Instant) -> Due {
        self.registered.as_mut().map_or(Due::Nothing, |r| r.take_due(now))
    }

    /// What has come of tests or an update that were not answered after so many transmissions.
    pub fn on_timeout(&mut self, now: Instant, max: Duration, most: u32) -> Expiry {
        if let Some(testing) = self.testing.as_mut().filter(|t| t.is_due(now)) {
            if testing.is_over(most) {
                return Expiry::GivesUp;
            }
            let retransmits = testing.is_begun();
            testing.again(now, max);
            return Expiry::Tests { retransmits };
        }
        let Some(pending) = self.pending.as_mut().filter(|p| p.retransmission().is_due(now)) else {
            return Expiry::Nothing;
        };
        if !pending.retransmission().is_over(most) {
            let retransmits = pending.again(now, max);
            self.sequence = self.sequence.wrapping_add(1);
            return Expiry::Update { retransmits };
        }
        if !pending.is_reported() {
            return Expiry::GivesUp;
        }
        self.stop();
        Expiry::Nothing
    }
}

/// Return routability (section 11.6).
impl Peer {
    /// Tests begin; the home keygen token is used again, or not.
    pub fn begin_tests(&mut self, now: Instant, initial: Duration, reuse: bool) {
        self.stop();
        if !reuse {
            self.home.token = None;
        }
        self.testing = Some(Retransmission::begin(now, initial));
    }

    /// The tests that have not been answered and are to be sent now; `None` if none are under way.
    ///
    /// # Errors
    /// If there were too many within a second, and they are put off.
    pub fn send_tests(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        own_address: Option<Ipv6Addr>,
    ) -> Result<Option<Tests>, Instant> {
        let Some(testing) = &mut self.testing else {
            return Ok(None);
        };
        self.tests
            .send(now)
            .inspect_err(|until| testing.postpone(*until))?;
        let care_of = own_address.filter(|a| *a != home_address);
        Ok(Some(Tests {
            home: self.home.token(now, home_address).is_none(),
            care_of: care_of.filter(|a| self.care_of.token(now, *a).is_none()),
        }))
    }

    /// A test goes out with this cookie.
    pub fn on_test_sent(&mut self, kind: TokenKind, cookie: u64) {
        match kind {
            TokenKind::Home => self.home.remember(cookie),
            TokenKind::CareOf => self.care_of.remember(cookie),
        }
    }

    /// Whether it has a test under way.
    pub fn is_testing(&self) -> bool {
        self.testing.is_some()
    }

    /// Whether this is the cookie of a test under way.
    pub fn has_sent(&self, cookie: u64) -> bool {
        self.home.cookies.contains(&cookie) || self.care_of.cookies.contains(&cookie)
    }

    /// A test of `address` is answered. Whether it has the cookie of one.
    pub fn on_test(&mut self, now: Instant, kind: TokenKind, address: Ipv6Addr, test: Test) -> bool {
        let proof = match kind {
            TokenKind::Home => &mut self.home,
            TokenKind::CareOf => &mut self.care_of,
        };
        if !proof.cookies.contains(&test.cookie) {
            return false;
        }
        proof.cookies.clear();
        proof.token = Some(Token {
            nonce_index: test.nonce_index,
            value: test.keygen_token,
            received: now,
            address,
        });
        true
    }

    /// It does not know mobility headers.
    pub fn on_unsupported(&mut self) {
        self.stop();
        self.unsupported = true;
    }
}

/// Correspondent registration (section 11.7.2).
impl Peer {
    /// A Binding Update is sent that names `own_address`, for so long, if both tokens are there; on the home link the home
    /// keygen token is enough (section 5.2.5). Whether it is.
    pub fn begin_update(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        own_address: Ipv6Addr,
        lifetime: u16,
        initial: Duration,
    ) -> bool {
        let Some(home) = self.home.token(now, home_address) else {
            return false;
        };
        let deletes = own_address == home_address;
        let care_of = self.care_of.token(now, own_address);
        if !deletes && care_of.is_none() {
            return false;
        }
        let lifetime = if deletes { 0 } else { lifetime };
        self.stop();
        self.sequence = self.sequence.wrapping_add(1);
        let update = PendingUpdate::new(now, own_address, lifetime, self.sequence, initial);
        self.pending = Some(update.authorized(authorization(home, care_of.filter(|_| !deletes))));
        true
    }

    /// The update that is to be sent now, with its number; `None` if there is none.
    ///
    /// # Errors
    /// If there were too many within a second, and it is put off.
    pub fn send_update(&mut self, now: Instant) -> Result<Option<(PendingUpdate, u16)>, Instant> {
        let Some(pending) = &mut self.pending else {
            return Ok(None);
        };
        self.updates
            .send(now)
            .inspect_err(|until| pending.postpone(*until))?;
        Ok(Some((*pending, self.sequence)))
    }

    /// Whether it has refused so often, this time included.
    pub fn has_refused(&self, most: u32) -> bool {
        self.refusals + 1 >= most
    }

    /// It has had a later sequence number than ours.
    pub fn on_out_of_window(&mut self, theirs: u16) {
        self.refusals += 1;
        self.sequence = theirs;
        self.pending = None;
    }

    /// The nonces of tokens have expired: of that for the home address, of that for the care-of address.
    pub fn on_nonces_expired(&mut self, home: bool, care_of: bool) {
        self.refusals += 1;
        self.stop();
        if home {
            self.home.token = None;
        }
        if care_of {
            self.care_of.token = None;
        }
    }

    /// It has the binding for so many units, or no longer has one. `own_address` is where the node is. Whether packets take
    /// the direct way now; `None` if that is as before.
    pub fn on_registered(
        &mut self,
        now: Instant,
        pending: &PendingUpdate,
        granted: u16,
        own_address: Option<Ipv6Addr>,
    ) -> Option<bool> {
        self.stop();
        self.refusals = 0;
        let lifetime = LIFETIME_UNIT * u64::from(granted);
        let sent = pending.first_sent();
        self.registered =
            (granted > 0).then(|| Registered::new(now, pending, sent, lifetime, lifetime * 3 / 4));
        let direct = granted > 0 && own_address == Some(pending.care_of_address());
        let before = core::mem::replace(&mut self.optimized, direct);
        (direct != before).then_some(direct)
    }

    /// It does not answer, and is not tried again before `retry`. If it still has a binding of us, that leads to where the
    /// node no longer is: it is asked to delete it, by the home agent, for which the home keygen token is enough
    /// (section 5.2.5).
    pub fn give_up(&mut self, now: Instant, home_address: Ipv6Addr, retry: Instant, initial: Duration) {
        let known = self.pending.is_some() || self.registered.is_some_and(|r| r.is_valid(now));
        let token = self.home.token(now, home_address).filter(|_| known);
        self.stop();
        self.refusals = 0;
        self.suspended_until = Some(retry);
        if let Some(home) = token {
            self.sequence = self.sequence.wrapping_add(1);
            let deletion = PendingUpdate::new(now, home_address, 0, self.sequence, initial);
            self.pending = Some(deletion.authorized(authorization(home, None)).in_vain());
        }
    }
}

fn authorization(home: Token, care_of: Option<Token>) -> Authorization {
    Authorization {
        key: BindingManagementKey::new(home.value, care_of.map(|t| t.value)),
        nonce_indices: (home.nonce_index, care_of.map_or(0, |t| t.nonce_index)),
    }
}

const MAX_COOKIES: usize = 4;
