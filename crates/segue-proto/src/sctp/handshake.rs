//! The four-way handshake, from either side (RFC 9260 section 5).

pub(super) mod cookie;
mod identity;

pub(super) use identity::Identity;

use super::association::{Association, ControlPacket, PACKET_HEADERS, Setup, State};
use super::auth::{self, Random};
use super::extensions::{self, PeerExtensions};
use super::former_addresses::MOST_NOT_TAKEN;
use super::inbound::Received;
use super::local::address_rules::may_be_of_peer;
use super::path::MAX_DESTINATIONS;
use super::reassembly::Reassembly;
use super::{Config, Event};
use crate::congestion::SctpWindow;
use crate::contract::LocalAddress;
use crate::random::SecretRng;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use cookie::Cookie;
use core::net::Ipv6Addr;
use segue_wire::Tsn;
use segue_wire::sctp::parameter_type::{IPV6_ADDRESS, STATE_COOKIE};
use segue_wire::sctp::{Chunk, ErrorCause, Init, Parameter, UnrecognizedAction};
use smallvec::SmallVec;

/// What the parameters of a peer's INIT or INIT ACK say.
#[derive(Debug, Default)]
pub(super) struct PeerParameters {
    pub addresses: Vec<Ipv6Addr>,
    /// Those that are not taken, as far as they are kept.
    pub not_taken: Vec<Ipv6Addr>,
    pub cookie: Option<Bytes>,
    /// Those that negotiate extensions.
    pub extensions: Vec<Parameter>,
    pub preservative_ms: u32,
    /// Parameters to be reported, whole (section 3.2.1).
    pub unrecognized: Vec<Bytes>,
    /// A host name, whole: the peer must be refused (section 5.1.2).
    pub host_name: Option<Bytes>,
}

impl PeerParameters {
    pub(super) fn read(parameters: &[Parameter]) -> Self {
        let mut out = Self::default();
        for parameter in parameters {
            match parameter {
                Parameter::Ipv6Address(address) => {
                    let usable = !address.is_multicast() && !address.is_unspecified();
                    let room = out.addresses.len() < MAX_DESTINATIONS;
                    if room && usable && !out.addresses.contains(address) {
                        out.addresses.push(*address);
                    } else if usable && !room {
                        note_not_taken(&mut out.not_taken, *address);
                    }
                }
                Parameter::StateCookie(cookie) => out.cookie = Some(cookie.clone()),
                Parameter::CookiePreservative(increment) => out.preservative_ms = *increment,
                Parameter::HostNameAddress(_) => out.host_name = Some(whole(parameter)),
                Parameter::Unknown { parameter_type, .. } => {
                    let action = UnrecognizedAction::of_parameter_type(*parameter_type);
                    if action.reports() {
                        out.unrecognized.push(whole(parameter));
                    }
                    if action.stops() {
                        break;
                    }
                }
                _ if PeerExtensions::concerns(parameter) => out.extensions.push(parameter.clone()),
                _ => {}
            }
        }
        out
    }

    /// Drops addresses that cannot be those of a peer at `from`. Returns how many they were.
    pub(super) fn drop_impossible(&mut self, from: Ipv6Addr, own: impl Fn(Ipv6Addr) -> bool) -> u64 {
        let named = core::mem::take(&mut self.addresses);
        let may_be = |&address: &Ipv6Addr| may_be_of_peer(address, from, &own);
        let (possible, impossible): (Vec<_>, Vec<_>) = named.into_iter().partition(may_be);
        self.addresses = possible;
        for &address in &impossible {
            note_not_taken(&mut self.not_taken, address);
        }
        impossible.len() as u64
    }
}

/// Adds an address that a peer has named to those that are not taken, if there is room.
pub(super) fn note_not_taken(not_taken: &mut Vec<Ipv6Addr>, address: Ipv6Addr) {
    if not_taken.len() < MOST_NOT_TAKEN && !not_taken.contains(&address) {
        not_taken.push(address);
    }
}

/// A parameter's bytes, as an error cause quotes them.
fn whole(parameter: &Parameter) -> Bytes {
    let mut out = Vec::with_capacity(parameter.buffer_len());
    parameter.emit(&mut out);
    out.into()
}

/// Parameters that every INIT and INIT ACK of ours carries.
fn own_parameters(config: &Config, local: &[LocalAddress], random: Option<&Random>) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    // a single address is that of the packet
    if local.len() > 1 {
        parameters.extend(local.iter().map(|l| Parameter::Ipv6Address(l.address)));
    }
    parameters.extend(extensions::offered(config, random));
    parameters
}

