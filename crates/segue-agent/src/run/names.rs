//! The sockets of names: of applications that ask, over UDP and TCP on loopback, and of servers that are asked, each question from a
//! port of its own.

use crate::status::{KnownStatus, NamesStatus, PublishedStatus};
use anyhow::Context as _;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn6, connect, socket};
use segue_agent::names::config::Server;
use segue_agent::names::{AskId, Asker, Names, Progress, Records, Source, StreamQuestion};
use segue_agent::stack::Stack;
use segue_live::Clock;
use segue_proto::location::{Datagram, PreferredLocator};
use segue_proto::shim::Count;
use segue_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use tracing::{debug, info, warn};

/// Datagrams of one socket before the others have their turn.
const RECEIVES_PER_TURN: usize = 64;
/// Applications that ask over TCP at a time ...
const MOST_ASKERS: usize = 16;
/// ... and for how long one may be silent.
const ASKER_PATIENCE: Duration = Duration::from_secs(10);
/// Answers that an application has not read, octets: with more, no question of its is read.
const MOST_UNREAD: usize = 64 * 1024;
/// Questions of one application over TCP before the others have their turn.
const QUESTIONS_PER_TURN: usize = 16;
/// Longest message.
const LONGEST: usize = u16::MAX as usize;
/// Longest question of an application.
const LONGEST_QUESTION: usize = 4096;

/// Messages over TCP: the length of each before it (RFC 1035 section 4.2.2).
struct Framed {
    stream: TcpStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    until: Instant,
}

/// The other end is gone, or has said what cannot be understood.
struct Gone;

impl Framed {
    const fn new(stream: TcpStream, until: Instant) -> Self {
        Self {
            stream,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            until,
        }
    }

    fn flags(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::POLLIN, self.has_room());
        flags.set(PollFlags::POLLOUT, !self.outgoing.is_empty());
        flags
    }

    /// Whether more may be read: who does not read what he asked for is not to fill the memory.
    const fn has_room(&self) -> bool {
        self.outgoing.len() < MOST_UNREAD
    }

    /// Whether there is something to do that no descriptor will tell of: a message was read, but its turn has not come.
    fn is_behind(&self) -> bool {
        let length = self.incoming.first_chunk::<2>();
        let length = length.map(|length| usize::from(u16::from_be_bytes(*length)));
        self.has_room() && length.is_some_and(|length| self.incoming.len() >= 2 + length)
    }

    fn queue(&mut self, message: &[u8]) {
        let length = message.len().min(LONGEST);
        self.outgoing.extend_from_slice(&(length as u16).to_be_bytes());
        self.outgoing.extend_from_slice(&message[..length]);
    }

    /// Whether anything was taken.
    fn write(&mut self) -> Result<bool, Gone> {
        let before = self.outgoing.len();
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(written) => drop(self.outgoing.drain(..written)),
                // not connected yet
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    break;
                }
                Err(_) => return Err(Gone),
            }
        }
        Ok(self.outgoing.len() < before)
    }

    /// Writes to an application. Its time begins again only when it has taken something: who only asks is to be cut off.
    fn write_answers(&mut self, now: Instant) -> Result<(), Gone> {
        if self.write()? {
            self.until = now + ASKER_PATIENCE;
        }
        Ok(())
    }

    /// The next message, if it is whole; of `longest` at most.
    fn read(&mut self, longest: usize) -> Result<Option<Vec<u8>>, Gone> {
        let mut piece = [0; 4096];
        loop {
            if let Some(length) = self.incoming.first_chunk::<2>() {
                let length = usize::from(u16::from_be_bytes(*length));
                if length > longest {
                    return Err(Gone);
                }
                if self.incoming.len() >= 2 + length {
                    let message = self.incoming[2..2 + length].to_vec();
                    self.incoming.drain(..2 + length);
                    return Ok(Some(message));
                }
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Gone),
                Ok(length) => self.incoming.extend_from_slice(&piece[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return Ok(None);
                }
                Err(_) => return Err(Gone),
            }
        }
    }
}

