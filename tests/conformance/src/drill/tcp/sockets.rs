//! Sockets, and the calls that Google's scripts make.

use super::{PEER, TcpStack};
use crate::drill::ast::{Call, Expression};
use crate::drill::stack::{Outcome, Refusal};
use segue_proto::Instant;
use segue_proto::tcp::{Connection, ConnectionId, Endpoint, Event, SendError};
use segue_wire::Data;
use std::collections::{BTreeMap, VecDeque};

/// packetdrill's port.
pub const PORT: u16 = 8080;
/// Linux doubles what SO_SNDBUF asks for.
const SNDBUF_FACTOR: u32 = 2;

/// The sockets of a script, by its numbers.
#[derive(Debug, Default)]
pub struct Sockets {
    by_number: BTreeMap<i64, Socket>,
    /// Connections of the peer's that were not accepted yet.
    backlog: VecDeque<ConnectionId>,
    /// How connections have ended.
    ended: BTreeMap<ConnectionId, Event>,
    connected: Vec<ConnectionId>,
    /// The one whose `tcp_info` is looked at: the last that was connected or accepted.
    under_test: Option<ConnectionId>,
    traffic_class: i64,
}

#[derive(Debug, Default)]
struct Socket {
    connection: Option<ConnectionId>,
    listens: bool,
    nonblocking: bool,
    /// Bytes that were taken from the connection and not by the script.
    unread: u64,
    /// Bytes written so far.
    written: u64,
    /// What is left of a write that waits.
    writing: Option<u32>,
    shut_for_reading: bool,
    shut_for_writing: bool,
    /// SO_SNDBUF, as Linux tells it.
    send_buffer: Option<u32>,
}

impl Sockets {
    /// An event of the endpoint.
    pub fn note(&mut self, id: ConnectionId, event: Event) {
        match event {
            Event::Connected => {
                self.connected.push(id);
                if self.by_number.values().all(|s| s.connection != Some(id)) {
                    self.backlog.push_back(id);
                }
            }
            end if end.is_end() => {
                self.ended.insert(id, end);
            }
            _ => {}
        }
    }

    /// The connection whose `tcp_info` is looked at.
    pub fn under_test(&self) -> Option<ConnectionId> {
        self.under_test
    }

    /// Whether a socket listens.
    pub fn listen(&self) -> bool {
        self.by_number.values().any(|socket| socket.listens)
    }

    /// Whether IP_TOS is set.
    pub fn has_traffic_class(&self) -> bool {
        self.traffic_class != 0
    }

    fn at(&mut self, number: i64) -> Result<&mut Socket, Refusal> {
        self.by_number
            .get_mut(&number)
            .ok_or_else(|| Refusal(format!("the descriptor {number}, which is no socket")))
    }
}

