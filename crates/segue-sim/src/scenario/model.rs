//! The scenario file, key by key. Quantities are written with units; unknown keys are refused.

use super::application_list::Applications;
use super::files::TraceSection;
use super::keys::range::{above, at_least, at_most, proportion, within};
use super::mobiles::Mobiles;
use super::mobility::MobilitySection;
use super::named::{Name, Named};
use super::presence::Presence;
use super::schemes::{DirectorySection, Forged, ForgedNonce, Mip6Section, Scheme};
use super::sharing::SharingSection;
use super::technology::{BearerSection, DirectionSection, Technology};
use super::traffic::{OnOffSection, VideoSection, VoiceSection, WebSection};
use crate::assertion::Assertion;
use crate::link::Service;
use crate::loss::LossModel;
use core::net::Ipv6Addr;
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::app::Transport;
use segue_proto::l2::{Latency, LossDetection};
use segue_proto::sctp::{
    AsconfAuth, CwndCredit, PmtuDiscovery, Profile, RetransmitTo, SackImmediately, SackRoute,
};
use segue_proto::units::{BitRate, Bytes, Coordinate, Metres, QueueLimit, Speed};
use serde::{Deserialize, Serialize};

/// A whole scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Short name.
    pub name: String,
    /// What it shows, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// Simulated time.
    #[schemars(extend("x-range" = above("0 s").at_most("1000000 s")))]
    pub duration: Duration,
    /// Seed of all random streams.
    #[serde(default = "one")]
    pub seed: u64,
    /// How packets cross a hop.
    #[serde(default)]
    pub wire: Wire,
    /// Which of the file's cases this is: a label, since its keys have been set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// What an experiment varies: labels, since what follows from them has been set.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "super::keys::texts::any_table")]
    pub parameters: toml::Table,
    /// How hosts keep their connections while they move.
    #[serde(default)]
    pub scheme: Scheme,
    /// Signalling (router advertisements and solicitations, messages of Mobile IPv6 and ILNPv6) goes before data in
    /// every queue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub signalling_priority: bool,
    /// Layer 2 of all cells.
    #[serde(default)]
    pub l2: L2Section,
    /// Radio channels of all cells.
    #[serde(default)]
    pub radio: RadioSection,
    /// How a mobile host gets its addresses.
    #[serde(default)]
    pub address: AddressSection,
    /// How the mobile hosts move.
    #[serde(default, skip_serializing_if = "Mobiles::is_empty")]
    pub mobile: Mobiles,
    /// When the mobile host hands over.
    #[serde(default)]
    pub handover: HandoverSection,
    /// The location manager; without it step 4 ends where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationSection>,
    /// Mobile IPv6, with schemes `mip6` and `mip6-ro`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mip6: Mip6Section,
    /// ILNPv6, with schemes `ilnp-hard`, `ilnp-soft` and `ilnp-multihomed`. Identifiers, known peers and the kind of
    /// handoff are not to be set: they follow from the rest of the scenario.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ilnp: IlnpSection,
    /// Where shims ask for peers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub directory: DirectorySection,
    /// SCTP on every host.
    #[serde(default)]
    pub sctp: SctpSection,
    /// Concurrent multipath transfer, with scheme `cmt`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cmt: CmtSection,
    /// TCP on every host that has an application with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tcp: super::tcp::TcpSection,
    /// What shortens the time that TCP takes to adapt to another network.
    #[serde(default, skip_serializing_if = "is_default")]
    pub remedy: super::remedy::RemedySection,
    /// Hosts.
    #[serde(default)]
    pub host: Named<HostEntry>,
    /// Routers.
    #[serde(default)]
    pub router: Named<RouterEntry>,
    /// Wired links.
    #[serde(default)]
    pub link: Vec<LinkEntry>,
    /// Radio cells.
    #[serde(default)]
    pub cell: Vec<CellEntry>,
    /// What happens to links and cells: written as what it comes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<super::events::EventEntry>,
    /// When what happens, which a run reports.
    #[serde(skip)]
    pub happenings: Vec<super::events::Happening>,
    /// Applications.
    #[serde(default)]
    pub application: Applications,
    /// Forged messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgery: Vec<ForgeryEntry>,
    /// What the metrics of a run count as what.
    #[serde(default, skip_serializing_if = "is_default")]
    pub metrics: MetricsSection,
    /// What has to be so of a run, as `"interruption < 50 ms"`; the same as `--assert`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assert: Vec<Assertion>,
}

