//! A seed becomes an ordeal: two hosts with configurations drawn at random exchange messages in both directions over a
//! network that loses, reorders, duplicates and corrupts, whose links come and go, while both hosts add, prefer and
//! delete addresses, and users stop reading for a while. Then the network becomes calm, and everything must be delivered,
//! exactly once and in order within its stream, unless an end has reported failure.

use crate::ledger::Ledger;
use crate::transcript::Transcript;
use crate::world::{A, B, Network, World, address, local};
use core::net::Ipv6Addr;
use segue_proto::congestion::Coupling;
use segue_proto::random::Stream;
use segue_proto::sctp::multipath::{BufferSplit, Cuc, RtxPolicy, SchedulerKind};
use segue_proto::sctp::{
    AddressRequest, AsconfAuth, Config, CwndCredit, Event, MultipathConfig, Profile, RetransmitTo,
    SackImmediately, SackRoute, SendOptions,
};
use segue_proto::{Duration, Instant};
use segue_wire::Packet;
use std::collections::{BTreeMap, VecDeque};

/// Streams that messages are sent on.
const STREAMS: u64 = 5;
/// Virtual time after which a calm network must have delivered everything: ten times the longest RTO.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a path must have been alive for it to be a fault that an end gives up; or as long as the longest RTO of that end,
/// which has no sooner opportunity to find out.
const ALIVE: Duration = Duration::from_secs(10);

/// What may befall the two hosts of an ordeal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trials {
    /// Links come and go.
    pub flaps: bool,
    /// Hosts change their addresses.
    pub moves: bool,
    /// An address that is being deleted is gone at once, not only when the peer has agreed.
    pub breaks_first: bool,
    /// Data goes on all paths at once.
    pub multipath: bool,
}

impl Trials {
    /// Whether there may be times without a live path, so that an end may report failure.
    fn may_fail(self) -> bool {
        self.flaps || (self.moves && self.breaks_first)
    }
}

/// How an ordeal went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// An end reported failure.
    pub failed: bool,
    /// Messages delivered.
    pub messages: usize,
    /// Packets sent.
    pub packets: u64,
    /// Packets that were harmed on the way and noticed by a checksum.
    pub corrupted: u64,
    /// Addresses added, and deleted.
    pub moves: u64,
    /// Links that went down.
    pub outages: u64,
    /// T3-rtx expiries of both ends.
    pub t3_expiries: u64,
}

/// The first seed with data on all paths at once.
pub const FIRST_MULTIPATH: u64 = 1000;

/// What the seeds are put through: every fourth has a network with steady links and addresses, the next one moves, the
/// next one has links that flap, the last one both. From [`FIRST_MULTIPATH`] on, data goes on all paths at once.
#[must_use]
pub fn trials_of(seed: u64) -> Trials {
    Trials {
        flaps: seed & 2 != 0,
        moves: seed & 1 != 0,
        breaks_first: seed & 4 != 0,
        multipath: seed >= FIRST_MULTIPATH,
    }
}

/// Runs the ordeal of a seed.
///
/// # Errors
/// What went wrong, in words.
///
/// # Panics
/// If an endpoint breaks one of its invariants.
pub fn run(seed: u64) -> Result<Report, String> {
    play(&mut Ordeal::new(seed, trials_of(seed)))
}

/// Plays the ordeal of a seed, whatever comes of it, and writes what was sent to `transcript`.
///
/// # Panics
/// If an endpoint breaks one of its invariants.
#[must_use]
pub fn transcribe(seed: u64, transcript: Transcript) -> Transcript {
    let mut ordeal = Ordeal::new(seed, trials_of(seed));
    ordeal.world.transcript = Some(transcript);
    // what went wrong is for the tests to say
    let _ = play(&mut ordeal);
    ordeal.world.transcript.take().unwrap_or_default()
}

fn play(ordeal: &mut Ordeal) -> Result<Report, String> {
    let trials = ordeal.trials;
    ordeal.world.connect();
    ordeal.chaos()?;
    ordeal.calm()?;
    if !ordeal.report.failed {
        ordeal.shutdown()?;
    } else if !trials.may_fail() {
        return Err("failure was reported though live paths existed all the time".into());
    }
    let mut report = ordeal.report;
    report.messages = ordeal.ledgers.iter().map(Ledger::received_count).sum();
    report.packets = ordeal.world.sent;
    report.corrupted = ordeal.world.unparsed;
    report.outages = ordeal.world.network.outages;
    Ok(report)
}

/// A message yet to be sent.
struct Planned {
    not_before: Instant,
    stream_id: u16,
    unordered: bool,
    len: u32,
}

