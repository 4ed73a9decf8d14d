//! How the clocks of two captures differ, and which hosts each of them is of, by the packets that both have.
//!
//! A packet from the first capture's host to the second's shows offset + delay, one the other way offset - delay; delays
//! are positive, so the smallest of either bounds the offset. Packets are compared by their transport header and the
//! beginning of what it carries, and sampled by a hash of these, so that both captures sample the same ones ("trajectory
//! sampling", Duffield and Grossglauser 2001); memory is constant.

use super::decode::{self, Address, Decoded};
use super::flows::ends::Listens;
use super::flows::twice::CAPTURED_TWICE_NS;
use super::input::Error;
use super::model::ClockOffset;
use super::places::Places;
use super::reader::{LATEST_NS, Next, Reader, Record};
use crate::pcapng::Direction;
use hashbrown::HashTable;
use std::collections::BTreeMap;

/// Samples of a capture.
const MAX_SAMPLES: usize = 65_536;

/// Bytes of a packet that are compared, where captures have them.
const COMPARED: usize = 96;

/// What is cut to fewer is not compared: a header of TCP, or one of UDP with what tells datagrams apart.
const LEAST_COMPARED: usize = 20;

/// Pairs of hosts that are told apart.
const MAX_PAIRS: usize = 4096;

/// Differences of times of a packet that one host captures twice: what a capture's resolution takes off.
const SAME_CLOCK_NS: u64 = 1000;

/// Packets of each way that are needed to tell that.
const BOTH_WAYS: usize = 4;

/// Drift is looked for where captures are at least this long.
const DRIFT_FROM_NS: i64 = 10_000_000_000;

/// Clocks that drift by more than this are not believed, parts per million.
const MOST_DRIFT_PPM: f64 = 500.0;

#[derive(Clone, Copy, Debug)]
struct Sample {
    hash: u64,
    time_ns: u64,
    ends: (Address, Address),
    ilnp: bool,
    direction: Option<Direction>,
    /// The capture has it more than once.
    ambiguous: bool,
}

/// Samples of one capture.
pub(super) struct Samples {
    table: HashTable<Sample>,
    mask: u64,
    first_ns: Option<u64>,
    packets: u64,
    /// Earliest and latest packet.
    range_ns: Option<(u64, u64)>,
    /// So many bytes of a packet are compared.
    compared: usize,
    /// And so many there are of every packet that is longer.
    least: usize,
}

impl Samples {
    /// Of all packets of a capture of this name. `both_have` is what two captures have of every packet, if that is known.
    pub(super) fn of(mut reader: Reader, name: &str, both_have: Option<usize>) -> Result<Self, Error> {
        let compared = both_have.unwrap_or(COMPARED);
        let mut samples = Self {
            table: HashTable::new(),
            mask: 0,
            first_ns: None,
            packets: 0,
            range_ns: None,
            compared,
            least: compared,
        };
        while let Next::Packet(time_ns) = reader.advance() {
            samples.first_ns.get_or_insert(time_ns);
            samples.packets += 1;
            let range = samples.range_ns.get_or_insert((time_ns, time_ns));
            *range = (range.0.min(time_ns), range.1.max(time_ns));
            let record = reader.record();
            if let Ok(packet) = decode::decode(record.link, record.bytes, record.wire_len) {
                samples.add(&record, &packet);
            }
        }
        match reader.refused() {
            None => Ok(samples),
            Some(reason) => Err(Error::Io {
                file: name.to_owned(),
                reason: reason.clone(),
            }),
        }
    }

    fn add(&mut self, record: &Record<'_>, packet: &Decoded<'_>) {
        if !matches!(packet.protocol, decode::TCP | decode::UDP | decode::SCTP) {
            return;
        }
        // many hosts get the same of those
        if packet.outer.1.ip().is_multicast() {
            return;
        }
        let captured = packet.payload.len();
        if captured < self.compared && captured < packet.payload_len as usize {
            if captured < LEAST_COMPARED {
                return;
            }
            self.least = self.least.min(captured);
        }
        let hash = fingerprint(packet, self.compared);
        if hash & self.mask != 0 {
            return;
        }
        if let Some(known) = self.table.find_mut(hash, |s| s.hash == hash) {
            // the first sight of several that interfaces of one host have is as good as one alone
            known.ambiguous |= record.time_ns.abs_diff(known.time_ns) >= CAPTURED_TWICE_NS;
            return;
        }
        let sample = Sample {
            hash,
            time_ns: record.time_ns,
            ends: packet.identity,
            ilnp: packet.marks.ilnp,
            direction: record.direction.or(packet.direction),
            ambiguous: false,
        };
        self.table.insert_unique(hash, sample, |s| s.hash);
        if self.table.len() > MAX_SAMPLES {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.table.retain(|s| s.hash & mask == 0);
        }
    }
}

