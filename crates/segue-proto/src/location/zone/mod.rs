//! A zone: its records, what an update does to them, and what it answers.

mod checks;

use super::Name;
use super::config::{Room, ZoneConfig};
use super::message::{Rdata, Record};
use super::place::Place;
use bytes::Bytes;
use domain::base::Serial;
use domain::base::Ttl;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::rdata::{Ns, Soa};
use std::collections::{BTreeMap, BTreeSet};

/// Aliases followed within the zone.
const MOST_ALIASES: usize = 8;

/// Addresses of name servers beside a referral: what is more is asked for (RFC 1034 section 4.3.2, 3 b: "available"
/// ones).
const MOST_GLUE: usize = 32;

/// What a record takes beside its data: a compressed name, type, class, TTL and length.
const RECORD_OVERHEAD: usize = 2 + 2 + 2 + 4 + 2;

/// A zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    name: Name,
    top: Place,
    nodes: BTreeMap<Place, Node>,
}

/// A name and its records.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Node {
    name: Name,
    sets: BTreeMap<Rtype, RrSet>,
}

/// Records of a name and type. They are told apart by their canonical form, and answered in the order in which they came.
#[derive(Clone, Debug, Default)]
struct RrSet {
    ttl: u32,
    /// Number of the next one that comes.
    next: u64,
    /// By canonical form: number, and as given.
    data: BTreeMap<Bytes, (u64, Bytes)>,
}

/// What there is at a name.
enum Found<'a> {
    /// It, or a name above it, is another server's.
    Delegated(&'a Node),
    Records(&'a Node),
    /// Only names below it (RFC 8020).
    Between,
    Nothing,
}

/// What a zone says to a question.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Response {
    pub authoritative: bool,
    pub no_such_name: bool,
    pub answer: Vec<Record>,
    pub authority: Vec<Record>,
    pub additional: Vec<Record>,
}

impl Zone {
    /// A zone with SOA, NS and the server's addresses.
    pub fn new(config: &ZoneConfig) -> Self {
        let mut zone = Self::empty(config.name.clone());
        let ttl = Ttl::from_secs(config.ttl);
        // Refresh, retry and expire are for secondary servers: the values of RFC 1912 section 2.2.
        let soa = Soa::new(
            config.server.clone(),
            config.name.clone(),
            Serial(config.serial),
            Ttl::from_secs(1200),
            Ttl::from_secs(180),
            Ttl::from_secs(1_209_600),
            ttl,
        );
        let ns = Ns::new(config.server.clone());
        zone.insert(&config.name, Rtype::SOA, config.ttl, Rdata::compose(&soa));
        zone.insert(&config.name, Rtype::NS, config.ttl, Rdata::compose(&ns));
        if Place::of(&config.server).is_in(&zone.top) {
            for &address in &config.server_addresses {
                let aaaa = Rdata::opaque(address.octets().to_vec());
                zone.insert(&config.server, Rtype::AAAA, config.ttl, aaaa);
            }
        }
        zone
    }

    /// A zone without anything, to be [restored](Self::restore).
    pub fn empty(name: Name) -> Self {
        Self {
            top: Place::of(&name),
            name,
            nodes: BTreeMap::new(),
        }
    }

    /// Takes back records as they were; `None` if one is not of this zone.
    pub fn restore(&mut self, records: Vec<Record>) -> Option<()> {
        for record in records {
            if !Place::of(&record.name).is_in(&self.top) {
                return None;
            }
            self.insert(&record.name, record.rtype, record.ttl, record.rdata);
        }
        Some(())
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Where it begins.
    pub fn top(&self) -> &Place {
        &self.top
    }

    /// Where its names are.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.nodes.keys()
    }

    /// The records there.
    pub fn records_at(&self, place: &Place) -> Vec<Record> {
        self.nodes.get(place).map(Node::records).unwrap_or_default()
    }

    /// Serial number of the SOA.
    pub fn serial(&self) -> Option<u32> {
        self.nodes.get(&self.top)?.serial()
    }

    /// RFC 2136 sections 3.4.2 and 3.6: makes the changes, all or none, and increments the serial number if there are
    /// any and none of them was of the serial itself. Where there were changes.
    ///
    /// REFUSED if there would be more than there is room for, and more than before.
    pub fn apply(&mut self, updates: &[Record], room: &Room) -> Result<BTreeSet<Place>, Rcode> {
        let mut draft: BTreeMap<Place, Node> = BTreeMap::new();
        let mut changed = BTreeSet::new();
        for r in updates {
            let place = Place::of(&r.name);
            let node = draft.entry(place.clone()).or_insert_with(|| {
                let old = self.nodes.get(&place).cloned();
                old.unwrap_or_else(|| Node::new(r.name.clone()))
            });
            if node.change(r, place == self.top) {
                changed.insert(place);
            }
        }
        draft.retain(|place, _| changed.contains(place));
        self.check_room(&draft, room)?;
        let serial = self.serial();
        for (place, node) in draft {
            if node.sets.is_empty() {
                self.nodes.remove(&place);
            } else {
                self.nodes.insert(place, node);
            }
        }
        if !changed.is_empty() && self.serial() == serial {
            self.increment_serial();
            changed.insert(self.top.clone());
        }
        Ok(changed)
    }