fn one() -> u64 {
    1
}

/// `[metrics]`
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsSection {
    /// A handover back to the cell that a host came from is a ping-pong if it stayed for less than this between (3GPP TR 36.839
    /// section 5.2.2, which recommends 1 s).
    pub minimum_time_of_stay: Duration,
}

impl Default for MetricsSection {
    fn default() -> Self {
        Self {
            minimum_time_of_stay: Duration::from_secs(1),
        }
    }
}

/// How packets cross a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The typed value is handed on.
    #[default]
    Typed,
    /// Every hop emits real bytes with real checksums, parses them and hands on what it parsed.
    Exact,
}

/// `[l2]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct L2Section {
    /// Time from the decision to attach to a cell until the link is up: `"200 ms"`, a range `"40 ms..350 ms"`, or a
    /// table of phases.
    pub latency: Latency,
    /// Time between beacons of a cell.
    #[schemars(extend("x-range" = at_least("1.024 ms").by("the time unit of IEEE 802.11")))]
    pub beacon_period: Duration,
    /// Beacon frame body.
    #[schemars(extend("x-range" = at_most("10000 B")))]
    pub beacon_size: Bytes,
    /// How a station notices that its link is lost.
    pub loss_detection: LossDetection,
    /// Beacons missed in a row until then.
    #[schemars(extend("x-range" = at_least("1")))]
    pub beacon_loss: u32,
}

impl Default for L2Section {
    fn default() -> Self {
        Self {
            latency: Latency::fixed(Duration::from_millis(100)),
            beacon_period: Duration::from_millis(100),
            beacon_size: Bytes::new(60),
            loss_detection: LossDetection::MissedBeacons,
            beacon_loss: 3,
        }
    }
}

/// `[radio]`: the channel model of IEEE 802.11 DCF.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RadioSection {
    /// Rate of unicast frames.
    #[schemars(extend("x-range" = above("0 bit/s")))]
    pub rate: BitRate,
    /// Rate of beacons, multicast frames and acknowledgements.
    #[schemars(extend("x-range" = above("0 bit/s")))]
    pub basic_rate: BitRate,
    /// Preamble and physical header.
    #[schemars(extend("x-range" = at_most("100 ms")))]
    pub preamble: Duration,
    /// Slot time.
    #[schemars(extend("x-range" = above("0 s").at_most("10 ms")))]
    pub slot: Duration,
    /// Least contention window, slots.
    pub cw_min: u32,
    /// Greatest contention window, slots.
    #[schemars(extend("x-range" = at_most("65535")))]
    pub cw_max: u32,
    /// Times a unicast frame is sent before it is dropped.
    #[schemars(extend("x-range" = within("1", "255").by("IEEE 802.11")))]
    pub attempts: u32,
    /// Frames waiting per station.
    #[schemars(extend("x-range" = at_least("1")))]
    pub queue: u32,
    /// MAC, LLC and FCS overhead of a frame.
    #[schemars(extend("x-range" = at_most("10000 B")))]
    pub overhead: Bytes,
}

impl Default for RadioSection {
    fn default() -> Self {
        let c = crate::radio::ChannelConfig::default();
        Self {
            rate: c.rate,
            basic_rate: c.basic_rate,
            preamble: c.preamble,
            slot: c.slot,
            cw_min: c.cw_min,
            cw_max: c.cw_max,
            attempts: c.attempts,
            queue: c.queue_packets as u32,
            overhead: Bytes::new(u64::from(c.overhead_bytes)),
        }
    }
}