struct Ordeal {
    world: World<Adverse>,
    trials: Trials,
    random: Stream,
    planned: [VecDeque<Planned>; 2],
    /// By the sending host.
    ledgers: [Ledger; 2],
    chaos_until: Instant,
    next_act: Instant,
    /// Last address number of each host.
    last_number: [u16; 2],
    over: [Option<Event>; 2],
    alive_since: Option<Instant>,
    /// Longest RTO of each host.
    longest_rto: [Duration; 2],
    /// A COOKIE ECHO came, with a cookie still good, after its association was lost: there is a new one.
    begun_again: bool,
    report: Report,
}

impl Ordeal {
    fn new(seed: u64, trials: Trials) -> Self {
        let mut random = Stream::new(seed, "ordeal");
        let mut configs = [config(&mut random), config(&mut random)];
        if trials.multipath {
            let mut random = Stream::new(seed, "multipath");
            for config in &mut configs {
                config.multipath = Some(multipath(&mut random));
            }
        }
        if random.chance(0.95) {
            // addresses change only where both ends agree about authentication
            configs[B].asconf_auth = configs[A].asconf_auth;
        }
        let addresses = [1 + random.below(3) as u16, 1 + random.below(3) as u16];
        let chaos_until = Instant::ZERO + Duration::from_millis(2000 + random.below(60_000));
        let network = Adverse::drawn(seed, &mut random, None);
        let planned = [A, B].map(|_| plan(&mut random, chaos_until));
        Self {
            world: World::new(configs, addresses, network, seed),
            trials,
            random,
            planned,
            ledgers: Default::default(),
            chaos_until,
            next_act: Instant::ZERO + Duration::from_millis(200),
            last_number: addresses,
            over: [None, None],
            alive_since: None,
            longest_rto: [Duration::ZERO; 2],
            begun_again: false,
            report: Report::default(),
        }
    }

    fn chaos(&mut self) -> Result<(), String> {
        while self.world.now < self.chaos_until && !self.is_over() {
            let next = self
                .world
                .next_at()
                .map_or(self.next_act, |at| at.min(self.next_act));
            self.world.step(next.min(self.chaos_until));
            if self.world.now >= self.next_act {
                self.act();
                self.next_act = self.world.now + Duration::from_millis(20 + self.random.below(3000));
            }
            self.look()?;
            self.feed()?;
        }
        Ok(())
    }

    /// The network is calm, all links are up, both users read: everything must come through.
    fn calm(&mut self) -> Result<(), String> {
        self.world.network.calm = true;
        self.world.network.down.clear();
        for host in [A, B] {
            self.set_reading(host, true);
        }
        let patience = self.world.now + PATIENCE;
        while !self.is_over() && !self.is_delivered() {
            if self.world.now >= patience {
                let missing: Vec<_> = [A, B]
                    .iter()
                    .map(|&h| self.ledgers[h].sent_count() - self.ledgers[h].received_count())
                    .collect();
                return Err(format!(
                    "stall: {missing:?} messages missing, {:?} not yet sent {PATIENCE:?} after the network became calm",
                    self.planned.each_ref().map(VecDeque::len)
                ));
            }
            self.world.step(patience);
            self.look()?;
            self.feed()?;
        }
        if self.is_over() {
            self.report.failed = true;
            return self.both_end();
        }
        Ok(())
    }

    /// One end has reported failure: the other must find out.
    fn both_end(&mut self) -> Result<(), String> {
        let patience = self.world.now + PATIENCE;
        while !self.begun_again
            && [A, B]
                .iter()
                .any(|&h| self.over[h].is_none() && self.world.ids[h].is_some())
        {
            if self.world.now >= patience {
                return Err(format!(
                    "one end is left behind: {:?} {PATIENCE:?} after the network became calm",
                    self.over
                ));
            }
            self.world.step(patience);
            self.look()?;
        }
        Ok(())
    }

