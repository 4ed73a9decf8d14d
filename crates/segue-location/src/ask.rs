//! One update or look-up over a UDP socket.

use crate::serve::mapped;
use crate::{OsRandom, unix_nanos};
use anyhow::{Context as _, Result};
use segue_proto::Instant;
use segue_proto::location::{Client, ClientConfig, ClientEvent, Datagram};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Has a client of `config` do `what`, and returns its first event. The configuration's Unix time is set here;
/// `clock_offset_s` is added to it.
///
/// # Errors
/// What is wrong with the configuration, or no socket can be had.
pub fn ask(
    mut config: ClientConfig,
    clock_offset_s: i64,
    what: impl FnOnce(&mut Client, Instant),
) -> Result<ClientEvent> {
    config.unix_at_zero = (unix_nanos() / 1_000_000_000).saturating_add_signed(clock_offset_s);
    // the time of day may be set meanwhile, which is no reason to ask again, or to wait for longer
    #[expect(clippy::disallowed_methods, reason = "the driver's clock")]
    let zero = std::time::Instant::now();
    let v4 = config.servers.iter().all(|(a, _)| a.to_ipv4_mapped().is_some());
    let any: SocketAddr = if v4 {
        ([0, 0, 0, 0], 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    #[expect(clippy::disallowed_methods, reason = "the driver's socket")]
    let socket = UdpSocket::bind(any).context("no UDP socket can be had")?;
    let mut client = Client::new(config, Box::new(OsRandom))?;
    let now = || Instant::from_nanos(zero.elapsed().as_nanos() as u64);
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut local_port = 0;
    what(&mut client, now());
    loop {
        while let Some(datagram) = client.poll_transmit() {
            local_port = datagram.local_port;
            let address = match datagram.peer.to_ipv4_mapped() {
                Some(a) if v4 => IpAddr::V4(a),
                _ => IpAddr::V6(datagram.peer),
            };
            // A server that cannot be reached now is as good as silent.
            let _ = socket.send_to(&datagram.data, SocketAddr::new(address, datagram.peer_port));
        }
        if let Some(event) = client.poll_event() {
            return Ok(event);
        }
        let wait = client.poll_timeout().map_or(Duration::from_secs(1), |at| {
            Duration::from_nanos((at - now()).as_nanos()).max(Duration::from_millis(1))
        });
        socket.set_read_timeout(Some(wait))?;
        match socket.recv_from(&mut buffer) {
            Ok((len, peer)) => {
                let data = buffer[..len].to_vec().into();
                let (peer, peer_port) = (mapped(peer.ip()), peer.port());
                client.handle_datagram(
                    now(),
                    &Datagram {
                        peer,
                        peer_port,
                        local_port,
                        data,
                    },
                );
            }
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock
                        | ErrorKind::TimedOut
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(e).context("receiving failed"),
        }
        client.handle_timeout(now());
    }
}
