//! One TCP flow between two of our endpoints over an emulated link in virtual time.

use crate::user::User;
use crate::wire::{End, Wire};
use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::tcp::{Config, Counters, Endpoint, Event};
use segue_proto::{Duration, Instant, InterfaceId};
use segue_wire::Packet;
use std::net::Ipv6Addr;

/// What a flow came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Goodput {
    /// Bytes that the receiver's user got between the end of the warm-up and the end of the run, per second and times 8.
    pub bits_per_second: f64,
    /// Counters of the sender's connection.
    pub sender: Counters,
}

/// Has the end A send to B without end over `wire`. Both times count from the first byte received.
///
/// # Errors
/// If no connection comes about within a minute, or data is not what was sent.
pub fn goodput(
    config: &Config,
    wire: Wire<Packet>,
    warm_up: Duration,
    duration: Duration,
    seed: u64,
) -> Result<Goodput, String> {
    let mut flow = Flow::new(config, wire, seed);
    let limit = Instant::ZERO + Duration::from_secs(60);
    while flow.users[1].received() == 0 {
        if !flow.step() || flow.now > limit {
            return Err("no connection came about".to_owned());
        }
    }
    let start = flow.now;
    flow.run_until(start + warm_up);
    let before = flow.users[1].received();
    flow.run_until(start + duration);
    let after = flow.users[1].received();
    if flow.users[1].wrong() > 0 {
        return Err("data was not what was sent".to_owned());
    }
    let sender = &flow.endpoints[0];
    let (_, connection) = sender
        .connections()
        .next()
        .ok_or_else(|| "the connection was lost".to_owned())?;
    Ok(Goodput {
        bits_per_second: 8.0 * (after - before) as f64 / (duration - warm_up).as_secs_f64(),
        sender: connection.counters(),
    })
}

struct Flow {
    now: Instant,
    endpoints: [Endpoint; 2],
    users: [User; 2],
    wire: Wire<Packet>,
}

impl Flow {
    fn new(config: &Config, wire: Wire<Packet>, seed: u64) -> Self {
        let endpoint = |end: usize| {
            let secrets = Stream::new(seed, &format!("endpoint {end}"));
            let mut endpoint = Endpoint::new(config.clone(), Box::new(secrets));
            endpoint.add_local_address(local(end));
            endpoint
        };
        let mut flow = Self {
            now: Instant::ZERO,
            endpoints: [endpoint(0), endpoint(1)],
            users: [User::default(), User::default()],
            wire,
        };
        flow.endpoints[1].listen(PORT);
        flow.users[0].flood(true);
        let _ = flow.endpoints[0].connect(flow.now, local(1).address, PORT, 0);
        flow.drain(0);
        flow
    }

    /// Everything that happens until then.
    fn run_until(&mut self, end: Instant) {
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
    }

    fn next(&mut self) -> Option<Instant> {
        let wire = self.wire.poll_timeout();
        let [a, b] = &mut self.endpoints;
        [wire, a.poll_timeout(), b.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Goes on to the next arrival or timeout, and deals with it; `false` if there is none.
    fn step(&mut self) -> bool {
        let Some(at) = self.next() else { return false };
        self.now = self.now.max(at);
        while let Some(arrival) = self.wire.poll_arrival(self.now) {
            let end = arrival.end as usize;
            self.endpoints[end].handle_packet(self.now, InterfaceId(0), arrival.packet);
            self.drain(end);
        }
        for end in 0..2 {
            if self.endpoints[end]
                .poll_timeout()
                .is_some_and(|at| at <= self.now)
            {
                self.endpoints[end].handle_timeout(self.now);
                self.drain(end);
            }
        }
        true
    }

    fn drain(&mut self, end: usize) {
        let (endpoint, user) = (&mut self.endpoints[end], &mut self.users[end]);
        let from = if end == 0 { End::A } else { End::B };
        loop {
            while let Some(transmit) = endpoint.poll_transmit(self.now) {
                let length = transmit.packet.buffer_len() as u32;
                self.wire.offer(self.now, from, transmit.packet, length);
            }
            let Some((id, event)) = endpoint.poll_event() else {
                return;
            };
            if matches!(event, Event::Connected | Event::Readable | Event::Writable) {
                endpoint.command(id, |connection| user.advance(connection));
            }
        }
    }
}

const PORT: u16 = 5001;

fn local(end: usize) -> LocalAddress {
    LocalAddress {
        interface: InterfaceId(0),
        address: Ipv6Addr::new(0xfd53, 0, 0, 0, 0, 0, 0, end as u16 + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ideal;
    use segue_proto::tcp::Profile;
    use segue_proto::units::{BitRate, Packets, QueueLimit};
    use segue_sim::link::LinkConfig;

    #[test]
    fn a_flow_without_losses_fills_its_link() {
        let link = LinkConfig {
            rate: BitRate::from_bits_per_second(10_000_000),
            queue: QueueLimit::Packets(Packets::new(50)),
            ..ideal(Duration::from_millis(20))
        };
        let wire = Wire::new(link.clone(), link, 1);
        let seconds = Duration::from_secs;
        let result = goodput(&Config::new(Profile::Modern), wire, seconds(5), seconds(20), 1).unwrap();
        // 1428 bytes of data in packets of 1500
        let most = 10e6 * 1428.0 / 1500.0;
        let share = result.bits_per_second / most;
        assert!((0.97..1.0001).contains(&share), "{share} of what there is");
        assert_eq!(result.sender.recovery.timeouts, 0);
    }
}
