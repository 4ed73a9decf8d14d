//! The command line.

use clap::{Args, Parser, Subcommand};
use segue_lab::wire::{Wire, ideal};
use segue_live::{Namespace, Tun};
use segue_proto::Duration;
use segue_proto::congestion::Algorithm;
use segue_proto::tcp::{Config, Profile};
use segue_proto::units::{BitRate, Bytes, QueueLimit};
use segue_sim::link::LinkConfig;
use segue_sim::loss::LossModel;
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

/// Real stacks over the simulator's links in real time (root).
#[derive(Parser, Debug)]
#[command(name = "segue-lab", version, max_term_width = 110)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a scenario with hosts, kernels and programs of this machine
    Run(crate::run::RunCommand),
    /// Run schemes and events with real hosts, and make one table and one figure: `segue lab compare --help`
    #[command(disable_help_flag = true)]
    Compare(PythonCommand),
    /// Have the claims of a paper judged by runs with real hosts: `segue lab reproduce --help`
    #[command(disable_help_flag = true)]
    Reproduce(PythonCommand),
    /// Be one end of a built-in application, over the kernel's sockets
    #[command(hide = true)]
    App(crate::app::AppCommand),
    /// Carry packets between two TUN devices, until the standard input ends
    Link(LinkCommand),
    /// Be one end of a TCP connection, behind a TUN device and an emulated link; commands come on the standard input
    Tcp(TcpCommand),
    /// Work out in virtual time how much a TCP flow gets through an emulated link
    Goodput(GoodputCommand),
    /// Be the ILNPv6 layer of a namespace, between a TUN device and its interfaces, until the standard input ends
    Ilnp(IlnpCommand),
}