/// Least a_rwnd of an INIT or INIT ACK, bytes (sections 3.3.2 and 3.3.3).
const MIN_INITIAL_RWND: u32 = 1500;

/// Whether nothing in an INIT or INIT ACK is fatal (sections 3.3.2 and 3.3.3).
pub(super) fn is_acceptable(init: &Init) -> bool {
    init.initiate_tag != 0
        && init.outbound_streams != 0
        && init.inbound_streams != 0
        && init.a_rwnd >= MIN_INITIAL_RWND
}

/// Builds the INIT ACK that answers an INIT, around a sealed cookie. As many unrecognised parameters are reported as
/// fit one packet: whoever sent the INIT has proven nothing yet, and is not to be answered with more.
pub(super) fn init_ack(
    config: &Config,
    local: &[LocalAddress],
    cookie: &Cookie,
    sealed: Bytes,
    unrecognized: Vec<Bytes>,
) -> Init {
    let sealed = Parameter::StateCookie(sealed);
    let parameters = own_parameters(config, local, cookie.local_random.as_ref());
    let mut init_ack = Init {
        initiate_tag: cookie.local_tag,
        a_rwnd: config.receive_buffer,
        // no more than the peer takes: as many as there will be
        outbound_streams: cookie.outbound_streams,
        inbound_streams: config.max_inbound_streams,
        initial_tsn: cookie.local_initial_tsn,
        parameters,
    };
    let chunk_header = 4;
    let used = PACKET_HEADERS as usize
        + chunk_header
        + init_ack.buffer_len().next_multiple_of(4)
        + sealed.buffer_len().next_multiple_of(4);
    let mut room = (config.mtu as usize).saturating_sub(used);
    for parameter in unrecognized.into_iter().map(Parameter::UnrecognizedParameter) {
        let len = parameter.buffer_len().next_multiple_of(4);
        if len > room {
            break;
        }
        room -= len;
        init_ack.parameters.push(parameter);
    }
    init_ack.parameters.push(sealed);
    init_ack
}

impl Association {
    /// Starts the handshake as the client.
    pub(super) fn start(&mut self, now: Instant) {
        self.send_init(now);
    }

    /// The server's association, from the cookie that came back.
    pub(super) fn from_cookie(
        now: Instant,
        config: &Config,
        cookie: &Cookie,
        local: &[LocalAddress],
        route: LocalAddress,
        secrets: &mut dyn SecretRng,
    ) -> Self {
        let setup = Setup {
            config,
            state: State::CookieWait,
            identity: Identity::new(cookie.local_port, cookie.peer_port, cookie.local_tag),
            local_initial_tsn: cookie.local_initial_tsn,
            local_random: cookie.local_random,
            local,
            route,
            peer_addresses: &cookie.peer_addresses,
            // section 5.4: for the receiver of COOKIE ECHO, the address that the INIT ACK went to
            confirmed: 1,
        };
        let mut association = Self::new(now, &setup, secrets);
        association.adopt_cookie(now, cookie);
        association
    }

    /// The peer's side of a cookie becomes this association's: the association is up.
    pub(super) fn adopt_cookie(&mut self, now: Instant, cookie: &Cookie) {
        self.identity.learn_peer_tag(cookie.peer_tag);
        self.outbound_streams = cookie.outbound_streams;
        self.inbound_streams = cookie.inbound_streams;
        self.auth.adopt_random(&self.config, cookie.local_random);
        self.negotiate(&cookie.peer_parameters);
        self.set_peer(cookie.peer_initial_tsn, cookie.peer_rwnd);
        for &address in &cookie.peer_addresses {
            self.add_destination(now, address, false);
        }
        for &address in &cookie.not_taken {
            self.former_addresses.add(address);
        }
        self.reply_to = cookie
            .peer_addresses
            .first()
            .copied()
            .unwrap_or(self.primary_path());
        self.become_established(now);
    }

    fn set_peer(&mut self, initial_tsn: Tsn, rwnd: u32) {
        self.received = Received::new(initial_tsn);
        self.reassembly = Reassembly::new(initial_tsn, &self.config);
        self.asconf.begin(initial_tsn);
        self.streams.begin(initial_tsn);
        self.peer_rwnd = rwnd;
        self.initial_ssthresh = rwnd;
        for path in self.paths.values_mut() {
            path.window = SctpWindow::new(self.rules, rwnd);
        }
    }

