//! Segue.

use crate::{End, MESSAGE, PACKET, RECEIVE_BUFFER, SEND_BUFFER};
use bytes::Bytes;
use segue_proto::contract::LocalAddress;
use segue_proto::random::Stream;
use segue_proto::sctp::{AssociationId, Config, Endpoint, Event, SendOptions};
use segue_proto::{Instant, InterfaceId};
use segue_wire::ipv6::HEADER_LEN;
use segue_wire::sctp::SctpPacket;
use segue_wire::{Data, Packet, Payload};
use std::net::Ipv6Addr;

const NAMES: [Ipv6Addr; 2] = [
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | 1),
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | 2),
];
const INTERFACE: InterfaceId = InterfaceId(0);

struct Segue {
    endpoint: Endpoint,
    association: Option<AssociationId>,
    is_connected: bool,
    /// Where packets are written to and read from.
    packet: Packet,
    ours: Ipv6Addr,
    theirs: Ipv6Addr,
}

impl Segue {
    fn settle(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.association = Some(id);
            self.is_connected |= event == Event::Connected;
        }
    }
}

impl End for Segue {
    fn connect(&mut self, now: u64) {
        self.association = self
            .endpoint
            .connect(Instant::from_nanos(now), &[self.theirs], 5000);
    }

    fn is_connected(&self) -> bool {
        self.is_connected
    }

    fn has_room(&mut self) -> bool {
        self.association
            .and_then(|id| self.endpoint.association(id))
            .is_some_and(|association| association.send_space() >= MESSAGE)
    }

    fn send(&mut self, now: u64, message: Vec<u8>) {
        let association = self
            .association
            .and_then(|id| self.endpoint.association_mut(id))
            .expect("it is connected");
        association
            .send(
                Instant::from_nanos(now),
                0,
                Data::Bytes(message.into()),
                SendOptions::default(),
            )
            .expect("there is room");
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) {
        let Some(association) = self.association.and_then(|id| self.endpoint.association_mut(id)) else {
            return;
        };
        while let Some(message) = association.recv() {
            for part in &message.parts {
                let Data::Bytes(bytes) = part else {
                    unreachable!("nothing here is synthetic")
                };
                take(bytes);
            }
        }
    }

    fn handle(&mut self, now: u64, packet: Bytes) {
        let sctp = SctpPacket::parse(&packet).expect("what an end has sent");
        self.packet.payload = Payload::Sctp(sctp);
        (self.packet.ip.source, self.packet.ip.destination) = (self.theirs, self.ours);
        self.endpoint
            .handle_packet_in_place(Instant::from_nanos(now), INTERFACE, &mut self.packet);
        self.settle();
    }

    fn transmit(&mut self, now: u64, put: &mut dyn FnMut(Bytes)) {
        while self
            .endpoint
            .poll_transmit_into(Instant::from_nanos(now), &mut self.packet)
            .is_some()
        {
            let Payload::Sctp(sctp) = &self.packet.payload else {
                unreachable!("nothing here is in UDP")
            };
            let mut bytes = Vec::with_capacity(sctp.buffer_len());
            sctp.emit(&mut bytes);
            put(bytes.into());
        }
        self.settle();
    }

    fn timeout(&mut self) -> Option<u64> {
        self.endpoint.poll_timeout().map(Instant::as_nanos)
    }

    fn handle_timeout(&mut self, now: u64) {
        self.endpoint.handle_timeout(Instant::from_nanos(now));
        self.settle();
    }
}

/// A client and a server.
pub fn pair() -> [Box<dyn End>; 2] {
    [0, 1].map(|side| {
        let config = Config {
            mtu: (PACKET + HEADER_LEN) as u32,
            receive_buffer: RECEIVE_BUFFER,
            send_buffer: SEND_BUFFER as u32,
            ..Config::default()
        };
        let mut endpoint = Endpoint::new(config, 5000, Box::new(Stream::new(side as u64, "in memory")));
        endpoint.add_local_address(LocalAddress {
            interface: INTERFACE,
            address: NAMES[side],
        });
        if side == 1 {
            endpoint.listen();
        }
        Box::new(Segue {
            endpoint,
            association: None,
            is_connected: false,
            packet: Packet::EMPTY,
            ours: NAMES[side],
            theirs: NAMES[1 - side],
        }) as Box<dyn End>
    })
}
