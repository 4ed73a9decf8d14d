//! SCTP: a stack of [`Endpoint`], the sockets of RFC 6458, and the script's numbers for both ends.

mod addresses;
mod calls;
mod codec;
mod compare;
mod inject;
mod numbers;
mod settings;
mod sockets;

use super::ast::{Action, Call, Direction, Packet, Script, Shell};
use super::stack::{Comparison, Outcome, Refusal, Sent, Stack};
use addresses::Family;
use core::net::Ipv6Addr;
use numbers::Numbers;
use segue_proto::Instant;
use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::random::Stream;
use segue_proto::sctp::{Endpoint, Profile};
use sockets::Sockets;

/// The port that packetdrill binds to, and connects to.
const PORT: u16 = 8080;
/// The port that a peer calls from.
const CALLERS_PORT: u16 = 53_055;

/// An SCTP endpoint under test.
pub struct SctpStack {
    end: Endpoint,
    family: Family,
    /// Addresses of the endpoint, and of its peer.
    local: Vec<Ipv6Addr>,
    remote: Vec<Ipv6Addr>,
    /// Ports of the endpoint, and of its peer.
    ports: (u16, u16),
    sockets: Sockets,
    numbers: Numbers,
}

impl SctpStack {
    /// The stack for `script`.
    ///
    /// # Errors
    /// If the script asks for what it cannot be: with the line.
    pub fn new(script: &Script, profile: Profile) -> Result<Self, (usize, Refusal)> {
        let family = Family::of(script);
        let config = settings::config(script, family, profile)?;
        let (local, remote) = hosts(script, family)?;
        let calls = script.events.iter().any(|e| match &e.action {
            Action::Call(call) => ["connect", "sctp_connectx"].contains(&call.name.as_str()),
            _ => false,
        });
        let ports = (PORT, if calls { PORT } else { CALLERS_PORT });
        let mut end = Endpoint::new(config, ports.0, Box::new(Stream::new(1, "secrets")));
        for (i, address) in local.iter().enumerate() {
            end.add_local_address(LocalAddress {
                interface: InterfaceId(i as u8),
                address: *address,
            });
        }
        Ok(Self {
            end,
            family,
            local,
            remote,
            ports,
            sockets: Sockets::default(),
            numbers: Numbers::default(),
        })
    }

    /// What the endpoint tells goes to the sockets.
    fn settle(&mut self) {
        while let Some((id, event)) = self.end.poll_event() {
            self.sockets.note(id, event, self.numbers.peer_aborts());
        }
    }
}

impl Stack for SctpStack {
    fn call(&mut self, now: Instant, call: &Call) -> Result<Outcome, Refusal> {
        let outcome = self.socket_call(now, call);
        self.settle();
        outcome
    }

    fn inject(&mut self, now: Instant, packet: &Packet) -> Result<(), Refusal> {
        self.inject_packet(now, packet)?;
        self.settle();
        Ok(())
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Sent> {
        self.settle();
        loop {
            let packet = self.end.poll_transmit(now)?.packet;
            // as under packetdrill, what goes elsewhere than to the script's peer is not seen
            if self.remote.contains(&packet.ip.destination) {
                let bytes = packet.to_vec();
                self.numbers.note_sent(&bytes);
                return Some(Sent { at: now, bytes });
            }
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.end.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.end.handle_timeout(now);
        self.settle();
    }

    fn compare(&mut self, due: &Packet, sent: &Sent) -> Result<Comparison, Refusal> {
        self.compare_packet(due, sent)
    }

    fn describe(&self, sent: &Sent) -> String {
        self.describe_packet(sent)
    }

    fn shell(&mut self, _: Instant, _: &Shell) -> Result<(), Refusal> {
        // settings were read ahead, and everything else was refused then
        Ok(())
    }

    fn code(&mut self, _: Instant, _: &str) -> Result<Comparison, Refusal> {
        Refusal::new("code: SCTP has no values for it")
    }
}

/// Addresses of the endpoint and its peer: packetdrill's, or those of `--local_ip=` and `--remote_ip=`, each as often as there
/// are addresses; the peer also has those that packet lines name.
fn hosts(script: &Script, family: Family) -> Result<(Vec<Ipv6Addr>, Vec<Ipv6Addr>), (usize, Refusal)> {
    let (mut local, mut remote) = (Vec::new(), Vec::new());
    for option in &script.options {
        let value = option.value.as_deref().unwrap_or_default();
        let list = match option.name.as_str() {
            "local_ip" => &mut local,
            "remote_ip" => &mut remote,
            "ip_version" if ["ipv4", "ipv6"].contains(&value) => continue,
            "tolerance_usecs" | "mtu" => continue,
            other => {
                let refusal = Refusal(format!("the option --{other}={value}"));
                return Err((option.line, refusal));
            }
        };
        let address = value
            .parse()
            .map_err(|_| Refusal(format!("--{}={value}, which is no address", option.name)))
            .and_then(addresses::to_ipv6);
        list.push(address.map_err(|refusal| (option.line, refusal))?);
    }
    let default = family.hosts();
    if local.is_empty() {
        local.push(default.0);
    }
    if remote.is_empty() {
        remote.push(default.1);
    }
    for event in &script.events {
        if let Action::Packet(packet) = &event.action
            && let Some((from, to)) = packet.addresses
        {
            let peer = match packet.direction {
                Direction::In => from,
                Direction::Out => to,
            };
            let peer = addresses::to_ipv6(peer).map_err(|refusal| (event.line, refusal))?;
            if !remote.contains(&peer) {
                remote.push(peer);
            }
        }
    }
    Ok((local, remote))
}
