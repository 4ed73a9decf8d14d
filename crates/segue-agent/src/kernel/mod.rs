//! What the agent sets up on the machine, each thing so that it goes when the agent does.

mod addresses;
mod fast_path;
mod guard;
mod netlink;
mod next_hops;
mod port;
mod routes;

pub(crate) use addresses::{VALID_FOR, add, hold_at_device, mtu_of, remove, set_up_device};
pub(crate) use fast_path::Programs;
pub(crate) use guard::Guard;
pub(crate) use netlink::Requests;
pub(crate) use next_hops::NextHops;
pub(crate) use port::{Port, Routed, offload_of, whole};
pub(crate) use routes::{Route, Routes, Rules, Table};
