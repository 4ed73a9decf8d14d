//! `segue-lab ilnp`: ILNPv6 under the kernel's own transports, in real time.

use crate::capture::Capture;
use crate::link::{LONGEST_PACKET, RECEIVES_PER_TURN, wait};
use crate::options::IlnpCommand;
use crate::report::say;
use crate::text::read_text;
use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use segue_lab::node::{Node, NodeEvent};
use segue_live::{CarrierWatch, Clock, EthernetPort, OsSecrets, Tun, raise_priority};
use segue_proto::InterfaceId;
use segue_proto::address::Method;
use segue_proto::ilnp::{Config, Ilnp};
use segue_proto::nd::HostConfig;
use segue_proto::random::SecretRng as _;
use segue_proto::shim::{Shim as _, ShimEvent};
use segue_wire::icmpv6::nd::LinkLayerAddress;
use segue_wire::raw::ChecksumState;
use segue_wire::{Packet, Payload};
use serde_json::{Value, json};
use std::io::{self, BufRead as _};
use std::os::fd::AsFd;
use std::path::Path;

/// Runs the shim until the standard input ends. It says `ready` once the devices are there, with the identity for the TUN device;
/// then `address_ready`, `address_lost`, and what the shim has to tell; and sums up at the end.
pub(crate) fn run(options: &IlnpCommand) -> anyhow::Result<u8> {
    let clock = Clock::new();
    let config = read_config(&options.config)?;
    let mut secrets = OsSecrets::new().context("randomness of the operating system")?;
    let seed = secrets.secret_u64();
    let nid = config.nid;
    let in_file = |message: String| anyhow!("{}: {message}", options.config.display());
    let shim = Ilnp::new(config, Box::new(secrets)).map_err(in_file)?;
    let identity = shim.identity();
    let namespace = options.tun.namespace.clone();
    let tun = options.tun.open()?;
    let ports = options
        .interfaces
        .iter()
        .map(|name| EthernetPort::open(name, Some(&namespace)))
        .collect::<Result<Vec<_>, _>>()?;
    let capture = match &options.pcap {
        Some(path) => {
            let names = options.interfaces.iter().map(String::as_str);
            Some(Capture::new(path, &names.collect::<Vec<_>>(), clock)?)
        }
        None => None,
    };
    let macs: Vec<_> = ports.iter().map(|p| LinkLayerAddress(p.mac())).collect();
    let nd = HostConfig {
        max_rtr_solicitation_delay: options.solicitation_delay,
        ..HostConfig::default()
    };
    let node = Node::new(
        Box::new(shim),
        &macs,
        Some(nid.0.to_be_bytes()),
        &Method::Slaac { nd },
        seed,
    );
    let mut host = RealHost {
        clock,
        watch: CarrierWatch::new(Some(&namespace)).context("interfaces")?,
        tun,
        ports,
        node,
        capture,
        refused: [0; 2],
        buffer: vec![0; LONGEST_PACKET],
    };
    // without the privilege, packets wait longer for their turn
    let _ = raise_priority();
    say(clock.now(), "ready", json!({ "identity": identity.to_string() }))?;
    host.carry()?;
    host.finish()
}

struct RealHost {
    clock: Clock,
    watch: CarrierWatch,
    tun: Tun,
    ports: Vec<EthernetPort>,
    node: Node,
    capture: Option<Capture>,
    /// Packets that the kernel did not take: as its own, and for an interface.
    refused: [u64; 2],
    buffer: Vec<u8>,
}

impl RealHost {
    fn carry(&mut self) -> anyhow::Result<()> {
        let mut commands = io::BufReader::new(io::stdin());
        let mut line = String::new();
        loop {
            self.drain()?;
            let now = self.clock.now();
            let timeout = self.node.poll_timeout().map(|at| at.since(now));
            let ready = {
                let stdin = commands.get_ref();
                let mut descriptors = vec![stdin.as_fd(), self.watch.as_fd(), self.tun.as_fd()];
                descriptors.extend(self.ports.iter().map(AsFd::as_fd));
                wait(&descriptors, timeout)?
            };
            let now = self.clock.now();
            if self.node.poll_timeout().is_some_and(|at| at <= now) {
                self.node.handle_timeout(now);
                self.drain()?;
            }
            if ready[1] {
                self.take_carriers()?;
            }
            if ready[2] {
                self.take_from_kernel()?;
            }
            for (port, ready) in ready[3..].iter().enumerate() {
                if *ready {
                    self.take_frames(port)?;
                }
            }
            if ready[0] {
                line.clear();
                if commands.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                anyhow::bail!("unknown command `{}`: there are none", line.trim());
            }
        }
    }

    fn take_carriers(&mut self) -> anyhow::Result<()> {
        for change in self.watch.changes().context("interfaces")? {
            let Some(port) = self.ports.iter().position(|p| p.index() == change.index) else {
                continue;
            };
            let now = self.clock.now();
            let fields = json!({ "interface": self.ports[port].name(), "up": change.up });
            say(now, "carrier", fields)?;
            self.node.handle_carrier(now, port, change.up);
            self.drain()?;
        }
        Ok(())
    }

