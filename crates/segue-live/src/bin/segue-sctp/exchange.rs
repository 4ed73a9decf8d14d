//! `listen` and `connect`: associations that carry data one way or both.

use crate::calling::{Call, in_words};
use crate::options::{Common, Connect, Listen, ReceivedOptions, SentOptions};
use crate::receiver::{Receiver, Sink};
use crate::report::{Report, refused, with_causes};
use crate::script::Action;
use crate::sender::{Sender, ToSend};
use crate::session::{Session, Shutdown, rate};
use crate::setup::{self, Output};
use anyhow::{Result, bail};
use bytes::Bytes;
use nix::sys::signalfd::SignalFd;
use segue_live::{Driver, DriverEvent};
use segue_proto::sctp::{AddressRequest, AssociationId, Counters, Event};
use segue_proto::{Duration, Instant};
use segue_wire::sctp::ErrorCause;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::Ipv6Addr;
use std::os::fd::AsFd as _;

/// `segue-sctp listen`.
pub(crate) fn listen(options: Listen) -> Result<u8> {
    if options.received.save.is_some() && !options.once {
        bail!("--save: needs --once, a file takes what one association brings");
    }
    let mut exchange = Exchange::new(
        setup::driver(&options.common, options.port, true)?,
        options.common,
        options.received,
        options.sent,
    )?;
    exchange.once = options.once;
    exchange.driver.listen();
    let now = exchange.driver.now();
    let over = exchange
        .driver
        .udp_port()
        .map_or("IPv6".to_owned(), |port| format!("UDP port {port}"));
    exchange.report.say(
        now,
        "listening",
        json!({"port": options.port, "udp_port": exchange.driver.udp_port()}),
        &format!("listening on port {} over {over}", options.port),
    )?;
    exchange.run()
}

/// `segue-sctp connect`.
pub(crate) fn connect(options: Connect) -> Result<u8> {
    let calling = &options.calling;
    setup::check(calling)?;
    let mut exchange = Exchange::new(
        setup::driver(&options.common, setup::local_port(calling.local_port)?, false)?,
        options.common,
        options.received,
        options.sent,
    )?;
    exchange.once = true;
    let id = exchange.driver.connect(&calling.peer, calling.port)?;
    exchange.open(id)?;
    let now = exchange.driver.now();
    let remote_udp_port = exchange.common.remote_udp_port;
    exchange.call = Some(Call::new(now, calling, &exchange.driver, remote_udp_port));
    let first = shown(calling.peer.first().copied());
    exchange.report.say(
        now,
        "connecting",
        json!({"association": id.0, "peer": calling.peer, "port": calling.port}),
        &format!("connecting to {first} port {}", calling.port),
    )?;
    exchange.run()
}

/// All associations of one program.
struct Exchange {
    driver: Driver,
    common: Common,
    received: ReceivedOptions,
    sent: SentOptions,
    to_send: Option<ToSend>,
    report: Report,
    log: Option<Output>,
    signals: SignalFd,
    sessions: Vec<Session>,
    /// The association that this end begins, until it is up.
    call: Option<Call>,
    /// Ends with the first association.
    once: bool,
    /// How the first association ended.
    outcome: Option<u8>,
    ending: Option<Shutdown>,
}

impl Exchange {
    fn new(driver: Driver, common: Common, received: ReceivedOptions, sent: SentOptions) -> Result<Self> {
        if !(1..=1 << 20).contains(&sent.size.bytes()) || sent.size > common.send_buffer {
            bail!("--size: expected 1 B to 1 MiB, and no more than --send-buffer");
        }
        if sent.rate.is_some_and(|rate| rate.bits_per_second() == 0) {
            bail!("--rate: expected more than 0 bit/s");
        }
        // what cannot be read is better known before the peer is bothered
        let to_send = sent.send.as_deref().map(ToSend::open).transpose()?;
        if let (Some(file), Some(saved)) = (&to_send, &received.save)
            && file.is_same_file(saved)
        {
            bail!("--save: is the file that --send reads");
        }
        Ok(Self {
            report: Report::new(common.json, driver.now()),
            log: setup::log(&common)?,
            signals: setup::signals()?,
            driver,
            common,
            received,
            sent,
            to_send,
            sessions: Vec::new(),
            call: None,
            once: false,
            outcome: None,
            ending: None,
        })
    }

