//! What can be set on an association, and the constants of the three generations of the SCTP specification.

use super::MultipathConfig;
use super::auth::{AsconfAuth, AuthConfig};
use crate::time::Duration;
use segue_wire::udp;
use serde::{Deserialize, Serialize};

/// Which specification's constants and rules to use (RFC 9260 section 16 and its predecessors).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// RFC 2960 (2000): RTO.Initial 3 s, initial cwnd 2 MTU, fast retransmit on the fourth missing report, no fast
    /// recovery.
    Rfc2960,
    /// RFC 4960 (2007): initial cwnd min(4 MTU, max(2 MTU, 4380)), three missing reports, fast recovery.
    Rfc4960,
    /// RFC 9260 (2022): RTO.Initial 1 s.
    #[default]
    Rfc9260,
}

/// How the MTU of a path is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PmtuDiscovery {
    /// Every path is taken to carry `Config::mtu`.
    None,
    /// It begins at `Config::mtu`, and Packet Too Big lowers it (RFC 8201).
    #[default]
    PacketTooBig,
    /// It begins at 1280 bytes, and probes raise it up to `Config::mtu` (RFC 8899). Packet Too Big shortens the search,
    /// and a path that swallows what is large is noticed by its timeouts.
    Probing,
}

/// UDP ports of an endpoint that encapsulates (RFC 6951 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdpEncapsulation {
    /// Port that encapsulated packets are sent from and received on.
    pub local_port: u16,
    /// Port that a peer is first sent to; its packets then tell the one that it uses.
    pub remote_port: u16,
}

impl Default for UdpEncapsulation {
    /// The IANA port on both sides.
    fn default() -> Self {
        Self {
            local_port: udp::SCTP_TUNNELING_PORT,
            remote_port: udp::SCTP_TUNNELING_PORT,
        }
    }
}

/// Which path's cwnd an acknowledgement opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CwndCredit {
    /// The path that the acknowledged data was sent on (RFC 9260 section 7.2.1).
    #[default]
    DataPath,
    /// Also the path that the SACK itself arrived over, if cumulative TSN ack advanced: one more MTU of cwnd there
    /// in slow start. Not RFC behaviour: the trait that the SIGMA paper (section V-A) reports of its ns-2 code.
    AckPath,
}

/// Which of its addresses a host sends its acknowledgements from, those of heartbeats included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SackRoute {
    /// Where the local routing table points: the address last given to `Association::set_route`.
    #[default]
    RoutingTable,
    /// The address that what is acknowledged came to.
    Arrival,
}

/// Where T3-rtx retransmissions go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RetransmitTo {
    /// To another active destination if there is one (RFC 9260 section 6.4.1).
    #[default]
    AlternatePath,
    /// To the destination that the data was last sent to.
    SamePath,
}

/// When DATA asks for its SACK without delay (I bit, RFC 7053 section 4). A receiver always answers to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SackImmediately {
    /// Never: as before RFC 7053.
    Never,
    /// On the last chunk before a shutdown, and where `SendOptions::sack_immediately` asks for it.
    #[default]
    OnRequest,
    /// Also on a chunk that fills cwnd or the peer's window while more data waits, and on a window probe.
    WhenBlocked,
}