/// `[address]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AddressSection {
    /// How addresses are acquired.
    pub method: AddressMethod,
    /// With method `fixed`: from the router advertisement to the usable address.
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub resolution: Duration,
    /// With method `slaac`: neighbour solicitations sent for duplicate address detection.
    #[schemars(extend("x-range" = at_most("100")))]
    pub dad_transmits: u32,
    /// With method `slaac`: time between them, and after the last.
    pub retrans_timer: Duration,
    /// With method `dhcpv6`: time the server takes to answer.
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub server_delay: Duration,
    /// With method `dhcpv6`: two messages instead of four.
    pub rapid_commit: bool,
    /// Greatest random delay of a router's answer to a solicitation (RFC 4861 MAX_RA_DELAY_TIME).
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub ra_delay: Duration,
    /// Least time between unsolicited router advertisements.
    #[schemars(extend("x-range" = within("30 ms", "3600 s").by("RFC 6275 section 7.5")))]
    pub ra_interval_min: Duration,
    /// Greatest time between unsolicited router advertisements.
    #[schemars(extend("x-range" = within("70 ms", "3600 s").by("RFC 6275 section 7.5")))]
    pub ra_interval_max: Duration,
    /// Router solicitations on a link that has come up; 0 waits for the next advertisement. Left out: 3 (RFC 4861
    /// MAX_RTR_SOLICITATIONS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_solicitations: Option<u32>,
    /// Keep an address when its link is lost, and use it again without resolution or duplicate address detection on
    /// coming back while it is valid. Left out: what `handover.delete = "deactivate"` needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain: Option<bool>,
    /// Valid lifetime of addresses. Left out: for ever with method `fixed`, 30 days as the RFCs have it otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_lifetime: Option<Duration>,
}

impl Default for AddressSection {
    fn default() -> Self {
        Self {
            method: AddressMethod::default(),
            resolution: Duration::from_millis(500),
            dad_transmits: 1,
            retrans_timer: Duration::from_secs(1),
            server_delay: Duration::from_millis(10),
            rapid_commit: false,
            ra_delay: Duration::ZERO,
            ra_interval_min: Duration::from_secs(200),
            ra_interval_max: Duration::from_secs(600),
            router_solicitations: None,
            retain: None,
            valid_lifetime: None,
        }
    }
}

/// How addresses are acquired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressMethod {
    /// Usable a fixed time after the router advertisement, as the SIGMA paper has it.
    #[default]
    Fixed,
    /// RFC 4862 with duplicate address detection.
    Slaac,
    /// RFC 8415.
    Dhcpv6,
}

/// `[mobile]`, or one of `[[mobile]]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MobileSection {
    /// The host that moves.
    pub host: String,
    /// Shape of its way.
    #[serde(default)]
    pub pattern: Pattern,
    /// Where it begins: x and y.
    pub from: [Coordinate; 2],
    /// Where it goes; for `waypoints` use `points`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<[Coordinate; 2]>,
    /// Where it goes, in order, with pattern `waypoints`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<[Coordinate; 2]>,
    /// Speed.
    pub speed: Speed,
    /// A file or a model that says how it moves, instead of pattern, from, to, points, speed and start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mobility: Option<MobilitySection>,
    /// When it starts to move.
    #[serde(default)]
    pub start: Duration,
    /// The cell that is its home network (Mobile IPv6): its access router is the home agent. The first cell in whose
    /// reach it begins, if left out; the first of all, where a model lets it begin out of reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// Which cell serves it from when, in order, if the network has a plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<super::plan::PlanEntry>,
    /// So long before each entry of the plan it is told of it. Left out: it is told nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_ahead: Option<Duration>,
}

impl Name for MobileSection {
    fn name(&self) -> &str {
        &self.host
    }
}

/// Shape of a mobile host's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// From `from` to `to` and back, over and over.
    #[default]
    BackAndForth,
    /// Through `points`, then still.
    Waypoints,
    /// Still, at `from`.
    Still,
}

