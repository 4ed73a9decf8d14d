//! The numbers that a script chooses for itself and the real ones: tags and TSNs of the endpoint, and what its packets said
//! that injected ones repeat.

use super::codec::{self, Fill, Offsets};
use crate::drill::layout::{Class, Item, Layout};
use crate::script::auth::PeerAuth;
use bytes::Bytes;
use core::net::Ipv6Addr;
use segue_wire::sctp::{Chunk, Parameter, SctpPacket};
use segue_wire::{Packet, Payload};
use std::collections::BTreeMap;

/// Tags and TSNs of both ends, and what was last said.
#[derive(Default)]
pub struct Numbers {
    /// The endpoint's tag: the script's, and the real one.
    tag: Option<(u32, u32)>,
    /// The endpoint's initial TSN: the script's, and the real one.
    tsn: Option<(u32, u32)>,
    /// The tag of the endpoint's last INIT or INIT ACK.
    last_tag: u32,
    /// Tags of the peer's INITs and INIT ACKs; the peer is the script, and its numbers are the real ones.
    peer_tags: Vec<u32>,
    /// The tag of the last injected packet, which answers out of the blue reflect.
    injected_tag: u32,
    /// Whether the last injected packet has an ABORT.
    peer_aborts: bool,
    cookie: Vec<u8>,
    /// What the last HEARTBEAT to each address of the peer says.
    heartbeats: BTreeMap<Ipv6Addr, Vec<u8>>,
    /// Where the packet that is being made comes from.
    source: Option<Ipv6Addr>,
    /// Parameters of the last INIT or INIT ACK of the endpoint, and of the peer, for the keys of AUTH.
    parameters: (Vec<Parameter>, Vec<Parameter>),
    /// The shared key that AUTH chunks of the script use: identifier and key.
    shared_key: (u16, Bytes),
}

impl Numbers {
    /// What is added to the numbers in a packet of the endpoint.
    pub fn outbound(&self) -> Offsets {
        Offsets {
            own: self.tsn_offset(),
            peer: 0,
        }
    }

    /// What is added to the numbers in a packet of the peer.
    pub fn inbound(&self) -> Offsets {
        Offsets {
            own: 0,
            peer: self.tsn_offset(),
        }
    }

    fn tsn_offset(&self) -> u32 {
        self.tsn.map_or(0, |(script, real)| real.wrapping_sub(script))
    }

    /// The endpoint's tag, for packets to it.
    pub fn tag(&self) -> u32 {
        self.tag.map_or(self.last_tag, |(_, real)| real)
    }

    /// A tag that a script writes for the endpoint's. Others than the endpoint's keep their distance from it, and are never
    /// zero.
    pub fn real_tag(&self, script: u32) -> u32 {
        match self.tag {
            Some((ours, real)) if script != 0 => real.wrapping_add(script.wrapping_sub(ours)).max(1),
            _ => script,
        }
    }

    /// The script's number for the endpoint's tag; any other stays as it is.
    pub fn script_tag(&self, real: u32) -> u32 {
        match self.tag {
            Some((script, ours)) if ours == real => script,
            _ => real,
        }
    }

    /// The script's tag and TSN of an INIT or INIT ACK of the endpoint become known, unless they are.
    pub fn learn(&mut self, due: &Item, tag: u32, tsn: u32) {
        if let Some(script) = due.number("tag") {
            self.tag.get_or_insert((script as u32, tag));
        }
        if let Some(script) = due.number("tsn") {
            self.tsn.get_or_insert((script as u32, tsn));
        }
    }

    /// Tags that the peer may be sent packets with.
    pub fn peer_tags(&self) -> &[u32] {
        &self.peer_tags
    }

    /// The tag of the last injected packet.
    pub fn injected_tag(&self) -> u32 {
        self.injected_tag
    }

    /// Whether the last injected packet has an ABORT.
    pub fn peer_aborts(&self) -> bool {
        self.peer_aborts
    }