    fn take_from_kernel(&mut self) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let received = self.tun.receive(&mut self.buffer).context("TUN device")?;
            let Some(length) = received else {
                return Ok(());
            };
            let bytes = Bytes::copy_from_slice(&self.buffer[..length]);
            self.node.handle_kernel(self.clock.now(), &bytes);
            self.drain()?;
        }
        Ok(())
    }

    fn take_frames(&mut self, port: usize) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let received = self.ports[port].receive().context("network interface")?;
            let Some(frame) = received else {
                return Ok(());
            };
            let now = self.clock.now();
            let bytes = Bytes::copy_from_slice(self.ports[port].packet(&frame));
            if let Some(capture) = &mut self.capture {
                capture.received(now, port, &bytes);
            }
            let checksum = if frame.offload.partial_checksum.is_some() {
                ChecksumState::Partial
            } else {
                ChecksumState::Complete
            };
            let source = LinkLayerAddress(frame.source);
            self.node
                .handle_frame(now, port, source, &bytes, checksum, frame.offload.segment_size);
            self.drain()?;
        }
        Ok(())
    }

    /// What the node has to say goes to where it belongs.
    fn drain(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        while let Some(packet) = self.node.poll_kernel() {
            for bytes in whole(&packet) {
                if !self.tun.send(&bytes).context("TUN device")? {
                    self.refused[0] += 1;
                }
            }
        }
        while let Some(frame) = self.node.poll_frame() {
            let bytes = frame.packet.to_vec();
            if let Some(capture) = &mut self.capture {
                capture.sent(now, frame.port, &bytes);
            }
            let sent = self.ports[frame.port].send(frame.to.0, &bytes);
            if !sent.context("network interface")? {
                self.refused[1] += 1;
            }
        }
        while let Some(event) = self.node.poll_event() {
            let (name, fields) = self.describe(&event);
            say(now, name, fields)?;
        }
        Ok(())
    }

    fn describe(&self, event: &NodeEvent) -> (&'static str, Value) {
        let name = |interface: InterfaceId| self.ports.get(usize::from(interface.0)).map(EthernetPort::name);
        let at = |local: &segue_proto::contract::LocalAddress| json!({ "address": local.address.to_string(), "interface": name(local.interface) });
        match event {
            NodeEvent::AddressReady(local) => ("address_ready", at(local)),
            NodeEvent::AddressLost(local) => ("address_lost", at(local)),
            NodeEvent::Shim(event) => match event {
                ShimEvent::HandoffBegun { from, to } => (
                    "handoff_begun",
                    json!({ "from": from.map(|a| a.to_string()), "to": to.to_string() }),
                ),
                ShimEvent::HandoffDone { to, delay } => (
                    "handoff_done",
                    json!({ "to": to.to_string(), "delay_ns": delay.as_nanos() }),
                ),
                ShimEvent::HandoffFailed { peer } => ("handoff_failed", json!({ "peer": peer.to_string() })),
                ShimEvent::RouteChanged { peer, to } => (
                    "route_changed",
                    json!({ "peer": peer.to_string(), "to": to.to_string() }),
                ),
                ShimEvent::FellBack { peer } => ("fell_back", json!({ "peer": peer.to_string() })),
                ShimEvent::UpdateDirectory => ("update_directory", json!({})),
                ShimEvent::LookUp { peer } => ("look_up", json!({ "peer": peer.to_string() })),
                ShimEvent::FormAddress(local) => ("form_address", at(local)),
                ShimEvent::AssignAddress(local) => ("assign_address", at(local)),
                ShimEvent::AnnounceAddress(local) => ("announce_address", at(local)),
                ShimEvent::WithdrawAddress(local) => ("withdraw_address", at(local)),
            },
        }
    }

    fn finish(self) -> anyhow::Result<u8> {
        let shim: serde_json::Map<String, Value> = self
            .node
            .shim()
            .counters()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect();
        let node = self.node.counters();
        let summary = json!({
            "shim": shim,
            "from_kernel": node.from_kernel,
            "to_kernel": node.to_kernel,
            "received": node.received,
            "sent": node.sent,
            "not_from_identity": node.not_from_identity,
            "not_for_identity": node.not_for_identity,
            "malformed": node.malformed,
            "no_next_hop": node.no_next_hop,
            "refused_by_kernel": self.refused[0],
            "refused_by_interface": self.refused[1],
        });
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        say(self.clock.now(), "summary", summary)?;
        Ok(0)
    }
}

/// The packet in bytes, as often as it takes: a super-packet that an interface received is cut into its segments.
fn whole(packet: &Packet) -> Vec<Vec<u8>> {
    let Payload::Raw(raw) = &packet.payload else {
        return vec![packet.to_vec()];
    };
    let segments = raw.segments(&packet.pseudo_header()).unwrap_or_default();
    let with = |segment| Packet {
        payload: Payload::Raw(segment),
        ..packet.clone()
    };
    segments
        .into_iter()
        .map(|segment| with(segment).to_vec())
        .collect()
}

/// The shim's configuration: a TOML file with the keys of [`Config`].
fn read_config(path: &Path) -> anyhow::Result<Config> {
    let text = read_text(path)?;
    toml::from_str(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
}