/// Names with their sockets.
pub(super) struct NameService {
    names: Names,
    at: Vec<SocketAddr>,
    listeners: Vec<(UdpSocket, TcpListener)>,
    askers: BTreeMap<u64, Framed>,
    next_asker: u64,
    /// From which servers were asked, by port.
    ports: BTreeMap<u16, UdpSocket>,
    streams: BTreeMap<AskId, Framed>,
    buffer: Vec<u8>,
    /// The last that was said in the log of what is published.
    said: Option<String>,
}

impl NameService {
    /// Listens at these addresses.
    ///
    /// # Errors
    /// One line, if one cannot be listened at.
    pub fn open(names: Names, at: Vec<SocketAddr>) -> anyhow::Result<Self> {
        let mut listeners = Vec::new();
        for place in &at {
            let place = in_v6(*place);
            let shown = || format!("names.listen: {place}");
            #[expect(clippy::disallowed_methods, reason = "where applications ask")]
            let (datagrams, streams) = (UdpSocket::bind(place), TcpListener::bind(place));
            let (datagrams, streams) = (datagrams.with_context(shown)?, streams.with_context(shown)?);
            datagrams.set_nonblocking(true)?;
            streams.set_nonblocking(true)?;
            listeners.push((datagrams, streams));
        }
        Ok(Self {
            names,
            at,
            listeners,
            askers: BTreeMap::new(),
            next_asker: 0,
            ports: BTreeMap::new(),
            streams: BTreeMap::new(),
            buffer: vec![0; LONGEST],
            said: None,
        })
    }

    /// What is to be waited for.
    pub fn descriptors(&self) -> impl Iterator<Item = (PollFlags, BorrowedFd<'_>)> {
        let readable = |fd| (PollFlags::POLLIN, fd);
        // who asks over TCP waits outside while there is no room for him
        let has_room = self.askers.len() < MOST_ASKERS;
        let listeners = self.listeners.iter().flat_map(move |(datagrams, streams)| {
            let streams = has_room.then(|| streams.as_fd());
            [Some(datagrams.as_fd()), streams].into_iter().flatten()
        });
        let ports = self.ports.values().map(UdpSocket::as_fd);
        let framed = self.askers.values().chain(self.streams.values());
        let framed = framed.map(|framed| (framed.flags(), framed.stream.as_fd()));
        listeners.chain(ports).map(readable).chain(framed)
    }

