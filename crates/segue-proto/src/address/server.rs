//! The server's side of DHCPv6, as an access router runs it (RFC 8415 section 18.3).

use super::config::ServerConfig;
use super::{PREFERENCE, duid, message_to, udp_packet};
use crate::contract::{InterfaceId, Transmit};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::Packet;
use segue_wire::dhcpv6::{
    CLIENT_PORT, Dhcpv6Message, Dhcpv6Option, IaAddress, IaNa, MessageType, SERVER_PORT,
};
use segue_wire::icmpv6::nd::LinkLayerAddress;
use std::collections::{BTreeMap, VecDeque};

/// A DHCPv6 server on one link.
#[derive(Debug)]
pub struct Dhcpv6Server {
    interface: InterfaceId,
    link_local: Ipv6Addr,
    duid: Bytes,
    prefix: Ipv6Addr,
    config: ServerConfig,
    /// Addresses by client (DUID, IAID). A client that comes back gets the same one.
    bindings: BTreeMap<(Bytes, u32), Ipv6Addr>,
    /// Interface identifier of the next address: none is given twice.
    next_identifier: u64,
    /// Answers with their times, in order: the delay is the same for all.
    answers: VecDeque<(Instant, Packet)>,
    ignored: u64,
}

impl Dhcpv6Server {
    /// A server that hands out addresses of the /64 `prefix`, from interface identifier 0x1000 on.
    #[must_use]
    pub fn new(
        interface: InterfaceId,
        link_layer: LinkLayerAddress,
        prefix: Ipv6Addr,
        config: ServerConfig,
    ) -> Self {
        Self {
            interface,
            link_local: crate::nd::link_local(link_layer),
            duid: duid(link_layer),
            prefix,
            config,
            bindings: BTreeMap::new(),
            next_identifier: FIRST_IDENTIFIER,
            answers: VecDeque::new(),
            ignored: 0,
        }
    }

    /// Takes a packet that arrived over the link; anything but UDP to port 547 is ignored.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let Some(message) = message_to(packet, SERVER_PORT) else {
            return;
        };
        let Some(answer) = self.answer(&message) else {
            self.ignored += 1;
            return;
        };
        let packet = udp_packet(
            (self.link_local, SERVER_PORT),
            (packet.ip.source, CLIENT_PORT),
            &answer,
        );
        self.answers.push_back((now + self.config.reply_delay, packet));
    }

    /// Nothing is to be done here: answers that are due come from `poll_transmit`.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// The next packet to send. Poll until `None` after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.answers.front().filter(|a| a.0 <= now)?;
        let (_, packet) = self.answers.pop_front()?;
        Some(Transmit {
            interface: self.interface,
            packet,
        })
    }

    /// When `handle_timeout` must be called next. Poll after `poll_transmit` has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.answers.front().map(|a| a.0)
    }

    /// Messages that got no answer.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    fn answer(&mut self, message: &Dhcpv6Message) -> Option<Dhcpv6Message> {
        let (mut client, mut server, mut ia, mut rapid) = (None, None, None, false);
        for option in &message.options {
            match option {
                Dhcpv6Option::ClientIdentifier(id) => client = Some(id.clone()),
                Dhcpv6Option::ServerIdentifier(id) => server = Some(id),
                Dhcpv6Option::IaNa(i) => ia = Some(i),
                Dhcpv6Option::RapidCommit => rapid = true,
                _ => {}
            }
        }
        let (client, ia) = (client?, ia?);
        let for_us = server.is_some_and(|s| *s == self.duid);
        let rapid = rapid && self.config.rapid_commit;
        let message_type = match message.message_type {
            MessageType::Solicit if server.is_some() => return None,
            MessageType::Solicit if rapid => MessageType::Reply,
            MessageType::Solicit => MessageType::Advertise,
            MessageType::Request | MessageType::Renew if for_us => MessageType::Reply,
            MessageType::Rebind if server.is_none() => MessageType::Reply,
            MessageType::Release | MessageType::Decline if for_us => {
                // no address is given twice, so that one that is declined is not offered again (section 18.3.8)
                self.bindings.remove(&(client.clone(), ia.iaid));
                let status = Dhcpv6Option::StatusCode {
                    code: 0,
                    message: Bytes::new(),
                };
                return Some(self.message(MessageType::Reply, message, client, vec![status]));
            }
            _ => return None,
        };
        let address = IaAddress {
            address: self.bind(&client, ia.iaid),
            preferred_lifetime_s: whole_seconds(self.config.preferred_lifetime),
            valid_lifetime_s: whole_seconds(self.config.valid_lifetime),
        };
        // T1 and T2 are 0.5 and 0.8 times the preferred lifetime (section 21.4).
        let preferred = address.preferred_lifetime_s;
        let mut options = vec![Dhcpv6Option::IaNa(IaNa {
            iaid: ia.iaid,
            t1_s: preferred / 2,
            t2_s: (u64::from(preferred) * 4 / 5) as u32,
            addresses: vec![address],
        })];
        if let Some(preference) = self
            .config
            .preference
            .filter(|_| message_type == MessageType::Advertise)
        {
            let data = Bytes::copy_from_slice(&[preference]);
            options.push(Dhcpv6Option::Unknown {
                code: PREFERENCE,
                data,
            });
        }
        if rapid && message.message_type == MessageType::Solicit {
            options.push(Dhcpv6Option::RapidCommit);
        }
        Some(self.message(message_type, message, client, options))
    }

    fn message(
        &self,
        message_type: MessageType,
        asked: &Dhcpv6Message,
        client: Bytes,
        rest: Vec<Dhcpv6Option>,
    ) -> Dhcpv6Message {
        let mut options = vec![
            Dhcpv6Option::ClientIdentifier(client),
            Dhcpv6Option::ServerIdentifier(self.duid.clone()),
        ];
        options.extend(rest);
        Dhcpv6Message {
            message_type,
            transaction_id: asked.transaction_id,
            options,
        }
    }

    fn bind(&mut self, client: &Bytes, iaid: u32) -> Ipv6Addr {
        let key = (client.clone(), iaid);
        if let Some(address) = self.bindings.get(&key) {
            return *address;
        }
        let mut octets = self.prefix.octets();
        octets[8..].copy_from_slice(&self.next_identifier.to_be_bytes());
        self.next_identifier += 1;
        let address = Ipv6Addr::from(octets);
        self.bindings.insert(key, address);
        address
    }
}

/// Interface identifier of the first address handed out.
const FIRST_IDENTIFIER: u64 = 0x1000;

fn whole_seconds(lifetime: Duration) -> u32 {
    u32::try_from(lifetime.as_millis() / 1000).unwrap_or(u32::MAX)
}
