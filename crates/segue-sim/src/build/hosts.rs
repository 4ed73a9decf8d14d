//! What hosts are made of: transports, interfaces, applications.

use super::{comes_and_goes, link_layer, wire_address, wired_ends};
use crate::carried;
use crate::network::{Network, Node};
use crate::recorder::applications::{Application, Label, Opened};
use crate::scenario::model::{AddressMethod, ApplicationEntry, ApplicationKind, HostEntry, ScenarioFile};
use crate::scenario::schemes::Scheme;
use core::net::Ipv6Addr;
use segue_proto::address::{ClientConfig, Method};
use segue_proto::host::{Addressing, Host, HostConfig, InterfaceConfig};
use segue_proto::units::Bytes;
use segue_proto::{Duration, Instant, app, sctp, sigma};
use std::collections::{BTreeMap, BTreeSet};

/// Port of every host, of SCTP and of TCP.
pub(crate) const PORT: u16 = 9;

/// Constant-rate message and request or response, where the scenario gives none.
pub(crate) const DEFAULT_MESSAGE: Bytes = Bytes::new(1000);

/// The SCTP configuration of a scenario: its profile's, with what it sets.
pub(crate) fn sctp_config(s: &ScenarioFile) -> sctp::Config {
    let set = &s.sctp;
    let mut c = sctp::Config::new(set.profile);
    let bytes = |b: Option<Bytes>, otherwise: u32| b.map_or(otherwise, |b| b.bytes() as u32);
    c.mtu = bytes(set.mtu, c.mtu);
    c.pmtu_discovery = set.pmtu_discovery;
    c.receive_buffer = bytes(set.receive_buffer, c.receive_buffer);
    c.send_buffer = bytes(set.send_buffer, c.send_buffer);
    c.max_chunk_data = set.chunk_data.map(|b| b.bytes() as u32);
    c.rto_initial = set.rto_initial.unwrap_or(c.rto_initial);
    c.rto_min = set.rto_min.unwrap_or(c.rto_min);
    c.rto_max = set.rto_max.unwrap_or(c.rto_max);
    c.path_max_retrans = set.path_max_retrans.unwrap_or(c.path_max_retrans);
    c.pf_max_retrans = set.pf_max_retrans;
    c.primary_switchover_max_retrans = set.primary_switchover_max_retrans;
    c.association_max_retrans = set.association_max_retrans.unwrap_or(c.association_max_retrans);
    c.hb_interval = set
        .hb_interval
        .map_or(c.hb_interval, |i| (!i.is_zero()).then_some(i));
    c.sack_delay = set.sack_delay.unwrap_or(c.sack_delay);
    c.sack_frequency = set.sack_frequency.unwrap_or(c.sack_frequency);
    c.quick_sacks = set.quick_sacks.unwrap_or(c.quick_sacks);
    c.early_retransmit = set.early_retransmit;
    c.initial_cwnd = set.initial_cwnd;
    c.max_burst = set.max_burst.map_or(c.max_burst, |b| (b > 0).then_some(b));
    c.udp_encapsulation = set.udp_encapsulation.then(sctp::UdpEncapsulation::default);
    c.cwnd_credit = set.cwnd_credit;
    c.sack_route = set.sack_route;
    c.retransmit_to = set.retransmit_to;
    c.asconf_auth = set.asconf_auth;
    c.address_deactivation = set.address_deactivation.unwrap_or(deactivates(s));
    c.sack_immediately = set.sack_immediately;
    c.multipath = (s.scheme == Scheme::Cmt).then_some(s.cmt);
    c.tell_fast_retransmissions = s.scheme.is_multihomed();
    c
}

/// Whether the mobile host deactivates addresses instead of deleting them.
fn deactivates(s: &ScenarioFile) -> bool {
    s.handover.delete == sigma::Delete::Deactivate
}

pub(crate) fn host_config(s: &ScenarioFile, host: &HostEntry, number: u32, seed: u64) -> HostConfig {
    let mut interfaces: Vec<InterfaceConfig> = Vec::new();
    let is_told = comes_and_goes(s, &host.name);
    for (link, end) in wired_ends(s, &host.name) {
        interfaces.push(InterfaceConfig {
            link_layer: link_layer(number, interfaces.len() as u8),
            addressing: if is_told {
                Addressing::WhileUp(vec![host_wire_address(s, &host.name, link, end)])
            } else {
                Addressing::Static(vec![host_wire_address(s, &host.name, link, end)])
            },
        });
    }
    for _ in 0..host.radios {
        interfaces.push(InterfaceConfig {
            link_layer: link_layer(number, interfaces.len() as u8),
            addressing: Addressing::Acquire(acquisition(s)),
        });
    }
    let mut sctp = sctp_config(s);
    let mut tcp = crate::scenario::tcp::config(s);
    // a host knows the MTU of the links that it is on
    for mtu in wired_ends(s, &host.name).filter_map(|(link, _)| s.link[link].mtu) {
        sctp.mtu = sctp.mtu.min(mtu.bytes() as u32);
        tcp.mtu = tcp.mtu.min(mtu.bytes() as u32);
    }
    let sigma = s.scheme.changes_addresses() && s.scheme != Scheme::Single && moves(s, &host.name);
    HostConfig {
        name: host.name.clone(),
        interfaces,
        sctp,
        tcp,
        port: PORT,
        applications: applications(s, &host.name),
        sigma: sigma.then(|| handover(s)),
        shim: super::shims::config(s, host, seed),
        location: super::location::config(s, &host.name, seed),
    }
}