    fn become_established(&mut self, now: Instant) {
        self.state = State::Established;
        self.t1 = None;
        self.cookie = Bytes::new();
        // section 5.1.1: the peer takes fewer streams than this end asked for, and what waits needs them
        if self.outbound.streams_needed() > usize::from(self.outbound_streams) {
            self.abort_with(ErrorCause::UserInitiatedAbort(Bytes::from_static(
                b"too few streams",
            )));
            return;
        }
        self.association_error_count = 0;
        self.open_burst();
        self.out.tell(Event::Connected);
        if self.auth.random.is_some() && !self.is_authentication_negotiated() {
            self.out.tell(Event::AuthenticationNotSupported);
        }
        for index in self.destinations.ids() {
            self.start_heartbeats(now, index);
        }
    }

    fn send_init(&mut self, now: Instant) {
        let local: SmallVec<[LocalAddress; 2]> = self.local_addresses().collect();
        let mut parameters = own_parameters(&self.config, &local, self.auth.random.as_ref());
        // of an INIT alone (section 3.3.2): the answer keeps to them
        parameters.push(Parameter::SupportedAddressTypes(vec![IPV6_ADDRESS]));
        if let Some(increment) = self.cookie_preservative {
            parameters.push(Parameter::CookiePreservative(increment));
        }
        let init = Init {
            initiate_tag: self.identity.local_tag(),
            a_rwnd: self.config.receive_buffer,
            outbound_streams: self.config.outbound_streams,
            inbound_streams: self.config.max_inbound_streams,
            initial_tsn: self.outbound.next_tsn(),
            parameters,
        };
        let chunks = SmallVec::from_buf([Chunk::Init(Box::new(init))]);
        // section 8.5.1, rule A: also where an INIT ACK has named the peer's tag, and its cookie came back too late
        self.send_handshake(now, |to| ControlPacket::new(to, chunks).with_tag(0));
    }

    /// INIT or COOKIE ECHO again, of a handshake that had stood still.
    pub(super) fn resend_handshake(&mut self, now: Instant) {
        match self.state {
            State::CookieWait => self.send_init(now),
            State::CookieEchoed => self.send_cookie_echo(now),
            _ => {}
        }
    }

    fn send_cookie_echo(&mut self, now: Instant) {
        let mut chunks = SmallVec::from_buf([Chunk::CookieEcho(self.cookie.clone())]);
        if !self.init_errors.is_empty() {
            chunks.push(Chunk::Error(self.init_errors.clone()));
        }
        self.send_handshake(now, |to| ControlPacket::new(to, chunks));
    }

    fn send_handshake(&mut self, now: Instant, packet: impl FnOnce(Ipv6Addr) -> ControlPacket) {
        let d = &self.destinations[self.handshake_destination];
        let rto = self
            .paths
            .get(d.path)
            .map_or(self.config.rto_initial, |p| p.rto());
        self.out.send(packet(d.address));
        self.handshake_sent = Some(now);
        self.t1 = Some(now + self.config.max_init_timeout.map_or(rto, |most| rto.min(most)));
    }

    /// T1-init or T1-cookie expired (section 5.1, rules B and C): again, to the next address if there is one.
    pub(super) fn on_t1(&mut self, now: Instant) {
        self.handshake_retransmissions += 1;
        if self.handshake_retransmissions > self.config.max_init_retransmits {
            self.give_up_peer();
            return;
        }
        for path in self.paths.values_mut() {
            path.rtt.back_off();
        }
        if let Some(next) = self.usable_destination(Some(self.handshake_destination)) {
            self.handshake_destination = next;
        }
        match self.state {
            State::CookieWait => self.send_init(now),
            State::CookieEchoed => self.send_cookie_echo(now),
            _ => self.t1 = None,
        }
    }