    /// When [`turn`](Self::turn) must be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let askers = self.askers.values();
        let askers = askers.map(|asker| {
            if asker.is_behind() {
                Instant::ZERO
            } else {
                asker.until
            }
        });
        askers.chain(self.names.poll_timeout()).min()
    }

    /// Everything counted.
    pub fn counters(&self) -> Vec<Count> {
        self.names.counters()
    }

    /// What `status` shows.
    pub fn status(&self) -> NamesStatus {
        let published = self
            .names
            .published()
            .map(|(name, records, progress)| PublishedStatus {
                name: name.to_string(),
                locators: shown(&records.locators),
                addresses: records.addresses.clone(),
                state: state_of(progress),
                took_s: match progress {
                    Progress::Published { latency, .. } => Some(latency.as_secs_f64()),
                    _ => None,
                },
            });
        let known = self.names.learnt().map(|(identity, learnt)| KnownStatus {
            identity,
            name: learnt.name.as_ref().map(ToString::to_string),
            source: match learnt.source {
                Source::File => "file",
                Source::Dns => "dns",
            }
            .to_owned(),
            locators: shown(&learnt.locators),
        });
        NamesStatus {
            listen: self.at.clone(),
            published,
            known: known.collect(),
        }
    }

    /// The host is there now.
    pub fn publish(&mut self, now: Instant, records: Records) {
        self.names.handle_locators(now, records, unix_at_zero());
        self.flush(now);
    }

    /// What the shim asks is answered, as far as that is known by now.
    pub fn serve(&mut self, now: Instant, stack: &mut Stack) {
        loop {
            let mut asked = false;
            while let Some(peer) = stack.poll_look_up() {
                asked = true;
                self.names.handle_look_up(now, peer);
            }
            while let Some(found) = self.names.poll_found() {
                let locators = shown(&found.locators).join(" ");
                if locators.is_empty() {
                    debug!(peer = %found.peer, "looked up: nobody knows");
                } else {
                    info!(peer = %found.peer, locators, "looked up");
                }
                stack.handle_found(now, found.peer, &found.locators);
                asked = true;
            }
            if !asked {
                break;
            }
            // a server that cannot be asked is one that has not answered: that may be what is found
            self.flush(now);
        }
    }

    /// Reads what there is, works off what is due, and sends what is to be sent; never waits.
    pub fn turn(&mut self, now: Instant, stack: &Stack) {
        self.take_questions(now);
        self.take_askers(now);
        self.take_answers(now);
        if self.names.poll_timeout().is_some_and(|at| at <= now) {
            self.names
                .handle_timeout(now, unix_at_zero(), |identity| stack.has_session_with(identity));
        }
        self.flush(now);
    }

    fn take_questions(&mut self, now: Instant) {
        for (listener, (datagrams, streams)) in self.listeners.iter().enumerate() {
            for _ in 0..RECEIVES_PER_TURN {
                let Ok((length, from)) = datagrams.recv_from(&mut self.buffer) else {
                    break;
                };
                let asker = Asker::Datagram { listener, from };
                self.names.handle_query(now, asker, &self.buffer[..length]);
            }
            while self.askers.len() < MOST_ASKERS {
                let Ok((stream, from)) = streams.accept() else {
                    break;
                };
                if from.ip().to_canonical().is_loopback() && stream.set_nonblocking(true).is_ok() {
                    self.askers
                        .insert(self.next_asker, Framed::new(stream, now + ASKER_PATIENCE));
                    self.next_asker += 1;
                }
            }
        }
    }

    fn take_askers(&mut self, now: Instant) {
        let Self { names, askers, .. } = self;
        askers.retain(|number, asker| {
            let mut alive = now < asker.until && asker.write_answers(now).is_ok();
            for _ in 0..QUESTIONS_PER_TURN {
                if !alive || !asker.has_room() {
                    break;
                }
                match asker.read(LONGEST_QUESTION) {
                    Ok(Some(message)) => names.handle_query(now, Asker::Stream(*number), &message),
                    Ok(None) => break,
                    Err(Gone) => alive = false,
                }
            }
            if !alive {
                names.handle_gone(Asker::Stream(*number));
            }
            alive
        });
    }

    fn take_answers(&mut self, now: Instant) {
        let Self {
            names,
            ports,
            streams,
            buffer,
            ..
        } = self;
        for (port, socket) in ports.iter() {
            for _ in 0..RECEIVES_PER_TURN {
                let (length, from) = match socket.recv_from(buffer) {
                    Ok(received) => received,
                    // somebody has said that nobody is there: the next will be asked
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(_) => break,
                };
                let from = Server::of(from);
                let datagram = Datagram {
                    peer: from.address,
                    peer_port: from.port,
                    local_port: *port,
                    data: Bytes::copy_from_slice(&buffer[..length]),
                };
                names.handle_datagram(now, &datagram);
            }
        }
        streams.retain(|id, stream| {
            let read = stream.write().and_then(|_| stream.read(LONGEST));
            match read {
                Ok(None) => true,
                Ok(Some(message)) => {
                    names.handle_stream(now, *id, Some(&message.into()));
                    false
                }
                Err(Gone) => {
                    names.handle_stream(now, *id, None);
                    false
                }
            }
        });
    }

    fn flush(&mut self, now: Instant) {
        loop {
            while let Some(datagram) = self.names.poll_datagram() {
                self.send(now, &datagram);
            }
            let Some(StreamQuestion { id, server, message }) = self.names.poll_stream() else {
                break;
            };
            match begin(server) {
                Ok(stream) => {
                    // the machine has the deadline
                    let mut framed = Framed::new(stream, now);
                    framed.queue(&message);
                    self.streams.insert(id, framed);
                }
                Err(_) => self.names.handle_stream(now, id, None),
            }
        }
        // last: a connection that fails at once may have been the last try
        while let Some(answer) = self.names.poll_answer() {
            match answer.to {
                Asker::Datagram { listener, from } => {
                    if let Some((socket, _)) = self.listeners.get(listener) {
                        // who does not read it asks again
                        let _ = socket.send_to(&answer.message, from);
                    }
                }
                Asker::Stream(number) => {
                    if let Some(asker) = self.askers.get_mut(&number) {
                        asker.queue(&answer.message);
                        let _ = asker.write_answers(now);
                    }
                }
            }
        }
        let names = &self.names;
        self.ports.retain(|port, _| names.waits_at(*port));
        self.streams.retain(|id, _| names.waits_for(*id));
        self.say_what_is_published();
    }

    fn send(&mut self, now: Instant, datagram: &Datagram) {
        let port = datagram.local_port;
        let socket = match self.ports.entry(port) {
            Entry::Occupied(socket) => socket.into_mut(),
            Entry::Vacant(place) => match socket_at(port) {
                Ok(socket) => place.insert(socket),
                Err(_) => return self.names.handle_port_taken(now, port),
            },
        };
        // where there is no network now, it is sent again
        let to = SocketAddrV6::new(datagram.peer, datagram.peer_port, 0, 0);
        let _ = socket.send_to(&datagram.data, to);
    }

    fn say_what_is_published(&mut self) {
        let Some((name, records, progress)) = self.names.published() else {
            return;
        };
        let (state, places) = (state_of(progress), shown(&records.locators).join(" "));
        let line = format!("{state} {places}");
        if matches!(progress, Progress::Nothing | Progress::UnderWay) || self.said.as_ref() == Some(&line) {
            return;
        }
        if let Progress::Failed(_) = progress {
            warn!(%name, locators = places, "not published: {state}");
        } else {
            info!(%name, locators = places, "published");
        }
        self.said = Some(line);
    }
}

