//! ICMPv6 errors about packets of ours: they quote locators, and transports know identities. One of them says that the peer
//! does not know the nonce.

use super::Ilnp;
use crate::ilnp::config::NonceIn;
use crate::ilnp::correspondent::Correspondent;
use crate::ilnp::mode::{Mode, Plain};
use crate::ilnp::nonce;
use crate::ilnp::session_key::SessionKey;
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::checksum::PseudoHeader;
use segue_wire::icmpv6::Icmpv6;
use segue_wire::icmpv6::invoking::MIN_MTU;
use segue_wire::ilnp::{Locator, Nid, Nonce};
use segue_wire::ipv6::{HEADER_LEN, ILNP_NONCE, Ipv6Option};
use segue_wire::raw::ChecksumState;
use segue_wire::reader::Reader;
use segue_wire::{ExtensionHeader, Ipv6Header, Packet, ParseError, Payload, PseudoRule, RawPayload};

/// Code of an ICMPv6 parameter problem: unrecognised IPv6 option (RFC 4443 section 3.4).
const UNRECOGNIZED_OPTION: u8 = 2;

impl Ilnp {
    /// An error: whether it goes up. One about a packet of a session must quote its nonce and its locators, or anybody could send it.
    pub(super) fn take_error(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Payload::Icmpv6(message) = &mut packet.payload else {
            return true;
        };
        let Some(quoted) = message.invoking().and_then(|bytes| Quoted::parse(bytes).ok()) else {
            return true;
        };
        let (source, destination) = (quoted.ip.source, quoted.ip.destination);
        // transports would take it for theirs, but the identity is never on the wire
        if source == self.identity && self.local.of(source).is_none() {
            self.out.counters.icmp_not_ours += 1;
            return false;
        }
        let (nid, local_nid) = (Nid::of(destination), Nid::of(source));
        let here = self.local.of(source).is_some();
        let active_time = self.config.active_time;
        let at_locators = |c: &Correspondent| here && c.knows(Locator::of(destination), now, active_time);
        let is_plain = |c: &Correspondent| c.is_plain();
        let nonce = quoted.nonce;
        let bare = self.config.nonce_in == NonceIn::SessionStartAndSignalling;
        let mut sessions = self.ilcc.between(nid, local_nid).peekable();
        if sessions.peek().is_none() {
            return true;
        }
        let found = match nonce {
            Some((nonce, _)) => sessions.find(|c| !is_plain(c) && at_locators(c) && nonce == c.local_nonce()),
            None => sessions.find(|c| {
                c.mode().is_plain_between(source, destination) || (bare && !is_plain(c) && at_locators(c))
            }),
        };
        let found = found.map(Correspondent::key);
        drop(sessions);
        let Some(key) = found else {
            if nonce.is_some() {
                self.out.counters.icmp_not_ours += 1;
                return false;
            }
            // about a flow that is plain IPv6
            return true;
        };
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return true;
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
                    self.fall_back(key, Plain::reported(now, source, destination));
                }
                return false;
            }
            _ => {}
        }
        let rule = peer.rule().unwrap_or(self.config.checksum.into());
        let rule = if nonce.is_some() { rule } else { PseudoRule::Ipv6 };
        quote(message, quoted.between((self.identity, identity), rule, None));
        packet.ip.destination = self.identity;
        true
    }

    /// An error that came with the nonce of a session: what it quotes of a packet of this host's, transports are to know again. The
    /// peer has said it as the packet was on the wire; one that quotes identities is left as it is.
    pub(super) fn read_quotation(&mut self, key: SessionKey, packet: &mut Packet) {
        let Payload::Icmpv6(message) = &mut packet.payload else {
            return;
        };
        let Some(quoted) = message.invoking().and_then(|bytes| Quoted::parse(bytes).ok()) else {
            return;
        };
        let Some(peer) = self.ilcc.by_key_mut(key) else {
            return;
        };
        let ours = self.local.of(quoted.ip.source).is_some() && Nid::of(quoted.ip.destination) == peer.nid();
        let nonce = quoted.nonce.map(|(nonce, _)| nonce);
        if !ours || nonce.is_some_and(|nonce| nonce != peer.local_nonce()) {
            return;
        }
        let rule = peer.rule().unwrap_or(self.config.checksum.into());
        let rule = if nonce.is_some() { rule } else { PseudoRule::Ipv6 };
        quote(
            message,
            quoted.between((self.identity, peer.identity()), rule, None),
        );
    }

    /// Whether a packet quotes another, which has to be as it was on the wire.
    pub(super) fn must_quote(&self, packet: &Packet) -> bool {
        self.config.translate_errors
            && matches!(&packet.payload, Payload::Icmpv6(message) if message.is_error())
    }
}

