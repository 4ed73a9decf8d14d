//! Return routability and correspondent registration (RFC 6275 sections 11.6, 11.7.2 and 11.7.4).

use super::{ACTIVE, MobileNode};
use crate::mip6::binding_update_list::{PendingUpdate, Registered, Retransmission, Token};
use crate::mip6::config::{LIFETIME_UNIT, Registration, is_routable_unicast};
use crate::mip6::movement::Attachment;
use crate::mip6::return_routability::BindingManagementKey;
use crate::mip6::{is_newer, lifetime_units, mobility_packet};
use crate::random::SecretRng;
use crate::shim::ShimEvent;
use crate::time::{Duration, Instant};
use core::net::Ipv6Addr;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::invoking::Invoking;
use segue_wire::mobility::{
    self, BindingAcknowledgement, BindingUpdate, MobilityHeader, MobilityMessage, MobilityOption, Test,
    binding_error, binding_status,
};
use segue_wire::{ExtensionHeader, Packet};

impl MobileNode {
    /// A packet goes to `peer`: it is a correspondent. Whether it takes the direct way.
    pub(super) fn note_use(&mut self, now: Instant, peer: Ipv6Addr) -> bool {
        if !self.config.route_optimization || peer == self.config.home_agent || !is_routable_unicast(peer) {
            return false;
        }
        let Some(entry) = self.list.peer(now, peer) else {
            return false;
        };
        entry.last_used = now;
        if entry.optimized {
            return true;
        }
        let idle =
            !entry.is_busy() && !entry.unsupported && entry.suspended_until.is_none_or(|until| until <= now);
        if idle && self.may_optimize() {
            self.begin_tests(now, peer);
        }
        false
    }

    /// A packet came from `peer` by the direct way.
    pub(super) fn note_direct(&mut self, now: Instant, peer: Ipv6Addr) {
        if let Some(entry) = self.list.peers.get_mut(&peer) {
            entry.last_direct = Some(now);
        }
    }

    /// The node moves: what peers know of it is no longer true, and packets to them go by the home agent.
    pub(super) fn leave_direct_ways(&mut self) {
        for (peer, entry) in &mut self.list.peers {
            entry.stop();
            entry.refusals = 0;
            entry.care_of_token = None;
            entry.suspended_until = None;
            if core::mem::take(&mut entry.optimized) {
                self.events.push_back(ShimEvent::RouteChanged {
                    peer: *peer,
                    to: self.config.home_agent,
                });
            }
        }
    }

    /// The home agent knows where the node is: now the correspondents are told that it talks to, or that had a binding.
    pub(super) fn tell_correspondents(&mut self, now: Instant) {
        if !self.config.route_optimization {
            return;
        }
        let at_home = self.is_at_home();
        let at_once = self.config.registration == Registration::Simultaneous;
        let peers: Vec<Ipv6Addr> = self
            .list
            .peers
            .iter()
            .filter(|(_, p)| {
                let active = !at_home && now.since(p.last_used) <= ACTIVE;
                let told = at_once && (p.is_busy() || p.optimized);
                !told && !p.unsupported && (active || p.registered.is_some_and(|r| r.expires > now))
            })
            .map(|(peer, _)| *peer)
            .collect();
        for peer in peers {
            self.begin_tests(now, peer);
        }
    }

    /// Retransmissions, refreshes and the ends of bindings.
    pub(super) fn handle_peer_timeouts(&mut self, now: Instant) {
        let due: Vec<Ipv6Addr> = self
            .list
            .peers
            .iter()
            .filter(|(_, p)| p.poll_timeout().is_some_and(|at| at <= now))
            .map(|(peer, _)| *peer)
            .collect();
        for peer in due {
            self.handle_peer_timeout(now, peer);
        }
    }