fn state_of(progress: &Progress) -> String {
    match progress {
        Progress::Nothing => "nothing yet".to_owned(),
        Progress::UnderWay => "under way".to_owned(),
        Progress::Published { .. } => "published".to_owned(),
        Progress::Failed(failure) => failure.to_string(),
    }
}

fn shown(locators: &[PreferredLocator]) -> Vec<String> {
    locators.iter().map(|(locator, _)| locator.to_string()).collect()
}

/// One kind of socket serves both: an address of IPv4 is mapped (RFC 4291 section 2.5.5.2).
fn in_v6(at: SocketAddr) -> SocketAddrV6 {
    match at {
        SocketAddr::V4(at) => SocketAddrV6::new(at.ip().to_ipv6_mapped(), at.port(), 0, 0),
        SocketAddr::V6(at) => at,
    }
}

/// A question has a port of its own.
fn socket_at(port: u16) -> io::Result<UdpSocket> {
    #[expect(clippy::disallowed_methods, reason = "servers are asked")]
    let socket = UdpSocket::bind(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A connection to a server, which will be there in a while.
fn begin(server: Server) -> io::Result<TcpStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet6, SockType::Stream, flags, None)?;
    let to = SockaddrIn6::from(SocketAddrV6::new(server.address, server.port, 0, 0));
    match connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &to) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Unix time at the zero of the agent's clock, seconds. The calendar clock may have been set since the agent began.