    /// Whether no other association is taken: there is or was the only one, or the end is near.
    fn is_taken(&self) -> bool {
        self.ending.is_some() || self.once && (self.outcome.is_some() || !self.sessions.is_empty())
    }

    /// Begins to care for an association.
    fn open(&mut self, id: AssociationId) -> Result<()> {
        let (sent, streams) = (&self.sent, self.common.streams);
        let now = self.driver.now();
        let sender = if let Some(file) = &mut self.to_send {
            match file.share() {
                Ok(file) => Sender::file(file, sent.size),
                Err(error) => {
                    // the others go on
                    eprintln!("segue-sctp: association {}: {error:#}", id.0);
                    if let Some(association) = self.driver.association_mut(id) {
                        association.abort(now, Bytes::from_static(b"nothing to send"));
                    }
                    Sender::nothing()
                }
            }
        } else if let Some(bytes) = sent.bytes {
            Sender::bytes(bytes, sent.size, streams)
        } else if let Some(rate) = sent.rate {
            Sender::paced(rate, sent.size, streams)
        } else {
            Sender::nothing()
        };
        let sink = match &self.received {
            ReceivedOptions { echo: true, .. } => Sink::Echo,
            ReceivedOptions { verify: true, .. } => Sink::Verify,
            ReceivedOptions { save: Some(path), .. } => Sink::Save(Output::new(path)?),
            _ => Sink::Discard,
        };
        self.sessions.push(Session {
            id,
            sender,
            receiver: Receiver::new(sink, self.common.send_buffer.bytes() as usize),
            script: self.common.script.clone().unwrap_or_default(),
            next_step: 0,
            connected: None,
            first_sent: None,
            acknowledged: (0, now),
            finished: None,
            closing: false,
            failed: false,
            counters: Counters::default(),
        });
        Ok(())
    }

    fn run(&mut self) -> Result<u8> {
        let status = self.turns();
        if status.is_err() {
            // the peer is not to wait for who is gone
            self.abort(|_| true);
        }
        self.driver.send_now();
        setup::first_failure(status, self.end_files())
    }

    fn end_files(&mut self) -> Result<()> {
        setup::end_capture(&mut self.driver, &self.common)?;
        match &mut self.log {
            Some(log) => log.write(|out| out.flush()),
            None => Ok(()),
        }
    }

    fn turns(&mut self) -> Result<u8> {
        loop {
            let next = self.sessions.iter().filter_map(|s| self.next_at(s));
            let call = self.call.iter().map(Call::next_at);
            let patience = self.ending.iter();
            let patience =
                patience.flat_map(|ending| self.sessions.iter().map(|s| ending.over_at(s.got_on())));
            let until = next.chain(call).chain(patience).min();
            let sessions = self
                .sessions
                .iter()
                .filter(|s| s.connected.is_some() && !s.closing);
            let pipes = sessions.filter_map(|s| s.sender.waits_for());
            let wake: Vec<_> = pipes.chain([self.signals.as_fd()]).collect();
            self.driver.turn(until, &wake)?;
            if let Some(ending) = setup::pending(&self.signals) {
                if self.ending.is_some() {
                    self.abort(|_| true);
                    return Ok(ending.status());
                }
                self.ending = Some(Shutdown {
                    cause: ending,
                    since: self.driver.now(),
                });
                self.shut_down_all();
            }
            while let Some(event) = self.driver.poll_event() {
                self.on_event(event)?;
            }
            for index in 0..self.sessions.len() {
                self.serve(index)?;
            }
            let now = self.driver.now();
            if let Some(ending) = self.ending {
                let silent = |session: &Session| now >= ending.over_at(session.got_on());
                if self.sessions.iter().any(silent) {
                    eprintln!("segue-sctp: a peer does not answer: its association is aborted");
                    self.abort(silent);
                    while let Some(event) = self.driver.poll_event() {
                        self.on_event(event)?;
                    }
                }
            }
            if self.ending.is_none()
                && let Some(call) = &mut self.call
                && call.is_over(now, &self.report)?
            {
                self.call = None;
                self.outcome = Some(1);
                self.shut_down_all();
                continue;
            }
            if self.sessions.is_empty() {
                match (&self.ending, self.outcome) {
                    (Some(shutdown), outcome) => {
                        return Ok(shutdown.cause.status().max(outcome.unwrap_or(0)));
                    }
                    (None, Some(status)) if self.once => return Ok(status),
                    _ => {}
                }
            }
        }
    }

