//! `segue-lab tcp`: one end of a TCP connection of ours behind a TUN device, so that the kernel can be the other.
//!
//! Commands and events are those of `tests/interop/peers/tcp_peer.c`, the same thing over the kernel's sockets.

use crate::capture::Capture;
use crate::commands::Commands;
use crate::link::{LONGEST_PACKET, RECEIVES_PER_TURN, counters, wait};
use crate::options::{GoodputCommand, TcpCommand, TcpRole};
use crate::report::say;
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use segue_lab::flow;
use segue_lab::user::{Noticed, User, name_of_end};
use segue_lab::wire::{End, Wire};
use segue_live::{Clock, OsSecrets, Tun, raise_priority};
use segue_proto::contract::LocalAddress;
use segue_proto::tcp::{Connection, ConnectionId, Counters, Endpoint, Event};
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::{Packet, Payload};
use serde_json::{Value, json};
use std::os::fd::AsFd;

/// Runs the end until the standard input ends.
pub(crate) fn run(options: &TcpCommand) -> anyhow::Result<u8> {
    let clock = Clock::new();
    let secrets = OsSecrets::new().context("randomness of the operating system")?;
    let mut endpoint = Endpoint::new(options.tcp.config(), Box::new(secrets));
    let local = LocalAddress {
        interface: InterfaceId(0),
        address: options.address,
    };
    endpoint.add_local_address(local);
    let tun = options.tun.open()?;
    let capture = match &options.pcap {
        Some(path) => Some(Capture::new(path, &[tun.name()], clock)?),
        None => None,
    };
    let mut user = User::default();
    user.pause(options.paused);
    let mut host = RealHost {
        clock,
        tun,
        wire: options.emulated.wire(),
        endpoint,
        connection: None,
        user,
        last: None,
        capture,
        malformed: 0,
        refused: 0,
        told: (0, Instant::ZERO),
        buffer: vec![0; LONGEST_PACKET],
    };
    let _ = raise_priority();
    say(clock.now(), "ready", json!({}))?;
    let mut commands = Commands::new().context("standard input")?;
    host.begin(options, &mut commands)?;
    host.carry(&mut commands)?;
    host.finish()
}

/// Works out the goodput of a flow in virtual time.
pub(crate) fn goodput(options: &GoodputCommand) -> anyhow::Result<u8> {
    if options.duration <= options.warm_up {
        bail!("--duration: expected more than --warm-up");
    }
    let config = options.tcp.config();
    let wire = options.emulated.wire();
    let seed = options.emulated.seed;
    let result = flow::goodput(&config, wire, options.warm_up, options.duration, seed);
    let result = result.map_err(|e| anyhow!("{e}"))?;
    let fields = json!({
        "goodput_bps": result.bits_per_second,
        "sender": describe(&result.sender),
    });
    say(Instant::ZERO + options.duration, "goodput", fields)?;
    Ok(0)
}

struct RealHost {
    clock: Clock,
    tun: Tun,
    /// The kernel's end is A, ours B.
    wire: Wire<Bytes>,
    endpoint: Endpoint,
    connection: Option<ConnectionId>,
    user: User,
    /// Counters of the connection as they were when it was last seen.
    last: Option<Counters>,
    capture: Option<Capture>,
    malformed: u64,
    refused: u64,
    /// Bytes received and the time, when that was last told.
    told: (u64, Instant),
    buffer: Vec<u8>,
}

impl RealHost {
    /// Listens; or waits until there is somebody to connect to, and does.
    fn begin(&mut self, options: &TcpCommand, commands: &mut Commands) -> anyhow::Result<()> {
        match options.role {
            TcpRole::Listen { port } => {
                self.endpoint.listen(port);
                say(self.clock.now(), "listening", json!({ "port": port }))?;
            }
            TcpRole::Connect { address, port } => {
                // the device has just been made: the first command comes when it has its addresses
                if commands.next()?.as_deref() != Some("connect") {
                    anyhow::bail!("expected the command `connect` once the TUN device has its addresses");
                }
                let now = self.clock.now();
                let opened = self.endpoint.connect(now, address, port, 0);
                self.connection = Some(opened.ok_or_else(|| anyhow!("{address} cannot be connected to"))?);
            }
        }
        Ok(())
    }