    /// RFC 1034 section 4.3.2, without wildcards.
    pub fn respond(&self, name: &Name, rtype: Rtype) -> Response {
        let mut response = Response {
            authoritative: true,
            ..Response::default()
        };
        let mut name = name.clone();
        for _ in 0..MOST_ALIASES {
            let node = match self.find(&Place::of(&name)) {
                Found::Delegated(cut) => return self.refer(response, cut),
                Found::Records(node) => node,
                found @ (Found::Between | Found::Nothing) => {
                    response.no_such_name = matches!(found, Found::Nothing);
                    response.authority.extend(self.negative());
                    return response;
                }
            };
            if rtype == Rtype::ANY {
                response.answer.extend(node.records_called(&name));
                return response;
            }
            if let Some(set) = node.sets.get(&rtype) {
                response.answer.extend(set.records(&name, rtype));
                return response;
            }
            let alias = node.sets.get(&Rtype::CNAME);
            let target = alias.and_then(|set| Name::from_octets(set.any()?.clone()).ok());
            let (Some(alias), Some(target)) = (alias, target) else {
                response.authority.extend(self.negative());
                return response;
            };
            response.answer.extend(alias.records(&name, Rtype::CNAME));
            if !Place::of(&target).is_in(&self.top) {
                return response;
            }
            name = target;
        }
        response
    }

    /// Goes down from the zone's own name as far as there are names: a question with more labels than any name costs no
    /// more than a short one.
    fn find(&self, place: &Place) -> Found<'_> {
        let mut found = Found::Nothing;
        for at in place.way_from(&self.top) {
            let next = self.nodes.range(at.clone()..).next();
            found = match next.filter(|(p, _)| p.is_in(&at)) {
                None => return Found::Nothing,
                Some((p, node)) if *p == at && at != self.top && node.has(Rtype::NS) => {
                    return Found::Delegated(node);
                }
                Some((p, node)) if *p == at => Found::Records(node),
                Some(_) => Found::Between,
            };
        }
        found
    }

    fn insert(&mut self, name: &Name, rtype: Rtype, ttl: u32, rdata: Rdata) {
        let node = self.nodes.entry(Place::of(name));
        node.or_insert_with(|| Node::new(name.clone()))
            .insert(rtype, ttl, rdata);
    }

    /// RFC 1982 section 3.1; zero is left out, as RFC 2136 section 7.11 wants.
    fn increment_serial(&mut self) {
        let next = self.serial().map(|s| s.wrapping_add(1).max(1));
        let soa = self
            .nodes
            .get_mut(&self.top)
            .and_then(|n| n.sets.get_mut(&Rtype::SOA));
        let (Some(next), Some(set)) = (next, soa) else {
            return;
        };
        for (canonical, (number, bytes)) in core::mem::take(&mut set.data) {
            let [canonical, bytes] = [canonical, bytes].map(|octets| {
                let mut new = octets.to_vec();
                let at = new.len().saturating_sub(20);
                if let Some(field) = new.get_mut(at..at + 4) {
                    field.copy_from_slice(&next.to_be_bytes());
                }
                Bytes::from(new)
            });
            set.data.insert(canonical, (number, bytes));
        }
    }

    /// The SOA of a negative answer, with the lesser of its TTL and its minimum field (RFC 2308 section 3).
    fn negative(&self) -> Option<Record> {
        let set = self.nodes.get(&self.top)?.sets.get(&Rtype::SOA)?;
        let mut record = set.records(&self.name, Rtype::SOA).into_iter().next()?;
        let minimum = u32::from_be_bytes(*record.rdata.bytes.last_chunk()?);
        record.ttl = record.ttl.min(minimum);
        Some(record)
    }

    /// A referral (RFC 1034 section 4.3.2, 3 b).
    fn refer(&self, mut response: Response, cut: &Node) -> Response {
        response.authoritative = !response.answer.is_empty();
        let Some(set) = cut.sets.get(&Rtype::NS) else {
            return response;
        };
        for record in set.records(&cut.name, Rtype::NS) {
            if response.additional.len() < MOST_GLUE
                && let Ok(server) = Name::from_octets(record.rdata.bytes.clone())
                && let Some(glue) = self.nodes.get(&Place::of(&server))
            {
                for rtype in [Rtype::A, Rtype::AAAA] {
                    let addresses = glue.sets.get(&rtype);
                    response
                        .additional
                        .extend(addresses.into_iter().flat_map(|s| s.records(&server, rtype)));
                }
            }
            response.authority.push(record);
        }
        response
    }
}

impl Node {
    fn new(name: Name) -> Self {
        Self {
            name,
            sets: BTreeMap::new(),
        }
    }

    fn has(&self, rtype: Rtype) -> bool {
        self.sets.contains_key(&rtype)
    }

    /// Records, and the bytes that they take.
    fn size(&self) -> (usize, usize) {
        let data = || self.sets.values().flat_map(|s| s.data.values());
        let bytes = data().map(|(_, bytes)| bytes.len() + RECORD_OVERHEAD).sum();
        (data().count(), bytes)
    }