impl TcpStack {
    pub(super) fn dispatch(&mut self, now: Instant, call: &Call) -> Result<Outcome, Refusal> {
        match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => Ok(Outcome::value(0)),
            "listen" => self.listen(call),
            "accept" | "accept4" => self.accept(call),
            "connect" => self.connect(now, call),
            "read" | "recv" => self.read(call),
            "write" | "send" => self.write(call),
            "close" => self.close(call),
            "shutdown" => self.shutdown(call),
            "setsockopt" => self.set_option(call),
            "getsockopt" => self.get_option(call),
            "fcntl" => self.control(call),
            "ioctl" => self.inquire(call),
            name => Refusal::new(format!("the call {name}")),
        }
    }

    fn connection(&mut self, number: i64) -> Result<(&mut Socket, &mut Endpoint, ConnectionId), Refusal> {
        let socket = self.sockets.at(number)?;
        match (socket.connection, &mut self.endpoint) {
            (Some(id), Some(endpoint)) => Ok((socket, endpoint, id)),
            _ => Refusal::new(format!("the descriptor {number} without a connection")),
        }
    }

    fn socket(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let is_stream = |e: &Expression| match e {
            Expression::Name(name) => {
                name == "SOCK_STREAM" || name == "IPPROTO_TCP" || name == "AF_INET" || name == "AF_INET6"
            }
            Expression::Number(0) | Expression::Any => true,
            _ => false,
        };
        if let Some(other) = call.arguments.iter().find(|a| !is_stream(a)) {
            return Refusal::new(format!("a socket of {other:?}"));
        }
        // the script's numbers are its own
        let Expression::Number(number) = call.result else {
            return Refusal::new("a socket without a descriptor");
        };
        self.sockets.by_number.insert(number, Socket::default());
        Ok(Outcome::value(number))
    }

    fn listen(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        self.sockets.at(number(call, 0)?)?.listens = true;
        Ok(Outcome::value(0))
    }

    fn accept(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let listening = self.sockets.at(number(call, 0)?)?;
        if !listening.listens {
            return Ok(Outcome::error("EINVAL"));
        }
        let nonblocking = listening.nonblocking;
        let Some(id) = self.sockets.backlog.pop_front() else {
            return Ok(if nonblocking {
                Outcome::error("EAGAIN")
            } else {
                Outcome::Waits
            });
        };
        let Expression::Number(number) = call.result else {
            return Refusal::new("accept without a descriptor");
        };
        let flags = call.arguments.get(3).map(|f| names(f).contains(&"SOCK_NONBLOCK"));
        self.sockets.by_number.insert(
            number,
            Socket {
                connection: Some(id),
                nonblocking: flags == Some(true),
                ..Socket::default()
            },
        );
        self.sockets.under_test = Some(id);
        Ok(Outcome::value(number))
    }

    fn connect(&mut self, now: Instant, call: &Call) -> Result<Outcome, Refusal> {
        let number = number(call, 0)?;
        let Some(id) = self.sockets.at(number)?.connection else {
            let id = self.begin().connect(now, PEER, PORT, 0);
            let Some(id) = id else {
                return Ok(Outcome::error("EADDRNOTAVAIL"));
            };
            self.sockets.under_test = Some(id);
            let socket = self.sockets.at(number)?;
            socket.connection = Some(id);
            return Ok(if socket.nonblocking {
                Outcome::error("EINPROGRESS")
            } else {
                Outcome::Waits
            });
        };
        if self.sockets.connected.contains(&id) {
            return Ok(Outcome::value(0));
        }
        Ok(match self.sockets.ended.get(&id).copied() {
            Some(end) => Outcome::error(error_of(end)),
            None if self.sockets.at(number)?.nonblocking => Outcome::error("EALREADY"),
            None => Outcome::Waits,
        })
    }

    fn read(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let wanted = number(call, 2)?.max(0) as u64;
        let end = self.end_of(call)?;
        let (socket, endpoint, id) = self.connection(number(call, 0)?)?;
        let mut at_end = socket.shut_for_reading;
        endpoint.command(id, |connection| {
            while socket.unread < wanted {
                let Some(data) = connection.recv() else { break };
                socket.unread += data.len() as u64;
            }
            at_end |= connection.is_at_end();
        });
        let taken = socket.unread.min(wanted);
        socket.unread -= taken;
        Ok(match (taken, end) {
            (1.., _) => Outcome::value(taken as i64),
            (0, _) if at_end => Outcome::value(0),
            (0, Some(Event::Closed)) => Outcome::value(0),
            (0, Some(end)) => Outcome::error(error_of(end)),
            (0, None) if socket.nonblocking => Outcome::error("EAGAIN"),
            (0, None) => Outcome::Waits,
        })
    }

    fn end_of(&mut self, call: &Call) -> Result<Option<Event>, Refusal> {
        let id = self.connection(number(call, 0)?)?.2;
        Ok(self.sockets.ended.get(&id).copied())
    }

    fn write(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        if let Some(flags) = call.arguments.get(3)
            && *flags != Expression::Number(0)
        {
            return Refusal::new(format!("{} with {}", call.name, names(flags).join(" | ")));
        }
        let Ok(wanted) = u32::try_from(number(call, 2)?) else {
            return Refusal::new("a write of more than 4 GB");
        };
        let end = self.end_of(call)?;
        let most = self.settings.config().send_buffer;
        let (socket, endpoint, id) = self.connection(number(call, 0)?)?;
        if socket.shut_for_writing {
            return Ok(Outcome::error("EPIPE"));
        }
        if let Some(end) = end {
            return Ok(Outcome::error(error_of(end)));
        }
        let left = socket.writing.unwrap_or(wanted);
        let limit = u64::from(socket.send_buffer.unwrap_or(most));
        let offset = socket.written;
        let sent = endpoint.command(id, |connection| {
            let room = limit.saturating_sub(connection.snapshot().send_queue);
            let len = room.min(u64::from(left)) as u32;
            connection.send(&Data::Synthetic { offset, len })
        });
        let taken = match sent {
            Some(Ok(taken)) => taken,
            Some(Err(SendError::BufferFull)) => 0,
            None | Some(Err(SendError::Closing)) => return Ok(Outcome::error("EPIPE")),
        };
        socket.written += u64::from(taken);
        let left = left - taken;
        if left == 0 || socket.nonblocking {
            socket.writing = None;
            return Ok(match wanted - left {
                0 if wanted > 0 => Outcome::error("EAGAIN"),
                written => Outcome::value(i64::from(written)),
            });
        }
        socket.writing = Some(left);
        Ok(Outcome::Waits)
    }

    fn close(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let number = number(call, 0)?;
        let socket = self.sockets.at(number)?;
        let (connection, unread) = (socket.connection, socket.unread);
        self.sockets.by_number.remove(&number);
        if let (Some(id), Some(endpoint)) = (connection, &mut self.endpoint) {
            endpoint.command(id, |connection| {
                // RFC 2525 section 2.17: what was not read is lost, and the peer is to know
                if unread + connection.readable_bytes() > 0 {
                    connection.abort();
                } else {
                    connection.close();
                }
            });
        }
        Ok(Outcome::value(0))
    }

    fn shutdown(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let how = call.arguments.get(1).map(names).unwrap_or_default();
        let (reading, writing) = match how.as_slice() {
            ["SHUT_RD"] => (true, false),
            ["SHUT_WR"] => (false, true),
            ["SHUT_RDWR"] => (true, true),
            other => return Refusal::new(format!("shutdown of {}", other.join(" | "))),
        };
        let (socket, endpoint, id) = self.connection(number(call, 0)?)?;
        socket.shut_for_reading |= reading;
        socket.shut_for_writing |= writing;
        if writing {
            endpoint.command(id, Connection::close);
        }
        Ok(Outcome::value(0))
    }

    fn set_option(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let socket = number(call, 0)?;
        self.sockets.at(socket)?;
        let option = call.arguments.get(2).map(names).unwrap_or_default();
        let value = call.arguments.get(3).and_then(only);
        let number = match value {
            Some(Expression::Number(number)) => Some(*number),
            _ => None,
        };
        let refusal = || Refusal(format!("the socket option {}", option.join(" | ")));
        match (option.as_slice(), number) {
            (["SO_REUSEADDR"], Some(_)) => {}
            (["SO_SNDBUF"], Some(bytes @ 0..=0x7fff_ffff)) => {
                let bytes = (bytes as u32).saturating_mul(SNDBUF_FACTOR);
                let most = self.settings.config().send_buffer;
                if bytes > most {
                    return Err(Refusal(format!(
                        "SO_SNDBUF of {bytes} bytes, where there are {most} at most"
                    )));
                }
                self.sockets.at(socket)?.send_buffer = Some(bytes);
            }
            (["TCP_NODELAY"], Some(on)) => self.settings.change("TCP_NODELAY", |c| c.nagle = on == 0)?,
            (["TCP_MAXSEG"], Some(mss @ 88..=32_767)) => self.settings.set_segment(mss as u32)?,
            // there is no fragmentation by routers in IPv6
            (["IP_MTU_DISCOVER"], None)
                if value == Some(&Expression::Name("IP_PMTUDISC_DONT".to_owned())) => {}
            (["IP_TOS"], Some(class)) => self.sockets.traffic_class = class,
            _ => return Err(refusal()),
        }
        Ok(Outcome::value(0))
    }

    fn get_option(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let number = number(call, 0)?;
        let option = call.arguments.get(2).map(names).unwrap_or_default();
        let announced = self.settings.announced_mss();
        let most = self.settings.config().send_buffer;
        let socket = self.sockets.at(number)?;
        let came = match option.as_slice() {
            ["SO_SNDBUF"] => i64::from(socket.send_buffer.unwrap_or(most)),
            ["SO_ERROR"] => 0,
            ["TCP_MAXSEG"] => {
                let id = socket.connection;
                let connection = self.endpoint.as_ref().and_then(|e| e.connection(id?));
                i64::from(connection.map_or(announced, |c| c.snapshot().mss))
            }
            other => return Refusal::new(format!("the socket option {}", other.join(" | "))),
        };
        Ok(held_against(call.arguments.get(3), came, &option))
    }

    fn control(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let socket = self.sockets.at(number(call, 0)?)?;
        match call.arguments.get(1).map(names).unwrap_or_default().as_slice() {
            ["F_SETFL"] => {
                let flags = call.arguments.get(2).map(names).unwrap_or_default();
                socket.nonblocking = flags.contains(&"O_NONBLOCK");
                Ok(Outcome::value(0))
            }
            ["F_GETFL"] => Ok(Outcome::value(O_RDWR)),
            other => Refusal::new(format!("fcntl of {}", other.join(" | "))),
        }
    }

    fn inquire(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let request = call.arguments.get(1).map(names).unwrap_or_default();
        let (socket, endpoint, id) = self.connection(number(call, 0)?)?;
        let connection = endpoint.connection(id);
        let came = match request.as_slice() {
            ["SIOCINQ" | "FIONREAD"] => socket.unread + connection.map_or(0, Connection::readable_bytes),
            ["SIOCOUTQ"] => connection.map_or(0, |c| c.snapshot().send_queue),
            other => return Refusal::new(format!("ioctl of {}", other.join(" | "))),
        };
        Ok(held_against(call.arguments.get(2), came as i64, &request))
    }
}

