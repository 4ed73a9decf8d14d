//! What names have said of nodes, for as long as they said that it may be believed.

use super::finding::Node;
use segue_proto::location::Name;
use segue_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Names.
const MOST: usize = 1024;
/// Nothing is believed for longer, whatever it says.
const LONGEST: Duration = Duration::from_secs(3600);

/// What is known of a name.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The node; nothing if it is none.
    pub node: Option<Rc<Node>>,
    /// Until then.
    pub until: Instant,
}

/// What is known of names.
#[derive(Debug, Default)]
pub(super) struct Cache {
    names: BTreeMap<Name, Known>,
}

impl Cache {
    /// What is known of a name.
    pub fn find(&self, now: Instant, name: &Name) -> Option<&Known> {
        self.names.get(name).filter(|known| known.until > now)
    }

    /// Keeps what a name has said for so many seconds. In a full cache it takes the place of what is over first.
    pub fn keep(&mut self, now: Instant, name: &Name, node: Option<Rc<Node>>, ttl: u32) {
        if ttl == 0 {
            self.names.remove(name);
            return;
        }
        if self.names.len() >= MOST && !self.names.contains_key(name) {
            self.names.retain(|_, known| known.until > now);
        }
        if self.names.len() >= MOST && !self.names.contains_key(name) {
            let first = self.names.iter().min_by_key(|(_, known)| known.until);
            if let Some(first) = first.map(|(name, _)| name.clone()) {
                self.names.remove(&first);
            }
        }
        let until = now + Duration::from_secs(ttl.into()).clamp(Duration::ZERO, LONGEST);
        self.names.insert(name.clone(), Known { node, until });
    }

    /// What a name has said is not true any more.
    pub fn forget(&mut self, name: &Name) {
        self.names.remove(name);
    }
}
