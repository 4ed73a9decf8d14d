//! A script as values.

use super::layout::Item;
use core::net::IpAddr;
use segue_proto::Duration;

/// A script.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file, as it was named.
    pub file: String,
    /// Lines that begin with `--`.
    pub options: Vec<ProgramOption>,
    /// What the shell is to do before the first event, and after the last.
    pub setup: Option<Shell>,
    /// See [`setup`](Self::setup).
    pub cleanup: Option<Shell>,
    /// Events in order.
    pub events: Vec<Event>,
}

/// An option of the program: `--name=value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramOption {
    /// Line of the file, from 1.
    pub line: usize,
    /// Name without the dashes.
    pub name: String,
    /// What follows `=`.
    pub value: Option<String>,
}

/// Commands of a shell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shell {
    /// Line of the file, from 1.
    pub line: usize,
    /// The commands, without the backquotes.
    pub commands: String,
}

/// Something that happens, or is to happen.
#[derive(Clone, Debug)]
pub struct Event {
    /// Line of the file on which it begins, from 1.
    pub line: usize,
    /// Its text as it stands there.
    pub text: String,
    /// When.
    pub when: When,
    /// What.
    pub action: Action,
}

/// When something happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// `*`: any time.
    Any,
    /// So long after the script began.
    At(Span),
    /// `+`: so long after the event before it.
    After(Span),
}

/// A point of time, or a range of them (`from~to`): then `to` is later than `from`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The earliest.
    pub from: Duration,
    /// The latest.
    pub to: Duration,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// A packet arrives, or is expected.
    Packet(Box<Packet>),
    /// The application calls its sockets.
    Call(Call),
    /// Commands of a shell.
    Shell(Shell),
    /// Python.
    Code(String),
}

/// A system call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Until when it does not return, on the clock of the event: `...` and a time before its name.
    pub until: Option<Duration>,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// What it is to return.
    pub result: Expression,
    /// The error it is to fail with.
    pub errno: Option<String>,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expression {
    /// `...`: whatever fits.
    Any,
    /// A number.
    Number(i64),
    /// A name, of a constant or an error.
    Name(String),
    /// A text.
    Text(String),
    /// An address.
    Address(IpAddr),
    /// Flags: `a | b`.
    Or(Vec<Expression>),
    /// `[a, b]`.
    Array(Vec<Expression>),
    /// `{name=a, b}`: a structure.
    Struct(Vec<Member>),
    /// `name(a, b)`, as in `htons(8080)`.
    Apply(String, Vec<Expression>),
}

/// A member of a structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name, if it is named.
    pub name: Option<String>,
    /// What stands behind its name in brackets: the length of `msg_iov(1)=`.
    pub length: Option<Expression>,
    /// Its value.
    pub value: Expression,
}

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `<`: to the stack.
    In,
    /// `>`: from the stack.
    Out,
}

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Which way.
    pub direction: Direction,
    /// Headers outside its own, as they are written: `ipv4 192.0.2.1 > 192.0.2.2`.
    pub outer: Vec<String>,
    /// What is said of its IP header: `[ect0]`, `(tos 0x2)`.
    pub ip: Vec<IpField>,
    /// Source and destination address, if the line names them.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Source and destination port, if the line names them.
    pub ports: Option<(u16, u16)>,
    /// UDP ports that it is encapsulated between: `/udp(1 > 2)`.
    pub in_udp: Option<(u16, u16)>,
    /// What it carries.
    pub payload: Payload,
}

/// Something of an IP header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IpField {
    /// Name: `ttl`, `tos`, `ecn`, or a codepoint such as `ect0` that needs no value.
    pub name: String,
    /// Value, as it is written.
    pub value: Option<String>,
}

/// What a packet carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// SCTP.
    Sctp(Sctp),
    /// TCP.
    Tcp(Tcp),
    /// UDP with so many bytes.
    Udp(u32),
    /// UDP-Lite with so many bytes, of which so many are covered by the checksum.
    UdpLite(u32, u32),
    /// ICMP.
    Icmp(Icmp),
}

/// An SCTP packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sctp {
    /// Its CRC32c.
    pub checksum: Checksum,
    /// Verification tag, if it is not the one that belongs there.
    pub tag: Option<u32>,
    /// What follows the common header.
    pub body: Body,
}

/// Which CRC32c a packet has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// The right one.
    Right,
    /// A wrong one.
    Bad,
    /// Zero.
    Zero,
}

/// What follows the common header of SCTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Chunks.
    Chunks(Vec<Item>),
    /// Bytes that need not be chunks.
    Bytes(Vec<u8>),
}

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tcp {
    /// Flags as they are written, `.` for ACK: a set, in any order; a digit is ACE. Empty for `-`.
    pub flags: String,
    /// Sequence numbers; `None` for `...`.
    pub sequence: Option<Sequence>,
    /// Bytes of data.
    pub length: u32,
    /// Acknowledgement number.
    pub ack: Option<u32>,
    /// Window, before scaling.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// Options; `None` for `<...>`, whatever there are.
    pub options: Option<Vec<TcpOption>>,
}

/// First sequence number, and the one behind the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// The first.
    pub start: u32,
    /// Behind the last.
    pub end: u32,
    /// `!`: not relative to the initial one.
    pub absolute: bool,
}

/// A TCP option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// `nop`.
    Nop,
    /// `eol`.
    Eol,
    /// `mss`.
    Mss(u16),
    /// `wscale`.
    WindowScale(u8),
    /// `sackOK`.
    SackPermitted,
    /// `sack`: blocks.
    Sack(Vec<(u32, u32)>),
    /// `TS val a ecr b`.
    Timestamps {
        /// Its value; `None` for `...`.
        value: Option<u32>,
        /// What it echoes.
        echo: u32,
        /// `!`: the echo is not relative.
        absolute: bool,
    },
    /// Any other, as it is written.
    Other(String),
}

/// An ICMP message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Icmp {
    /// Type by name: `unreachable`.
    pub kind: String,
    /// Code by name: `frag_needed`.
    pub code: Option<String>,
    /// `mtu`.
    pub mtu: Option<u32>,
    /// `id` of an echo.
    pub id: Option<u32>,
    /// The packet that it quotes, as it is written between brackets.
    pub quoted: Option<String>,
}
