//! The calls of RFC 6458, one-to-one style, as commands to the endpoint.

use super::sockets::Role;
use super::{SctpStack, addresses, settings};
use crate::drill::arguments::{flags, members, number};
use crate::drill::ast::{Call, Expression};
use crate::drill::stack::{Outcome, Refusal};
use bytes::Bytes;
use core::net::{IpAddr, Ipv6Addr};
use segue_proto::contract::{InterfaceId, LocalAddress};
use segue_proto::sctp::{
    AddressChange, Association, AssociationId, PathSnapshot, PathState, Reliability, SendError, SendOptions,
};
use segue_proto::{Duration, Instant};
use segue_wire::Data;

const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 0x800;

impl SctpStack {
    pub(super) fn socket_call(&mut self, now: Instant, call: &Call) -> Result<Outcome, Refusal> {
        if call.name == "socket" {
            return self.socket(call);
        }
        let fd = call
            .arguments
            .first()
            .map_or_else(|| Refusal::new(format!("{} without a socket", call.name)), number)?;
        let Some(socket) = self.sockets.get(fd).cloned() else {
            return Ok(Outcome::error("EBADF"));
        };
        let nonblocking = socket.is_nonblocking;
        match (call.name.as_str(), socket.role) {
            ("bind", Role::Fresh) => self.bind(call),
            ("sctp_bindx", role) => self.bindx(now, call, role),
            ("listen", Role::Fresh | Role::Listening) => {
                self.end.listen();
                self.set_role(fd, Role::Listening);
                Ok(Outcome::value(0))
            }
            ("connect" | "sctp_connectx", role) => self.connect(now, call, fd, role, nonblocking),
            ("accept", Role::Listening) => self.accept(call, nonblocking),
            ("fcntl", _) => self.fcntl(call, fd),
            ("setsockopt", role) => self.setsockopt(now, call, fd, role),
            ("getsockopt", role) => self.getsockopt(call, role),
            ("write" | "send" | "sctp_send" | "sctp_sendmsg" | "sctp_sendv", Role::Association(id)) => {
                self.send(now, call, id, nonblocking)
            }
            ("read" | "recv" | "sctp_recvmsg" | "sctp_recvv", Role::Association(id)) => {
                self.receive(call, id, nonblocking)
            }
            ("shutdown", Role::Association(id)) => self.shutdown(now, call, id),
            ("close", role) => {
                self.close(now, role, socket.aborts_on_close);
                self.sockets.close(fd);
                Ok(Outcome::value(0))
            }
            ("write" | "send" | "sctp_send" | "sctp_sendmsg" | "sctp_sendv", _) => {
                Ok(Outcome::error("ENOTCONN"))
            }
            ("read" | "recv" | "shutdown", _) => Ok(Outcome::error("ENOTCONN")),
            (name, role) => Refusal::new(format!("{name} on a socket that is {role:?}")),
        }
    }

    fn set_role(&mut self, fd: i64, role: Role) {
        if let Some(socket) = self.sockets.get(fd) {
            socket.role = role;
        }
    }

    fn socket(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        let is = |i: usize, name: &str| call.arguments.get(i) == Some(&Expression::Name(name.to_owned()));
        if !is(1, "SOCK_STREAM") || !is(2, "IPPROTO_SCTP") {
            return Refusal::new("a socket that is not one-to-one style SCTP (SOCK_STREAM, IPPROTO_SCTP)");
        }
        let fd = number(&call.result)?;
        if !self.sockets.open(fd, Role::Fresh) {
            return Refusal::new(format!("a second socket {fd}"));
        }
        Ok(Outcome::value(fd))
    }

    fn bind(&mut self, call: &Call) -> Result<Outcome, Refusal> {
        match call.arguments.get(1) {
            Some(Expression::Any) | None => Ok(Outcome::value(0)),
            Some(address) => {
                let (address, port) = socket_address(address)?;
                if port.is_some_and(|port| port != self.ports.0) {
                    return Refusal::new(format!("a port other than {}", self.ports.0));
                }
                match address {
                    // one address alone: the others are not the endpoint's
                    Some(address) if self.local.contains(&address) => {
                        let others: Vec<_> = self.local.iter().copied().filter(|l| *l != address).collect();
                        others
                            .iter()
                            .for_each(|other| self.end.remove_local_address(*other));
                        Ok(Outcome::value(0))
                    }
                    Some(_) => Ok(Outcome::error("EADDRNOTAVAIL")),
                    None => Ok(Outcome::value(0)),
                }
            }
        }
    }