fn unix_at_zero() -> u64 {
    Clock::through_sleep().unix_ns(Instant::ZERO) / 1_000_000_000
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the other end is an application")]
mod tests {
    use super::*;
    use segue_agent::names::Own;
    use segue_agent::names::config::NamesConfig;
    use segue_proto::ilnp::PeerConfig;
    use segue_proto::random::Stream;
    use segue_wire::ilnp::{Locator, Nid};

    /// With a name of the file, and a server that a connection to fails at once.
    fn service() -> NameService {
        let config = NamesConfig {
            listen: Vec::new(),
            upstream: vec![Server::of("[ff0e::1]:53".parse().unwrap())],
            publish: None,
        };
        let own = Own {
            nid: Nid(1),
            identity_prefix: Locator(0xfd53_6567_7565_0001),
        };
        let peer = PeerConfig {
            nid: Nid(2),
            locators: vec![Locator(0x2001_0db8_0001_0000)],
            name: Some("peer.example".to_owned()),
        };
        let secrets = ["questions", "updates"].map(|name| Box::new(Stream::new(1, name)) as _);
        let names = Names::new(Some(&config), own, &[peer], secrets).unwrap();
        NameService::open(names, vec!["127.0.0.1:0".parse().unwrap()]).unwrap()
    }

    fn application(service: &NameService) -> TcpStream {
        let port = service.listeners[0].1.local_addr().unwrap().port();
        TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).unwrap()
    }

    /// A question for addresses over TCP; the name is a label of four octets and "example".
    fn question(label: &[u8; 4]) -> Vec<u8> {
        let body = [
            b"\x00\x07\x01\0\0\x01\0\0\0\0\0\0\x04",
            &label[..],
            b"\x07example\0\0\x1c\0\x01",
        ]
        .concat();
        [&(body.len() as u16).to_be_bytes()[..], &body].concat()
    }

    fn turn(service: &mut NameService, now: Instant) {
        service.take_questions(now);
        service.take_askers(now);
        service.flush(now);
    }

    #[test]
    fn who_asks_and_does_not_read_is_not_read_any_more_and_then_cut_off() {
        let mut service = service();
        let mut application = application(&service);
        application.set_nonblocking(true).unwrap();
        let questions = question(b"peer").repeat(1000);
        let (mut now, mut most) = (Instant::ZERO, 0);
        // until neither side moves: what the kernel keeps of the connection is full both ways
        let mut still = 0;
        while still < 100 {
            let before = service.names.counters();
            let wrote = application.write(&questions).unwrap_or(0);
            for _ in 0..8 {
                turn(&mut service, now);
                most = most.max(
                    service
                        .askers
                        .values()
                        .map(|a| a.outgoing.len())
                        .max()
                        .unwrap_or(0),
                );
            }
            assert!(most < MOST_UNREAD + QUESTIONS_PER_TURN * 512, "{most}");
            still = if wrote == 0 && service.names.counters() == before {
                still + 1
            } else {
                0
            };
        }
        assert!(most >= MOST_UNREAD, "{most}");
        let asker = service.askers.values().next().unwrap();
        assert_eq!(asker.flags(), PollFlags::POLLOUT);
        now = asker.until;
        assert_eq!(service.poll_timeout(), Some(now), "nothing is to be done before");
        turn(&mut service, now);
        assert!(service.askers.is_empty());
    }

    #[test]
    fn questions_that_came_together_have_their_turns_without_another_event() {
        let mut service = service();
        let mut application = application(&service);
        application.write_all(&question(b"peer").repeat(40)).unwrap();
        let mut asked = Vec::new();
        for _ in 0..3 {
            turn(&mut service, Instant::ZERO);
            asked.push(service.names.counters()[0].1);
            let behind = service.poll_timeout() == Some(Instant::ZERO);
            assert_eq!(behind, asked.len() < 3);
        }
        assert_eq!(asked, [16, 32, 40]);
    }

    /// Where there is no network every try fails at once: the answer goes out with the last, and no deadline is waited for.
    #[test]
    fn who_asks_without_a_network_is_told_so_at_once() {
        let mut service = service();
        let mut application = application(&service);
        let mut mx = question(b"some");
        let rtype = mx.len() - 3;
        mx[rtype] = 15;
        application.write_all(&mx).unwrap();
        turn(&mut service, Instant::ZERO);
        application
            .set_read_timeout(Some(std::time::Duration::from_secs(5)))
            .unwrap();
        let mut answer = [0; 6];
        application.read_exact(&mut answer).unwrap();
        assert_eq!((answer[3], answer[5] & 0x0f), (7, 2));
    }
}
