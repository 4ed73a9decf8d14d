//! One request to the kernel at a time, and its answer.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use std::io;

/// A socket for requests of rtnetlink(7).
pub(crate) struct Requests {
    socket: Socket,
    sequence: u32,
}

impl Requests {
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Has the kernel do something.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn order(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, flags | NLM_F_ACK)?;
        self.answer().map(|_| ())
    }

    /// Has the kernel add something; says whether it was not there.
    ///
    /// # Errors
    /// As the kernel has them otherwise.
    pub fn add(&mut self, message: RouteNetlinkMessage) -> io::Result<bool> {
        match self.order(message, NLM_F_CREATE | NLM_F_EXCL) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Asks for one thing.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn ask(&mut self, message: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
        self.send(message, 0)?;
        self.answer()
    }

    /// Asks for all there is of something.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn dump(
        &mut self,
        message: RouteNetlinkMessage,
        mut act: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.send(message, netlink_packet_core::NLM_F_DUMP)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) {
                let length = (message.header.length as usize).next_multiple_of(4);
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => act(inner),
                    NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return Ok(()),
                    _ => {}
                }
                match rest.get(length..) {
                    Some(more) if length > 0 && !more.is_empty() => rest = more,
                    _ => break,
                }
            }
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// The answer to what was sent last; what came of something earlier, and was not waited for, is passed over.
    fn answer(&mut self) -> io::Result<Option<RouteNetlinkMessage>> {
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if message.header.sequence_number != self.sequence {
                continue;
            }
            return match message.payload {
                NetlinkPayload::InnerMessage(inner) => Ok(Some(inner)),
                NetlinkPayload::Error(error) if error.raw_code() != 0 => {
                    Err(Errno::from_raw(-error.raw_code()).into())
                }
                _ => Ok(None),
            };
        }
    }
}