const O_RDWR: i64 = 2;

/// The argument at `index`, a number.
fn number(call: &Call, index: usize) -> Result<i64, Refusal> {
    match call.arguments.get(index) {
        Some(Expression::Number(number)) => Ok(*number),
        other => Refusal::new(format!("{}: {other:?} where a number should be", call.name)),
    }
}

/// The names of a set of flags, or the one name.
fn names(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::Name(name) => vec![name.as_str()],
        Expression::Or(operands) => operands.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// `[x]`: what a pointer points to.
fn only(expression: &Expression) -> Option<&Expression> {
    match expression {
        Expression::Array(elements) => elements.first().filter(|_| elements.len() == 1),
        other => Some(other),
    }
}

/// The call has written `came` where its argument says what is expected.
fn held_against(argument: Option<&Expression>, came: i64, what: &[&str]) -> Outcome {
    match argument.and_then(only) {
        Some(Expression::Number(due)) if *due != came => {
            Outcome::Differs(format!("{} is {came}", what.join("|")))
        }
        _ => Outcome::value(0),
    }
}

/// What a call on a connection that ended so fails with.
fn error_of(end: Event) -> &'static str {
    match end {
        Event::Refused => "ECONNREFUSED",
        Event::Reset => "ECONNRESET",
        Event::TimedOut => "ETIMEDOUT",
        _ => "EPIPE",
    }
}
