//! ICMPv6 errors about packets of ours: they quote locators, and transports know identities. One of them says that the peer
//! does not know the nonce.

use super::Ilnp;
use crate::ilnp::config::NonceIn;
use crate::ilnp::correspondent::Correspondent;
use crate::ilnp::mode::Mode;
use crate::shim::Inbound;
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::checksum::PseudoHeader;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::ilnp::{Locator, Nid, Nonce};
use segue_wire::ipv6::{HEADER_LEN, ILNP_NONCE, Ipv6Option};
use segue_wire::raw::ChecksumState;
use segue_wire::reader::Reader;
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, ParseError, Payload, PseudoRule, RawPayload};

/// Code of an ICMPv6 parameter problem: unrecognised IPv6 option (RFC 4443 section 3.4).
const UNRECOGNIZED_OPTION: u8 = 2;

impl Ilnp {
    /// An error. One about a packet of a session must quote its nonce and its locators, or anybody could send it.
    pub(super) fn take_error(&mut self, now: Instant, mut packet: Packet) -> Inbound {
        let Payload::Icmpv6(message) = &mut packet.payload else {
            return Inbound::Up(packet);
        };
        let Some(quoted) = message.invoking().and_then(|bytes| Quoted::parse(bytes).ok()) else {
            return Inbound::Up(packet);
        };
        let (source, destination) = (quoted.ip.source, quoted.ip.destination);
        // transports would take it for theirs, but the identity is never on the wire
        if source == self.identity && self.local.of(source).is_none() {
            self.out.counters.icmp_not_ours += 1;
            return Inbound::Taken;
        }
        let (nid, local_nid) = (Nid::of(destination), Nid::of(source));
        let here = self.local.of(source).is_some();
        let active_time = self.config.active_time;
        let at_locators = |c: &Correspondent| here && c.knows(Locator::of(destination), now, active_time);
        let plain = Mode::Plain {
            local: source,
            remote: destination,
        };
        let is_plain = |c: &Correspondent| c.is_plain();
        let nonce = quoted.nonce;
        let bare = self.config.nonce_in == NonceIn::SessionStartAndSignalling;
        let mut sessions = self.ilcc.between(nid, local_nid).peekable();
        if sessions.peek().is_none() {
            return Inbound::Up(packet);
        }
        let found = match nonce {
            Some((nonce, _)) => sessions.find(|c| !is_plain(c) && at_locators(c) && nonce == c.local_nonce()),
            None => sessions.find(|c| c.mode() == plain || (bare && !is_plain(c) && at_locators(c))),
        };
        let found = found.map(Correspondent::key);
        drop(sessions);
        let Some(key) = found else {
            if nonce.is_some() {
                self.out.counters.icmp_not_ours += 1;
                return Inbound::Taken;
            }
            // about a flow that is plain IPv6
            return Inbound::Up(packet);
        };
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return Inbound::Up(packet);
        };
        let identity = peer.identity();
        match (&message, nonce) {
            (
                Icmpv6::ParameterProblem {
                    code: UNRECOGNIZED_OPTION,
                    pointer,
                    ..
                },
                Some((_, at)),
            ) if *pointer as usize == at => {
                if peer.mode() == Mode::Ilnp {
                    self.out.counters.fallback_refused += 1;
                } else {
                    self.fall_back(key, source, destination);
                }
                return Inbound::Taken;
            }
            _ => {}
        }
        let rule = peer.rule().unwrap_or(self.config.checksum.into());
        let rule = if nonce.is_some() { rule } else { PseudoRule::Ipv6 };
        let translated = quoted.with_identities(self.identity, identity, rule);
        match message {
            Icmpv6::DestinationUnreachable { invoking, .. }
            | Icmpv6::PacketTooBig { invoking, .. }
            | Icmpv6::TimeExceeded { invoking, .. }
            | Icmpv6::ParameterProblem { invoking, .. } => *invoking = translated,
            _ => {}
        }
        packet.ip.destination = self.identity;
        Inbound::Up(packet)
    }
}

/// The start of a packet of ours.
struct Quoted {
    ip: Ipv6Header,
    payload_length: u16,
    extensions: Vec<ExtensionHeader>,
    next_header: u8,
    rest: Bytes,
    /// The nonce, and where its option begins in the packet.
    nonce: Option<(Nonce, usize)>,
}

impl Quoted {
    fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "invoking packet");
        let (ip, payload_length, mut next_header) = Ipv6Header::parse(&mut reader)?;
        let mut extensions = Vec::new();
        let mut nonce = None;
        while ExtensionHeader::is_known(next_header) {
            let start = bytes.len() - reader.remaining();
            let (extension, following) = ExtensionHeader::parse(next_header, &mut reader)?;
            if extension.is_incomplete_fragment() {
                return Err(ParseError::BadValue("invoking fragment"));
            }
            if let ExtensionHeader::DestinationOptions(options) = &extension {
                for option in options {
                    if let Ipv6Option::IlnpNonce { nonce: found, .. } = option
                        && let Some(at) = position_of_nonce(bytes, start)
                    {
                        nonce = nonce.or(Some((*found, at)));
                    }
                }
            }
            next_header = following;
            extensions.push(extension);
        }
        Ok(Self {
            ip,
            payload_length,
            extensions,
            next_header,
            rest: reader.rest(),
            nonce,
        })
    }

    /// The packet as the transport sent it. A path MTU in the error stays what it is: transports subtract
    /// [`overhead`](crate::shim::Shim::overhead) themselves.
    /// The transport's checksum, which followed `rule`, is adjusted.
    fn with_identities(mut self, source: Ipv6Addr, destination: Ipv6Addr, rule: PseudoRule) -> Bytes {
        let mut transport = RawPayload {
            next_header: self.next_header,
            bytes: self.rest,
            checksum: ChecksumState::Complete,
            segment_size: None,
        };
        let sent = PseudoHeader {
            source: self.ip.source,
            destination: self.ip.destination,
        };
        transport.adjust(&sent.under(rule), &PseudoHeader { source, destination });
        let len = |extensions: &[ExtensionHeader]| -> usize {
            extensions.iter().map(ExtensionHeader::buffer_len).sum()
        };
        let before = len(&self.extensions);
        self.extensions.retain_mut(|extension| {
            let ExtensionHeader::DestinationOptions(options) = extension else {
                return true;
            };
            options.retain(|o| !matches!(o, Ipv6Option::IlnpNonce { .. }));
            !options.is_empty()
        });
        let shorter = before.saturating_sub(len(&self.extensions)) as u16;
        self.ip.source = source;
        self.ip.destination = destination;
        let mut out = Vec::with_capacity(HEADER_LEN + transport.bytes.len());
        let types: Vec<u8> = self
            .extensions
            .iter()
            .map(ExtensionHeader::header_type)
            .chain([self.next_header])
            .collect();
        self.ip
            .emit(self.payload_length.saturating_sub(shorter), types[0], &mut out);
        for (extension, following) in self.extensions.iter().zip(&types[1..]) {
            extension.emit(*following, &mut out);
        }
        out.extend_from_slice(&transport.bytes);
        out.into()
    }
}

/// Where the nonce option begins that is in the destination options header at `start`.
fn position_of_nonce(bytes: &[u8], start: usize) -> Option<usize> {
    const PAD_1: u8 = 0;
    let mut at = start + 2;
    loop {
        match *bytes.get(at)? {
            ILNP_NONCE => return Some(at),
            PAD_1 => at += 1,
            _ => at += 2 + usize::from(*bytes.get(at + 1)?),
        }
    }
}
