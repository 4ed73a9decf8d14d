//! Whether anything gets through the network that a mobile node is attached to: echo requests (RFC 4443 section 4.1) to where its
//! packets go, from the address in use, while packets go there.
//!
//! A Binding Update would be answered too, but no more than three a second may be sent (RFC 6275 section 11.8), and neighbour
//! unreachability detection (RFC 4861 section 7.3) ends at the router.

use super::packet;
use crate::random::{SecretRng as _, Stream};
use crate::reachability::{Reachability, Step};
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::icmpv6::{Echo, Icmpv6};
use segue_wire::{Packet, Payload};

/// The way to where the node's packets go.
#[derive(Debug)]
pub(super) struct Silence {
    way: Reachability,
    home_agent: Ipv6Addr,
    /// Where the last packet went: a correspondent, or the home agent.
    target: Ipv6Addr,
    /// Probes since one was answered.
    unanswered: u32,
    /// In every request from one place, so that nobody who is off the path can answer it, and no one on a former path.
    cookie: u64,
    cookies: Stream,
    sequence: u16,
}

impl Silence {
    /// Nothing has been sent; `cookies` are secret.
    pub fn new(home_agent: Ipv6Addr, mut cookies: Stream) -> Self {
        Self {
            way: Reachability::default(),
            home_agent,
            target: home_agent,
            unanswered: 0,
            cookie: cookies.secret_u64(),
            cookies,
            sequence: 0,
        }
    }

    /// A packet goes to `target`.
    pub fn on_sent(&mut self, now: Instant, target: Ipv6Addr) {
        self.target = target;
        self.way.on_sent(now);
    }

    /// A packet came to the address in use.
    pub fn on_heard(&mut self, now: Instant) {
        self.way.on_heard(now);
    }

    /// The node is attached elsewhere.
    pub fn on_moved(&mut self) {
        self.way.on_moved();
        self.unanswered = 0;
        self.cookie = self.cookies.secret_u64();
    }

    /// Nothing is to be known: there is nowhere else to go.
    pub fn stop(&mut self) {
        self.way.on_moved();
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.way.poll_timeout()
    }

    /// What is to be done now.
    pub fn handle_timeout(&mut self, now: Instant) -> Step {
        self.way.handle_timeout(now)
    }

    /// A probe: to where packets go, and once that has not answered, every other time to the home agent. A correspondent that is
    /// dead says nothing of this network.
    pub fn request(&mut self, source: Ipv6Addr) -> Packet {
        self.sequence = self.sequence.wrapping_add(1);
        let echo = Echo {
            identifier: self.identifier(),
            sequence: self.sequence,
            data: Bytes::copy_from_slice(&self.cookie.to_be_bytes()),
        };
        let payload = Payload::Icmpv6(Icmpv6::EchoRequest(echo));
        let target = if self.unanswered % 2 == 1 {
            self.home_agent
        } else {
            self.target
        };
        self.unanswered += 1;
        packet(source, target, Vec::new(), payload)
    }

    /// Takes the answer to a probe. Whether it is one.
    pub fn take_reply(&mut self, now: Instant, packet: &Packet) -> bool {
        let Payload::Icmpv6(Icmpv6::EchoReply(echo)) = &packet.payload else {
            return false;
        };
        let ours = echo.identifier == self.identifier() && *echo.data == self.cookie.to_be_bytes();
        if ours {
            self.way.on_answer(now);
            self.unanswered = 0;
        }
        ours
    }

    fn identifier(&self) -> u16 {
        self.cookie as u16
    }
}