    pub(super) fn on_init_ack(&mut self, now: Instant, from: Ipv6Addr, init_ack: &Init) {
        if self.state != State::CookieWait {
            self.out.counters.refused.unexpected += 1; // section 5.2.3
            return;
        }
        let mut peer = PeerParameters::read(&init_ack.parameters);
        let own = |address| self.local.is_own(address);
        self.out.counters.addresses_ignored += peer.drop_impossible(from, own);
        let cause = if !is_acceptable(init_ack) {
            Some(ErrorCause::InvalidMandatoryParameter)
        } else if let Some(name) = peer.host_name {
            Some(ErrorCause::UnresolvableAddress(name))
        } else if peer.cookie.is_none() {
            Some(ErrorCause::MissingMandatoryParameter(vec![STATE_COOKIE]))
        } else {
            auth::refusal(&self.config, &peer.extensions)
        };
        if let Some(cause) = cause {
            let abort = Chunk::Abort {
                reflected_tag: false,
                causes: vec![cause.clone()],
            };
            let packet = ControlPacket::new(from, SmallVec::from_buf([abort]));
            self.out.send(packet.with_tag(init_ack.initiate_tag));
            self.close(Event::Aborted { causes: vec![cause] });
            return;
        }
        let cookie = peer.cookie.unwrap_or_default();
        self.identity.learn_peer_tag(init_ack.initiate_tag);
        self.outbound_streams = self.config.outbound_streams.min(init_ack.inbound_streams);
        self.inbound_streams = self.config.max_inbound_streams.min(init_ack.outbound_streams);
        self.negotiate(&peer.extensions);
        self.set_peer(init_ack.initial_tsn, init_ack.a_rwnd);
        self.reply_to = from;
        // section 5.4: the address that the INIT ACK came from has proven itself by the tag
        self.add_destination(now, from, true);
        for address in peer.addresses {
            if self.add_destination(now, address, false).is_none() {
                note_not_taken(&mut peer.not_taken, address);
            }
        }
        for address in peer.not_taken {
            self.former_addresses.add(address);
        }
        if let Some(index) = self.destination_index(from) {
            self.handshake_destination = index;
        }
        if !peer.unrecognized.is_empty() {
            self.init_errors = vec![ErrorCause::UnrecognizedParameters(
                peer.unrecognized.concat().into(),
            )];
        }
        self.cookie = cookie;
        self.state = State::CookieEchoed;
        self.handshake_retransmissions = 0;
        self.send_cookie_echo(now);
    }

    pub(super) fn on_cookie_ack(&mut self, now: Instant) {
        if self.state == State::CookieEchoed {
            self.become_established(now);
        } else {
            self.out.counters.refused.unexpected += 1; // section 5.2.5
        }
    }

    /// Section 5.2.6: try again, asking for a longer life of the cookie.
    pub(super) fn on_stale_cookie(&mut self, now: Instant, staleness_us: u32) {
        if self.state != State::CookieEchoed {
            return;
        }
        self.stale_cookies += 1;
        if self.stale_cookies > self.config.max_init_retransmits {
            self.close(Event::Lost);
            return;
        }
        // the round trip of COOKIE ECHO and ERROR, and of what was missing no more than a second: a long life is an
        // invitation to replay the cookie
        let round_trip = self.handshake_sent.map_or(Duration::ZERO, |at| now.since(at));
        let missing = Duration::from_micros(u64::from(staleness_us)) + Duration::from_millis(1);
        let increment = round_trip + missing.min(Duration::from_secs(1));
        self.cookie_preservative = Some(u32::try_from(increment.as_nanos() / 1_000_000).unwrap_or(u32::MAX));
        self.state = State::CookieWait;
        self.send_init(now);
    }

    /// COOKIE ACK goes before anything else.
    pub(super) fn queue_cookie_ack(&mut self, to: Ipv6Addr) {
        let chunks = SmallVec::from_buf([Chunk::CookieAck]);
        self.out.send_first(ControlPacket::new(to, chunks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(parameter_type: u16) -> Parameter {
        Parameter::Unknown {
            parameter_type,
            value: Bytes::from_static(b"abc"),
        }
    }

    #[test]
    fn the_high_bits_of_an_unknown_parameter_say_whether_to_stop_and_whether_to_report() {
        // RFC 9260 section 3.2.1
        let address = Parameter::Ipv6Address(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        for (parameter_type, stops, reports) in [
            (0x0042, true, false),
            (0x4042, true, true),
            (0x8042, false, false),
            (0xc042, false, true),
        ] {
            let read = PeerParameters::read(&[unknown(parameter_type), address.clone()]);
            assert_eq!(read.addresses.is_empty(), stops, "{parameter_type:#x}");
            assert_eq!(
                read.unrecognized.len(),
                usize::from(reports),
                "{parameter_type:#x}"
            );
        }
        let read = PeerParameters::read(&[unknown(0xc042)]);
        assert_eq!(read.unrecognized[0][..], [0xc0, 0x42, 0, 7, b'a', b'b', b'c']);
    }

    #[test]
    fn a_host_name_is_noticed() {
        let name = [Parameter::HostNameAddress(Bytes::from_static(b"x.example\0"))];
        assert!(PeerParameters::read(&name).host_name.is_some());
    }

    #[test]
    fn multicast_unspecified_and_repeated_addresses_are_not_taken() {
        let good = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let multicast = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let parameters = [multicast, Ipv6Addr::UNSPECIFIED, good, good].map(Parameter::Ipv6Address);
        assert_eq!(PeerParameters::read(&parameters).addresses, [good]);
    }
}
