//! The client's side of DHCPv6 (RFC 8415 section 18.2).

use super::config::ClientConfig;
use super::{ALL_DHCP_RELAY_AGENTS_AND_SERVERS, PREFERENCE, duid, udp_packet};
use crate::random::Stream;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::dhcpv6::{
    CLIENT_PORT, Dhcpv6Message, Dhcpv6Option, IaAddress, IaNa, MessageType, SERVER_PORT,
};
use segue_wire::icmpv6::nd::LinkLayerAddress;

/// The client of one interface. It is driven by [`super::Acquisition`].
#[derive(Debug)]
pub(super) struct Client {
    config: ClientConfig,
    duid: Bytes,
    iaid: u32,
    link_local: Ipv6Addr,
    state: State,
    outbox: Option<Packet>,
    leased: Option<IaAddress>,
}

#[derive(Debug)]
enum State {
    /// Not started.
    Idle,
    /// SOLICIT is to be sent at this time for the first time.
    Waiting { until: Instant },
    /// SOLICIT was sent.
    Soliciting { exchange: Exchange, best: Option<Offer> },
    /// REQUEST was sent.
    Requesting { exchange: Exchange, offer: Offer },
    /// An address is leased.
    Bound(Lease),
    /// RENEW was sent to the server of the lease (section 18.2.4).
    Renewing { exchange: Exchange, lease: Lease },
    /// REBIND was sent to any server, since T2 was reached (section 18.2.5).
    Rebinding { exchange: Exchange, lease: Lease },
}

/// A lease as it was granted.
#[derive(Clone, Debug)]
struct Lease {
    server: Bytes,
    address: IaAddress,
    /// When to ask its server to extend it; none for a lease for ever.
    t1: Option<Instant>,
    /// When to ask any server.
    t2: Option<Instant>,
}

/// A lease while its link is away.
#[derive(Clone, Debug)]
pub(super) struct SuspendedLease(Lease);

impl SuspendedLease {
    pub(super) fn address(&self) -> Ipv6Addr {
        self.0.address.address
    }
}

/// A message that is retransmitted until it is answered (section 15).
#[derive(Clone, Debug)]
struct Exchange {
    transaction_id: u32,
    started: Instant,
    /// RT.
    timeout: Duration,
    next: Instant,
    transmissions: u32,
}

impl Exchange {
    /// The first message goes now, and again after `timeout`.
    fn begin(now: Instant, timeout: Duration, stream: &mut Stream) -> Self {
        Self {
            transaction_id: transaction(stream),
            started: now,
            timeout,
            next: now + timeout,
            transmissions: 1,
        }
    }
}

/// An ADVERTISE.
#[derive(Clone, Debug)]
struct Offer {
    server: Bytes,
    preference: u8,
    address: IaAddress,
}

impl Client {
    pub(super) fn new(config: ClientConfig, link_layer: LinkLayerAddress, iaid: u32) -> Self {
        Self {
            config,
            duid: duid(link_layer),
            iaid,
            link_local: crate::nd::link_local(link_layer),
            state: State::Idle,
            outbox: None,
            leased: None,
        }
    }

    /// Begins to look for an address, unless it already does or has one.
    pub(super) fn start(&mut self, now: Instant, stream: &mut Stream) {
        if !matches!(self.state, State::Idle) {
            return;
        }
        let max = self.config.sol_max_delay.as_nanos();
        let delay = if max == 0 { 0 } else { stream.below(max) };
        self.state = State::Waiting {
            until: now + Duration::from_nanos(delay),
        };
        self.handle_timeout(now, stream);
    }

    /// Forgets everything.
    pub(super) fn stop(&mut self) {
        self.state = State::Idle;
        self.outbox = None;
        self.leased = None;
    }

    /// The lease that there is, if any: to be taken up again when the link is back. Forgets what was under way.
    pub(super) fn suspend(&mut self) -> Option<SuspendedLease> {
        let lease = match core::mem::replace(&mut self.state, State::Idle) {
            State::Bound(lease) | State::Renewing { lease, .. } | State::Rebinding { lease, .. } => {
                Some(SuspendedLease(lease))
            }
            _ => None,
        };
        self.stop();
        lease
    }

    /// Takes up a lease again; RENEW goes at once if T1 has passed.
    pub(super) fn resume(&mut self, lease: SuspendedLease) {
        self.state = State::Bound(lease.0);
    }

    /// The address of the lease was lost with the lease: another one is needed.
    pub(super) fn is_for(&self, address: Ipv6Addr) -> bool {
        self.state
            .lease()
            .is_some_and(|lease| lease.address.address == address)
    }

