//! An association that carries connections, and the kernel's sockets at one end of it.

use crate::app::Reads;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::sockopt::Linger;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn6, connect, setsockopt, socket};
use segue_lab::proxy::{Command, Counters, Proxy, Role};
use segue_live::Namespace;
use segue_proto::Instant;
use segue_proto::sctp::{Association, SendOptions};
use segue_sim::carried::STREAMS;
use segue_wire::Data;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddrV6, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

/// The association is given no more while so many bytes wait to be sent, those to be sent again among them: what another
/// connection has to say waits behind them.
const MOST_UNSENT: usize = 32 * 1024;
/// What is read from a connection at a time.
const CHUNK: usize = 64 * 1024;

/// An association and what it carries.
#[derive(Debug)]
pub(super) struct Carrier {
    proxy: Proxy,
    sockets: BTreeMap<u16, TcpStream>,
    /// Streams whose sockets are yet to be connected.
    connecting: BTreeSet<u16>,
    /// The most room that the association's send buffer had, bytes: all of it.
    send_buffer: usize,
    /// Something is to be looked at: the association, or what waited because it took no more.
    is_due: bool,
    /// What the programs here were given, by the stream of the connection, with its port.
    given: BTreeMap<u16, (u16, Reads)>,
    /// The same of connections that are over: of each port the one that had most.
    most: BTreeMap<u16, Reads>,
    buffer: Vec<u8>,
}

impl Carrier {
    pub(super) fn new(role: Role) -> Self {
        Self {
            proxy: Proxy::new(role, STREAMS),
            sockets: BTreeMap::new(),
            connecting: BTreeSet::new(),
            send_buffer: 0,
            is_due: true,
            given: BTreeMap::new(),
            most: BTreeMap::new(),
            buffer: vec![0; CHUNK],
        }
    }

