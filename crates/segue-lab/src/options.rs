//! The command line.

use clap::{Args, Parser, Subcommand};
use segue_lab::wire::{Wire, ideal};
use segue_live::{Namespace, Tun};
use segue_proto::Duration;
use segue_proto::units::{BitRate, QueueLimit};
use segue_sim::link::LinkConfig;
use segue_sim::loss::LossModel;
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
    /// Carry packets between two TUN devices, until the standard input ends
    Link(LinkCommand),
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
