//! sctp-proto.

use crate::{End, MESSAGE, PACKET, RECEIVE_BUFFER, SEND_BUFFER};
use bytes::Bytes;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier, ServerConfig, StreamEvent, TransportConfig,
};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

const STREAM: u16 = 0;
const PPID: PayloadProtocolIdentifier = PayloadProtocolIdentifier::Binary;

struct SctpProto {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    transport: Arc<TransportConfig>,
    /// What it calls time 0.
    begun: Instant,
    is_connected: bool,
    is_client: bool,
    buffer: Vec<u8>,
}

impl SctpProto {
    fn at(&self, now: u64) -> Instant {
        self.begun + Duration::from_nanos(now)
    }

    fn peer(&self) -> SocketAddr {
        (Ipv6Addr::LOCALHOST, if self.is_client { 2 } else { 1 }).into()
    }

    fn settle(&mut self) {
        let Some((handle, association)) = &mut self.association else {
            return;
        };
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => {
                    self.is_connected = true;
                    if self.is_client {
                        association.open_stream(STREAM, PPID).expect("it is the first");
                    }
                }
                Event::Stream(StreamEvent::Opened { .. }) => {
                    association.accept_stream();
                }
                Event::HandshakeFailed { reason } | Event::AssociationLost { reason } => {
                    panic!("lost: {reason}")
                }
                _ => {}
            }
        }
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                association.handle_event(event);
            }
        }
    }
}

impl End for SctpProto {
    fn connect(&mut self, _: u64) {
        let mut config = ClientConfig::new();
        config.transport = self.transport.clone();
        let peer = self.peer();
        self.association = Some(self.endpoint.connect(config, peer).expect("a good address"));
    }

    fn is_connected(&self) -> bool {
        self.is_connected
    }

    fn has_room(&mut self) -> bool {
        let (_, association) = self.association.as_mut().expect("it is connected");
        let stream = association.stream(STREAM).expect("it is open");
        stream.buffered_amount().expect("it is open") + MESSAGE <= SEND_BUFFER
    }

    fn send(&mut self, _: u64, message: Vec<u8>) {
        let (_, association) = self.association.as_mut().expect("it is connected");
        let mut stream = association.stream(STREAM).expect("it is open");
        stream.write_sctp(&message.into(), PPID).expect("there is room");
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) {
        let Some((_, association)) = &mut self.association else {
            return;
        };
        let Ok(mut stream) = association.stream(STREAM) else {
            return;
        };
        while let Ok(Some(chunks)) = stream.read_sctp() {
            let length = chunks.read(&mut self.buffer).expect("it fits");
            take(&self.buffer[..length]);
        }
    }

    fn handle(&mut self, now: u64, packet: Bytes) {
        let (at, peer) = (self.at(now), self.peer());
        match self.endpoint.handle(at, peer, None, None, packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association = Some((handle, association))
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            None => {}
        }
        self.settle();
    }

    fn transmit(&mut self, now: u64, put: &mut dyn FnMut(Bytes)) {
        let at = self.at(now);
        while let Some(transmit) = self.endpoint.poll_transmit() {
            if let Payload::RawEncode(packets) = transmit.payload {
                packets.into_iter().for_each(&mut *put);
            }
        }
        if let Some((_, association)) = &mut self.association {
            while let Some(transmit) = association.poll_transmit(at) {
                if let Payload::RawEncode(packets) = transmit.payload {
                    packets.into_iter().for_each(&mut *put);
                }
            }
        }
        self.settle();
    }

    fn timeout(&mut self) -> Option<u64> {
        let (_, association) = self.association.as_ref()?;
        let at = association.poll_timeout()?;
        Some(at.saturating_duration_since(self.begun).as_nanos() as u64)
    }

    fn handle_timeout(&mut self, now: u64) {
        let at = self.at(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(at);
        }
        self.settle();
    }
}

/// A client and a server.
pub fn pair() -> [Box<dyn End>; 2] {
    [true, false].map(|is_client| {
        let transport = Arc::new(TransportConfig::default().with_max_receive_buffer_size(RECEIVE_BUFFER));
        let mut config = EndpointConfig::new();
        // It adds SCTP's common header and a DATA chunk's.
        config.max_payload_size((PACKET - 12 - 16) as u32);
        let mut server = ServerConfig::new();
        server.transport = transport.clone();
        Box::new(SctpProto {
            endpoint: Endpoint::new(Arc::new(config), (!is_client).then(|| Arc::new(server))),
            association: None,
            transport,
            begun: Instant::now(),
            is_connected: false,
            is_client,
            buffer: vec![0; MESSAGE],
        }) as Box<dyn End>
    })
}