    /// Home Test (section 11.6.2).
    pub(super) fn handle_home_test(&mut self, now: Instant, packet: &Packet, test: Test) {
        let (peer, home_address) = (packet.ip.source, self.config.home_address);
        let Some(entry) = self.list.peers.get_mut(&peer).filter(|p| p.testing.is_some()) else {
            self.counters.unexpected += 1;
            return;
        };
        if packet.ip.destination != home_address || !entry.home_cookies.contains(&test.cookie) {
            self.counters.wrong_cookie += 1;
            return;
        }
        entry.home_cookies.clear();
        entry.home_token = Some(Token {
            nonce_index: test.nonce_index,
            value: test.keygen_token,
            received: now,
            address: home_address,
        });
        self.update_when_tested(now, peer);
        self.check_handoff(now);
    }

    /// Care-of Test (section 11.6.2).
    pub(super) fn handle_care_of_test(&mut self, now: Instant, packet: &Packet, test: Test) {
        let (peer, address) = (packet.ip.source, packet.ip.destination);
        let own_address = self.own_address();
        let Some(entry) = self.list.peers.get_mut(&peer).filter(|p| p.testing.is_some()) else {
            self.counters.unexpected += 1;
            return;
        };
        if own_address != Some(address) || !entry.care_of_cookies.contains(&test.cookie) {
            self.counters.wrong_cookie += 1;
            return;
        }
        entry.care_of_cookies.clear();
        entry.care_of_token = Some(Token {
            nonce_index: test.nonce_index,
            value: test.keygen_token,
            received: now,
            address,
        });
        self.update_when_tested(now, peer);
        self.check_handoff(now);
    }

    /// A Binding Acknowledgement from a correspondent (section 11.7.3).
    pub(super) fn handle_correspondent_acknowledgement(
        &mut self,
        now: Instant,
        peer: Ipv6Addr,
        header: &MobilityHeader,
        acknowledgement: BindingAcknowledgement,
    ) {
        let Some((entry, pending)) = self
            .list
            .peers
            .get_mut(&peer)
            .and_then(|p| p.pending.map(|pending| (p, pending)))
        else {
            self.counters.unexpected += 1;
            return;
        };
        let status = acknowledgement.status;
        let out_of_window = status == binding_status::SEQUENCE_OUT_OF_WINDOW;
        let answers = if out_of_window {
            !is_newer(entry.sequence, acknowledgement.sequence)
        } else {
            pending.answers(acknowledgement.sequence, entry.sequence)
        };
        if !answers {
            self.counters.bad_sequence += 1;
            return;
        }
        // a correspondent that no longer has a nonce cannot authenticate what it says of that (section 9.5.4)
        let nonces_expired = matches!(
            status,
            binding_status::EXPIRED_HOME_NONCE..=binding_status::EXPIRED_NONCES
        );
        let authentic = pending.key.is_some_and(|key| {
            header
                .authenticator()
                .zip(header.authorized_bytes())
                .is_some_and(|(authenticator, mh_data)| {
                    key.verify(pending.care_of_address, peer, &mh_data, authenticator)
                })
        });
        if !authentic && !nonces_expired {
            self.counters.unauthenticated += 1;
            return;
        }
        match status {
            // a deletion after giving up: whatever the answer, it is over
            _ if pending.reported => entry.stop(),
            // they are counted, or whoever goes on saying so could keep us at it
            _ if (nonces_expired || out_of_window)
                && entry.refusals + 1 >= self.config.correspondent_attempts =>
            {
                self.give_up(now, peer);
            }
            _ if out_of_window => {
                entry.refusals += 1;
                entry.sequence = acknowledgement.sequence;
                entry.pending = None;
                self.update_when_tested(now, peer);
            }
            _ if nonces_expired => {
                entry.refusals += 1;
                entry.stop();
                if status != binding_status::EXPIRED_CARE_OF_NONCE {
                    entry.home_token = None;
                }
                if status != binding_status::EXPIRED_HOME_NONCE {
                    entry.care_of_token = None;
                }
                self.begin_tests(now, peer);
            }
            status if status >= binding_status::UNSPECIFIED => self.give_up(now, peer),
            _ => {
                let granted = acknowledgement.lifetime.min(pending.lifetime);
                self.correspondent_registered(now, peer, pending, granted);
            }
        }
        self.check_handoff(now);
    }