/// Configuration of an association.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Specification followed.
    pub profile: Profile,
    /// Largest IPv6 packet that the interfaces carry, bytes, the UDP header of an encapsulated one included.
    pub mtu: u32,
    /// How it is found out that a path carries less.
    pub pmtu_discovery: PmtuDiscovery,
    /// Receive buffer, bytes: the a_rwnd offered. What is held, each chunk counted with 128 bytes beside its user bytes, is at
    /// most five times as much and one chunk more, whatever the peer sends.
    pub receive_buffer: u32,
    /// Bytes of an incomplete message from which on it is delivered in pieces (RFC 6458 section 8.1.21): a message
    /// longer than the receive buffer can be received in no other way. `None`: half the receive buffer. `u32::MAX`:
    /// never; a message that does not fit then aborts the association.
    pub partial_delivery_point: Option<u32>,
    /// Send buffer, bytes of user data accepted and not yet acknowledged.
    pub send_buffer: u32,
    /// RTO.Initial.
    pub rto_initial: Duration,
    /// RTO.Min.
    pub rto_min: Duration,
    /// RTO.Max.
    pub rto_max: Duration,
    /// Association.Max.Retrans.
    pub association_max_retrans: u32,
    /// Path.Max.Retrans.
    pub path_max_retrans: u32,
    /// Potentially.Failed.Max.Retrans, PFMR (RFC 7829): errors after which a destination is left for another active
    /// one; `None` leaves it only when it is inactive. Quick failover is `Some(0)`: the first T3-rtx expiry moves the
    /// data.
    ///
    /// How long a link that dies without warning stops the data is then about one RTO and half a round trip, so that what
    /// is left to set is `rto_min`. At a round trip of 20 ms and a message every 5 ms the gap is 115 ms with `rto_min` 100
    /// ms (against 220 ms with `path_max_retrans` 1 and no PFMR), and 55 ms with `rto_min` 40 ms. `rto_min` must stay
    /// above the time that the peer delays its SACKs, which such settings should shorten too, or timeouts come without
    /// any loss.
    pub pf_max_retrans: Option<u32>,
    /// Primary.Switchover.Max.Retrans, PSMR (RFC 7829 section 5): errors after which an active destination becomes the
    /// primary path for good. `None`: data returns to the primary as soon as it answers. Never taken as less than
    /// `pf_max_retrans`.
    pub primary_switchover_max_retrans: Option<u32>,
    /// Max.Init.Retransmits.
    pub max_init_retransmits: u32,
    /// Longest time between two INITs or COOKIE ECHOs (RFC 6458 section 5.3.1, `sinit_max_init_timeo`); `None`: RTO.Max.
    pub max_init_timeout: Option<Duration>,
    /// Valid.Cookie.Life.
    pub valid_cookie_life: Duration,
    /// HB.interval; `None` sends no heartbeats but those that confirm an address.
    pub hb_interval: Option<Duration>,
    /// HB.Max.Burst: HEARTBEATs that go, in one RTO, to addresses that have not been confirmed (RFC 9260 section 5.4). At
    /// least 1.
    pub hb_max_burst: u32,
    /// cwnd at first, in MTUs (profile RFC 9260: largest chunks), instead of what section 7.2.1 has. usrsctp has 3, with
    /// which four full packets go where RFC 4960 lets three; TCP has 10 (RFC 6928). A lower `max_burst` lets no more go
    /// at once.
    pub initial_cwnd: Option<u32>,
    /// Max.Burst, packets; `None` for no limit.
    pub max_burst: Option<u32>,
    /// Delay of a delayed SACK (section 6.2).
    pub sack_delay: Duration,
    /// Packets with DATA that are acknowledged by one SACK: 2 by section 6.2, 1 for a SACK per packet.
    pub sack_frequency: u32,
    /// Packets with DATA, from the first of an association on, that are acknowledged one by one whatever `sack_frequency`
    /// says. At least 1 by section 5.1; ns-2's agent has 0. Section 6.2 allows more: slow start then doubles cwnd in each
    /// round trip, where SACKs for every second packet make it half as much again. Linux's TCP does so for 16.
    pub quick_sacks: u32,
    /// Fewer missing reports than usual are enough for a fast retransmit where no more can come (RFC 5827).
    pub early_retransmit: bool,
    /// Use of the I bit.
    pub sack_immediately: SackImmediately,
    /// Associations that an endpoint holds before it refuses to accept more. Those that the user opens are not limited.
    pub max_associations: usize,
    /// Offers partial reliability (RFC 3758): the peer may give messages up, and so may `SendOptions::reliability`.
    pub partial_reliability: bool,
    /// Offers to reset and add streams (RFC 6525).
    pub stream_reconfiguration: bool,
    /// Offers to change addresses (RFC 5061): the peer may, and so may this end. Without it ASCONF is not understood.
    pub dynamic_addresses: bool,
    /// Outbound streams asked for.
    pub outbound_streams: u16,
    /// Inbound streams accepted.
    pub max_inbound_streams: u16,
    /// Largest user data per DATA chunk, bytes; `None` for what fits the MTU.
    pub max_chunk_data: Option<u32>,
    /// SCTP in UDP (RFC 6951); `None` neither sends nor takes it.
    pub udp_encapsulation: Option<UdpEncapsulation>,
    /// Window credited on acknowledgement.
    pub cwnd_credit: CwndCredit,
    /// Route of acknowledgements.
    pub sack_route: SackRoute,
    /// Path of retransmissions.
    pub retransmit_to: RetransmitTo,
    /// When every address of ours is gone, take the next one that an interface has instead, by an ASCONF that adds it,
    /// makes it primary and deletes the others (RFC 5061 section 5.3.2). Off where something else decides, as SIGMA
    /// does.
    pub auto_asconf: bool,
    /// Offer the deactivation of addresses, a private extension with parameter types that IANA did not assign (see
    /// `Association::deactivate_address`).
    pub address_deactivation: bool,
    /// New data on all paths at once; `None` for one path at a time.
    pub multipath: Option<MultipathConfig>,
    /// Tell of every fast retransmission by [`Event::FastRetransmitted`](super::Event::FastRetransmitted).
    pub tell_fast_retransmissions: bool,
    /// Whether changes of addresses must be authenticated.
    pub asconf_auth: AsconfAuth,
    /// Chunk authentication.
    pub auth: AuthConfig,
}

impl Config {
    /// PFMR, where CMT-PF has a say in it too: see [`MultipathConfig::pf`].
    pub(super) fn potentially_failed_after(&self) -> Option<u32> {
        let pf = self.multipath.is_some_and(|m| m.pf);
        self.pf_max_retrans.or(pf.then_some(0))
    }

    /// The constants that `profile` recommends.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let rfc9260 = profile == Profile::Rfc9260;
        Self {
            profile,
            mtu: 1500,
            pmtu_discovery: PmtuDiscovery::default(),
            receive_buffer: 131_072,
            partial_delivery_point: None,
            send_buffer: 262_144,
            rto_initial: Duration::from_secs(if rfc9260 { 1 } else { 3 }),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(60),
            association_max_retrans: 10,
            path_max_retrans: 5,
            pf_max_retrans: None,
            primary_switchover_max_retrans: None,
            max_init_retransmits: 8,
            max_init_timeout: None,
            valid_cookie_life: Duration::from_secs(60),
            hb_interval: Some(Duration::from_secs(30)),
            hb_max_burst: 1,
            initial_cwnd: None,
            max_burst: Some(4),
            sack_delay: Duration::from_millis(200),
            sack_frequency: 2,
            quick_sacks: 1,
            early_retransmit: false,
            sack_immediately: SackImmediately::default(),
            max_associations: 65_536,
            partial_reliability: true,
            stream_reconfiguration: true,
            dynamic_addresses: true,
            outbound_streams: 10,
            max_inbound_streams: 2048,
            max_chunk_data: None,
            udp_encapsulation: None,
            cwnd_credit: CwndCredit::default(),
            sack_route: SackRoute::default(),
            retransmit_to: RetransmitTo::default(),
            auto_asconf: true,
            address_deactivation: false,
            multipath: None,
            tell_fast_retransmissions: false,
            asconf_auth: AsconfAuth::default(),
            auth: AuthConfig::default(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}
