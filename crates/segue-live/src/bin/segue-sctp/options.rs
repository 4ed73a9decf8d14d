//! The command line.

use crate::address;
use crate::keys::KeyFile;
use crate::script::Script;
use clap::{Args, Parser, Subcommand};
use segue_proto::Duration;
use segue_proto::units::{BitRate, Bytes};
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// SCTP from the command line, in UDP (RFC 6951) or as IPv6 protocol 132.
#[derive(Parser, Debug)]
#[command(name = "segue-sctp", version, max_term_width = 110)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Wait for associations; throw away, save or return what arrives
    Listen(Listen),
    /// Start an association and send a file or made-up data
    Connect(Connect),
    /// Measure round-trip times over an association with a `listen --echo`
    Ping(Ping),
}

#[derive(Args, Debug)]
pub(crate) struct Listen {
    /// SCTP port
    #[arg(long, default_value_t = 5001)]
    pub port: u16,
    /// Exit when the first association has ended, and take no other
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub received: ReceivedOptions,
    #[command(flatten)]
    pub sent: SentOptions,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct Connect {
    #[command(flatten)]
    pub calling: Calling,
    #[command(flatten)]
    pub received: ReceivedOptions,
    #[command(flatten)]
    pub sent: SentOptions,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub(crate) struct Ping {
    #[command(flatten)]
    pub calling: Calling,
    /// Number of messages; without it, until Ctrl-C
    #[arg(long, short)]
    pub count: Option<u64>,
    /// Time between messages
    #[arg(long, short, default_value = "1 s")]
    pub interval: Duration,
    /// Size of a message
    #[arg(long, default_value = "64 B")]
    pub size: Bytes,
    #[command(flatten)]
    pub common: Common,
}

/// Whom to call, and for how long.
#[derive(Args, Debug, Clone)]
pub(crate) struct Calling {
    /// Addresses of the peer, separated by commas; the first is the primary path
    #[arg(value_delimiter = ',', required = true, value_name = "PEER", value_parser = address::parse)]
    pub peer: Vec<Ipv6Addr>,
    /// SCTP port of the peer
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// SCTP port of this end; without it, one that is hardly in use
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub local_port: Option<u16>,
    /// Give up when the association is not set up by then. With the RTO of RFC 9260, five INITs are sent in 30 s
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub timeout: Duration,
}

/// What becomes of data that arrives.
#[derive(Args, Debug, Clone)]
#[group(multiple = false)]
pub(crate) struct ReceivedOptions {
    /// Return every message to its sender
    #[arg(long)]
    pub echo: bool,
    /// Count what arrives and throw it away: the default
    #[arg(long)]
    pub discard: bool,
    /// As --discard, and fail unless it is the data that --bytes and --rate make, in order (one stream)
    #[arg(long)]
    pub verify: bool,
    /// Write what arrives to a file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

/// What is sent.
#[derive(Args, Debug, Clone)]
pub(crate) struct SentOptions {
    /// Send a file, or what comes through a pipe or from a terminal
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bytes", "rate"])]
    pub send: Option<PathBuf>,
    /// Send this much made-up data as fast as it goes, such as "100 MB"
    #[arg(long, value_name = "SIZE", conflicts_with = "rate")]
    pub bytes: Option<Bytes>,
    /// Send messages of made-up data at this rate, such as "2 Mbit/s"
    #[arg(long)]
    pub rate: Option<BitRate>,
    /// Size of a message
    #[arg(long, default_value = "1200 B", value_name = "SIZE")]
    pub size: Bytes,
    /// End the association only when nothing has arrived for this long after everything was sent
    #[arg(long, value_name = "TIME", default_value = "0 s")]
    pub linger: Duration,
    /// End the association after this time
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
}

/// Whether ASCONF is authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Authentication {
    /// As RFC 5061 asks.
    On,
    /// Neither offered nor asked for.
    Off,
}

/// How the MTU of a path is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Pmtu {
    None,
    PacketTooBig,
    Probing,
}

/// What all commands share.
#[derive(Args, Debug, Clone)]
pub(crate) struct Common {
    /// Address of this host to use, the first as the route; may be given again. All if left out
    #[arg(long = "address", value_name = "ADDR", value_parser = address::parse)]
    pub addresses: Vec<Ipv6Addr>,
    /// IPv6 protocol 132 instead of UDP; needs root
    #[arg(long, conflicts_with_all = ["udp_port", "remote_udp_port"])]
    pub raw: bool,
    /// UDP port of this end; 9899 for listen, otherwise any that is free
    #[arg(long, value_name = "PORT")]
    pub udp_port: Option<u16>,
    /// UDP port that the peer is first sent to
    #[arg(long, value_name = "PORT", default_value_t = 9899, value_parser = clap::value_parser!(u16).range(1..))]
    pub remote_udp_port: u16,
    /// Change addresses at given times after the association is up, as in
    /// "2s add 2001:db8::2; 2.1s route 2001:db8::2; 2.1s primary 2001:db8::2; 3s delete 2001:db8::1". `primary` asks the
    /// peer to send there, `peer ADDR` sends to another address of the peer, `deactivate` and `activate` need --deactivation, `shutdown` and `abort` end the association
    #[arg(long)]
    pub script: Option<Script>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Write a line for every message received: time, stream, number in its stream, offset, bytes
    #[arg(long, value_name = "FILE.csv")]
    pub log: Option<PathBuf>,
    /// Write packets sent and received to a pcapng file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// RTO.Initial
    #[arg(long, value_name = "TIME")]
    pub rto_initial: Option<Duration>,
    /// RTO.Min
    #[arg(long, value_name = "TIME")]
    pub rto_min: Option<Duration>,
    /// RTO.Max
    #[arg(long, value_name = "TIME")]
    pub rto_max: Option<Duration>,
    /// Path.Max.Retrans
    #[arg(long, value_name = "N")]
    pub path_max_retrans: Option<u32>,
    /// Potentially.Failed.Max.Retrans (RFC 7829): errors after which another path is used; 0 for the first timeout
    #[arg(long, value_name = "N")]
    pub pf_max_retrans: Option<u32>,
    /// Association.Max.Retrans
    #[arg(long, value_name = "N")]
    pub association_max_retrans: Option<u32>,
    /// HB.interval; 0 s sends no heartbeats but those that confirm an address
    #[arg(long, value_name = "TIME")]
    pub hb_interval: Option<Duration>,
    /// Delay of a SACK
    #[arg(long, value_name = "TIME")]
    pub sack_delay: Option<Duration>,
    /// Packets per SACK
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sack_frequency: Option<u32>,
    /// Whether changes of addresses are authenticated (RFC 4895); `off` is for peers older than that
    #[arg(long, value_enum, default_value_t = Authentication::On)]
    pub auth: Authentication,
    /// Shared key of chunk authentication: its identifier and the file whose bytes it is, such as "1:key", and that only its
    /// owner may read; may be given again. The first is the one that this end sends with. Without any, the empty key
    #[arg(long = "auth-key", value_name = "ID:FILE")]
    pub auth_keys: Vec<KeyFile>,
    /// Type of a chunk that the peer has to authenticate, such as 0 for DATA; may be given again
    #[arg(long = "auth-chunk", value_name = "TYPE", value_parser = chunk_to_authenticate)]
    pub auth_chunks: Vec<u8>,
    /// Offer to deactivate addresses; without it, or with a peer that cannot, `deactivate` deletes
    #[arg(long)]
    pub deactivation: bool,
    /// Outbound streams; data is spread over them in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub streams: u16,
    /// Path MTU, the IPv6 header and a UDP header included
    #[arg(long, value_name = "SIZE", default_value = "1500 B")]
    pub mtu: Bytes,
    /// How it is found out that a path carries less: `packet-too-big` believes ICMPv6 (RFC 8201), `probing` needs none
    /// (RFC 8899), and with `none` the kernel fragments
    #[arg(long, value_enum, default_value_t = Pmtu::PacketTooBig, value_name = "HOW")]
    pub pmtu: Pmtu,
    /// Receive buffer: the window offered
    #[arg(long, value_name = "SIZE", default_value = "1 MB")]
    pub receive_buffer: Bytes,
    /// Send buffer
    #[arg(long, value_name = "SIZE", default_value = "1 MB")]
    pub send_buffer: Bytes,
    /// Max.Burst, packets; 0 for no limit
    #[arg(long, value_name = "N")]
    pub max_burst: Option<u32>,
}

/// RFC 4895 section 3.2: what cannot be authenticated, because it comes before the keys, or is the authentication.
fn chunk_to_authenticate(text: &str) -> Result<u8, String> {
    let chunk_type: u8 = text
        .parse()
        .map_err(|_| "expected the type of a chunk, 0 to 255".to_owned())?;
    let name = match chunk_type {
        1 => "INIT",
        2 => "INIT ACK",
        14 => "SHUTDOWN COMPLETE",
        15 => "AUTH",
        _ => return Ok(chunk_type),
    };
    Err(format!("{name} cannot be authenticated (RFC 4895 section 3.2)"))
}