/// `[ilnp]`
pub type IlnpSection = segue_proto::ilnp::Config;

/// `[cmt]`
pub type CmtSection = segue_proto::sctp::MultipathConfig;

/// `[handover]`
pub type HandoverSection = segue_proto::sigma::Config;

/// `[location]`: a host that keeps the mobile host's address in the DNS, which the mobile host updates at step 4 of a
/// handover (RFC 2136, signed by RFC 8945 with a key that both have), and applications with `by_name` look up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocationSection {
    /// The host that is the location manager.
    pub server: String,
    /// Its zone.
    #[serde(default = "loc_example")]
    pub zone: String,
    /// What the mobile host is known by: a domain name in the zone, `home:` and a home address, or `key:` and the
    /// SHA-256 hash of a public key. Its own name in the zone if it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Time to live of the address: how long who has looked it up may use it.
    #[serde(default = "five_seconds")]
    #[schemars(extend("x-range" = at_most("86400 s")))]
    pub ttl: Duration,
    /// Time until an update or a look-up is sent again; doubled each time.
    #[serde(default = "one_second")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub retry: Duration,
    /// Whether hosts keep what they looked up for its time to live.
    #[serde(default)]
    pub cache: bool,
}

fn loc_example() -> String {
    "loc.example".to_owned()
}

fn five_seconds() -> Duration {
    Duration::from_secs(5)
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

/// `[sctp]`: what is not set is the profile's.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SctpSection {
    /// Constants and rules.
    pub profile: Profile,
    /// Path MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1280 B", "65535 B").by("RFC 8200 section 5")))]
    pub mtu: Option<Bytes>,
    /// How it is found out that a path carries less.
    #[serde(skip_serializing_if = "is_default")]
    pub pmtu_discovery: PmtuDiscovery,
    /// User data per DATA chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_data: Option<Bytes>,
    /// Receive buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1500 B", "1 GiB").by("RFC 9260 section 3.3.2")))]
    pub receive_buffer: Option<Bytes>,
    /// Send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1500 B", "1 GiB")))]
    pub send_buffer: Option<Bytes>,
    /// RTO.Initial.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub rto_initial: Option<Duration>,
    /// RTO.Min.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub rto_min: Option<Duration>,
    /// RTO.Max.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub rto_max: Option<Duration>,
    /// Path.Max.Retrans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_max_retrans: Option<u32>,
    /// PFMR (RFC 7829): errors after which a destination has potentially failed; not set, none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pf_max_retrans: Option<u32>,
    /// PSMR (RFC 7829): errors after which another destination becomes the primary path for good; not set, none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_switchover_max_retrans: Option<u32>,
    /// Association.Max.Retrans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association_max_retrans: Option<u32>,
    /// HB.interval; zero sends none but those that confirm an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_most("3600000 s")))]
    pub hb_interval: Option<Duration>,
    /// Delay of a delayed SACK.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_most("500 ms").by("RFC 9260 section 6.2")))]
    pub sack_delay: Option<Duration>,
    /// Packets per SACK.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("1")))]
    pub sack_frequency: Option<u32>,
    /// Packets acknowledged one by one, from the first on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_sacks: Option<u32>,
    /// Early retransmit (RFC 5827).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub early_retransmit: bool,
    /// cwnd at first, in MTUs, instead of what the standard has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1", "1000")))]
    pub initial_cwnd: Option<u32>,
    /// Max.Burst, packets; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_burst: Option<u32>,
    /// Whether every host sends its packets in UDP (RFC 6951).
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub udp_encapsulation: bool,
    /// Offer the deactivation of addresses. Left out: where `handover.delete = "deactivate"` needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_deactivation: Option<bool>,
    /// Which path an acknowledgement credits.
    pub cwnd_credit: CwndCredit,
    /// Where acknowledgements are sent from.
    pub sack_route: SackRoute,
    /// Where retransmissions go.
    pub retransmit_to: RetransmitTo,
    /// Whether changes of addresses must be authenticated.
    pub asconf_auth: AsconfAuth,
    /// Which DATA asks for its SACK at once.
    pub sack_immediately: SackImmediately,
}