/// Whether a host changes its networks.
pub(crate) fn moves(s: &ScenarioFile, host: &str) -> bool {
    s.mobile.of(host).is_some() || comes_and_goes(s, host)
}

/// The addresses of a host on its wires.
pub(crate) fn wire_addresses(s: &ScenarioFile, host: &str) -> Vec<Ipv6Addr> {
    wired_ends(s, host)
        .map(|(link, end)| wire_address(link, end))
        .collect()
}

/// The handover policy of a scenario: what its scheme is about is the scheme's.
pub(super) fn handover(s: &ScenarioFile) -> sigma::Config {
    let (policy, bundle) = match s.scheme {
        Scheme::Failover => (sigma::Policy::PeerTimeouts, sigma::Bundle::None),
        Scheme::MsctpBest => (sigma::Policy::LastMoment, s.handover.bundle),
        Scheme::MsctpWorst => (sigma::Policy::FirstReady, sigma::Bundle::AddPrimary),
        Scheme::Cmt => (sigma::Policy::LinkLoss, sigma::Bundle::PrimaryDelete),
        _ => (s.handover.policy, s.handover.bundle),
    };
    sigma::Config {
        policy,
        bundle,
        ..s.handover.clone()
    }
}

fn acquisition(s: &ScenarioFile) -> Method {
    let a = &s.address;
    let retain = a.retain.unwrap_or(deactivates(s));
    let standard = segue_proto::nd::HostConfig::default();
    let nd = segue_proto::nd::HostConfig {
        max_rtr_solicitation_delay: Duration::ZERO,
        dup_addr_detect_transmits: a.dad_transmits,
        retrans_timer: a.retrans_timer,
        retain,
        max_rtr_solicitations: a.router_solicitations.unwrap_or(standard.max_rtr_solicitations),
        ..standard
    };
    match a.method {
        AddressMethod::Fixed => Method::Fixed {
            latency: a.resolution,
            solicit: a.router_solicitations != Some(0),
            lifetime: a.valid_lifetime,
            retain,
        },
        AddressMethod::Slaac => Method::Slaac { nd },
        AddressMethod::Dhcpv6 => {
            let client = ClientConfig {
                rapid_commit: a.rapid_commit,
                sol_max_delay: Duration::ZERO,
                ..ClientConfig::default()
            };
            Method::Dhcpv6 { nd, client }
        }
    }
}

/// The address of a host on a wire. With ILNPv6 it has the host's one identifier.
pub(super) fn host_wire_address(s: &ScenarioFile, host: &str, link: usize, end: usize) -> Ipv6Addr {
    let address = wire_address(link, end);
    if s.scheme.is_ilnp() && !super::shims::is_plain(s, host) {
        super::shims::with_nid(s, host, address)
    } else {
        address
    }
}

/// Who opens an application's association: the sender if it looks the receiver up or the receiver has an identity;
/// otherwise the host that moves, or else the sender. A host that is connected to without a look-up must have an address
/// that does not change.
pub(crate) fn opener<'a>(s: &ScenarioFile, a: &'a ApplicationEntry) -> &'a String {
    let radios = |name: &str| s.host.named(name).is_some_and(|h| h.radios > 0);
    if (radios(&a.to) || comes_and_goes(s, &a.to)) && !a.by_name && !s.scheme.has_shim() {
        &a.to
    } else {
        &a.from
    }
}

/// Who is connected to.
pub(crate) fn server<'a>(s: &ScenarioFile, a: &'a ApplicationEntry) -> &'a String {
    if *opener(s, a) == a.from { &a.to } else { &a.from }
}

/// The flows that the applications are to have, with the connections that they have in a network that has run.
pub(crate) fn flows_of(s: &ScenarioFile, network: &Network) -> Vec<Application> {
    let node = |name: &str| s.host.number(name);
    let parts = opening_parts(s);
    let flow = |(number, a): (usize, &ApplicationEntry)| {
        let by = node(opener(s, a))?;
        Some(Application {
            sender: node(&a.from)? as u32,
            receiver: node(&a.to)? as u32,
            transport: a.transport,
            start: Instant::ZERO + a.start,
            opened: match network.nodes.get(by)? {
                Node::Host(h) => label(&h.host, parts[number])
                    .or_else(|| network.opened_from.get(&number).copied().map(Label::Port))
                    .map(|label| Opened { by: by as u32, label }),
                Node::Router(_) => None,
            },
        })
    };
    // what an association carries is in its flow, and in no other
    let has_flow = |a: &ApplicationEntry| {
        let carried = carried::is_carried(s, a) || carried::is_left_out(s, a);
        network.kernels.is_none() || !carried
    };
    let own = s.application.iter().enumerate().filter(|(_, a)| has_flow(a));
    own.filter_map(flow).collect()
}