    /// The leased address is taken by another node (section 18.2.8): tells the server, once, and asks again.
    pub(super) fn decline(&mut self, now: Instant, address: Ipv6Addr, stream: &mut Stream) {
        let Some(Lease { server, .. }) = self.state.lease() else {
            return;
        };
        let ia = IaAddress {
            address,
            preferred_lifetime_s: 0,
            valid_lifetime_s: 0,
        };
        let options = vec![
            Dhcpv6Option::ClientIdentifier(self.duid.clone()),
            Dhcpv6Option::ServerIdentifier(server.clone()),
            Dhcpv6Option::IaNa(self.ia_na(Some(ia))),
            Dhcpv6Option::ElapsedTime(0),
        ];
        let message = Dhcpv6Message {
            message_type: MessageType::Decline,
            transaction_id: transaction(stream),
            options,
        };
        self.outbox = Some(self.packet(&message));
        // A pause of one SOL_TIMEOUT, so that a server that offers the same address again is not flooded.
        self.state = State::Waiting {
            until: now + self.config.sol_timeout,
        };
    }

    /// Takes a message; one that is not an answer to ours is ignored.
    pub(super) fn handle_message(&mut self, now: Instant, message: &Dhcpv6Message, stream: &mut Stream) {
        let Some(answer) = Answer::of(message, &self.duid, self.iaid) else {
            return;
        };
        match &mut self.state {
            State::Soliciting { exchange, best } if exchange.transaction_id == message.transaction_id => {
                match (message.message_type, answer.address) {
                    (MessageType::Advertise, Some(address)) => {
                        let offer = Offer {
                            server: answer.server,
                            preference: answer.preference,
                            address,
                        };
                        // Section 18.2.1: the first RT is for collecting offers, unless one has preference 255.
                        let take = offer.preference == u8::MAX || exchange.transmissions > 1;
                        if take {
                            self.request(now, offer, stream);
                        } else if best.as_ref().is_none_or(|b| b.preference < offer.preference) {
                            *best = Some(offer);
                        }
                    }
                    (MessageType::Reply, Some(address))
                        if self.config.rapid_commit && answer.rapid_commit =>
                    {
                        self.lease(now, address, answer.server, answer.t1_s, answer.t2_s);
                    }
                    _ => {}
                }
            }
            State::Requesting { exchange, .. }
                if exchange.transaction_id == message.transaction_id
                    && message.message_type == MessageType::Reply =>
            {
                match answer.address {
                    Some(address) => self.lease(now, address, answer.server, answer.t1_s, answer.t2_s),
                    None => {
                        self.state = State::Waiting {
                            until: now + self.config.sol_timeout,
                        }
                    }
                }
            }
            // section 18.2.10.1: without the address, or with an error, the client goes on asking
            State::Renewing { exchange, lease } | State::Rebinding { exchange, lease }
                if exchange.transaction_id == message.transaction_id
                    && message.message_type == MessageType::Reply =>
            {
                if let Some(address) = answer.address.filter(|a| a.address == lease.address.address) {
                    self.lease(now, address, answer.server, answer.t1_s, answer.t2_s);
                }
            }
            _ => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, stream: &mut Stream) {
        let config = &self.config;
        match &mut self.state {
            State::Waiting { until } if *until <= now => {
                let timeout = first_timeout(config.sol_timeout, true, stream);
                let exchange = Exchange::begin(now, timeout, stream);
                self.send(now, &exchange, None);
                self.state = State::Soliciting { exchange, best: None };
            }
            State::Soliciting { exchange, best } if exchange.next <= now => {
                if let Some(offer) = best.take() {
                    self.request(now, offer, stream);
                    return;
                }
                exchange.retransmit(now, config.sol_max_rt, stream);
                let exchange = exchange.clone();
                self.send(now, &exchange, None);
            }
            State::Requesting { exchange, offer } if exchange.next <= now => {
                if exchange.transmissions >= config.req_max_rc {
                    self.state = State::Waiting { until: now };
                    self.handle_timeout(now, stream);
                    return;
                }
                exchange.retransmit(now, config.req_max_rt, stream);
                let (exchange, offer) = (exchange.clone(), offer.clone());
                self.send(now, &exchange, Some(&offer));
            }
            State::Bound(lease) if lease.t1.is_some_and(|t1| t1 <= now) => {
                let lease = lease.clone();
                self.extend(now, lease, stream);
            }
            // section 18.2.4: the exchange is terminated when T2 is reached
            State::Renewing { lease, .. } if lease.rebinds(now) => {
                let lease = lease.clone();
                self.extend(now, lease, stream);
            }
            State::Renewing { exchange, lease } | State::Rebinding { exchange, lease }
                if exchange.next <= now =>
            {
                exchange.retransmit(now, config.ren_max_rt, stream);
                let (exchange, lease) = (exchange.clone(), lease.clone());
                self.send_renewal(now, &exchange, &lease);
            }
            _ => {}
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Idle => None,
            State::Waiting { until } => Some(*until),
            State::Bound(lease) => lease.t1,
            State::Renewing { exchange, lease } => {
                Some(lease.t2.map_or(exchange.next, |t2| exchange.next.min(t2)))
            }
            State::Soliciting { exchange, .. }
            | State::Requesting { exchange, .. }
            | State::Rebinding { exchange, .. } => Some(exchange.next),
        }
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Packet> {
        self.outbox.take()
    }

    /// An address that the server has just leased.
    pub(super) fn poll_leased(&mut self) -> Option<IaAddress> {
        self.leased.take()
    }

    /// Takes a lease. Times of 0 are the client's to choose: 0.5 and 0.8 of the preferred lifetime, as a server would
    /// (section 21.4). Of an address that is deprecated already, or will be within a second, that is no time at all, and the client "MUST
    /// choose a time to avoid packet storms. In particular, it MUST NOT transmit immediately" (section 14.2): it waits as long
    /// as for an answer to the first RENEW.
    fn lease(&mut self, now: Instant, address: IaAddress, server: Bytes, t1_s: u32, t2_s: u32) {
        let preferred = u64::from(address.preferred_lifetime_s);
        let at = |told: u32, otherwise: u64| match told {
            u32::MAX => None,
            0 if address.preferred_lifetime_s == u32::MAX => None,
            0 if preferred < 2 => Some(now + self.config.ren_timeout),
            0 => Some(now + Duration::from_secs(otherwise)),
            told => Some(now + Duration::from_secs(u64::from(told))),
        };
        self.state = State::Bound(Lease {
            server,
            address,
            t1: at(t1_s, preferred / 2),
            t2: at(t2_s, preferred * 4 / 5),
        });
        self.outbox = None;
        self.leased = Some(address);
    }

    /// Begins to ask for the lease to be extended: its server, or from T2 on any.
    fn extend(&mut self, now: Instant, lease: Lease, stream: &mut Stream) {
        let timeout = first_timeout(self.config.ren_timeout, false, stream);
        let exchange = Exchange::begin(now, timeout, stream);
        self.send_renewal(now, &exchange, &lease);
        self.state = if lease.rebinds(now) {
            State::Rebinding { exchange, lease }
        } else {
            State::Renewing { exchange, lease }
        };
    }

    fn request(&mut self, now: Instant, offer: Offer, stream: &mut Stream) {
        let timeout = first_timeout(self.config.req_timeout, false, stream);
        let exchange = Exchange::begin(now, timeout, stream);
        self.send(now, &exchange, Some(&offer));
        self.state = State::Requesting { exchange, offer };
    }

    /// Sends SOLICIT, or REQUEST for an offer.
    fn send(&mut self, now: Instant, exchange: &Exchange, offer: Option<&Offer>) {
        let elapsed = (now - exchange.started).as_millis() / 10;
        let mut options = vec![Dhcpv6Option::ClientIdentifier(self.duid.clone())];
        options.extend(offer.map(|o| Dhcpv6Option::ServerIdentifier(o.server.clone())));
        options.push(Dhcpv6Option::IaNa(self.ia_na(offer.map(|o| o.address))));
        options.push(Dhcpv6Option::ElapsedTime(
            u16::try_from(elapsed).unwrap_or(u16::MAX),
        ));
        if offer.is_none() && self.config.rapid_commit {
            options.push(Dhcpv6Option::RapidCommit);
        }
        let message_type = if offer.is_some() {
            MessageType::Request
        } else {
            MessageType::Solicit
        };
        let message = Dhcpv6Message {
            message_type,
            transaction_id: exchange.transaction_id,
            options,
        };
        self.outbox = Some(self.packet(&message));
    }

    /// Sends RENEW to the lease's server or, from T2 on, REBIND to any.
    fn send_renewal(&mut self, now: Instant, exchange: &Exchange, lease: &Lease) {
        let rebinds = lease.rebinds(now);
        let elapsed = (now - exchange.started).as_millis() / 10;
        let mut options = vec![Dhcpv6Option::ClientIdentifier(self.duid.clone())];
        if !rebinds {
            options.push(Dhcpv6Option::ServerIdentifier(lease.server.clone()));
        }
        options.push(Dhcpv6Option::IaNa(self.ia_na(Some(lease.address))));
        options.push(Dhcpv6Option::ElapsedTime(
            u16::try_from(elapsed).unwrap_or(u16::MAX),
        ));
        let message = Dhcpv6Message {
            message_type: if rebinds {
                MessageType::Rebind
            } else {
                MessageType::Renew
            },
            transaction_id: exchange.transaction_id,
            options,
        };
        self.outbox = Some(self.packet(&message));
    }

    fn ia_na(&self, address: Option<IaAddress>) -> IaNa {
        IaNa {
            iaid: self.iaid,
            t1_s: 0,
            t2_s: 0,
            addresses: address.into_iter().collect(),
        }
    }

    fn packet(&self, message: &Dhcpv6Message) -> Packet {
        udp_packet(
            (self.link_local, CLIENT_PORT),
            (ALL_DHCP_RELAY_AGENTS_AND_SERVERS, SERVER_PORT),
            message,
        )
    }
}

impl State {
    /// The lease that there is.
    fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Bound(lease) | Self::Renewing { lease, .. } | Self::Rebinding { lease, .. } => Some(lease),
            _ => None,
        }
    }
}

