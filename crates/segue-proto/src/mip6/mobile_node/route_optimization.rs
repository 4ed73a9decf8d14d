//! Return routability and correspondent registration (RFC 6275 sections 11.6, 11.7.2 and 11.7.4).

use super::{ACTIVE, MobileNode};
use crate::mip6::binding_update_list::{Due, Expiry, Peer, PendingUpdate, Tests, Use};
use crate::mip6::config::{Registration, is_routable_unicast};
use crate::mip6::movement::Attachment;
use crate::mip6::return_routability::TokenKind;
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
        let Some(entry) = self.peers.entry(now, peer) else {
            return false;
        };
        let way = entry.on_use(now);
        if way == Use::MayBeTried && self.may_optimize() {
            self.begin_tests(now, peer);
        }
        way == Use::Direct
    }

    /// A packet came from `peer` by the direct way.
    pub(super) fn note_direct(&mut self, now: Instant, peer: Ipv6Addr) {
        if let Some(entry) = self.peers.get_mut(peer) {
            entry.on_direct(now);
        }
    }

    /// The node moves: what peers know of it is no longer true, and packets to them go by the home agent.
    pub(super) fn leave_direct_ways(&mut self) {
        for (peer, entry) in self.peers.iter_mut() {
            if entry.on_move() {
                self.events.push_back(ShimEvent::RouteChanged {
                    peer,
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
            .peers
            .iter()
            .filter(|(_, p)| {
                let active = !at_home && now.since(p.last_used()) <= ACTIVE;
                let told = at_once && (p.is_busy() || p.is_optimized());
                !told && p.is_to_be_told(now, active)
            })
            .map(|(peer, _)| peer)
            .collect();
        for peer in peers {
            self.begin_tests(now, peer);
        }
    }

    /// Retransmissions, refreshes and the ends of bindings.
    pub(super) fn handle_peer_timeouts(&mut self, now: Instant) {
        let due: Vec<Ipv6Addr> = self
            .peers
            .iter()
            .filter(|(_, p)| p.poll_timeout().is_some_and(|at| at <= now))
            .map(|(peer, _)| peer)
            .collect();
        for peer in due {
            self.handle_peer_timeout(now, peer);
        }
    }

    /// Home Test (section 11.6.2).
    pub(super) fn handle_home_test(&mut self, now: Instant, packet: &Packet, test: Test) {
        let (peer, home_address) = (packet.ip.source, self.config.home_address);
        let Some(entry) = self.peers.get_mut(peer).filter(|p| p.is_testing()) else {
            self.counters.unexpected += 1;
            return;
        };
        if packet.ip.destination != home_address || !entry.on_test(now, TokenKind::Home, home_address, test) {
            self.counters.wrong_cookie += 1;
            return;
        }
        self.update_when_tested(now, peer);
        self.check_handoff(now);
    }

    /// Care-of Test (section 11.6.2).
    pub(super) fn handle_care_of_test(&mut self, now: Instant, packet: &Packet, test: Test) {
        let (peer, address) = (packet.ip.source, packet.ip.destination);
        let own_address = self.own_address();
        let Some(entry) = self.peers.get_mut(peer).filter(|p| p.is_testing()) else {
            self.counters.unexpected += 1;
            return;
        };
        if own_address != Some(address) || !entry.on_test(now, TokenKind::CareOf, address, test) {
            self.counters.wrong_cookie += 1;
            return;
        }
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
        let Some((entry, (pending, last))) = self
            .peers
            .get_mut(peer)
            .and_then(|p| p.pending().map(|pending| (p, pending)))
        else {
            self.counters.unexpected += 1;
            return;
        };
        let status = acknowledgement.status;
        let out_of_window = status == binding_status::SEQUENCE_OUT_OF_WINDOW;
        let answers = if out_of_window {
            !is_newer(last, acknowledgement.sequence)
        } else {
            pending.answers(acknowledgement.sequence, last)
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
        let authentic = pending.authorization().is_some_and(|authorization| {
            header
                .authenticator()
                .zip(header.authorized_bytes())
                .is_some_and(|(authenticator, mh_data)| {
                    let key = authorization.key;
                    key.verify(pending.care_of_address(), peer, &mh_data, authenticator)
                })
        });
        if !authentic && !nonces_expired {
            self.counters.unauthenticated += 1;
            return;
        }
        match status {
            // a deletion after giving up: whatever the answer, it is over
            _ if pending.is_reported() => entry.stop(),
            // they are counted, or whoever goes on saying so could keep us at it
            _ if (nonces_expired || out_of_window)
                && entry.has_refused(self.config.correspondent_attempts) =>
            {
                self.give_up(now, peer);
            }
            _ if out_of_window => {
                entry.on_out_of_window(acknowledgement.sequence);
                self.update_when_tested(now, peer);
            }
            _ if nonces_expired => {
                entry.on_nonces_expired(
                    status != binding_status::EXPIRED_CARE_OF_NONCE,
                    status != binding_status::EXPIRED_HOME_NONCE,
                );
                self.begin_tests(now, peer);
            }
            status if status >= binding_status::UNSPECIFIED => self.give_up(now, peer),
            _ => {
                let granted = acknowledgement.lifetime.min(pending.lifetime());
                self.correspondent_registered(now, peer, &pending, granted);
            }
        }
        self.check_handoff(now);
    }

    /// A Binding Refresh Request (section 11.7.4). Anybody can send one, so it only brings forward what is due soon.
    pub(super) fn handle_refresh_request(&mut self, now: Instant, peer: Ipv6Addr) {
        let due = self
            .peers
            .get(peer)
            .filter(|p| p.is_optimized() && !p.is_busy())
            .and_then(Peer::registered)
            .is_some_and(|r| now.since(r.since()) >= LEAST_REFRESH);
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
        let Some(entry) = self.peers.get_mut(peer) else {
            self.counters.unexpected += 1;
            return;
        };
        let progress = entry.has_come_directly(now, RECENT_PROGRESS);
        match status {
            binding_error::UNKNOWN_BINDING
                if home_address == self.config.home_address && entry.is_optimized() && !progress =>
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
    ///
    /// One about our Home Address option is from a peer that has known it and does no longer: it stands for the Binding Error
    /// that the peer does not send, and is believed no more than that.
    pub(super) fn handle_parameter_problem(&mut self, now: Instant, peer: Ipv6Addr, error: &Icmpv6) {
        let Some(quoted) = error.invoking().and_then(|q| Invoking::parse(q).ok()) else {
            return;
        };
        let home_address = self.config.home_address;
        if quoted.destination == peer && refuses_option(error, home_address) {
            let status = binding_error::UNKNOWN_BINDING;
            return self.handle_binding_error(now, peer, status, home_address);
        }
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        let cookie = quoted
            .payload
            .get(8..)
            .and_then(|rest| rest.first_chunk())
            .map(|c| u64::from_be_bytes(*c));
        let ours = cookie.is_some_and(|c| entry.has_sent(c));
        if quoted.next_header != mobility::NEXT_HEADER || quoted.destination != peer || !ours {
            return;
        }
        entry.on_unsupported();
        self.events.push_back(ShimEvent::FellBack { peer });
        self.check_handoff(now);
    }

    /// Whether there is a binding that correspondents could be told of.
    fn may_optimize(&self) -> bool {
        match (self.attachment, self.home.registered()) {
            (Attachment::Away(local), Some(registered)) => {
                registered.care_of_address() == local.address && self.home.pending().is_none()
            }
            _ => false,
        }
    }

    /// Begins return routability with `peer`, or goes on to the Binding Update if its tokens are still good.
    fn begin_tests(&mut self, now: Instant, peer: Ipv6Addr) {
        let initial = self.config.initial_bindack_timeout;
        let reuse = self.config.reuse_home_keygen_token;
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        entry.begin_tests(now, initial, reuse);
        self.update_when_tested(now, peer);
        self.send_tests(now, peer);
    }

    /// Sends the tests that have not been answered, each with a new cookie; later, if there were too many within a second
    /// (section 11.8).
    fn send_tests(&mut self, now: Instant, peer: Ipv6Addr) {
        let (home_address, own_address) = (self.config.home_address, self.own_address());
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        let Ok(tests) = entry.send_tests(now, home_address, own_address) else {
            self.counters.postponed += 1;
            return;
        };
        let Tests { home, care_of } = tests.unwrap_or_default();
        let mut packets = Vec::new();
        if home {
            let cookie = self.cookies.secret_u64();
            entry.on_test_sent(TokenKind::Home, cookie);
            packets.push((home_address, MobilityMessage::HomeTestInit { cookie }));
        }
        if let Some(care_of_address) = care_of {
            let cookie = self.cookies.secret_u64();
            entry.on_test_sent(TokenKind::CareOf, cookie);
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
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        if entry.begin_update(now, home_address, own_address, wanted, initial) {
            self.send_update(now, peer);
        }
    }

    /// Sends the Binding Update that is pending, with the sequence number as it is (section 11.7.2).
    fn send_update(&mut self, now: Instant, peer: Ipv6Addr) {
        let home_address = self.config.home_address;
        let acknowledge = self.config.acknowledge_correspondents;
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        let Ok(sent) = entry.send_update(now) else {
            self.counters.postponed += 1;
            return;
        };
        let Some((pending, sequence)) = sent else {
            return;
        };
        let care_of_address = pending.care_of_address();
        let authorization = pending.authorization();
        let update = BindingUpdate {
            sequence,
            acknowledge,
            lifetime: pending.lifetime(),
            ..BindingUpdate::default()
        };
        let (home, care_of) = authorization.map_or((0, 0), |a| a.nonce_indices);
        let mut header = MobilityHeader::new(
            MobilityMessage::BindingUpdate(update),
            vec![
                MobilityOption::NonceIndices { home, care_of },
                MobilityOption::blank_authorization(),
            ],
        );
        if let (Some(authorization), Some(mh_data)) = (authorization, header.authorized_bytes()) {
            let key = authorization.key;
            header.authenticate(key.authenticator(care_of_address, peer, &mh_data));
        }
        let mut packet = mobility_packet(care_of_address, peer, header);
        if care_of_address != home_address {
            packet
                .extensions
                .push(ExtensionHeader::home_address(home_address));
        }
        self.send(packet);
        if !acknowledge {
            self.correspondent_registered(now, peer, &pending, pending.lifetime());
        }
    }

    /// The peer has the binding, or no longer has one.
    fn correspondent_registered(
        &mut self,
        now: Instant,
        peer: Ipv6Addr,
        pending: &PendingUpdate,
        granted: u16,
    ) {
        let own_address = self.own_address();
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        if let Some(direct) = entry.on_registered(now, pending, granted, own_address) {
            let to = if direct { peer } else { self.config.home_agent };
            self.events.push_back(ShimEvent::RouteChanged { peer, to });
        }
    }

    fn handle_peer_timeout(&mut self, now: Instant, peer: Ipv6Addr) {
        let max = self.config.max_bindack_timeout;
        let most = self.config.correspondent_attempts;
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        match entry.take_due(now) {
            Due::Nothing => {}
            Due::Expired => {
                self.counters.bindings_expired += 1;
                self.lose_direct_way(peer);
            }
            Due::Refresh => {
                let in_use = now.since(entry.last_used()) <= ACTIVE;
                if in_use && !entry.is_busy() && entry.is_optimized() {
                    self.begin_tests(now, peer);
                }
            }
        }
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        match entry.on_timeout(now, max, most) {
            Expiry::Nothing => {}
            Expiry::GivesUp => self.give_up(now, peer),
            Expiry::Tests { retransmits } => {
                self.counters.retransmissions += u64::from(retransmits);
                self.send_tests(now, peer);
            }
            Expiry::Update { retransmits } => {
                self.counters.retransmissions += u64::from(retransmits);
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
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        entry.give_up(now, home_address, retry, initial);
        self.lose_direct_way(peer);
        self.correspondent.forget(now, peer);
        self.events.push_back(ShimEvent::HandoffFailed { peer });
        self.send_update(now, peer);
    }

    /// The peer has no binding of us.
    fn lose_direct_way(&mut self, peer: Ipv6Addr) {
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        if entry.on_unregistered() {
            let to = self.config.home_agent;
            self.events.push_back(ShimEvent::RouteChanged { peer, to });
        }
    }
}

/// Whether this says that a Home Address option with this address is not known (RFC 8200 section 4.2).
fn refuses_option(error: &Icmpv6, home_address: Ipv6Addr) -> bool {
    const UNRECOGNIZED_OPTION: u8 = 2;
    const HOME_ADDRESS_OPTION: [u8; 2] = [0xc9, 16];
    let Icmpv6::ParameterProblem {
        code: UNRECOGNIZED_OPTION,
        pointer,
        invoking,
    } = error
    else {
        return false;
    };
    let option = invoking.get(*pointer as usize..).unwrap_or_default();
    let address = option.strip_prefix(&HOME_ADDRESS_OPTION);
    address.is_some_and(|address| address.starts_with(&home_address.octets()))
}

/// A refresh that a correspondent asks for comes at least so long after the last registration.
const LEAST_REFRESH: Duration = Duration::from_secs(10);
/// Packets that came the direct way so recently show that a Binding Error is forged or late.
const RECENT_PROGRESS: Duration = Duration::from_secs(1);