/// How the connection of a part of a host is known, while it has one.
fn label(host: &Host, part: usize) -> Option<Label> {
    if let Some(id) = host.association_of(part) {
        let association = host.endpoint().association(id)?;
        let tags = (
            association.own_verification_tag(),
            association.peer_verification_tag(),
        );
        return Some(Label::Tags(tags.0, tags.1));
    }
    if let Some(id) = host.socket_of(part) {
        return Some(Label::Port(host.udp()?.socket(id)?.local_port()));
    }
    let connection = host.tcp()?.connection(host.connection_of(part)?)?;
    Some(Label::Port(connection.local_port()))
}

/// By the number of each application, which part of the host that opens it that is.
pub(crate) fn opening_parts(s: &ScenarioFile) -> Vec<usize> {
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut listening: BTreeSet<(&str, app::Transport)> = BTreeSet::new();
    let mut opening = Vec::with_capacity(s.application.len());
    for a in s.application.iter() {
        let (opener, server) = (opener(s, a), server(s, a));
        let next = parts.entry(opener).or_default();
        opening.push(*next);
        *next += 1;
        if listening.insert((server, a.transport)) {
            *parts.entry(server).or_default() += 1;
        }
    }
    opening
}

/// The parts of the applications that run on `host`. A server has one, however many connect to it.
fn applications(s: &ScenarioFile, host: &str) -> Vec<app::Config> {
    let mut parts: Vec<app::Config> = Vec::new();
    let mut listening = BTreeSet::new();
    for (_, a) in s.application.of(host) {
        let part = application(s, a, host);
        parts.extend(part.filter(|p| p.role != app::Role::Listen || listening.insert(p.transport)));
    }
    parts
}

/// The part of an application that runs on `host`.
fn application(s: &ScenarioFile, a: &ApplicationEntry, host: &str) -> Option<app::Config> {
    let (sends, receives) = (a.from == host, a.to == host);
    if !sends && !receives {
        return None;
    }
    let peer = if sends { &a.to } else { &a.from };
    let role = if opener(s, a) != host {
        app::Role::Listen
    } else if a.by_name {
        app::Role::ConnectByName {
            name: super::location::mobile_name(s, &a.to),
            port: PORT,
            start: a.start,
        }
    } else {
        let addresses = wired_ends(s, peer).map(|(link, end)| wire_address(link, end));
        app::Role::Connect {
            peer: match super::shims::identity(s, peer) {
                Some(identity) => vec![identity],
                None => addresses.collect(),
            },
            port: PORT,
            start: a.start,
        }
    };
    Some(app::Config {
        transport: a.transport,
        role,
        kind: kind(a, sends),
    })
}

/// What the sender, or the other side, of an application does.
pub(crate) fn kind(a: &ApplicationEntry, sends: bool) -> app::Kind {
    let (request, response) = (
        a.message.unwrap_or(DEFAULT_MESSAGE),
        a.response.unwrap_or(DEFAULT_MESSAGE),
    );
    match (a.kind, sends) {
        (ApplicationKind::Bulk, true) => app::Kind::Bulk {
            total: a.size,
            message: a.message,
        },
        (ApplicationKind::ConstantRate, true) => app::Kind::ConstantRate {
            rate: a.rate.expect("a constant-rate sender's rate was checked"),
            message: request,
            total: a.size,
        },
        (ApplicationKind::Bulk | ApplicationKind::ConstantRate | ApplicationKind::OnOff, false) => {
            app::Kind::Sink
        }
        (ApplicationKind::RequestResponse, true) => app::Kind::RequestClient {
            request,
            response,
            think: Duration::ZERO,
            count: None,
        },
        (ApplicationKind::RequestResponse, false) => app::Kind::RequestServer { request, response },
        (ApplicationKind::OnOff, true) => {
            let rate = a
                .rate
                .expect("the rate of a source that is on and off was checked");
            app::Kind::OnOff(a.on_off.unwrap_or_default().config(rate, request))
        }
        (ApplicationKind::Web, true) => app::Kind::Web(a.web.unwrap_or_default().config()),
        (ApplicationKind::Video, true) => app::Kind::Video(a.video.clone().unwrap_or_default().config()),
        (ApplicationKind::Web | ApplicationKind::Video, false) => app::Kind::ObjectServer,
        (ApplicationKind::Voice, _) => {
            let section = a.voice.clone().unwrap_or_default();
            if sends || section.two_way {
                app::Kind::Voice(section.config())
            } else {
                app::Kind::VoiceReceiver
            }
        }
    }
}