/// A hash of what no router changes. Checksums are left out: a sending host may not have worked them out yet.
fn fingerprint(packet: &Decoded<'_>, compared: usize) -> u64 {
    let bytes = packet
        .payload
        .get(..packet.payload.len().min(compared))
        .unwrap_or_default();
    // number of the word that has the checksum, and what of it is compared
    let (checksum, rest) = match packet.protocol {
        decode::TCP => (2, !0xffff),
        decode::UDP => (0, !(0xffff << 48)),
        _ => (0, !0),
    };
    let seed = u64::from(packet.payload_len) << 8 | u64::from(packet.protocol);
    let mut hash = seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut add = |number: usize, word: [u8; 8]| {
        let mask = if number == checksum { rest } else { !0 };
        let value = u64::from_le_bytes(word) & mask;
        let wide = u128::from(value ^ hash) * u128::from(0xd1b5_4a32_d192_ed03_u64);
        hash = wide as u64 ^ (wide >> 64) as u64 ^ number as u64;
    };
    let (words, last) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        add(number, *word);
    }
    if !last.is_empty() {
        let mut word = [0; 8];
        word.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
        add(words.len(), word);
    }
    // the low bits choose what is sampled
    hash ^ hash >> 29
}

/// A packet in both captures.
#[derive(Clone, Copy, Debug)]
struct Match {
    /// On the first clock.
    time_ns: u64,
    /// Second clock less first.
    difference_ns: i64,
    /// From the first capture's host, as far as the captures say.
    forward: Option<bool>,
    /// Whether both captures say that it went the same way; nothing if one of them does not say.
    same: Option<bool>,
    ends: (Address, Address),
    ilnp: bool,
}

/// What two captures have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Common {
    pub places: Places,
    /// Both are of one host: the capture that says less, which counts for nothing.
    pub left_out: Option<usize>,
    pub clocks: Clocks,
}

/// How the two clocks differ.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// As it is reported; nothing where the captures have no packets in common.
    pub offset: Option<ClockOffset>,
    /// Second clock less first at `since_ns` of the second, and what is gained from then on by nanosecond.
    offset_ns: f64,
    drift: f64,
    since_ns: u64,
}

impl Common {
    /// What both captures have of every packet, if a snap length took some of what is compared.
    pub(super) fn both_have(first: &Samples, second: &Samples) -> Option<usize> {
        let least = first.least.min(second.least);
        (least < COMPARED).then_some(least)
    }

    /// Compares samples.
    pub(super) fn of(first: &Samples, second: &Samples) -> Self {
        let mut matches: Vec<Match> = Vec::new();
        for a in &first.table {
            let Some(b) = second.table.find(a.hash, |s| s.hash == a.hash) else {
                continue;
            };
            if a.ambiguous || b.ambiguous {
                continue;
            }
            let forward = match (a.direction, b.direction) {
                (Some(Direction::Outbound), _) | (_, Some(Direction::Inbound)) => Some(true),
                (Some(Direction::Inbound), _) | (_, Some(Direction::Outbound)) => Some(false),
                _ => None,
            };
            let same = |x: Option<Direction>, y: Option<Direction>| Some(x? == y?);
            matches.push(Match {
                same: same(a.direction, b.direction),
                time_ns: a.time_ns,
                difference_ns: b.time_ns.wrapping_sub(a.time_ns) as i64,
                forward,
                ends: a.ends,
                ilnp: a.ilnp || b.ilnp,
            });
        }
        matches.sort_by_key(|m| (m.time_ns, m.difference_ns));
        if is_of_one_host(&matches) {
            return Self {
                left_out: Some(usize::from(second.packets <= first.packets)),
                ..Self::default()
            };
        }
        tell_directions(&mut matches);
        let clocks = Clocks::of(&matches, first.first_ns.unwrap_or_default());
        let mut places = Places::listening(clocks.ranges(first, second), first.compared.min(second.compared));
        for m in &matches {
            let Some(forward) = m.forward else { continue };
            let (here, there) = if forward { (0, 1) } else { (1, 0) };
            places.note(here, m.ends.0, m.ilnp);
            places.note(there, m.ends.1, m.ilnp);
        }
        Self {
            places,
            left_out: None,
            clocks,
        }
    }
}

