//! Whether an update may be carried out.

use super::{Node, Zone};
use crate::location::config::Room;
use crate::location::ilnp_records;
use crate::location::message::{Record, is_meta};
use crate::location::place::Place;
use bytes::Bytes;
use domain::base::iana::{Class, Rcode, Rtype};
use std::collections::{BTreeMap, BTreeSet};

impl Zone {
    /// RFC 2136 section 3.2: whether what the update requires is so.
    pub fn check_prerequisites(&self, prerequisites: &[Record]) -> Result<(), Rcode> {
        let mut exact: BTreeMap<(Place, Rtype), BTreeSet<&Bytes>> = BTreeMap::new();
        for r in prerequisites {
            if r.ttl != 0 {
                return Err(Rcode::FORMERR);
            }
            let place = Place::of(&r.name);
            if !place.is_in(&self.top) {
                return Err(Rcode::NOTZONE);
            }
            let node = self.nodes.get(&place);
            let set = node.and_then(|n| n.sets.get(&r.rtype));
            match r.class {
                Class::ANY | Class::NONE if !r.rdata.bytes.is_empty() => return Err(Rcode::FORMERR),
                Class::ANY if r.rtype == Rtype::ANY && node.is_none() => return Err(Rcode::NXDOMAIN),
                Class::ANY if r.rtype != Rtype::ANY && set.is_none() => return Err(Rcode::NXRRSET),
                Class::NONE if r.rtype == Rtype::ANY && node.is_some() => return Err(Rcode::YXDOMAIN),
                Class::NONE if r.rtype != Rtype::ANY && set.is_some() => return Err(Rcode::YXRRSET),
                Class::ANY | Class::NONE => {}
                Class::IN => drop(
                    exact
                        .entry((place, r.rtype))
                        .or_default()
                        .insert(&r.rdata.canonical),
                ),
                _ => return Err(Rcode::FORMERR),
            }
        }
        for ((place, rtype), wanted) in exact {
            let set = self.nodes.get(&place).and_then(|n| n.sets.get(&rtype));
            if !set.is_some_and(|s| s.data.keys().eq(wanted)) {
                return Err(Rcode::NXRRSET);
            }
        }
        Ok(())
    }

    /// RFC 2136 section 3.4.1: whether every change is one that can be made.
    pub fn prescan(&self, updates: &[Record]) -> Result<(), Rcode> {
        for r in updates {
            if !Place::of(&r.name).is_in(&self.top) {
                return Err(Rcode::NOTZONE);
            }
            let possible = match r.class {
                Class::IN => {
                    !is_meta(r.rtype)
                        && has_data_of_its_type(r)
                        && ilnp_records::is_well_formed(r.rtype, &r.rdata)
                }
                Class::ANY => {
                    r.ttl == 0 && r.rdata.bytes.is_empty() && (r.rtype == Rtype::ANY || !is_meta(r.rtype))
                }
                Class::NONE => r.ttl == 0 && !is_meta(r.rtype),
                _ => false,
            };
            if !possible {
                return Err(Rcode::FORMERR);
            }
        }
        Ok(())
    }

    /// Whether names that are new, and records of a name, have room. What does not grow needs none, so that hosts move in
    /// a zone that is full, and under limits that were narrowed.
    pub(super) fn check_room(&self, draft: &BTreeMap<Place, Node>, room: &Room) -> Result<(), Rcode> {
        let (mut new, mut gone) = (0, 0);
        for (place, node) in draft {
            let old = self.nodes.get(place);
            new += usize::from(old.is_none() && !node.sets.is_empty());
            gone += usize::from(old.is_some() && node.sets.is_empty());
            let (records, bytes) = node.size();
            let (old_records, old_bytes) = old.map_or((0, 0), Node::size);
            let more_records = records > room.records && records > old_records;
            if more_records || (bytes > room.bytes && bytes > old_bytes) {
                return Err(Rcode::REFUSED);
            }
        }
        if new > gone && self.nodes.len() + new - gone > room.names {
            return Err(Rcode::REFUSED);
        }
        Ok(())
    }
}

/// Whether the data is there for types whose data cannot be empty. All that is parsed fits its type.
fn has_data_of_its_type(r: &Record) -> bool {
    !r.rdata.bytes.is_empty() || ZERO_LENGTH_TYPES.contains(&r.rtype)
}

/// Types that may have no data at all: APL (RFC 3123 section 4) and NULL (RFC 1035 section 3.3.10).
const ZERO_LENGTH_TYPES: [Rtype; 2] = [Rtype::APL, Rtype::NULL];
