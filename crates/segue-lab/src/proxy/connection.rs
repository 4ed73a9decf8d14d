//! One connection: a stream at one end, between TCP and SCTP.

use super::message::{Message, Reason};
use super::{READ_AHEAD, WINDOW};
use bytes::Bytes;
use std::collections::VecDeque;

/// The other end is told of what was read once it is so much.
const GRANT: u32 = WINDOW / 4;

/// A connection of TCP here, and what of it is under way to and from the other end.
#[derive(Debug)]
pub(super) struct Connection {
    tcp: Tcp,
    /// Port of the peer that the other end is yet to be told of.
    opens: Option<u16>,
    sending: Sending,
    /// Read from TCP, not yet sent.
    outgoing: Queue,
    /// Bytes that the other end takes more.
    credit: u32,
    receiving: Receiving,
    /// Come from the other end, not yet written to TCP.
    incoming: Queue,
    /// Bytes that the other end may send more.
    granted: u32,
    /// Bytes written to TCP that it is yet to be told of.
    owed: u32,
    own_end: OwnEnd,
    /// The other end is done.
    has_peer_ended: bool,
}

/// The connection of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tcp {
    Connecting,
    Open,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sending {
    Open,
    /// TCP has no more to read.
    Finishing,
    /// The other end has been told.
    Finished,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Receiving {
    Open,
    /// The other end has no more to send.
    Finishing,
    /// TCP has been told.
    Finished,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OwnEnd {
    No,
    Due(Reason),
    Sent,
}

/// What is to be done with the connection of TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Shutdown,
    Close,
    Reset,
}

/// Why a message is not what may come now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wrong {
    /// It does not belong here.
    Unexpected,
    /// More data than was granted.
    BeyondCredit,
}

impl Connection {
    /// Of a program that has connected to `port` of the peer's.
    pub(super) fn accepted(port: u16) -> Self {
        Self::new(Tcp::Open, Some(port))
    }

    /// To a program here, on its way.
    pub(super) fn connecting() -> Self {
        Self::new(Tcp::Connecting, None)
    }

    /// To nobody: the other end is told that it is refused.
    pub(super) fn refused() -> Self {
        Self {
            own_end: OwnEnd::Due(Reason::Refused),
            ..Self::new(Tcp::Gone, None)
        }
    }

    fn new(tcp: Tcp, opens: Option<u16>) -> Self {
        Self {
            tcp,
            opens,
            sending: Sending::Open,
            outgoing: Queue::default(),
            credit: WINDOW,
            receiving: Receiving::Open,
            incoming: Queue::default(),
            granted: WINDOW,
            owed: 0,
            own_end: OwnEnd::No,
            has_peer_ended: false,
        }
    }

    /// Whether both ends are done: the stream is free.
    pub(super) fn is_over(&self) -> bool {
        self.own_end == OwnEnd::Sent && self.has_peer_ended
    }

    /// Whether it has a connection of TCP.
    pub(super) fn has_tcp(&self) -> bool {
        self.tcp != Tcp::Gone
    }

    /// TCP has connected.
    pub(super) fn connected(&mut self) {
        if self.tcp == Tcp::Connecting {
            self.tcp = Tcp::Open;
        }
    }

    /// TCP's connection failed, or was refused.
    pub(super) fn failed(&mut self, reason: Reason) {
        if self.has_tcp() {
            self.abandon(reason);
        }
    }

    /// Bytes that may be read from TCP now.
    pub(super) fn room(&self) -> u32 {
        if self.tcp != Tcp::Open || self.sending != Sending::Open {
            return 0;
        }
        self.credit.min(READ_AHEAD).saturating_sub(self.outgoing.bytes)
    }

    /// TCP had this to read.
    pub(super) fn read(&mut self, data: Bytes) {
        if self.has_tcp() && self.sending == Sending::Open {
            self.outgoing.push(data);
        }
    }

    /// TCP has no more to read.
    pub(super) fn read_end(&mut self) {
        if self.sending == Sending::Open {
            self.sending = Sending::Finishing;
        }
    }

    /// What is to be written to TCP next.
    pub(super) fn incoming(&self) -> Option<&Bytes> {
        (self.tcp == Tcp::Open).then(|| self.incoming.front()).flatten()
    }

    /// TCP took so many bytes of it.
    pub(super) fn written(&mut self, bytes: usize) -> Option<Act> {
        self.owed += self.incoming.take(bytes as u32).len() as u32;
        self.pass_fin()
    }