/// What `segue lab compare` or `reproduce` takes, which are no part of this program: `segue` does it before it comes here.
#[derive(Args, Debug)]
pub(crate) struct PythonCommand {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct LinkCommand {
    /// TUN device at the first end
    #[arg(long, value_name = "NAMESPACE:DEVICE")]
    pub a: Device,
    /// TUN device at the second end
    #[arg(long, value_name = "NAMESPACE:DEVICE")]
    pub b: Device,
    #[command(flatten)]
    pub emulated: EmulatedLink,
    /// Write every packet to this pcapng file, when it enters the link
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct IlnpCommand {
    /// TUN device to make for the kernel's transports
    #[arg(long, value_name = "NAMESPACE:DEVICE")]
    pub tun: Device,
    /// Ethernet interface of the same namespace that is taken over; may be repeated
    #[arg(long = "interface", value_name = "NAME", required = true)]
    pub interfaces: Vec<String>,
    /// The shim's configuration (TOML), at least its `nid`
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Greatest random delay of router solicitations and of duplicate address detection (RFC 4861 section 6.3.7)
    #[arg(long, default_value = "1 s")]
    pub solicitation_delay: Duration,
    /// Write every packet of the interfaces to this pcapng file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct TcpCommand {
    /// TUN device to make; the kernel's end of the link is there
    #[arg(long, value_name = "NAMESPACE:DEVICE")]
    pub tun: Device,
    /// Address of this end
    #[arg(long)]
    pub address: Ipv6Addr,
    #[command(subcommand)]
    pub role: TcpRole,
    #[command(flatten)]
    pub tcp: TcpOptions,
    #[command(flatten)]
    pub emulated: EmulatedLink,
    /// Do not read what arrives until told to
    #[arg(long)]
    pub paused: bool,
    /// Write every packet at the kernel's end of the link to this pcapng file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

#[derive(Subcommand, Clone, Copy, Debug)]
pub(crate) enum TcpRole {
    /// Wait for a connection
    Listen {
        /// Port
        port: u16,
    },
    /// Open a connection, when the command `connect` comes
    Connect {
        /// Address of the peer
        address: Ipv6Addr,
        /// Port of the peer
        port: u16,
    },
}

#[derive(Args, Debug)]
pub(crate) struct GoodputCommand {
    #[command(flatten)]
    pub tcp: TcpOptions,
    #[command(flatten)]
    pub emulated: EmulatedLink,
    /// Time from the first byte received to the end
    #[arg(long, default_value = "60 s")]
    pub duration: Duration,
    /// Time from the first byte received until bytes are counted
    #[arg(long, default_value = "5 s")]
    pub warm_up: Duration,
}

/// Of our TCP.
#[derive(Args, Debug)]
pub(crate) struct TcpOptions {
    /// Whose TCP: modern, linux-3.9 or linux-2.4
    #[arg(long, default_value = "modern", value_parser = named::<Profile>)]
    pub profile: Profile,
    /// reno, cubic, hybla or veno; without it, the profile's
    #[arg(long, value_parser = named::<Algorithm>)]
    pub congestion_control: Option<Algorithm>,
    /// Receive buffer, the greatest window offered; without it, the profile's
    #[arg(long)]
    pub receive_buffer: Option<Bytes>,
}

impl TcpOptions {
    /// The configuration.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(self.profile);
        if let Some(algorithm) = self.congestion_control {
            config.congestion_control = algorithm;
        }
        if let Some(buffer) = self.receive_buffer {
            config.receive_buffer = u32::try_from(buffer.bytes()).unwrap_or(u32::MAX);
        }
        config
    }
}

/// A value by the name that scenarios have for it.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    T::deserialize(text.into_deserializer()).map_err(|e: serde::de::value::Error| e.to_string())
}

/// What the link does. Loss, duplicates and jitter happen to the packets from the first end to the second unless it says
/// otherwise.
#[derive(Args, Clone, Debug)]
pub(crate) struct EmulatedLink {
    /// Rate of IPv6 packets, in each direction; unlimited without it
    #[arg(long)]
    pub rate: Option<BitRate>,
    /// Propagation delay in each direction
    #[arg(long, default_value = "0 ms")]
    pub delay: Duration,
    /// Waiting room in each direction, beside the packet that is being sent
    #[arg(long, default_value = "1000 packets")]
    pub queue: QueueLimit,
    /// Probability that a packet is lost
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    pub loss: f64,
    /// The same in the direction from the second end to the first
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    pub return_loss: f64,
    /// Greatest additional delay, in both directions
    #[arg(long, default_value = "0 ms")]
    pub jitter: Duration,
    /// Let packets overtake each other because of jitter
    #[arg(long)]
    pub reorder: bool,
    /// Probability that a packet arrives twice, in both directions
    #[arg(long, default_value_t = 0.0, value_parser = probability)]
    pub duplicate: f64,
    /// Seed of all that is random about the link
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl EmulatedLink {
    /// The link, idle.
    pub(crate) fn wire<P: Clone>(&self) -> Wire<P> {
        Wire::new(
            self.direction(self.loss),
            self.direction(self.return_loss),
            self.seed,
        )
    }

    fn direction(&self, probability: f64) -> LinkConfig {
        let base = ideal(self.delay);
        LinkConfig {
            rate: self.rate.unwrap_or(base.rate),
            queue: self.queue,
            loss: if probability > 0.0 {
                LossModel::Bernoulli { probability }
            } else {
                LossModel::None
            },
            jitter: self.jitter,
            reorder: self.reorder,
            duplicate: self.duplicate,
            ..base
        }
    }
}

/// A network device and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub namespace: Namespace,
    pub name: String,
}

impl Device {
    /// Makes it.
    pub(crate) fn open(&self) -> std::io::Result<Tun> {
        Tun::open(&self.name, Some(&self.namespace))
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once(':') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Self {
                namespace: Namespace::new(namespace),
                name: name.to_owned(),
            }),
            _ => Err("expected a namespace and a device, such as `mobile:tun0`".to_owned()),
        }
    }
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("expected a probability, 0 to 1".to_owned()),
    }
}
