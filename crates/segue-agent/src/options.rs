//! The command line.

use clap::{Args, Parser, Subcommand};
use segue_agent::config::DEFAULT_SOCKET;
use std::path::PathBuf;

/// Keep connections alive while this machine moves between networks: ILNPv6 or Mobile IPv6 under its applications.
#[derive(Parser, Debug)]
#[command(name = "segue-agent", version, max_term_width = 110)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Read the file and say what is wrong with it
    Check(File),
    /// Run until a signal comes (SIGINT, SIGTERM); needs CAP_NET_ADMIN and CAP_NET_RAW
    Run(File),
    /// Show interfaces, addresses, sessions or bindings, handovers and counters of the agent that runs
    Status(Status),
    /// Have the agent that runs use another interface
    Handover(Handover),
    /// Write what the agent that runs takes and sends into a file (pcapng), on both sides of the shim
    Trace(Trace),
    /// Look whether this machine has what the agent needs, and say what is missing
    Doctor,
    /// Print the manual page, for man -l
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
pub(crate) struct File {
    /// The agent's file (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Status {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub agent: Agent,
}

#[derive(Args, Debug)]
pub(crate) struct Handover {
    /// Name of the interface
    #[arg(value_name = "INTERFACE")]
    pub interface: String,
    #[command(flatten)]
    pub agent: Agent,
}

#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// File to write
    #[arg(value_name = "FILE.pcapng")]
    pub file: PathBuf,
    /// For so long at most
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// So many packets at most
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: u64,
    /// Of a packet, so many bytes at most
    #[arg(long, value_name = "BYTES", default_value_t = 65_575, value_parser = clap::value_parser!(u32).range(40..=65_575))]
    pub snap: u32,
    #[command(flatten)]
    pub agent: Agent,
}

#[derive(Args, Debug)]
pub(crate) struct Agent {
    /// Control socket of the agent
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
}
