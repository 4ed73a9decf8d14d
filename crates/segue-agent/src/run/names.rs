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
        if self.outgoing.is_empty() {
            PollFlags::POLLIN
        } else {
            PollFlags::POLLIN | PollFlags::POLLOUT
        }
    }

    fn queue(&mut self, message: &[u8]) {
        let length = message.len().min(LONGEST);
        self.outgoing.extend_from_slice(&(length as u16).to_be_bytes());
        self.outgoing.extend_from_slice(&message[..length]);
    }

    fn write(&mut self) -> Result<(), Gone> {
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
        let askers = self.askers.values().map(|asker| asker.until);
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
        let mut asked = false;
        loop {
            while let Some(peer) = stack.poll_look_up() {
                asked = true;
                self.names.handle_look_up(now, peer);
            }
            let Some(found) = self.names.poll_found() else {
                break;
            };
            let locators = shown(&found.locators).join(" ");
            if locators.is_empty() {
                debug!(peer = %found.peer, "looked up: nobody knows");
            } else {
                info!(peer = %found.peer, locators, "looked up");
            }
            stack.handle_found(now, found.peer, &found.locators);
        }
        if asked {
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
            let alive = now < asker.until && asker.write().is_ok() && {
                loop {
                    match asker.read(LONGEST_QUESTION) {
                        Ok(Some(message)) => {
                            asker.until = now + ASKER_PATIENCE;
                            names.handle_query(now, Asker::Stream(*number), &message);
                        }
                        Ok(None) => break true,
                        Err(Gone) => break false,
                    }
                }
            };
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
            let read = stream.write().and_then(|()| stream.read(LONGEST));
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
                        let _ = asker.write();
                    }
                }
            }
        }
        while let Some(datagram) = self.names.poll_datagram() {
            self.send(now, &datagram);
        }
        while let Some(StreamQuestion { id, server, message }) = self.names.poll_stream() {
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