    /// A Binding Refresh Request (section 11.7.4). Anybody can send one, so it only brings forward what is due soon.
    pub(super) fn handle_refresh_request(&mut self, now: Instant, peer: Ipv6Addr) {
        let due = self
            .list
            .peers
            .get(&peer)
            .filter(|p| p.optimized && !p.is_busy())
            .and_then(|p| p.registered)
            .is_some_and(|r| now.since(r.since) >= LEAST_REFRESH);
        if due {
            self.begin_tests(now, peer);
        } else {
            self.counters.ignored += 1;
        }
    }

    /// A Binding Error (section 11.3.6). Anybody can send one, or bring a correspondent to send one. While packets come the
    /// direct way, which is a sign that the correspondent has the binding but one that can be forged, it
    /// brings a refresh forward, as a Binding Refresh Request does: a correspondent without the binding has it again
    /// then, and one that does not answer is given up. That it does not recognise
    /// a message counts for nothing: whoever does not know ours does not answer them either.
    pub(super) fn handle_binding_error(
        &mut self,
        now: Instant,
        peer: Ipv6Addr,
        status: u8,
        home_address: Ipv6Addr,
    ) {
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            self.counters.unexpected += 1;
            return;
        };
        let progress = entry
            .last_direct
            .is_some_and(|at| now.since(at) < RECENT_PROGRESS);
        match status {
            binding_error::UNKNOWN_BINDING
                if home_address == self.config.home_address && entry.optimized && !progress =>
            {
                self.lose_direct_way(peer);
                self.begin_tests(now, peer);
            }
            binding_error::UNKNOWN_BINDING if home_address == self.config.home_address => {
                self.handle_refresh_request(now, peer);
            }
            _ => self.counters.ignored += 1,
        }
        self.check_handoff(now);
    }

    /// A parameter problem about a test of ours: the peer does not know mobility headers (section 11.3.5). The cookie that
    /// it quotes shows that it saw the test.
    pub(super) fn handle_parameter_problem(&mut self, now: Instant, peer: Ipv6Addr, error: &Icmpv6) {
        let Some(quoted) = error.invoking().and_then(|q| Invoking::parse(q).ok()) else {
            return;
        };
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        let cookie = quoted
            .payload
            .get(8..)
            .and_then(|rest| rest.first_chunk())
            .map(|c| u64::from_be_bytes(*c));
        let ours =
            cookie.is_some_and(|c| entry.home_cookies.contains(&c) || entry.care_of_cookies.contains(&c));
        if quoted.next_header != mobility::NEXT_HEADER || quoted.destination != peer || !ours {
            return;
        }
        entry.stop();
        entry.unsupported = true;
        self.events.push_back(ShimEvent::FellBack { peer });
        self.check_handoff(now);
    }

    /// Whether there is a binding that correspondents could be told of.
    fn may_optimize(&self) -> bool {
        match (self.attachment, self.list.home.registered) {
            (Attachment::Away(local), Some(registered)) => {
                registered.care_of_address == local.address && self.list.home.pending.is_none()
            }
            _ => false,
        }
    }

    /// Begins return routability with `peer`, or goes on to the Binding Update if its tokens are still good.
    fn begin_tests(&mut self, now: Instant, peer: Ipv6Addr) {
        let initial = self.config.initial_bindack_timeout;
        let reuse = self.config.reuse_home_keygen_token;
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        entry.stop();
        if !reuse {
            entry.home_token = None;
        }
        entry.testing = Some(Retransmission::begin(now, initial));
        self.update_when_tested(now, peer);
        self.send_tests(now, peer);
    }

    /// Sends the tests that have not been answered, each with a new cookie; later, if there were too many within a second
    /// (section 11.8).
    fn send_tests(&mut self, now: Instant, peer: Ipv6Addr) {
        let (home_address, own_address) = (self.config.home_address, self.own_address());
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        let Some(testing) = &mut entry.testing else { return };
        if let Err(until) = entry.tests.send(now) {
            testing.postpone(until);
            self.counters.postponed += 1;
            return;
        }
        let mut packets = Vec::new();
        if !entry.home_token.is_some_and(|t| t.is_valid(now, home_address)) {
            let cookie = self.cookies.secret_u64();
            remember(&mut entry.home_cookies, cookie);
            packets.push((home_address, MobilityMessage::HomeTestInit { cookie }));
        }
        if let Some(care_of_address) = own_address.filter(|a| *a != home_address)
            && !entry
                .care_of_token
                .is_some_and(|t| t.is_valid(now, care_of_address))
        {
            let cookie = self.cookies.secret_u64();
            remember(&mut entry.care_of_cookies, cookie);
            packets.push((care_of_address, MobilityMessage::CareOfTestInit { cookie }));
        }
        for (source, message) in packets {
            self.send(mobility_packet(
                source,
                peer,
                MobilityHeader::new(message, Vec::new()),
            ));
        }
    }

    /// Sends a Binding Update if both tokens are there; on the home link the home keygen token is enough (section 5.2.5).
    fn update_when_tested(&mut self, now: Instant, peer: Ipv6Addr) {
        let (home_address, Some(own_address)) = (self.config.home_address, self.own_address()) else {
            return;
        };
        let wanted = lifetime_units(self.config.correspondent_lifetime);
        let initial = self.config.initial_bindack_timeout;
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        let Some(home) = entry.home_token.filter(|t| t.is_valid(now, home_address)) else {
            return;
        };
        let deletes = own_address == home_address;
        let care_of = entry.care_of_token.filter(|t| t.is_valid(now, own_address));
        if !deletes && care_of.is_none() {
            return;
        }
        let care_of = care_of.filter(|_| !deletes);
        entry.stop();
        entry.sequence = entry.sequence.wrapping_add(1);
        entry.pending = Some(PendingUpdate {
            care_of_address: own_address,
            lifetime: if deletes { 0 } else { wanted },
            first_sequence: entry.sequence,
            first_sent: now,
            retransmission: Retransmission::begin(now, initial),
            key: Some(BindingManagementKey::new(home.value, care_of.map(|t| t.value))),
            nonce_indices: (home.nonce_index, care_of.map_or(0, |t| t.nonce_index)),
            reported: false,
        });
        self.send_update(now, peer);
    }

    /// Sends the Binding Update that is pending, with the sequence number as it is (section 11.7.2).
    fn send_update(&mut self, now: Instant, peer: Ipv6Addr) {
        let home_address = self.config.home_address;
        let acknowledge = self.config.acknowledge_correspondents;
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        let Some(pending) = &mut entry.pending else { return };
        if let Err(until) = entry.updates.send(now) {
            pending.retransmission.postpone(until);
            self.counters.postponed += 1;
            return;
        }
        let (sequence, pending) = (entry.sequence, *pending);
        let update = BindingUpdate {
            sequence,
            acknowledge,
            lifetime: pending.lifetime,
            ..BindingUpdate::default()
        };
        let (home, care_of) = pending.nonce_indices;
        let mut header = MobilityHeader::new(
            MobilityMessage::BindingUpdate(update),
            vec![
                MobilityOption::NonceIndices { home, care_of },
                MobilityOption::blank_authorization(),
            ],
        );
        if let (Some(key), Some(mh_data)) = (pending.key, header.authorized_bytes()) {
            header.authenticate(key.authenticator(pending.care_of_address, peer, &mh_data));
        }
        let mut packet = mobility_packet(pending.care_of_address, peer, header);
        if pending.care_of_address != home_address {
            packet
                .extensions
                .push(ExtensionHeader::home_address(home_address));
        }
        self.send(packet);
        if !acknowledge {
            self.correspondent_registered(now, peer, pending, pending.lifetime);
        }
    }

    /// The peer has the binding, or no longer has one.
    fn correspondent_registered(
        &mut self,
        now: Instant,
        peer: Ipv6Addr,
        pending: PendingUpdate,
        granted: u16,
    ) {
        let own_address = self.own_address();
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        entry.stop();
        entry.refusals = 0;
        let lifetime = LIFETIME_UNIT * u64::from(granted);
        entry.registered = (granted > 0).then(|| Registered {
            care_of_address: pending.care_of_address,
            since: now,
            expires: pending.first_sent + lifetime,
            refresh: pending.first_sent + lifetime * 3 / 4,
        });
        let direct = granted > 0 && own_address == Some(pending.care_of_address);
        if direct != core::mem::replace(&mut entry.optimized, direct) {
            let to = if direct { peer } else { self.config.home_agent };
            self.events.push_back(ShimEvent::RouteChanged { peer, to });
        }
    }

    fn handle_peer_timeout(&mut self, now: Instant, peer: Ipv6Addr) {
        let max = self.config.max_bindack_timeout;
        let most = self.config.correspondent_attempts;
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        if let Some(registered) = entry.registered {
            if registered.expires <= now {
                self.counters.bindings_expired += 1;
                self.lose_direct_way(peer);
            } else if registered.refresh <= now {
                let in_use = now.since(entry.last_used) <= ACTIVE;
                let idle = !entry.is_busy() && entry.optimized;
                if let Some(kept) = &mut entry.registered {
                    kept.refresh = kept.expires;
                }
                if in_use && idle {
                    self.begin_tests(now, peer);
                }
            }
        }
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        if let Some(testing) = entry.testing.as_mut().filter(|t| t.next <= now) {
            if testing.attempts >= most {
                self.give_up(now, peer);
            } else {
                self.counters.retransmissions += u64::from(testing.attempts > 0);
                testing.again(now, max);
                self.send_tests(now, peer);
            }
        } else if let Some(pending) = entry.pending.as_mut().filter(|p| p.retransmission.next <= now) {
            if pending.retransmission.attempts >= most {
                if pending.reported {
                    entry.stop();
                } else {
                    self.give_up(now, peer);
                }
            } else {
                self.counters.retransmissions += u64::from(pending.retransmission.attempts > 0);
                pending.retransmission.again(now, max);
                entry.sequence = entry.sequence.wrapping_add(1);
                self.send_update(now, peer);
            }
        }
        self.check_handoff(now);
    }

    /// The peer does not answer: packets to it go by the home agent, and by its own, if it is mobile and we had a binding
    /// of it. If it still has one of us, that leads to where we no longer are: it is asked to delete it, by the home agent,
    /// for which the home keygen token is enough (section 5.2.5).
    fn give_up(&mut self, now: Instant, peer: Ipv6Addr) {
        let retry = now + self.config.retry_after;
        let initial = self.config.initial_bindack_timeout;
        let home_address = self.config.home_address;
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        let known = entry.pending.is_some() || entry.registered.is_some_and(|r| r.expires > now);
        let token = entry
            .home_token
            .filter(|t| known && t.is_valid(now, home_address));
        entry.stop();
        entry.refusals = 0;
        entry.suspended_until = Some(retry);
        if let Some(home) = token {
            entry.sequence = entry.sequence.wrapping_add(1);
            entry.pending = Some(PendingUpdate {
                care_of_address: home_address,
                lifetime: 0,
                first_sequence: entry.sequence,
                first_sent: now,
                retransmission: Retransmission::begin(now, initial),
                key: Some(BindingManagementKey::new(home.value, None)),
                nonce_indices: (home.nonce_index, 0),
                reported: true,
            });
        }
        self.lose_direct_way(peer);
        self.correspondent.forget(now, peer);
        self.events.push_back(ShimEvent::HandoffFailed { peer });
        self.send_update(now, peer);
    }

    /// The peer has no binding of us.
    fn lose_direct_way(&mut self, peer: Ipv6Addr) {
        let Some(entry) = self.list.peers.get_mut(&peer) else {
            return;
        };
        entry.registered = None;
        if core::mem::take(&mut entry.optimized) {
            let to = self.config.home_agent;
            self.events.push_back(ShimEvent::RouteChanged { peer, to });
        }
    }
}

/// Keeps the cookies of the last few transmissions.
fn remember(cookies: &mut smallvec::SmallVec<[u64; 4]>, cookie: u64) {
    if cookies.len() == MAX_COOKIES {
        cookies.remove(0);
    }
    cookies.push(cookie);
}

const MAX_COOKIES: usize = 4;
/// A refresh that a correspondent asks for comes at least so long after the last registration.
const LEAST_REFRESH: Duration = Duration::from_secs(10);
/// Packets that came the direct way so recently show that a Binding Error is forged or late.
const RECENT_PROGRESS: Duration = Duration::from_secs(1);