/// `[[host]]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// Name.
    pub name: String,
    /// The population that it is of, for which there are metrics. Left out: of several that an entry stands for, the entry's
    /// `name` as it is written; otherwise none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<String>,
    /// Radio interfaces, numbered after the wired ones.
    #[serde(default)]
    pub radios: u8,
    /// Technologies of the radios, in their order: each hears only cells of its own. Left out: they hear all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub technologies: Vec<Technology>,
    /// It is an attacker: in the lab, what its programs send goes out as it is, from whatever address, and past its shim.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spoofs: bool,
    /// It speaks IPv6 alone: it has no mobility shim, whatever the scheme.
    #[serde(default, skip_serializing_if = "is_default")]
    pub plain: bool,
    /// When its addresses are replaced by others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub address_changes: Vec<super::events::AddressChange>,
    /// How long it takes for what comes to it; no time, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processing: Option<ProcessingSection>,
}

impl Name for HostEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

/// `[[router]]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterEntry {
    /// Name.
    pub name: String,
    /// It is the border of a site with locators of its own (RFC 6748): its cell's prefix is used inside only, and this
    /// one, of 64 bits, stands for it everywhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrites_to: Option<Ipv6Addr>,
    /// How long its home agent takes for what comes to it, signalling and packets that go through; no time, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processing: Option<ProcessingSection>,
}

impl Name for RouterEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

/// `processing` of a host or a home agent: one processor that works off packets in the order of their arrival.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessingSection {
    /// For a packet.
    pub packet: Duration,
    /// For a message by which it learns where somebody is (Binding Update, Locator Update, dynamic update, ASCONF).
    pub update: Duration,
    /// What may wait beside the packet that is worked on.
    #[serde(default = "thousand_packets")]
    pub queue: QueueLimit,
}

fn thousand_packets() -> QueueLimit {
    QueueLimit::Packets(segue_proto::units::Packets::new(1000))
}

/// `[[link]]`: both directions alike, unless `up` or the technology says otherwise.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkEntry {
    /// Name, for overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The two nodes.
    pub between: [String; 2],
    /// Whose keys it has that are not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technology: Option<Technology>,
    /// The direction towards the first node, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<DirectionSection>,
    /// Rate of each direction.
    #[schemars(extend("x-range" = above("0 bit/s")))]
    pub rate: BitRate,
    /// Propagation delay.
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub delay: Duration,
    /// Queue of each direction.
    #[serde(default = "fifty_packets")]
    pub queue: QueueLimit,
    /// Random loss.
    #[serde(default, skip_serializing_if = "is_default")]
    pub loss: LossModel,
    /// Greatest additional delay. It and the set-up are written even if there is none: a technology would put its own there.
    #[serde(default)]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub jitter: Duration,
    /// Packets that follow each other with less than this between them have the same jitter. Left out: each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub jitter_hold: Option<Duration>,
    /// It has to be set up before it sends, which takes this long, where it was let go.
    #[serde(default)]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub set_up: Duration,
    /// It is let go when it has had nothing to send for longer than this.
    #[serde(default)]
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub set_up_hold: Duration,
    /// A file that says its rate over time, and perhaps its delay and loss, in the direction away from the first node; both
    /// directions, unless there is `up`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSection>,
    /// Jitter may reorder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reorder: bool,
    /// Probability that a packet arrives twice.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("x-range" = proportion()))]
    pub duplicate: f64,
    /// Probability that a packet arrives with a bit flipped.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("x-range" = proportion()))]
    pub corrupt: f64,
    /// Queue model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub service: Service,
    /// Longest packet: a router answers what is longer by Packet Too Big. Nothing for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("1280 B", "65535 B").by("RFC 8200 section 5")))]
    pub mtu: Option<Bytes>,
    /// When it is down, in order: what is on it then is lost. A host at its end is told, and has no address there while it
    /// is down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageEntry>,
    /// When packets are lost on it although it is up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<super::events::Silence>,
}