    fn shutdown(&mut self) -> Result<(), String> {
        let host = self.random.below(2) as usize;
        self.world.command(host, |a, now| a.shutdown(now));
        let patience = self.world.now + PATIENCE;
        while self.over.iter().any(Option::is_none) {
            if self.world.now >= patience {
                return Err(format!("the shutdown does not end: {:?}", self.over));
            }
            self.world.step(patience);
            self.look()?;
        }
        if self.over.iter().any(|o| o != &Some(Event::Closed)) {
            // an outage may have used up all but one of the errors that an association forgives
            if self.trials.may_fail() && self.over.contains(&Some(Event::Lost)) {
                self.report.failed = true;
                return Ok(());
            }
            return Err(format!("the shutdown ends badly: {:?}", self.over));
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over.iter().any(Option::is_some)
    }

    fn is_delivered(&self) -> bool {
        self.planned.iter().all(VecDeque::is_empty)
            && self.ledgers.iter().all(|l| l.sent_count() == l.received_count())
    }

    /// Sends what is due and fits.
    fn feed(&mut self) -> Result<(), String> {
        for host in [A, B] {
            while let Some(next) = self.planned[host].front() {
                let calm = self.world.network.calm;
                let Some(association) = self.world.association(host) else {
                    break;
                };
                if (next.not_before > self.world.now && !calm)
                    || (host == B && !association.is_established())
                    || association.send_space() < next.len as usize
                {
                    // a refusal is remembered, and announced by Writable
                    break;
                }
                let (stream_id, unordered, len) = (next.stream_id, next.unordered, next.len);
                let (index, data) = self.ledgers[host].next(stream_id, unordered, len);
                let options = SendOptions {
                    unordered,
                    payload_protocol_id: index,
                    ..SendOptions::default()
                };
                let sent = self
                    .world
                    .command(host, |a, now| a.send(now, stream_id, data, options));
                match sent {
                    Some(Ok(())) => {
                        self.ledgers[host].sent(stream_id, unordered, len);
                        self.planned[host].pop_front();
                    }
                    None => break,
                    Some(Err(error)) => {
                        self.look()?;
                        if self.is_over() {
                            return Ok(());
                        }
                        return Err(format!("send failed: {error}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes since when the two ends are up and can reach each other: the address that each sends from has a link, and so has one
    /// of the other's addresses that it knows.
    fn watch_paths(&mut self) {
        let (now, network, owned) = (self.world.now, &self.world.network, &self.world.owned);
        let reaches = |host: usize| {
            self.world.association(host).is_some_and(|association| {
                let live = |host: usize, a: Ipv6Addr| owned[host].contains(&a) && network.is_up(now, &a);
                association.is_established()
                    && live(host, association.route().address)
                    && association.paths().any(|p| live(1 - host, p.destination))
            })
        };
        let alive = reaches(A) && reaches(B);
        for host in [A, B] {
            if let Some(association) = self.world.association(host) {
                self.longest_rto[host] = association.paths().map(|p| p.rto).max().unwrap_or_default();
            }
        }
        self.alive_since = alive.then(|| self.alive_since.unwrap_or(now));
    }

    /// Looks at what the two ends have told and delivered.
    fn look(&mut self) -> Result<(), String> {
        let alive_since = self.alive_since;
        self.watch_paths();
        for host in [A, B] {
            while let Some(message) = self.world.messages[host].pop_front() {
                self.ledgers[1 - host]
                    .receive(&message)
                    .map_err(|what| format!("host {host} at {:?}: {what}", self.world.now))?;
            }
            while let Some(event) = self.world.events[host].pop_front() {
                match &event {
                    Event::Closed => self.over[host] = Some(event),
                    Event::Lost => {
                        if let Some(since) = alive_since
                            && self.world.now.since(since) > ALIVE.max(self.longest_rto[host])
                        {
                            return Err(format!(
                                "host {host} gives up at {:?}, though a path has been alive since {since:?}",
                                self.world.now
                            ));
                        }
                        self.over[host] = Some(event);
                    }
                    Event::Aborted { causes } => {
                        // the answer to what is out of the blue, after the other end was lost, names no cause
                        if !causes.is_empty() {
                            return Err(format!("host {host} at {:?}: {event:?}", self.world.now));
                        }
                        self.over[host] = Some(event);
                    }
                    Event::Connected => self.begun_again |= self.over[host].is_some(),
                    Event::AsconfAnswered { results, .. } => {
                        for result in results {
                            if let (AddressRequest::Delete(gone), Ok(())) = (result.request, &result.outcome)
                            {
                                self.world.owned[host].retain(|a| *a != gone);
                                self.report.moves += 1;
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        self.report.t3_expiries = [A, B]
            .iter()
            .filter_map(|&h| self.world.association(h))
            .map(|a| a.counters().t3_expiries)
            .sum();
        Ok(())
    }

    /// Something happens.
    fn act(&mut self) {
        let host = self.random.below(2) as usize;
        match self.random.below(10) {
            0 | 1 if self.trials.flaps => self.flap(host),
            2 | 3 if self.trials.moves => self.add_address(host),
            4 | 5 if self.trials.moves => self.delete_address(host),
            6 => {
                let reads = self.world.reading[host];
                self.set_reading(host, !reads);
            }
            7 if self.trials.moves => {
                if let Some(own) = self.any_own(host) {
                    self.world.command(host, |a, now| a.request_set_primary(now, own));
                }
            }
            8 => {
                if let Some(own) = self.any_own(host) {
                    self.world.command(host, |a, now| a.set_route(now, own));
                }
            }
            9 => {
                let others: Vec<_> = match self.world.association(host) {
                    Some(a) => a.paths().map(|p| p.destination).collect(),
                    None => Vec::new(),
                };
                if let Some(destination) = self.pick(&others) {
                    self.world
                        .command(host, |a, now| a.set_primary_path(now, destination));
                }
            }
            _ => {}
        }
    }

    fn flap(&mut self, host: usize) {
        let owned = self.world.owned[host].clone();
        if let Some(link) = self.pick(&owned) {
            let until = self.world.now + Duration::from_millis(100 + self.random.below(15_000));
            self.world.network.down.insert(link, until);
            self.world.network.outages += 1;
        }
    }

    fn add_address(&mut self, host: usize) {
        if self.world.owned[host].len() >= 4 {
            return;
        }
        let number = self.last_number[host] + 1;
        let added = self
            .world
            .command(host, |a, now| a.add_address(now, local(host, number)));
        if added == Some(Ok(())) {
            self.last_number[host] = number;
            self.world.owned[host].push(address(host, number));
            self.report.moves += 1;
        }
    }

    fn delete_address(&mut self, host: usize) {
        let Some(own) = self.any_own(host) else { return };
        let asked = self.world.command(host, |a, now| a.delete_address(now, own));
        if asked == Some(Ok(())) && self.trials.breaks_first {
            self.world.owned[host].retain(|a| *a != own);
        }
    }

    fn any_own(&mut self, host: usize) -> Option<Ipv6Addr> {
        let own: Vec<_> = match self.world.association(host) {
            Some(a) => a.local_addresses().map(|l| l.address).collect(),
            None => Vec::new(),
        };
        self.pick(&own)
    }

    fn pick(&mut self, from: &[Ipv6Addr]) -> Option<Ipv6Addr> {
        if from.is_empty() {
            return None;
        }
        Some(from[self.random.below(from.len() as u64) as usize])
    }

    fn set_reading(&mut self, host: usize, reading: bool) {
        self.world.reading[host] = reading;
        self.world.drain();
    }
}

/// Losses, duplicates, harm and delays, each drawn per packet; links that are down.
pub(crate) struct Adverse {
    loss: f64,
    duplication: f64,
    corruption: f64,
    delay: Duration,
    jitter_ms: u64,
    random: Stream,
    /// Links that are down, by address, and until when.
    down: BTreeMap<Ipv6Addr, Instant>,
    outages: u64,
    calm: bool,
    /// Longer packets are swallowed, bytes.
    carries: Option<usize>,
}

impl Adverse {
    pub(crate) fn drawn(seed: u64, random: &mut Stream, carries: Option<usize>) -> Self {
        Self {
            loss: 0.08 * random.uniform(),
            duplication: 0.05 * random.uniform(),
            corruption: 0.03 * random.uniform(),
            delay: Duration::from_millis(1 + random.below(100)),
            jitter_ms: random.below(80),
            random: Stream::new(seed, "network"),
            down: BTreeMap::new(),
            outages: 0,
            calm: false,
            carries,
        }
    }

    /// From now on nothing is lost or harmed.
    pub(crate) const fn calm(&mut self) {
        self.calm = true;
    }

    fn is_up(&self, now: Instant, address: &Ipv6Addr) -> bool {
        self.down.get(address).is_none_or(|&until| now >= until)
    }
}

impl Network for Adverse {
    fn carry(&mut self, now: Instant, _from: usize, packet: &Packet) -> Vec<(Duration, Vec<u8>)> {
        if self.carries.is_some_and(|most| packet.buffer_len() > most) {
            return Vec::new();
        }
        if self.calm {
            return vec![(self.delay, packet.to_vec())];
        }
        if !self.is_up(now, &packet.ip.source) || !self.is_up(now, &packet.ip.destination) {
            return Vec::new();
        }
        let mut copies = Vec::new();
        if self.random.chance(self.loss) {
            return copies;
        }
        let count = 1 + usize::from(self.random.chance(self.duplication));
        for _ in 0..count {
            let mut bytes = packet.to_vec();
            if self.random.chance(self.corruption) {
                for _ in 0..=self.random.below(3) {
                    let bit = self.random.below(bytes.len() as u64 * 8) as usize;
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            let jitter = Duration::from_millis(self.random.below(self.jitter_ms + 1));
            copies.push((self.delay + jitter, bytes));
        }
        copies
    }
}

fn one_of<T: Copy>(random: &mut Stream, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

pub(crate) fn config(random: &mut Stream) -> Config {
    let profile = one_of(random, &[Profile::Rfc2960, Profile::Rfc4960, Profile::Rfc9260]);
    let defaults = Config::new(profile);
    Config {
        mtu: one_of(random, &[1280, 1500]),
        receive_buffer: one_of(random, &[20_000, 65_536, 131_072]),
        send_buffer: one_of(random, &[20_000, 60_000, 262_144]),
        rto_min: one_of(random, &[Duration::from_millis(100), defaults.rto_min]),
        rto_max: one_of(random, &[Duration::from_secs(5), defaults.rto_max]),
        path_max_retrans: one_of(random, &[0, 1, 5]),
        association_max_retrans: one_of(random, &[10, 20]),
        hb_interval: Some(one_of(
            random,
            &[
                Duration::from_secs(1),
                Duration::from_secs(5),
                Duration::from_secs(30),
            ],
        )),
        max_burst: one_of(random, &[Some(1), Some(4), None]),
        sack_frequency: one_of(random, &[1, 2, 4]),
        max_chunk_data: one_of(random, &[None, None, Some(100)]),
        cwnd_credit: one_of(random, &[CwndCredit::DataPath, CwndCredit::AckPath]),
        sack_route: one_of(random, &[SackRoute::RoutingTable, SackRoute::Arrival]),
        retransmit_to: one_of(random, &[RetransmitTo::AlternatePath, RetransmitTo::SamePath]),
        asconf_auth: one_of(
            random,
            &[AsconfAuth::Required, AsconfAuth::Required, AsconfAuth::None],
        ),
        pf_max_retrans: one_of(random, &[None, Some(0), Some(1)]),
        primary_switchover_max_retrans: one_of(random, &[None, Some(2)]),
        sack_immediately: one_of(
            random,
            &[
                SackImmediately::Never,
                SackImmediately::OnRequest,
                SackImmediately::WhenBlocked,
            ],
        ),
        early_retransmit: random.chance(0.5),
        quick_sacks: one_of(random, &[0, 1, 16]),
        ..defaults
    }
}

/// Any parts of concurrent multipath transfer: the two ends need not agree.
pub(crate) fn multipath(random: &mut Stream) -> MultipathConfig {
    MultipathConfig {
        cuc: one_of(random, &[Cuc::Off, Cuc::V1, Cuc::V2]),
        sfr: random.chance(0.7),
        dac: random.chance(0.7),
        rtx_policy: one_of(
            random,
            &[
                RtxPolicy::Asap,
                RtxPolicy::Same,
                RtxPolicy::Cwnd,
                RtxPolicy::Ssthresh,
                RtxPolicy::LossRate,
            ],
        ),
        pf: random.chance(0.7),
        pf_recovery: one_of(random, &[1, 2]),
        ignore_stale_sacks: random.chance(0.7),
        own_rtt: random.chance(0.7),
        mfr: random.chance(0.5),
        spare_recent: random.chance(0.7),
        scheduler: one_of(
            random,
            &[
                SchedulerKind::RoundRobin,
                SchedulerKind::Turns,
                SchedulerKind::FillFirst,
                SchedulerKind::LowestRtt,
                SchedulerKind::LargestCwnd,
                SchedulerKind::Blest,
                SchedulerKind::Ecf,
            ],
        ),
        buffer_split: one_of(
            random,
            &[
                BufferSplit::None,
                BufferSplit::Sender,
                BufferSplit::Receiver,
                BufferSplit::Both,
            ],
        ),
        opportunistic: random.chance(0.4),
        nr_sack: random.chance(0.5),
        congestion: one_of(
            random,
            &[
                Coupling::Uncoupled,
                Coupling::Lia,
                Coupling::Olia,
                Coupling::Balia,
                Coupling::Rp1,
                Coupling::Rp2,
            ],
        ),
    }
}

/// Up to 200 kB in messages of 1 byte to 8 kB, some of them only after a pause.
fn plan(random: &mut Stream, until: Instant) -> VecDeque<Planned> {
    let total = random.below(200_000);
    let (mut bytes, mut at) = (0, Instant::ZERO);
    let mut out = VecDeque::new();
    while bytes < total {
        if random.chance(0.02) && at < until {
            at += Duration::from_millis(random.below(5000));
        }
        let longest = if random.chance(0.2) { 8000 } else { 1500 };
        let len = 1 + random.below(longest);
        bytes += len;
        out.push_back(Planned {
            not_before: at,
            stream_id: random.below(STREAMS) as u16,
            unordered: random.chance(0.2),
            len: len as u32,
        });
    }
    out
}
