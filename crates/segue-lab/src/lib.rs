//! Real stacks over the simulator's links in real time.
//!
//! A [`Wire`](wire::Wire) is a link of the simulator, both directions of it, that carries whatever it is given under whatever
//! clock its driver has. The program `segue-lab` puts TUN devices of the kernel at its ends, or one of our own endpoints at
//! one of them, and drives it by the monotonic clock: what is measured over it in real time and in virtual time has crossed
//! the same code.

pub mod flow;
pub mod lateness;
pub mod node;
pub mod proxy;
pub mod user;
pub mod wire;