/// A time in which a link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutageEntry {
    /// Its beginning; that of the run if left out.
    pub from: Duration,
    /// Its end; none if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
}

fn fifty_packets() -> QueueLimit {
    QueueLimit::Packets(segue_proto::units::Packets::new(50))
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `[[cell]]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellEntry {
    /// Name.
    pub name: String,
    /// The access router.
    pub router: String,
    /// Where its antenna stands: x and y.
    pub position: [Coordinate; 2],
    /// Reach.
    #[schemars(extend("x-range" = above("0 m")))]
    pub radius: Metres,
    /// Radio channel: cells with the same number share one medium. A cell with bearers has none: 0.
    pub channel: u16,
    /// Whose keys it has that are not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technology: Option<Technology>,
    /// When it is in reach, whatever the place; left out, position and radius say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<Presence>,
    /// Its channel, instead of `[radio]`. Cells that share a channel agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<RadioSection>,
    /// It is no shared channel: every station has a link of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<BearerSection>,
    /// How those who are attached share what its bearers' rates say, both ways. Left out: each has that to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::sharing::schema")]
    pub sharing: Option<SharingSection>,
    /// Least time between its router's unsolicited advertisements, instead of `address.ra_interval_min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("30 ms", "3600 s").by("RFC 6275 section 7.5")))]
    pub ra_interval_min: Option<Duration>,
    /// Greatest time between them, instead of `address.ra_interval_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = within("70 ms", "3600 s").by("RFC 6275 section 7.5")))]
    pub ra_interval_max: Option<Duration>,
    /// It is one of several layers: other cells may lie within it, and it within others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlaid: bool,
    /// When its prefix is replaced by another, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renumberings: Vec<super::events::Renumbering>,
}

/// `[[application]]`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationEntry {
    /// What it does.
    pub kind: ApplicationKind,
    /// What carries its data.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: Transport,
    /// Sender of the data, or client.
    pub from: String,
    /// Receiver of the data, or server.
    pub to: String,
    /// When it starts: the association is set up then, or as soon as there is an address.
    #[serde(default)]
    pub start: Duration,
    /// Amount of data; without it a bulk transfer goes on to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = above("0 B")))]
    pub size: Option<Bytes>,
    /// Rate of a constant-rate sender, and of one that is on and off while it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Message of such a sender; request of a request-response client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = above("0 B")))]
    pub message: Option<Bytes>,
    /// Whether `from` opens the association, and looks up where `to`, the mobile host, is when it does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_name: bool,
    /// Response of a request-response server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = above("0 B")))]
    pub response: Option<Bytes>,
    /// On and off times, with kind `on-off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOffSection>,
    /// How people talk, with kind `voice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceSection>,
    /// How pages are read, with kind `web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebSection>,
    /// How a film is watched, with kind `video`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoSection>,
    /// The program that `segue lab run` starts in its place, on the host that connects: `{peer}` is the address of the other,
    /// `{port}` a port that nothing else has there. The simulator runs what `kind` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The program that it is to find on the other host, started before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
}

/// `[[forgery]]`: a host that is not on the path tells another that a third is where it is itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgeryEntry {
    /// When.
    pub at: Duration,
    /// The forger: a host on a wire.
    pub from: String,
    /// Whom it tells: a host on a wire.
    pub to: String,
    /// The host that it speaks of.
    pub about: String,
    /// What it says.
    pub message: Forged,
    /// The nonce of a locator update.
    #[serde(default)]
    pub nonce: ForgedNonce,
}

/// What an application does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationKind {
    /// As much as the transport takes.
    Bulk,
    /// Messages at a constant rate.
    ConstantRate,
    /// Requests one after the other.
    RequestResponse,
    /// Messages at a constant rate, while it is on.
    OnOff,
    /// A call, or one direction of it.
    Voice,
    /// Web pages.
    Web,
    /// A film in segments.
    Video,
}