    pub(super) fn counters(&self) -> Counters {
        self.proxy.counters()
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Something happened to the association.
    pub(super) fn look(&mut self) {
        self.is_due = true;
    }

    pub(super) fn can_accept(&self) -> bool {
        self.proxy.can_accept()
    }

    /// The association has no past any more.
    pub(super) fn lose_all(&mut self) {
        self.proxy.lose_all();
        self.is_due = true;
    }

    /// What programs here were given: by port, of the connection that had most. Times are those of the run.
    pub(super) fn into_given(mut self) -> BTreeMap<u16, Reads> {
        for (port, reads) in core::mem::take(&mut self.given).into_values() {
            keep_most(&mut self.most, port, reads);
        }
        self.most
    }

    fn begin(&mut self, stream: u16, port: u16, socket: TcpStream) {
        self.sockets.insert(stream, socket);
        if let Some((port, reads)) = self.given.insert(stream, (port, Reads::default())) {
            keep_most(&mut self.most, port, reads);
        }
    }

    /// A program has connected to a port of the peer's.
    pub(super) fn accept(&mut self, port: u16, socket: TcpStream) {
        if set_up(&socket).is_err() {
            return;
        }
        if let Some(stream) = self.proxy.accepted(port) {
            self.begin(stream, port, socket);
            self.is_due = true;
        }
    }

    /// The sockets that there is something to be done with.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (u16, BorrowedFd<'_>, PollFlags)> {
        self.sockets.iter().filter_map(|(&stream, socket)| {
            let reads = self.proxy.room(stream) > 0;
            let writes = self.proxy.incoming(stream).is_some() || self.connecting.contains(&stream);
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, reads);
            flags.set(PollFlags::POLLOUT, writes);
            // one with nothing to be done would be reported for having been closed, again and again
            (!flags.is_empty()).then(|| (stream, socket.as_fd(), flags))
        })
    }

    /// A socket is ready.
    pub(super) fn handle_ready(&mut self, stream: u16) {
        self.is_due = true;
        let Some(socket) = self.sockets.get_mut(&stream) else {
            return;
        };
        if self.connecting.remove(&stream) {
            match socket.take_error() {
                Ok(None) => self.proxy.connected(stream),
                _ => {
                    self.sockets.remove(&stream);
                    self.proxy.refused(stream);
                }
            }
            return;
        }
        let room = (self.proxy.room(stream) as usize).min(CHUNK);
        if room == 0 {
            return;
        }
        match socket.read(&mut self.buffer[..room]) {
            Ok(0) => self.proxy.read_end(stream),
            Ok(read) => {
                let data = bytes::Bytes::copy_from_slice(&self.buffer[..read]);
                self.proxy.read(stream, data);
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => self.fail(stream),
        }
    }

    /// Takes all messages that have come.
    pub(super) fn receive(&mut self, association: &mut Association) {
        self.is_due = false;
        while let Some(message) = association.recv() {
            let whole = message.is_complete();
            let body = match &message.parts[..] {
                [Data::Bytes(bytes)] => bytes.clone(),
                parts => {
                    let mut body = Vec::new();
                    parts.iter().for_each(|part| part.emit(&mut body));
                    body.into()
                }
            };
            self.proxy
                .handle_message(message.stream_id, message.payload_protocol_id, body, whole);
        }
    }

    /// Sends while there is room.
    pub(super) fn send(&mut self, now: Instant, association: &mut Association) {
        let most = association.max_message_in_one_chunk();
        loop {
            let room = association.send_space();
            self.send_buffer = self.send_buffer.max(room);
            let taken = self.send_buffer - room;
            let unsent = taken.saturating_sub(association.outstanding_bytes() as usize);
            if unsent >= MOST_UNSENT || room < most as usize {
                self.is_due = true;
                return;
            }
            let Some(next) = self.proxy.poll_message(most) else {
                return;
            };
            let options = SendOptions {
                payload_protocol_id: next.payload_protocol_id,
                ..SendOptions::default()
            };
            let sent = association.send(now, next.stream, Data::Bytes(next.body), options);
            if sent.is_err() {
                // it is closing: nothing goes on, as when it has gone
                return self.lose_all();
            }
        }
    }

    /// Does with the sockets what is to be done; servers are at an address in `namespace`.
    pub(super) fn work_sockets(&mut self, now: Instant, namespace: &Namespace, server: Ipv6Addr) {
        let streams: Vec<u16> = self.sockets.keys().copied().collect();
        for stream in streams {
            self.write(now, stream);
        }
        while let Some(command) = self.proxy.poll_command() {
            self.carry_out(command, namespace, server);
        }
    }

    fn carry_out(&mut self, command: Command, namespace: &Namespace, server: Ipv6Addr) {
        match command {
            Command::Connect { stream, port } => {
                match namespace.within(|| connecting_to(SocketAddrV6::new(server, port, 0, 0))) {
                    Ok(socket) => {
                        self.begin(stream, port, socket);
                        self.connecting.insert(stream);
                    }
                    Err(_) => {
                        self.proxy.refused(stream);
                        self.is_due = true;
                    }
                }
            }
            Command::Shutdown { stream } => {
                let socket = self.sockets.get(&stream);
                if socket.is_some_and(|socket| socket.shutdown(Shutdown::Write).is_err()) {
                    self.fail(stream);
                }
            }
            Command::Close { stream } => {
                self.sockets.remove(&stream);
            }
            Command::Reset { stream } => {
                self.connecting.remove(&stream);
                if let Some(socket) = self.sockets.remove(&stream) {
                    reset(&socket);
                }
            }
        }
    }

    /// Writes what a connection takes.
    fn write(&mut self, now: Instant, stream: u16) {
        let Some(socket) = self.sockets.get_mut(&stream) else {
            return;
        };
        while let Some(data) = self.proxy.incoming(stream) {
            match socket.write(data) {
                Ok(written) => {
                    self.proxy.written(stream, written);
                    if let Some((_, reads)) = self.given.get_mut(&stream) {
                        reads.note(now, written);
                    }
                    // there may be credit to give
                    self.is_due = true;
                }
                Err(error) if is_passing(&error) => return,
                Err(_) => return self.fail(stream),
            }
        }
    }

    /// A socket is of no more use.
    fn fail(&mut self, stream: u16) {
        self.sockets.remove(&stream);
        self.proxy.failed(stream);
        self.is_due = true;
    }
}

/// Of two connections to a port the one that had more is its data.
pub(super) fn keep_most(most: &mut BTreeMap<u16, Reads>, port: u16, reads: Reads) {
    let own = most.entry(port).or_default();
    if reads.bytes() > own.bytes() {
        *own = reads;
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Waits for nothing, and sends at once.
fn set_up(socket: &TcpStream) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)
}

/// A socket that is being connected, in the namespace of this thread.
fn connecting_to(server: SocketAddrV6) -> io::Result<TcpStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet6, SockType::Stream, flags, None)?;
    match connect(socket.as_raw_fd(), &SockaddrIn6::from(server)) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let socket = TcpStream::from(socket);
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Closed after this, its peer is told that it was reset.
fn reset(socket: &TcpStream) {
    let linger = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let _ = setsockopt(socket, Linger, &linger);
}
