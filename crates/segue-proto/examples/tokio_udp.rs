//! One SCTP association between two UDP sockets, driven by a loop of our own on tokio.
#![allow(clippy::disallowed_methods, reason = "a driver has the clock")]

use segue_proto::sctp::{Association, Config, Endpoint, Event, SendOptions};
use segue_proto::{Instant, InterfaceId, contract::LocalAddress, random::Stream};
use segue_wire::{Data, Packet, Payload, ipv6::HEADER_LEN, sctp::SctpPacket};
use std::{io, net::Ipv6Addr, time::Duration};
use tokio::{net::UdpSocket, runtime, time};

/// What client and server call each other. At which socket an address is reached, the loop alone knows.
const CLIENT: Ipv6Addr = Ipv6Addr::from_bits(0x2001_0db8 << 96 | 1);
const SERVER: Ipv6Addr = Ipv6Addr::from_bits(0x2001_0db8 << 96 | 2);
const INTERFACE: InterfaceId = InterfaceId(0);
type Tell = fn(&mut Association, Instant, Event);

/// The loop: what there is to tell, what there is to send, then a packet or the timer, until the association ends.
async fn drive(mut end: Endpoint, socket: UdpSocket, names: [Ipv6Addr; 2], tell: Tell) -> io::Result<()> {
    let begun = time::Instant::now();
    let now = || Instant::from_nanos(begun.elapsed().as_nanos() as u64);
    let (mut buffer, mut packet, mut ended) = (vec![0; 65_536], Packet::EMPTY, false);
    loop {
        while let Some((id, event)) = end.poll_event() {
            ended |= matches!(event, Event::Closed | Event::Lost | Event::Aborted { .. });
            tell(end.association_mut(id).expect("it has an event"), now(), event);
        }
        while end.poll_transmit_into(now(), &mut packet).is_some() {
            socket.send(&packet.to_vec()[HEADER_LEN..]).await?;
        }
        if ended {
            return Ok(());
        }
        let timer = Duration::from_nanos(end.poll_timeout().map_or(u64::MAX >> 4, Instant::as_nanos));
        let Ok(length) = time::timeout_at(begun + timer, socket.recv(&mut buffer)).await else {
            end.handle_timeout(now());
            continue;
        };
        // What is no SCTP packet, or was damaged on its way, is as good as lost.
        if let Ok(sctp) = SctpPacket::parse(&buffer[..length?].to_vec().into()) {
            (packet.ip.source, packet.ip.destination) = (names[1], names[0]);
            packet.payload = Payload::Sctp(sctp);
            end.handle_packet_in_place(now(), INTERFACE, &mut packet);
        }
    }
}

fn endpoint(address: Ipv6Addr) -> io::Result<Endpoint> {
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let mut end = Endpoint::new(Config::default(), 5000, Box::new(Stream::from_key(key)));
    let interface = INTERFACE;
    end.add_local_address(LocalAddress { interface, address });
    Ok(end)
}

async fn run() -> io::Result<()> {
    let here = UdpSocket::bind("[::1]:0").await?;
    let there = UdpSocket::bind("[::1]:0").await?;
    here.connect(there.local_addr()?).await?;
    there.connect(here.local_addr()?).await?;
    let (mut client, mut server) = (endpoint(CLIENT)?, endpoint(SERVER)?);
    server.listen();
    let server = tokio::spawn(drive(server, there, [SERVER, CLIENT], |from, now, _| {
        // told once, until there is nothing left
        while let Some(message) = from.recv() {
            assert_eq!(message.parts[0], Data::Bytes("hello".into()));
            from.shutdown(now);
        }
    }));
    let id = client.connect(Instant::ZERO, &[SERVER], 5000).expect("id");
    let to = client.association_mut(id).expect("it has just begun");
    let hello = Data::Bytes("hello".into());
    assert_eq!(to.send(Instant::ZERO, 0, hello, SendOptions::default()), Ok(()));
    drive(client, here, [CLIENT, SERVER], |_, _, _| {}).await?;
    server.await?
}

fn main() -> io::Result<()> {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_all().build()?.block_on(run())
}