/// Has an error of this host's quote the peer's packet as it was on the wire: between these addresses, `here` and `there`, and
/// with the peer's nonce. Whoever is on the way, a firewall that lets errors pass about what it has let out, knows it again, and
/// so does the peer. Both nonces in it, it is no longer than an error may be (RFC 4443 section 2.4 c).
pub(super) fn quote_as_sent(
    packet: &mut Packet,
    (here, there): (Ipv6Addr, Ipv6Addr),
    nonce: Option<(Nonce, PseudoRule)>,
) {
    /// Of an error: type, code, checksum, and the word behind them.
    const HEAD: usize = 8;
    /// The longer of the two nonces in UDP, which is more than with the option's header.
    const NONCE: usize = 24;
    let (own, peer) = (packet.ip.source, packet.ip.destination);
    let Payload::Icmpv6(message) = &mut packet.payload else {
        return;
    };
    if !message.is_error() {
        return;
    }
    let Some(quoted) = message.invoking().and_then(|bytes| Quoted::parse(bytes).ok()) else {
        return;
    };
    // the kernel has seen it between identities
    if (quoted.ip.source, quoted.ip.destination) != (peer, own) {
        return;
    }
    let mut sent = quoted.between((there, here), PseudoRule::Ipv6, nonce);
    sent.truncate(MIN_MTU - HEADER_LEN - HEAD - NONCE);
    quote(message, sent);
}

/// Has an error quote this.
fn quote(message: &mut Icmpv6, bytes: Bytes) {
    match message {
        Icmpv6::DestinationUnreachable { invoking, .. }
        | Icmpv6::PacketTooBig { invoking, .. }
        | Icmpv6::TimeExceeded { invoking, .. }
        | Icmpv6::ParameterProblem { invoking, .. } => *invoking = bytes,
        _ => {}
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
    /// It is a fragment, and perhaps not the first: without the transport's header.
    fragment: Option<Place>,
}

/// Where a fragment is in what was cut up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Behind,
}

impl Quoted {
    fn parse(bytes: &Bytes) -> Result<Self, ParseError> {
        let mut reader = Reader::new(bytes, "invoking packet");
        let (ip, payload_length, mut next_header) = Ipv6Header::parse(&mut reader)?;
        let mut extensions = Vec::new();
        let mut nonce = None;
        let mut fragment = None;
        while fragment != Some(Place::Behind) && ExtensionHeader::is_known(next_header) {
            let start = bytes.len() - reader.remaining();
            let (extension, following) = ExtensionHeader::parse(next_header, &mut reader)?;
            if extension.is_incomplete_fragment() {
                let first = matches!(extension, ExtensionHeader::Fragment { offset: 0, .. });
                fragment = Some(if first { Place::First } else { Place::Behind });
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
            fragment,
        })
    }

    /// The packet between other addresses, with another nonce or none. The transport's checksum, which followed `rule`, is adjusted; it
    /// may be cut off, and nobody verifies it. A path MTU in the error stays what it is.
    fn between(
        mut self,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        rule: PseudoRule,
        nonce: Option<(Nonce, PseudoRule)>,
    ) -> Bytes {
        let mut transport = RawPayload {
            next_header: self.next_header,
            bytes: self.rest,
            checksum: ChecksumState::Complete,
            segment_size: None,
        };
        let before = PseudoHeader {
            source: self.ip.source,
            destination: self.ip.destination,
        };
        let after = PseudoHeader { source, destination };
        // fragments are under IPv6's rule
        let whole = |rule| {
            if self.fragment.is_none() {
                rule
            } else {
                PseudoRule::Ipv6
            }
        };
        let new_rule = nonce.map_or(PseudoRule::Ipv6, |(_, rule)| rule);
        if self.fragment != Some(Place::Behind) {
            transport.adjust(&before.under(whole(rule)), &after.under(whole(new_rule)));
        }
        let len = |extensions: &[ExtensionHeader]| -> usize {
            extensions.iter().map(ExtensionHeader::buffer_len).sum()
        };
        let length = len(&self.extensions);
        self.extensions.retain_mut(|extension| {
            let ExtensionHeader::DestinationOptions(options) = extension else {
                return true;
            };
            options.retain(|o| !matches!(o, Ipv6Option::IlnpNonce { .. }));
            !options.is_empty()
        });
        if let Some((nonce, rule)) = nonce {
            nonce::insert_into(&mut self.extensions, nonce, rule);
        }
        let payload_length = usize::from(self.payload_length) + len(&self.extensions);
        let payload_length = payload_length.saturating_sub(length) as u16;
        self.ip.source = source;
        self.ip.destination = destination;
        let mut out = Vec::with_capacity(HEADER_LEN + transport.bytes.len());
        let types: Vec<u8> = self
            .extensions
            .iter()
            .map(ExtensionHeader::header_type)
            .chain([self.next_header])
            .collect();
        self.ip.emit(payload_length, types[0], &mut out);
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
