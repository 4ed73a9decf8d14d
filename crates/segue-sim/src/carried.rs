//! TCP of programs that an association carries: with real hosts, where the scheme is one of SCTP's.
//!
//! The host that moves has one association, which SIGMA drives, and connections of its programs to the other end are
//! streams of it. Between hosts that stay where they are connections are the kernel's.

use crate::build::{self, PORT, moves};
use crate::scenario::model::{ApplicationEntry, ScenarioFile};
use crate::scenario::schemes::Scheme;
use segue_proto::app::Transport;
use segue_proto::host::DriverRole;

/// Streams in each direction of an association that carries connections: so many at a time.
pub const STREAMS: u16 = 64;

/// Whether the connections of an application are carried by an association.
#[must_use]
pub fn is_carried(s: &ScenarioFile, a: &ApplicationEntry) -> bool {
    a.transport == Transport::Tcp && is_mobile(s, a)
}

/// Whether the application is for nobody: it has datagrams, and what carries TCP has no place for them.
#[must_use]
pub fn is_left_out(s: &ScenarioFile, a: &ApplicationEntry) -> bool {
    a.transport == Transport::Udp && is_mobile(s, a)
}

/// Whether any application's connections are.
#[must_use]
pub fn carries(s: &ScenarioFile) -> bool {
    s.application.iter().any(|a| is_carried(s, a))
}

/// An application that cannot be carried beside the others: its number, and what was expected.
#[must_use]
pub fn conflict(s: &ScenarioFile) -> Option<(usize, String)> {
    let ends = |a: &ApplicationEntry| [build::opener(s, a).clone(), build::server(s, a).clone()];
    let carried: Vec<_> = s
        .application
        .iter()
        .filter(|a| is_carried(s, a))
        .map(ends)
        .collect();
    s.application.iter().enumerate().find_map(|(number, a)| {
        let own = ends(a);
        if a.transport == Transport::Sctp {
            let beside = carried.iter().any(|other| other.iter().any(|host| own.contains(host)));
            return beside.then(|| {
                let why = "the scheme has one association for a host, and it carries the connections of programs: expected no \
                           application over SCTP beside those over TCP";
                (number, why.to_owned())
            });
        }
        let apart = |[client, server]: &[String; 2]| {
            own == [client.clone(), server.clone()]
                || (own[0] != *client && own[0] != *server && own[1] != *client)
        };
        let [client, server] = carried.iter().find(|other| is_carried(s, a) && !apart(other))?;
        let why = format!(
            "the scheme has one association for a host that moves, and it is between `{client}` and `{server}`: expected these, \
             or others"
        );
        Some((number, why))
    })
}

/// How the driver of a host comes by the associations that carry connections, if it needs any.
pub(crate) fn role(s: &ScenarioFile, host: &str) -> Option<DriverRole> {
    let mut carried = s.application.iter().filter(|a| is_carried(s, a));
    carried.find_map(|a| {
        if build::server(s, a) == host {
            return Some(DriverRole::Listen);
        }
        (build::opener(s, a) == host).then(|| DriverRole::Connect {
            peer: build::wire_addresses(s, build::server(s, a)),
            port: PORT,
        })
    })
}

fn is_mobile(s: &ScenarioFile, a: &ApplicationEntry) -> bool {
    matches!(s.scheme, Scheme::Sigma | Scheme::Cmt) && (moves(s, &a.from) || moves(s, &a.to))
}
