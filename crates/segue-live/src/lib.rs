//! The machines of `segue-proto` over real sockets in real time.
//!
//! A [`Driver`] owns an SCTP [`Endpoint`](segue_proto::sctp::Endpoint), the socket its packets go through and the clock
//! it is given: SCTP in UDP (RFC 6951) needs no privileges, IPv6 protocol 132 needs `CAP_NET_RAW`. It watches the
//! host's addresses, since the handover of a real host begins with one that appears or vanishes.
//!
//! Nothing runs behind the caller's back: [`Driver::turn`] waits for packets, timers and address changes, and what
//! happened is then polled.
//!
//! ```no_run
//! use segue_live::{Driver, DriverConfig, DriverEvent, Transport};
//! use segue_proto::sctp::{Event, SendOptions};
//! use segue_wire::Data;
//!
//! let mut driver = Driver::new(DriverConfig {
//!     transport: Transport::Udp { local_port: 0, remote_port: 9899 },
//!     ..DriverConfig::default()
//! })?;
//! let id = driver.connect(&["2001:db8::1".parse()?], 5001)?;
//! loop {
//!     driver.turn(None, &[])?;
//!     while let Some(event) = driver.poll_event() {
//!         if event == DriverEvent::Association(id, Event::Connected) {
//!             let now = driver.now();
//!             let association = driver.association_mut(id).expect("it is connected");
//!             association.send(now, 0, Data::Bytes("hello".into()), SendOptions::default())?;
//!         }
//!     }
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg(target_os = "linux")]

mod addresses;
mod buffers;
mod capture;
mod clock;
pub mod command_line;
mod driver;
mod ethernet;
mod icmp;
mod links;
mod namespace;
mod outbox;
mod packet_socket;
mod priority;
mod secrets;
mod socket;
mod standstills;
mod tun;
mod vnet;

pub use addresses::{AddressChange, AddressWatch, HostAddress};
pub use buffers::Buffers;
pub use capture::Capture;
pub use clock::Clock;
pub use driver::{Driver, DriverConfig, DriverCounters, DriverError, DriverEvent, Transport};
pub use ethernet::EthernetPort;
pub use links::{CarrierChange, CarrierWatch};
pub use namespace::Namespace;
pub use packet_socket::{Frame, Mac, PacketSocket, Select, Takes};
pub use priority::{Awake, ordinary_priority, raise_priority, set_nice};
pub use secrets::OsSecrets;
pub use standstills::{Standstill, StandstillWatch};
pub use tun::{SuperTun, Tun};
pub use vnet::Offload;