impl Clocks {
    /// By packets that both captures have, in order; the first capture begins at `since_ns`.
    fn of(matches: &[Match], since_ns: u64) -> Self {
        let unknown = Self {
            since_ns,
            ..Self::default()
        };
        let (Some(first), Some(last)) = (matches.first(), matches.last()) else {
            return unknown;
        };
        let whole = Bounds::of(matches, |m| m.difference_ns as f64);
        let mut bounds = whole;
        let lasted = last.time_ns.wrapping_sub(first.time_ns) as i64;
        let mut drift_ppm = None;
        let mut believed = 0.0;
        if lasted >= DRIFT_FROM_NS
            && let Some(drift) = drift(matches)
        {
            drift_ppm = Some(drift * 1e6);
            // where one offset serves the whole time, it is the better estimate
            if whole.width().is_some_and(|w| w < 0.0) {
                let elapsed = |m: &Match| m.time_ns.saturating_sub(since_ns) as f64;
                bounds = Bounds::of(matches, |m| m.difference_ns as f64 - drift * elapsed(m));
                believed = drift;
            }
        }
        let Some(offset_ns) = bounds.middle() else {
            return Self {
                drift: believed,
                ..unknown
            };
        };
        Self {
            offset: Some(ClockOffset {
                offset_s: offset_ns / 1e9,
                uncertainty_s: bounds.width().map(|w| w.abs() / 2e9),
                drift_ppm,
                matched_packets: matches.len() as u64,
            }),
            offset_ns,
            drift: believed,
            since_ns,
        }
    }

    /// A time of the second clock on the first.
    pub(super) fn to_first(self, second_ns: u64) -> u64 {
        let elapsed = second_ns as i128 - i128::from(self.since_ns) - self.offset_ns as i128;
        let correction = self.offset_ns + self.drift * elapsed as f64;
        let first_ns = second_ns.saturating_add_signed((correction.round() as i64).saturating_neg());
        first_ns.min(LATEST_NS)
    }

    /// When each of two captures has packets.
    fn ranges(self, first: &Samples, second: &Samples) -> [Listens; 2] {
        let (Some(here), Some((since, until))) = (first.range_ns, second.range_ns) else {
            return [Listens::default(); 2];
        };
        let there = (self.to_first(since), self.to_first(until));
        [here, there].map(|(since_ns, until_ns)| Listens {
            since_ns,
            until_ns,
            begin_ns: here.0.min(there.0),
            end_ns: here.1.max(there.1),
        })
    }
}

/// Whether both captures are of one host: they say that packets went the same way, or, where they do not say, the packets of
/// both ways show the same difference of clocks to the microsecond, as they cannot where each takes time between two hosts.
fn is_of_one_host(matches: &[Match]) -> bool {
    let told = matches.iter().filter_map(|m| m.same);
    let (same, apart) = told.fold((0, 0), |(same, apart), s| {
        (same + usize::from(s), apart + usize::from(!s))
    });
    if same + apart > 0 {
        return same > apart;
    }
    let mut pairs: BTreeMap<(Address, Address), [usize; 2]> = BTreeMap::new();
    for m in matches {
        let (x, y) = m.ends;
        let key = (x.min(y), x.max(y));
        if pairs.len() < MAX_PAIRS || pairs.contains_key(&key) {
            pairs.entry(key).or_default()[usize::from(x > y)] += 1;
        }
    }
    let both_ways = pairs.values().any(|[up, down]| *up.min(down) >= BOTH_WAYS);
    let differences = || matches.iter().map(|m| m.difference_ns);
    let width = differences()
        .max()
        .zip(differences().min())
        .map(|(most, least)| most.abs_diff(least));
    both_ways && width.is_some_and(|w| w <= SAME_CLOCK_NS)
}