    /// `sctp_bindx(fd, [addresses], flag)`: with an association, an ASCONF.
    fn bindx(&mut self, now: Instant, call: &Call, role: Role) -> Result<Outcome, Refusal> {
        let (Some(list), Some(flag)) = (call.arguments.get(1), call.arguments.last()) else {
            return Refusal::new("sctp_bindx without addresses");
        };
        let adds = match flags(flag)?[..] {
            ["SCTP_BINDX_ADD_ADDR"] => true,
            ["SCTP_BINDX_REM_ADDR"] => false,
            _ => return Refusal::new("sctp_bindx that neither adds nor removes"),
        };
        let mut changes = Vec::new();
        for address in address_list(list)? {
            let interface = self.local.iter().position(|l| *l == address);
            let Some(interface) = interface else {
                return Ok(Outcome::error("EADDRNOTAVAIL"));
            };
            let local = LocalAddress {
                interface: InterfaceId(interface as u8),
                address,
            };
            match (role, adds) {
                (Role::Association(_), true) => changes.push(AddressChange::Add(local)),
                (Role::Association(_), false) => changes.push(AddressChange::Delete(address)),
                (_, true) => self.end.add_local_address(local),
                (_, false) => self.end.remove_local_address(address),
            }
        }
        match role {
            Role::Association(id) => Ok(match self.end.association_mut(id) {
                Some(association) => match association.change_addresses(now, &changes) {
                    Ok(()) => Outcome::value(0),
                    Err(_) => Outcome::error("EINVAL"),
                },
                None => Outcome::error("ENOTCONN"),
            }),
            _ => Ok(Outcome::value(0)),
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        call: &Call,
        fd: i64,
        role: Role,
        nonblocking: bool,
    ) -> Result<Outcome, Refusal> {
        let id = match role {
            Role::Association(id) => id,
            _ => {
                let peers = match call.arguments.get(1) {
                    Some(Expression::Any) | None if call.name == "sctp_connectx" => self.remote.clone(),
                    Some(Expression::Any) | None => vec![self.remote[0]],
                    Some(addresses) => address_list(addresses)?,
                };
                let Some(id) = self.end.connect(now, &peers, self.ports.1) else {
                    return Ok(Outcome::error("EINVAL"));
                };
                self.sockets.told(id).is_caller = true;
                self.set_role(fd, Role::Association(id));
                if nonblocking {
                    return Ok(Outcome::error("EINPROGRESS"));
                }
                id
            }
        };
        let told = self.sockets.told(id);
        Ok(match (told.error.take(), told.was_up) {
            (Some(error), _) => Outcome::error(error),
            (None, true) if nonblocking => Outcome::error("EISCONN"),
            (None, true) => Outcome::value(0),
            (None, false) if nonblocking => Outcome::error("EALREADY"),
            (None, false) => Outcome::Waits,
        })
    }

    fn accept(&mut self, call: &Call, nonblocking: bool) -> Result<Outcome, Refusal> {
        let Some(id) = self.sockets.accept() else {
            return Ok(if nonblocking {
                Outcome::error("EAGAIN")
            } else {
                Outcome::Waits
            });
        };
        let fd = match &call.result {
            Expression::Number(fd) if *fd >= 0 => *fd,
            // the script expects no association: it is told that there is one
            _ => return Ok(Outcome::value(i64::from(i32::MAX))),
        };
        if !self.sockets.open(fd, Role::Association(id)) {
            return Refusal::new(format!("a second socket {fd}"));
        }
        Ok(Outcome::value(fd))
    }

    fn fcntl(&mut self, call: &Call, fd: i64) -> Result<Outcome, Refusal> {
        let Some(socket) = self.sockets.get(fd) else {
            return Ok(Outcome::error("EBADF"));
        };
        match &call.arguments[1..] {
            [Expression::Name(command)] if command == "F_GETFL" => {
                let nonblocking = if socket.is_nonblocking { O_NONBLOCK } else { 0 };
                Ok(Outcome::value(O_RDWR | nonblocking))
            }
            [Expression::Name(command), set] if command == "F_SETFL" => {
                socket.is_nonblocking = flags(set)?.contains(&"O_NONBLOCK");
                Ok(Outcome::value(0))
            }
            _ => Refusal::new("fcntl with anything but F_GETFL and F_SETFL"),
        }
    }

    /// Settings have been read ahead; what is left does something now.
    fn setsockopt(&mut self, now: Instant, call: &Call, fd: i64, role: Role) -> Result<Outcome, Refusal> {
        let [_, _, Expression::Name(name), value, ..] = &call.arguments[..] else {
            return Refusal::new("a socket option that is not named");
        };
        let association = match role {
            Role::Association(id) => self.end.association_mut(id),
            _ => None,
        };
        let of = |ok: bool| {
            Ok(if ok {
                Outcome::value(0)
            } else {
                Outcome::error("EINVAL")
            })
        };
        match (name.as_str(), association) {
            ("SO_LINGER", _) => {
                let members = members(value)?;
                let aborts = members.number("onoff")? != 0 && members.number("linger")? == 0;
                if let Some(socket) = self.sockets.get(fd) {
                    socket.aborts_on_close = aborts;
                }
                Ok(Outcome::value(0))
            }
            ("SCTP_PRIMARY_ADDR", Some(association)) => {
                let address = member_address(value, "ssp_addr")?;
                of(association.set_primary_path(now, address).is_ok())
            }
            ("SCTP_SET_PEER_PRIMARY_ADDR", Some(association)) => {
                let address = member_address(value, "sspp_addr")?;
                of(association.request_set_primary(now, address).is_ok())
            }
            ("SCTP_AUTH_KEY", association) => {
                let key = settings::shared_key(value)?;
                self.numbers.set_shared_key(key.id, key.key.clone());
                of(association.is_none_or(|a| a.set_shared_key(key.id, key.key).is_ok()))
            }
            ("SCTP_AUTH_ACTIVE_KEY", Some(association)) => {
                let id = members(value)?.number("scact_keynumber")?;
                of(association.set_active_key(id as u16).is_ok())
            }
            ("SCTP_PRIMARY_ADDR" | "SCTP_SET_PEER_PRIMARY_ADDR", None) => Ok(Outcome::error("EINVAL")),
            _ => Ok(Outcome::value(0)),
        }
    }

    fn getsockopt(&mut self, call: &Call, role: Role) -> Result<Outcome, Refusal> {
        let [_, _, Expression::Name(name), due, ..] = &call.arguments[..] else {
            return Refusal::new("a socket option that is not named");
        };
        let Role::Association(id) = role else {
            return Refusal::new(format!("{name} of a socket without an association"));
        };
        match name.as_str() {
            "SO_ERROR" => {
                let came = self.sockets.told(id).error.take().unwrap_or("0");
                let due = match due {
                    Expression::Array(values) => match &values[..] {
                        [Expression::Number(number)] => number.to_string(),
                        [Expression::Name(name)] => name.clone(),
                        _ => return Refusal::new("an error that is neither a number nor a name"),
                    },
                    _ => came.to_owned(),
                };
                Ok(if due == came {
                    Outcome::value(0)
                } else {
                    Outcome::Differs(format!("SO_ERROR is [{came}]"))
                })
            }
            "SCTP_STATUS" => {
                let Some(association) = self.end.association(id) else {
                    return Ok(Outcome::error("EINVAL"));
                };
                hold(due, |member| status(association, member))
            }
            "SCTP_GET_PEER_ADDR_INFO" => {
                let address = member_address(due, "spinfo_address")?;
                let Some(association) = self.end.association(id) else {
                    return Ok(Outcome::error("EINVAL"));
                };
                let mut paths = association.paths();
                match paths.find(|path| path.destination == address) {
                    Some(path) => hold(due, |member| path_info(&path, member)),
                    None => Ok(Outcome::error("EINVAL")),
                }
            }
            other => Refusal::new(format!("the socket option {other}")),
        }
    }

    fn send(
        &mut self,
        now: Instant,
        call: &Call,
        id: AssociationId,
        nonblocking: bool,
    ) -> Result<Outcome, Refusal> {
        let told = self.sockets.told(id);
        if let Some(error) = told.error.take() {
            return Ok(Outcome::error(error));
        }
        let length = match call.name.as_str() {
            // sctp_sendv(fd, iov, iovcnt, addrs, addrcnt, info, infolen, infotype, flags)
            "sctp_sendv" => match call.arguments.get(1) {
                Some(Expression::Array(parts)) => parts.iter().map(part_length).sum::<Result<i64, _>>()?,
                _ => return Refusal::new("sctp_sendv without an array of parts"),
            },
            _ => call
                .arguments
                .get(2)
                .map_or_else(|| Refusal::new("a message without a length"), number)?,
        };
        let (stream, options) = send_options(call)?;
        let Some(association) = self.end.association_mut(id) else {
            return Ok(Outcome::error("EPIPE"));
        };
        let Ok(len) = u32::try_from(length) else {
            return Ok(Outcome::error("EMSGSIZE"));
        };
        let data = Data::Synthetic { offset: 0, len };
        Ok(match association.send(now, stream, data, options) {
            Ok(()) => Outcome::value(length),
            Err(SendError::BufferFull) if nonblocking => Outcome::error("EAGAIN"),
            Err(SendError::BufferFull) => Outcome::Waits,
            Err(SendError::TooLong) => Outcome::error("EMSGSIZE"),
            Err(SendError::Closing) => Outcome::error("EPIPE"),
            Err(SendError::Empty | SendError::NoSuchStream) => Outcome::error("EINVAL"),
        })
    }

    fn receive(&mut self, call: &Call, id: AssociationId, nonblocking: bool) -> Result<Outcome, Refusal> {
        let room = call
            .arguments
            .get(2)
            .map_or_else(|| Refusal::new("a buffer without a length"), number)?;
        let mut left = self.sockets.told(id).left;
        if left == 0
            && let Some(message) = self.end.association_mut(id).and_then(Association::recv)
        {
            left = message.parts.iter().map(Data::len).sum();
        }
        if left > 0 {
            let taken = left.min(room as usize);
            self.sockets.told(id).left = left - taken;
            return Ok(Outcome::value(taken as i64));
        }
        let is_shut = self
            .end
            .association(id)
            .is_none_or(Association::is_peer_shutting_down);
        let told = self.sockets.told(id);
        Ok(match (told.error.take(), told.is_over || is_shut) {
            (Some(error), _) => Outcome::error(error),
            (None, true) => Outcome::value(0),
            (None, false) if nonblocking => Outcome::error("EAGAIN"),
            (None, false) => Outcome::Waits,
        })
    }

    fn shutdown(&mut self, now: Instant, call: &Call, id: AssociationId) -> Result<Outcome, Refusal> {
        match call.arguments.get(1) {
            Some(Expression::Name(how)) if how == "SHUT_WR" || how == "SHUT_RDWR" => {
                if let Some(association) = self.end.association_mut(id) {
                    association.shutdown(now);
                }
                Ok(Outcome::value(0))
            }
            _ => Refusal::new("a shutdown of anything but sending"),
        }
    }

    fn close(&mut self, now: Instant, role: Role, aborts: bool) {
        if let Role::Association(id) = role
            && let Some(association) = self.end.association_mut(id)
        {
            if aborts {
                association.abort(now, Bytes::new());
            } else {
                association.shutdown(now);
            }
        }
    }
}

/// Holds the members of a structure against what they are now; an error is a member that is not known.
fn hold(due: &Expression, came: impl Fn(&str) -> Option<String>) -> Result<Outcome, Refusal> {
    for member in members(due)?.iter() {
        let name = member.name.as_deref().unwrap_or_default();
        let due = match &member.value {
            Expression::Any | Expression::Struct(_) => continue,
            Expression::Number(number) => number.to_string(),
            Expression::Name(name) => name.clone(),
            other => return Refusal::new(format!("{other:?} as {name}")),
        };
        match came(name) {
            Some(came) if came == due => {}
            Some(came) => return Ok(Outcome::Differs(format!("{name}={came}"))),
            None => return Refusal::new(format!("the value {name}")),
        }
    }
    Ok(Outcome::value(0))
}

/// A member of `struct sctp_status` (RFC 6458 section 8.2.1).
fn status(association: &Association, member: &str) -> Option<String> {
    Some(match member {
        "sstat_state" if association.is_established() => "SCTP_ESTABLISHED".to_owned(),
        "sstat_state" if association.is_closed() => "SCTP_CLOSED".to_owned(),
        "sstat_rwnd" => association.peer_rwnd().to_string(),
        "sstat_instrms" => association.inbound_streams().to_string(),
        "sstat_outstrms" => association.outbound_streams().to_string(),
        _ => return None,
    })
}

/// A member of `struct sctp_paddrinfo` (RFC 6458 section 8.2.2).
fn path_info(path: &PathSnapshot, member: &str) -> Option<String> {
    Some(match member {
        "spinfo_state" => match path.state {
            PathState::Active => "SCTP_ACTIVE",
            PathState::Inactive => "SCTP_INACTIVE",
            PathState::Unconfirmed => "SCTP_UNCONFIRMED",
            PathState::PotentiallyFailed => "SCTP_POTENTIALLY_FAILED",
        }
        .to_owned(),
        "spinfo_cwnd" => path.cwnd.to_string(),
        "spinfo_rto" => path.rto.as_millis().to_string(),
        _ => return None,
    })
}

/// Stream, payload protocol identifier and the like of a message.
fn send_options(call: &Call) -> Result<(u16, SendOptions), Refusal> {
    let mut options = SendOptions::default();
    let mut stream = 0;
    let set_flags = |options: &mut SendOptions, set: &Expression| -> Result<(), Refusal> {
        for flag in flags(set)? {
            match flag {
                "SCTP_UNORDERED" => options.unordered = true,
                "SCTP_SACK_IMMEDIATELY" => options.sack_immediately = true,
                other => return Refusal::new(format!("the flag {other}")),
            }
        }
        Ok(())
    };
    match (call.name.as_str(), &call.arguments[..]) {
        // sctp_sendmsg(fd, msg, len, to, tolen, ppid, flags, stream, timetolive, context)
        ("sctp_sendmsg", [_, _, _, _, _, ppid, set, sid, lifetime, ..]) => {
            options.payload_protocol_id = number(ppid)? as u32;
            set_flags(&mut options, set)?;
            stream = number(sid)?;
            let lifetime = number(lifetime)?;
            if lifetime > 0 {
                options.reliability = Reliability::Timed {
                    lifetime: Duration::from_millis(lifetime as u64),
                };
            }
        }
        ("sctp_send", [_, _, _, info, ..]) | ("sctp_sendv", [_, _, _, _, _, info, ..]) => {
            if let Expression::Struct(_) = info {
                let members = members(info)?;
                let prefix = if members.value("snd_sid").is_some() {
                    "snd"
                } else {
                    "sinfo"
                };
                let sid = if prefix == "snd" {
                    "snd_sid"
                } else {
                    "sinfo_stream"
                };
                stream = members.optional(sid)?.unwrap_or(0);
                let ppid = members.optional(&format!("{prefix}_ppid"))?;
                options.payload_protocol_id = ppid.unwrap_or(0) as u32;
                if let Some(set) = members.value(&format!("{prefix}_flags")) {
                    set_flags(&mut options, set)?;
                }
            }
        }
        ("sctp_sendmsg", _) => return Refusal::new("sctp_sendmsg with fewer than nine arguments"),
        _ => {}
    }
    Ok((stream as u16, options))
}

/// The length of `{..., 40}`.
fn part_length(part: &Expression) -> Result<i64, Refusal> {
    match members(part)?.iter().last() {
        Some(member) => number(&member.value),
        None => Refusal::new("an empty part of a message"),
    }
}

/// Addresses in an array, or one alone.
fn address_list(expression: &Expression) -> Result<Vec<Ipv6Addr>, Refusal> {
    let of = |expression| match socket_address(expression)? {
        (Some(address), _) => Ok(address),
        (None, _) => Refusal::new("an address without `sin_addr` or `sin6_addr`"),
    };
    match expression {
        Expression::Array(addresses) => addresses.iter().map(of).collect(),
        one => Ok(vec![of(one)?]),
    }
}

fn member_address(expression: &Expression, name: &str) -> Result<Ipv6Addr, Refusal> {
    let address = members(expression)?.value(name).map(socket_address).transpose()?;
    match address.and_then(|(address, _)| address) {
        Some(address) => Ok(address),
        None => Refusal::new(format!("a structure without an address in {name}")),
    }
}

/// Address and port of `{sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr("a.b.c.d")}`, its IPv6 form, or an address by
/// itself, which is ours.
fn socket_address(expression: &Expression) -> Result<(Option<Ipv6Addr>, Option<u16>), Refusal> {
    let address = |expression: &Expression| -> Result<Ipv6Addr, Refusal> {
        let text = match expression {
            Expression::Address(address) => return addresses::to_ipv6(*address),
            Expression::Text(text) => text,
            Expression::Apply(_, of) => match of.last() {
                Some(Expression::Text(text)) => text,
                _ => return Refusal::new("an address that is no text"),
            },
            other => return Refusal::new(format!("{other:?} as an address")),
        };
        let address: IpAddr = text
            .parse()
            .map_err(|_| Refusal(format!("{text}, which is no address")))?;
        addresses::to_ipv6(address)
    };
    if !matches!(expression, Expression::Struct(_)) {
        return Ok((Some(address(expression)?), None));
    }
    let members = members(expression)?;
    let named = members.value("sin_addr").or(members.value("sin6_addr"));
    let port = members.value("sin_port").or(members.value("sin6_port"));
    let named = match named {
        Some(Expression::Any) | None => None,
        Some(expression) => Some(address(expression)?),
    };
    let port = match port {
        Some(Expression::Any) | None => None,
        Some(expression) => Some(number(expression)? as u16),
    };
    Ok((named, port))
}