    fn carry(&mut self, commands: &mut Commands) -> anyhow::Result<()> {
        // what came with the first is not waited for
        if commands.has_more() && !commands.obey(|command| self.command(command))? {
            return Ok(());
        }
        loop {
            self.drain()?;
            let deadline = [self.wire.poll_timeout(), self.endpoint.poll_timeout()];
            let now = self.clock.now();
            let timeout = deadline.into_iter().flatten().min().map(|at| at.since(now));
            let ready = wait(&[commands.as_fd(), self.tun.as_fd()], timeout)?;
            let now = self.clock.now();
            if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
                self.endpoint.handle_timeout(now);
                self.drain()?;
            }
            if ready[1] {
                self.receive()?;
            }
            if ready[0] && !commands.obey(|command| self.command(command))? {
                return Ok(());
            }
        }
    }

    fn command(&mut self, command: &str) -> anyhow::Result<()> {
        match command {
            "flood" => self.user.flood(true),
            "stop" => self.user.flood(false),
            "pause" => self.user.pause(true),
            "resume" => self.user.pause(false),
            "close" => self.user.close(),
            "info" => self.tell("info")?,
            "reset" => {
                if let Some(id) = self.connection {
                    self.endpoint.command(id, Connection::abort);
                }
            }
            _ => match command.strip_prefix("send ").map(str::parse) {
                Some(Ok(bytes)) => self.user.send(bytes),
                _ => anyhow::bail!(
                    "unknown command `{command}`: expected send BYTES, flood, stop, pause, resume, close, info or reset"
                ),
            },
        }
        self.advance()
    }

    /// Gives the user its turn.
    fn advance(&mut self) -> anyhow::Result<()> {
        let user = &mut self.user;
        let advance = |connection: &mut Connection| (user.advance(connection), connection.counters());
        let Some((noticed, counters)) = self.connection.and_then(|id| self.endpoint.command(id, advance))
        else {
            return Ok(());
        };
        self.last = Some(counters);
        let now = self.clock.now();
        let received = self.user.received();
        let due = now.since(self.told.1) >= PROGRESS_INTERVAL || noticed.contains(&Noticed::End);
        if received != self.told.0 && due {
            self.told = (received, now);
            say(now, "progress", json!({ "bytes": received }))?;
        }
        for what in noticed {
            match what {
                Noticed::Sent => say(now, "sent", json!({ "bytes": self.user.sent() }))?,
                Noticed::End => self.tell("end")?,
            }
        }
        Ok(())
    }

    fn tell(&mut self, event: &str) -> anyhow::Result<()> {
        let connection = self.connection.and_then(|id| self.endpoint.connection(id));
        let state = connection.map(|c| {
            let shot = c.snapshot();
            json!({
                "state": format!("{:?}", shot.state),
                "cwnd": shot.cwnd,
                "mss": shot.mss,
                "srtt_us": shot.srtt.map(|t| t.as_nanos() / 1000),
                "snd_wnd": shot.snd_wnd,
            })
        });
        let fields = json!({
            "bytes": self.user.received(),
            "wrong": self.user.wrong(),
            "sent": self.user.sent(),
            "connection": state,
        });
        Ok(say(self.clock.now(), event, fields)?)
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        for _ in 0..RECEIVES_PER_TURN {
            let received = self.tun.receive(&mut self.buffer).context("TUN device")?;
            let Some(length) = received else {
                return Ok(());
            };
            let now = self.clock.now();
            let bytes = &self.buffer[..length];
            if let Some(capture) = &mut self.capture {
                capture.sent(now, 0, bytes);
            }
            let packet = Bytes::copy_from_slice(bytes);
            // a packet too many is a packet lost
            let _ = self.wire.offer(now, End::A, packet, length as u32);
            self.deliver()?;
        }
        Ok(())
    }

    /// What has crossed the link goes to the kernel, and to the endpoint.
    fn deliver(&mut self) -> anyhow::Result<()> {
        while let Some(arrival) = self.wire.poll_arrival(self.clock.now()) {
            let now = self.clock.now();
            if arrival.end == End::A {
                if let Some(capture) = &mut self.capture {
                    capture.received(now, 0, &arrival.packet);
                }
                let taken = self.tun.send(&arrival.packet).context("TUN device")?;
                self.refused += u64::from(!taken);
                continue;
            }
            match Packet::parse_bytes(arrival.packet) {
                Ok(packet) if matches!(packet.payload, Payload::Tcp(_)) => {
                    self.endpoint.handle_packet(now, InterfaceId(0), packet);
                }
                Ok(packet) => {
                    if let Payload::Icmpv6(message) = &packet.payload {
                        self.endpoint.handle_icmp(message);
                    }
                }
                Err(_) => self.malformed += 1,
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Everything that is due, and what comes of it.
    fn drain(&mut self) -> anyhow::Result<()> {
        self.settle()?;
        self.deliver()
    }

    /// Events to the user, packets to the link, until there are no more.
    fn settle(&mut self) -> anyhow::Result<()> {
        loop {
            let now = self.clock.now();
            let mut quiet = true;
            while let Some(transmit) = self.endpoint.poll_transmit(now) {
                quiet = false;
                let bytes = Bytes::from(transmit.packet.to_vec());
                let length = bytes.len() as u32;
                let _ = self.wire.offer(now, End::B, bytes, length);
            }
            while let Some((id, event)) = self.endpoint.poll_event() {
                quiet = false;
                self.on_event(id, event)?;
            }
            if quiet {
                return Ok(());
            }
        }
    }

    fn on_event(&mut self, id: ConnectionId, event: Event) -> anyhow::Result<()> {
        if *self.connection.get_or_insert(id) != id {
            // one connection is all that is tested; others are left alone
            return Ok(());
        }
        if event == Event::Connected {
            self.tell("connected")?;
        }
        self.advance()?;
        if let Some(name) = name_of_end(event) {
            let fields = json!({
                "how": name,
                "bytes": self.user.received(),
                "wrong": self.user.wrong(),
                "sent": self.user.sent(),
                "counters": self.last.as_ref().map(describe),
            });
            let what = if event == Event::Closed {
                "closed"
            } else {
                "failed"
            };
            say(self.clock.now(), what, fields)?;
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<u8> {
        let summary = json!({
            "from_kernel": counters(self.wire.counters(End::A), self.malformed),
            "to_kernel": counters(self.wire.counters(End::B), self.refused),
            "counters": self.last.as_ref().map(describe),
            "resets_sent": self.endpoint.counters().resets_sent,
        });
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        say(self.clock.now(), "summary", summary)?;
        Ok(0)
    }
}

/// Least time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

fn describe(counters: &Counters) -> Value {
    json!({
        "data_segments_sent": counters.data_segments_sent,
        "data_bytes_sent": counters.data_bytes_sent,
        "data_bytes_received": counters.data_bytes_received,
        "retransmissions": counters.recovery.retransmissions,
        "fast_recoveries": counters.recovery.fast_recoveries,
        "timeouts": counters.recovery.timeouts,
        "loss_probes": counters.recovery.loss_probes,
        "undone": counters.recovery.undone,
        "window_probes": counters.recovery.window_probes,
        "out_of_order_segments": counters.out_of_order_segments,
        "duplicate_segments": counters.duplicate_segments,
        "dsacks_received": counters.recovery.dsacks_received,
        "refused": counters.refused.total(),
    })
}