    /// A packet of the peer is about to be injected.
    pub fn note_injected(&mut self, tag: u32, chunks: &[Item], bytes: &[u8]) {
        self.injected_tag = tag;
        self.peer_aborts = chunks.iter().any(|c| c.layout.name == "ABORT");
        for chunk in chunks {
            if ["INIT", "INIT_ACK"].contains(&chunk.layout.name)
                && let Some(tag) = chunk.number("tag")
            {
                self.peer_tags.push(tag as u32);
            }
        }
        if let Some(parameters) = parameters(bytes) {
            self.parameters.1 = parameters;
        }
    }

    /// The endpoint has sent an IPv6 packet.
    pub fn note_sent(&mut self, bytes: &[u8]) {
        let Ok(Packet {
            ip,
            payload: Payload::Sctp(sctp),
            ..
        }) = Packet::parse(bytes)
        else {
            return;
        };
        for chunk in &sctp.chunks {
            match chunk {
                Chunk::Init(init) | Chunk::InitAck(init) => {
                    self.last_tag = init.initiate_tag;
                    self.parameters.0.clone_from(&init.parameters);
                    let mut parameters = init.parameters.iter();
                    if let Some(Parameter::StateCookie(cookie)) =
                        parameters.find(|p| matches!(p, Parameter::StateCookie(_)))
                    {
                        self.cookie = cookie.to_vec();
                    }
                }
                Chunk::Heartbeat(info) => {
                    self.heartbeats.insert(ip.destination, info.to_vec());
                }
                _ => {}
            }
        }
    }

    /// A packet from this address of the peer is about to be made: its HEARTBEAT ACK answers what was asked there.
    pub fn set_source(&mut self, source: Ipv6Addr) {
        self.source = Some(source);
    }

    /// The script's side of AUTH uses this key.
    pub fn set_shared_key(&mut self, id: u16, key: Bytes) {
        self.shared_key = (id, key);
    }

    /// The script's side of AUTH, if both ends offered it.
    pub fn auth(&self, key: u64) -> Option<PeerAuth> {
        let (id, shared) = &self.shared_key;
        let shared: &[u8] = if u64::from(*id) == key { shared } else { b"" };
        PeerAuth::new(&self.parameters.1, &self.parameters.0, shared)
    }
}

impl Fill for Numbers {
    fn bytes(&mut self, layout: &Layout, length: Option<usize>) -> Option<Vec<u8>> {
        let mut bytes = match layout.name {
            "COOKIE_ECHO" => self.cookie.clone(),
            "HEARTBEAT_INFORMATION" => {
                let asked = self.source.and_then(|source| self.heartbeats.get(&source));
                asked.cloned().unwrap_or_default()
            }
            "STATE_COOKIE" => vec![0; length.unwrap_or(4)],
            // made when what it covers is known
            "AUTH" => return Some(Vec::new()),
            _ => Vec::new(),
        };
        match (layout.name, length) {
            (_, Some(length)) => bytes.resize(length, 0),
            ("HEARTBEAT_INFORMATION", None) if bytes.is_empty() => bytes.resize(8, 0),
            ("COOKIE_ECHO" | "HEARTBEAT_INFORMATION" | "STATE_COOKIE", None) => {}
            (_, None) => return None,
        }
        Some(bytes)
    }
}

/// Chunks of SCTP bytes whatever their checksum, or `None` if they are none.
pub fn chunks(sctp: &[u8], offsets: Offsets, like: &[Item]) -> Option<Vec<Item>> {
    codec::decode(Class::Chunk, sctp.get(12..)?, offsets, like)
}

/// Parameters of the INIT or INIT ACK in SCTP bytes.
fn parameters(sctp: &[u8]) -> Option<Vec<Parameter>> {
    let packet = SctpPacket::parse(&Bytes::copy_from_slice(sctp)).ok()?;
    packet.chunks.into_iter().find_map(|chunk| match chunk {
        Chunk::Init(init) | Chunk::InitAck(init) => Some(init.parameters),
        _ => None,
    })
}
