//! Address acquisition: how a host comes by an address on a new link.

mod config;

pub use config::{ClientConfig, Method, ServerConfig};

mod server;

pub use server::Dhcpv6Server;