/// Where captures do not say in which direction packets went: of two directions between the same hosts, the one with the
/// greater difference leaves the first capture's host.
fn tell_directions(matches: &mut [Match]) {
    let mut pairs: BTreeMap<(Address, Address), [Vec<i64>; 2]> = BTreeMap::new();
    let pair = |m: &Match| {
        let (x, y) = m.ends;
        ((x.min(y), x.max(y)), usize::from(x > y))
    };
    for m in matches.iter().filter(|m| m.forward.is_none()) {
        let (key, way) = pair(m);
        if pairs.len() < MAX_PAIRS || pairs.contains_key(&key) {
            pairs.entry(key).or_default()[way].push(m.difference_ns);
        }
    }
    let mut leaves: BTreeMap<(Address, Address), usize> = BTreeMap::new();
    for (key, ways) in &mut pairs {
        let [up, down] = ways;
        up.sort_unstable();
        down.sort_unstable();
        if let (Some(up), Some(down)) = (up.get(up.len() / 2), down.get(down.len() / 2)) {
            leaves.insert(*key, usize::from(down > up));
        }
    }
    for m in matches.iter_mut().filter(|m| m.forward.is_none()) {
        let (key, way) = pair(m);
        m.forward = leaves.get(&key).map(|leaving| *leaving == way);
    }
}

/// Smallest difference of what left the first host, greatest of what left the second.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    upper: Option<f64>,
    lower: Option<f64>,
}

impl Bounds {
    fn of(matches: &[Match], difference: impl Fn(&Match) -> f64) -> Self {
        let mut bounds = Self::default();
        for m in matches {
            let d = difference(m);
            if m.forward != Some(false) {
                bounds.upper = Some(bounds.upper.map_or(d, |u: f64| u.min(d)));
            }
            if m.forward == Some(false) {
                bounds.lower = Some(bounds.lower.map_or(d, |l: f64| l.max(d)));
            }
        }
        bounds
    }

    fn width(self) -> Option<f64> {
        Some(self.upper? - self.lower?)
    }

    fn middle(self) -> Option<f64> {
        match (self.upper, self.lower) {
            (Some(upper), Some(lower)) => Some((upper + lower) / 2.0),
            // the path is taken to cost hardly any time, but packets still arrive after they were sent
            (Some(upper), None) => Some(upper - 1.0),
            (None, Some(lower)) => Some(lower + 1.0),
            (None, None) => None,
        }
    }
}

/// Nanoseconds that the second clock gains by nanosecond: from the offsets of the first and the last third, if these cannot
/// be the same.
fn drift(matches: &[Match]) -> Option<f64> {
    let third = matches.len() / 3;
    let (early, late) = (matches.get(..third)?, matches.get(matches.len() - third..)?);
    let middle = |part: &[Match]| part.get(part.len() / 2).map(|m| m.time_ns as f64);
    let (from, to) = (middle(early)?, middle(late)?);
    let of = |part| Bounds::of(part, |m| m.difference_ns as f64);
    let (early, late) = (of(early), of(late));
    let gained = late.middle()? - early.middle()?;
    let unsure = (early.width()?.abs() + late.width()?.abs()) / 2.0;
    let drift = gained / (to - from).max(1.0);
    (gained.abs() > unsure && drift.abs() * 1e6 <= MOST_DRIFT_PPM).then_some(drift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::decode::LinkType;

    #[test]
    fn packets_are_compared_by_96_bytes_without_their_checksums() {
        for (protocol, left_out) in [(6u8, 16..18), (17, 6..8), (132, 0..0)] {
            let of = |payload: &[u8]| {
                let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 64];
                packet.resize(40, 1);
                packet.extend(payload);
                let decoded = decode::decode(LinkType::Raw, &packet, packet.len() as u32);
                fingerprint(&decoded.expect("a packet"), COMPARED)
            };
            let payload = [5; 110];
            let mut seen = std::collections::BTreeSet::from([of(&payload)]);
            assert!(seen.insert(of(&payload[..109])));
            for at in 0..110 {
                let mut other = payload;
                other[at] ^= 0x21;
                let compared = at < 96 && !left_out.contains(&at);
                assert_eq!(
                    seen.insert(of(&other)),
                    compared,
                    "byte {at} of protocol {protocol}"
                );
            }
        }
    }
}
