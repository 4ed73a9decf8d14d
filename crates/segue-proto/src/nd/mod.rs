//! Neighbour discovery (RFC 4861) and stateless address autoconfiguration (RFC 4862).

mod config;

pub use config::{AdvertisedPrefix, HostConfig, INFINITE_LIFETIME_S, RouterConfig};

mod router;

pub use router::RouterNd;
