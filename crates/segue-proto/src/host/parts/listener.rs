//! What the endpoints of a host's transports have in common: who listens, and where their secrets come from.

use crate::app::{self, Transport};
use crate::random::{SecretRng, Stream};

/// The listening application: its number and what it does.
pub(super) type Listener = (usize, app::Kind);

/// What a transport's endpoint begins with, if an application wants it: a generator of its own, keyed by its host's, and
/// the application that listens, if one does.
pub(super) fn begin(
    transport: Transport,
    applications: &[app::Config],
    secrets: &mut dyn SecretRng,
) -> Option<(Box<Stream>, Option<Listener>)> {
    if applications.iter().all(|a| a.transport != transport) {
        return None;
    }
    let mut key = [0; 32];
    secrets.fill(&mut key);
    let listens = |a: &app::Config| a.transport == transport && a.role == app::Role::Listen;
    let number = applications.iter().position(listens);
    let listener = number.map(|number| (number, applications[number].kind.clone()));
    Some((Box::new(Stream::from_key(key)), listener))
}