    fn records(&self) -> Vec<Record> {
        self.records_called(&self.name)
    }

    /// With the name as somebody writes it.
    fn records_called(&self, name: &Name) -> Vec<Record> {
        let sets = self.sets.iter();
        sets.flat_map(|(rtype, set)| set.records(name, *rtype)).collect()
    }

    fn serial(&self) -> Option<u32> {
        serial_of(self.sets.get(&Rtype::SOA)?.any()?)
    }

    /// Makes one change of an update. Whether it was one.
    fn change(&mut self, r: &Record, apex: bool) -> bool {
        match r.class {
            Class::IN => self.add(r),
            Class::ANY => self.delete_sets(r, apex),
            _ => self.delete_record(r, apex),
        }
    }

    fn insert(&mut self, rtype: Rtype, ttl: u32, rdata: Rdata) -> bool {
        let set = self.sets.entry(rtype).or_insert_with(|| RrSet {
            ttl,
            ..RrSet::default()
        });
        let same_ttl = core::mem::replace(&mut set.ttl, ttl) == ttl;
        set.insert(rdata) || !same_ttl
    }

    /// RFC 2136 section 3.4.2.2.
    fn add(&mut self, r: &Record) -> bool {
        match r.rtype {
            Rtype::SOA => {
                let newer = serial_of(&r.rdata.bytes)
                    .zip(self.serial())
                    .is_some_and(|(new, old)| is_newer(new, old));
                if !newer {
                    return false;
                }
            }
            Rtype::CNAME if self.sets.keys().any(|t| *t != Rtype::CNAME) => return false,
            Rtype::CNAME => {}
            _ if self.has(Rtype::CNAME) => return false,
            _ => {}
        }
        if matches!(r.rtype, Rtype::SOA | Rtype::CNAME)
            && let Some(set) = self.sets.get_mut(&r.rtype)
        {
            let mut new = RrSet {
                ttl: r.ttl,
                ..RrSet::default()
            };
            new.insert(r.rdata.clone());
            let changed = *set != new;
            *set = new;
            return changed;
        }
        self.insert(r.rtype, r.ttl, r.rdata.clone())
    }

    /// RFC 2136 section 3.4.2.3.
    fn delete_sets(&mut self, r: &Record, apex: bool) -> bool {
        let before = self.sets.len();
        self.sets.retain(|rtype, _| {
            let kept_by_rule = apex && matches!(*rtype, Rtype::SOA | Rtype::NS);
            kept_by_rule || !(r.rtype == Rtype::ANY || *rtype == r.rtype)
        });
        self.sets.len() != before
    }

    /// RFC 2136 section 3.4.2.4.
    fn delete_record(&mut self, r: &Record, apex: bool) -> bool {
        let Some(set) = self.sets.get_mut(&r.rtype) else {
            return false;
        };
        if r.rtype == Rtype::SOA || (r.rtype == Rtype::NS && apex && set.data.len() == 1) {
            return false;
        }
        let changed = set.data.remove(&r.rdata.canonical).is_some();
        if set.data.is_empty() {
            self.sets.remove(&r.rtype);
        }
        changed
    }
}

impl RrSet {
    /// Whether it was not there, in any form.
    fn insert(&mut self, rdata: Rdata) -> bool {
        if let Some((_, bytes)) = self.data.get_mut(&rdata.canonical) {
            *bytes = rdata.bytes;
            return false;
        }
        self.data.insert(rdata.canonical, (self.next, rdata.bytes));
        self.next += 1;
        true
    }

    /// Of a set that has one, that one.
    fn any(&self) -> Option<&Bytes> {
        self.data.values().next().map(|(_, bytes)| bytes)
    }

    fn records(&self, name: &Name, rtype: Rtype) -> Vec<Record> {
        let mut data: Vec<_> = self.data.iter().collect();
        data.sort_unstable_by_key(|(_, (number, _))| *number);
        let record = |(canonical, (_, bytes)): (&Bytes, &(u64, Bytes))| Record {
            name: name.clone(),
            rtype,
            class: Class::IN,
            ttl: self.ttl,
            rdata: Rdata {
                bytes: bytes.clone(),
                canonical: canonical.clone(),
            },
        };
        data.into_iter().map(record).collect()
    }
}

/// The numbers count only by their order.
impl PartialEq for RrSet {
    fn eq(&self, other: &Self) -> bool {
        let in_order = |set: &Self| {
            let mut data: Vec<_> = set.data.values().cloned().collect();
            data.sort_unstable();
            data.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>()
        };
        self.ttl == other.ttl && in_order(self) == in_order(other)
    }
}

impl Eq for RrSet {}

fn serial_of(soa: &Bytes) -> Option<u32> {
    let at = soa.len().checked_sub(20)?;
    Some(u32::from_be_bytes(*soa.get(at..)?.first_chunk()?))
}

/// RFC 1982 section 3.2.
fn is_newer(new: u32, old: u32) -> bool {
    new != old && new.wrapping_sub(old) < 1 << 31
}
