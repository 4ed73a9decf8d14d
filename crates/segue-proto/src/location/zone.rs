//! A zone: its records, what an update does to them, and what it answers.

use super::Name;
use super::config::ZoneConfig;
use super::identity::in_zone;
use super::ilnp_records;
use super::message::{Rdata, Record, is_meta};
use domain::base::Serial;
use domain::base::Ttl;
use domain::base::iana::{Class, Rcode, Rtype};
use domain::rdata::{Ns, Soa};
use std::collections::BTreeMap;

/// Aliases followed within the zone.
const MOST_ALIASES: usize = 8;

/// A zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    name: Name,
    /// In canonical order (RFC 4034 section 6.1): the names below a name follow it.
    nodes: BTreeMap<Name, Node>,
}

type Node = BTreeMap<Rtype, RrSet>;

#[derive(Clone, PartialEq, Eq, Debug)]
struct RrSet {
    ttl: u32,
    data: Vec<Rdata>,
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
        let mut zone = Self {
            name: config.name.clone(),
            nodes: BTreeMap::new(),
        };
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
        if in_zone(&config.server, &config.name) {
            for &address in &config.server_addresses {
                let aaaa = Rdata::opaque(address.octets().to_vec());
                zone.insert(&config.server, Rtype::AAAA, config.ttl, aaaa);
            }
        }
        zone
    }

    /// A zone from all of its records; `None` without an SOA.
    pub fn from_records(name: Name, records: impl IntoIterator<Item = Record>) -> Option<Self> {
        let mut zone = Self {
            name,
            nodes: BTreeMap::new(),
        };
        for record in records {
            if !in_zone(&record.name, &zone.name) {
                return None;
            }
            zone.insert(&record.name, record.rtype, record.ttl, record.rdata);
        }
        zone.serial().map(|_| zone)
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Names in it.
    pub fn names(&self) -> usize {
        self.nodes.len()
    }

    /// All of its records.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.nodes.iter().flat_map(|(name, node)| {
            node.iter()
                .flat_map(move |(rtype, set)| set.records(name, *rtype))
        })
    }

    /// Serial number of the SOA.
    pub fn serial(&self) -> Option<u32> {
        let soa = self.nodes.get(&self.name)?.get(&Rtype::SOA)?.data.first()?;
        let at = soa.bytes.len().checked_sub(20)?;
        Some(u32::from_be_bytes(*soa.bytes.get(at..)?.first_chunk()?))
    }

    /// RFC 2136 section 3.2: whether what the update requires is so.
    pub fn check_prerequisites(&self, prerequisites: &[Record]) -> Result<(), Rcode> {
        let mut exact: BTreeMap<(Name, Rtype), Vec<&Rdata>> = BTreeMap::new();
        for r in prerequisites {
            if r.ttl != 0 {
                return Err(Rcode::FORMERR);
            }
            if !in_zone(&r.name, &self.name) {
                return Err(Rcode::NOTZONE);
            }
            let node = self.nodes.get(&r.name);
            let set = node.and_then(|n| n.get(&r.rtype));
            match r.class {
                Class::ANY | Class::NONE if !r.rdata.bytes.is_empty() => return Err(Rcode::FORMERR),
                Class::ANY if r.rtype == Rtype::ANY && node.is_none() => return Err(Rcode::NXDOMAIN),
                Class::ANY if r.rtype != Rtype::ANY && set.is_none() => return Err(Rcode::NXRRSET),
                Class::NONE if r.rtype == Rtype::ANY && node.is_some() => return Err(Rcode::YXDOMAIN),
                Class::NONE if r.rtype != Rtype::ANY && set.is_some() => return Err(Rcode::YXRRSET),
                Class::ANY | Class::NONE => {}
                Class::IN => exact.entry((r.name.clone(), r.rtype)).or_default().push(&r.rdata),
                _ => return Err(Rcode::FORMERR),
            }
        }
        for ((name, rtype), wanted) in exact {
            let set = self.nodes.get(&name).and_then(|n| n.get(&rtype));
            let have = set.map_or(&[][..], |s| &s.data);
            let all = have
                .iter()
                .all(|d| wanted.iter().any(|w| w.canonical == d.canonical))
                && wanted
                    .iter()
                    .all(|w| have.iter().any(|d| w.canonical == d.canonical));
            if !all {
                return Err(Rcode::NXRRSET);
            }
        }
        Ok(())
    }

    /// RFC 2136 section 3.4.1: whether every change is one that can be made.
    pub fn prescan(&self, updates: &[Record]) -> Result<(), Rcode> {
        for r in updates {
            if !in_zone(&r.name, &self.name) {
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

    /// RFC 2136 sections 3.4.2 and 3.6: makes the changes, and increments the serial number if there are any and none
    /// of them was of the serial itself. Whether there were.
    pub fn apply(&mut self, updates: &[Record]) -> bool {
        let serial = self.serial();
        let mut changed = false;
        for r in updates {
            changed |= match r.class {
                Class::IN => self.add(r),
                Class::ANY => self.delete_sets(r),
                _ => self.delete_record(r),
            };
        }
        if changed && self.serial() == serial {
            self.increment_serial();
        }
        changed
    }

    /// RFC 1034 section 4.3.2, without wildcards.
    pub fn respond(&self, name: &Name, rtype: Rtype) -> Response {
        let mut response = Response {
            authoritative: true,
            ..Response::default()
        };
        let mut name = name.clone();
        for _ in 0..MOST_ALIASES {
            if let Some(cut) = self.cut_above(&name) {
                return self.refer(response, &cut);
            }
            let Some(node) = self.nodes.get(&name) else {
                // A name is there if one below it is (RFC 8020).
                let below = self
                    .nodes
                    .range(name.clone()..)
                    .next()
                    .is_some_and(|(n, _)| in_zone(n, &name));
                response.no_such_name = !below;
                response.authority.extend(self.negative());
                return response;
            };
            if rtype == Rtype::ANY {
                response
                    .answer
                    .extend(node.iter().flat_map(|(t, set)| set.records(&name, *t)));
                return response;
            }
            if let Some(set) = node.get(&rtype) {
                response.answer.extend(set.records(&name, rtype));
                return response;
            }
            let alias = node.get(&Rtype::CNAME);
            let target = alias.and_then(|set| Name::from_octets(set.data.first()?.bytes.clone()).ok());
            let (Some(alias), Some(target)) = (alias, target) else {
                response.authority.extend(self.negative());
                return response;
            };
            response.answer.extend(alias.records(&name, Rtype::CNAME));
            if !in_zone(&target, &self.name) {
                return response;
            }
            name = target;
        }
        response
    }

    fn insert(&mut self, name: &Name, rtype: Rtype, ttl: u32, rdata: Rdata) -> bool {
        let node = self.nodes.entry(name.clone()).or_default();
        let set = node.entry(rtype).or_insert_with(|| RrSet {
            ttl,
            data: Vec::new(),
        });
        let same_ttl = core::mem::replace(&mut set.ttl, ttl) == ttl;
        if let Some(old) = set.data.iter_mut().find(|d| d.canonical == rdata.canonical) {
            *old = rdata;
            return !same_ttl;
        }
        set.data.push(rdata);
        true
    }

    /// RFC 2136 section 3.4.2.2.
    fn add(&mut self, r: &Record) -> bool {
        let node = self.nodes.get(&r.name);
        let has = |rtype| node.is_some_and(|n| n.contains_key(&rtype));
        match r.rtype {
            Rtype::SOA => {
                let newer = serial_of(&r.rdata)
                    .zip(self.serial())
                    .is_some_and(|(new, old)| is_newer(new, old));
                if !has(Rtype::SOA) || !newer {
                    return false;
                }
            }
            Rtype::CNAME if node.is_some_and(|n| n.keys().any(|t| *t != Rtype::CNAME)) => return false,
            Rtype::CNAME => {}
            _ if has(Rtype::CNAME) => return false,
            _ => {}
        }
        if matches!(r.rtype, Rtype::SOA | Rtype::CNAME)
            && let Some(set) = self.nodes.get_mut(&r.name).and_then(|n| n.get_mut(&r.rtype))
        {
            let new = RrSet {
                ttl: r.ttl,
                data: vec![r.rdata.clone()],
            };
            let changed = *set != new;
            *set = new;
            return changed;
        }
        self.insert(&r.name, r.rtype, r.ttl, r.rdata.clone())
    }

    /// RFC 2136 section 3.4.2.3.
    fn delete_sets(&mut self, r: &Record) -> bool {
        let apex = r.name == self.name;
        let Some(node) = self.nodes.get_mut(&r.name) else {
            return false;
        };
        let before = node.len();
        node.retain(|rtype, _| {
            let kept_by_rule = apex && matches!(*rtype, Rtype::SOA | Rtype::NS);
            kept_by_rule || !(r.rtype == Rtype::ANY || *rtype == r.rtype)
        });
        let changed = node.len() != before;
        self.forget_if_empty(&r.name);
        changed
    }

    /// RFC 2136 section 3.4.2.4.
    fn delete_record(&mut self, r: &Record) -> bool {
        let apex = r.name == self.name;
        let Some(node) = self.nodes.get_mut(&r.name) else {
            return false;
        };
        let Some(set) = node.get_mut(&r.rtype) else {
            return false;
        };
        if r.rtype == Rtype::SOA || (r.rtype == Rtype::NS && apex && set.data.len() == 1) {
            return false;
        }
        let before = set.data.len();
        set.data.retain(|d| d.canonical != r.rdata.canonical);
        let changed = set.data.len() != before;
        if set.data.is_empty() {
            node.remove(&r.rtype);
        }
        self.forget_if_empty(&r.name);
        changed
    }

    fn forget_if_empty(&mut self, name: &Name) {
        if self.nodes.get(name).is_some_and(BTreeMap::is_empty) {
            self.nodes.remove(name);
        }
    }

    /// RFC 1982 section 3.1; zero is left out, as RFC 2136 section 7.11 wants.
    fn increment_serial(&mut self) {
        let next = self.serial().map(|s| s.wrapping_add(1).max(1));
        let soa = self
            .nodes
            .get_mut(&self.name)
            .and_then(|n| n.get_mut(&Rtype::SOA));
        if let (Some(next), Some(set)) = (next, soa) {
            for rdata in &mut set.data {
                for octets in [&mut rdata.bytes, &mut rdata.canonical] {
                    let mut new = octets.to_vec();
                    let at = new.len().saturating_sub(20);
                    if let Some(field) = new.get_mut(at..at + 4) {
                        field.copy_from_slice(&next.to_be_bytes());
                    }
                    *octets = new.into();
                }
            }
        }
    }

    /// The SOA of a negative answer, with the lesser of its TTL and its minimum field (RFC 2308 section 3).
    fn negative(&self) -> Option<Record> {
        let set = self.nodes.get(&self.name)?.get(&Rtype::SOA)?;
        let mut record = set.records(&self.name, Rtype::SOA).next()?;
        let minimum = u32::from_be_bytes(*record.rdata.bytes.last_chunk()?);
        record.ttl = record.ttl.min(minimum);
        Some(record)
    }

    /// The highest name, at or above `name` but below the apex, that has NS records: not this zone's any more.
    fn cut_above(&self, name: &Name) -> Option<Name> {
        let mut cut = None;
        let mut at = Some(name.clone());
        while let Some(current) = at.filter(|n| *n != self.name && in_zone(n, &self.name)) {
            if self
                .nodes
                .get(&current)
                .is_some_and(|n| n.contains_key(&Rtype::NS))
            {
                cut = Some(current.clone());
            }
            at = current.parent();
        }
        cut
    }

    /// A referral (RFC 1034 section 4.3.2, 3 b).
    fn refer(&self, mut response: Response, cut: &Name) -> Response {
        response.authoritative = !response.answer.is_empty();
        let Some(set) = self.nodes.get(cut).and_then(|n| n.get(&Rtype::NS)) else {
            return response;
        };
        for record in set.records(cut, Rtype::NS) {
            if let Ok(server) = Name::from_octets(record.rdata.bytes.clone()) {
                let glue = self.nodes.get(&server);
                for rtype in [Rtype::A, Rtype::AAAA] {
                    let addresses = glue.and_then(|n| n.get(&rtype));
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

impl RrSet {
    fn records<'a>(&'a self, name: &'a Name, rtype: Rtype) -> impl Iterator<Item = Record> + 'a {
        self.data.iter().map(move |rdata| Record {
            name: name.clone(),
            rtype,
            class: Class::IN,
            ttl: self.ttl,
            rdata: rdata.clone(),
        })
    }
}

/// Whether the data is there for types whose data cannot be empty. All that is parsed fits its type.
fn has_data_of_its_type(r: &Record) -> bool {
    !r.rdata.bytes.is_empty() || ZERO_LENGTH_TYPES.contains(&r.rtype)
}

/// Types that may have no data at all: APL (RFC 3123 section 4) and NULL (RFC 1035 section 3.3.10).
const ZERO_LENGTH_TYPES: [Rtype; 2] = [Rtype::APL, Rtype::NULL];

fn serial_of(soa: &Rdata) -> Option<u32> {
    let at = soa.bytes.len().checked_sub(20)?;
    Some(u32::from_be_bytes(*soa.bytes.get(at..)?.first_chunk()?))
}

/// RFC 1982 section 3.2.
fn is_newer(new: u32, old: u32) -> bool {
    new != old && new.wrapping_sub(old) < 1 << 31
}
