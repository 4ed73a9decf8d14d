//! ILNPv6 or Mobile IPv6 under the applications of a machine that goes on being what it is: the parts of `segue-agent` that do no I/O.
//!
//! ```text
//!   applications, the kernel's TCP and UDP        identity <-> identity
//!   TUN device                                    kernel/ : what is set up on the machine
//!   ------------------------------------------------------------------------------------
//!   Stack       the role between the device and the interfaces: a shim, or what a machine that stays does (Fixed)
//!   FastPath    which packets the kernel carries by itself, past the stack
//!   Locators    which addresses the agent has beside the kernel's own, and which of them can be used
//!   Moves       which interface is used, and when that changes
//!   Names       a resolver for applications, a directory for the shim, and what is published of this host
//!   Networks    what the file says of the network that it leads to
//!   ------------------------------------------------------------------------------------
//!   interfaces  packets to the agent's addresses alone; all else is the kernel's
//! ```
//!
//! Each is handed what happened and the time, and says what is to be done. `run` joins them with the kernel.

pub mod config;
pub mod fast_path;
pub mod fixed;
pub mod locators;
pub mod moves;
pub mod names;
pub mod networks;
mod packets;
pub mod paths;
pub mod stack;
mod strangers;