    /// When a session has something to do of its own accord.
    fn next_at(&self, session: &Session) -> Option<Instant> {
        let connected = session.connected?;
        if session.closing {
            return None;
        }
        let step = session.script.steps.get(session.next_step);
        // a step that waits for its address is taken up when that appears
        let step = step
            .map(|s| connected + s.at)
            .filter(|at| *at > self.driver.now());
        let end = self.sent.duration.map(|d| connected + d);
        let quiet = session.quiet_since().filter(|_| self.sent.duration.is_none());
        let linger = quiet.map(|at| at + self.sent.linger);
        [session.sender.next_at(), step, end, linger]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_event(&mut self, event: DriverEvent) -> Result<()> {
        let now = self.driver.now();
        match event {
            DriverEvent::AddressAppeared(local) => self.report.say(
                now,
                "address_appeared",
                json!({"address": local.address, "interface": self.driver.interface_name(local.interface)}),
                &format!("address {} appeared", local.address),
            )?,
            DriverEvent::AddressVanished(local) => self.report.say(
                now,
                "address_vanished",
                json!({"address": local.address, "interface": self.driver.interface_name(local.interface)}),
                &format!("address {} vanished", local.address),
            )?,
            DriverEvent::Association(id, event) => self.on_association(now, id, event)?,
        }
        Ok(())
    }

    fn on_association(&mut self, now: Instant, id: AssociationId, event: Event) -> Result<()> {
        if !self.sessions.iter().any(|s| s.id == id) {
            if event != Event::Connected {
                return Ok(());
            }
            if self.is_taken() {
                if let Some(association) = self.driver.association_mut(id) {
                    association.abort(now, Bytes::from_static(b"no further association"));
                }
                return Ok(());
            }
            self.open(id)?;
        }
        let Some(index) = self.sessions.iter().position(|s| s.id == id) else {
            return Ok(());
        };
        let say = |name: &str, mut fields: Value, text: &str| {
            if let Value::Object(fields) = &mut fields {
                fields.insert("association".to_owned(), id.0.into());
            }
            self.report.say(now, name, fields, text)
        };
        let mut fields = json!({});
        let was_shut_down = event == Event::Closed;
        let status = match event {
            Event::Connected => {
                self.sessions[index].connected = Some(now);
                self.call = None;
                let path = self
                    .driver
                    .association(id)
                    .map(|a| (a.route().address, a.primary_path()));
                let (local, peer) = path.unzip();
                say(
                    "connected",
                    json!({"local": local, "peer": peer}),
                    &format!("association {} is up: {} to {}", id.0, shown(local), shown(peer)),
                )?;
                None
            }
            Event::Readable | Event::Writable | Event::SendersDry => None,
            Event::PeerAddressAdded(address) => {
                say(
                    "peer_address_added",
                    json!({"address": address}),
                    &format!("peer added {address}"),
                )?;
                None
            }
            Event::PeerAddressConfirmed(address) => {
                say(
                    "peer_address_confirmed",
                    json!({"address": address}),
                    &format!("peer has {address}"),
                )?;
                None
            }
            Event::PeerAddressDeleted(address) => {
                say(
                    "peer_address_deleted",
                    json!({"address": address}),
                    &format!("peer deleted {address}"),
                )?;
                None
            }
            Event::PrimaryChanged(address) => {
                say(
                    "primary_changed",
                    json!({"address": address}),
                    &format!("primary path is {address}"),
                )?;
                None
            }
            Event::PathStateChanged { address, state } => {
                say(
                    "path_state",
                    json!({"address": address, "state": format!("{state:?}")}),
                    &format!("path to {address} is {state:?}"),
                )?;
                None
            }
            Event::AsconfAnswered { serial, results } => {
                for result in &results {
                    let (request, address) = request(result.request);
                    let granted = result.outcome.is_ok();
                    let causes = result.outcome.as_ref().err();
                    let causes: Option<Vec<&str>> = causes.map(|c| c.iter().map(ErrorCause::name).collect());
                    self.sessions[index].failed |= !granted;
                    say(
                        "asconf_answered",
                        json!({"serial": serial.0, "request": request, "address": address, "granted": granted, "causes": causes}),
                        &match &causes {
                            None => format!("{request} {address}: granted"),
                            Some(causes) => with_causes(&format!("{request} {address}: refused"), causes),
                        },
                    )?;
                }
                None
            }
            Event::Closed
                if self.sessions[index].connected.is_some()
                    && self.sessions[index].sender.is_incomplete()
                    && self.sent.duration.is_none() =>
            {
                let sent = self.sessions[index].sender.sent_bytes();
                let text = format!("association was shut down before everything was sent: {sent} B were");
                Some((1, "closed", text))
            }
            Event::Closed if self.sessions[index].connected.is_none() => {
                let text = "given up before the association was set up".to_owned();
                Some((1, "closed", text))
            }
            Event::Closed => Some((0, "closed", "association was shut down".to_owned())),
            Event::Unreachable { address, reason } => {
                let why = in_words(reason);
                say(
                    "unreachable",
                    json!({"address": address, "reason": why}),
                    &format!("{address} is unreachable: {why}"),
                )?;
                None
            }
            Event::Restarted(_) => {
                say(
                    "restarted",
                    json!({}),
                    "the peer has restarted: what it had begun ends here",
                )?;
                self.close(now, index)?;
                self.outcome.get_or_insert(1);
                if self.once {
                    if let Some(association) = self.driver.association_mut(id) {
                        association.abort(now, Bytes::from_static(b"restarted"));
                    }
                } else {
                    self.open(id)?;
                    if let Some(session) = self.sessions.last_mut() {
                        session.connected = Some(now);
                    }
                }
                return Ok(());
            }
            Event::Lost => Some((1, "lost", "association lost: the peer does not answer".to_owned())),
            Event::Aborted { causes } => {
                let names: Vec<&str> = causes.iter().map(ErrorCause::name).collect();
                fields = json!({"causes": names});
                Some((1, "aborted", with_causes("association aborted", &names)))
            }
            // what later extensions have to tell is for programs that use them
            #[allow(unreachable_patterns)]
            _ => None,
        };
        if let Some((status, name, text)) = status {
            say(name, fields, &text)?;
            let session = &mut self.sessions[index];
            if was_shut_down
                && session.connected.is_some()
                && let Some(association) = self.driver.association(id)
            {
                // the last acknowledgement may have come with the shutdown
                session.note_sent(now, association, self.common.send_buffer.bytes());
            }
            let unfinished = self.script_is_unfinished(now, index)?;
            let failed = self.close(now, index)? || unfinished;
            self.outcome.get_or_insert(status.max(u8::from(failed)));
        }
        Ok(())
    }

    /// Has a session send, receive and follow its script.
    fn serve(&mut self, index: usize) -> Result<()> {
        let now = self.driver.now();
        let session = &mut self.sessions[index];
        let Some(connected) = session.connected else {
            return Ok(());
        };
        let Some(association) = self.driver.association_mut(session.id) else {
            return Ok(());
        };
        if !session.take(now, association, self.log.as_mut())? {
            session.closing = true;
            association.abort(now, Bytes::from_static(b"not what was sent"));
            return Ok(());
        }
        if !session.closing {
            session.sender.send(now, association)?;
        }
        session.note_sent(now, association, self.common.send_buffer.bytes());
        if session.closing {
            return Ok(());
        }
        let finished = session.sender.has_source() && session.sender.is_done() && association.is_sender_dry();
        let over = self.sent.duration.is_some_and(|d| now >= connected + d);
        if finished && session.finished.is_none() {
            session.finished = Some(now);
        }
        let quiet = session
            .quiet_since()
            .is_some_and(|at| now >= at + self.sent.linger);
        if over || (quiet && self.sent.duration.is_none()) {
            association.shutdown(now);
            session.closing = true;
            return Ok(());
        }
        self.follow_script(now, index)
    }

    fn follow_script(&mut self, now: Instant, index: usize) -> Result<()> {
        loop {
            let session = &self.sessions[index];
            let Some(step) = session.script.steps.get(session.next_step).copied() else {
                return Ok(());
            };
            if session
                .connected
                .is_none_or(|connected| now < connected + step.at)
            {
                return Ok(());
            }
            let id = session.id;
            let new = match step.action {
                Action::Add(address) => match self.driver.local_address(address) {
                    Some(local) => Some(local),
                    // the host does not have it yet
                    None => return Ok(()),
                },
                _ => None,
            };
            let Some(association) = self.driver.association_mut(id) else {
                return Ok(());
            };
            let done = match (step.action, new) {
                (Action::Add(_), Some(local)) => association.add_address(now, local),
                (Action::Add(_), None) => Ok(()),
                (Action::Delete(address), _) => association.delete_address(now, address),
                (Action::Primary(address), _) => association.request_set_primary(now, address),
                (Action::Route(address), _) => association.set_route(now, address),
                (Action::Peer(address), _) => association.set_primary_path(now, address),
                (Action::Deactivate(address), _) => association.deactivate_address(now, address),
                (Action::Activate(address), _) => association.activate_address(now, address),
                (Action::Shutdown, _) => {
                    association.shutdown(now);
                    Ok(())
                }
                (Action::Abort, _) => {
                    association.abort(now, Bytes::from_static(b"script"));
                    Ok(())
                }
            };
            self.sessions[index].closing |= step.action == Action::Shutdown;
            self.sessions[index].next_step += 1;
            let error = done.err().map(|e| step.action.failure(e));
            self.sessions[index].failed |= error.is_some();
            self.say_step(now, id, step.action, error)?;
        }
    }

    fn say_step(
        &self,
        now: Instant,
        id: AssociationId,
        action: Action,
        error: Option<&str>,
    ) -> std::io::Result<()> {
        let text = match error {
            None => format!("script: {action}"),
            Some(error) => format!("script: {action} failed: {error}"),
        };
        let fields = json!({"association": id.0, "action": action.to_string(), "error": error});
        self.report.say(now, "script", fields, &text)
    }

    /// Says which steps an association that has ended leaves undone, and whether one that was due is among them, or one
    /// has failed before.
    fn script_is_unfinished(&self, now: Instant, index: usize) -> Result<bool> {
        let session = &self.sessions[index];
        let mut failed = session.failed;
        let Some(connected) = session.connected else {
            return Ok(failed);
        };
        // what comes behind a step that waits would have waited for it
        for step in session.script.steps.iter().skip(session.next_step) {
            let due = now >= connected + step.at;
            let why = match step.action {
                _ if !due => "the association ended before",
                Action::Add(_) => "this host never had the address",
                _ => "a step before it was never done",
            };
            failed |= due;
            self.say_step(now, session.id, step.action, Some(why))?;
        }
        Ok(failed)
    }

    /// An association has ended: what is left is read, and the sum is drawn. Whether something failed.
    fn close(&mut self, now: Instant, index: usize) -> Result<bool> {
        let mut session = self.sessions.remove(index);
        if let Some(association) = self.driver.association_mut(session.id) {
            session.take(now, association, self.log.as_mut())?;
        }
        session.receiver.finish()?;
        let elapsed = session.connected.map_or(Duration::ZERO, |at| now.since(at));
        let (_, echoes) = session.receiver.echoed();
        let (sent, received) = (session.sent_bytes(), session.receiver.bytes());
        let not_echoed = session.receiver.not_echoed();
        if not_echoed > 0 {
            eprintln!(
                "segue-sctp: {not_echoed} messages were not returned: longer than --send-buffer, or the association was \
                 ending"
            );
        }
        // each direction over the time that it took itself: from the first byte sent to the last acknowledged, and from
        // the first that arrived to the last
        let (sent_flow, received_flow) = (session.sent_flow(), session.receiver.flow());
        let (sent_bps, received_bps) = (rate(sent_flow), rate(received_flow));
        let (c, d) = (session.counters, self.driver.counters());
        let mut fields = json!({
            "association": session.id.0,
            "duration_ns": elapsed.as_nanos(),
            "sent_bytes": sent,
            "sent_messages": session.sender.sent_messages() + echoes,
            "sent_bps": sent_bps,
            "sent_duration_ns": sent_flow.1.as_nanos(),
            "received_bps": received_bps,
            "received_duration_ns": received_flow.1.as_nanos(),
            "data_chunks_sent": c.data_chunks_sent,
            "data_chunks_retransmitted": c.data_chunks_retransmitted,
            "fast_retransmits": c.fast_retransmits,
            "t3_expiries": c.t3_expiries,
            "duplicate_data_chunks": c.duplicate_data_chunks,
            "refused": refused(&c.refused),
            "packets_sent": d.packets_sent,
            "packets_received": d.packets_received,
            "malformed": d.malformed,
            "send_failures": d.send_failures,
            "socket_errors": d.socket_errors,
            "icmp_errors": d.icmp_errors,
        });
        if let (Value::Object(fields), Value::Object(received)) = (&mut fields, session.receiver.summary()) {
            fields.extend(received);
        }
        let text = format!(
            "sent {sent} B ({:.1} Mbit/s, {} chunks sent again), received {received} B ({:.1} Mbit/s)",
            sent_bps / 1e6,
            c.data_chunks_retransmitted,
            received_bps / 1e6,
        );
        self.report.say(now, "summary", fields, &text)?;
        if let Some(log) = &mut self.log {
            log.write(|out| out.flush())?;
        }
        Ok(session.failed)
    }

    fn shut_down_all(&mut self) {
        let now = self.driver.now();
        for session in &mut self.sessions {
            session.closing = true;
            if let Some(association) = self.driver.association_mut(session.id) {
                association.shutdown(now);
            }
        }
    }

    fn abort(&mut self, which: impl Fn(&Session) -> bool) {
        let now = self.driver.now();
        for session in self.sessions.iter().filter(|s| which(s)) {
            if let Some(association) = self.driver.association_mut(session.id) {
                association.abort(now, Bytes::from_static(b"interrupted"));
            }
        }
    }
}

fn shown(address: Option<Ipv6Addr>) -> String {
    address.map_or_else(|| "?".to_owned(), |a| a.to_string())
}

fn request(request: AddressRequest) -> (&'static str, Ipv6Addr) {
    match request {
        AddressRequest::Add(address) => ("add", address),
        AddressRequest::Delete(address) => ("delete", address),
        AddressRequest::SetPrimary(address) => ("set primary", address),
        AddressRequest::Deactivate(address) => ("deactivate", address),
        AddressRequest::Activate(address) => ("activate", address),
    }
}