    /// Something has come from the other end. Gives what is to be done with TCP.
    pub(super) fn handle(&mut self, message: Message) -> Result<Option<Act>, Wrong> {
        if self.has_peer_ended {
            return Err(Wrong::Unexpected);
        }
        match message {
            Message::Open(_) => Err(Wrong::Unexpected),
            Message::End(reason) => Ok(self.on_end(reason)),
            // what was under way when it was reset
            _ if self.is_abandoned() => Ok(None),
            Message::Data(data) => self.on_data(data),
            Message::Credit(bytes) => {
                let credit = self.credit.checked_add(bytes).filter(|credit| *credit <= WINDOW);
                self.credit = credit.ok_or(Wrong::Unexpected)?;
                Ok(None)
            }
            Message::Fin if self.receiving == Receiving::Open => {
                self.receiving = Receiving::Finishing;
                Ok(self.pass_fin())
            }
            Message::Fin => Err(Wrong::Unexpected),
        }
    }

    /// Whether it was reset here: what comes of it is of no use.
    fn is_abandoned(&self) -> bool {
        self.tcp == Tcp::Gone
    }

    fn on_data(&mut self, data: Bytes) -> Result<Option<Act>, Wrong> {
        if self.receiving != Receiving::Open {
            return Err(Wrong::Unexpected);
        }
        let left = self.granted.checked_sub(data.len() as u32);
        self.granted = left.ok_or(Wrong::BeyondCredit)?;
        self.incoming.push(data);
        Ok(None)
    }

    /// The other end is done; if not because both halves are closed, so is this one.
    fn on_end(&mut self, reason: Reason) -> Option<Act> {
        self.has_peer_ended = true;
        let complete = self.sending == Sending::Finished && self.receiving != Receiving::Open;
        if (reason == Reason::Closed && complete) || !self.has_tcp() {
            return None;
        }
        self.abandon(Reason::Reset);
        Some(Act::Reset)
    }

    /// Nothing of it goes on, and the other end will be told.
    pub(super) fn abandon(&mut self, reason: Reason) {
        self.tcp = Tcp::Gone;
        self.outgoing = Queue::default();
        self.incoming = Queue::default();
        if self.own_end == OwnEnd::No {
            self.own_end = OwnEnd::Due(reason);
        }
    }

    /// TCP is told that the other end has no more, once it has got everything.
    fn pass_fin(&mut self) -> Option<Act> {
        if self.receiving != Receiving::Finishing || !self.incoming.is_empty() || self.tcp != Tcp::Open {
            return None;
        }
        self.receiving = Receiving::Finished;
        self.close().or(Some(Act::Shutdown))
    }

    /// Both halves are closed.
    fn close(&mut self) -> Option<Act> {
        let closed = self.sending == Sending::Finished && self.receiving == Receiving::Finished;
        if !closed || self.tcp != Tcp::Open {
            return None;
        }
        self.tcp = Tcp::Gone;
        self.own_end = OwnEnd::Due(Reason::Closed);
        Some(Act::Close)
    }

    /// What the other end is to be told next, data of at most `most` bytes; and what is to be done with TCP then.
    pub(super) fn poll_message(&mut self, most: u32) -> Option<(Message, Option<Act>)> {
        if let Some(port) = self.opens.take() {
            return Some((Message::Open(port), None));
        }
        match self.own_end {
            OwnEnd::No => {}
            OwnEnd::Due(reason) => {
                self.own_end = OwnEnd::Sent;
                return Some((Message::End(reason), None));
            }
            OwnEnd::Sent => return None,
        }
        if self.owed >= GRANT && self.receiving == Receiving::Open && self.has_tcp() {
            let owed = core::mem::take(&mut self.owed);
            self.granted += owed;
            return Some((Message::Credit(owed), None));
        }
        let data = self.outgoing.take(self.credit.min(most));
        if !data.is_empty() {
            self.credit -= data.len() as u32;
            return Some((Message::Data(data), None));
        }
        if self.sending == Sending::Finishing && self.outgoing.is_empty() {
            self.sending = Sending::Finished;
            return Some((Message::Fin, self.close()));
        }
        None
    }
}

/// Bytes that wait.
#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Bytes>,
    bytes: u32,
}

impl Queue {
    fn push(&mut self, data: Bytes) {
        self.bytes += data.len() as u32;
        self.pieces.push_back(data);
    }

    fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn front(&self) -> Option<&Bytes> {
        self.pieces.front()
    }

    /// Takes at most so many bytes of the first piece.
    fn take(&mut self, most: u32) -> Bytes {
        let Some(front) = self.pieces.front_mut().filter(|_| most > 0) else {
            return Bytes::new();
        };
        let data = front.split_to(front.len().min(most as usize));
        if front.is_empty() {
            self.pieces.pop_front();
        }
        self.bytes -= data.len() as u32;
        data
    }
}
