//! A TCP endpoint of ours under a script of Google's packetdrill.
//!
//! Scripts are of IPv4 for the most part; ours is IPv6, and its MTU is larger by so much that segments are as long. The
//! endpoint is made when the first packet arrives or a socket connects, with what was set by then. Data is synthetic: that what arrives is the
//! stream at that place is looked at with every segment.

mod code;
mod info;
mod segments;
mod settings;
mod sockets;

use super::ast::{Action, Call, Direction, Packet, Payload, Script, Shell};
use super::stack::{Comparison, Outcome, Refusal, Sent, Stack};
use bytes::Bytes;
use code::Interpreter;
use segments::Numbers;
use segue_proto::Instant;
use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::random::Stream;
use segue_proto::tcp::{Config, Endpoint, Profile};
use segue_wire::Packet as WirePacket;
use settings::Settings;
use sockets::{PORT, Sockets};
use std::net::Ipv6Addr;

/// Our end, and the script's.
const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const INTERFACE: InterfaceId = InterfaceId(0);

/// A TCP endpoint under a script.
pub struct TcpStack {
    settings: Settings,
    /// Once a socket listens or connects.
    endpoint: Option<Endpoint>,
    sockets: Sockets,
    numbers: Numbers,
    interpreter: Interpreter,
}

impl TcpStack {
    /// A stack with the settings of `profile`.
    ///
    /// # Errors
    /// If an option of `script` is none that is known: its line, and which.
    pub fn new(script: &Script, profile: Profile) -> Result<Self, (usize, Refusal)> {
        let mut numbers = Numbers::default();
        for option in &script.options {
            let value = option.value.as_deref();
            match (option.name.as_str(), value.map(str::parse)) {
                // the runner's
                ("tolerance_usecs", _) => {}
                // one path, and IPv6
                ("ip_version" | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip", _) => {}
                ("tcp_ts_tick_usecs", Some(Ok(0 | 1000))) => numbers.verify_timestamps(value == Some("1000")),
                ("strict_segments", None) => numbers.be_strict(),
                (name, _) => return Err((option.line, Refusal(format!("the option --{name}")))),
            }
        }
        Ok(Self {
            settings: Settings::new(Config::new(profile), &script.file, pacing_matters(script)),
            endpoint: None,
            sockets: Sockets::default(),
            numbers,
            interpreter: Interpreter::default(),
        })
    }

    /// The endpoint, which begins with what was set until now.
    fn begin(&mut self) -> &mut Endpoint {
        let settings = &mut self.settings;
        self.endpoint.get_or_insert_with(|| {
            let mut endpoint = Endpoint::new(settings.settle(), Box::new(Stream::new(1, "drill")));
            endpoint.add_local_address(LocalAddress {
                interface: INTERFACE,
                address: OWN,
            });
            endpoint
        })
    }

    fn collect(&mut self) {
        if let Some(endpoint) = &mut self.endpoint {
            while let Some((id, event)) = endpoint.poll_event() {
                self.sockets.note(id, event);
            }
        }
    }
}

/// Whether it makes a difference if data is paced: where its times are looked at, and where a later write finds a window that
/// it can fill at once.
fn pacing_matters(script: &Script) -> bool {
    let mut writes = 0;
    let expects_data = script.events.iter().any(|event| match &event.action {
        Action::Packet(packet) if packet.direction == Direction::Out => {
            matches!(&packet.payload, Payload::Tcp(tcp) if tcp.length > 0)
        }
        Action::Call(call) => {
            writes += usize::from(["write", "send", "sendmsg"].contains(&call.name.as_str()));
            false
        }
        _ => false,
    });
    expects_data || writes > 1
}

impl Stack for TcpStack {
    fn call(&mut self, now: Instant, call: &Call) -> Result<Outcome, Refusal> {
        let outcome = self.dispatch(now, call);
        self.collect();
        outcome
    }

    fn inject(&mut self, now: Instant, packet: &Packet) -> Result<(), Refusal> {
        let Payload::Tcp(tcp) = &packet.payload else {
            return Refusal::new(format!("what is not TCP: {packet}"));
        };
        segments::refuse_surroundings(packet)?;
        let segment = self.numbers.segment(tcp, PORT)?;
        let bytes = segments::bytes(segment);
        let listens = self.sockets.listen();
        let endpoint = self.begin();
        if listens {
            endpoint.listen(PORT);
        }
        // what arrives is bytes
        if let Ok(packet) = WirePacket::parse(&bytes) {
            endpoint.handle_packet(now, INTERFACE, packet);
        }
        self.collect();
        Ok(())
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Sent> {
        let sent = self.endpoint.as_mut()?.poll_transmit(now);
        self.collect();
        let bytes = sent?.packet.to_vec();
        self.numbers.note_sent(&bytes);
        Some(Sent { at: now, bytes })
    }

    /// Google's scripts look at what they name, and many say nothing of what is sent after their last packet.
    fn all_is_expected(&self) -> bool {
        false
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.as_mut()?.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_timeout(now);
        }
        self.collect();
    }

    fn compare(&mut self, due: &Packet, sent: &Sent) -> Result<Comparison, Refusal> {
        let Payload::Tcp(tcp) = &due.payload else {
            return Refusal::new(format!("what is not TCP: {due}"));
        };
        segments::refuse_surroundings(due)?;
        if self.sockets.has_traffic_class() {
            return Refusal::new("IP_TOS of what is sent");
        }
        self.numbers.compare(tcp, &Bytes::copy_from_slice(&sent.bytes))
    }

    fn describe(&self, sent: &Sent) -> String {
        self.numbers.describe(&Bytes::copy_from_slice(&sent.bytes))
    }

    fn shell(&mut self, _now: Instant, shell: &Shell) -> Result<(), Refusal> {
        self.settings.shell(&shell.commands)
    }

    fn code(&mut self, _now: Instant, code: &str) -> Result<Comparison, Refusal> {
        let connection = self.sockets.under_test();
        let connection = self
            .endpoint
            .as_ref()
            .and_then(|endpoint| endpoint.connection(connection?));
        self.interpreter.run(code, |name| info::value(name, connection))
    }
}
