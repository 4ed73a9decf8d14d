//! Which calls of a run are whose: those that an application made are told by the end that opened its connection.

use crate::network::{Network, Node};
use segue_proto::app::{HeardCall, Record, VoiceCall};
use segue_proto::host::Host;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// An end of a connection, by what packets to it have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    /// Of UDP.
    Socket(Ipv6Addr, u16),
    /// Of SCTP: its verification tag.
    Tag(u32),
}

/// A connection while it is there: this end of it, and the peer's.
type Line = (End, End);

/// Who makes calls and hears them, at one end of a connection or, of several peers, of one after the other.
#[derive(Debug)]
struct Telephone<'a> {
    made: &'a [VoiceCall],
    heard: &'a [HeardCall],
    line: Option<Line>,
}

/// The calls of a run.
#[derive(Debug, Default)]
pub(super) struct Calls<'a> {
    /// By node, and part of its host.
    telephones: BTreeMap<(usize, usize), Telephone<'a>>,
    /// Parts by node and what they are connected by.
    connected: BTreeMap<(usize, Line), usize>,
    /// By node and their sources.
    made: BTreeMap<(usize, u32), &'a VoiceCall>,
    heard: BTreeMap<(usize, u32), &'a HeardCall>,
}

impl<'a> Calls<'a> {
    /// Those of a network that has run.
    pub(super) fn of(network: &'a Network) -> Self {
        let mut all = Self::default();
        for (node, it) in network.nodes.iter().enumerate() {
            let Node::Host(it) = it else { continue };
            for part in 0..it.host.applications().count() {
                if let Some(Record::Calls { made, heard }) = it.host.record_of(part) {
                    let line = line(&it.host, part);
                    all.add(node, part, Telephone { made, heard, line });
                }
            }
        }
        all
    }

    fn add(&mut self, node: usize, part: usize, telephone: Telephone<'a>) {
        let Telephone { made, heard, line } = telephone;
        self.made
            .extend(made.iter().map(|call| ((node, call.source), call)));
        self.heard
            .extend(heard.iter().map(|call| ((node, call.source), call)));
        self.connected.extend(line.map(|line| ((node, line), part)));
        self.telephones.insert((node, part), telephone);
    }

    /// Those from one node to another over the connection that part `opener.1` of node `opener.0`, one of the two, opened, in the
    /// order in which they were made. Of who answers they are those that the opener heard, and the one that is made over the
    /// connection, heard or not. Of an association that is over nobody knows who answered, if nothing was heard of it.
    pub(super) fn between(
        &self,
        from: usize,
        to: usize,
        opener: (usize, usize),
    ) -> Vec<(&'a VoiceCall, Option<&'a HeardCall>)> {
        let Some(own) = self.telephones.get(&opener) else {
            return Vec::new();
        };
        let with_heard = |call: &'a VoiceCall| (call, self.heard.get(&(to, call.source)).copied());
        if opener.0 == from {
            return own.made.iter().map(with_heard).collect();
        }
        let heard = own
            .heard
            .iter()
            .filter_map(|call| self.made.get(&(from, call.source)));
        let mut calls: Vec<&'a VoiceCall> = heard.copied().chain(self.answer(from, own)).collect();
        calls.sort_by_key(|call| (call.begun, call.source));
        calls.dedup_by_key(|call| call.source);
        calls.into_iter().map(with_heard).collect()
    }

    /// The call that is made at this node over the connection of who opened it, while there is one.
    fn answer(&self, node: usize, opener: &Telephone<'_>) -> Option<&'a VoiceCall> {
        let (near, far) = opener.line?;
        let part = *self.connected.get(&(node, (far, near)))?;
        self.telephones.get(&(node, part))?.made.last()
    }
}

/// What a part of a host is connected by.
fn line(host: &Host, part: usize) -> Option<Line> {
    if let Some(id) = host.association_of(part) {
        let association = host.endpoint().association(id)?;
        let peer = association.peer_verification_tag()?;
        return Some((End::Tag(association.own_verification_tag()), End::Tag(peer)));
    }
    let [near, far] = host.udp()?.socket(host.socket_of(part)?)?.ends();
    Some((End::Socket(near.0, near.1), End::Socket(far.0, far.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use segue_proto::app::Frame;
    use segue_proto::{Duration, Instant};

    const TALKS: usize = 1;
    const LISTENS: usize = 2;
    const OPENER: (usize, usize) = (LISTENS, 0);

    fn made(source: u32, begun_s: u64) -> VoiceCall {
        VoiceCall {
            source,
            begun: Instant::ZERO + Duration::from_secs(begun_s),
            frames: vec![Frame::Speech],
        }
    }

    fn heard(source: u32) -> HeardCall {
        HeardCall {
            source,
            places: vec![0],
            times: vec![Instant::ZERO],
        }
    }

    /// Sources of the calls to who opened, and whether they were heard. One part answers `first`, and then over the connection
    /// that there is; another talks to somebody else.
    fn answers(first: &[VoiceCall], heard: &[HeardCall], line: Option<Line>) -> Vec<(u32, bool)> {
        let elsewhere = [made(90, 1)];
        let (near, far) = (End::Tag(7), End::Tag(8));
        let mut all = Calls::default();
        for (node, part, made, heard, line) in [
            (LISTENS, 0, &[][..], heard, line),
            (TALKS, 0, first, &[], Some((far, near))),
            (TALKS, 1, &elsewhere, &[], Some((End::Tag(9), near))),
        ] {
            all.add(node, part, Telephone { made, heard, line });
        }
        let calls = all.between(TALKS, LISTENS, OPENER);
        calls
            .into_iter()
            .map(|(call, heard)| (call.source, heard.is_some()))
            .collect()
    }

    #[test]
    fn a_call_that_its_listener_did_not_hear_is_known_by_the_connection() {
        let line = Some((End::Tag(7), End::Tag(8)));
        let calls = [made(20, 9), made(10, 30)];
        assert_eq!(answers(&calls, &[], line), [(10, false)]);
        assert_eq!(answers(&calls, &[heard(10)], line), [(10, true)]);
        // in the order in which they were made
        let both = [heard(10), heard(20)];
        assert_eq!(answers(&calls, &both, line), [(20, true), (10, true)]);
        // over another connection, or none any more
        let other = Some((End::Tag(7), End::Tag(6)));
        assert_eq!(answers(&calls, &[heard(20)], other), [(20, true)]);
        assert_eq!(answers(&calls, &[], None), []);
    }
}