impl Lease {
    /// Whether any server is asked, T2 being reached.
    fn rebinds(&self, now: Instant) -> bool {
        self.t2.is_some_and(|t2| t2 <= now)
    }
}

impl Exchange {
    /// RT = 2 RTprev + RAND RTprev, at most MRT + RAND MRT (section 15).
    fn retransmit(&mut self, now: Instant, max: Duration, stream: &mut Stream) {
        let mut timeout = randomised(self.timeout * 2, self.timeout, stream);
        if timeout > max {
            timeout = randomised(max, max, stream);
        }
        self.timeout = timeout;
        self.next = now + timeout;
        self.transmissions += 1;
    }
}

/// What an answer says to us.
struct Answer {
    server: Bytes,
    preference: u8,
    rapid_commit: bool,
    address: Option<IaAddress>,
    t1_s: u32,
    t2_s: u32,
}

impl Answer {
    /// `None` if the message is not for us or names no server (section 16.3, 16.10).
    fn of(message: &Dhcpv6Message, duid: &Bytes, iaid: u32) -> Option<Self> {
        let (mut for_us, mut server, mut refused) = (false, None, false);
        let (mut preference, mut rapid_commit, mut address) = (0, false, None);
        let (mut t1_s, mut t2_s) = (0, 0);
        for option in &message.options {
            match option {
                Dhcpv6Option::ClientIdentifier(id) => for_us = id == duid,
                Dhcpv6Option::ServerIdentifier(id) => server = Some(id.clone()),
                Dhcpv6Option::RapidCommit => rapid_commit = true,
                Dhcpv6Option::StatusCode { code, .. } => refused = *code != 0,
                Dhcpv6Option::Unknown {
                    code: PREFERENCE,
                    data,
                } => {
                    preference = data.first().copied().unwrap_or(0);
                }
                Dhcpv6Option::IaNa(ia) if ia.iaid == iaid => {
                    // section 21.4: one with T1 above T2, which is not 0, is discarded
                    if ia.t1_s > ia.t2_s && ia.t2_s > 0 {
                        continue;
                    }
                    (t1_s, t2_s) = (ia.t1_s, ia.t2_s);
                    address = ia
                        .addresses
                        .iter()
                        .copied()
                        .find(|a| a.valid_lifetime_s > 0 && a.preferred_lifetime_s <= a.valid_lifetime_s);
                }
                _ => {}
            }
        }
        let address = if refused { None } else { address };
        for_us.then_some(())?;
        Some(Self {
            server: server?,
            preference,
            rapid_commit,
            address,
            t1_s,
            t2_s,
        })
    }
}

/// IRT + RAND IRT; for SOLICIT RAND is above zero (section 15, 18.2.1).
fn first_timeout(initial: Duration, solicit: bool, stream: &mut Stream) -> Duration {
    if solicit {
        initial + Duration::from_nanos(1 + stream.below(initial.as_nanos() / 10 + 1))
    } else {
        randomised(initial, initial, stream)
    }
}

/// `base` plus a random part of `scale` from -0.1 to 0.1.
fn randomised(base: Duration, scale: Duration, stream: &mut Stream) -> Duration {
    let tenth = scale.as_nanos() / 10;
    base + Duration::from_nanos(stream.below(2 * tenth + 1)) - Duration::from_nanos(tenth)
}

fn transaction(stream: &mut Stream) -> u32 {
    stream.below(1 << 24) as u32
}
