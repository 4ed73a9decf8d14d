//! The programs of the fast path in the kernel, `fast_path/packets.bpf.c`: loaded, attached, and told what they carry. They go with the
//! process, whatever ends it.

use anyhow::{Context as _, bail};
use aya::maps::{Array, HashMap, MapData};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier, SocketFilter, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use segue_agent::fast_path::{Carried, Carrier, Flow, Leaves};
use segue_proto::Instant;
use segue_proto::ilnp::{Direct, SessionKey};
use segue_wire::ilnp::{Nid, Nonce};
use segue_wire::ipv6::ILNP_NONCE;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;

/// As `build.rs` has compiled them; nothing if it could not.
static PROGRAMS: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/packets.bpf.o"));

/// `struct way` and what the programs write behind it, in bytes as they have them; the file has the same numbers.
const WAY: usize = 144;
const COUNTERS: usize = 48;
const SESSION: usize = WAY + COUNTERS;
/// `struct wire_key`, `struct flow` and `struct flow_state`.
const WIRE_KEY: usize = 48;
const FLOW: usize = 24;
const FLOW_STATE: usize = 48;
/// In the map of what concerns the host: its identifier, and packets that were lost of late.
const IDENTIFIER: u32 = 0;
const LOST: u32 = 1;
/// From so many on nothing that arrives is carried.
const MOST_LOST: u64 = 16;

/// Of the 256 sessions that there is room for, `fast_path.rs` has at most 32 carried.
const MOST_ENDED: usize = 128;

/// The programs, loaded.
pub(crate) struct Programs {
    programs: Ebpf,
    sessions: HashMap<MapData, u64, [u8; SESSION]>,
    wire_keys: HashMap<MapData, [u8; WIRE_KEY], u64>,
    flows: HashMap<MapData, [u8; FLOW], [u8; FLOW_STATE]>,
    drained: HashMap<MapData, u32, u64>,
    host: Array<MapData, u64>,
    /// Packets that were lost before those of late.
    lost: u64,
    /// What the maps know sessions by that are carried: each time by another number.
    carriages: BTreeMap<SessionKey, u64>,
    begun: u64,
    /// Sessions that are carried no more and still in the map: the room of one that is taken out is another's at once, and a processor may
    /// be reading it.
    ended: VecDeque<u64>,
    /// Where what arrives is carried, by the name of the interface.
    attached: BTreeMap<String, SchedClassifierLinkId>,
    /// What applications of this host are known by.
    identity: Ipv6Addr,
    /// The number of the device.
    device: u32,
}

impl Programs {
    /// Loads them, for a host with this identity, whose device has this name and number.
    ///
    /// # Errors
    /// If the kernel does not take them (Linux 6.6 with `CONFIG_NET_XGRESS`, `CAP_BPF`), or there are none.
    pub fn load(identity: Ipv6Addr, device: (&str, u32)) -> anyhow::Result<Self> {
        if PROGRAMS.is_empty() {
            bail!("built without clang");
        }
        if is_for_real_time() {
            bail!("the kernel is one for real time (PREEMPT_RT)");
        }
        // they ask for none of the kernel's types, which take up memory
        let mut programs = EbpfLoader::new().btf(None).load(PROGRAMS)?;
        let mut map = |name: &str| programs.take_map(name).with_context(|| name.to_owned());
        let mut host: Array<MapData, u64> = map("host")?.try_into()?;
        let [sessions, wire_keys] = [map("sessions")?, map("wire_keys")?];
        let [flows, drained] = [map("flows")?, map("drained")?];
        // in network order
        host.set(
            IDENTIFIER,
            u64::from_ne_bytes(Nid::of(identity).0.to_be_bytes()),
            0,
        )?;
        let mut loaded = Self {
            sessions: sessions.try_into()?,
            wire_keys: wire_keys.try_into()?,
            flows: flows.try_into()?,
            drained: drained.try_into()?,
            host,
            lost: 0,
            carriages: BTreeMap::new(),
            begun: 0,
            ended: VecDeque::new(),
            programs,
            attached: BTreeMap::new(),
            identity,
            device: device.1,
        };
        loaded.tap()?.load()?;
        for name in ["arrive", "leave"] {
            loaded.classifier(name)?.load()?;
        }
        loaded.attach_to("leave", device.0, TcAttachType::Egress)?;
        Ok(loaded)
    }

    /// Has them carry what arrives at an interface, whose packets for the agent come by `socket`.
    ///
    /// # Errors
    /// As the kernel has them.
    pub fn attach(&mut self, interface: &str, socket: impl AsFd) -> anyhow::Result<()> {
        if let Some(before) = self.attached.remove(interface) {
            // of one that is gone there is nothing to detach
            let _ = self.classifier("arrive")?.detach(before);
        }
        let link = self.attach_to("arrive", interface, TcAttachType::Ingress)?;
        self.attached.insert(interface.to_owned(), link);
        Ok(self.tap()?.attach(socket)?)
    }

    fn attach_to(
        &mut self,
        name: &str,
        interface: &str,
        place: TcAttachType,
    ) -> anyhow::Result<SchedClassifierLinkId> {
        let order = TcAttachOptions::TcxOrder(LinkOrder::first());
        Ok(self
            .classifier(name)?
            .attach_with_options(interface, place, order)?)
    }

    fn classifier(&mut self, name: &str) -> anyhow::Result<&mut SchedClassifier> {
        let program = self.programs.program_mut(name).with_context(|| name.to_owned())?;
        Ok(program.try_into()?)
    }

    /// The session of a flow, by its number, and packets that were carried.
    fn state_of(&self, flow: Flow) -> Option<[u64; 2]> {
        let state = self.flows.get(&flow_of(flow), 0).ok()?;
        Some(words(&state))
    }

    fn lost_of_late(&self) -> u64 {
        self.host.get(&LOST, 0).unwrap_or_default()
    }

    /// A session is carried no more: the programs no longer find it.
    fn take_out(&mut self, carriage: u64) {
        self.ended.push_back(carriage);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            let _ = self.sessions.remove(&oldest);
        }
    }

    fn tap(&mut self) -> anyhow::Result<&mut SocketFilter> {
        let program = self.programs.program_mut("tap").context("tap")?;
        Ok(program.try_into()?)
    }
}

impl Carrier for Programs {
    fn begin(&mut self, direct: &Direct, path_mtu: u32, leaves: Leaves) -> io::Result<()> {
        let mut session = [0; SESSION];
        let (option, length) = option_of(direct.nonce);
        let addresses = [
            [direct.peer, self.identity],
            [direct.there, direct.here],
            [direct.here, direct.there],
        ];
        let addresses = addresses.as_flattened().iter().flat_map(|a| a.octets());
        let numbers = [length, leaves.index, self.device, path_mtu];
        let numbers = numbers.into_iter().flat_map(u32::to_ne_bytes);
        let way = addresses
            .chain(option)
            .chain(numbers)
            .chain(leaves.next_hop.octets());
        for (to, from) in session.iter_mut().zip(way) {
            *to = from;
        }
        self.begun += 1;
        let carriage = self.begun;
        self.sessions
            .insert(carriage, session, 0)
            .map_err(io::Error::other)?;
        let done = self.wire_keys.insert(wire_key_of(direct), carriage, 0);
        done.map_err(|error| {
            self.take_out(carriage);
            io::Error::other(error)
        })?;
        self.carriages.insert(direct.session, carriage);
        Ok(())
    }

    fn add(&mut self, now: Instant, session: SessionKey, flow: Flow) -> io::Result<()> {
        let carriage = self.carriages.get(&session).ok_or(io::ErrorKind::NotFound)?;
        // its number, no packets, and for each direction the last and the first of those that wait for the agent
        let now = now.as_nanos();
        let mut state = [0; FLOW_STATE];
        let values = [*carriage, 0, now, now, now, now];
        for (to, from) in state
            .iter_mut()
            .zip(values.into_iter().flat_map(u64::to_ne_bytes))
        {
            *to = from;
        }
        let done = self.flows.insert(flow_of(flow), state, 0);
        done.map_err(io::Error::other)
    }

    fn forget(&mut self, session: SessionKey, flow: Flow) {
        // it may be another session's by now
        let owner = self.state_of(flow).map(|[owner, _]| owner);
        if owner.is_some() && owner.as_ref() == self.carriages.get(&session) {
            let _ = self.flows.remove(&flow_of(flow));
        }
    }

    fn end(&mut self, direct: &Direct) -> Carried {
        let key = wire_key_of(direct);
        let owner = self.wire_keys.get(&key, 0).ok();
        if owner.is_some() && owner.as_ref() == self.carriages.get(&direct.session) {
            let _ = self.wire_keys.remove(&key);
        }
        // what is under way in between is counted
        let carried = self.carried(direct.session);
        if let Some(carriage) = self.carriages.remove(&direct.session) {
            self.take_out(carriage);
        }
        carried
    }

    fn carried(&self, session: SessionKey) -> Carried {
        let carriage = self.carriages.get(&session);
        let Some(session) = carriage.and_then(|carriage| self.sessions.get(carriage, 0).ok()) else {
            return Carried::NONE;
        };
        let [heard, first_sent, received, received_bytes, sent, sent_bytes] = words(&session[WAY..]);
        Carried {
            received,
            received_bytes,
            sent,
            sent_bytes,
            heard: Instant::from_nanos(heard),
            first_sent: Instant::from_nanos(first_sent),
        }
    }

    fn packets(&self, flow: Flow) -> u64 {
        self.state_of(flow).map_or(0, |[_, packets]| packets)
    }

    fn drained(&mut self, index: u32, at: Instant) {
        // where that cannot be noted, packets go by the agent for a moment
        let _ = self.drained.insert(index, at.as_nanos(), 0);
    }

    fn lost(&self) -> u64 {
        self.lost + self.lost_of_late()
    }

    fn forgive(&mut self) {
        let of_late = self.lost_of_late();
        if (1..MOST_LOST).contains(&of_late) && self.host.set(LOST, 0, 0).is_ok() {
            self.lost += of_late;
        }
    }
}

/// Whether interrupt handlers interrupt each other (`CONFIG_PREEMPT_RT`): the programs are not made for that.
#[expect(clippy::disallowed_methods, reason = "the kernel says it in a file")]
fn is_for_real_time() -> bool {
    std::fs::read_to_string("/sys/kernel/realtime").is_ok_and(|is| is.trim() == "1")
}

/// The first eight-byte words of what a map has.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (found, _) = bytes.as_chunks::<8>();
    core::array::from_fn(|n| found.get(n).map_or(0, |word| u64::from_ne_bytes(*word)))
}

/// The destination options of a packet with a nonce alone, but for the next header (RFC 6744 section 2), and how long they are.
fn option_of(nonce: Nonce) -> ([u8; 16], u32) {
    let mut option = [0; 16];
    option[2] = ILNP_NONCE;
    match nonce {
        Nonce::Bits32(bytes) => {
            option[3] = 4;
            option[4..8].copy_from_slice(&bytes);
            (option, 8)
        }
        Nonce::Bits96(bytes) => {
            option[1] = 1;
            option[3] = 12;
            option[4..16].copy_from_slice(&bytes);
            (option, 16)
        }
    }
}

fn wire_key_of(direct: &Direct) -> [u8; WIRE_KEY] {
    let mut key = [0; WIRE_KEY];
    key[..16].copy_from_slice(&direct.there.octets());
    key[16..32].copy_from_slice(&direct.here.octets());
    key[32..].copy_from_slice(&option_of(direct.peers_nonce).0);
    key
}

fn flow_of(flow: Flow) -> [u8; FLOW] {
    let mut bytes = [0; FLOW];
    bytes[..16].copy_from_slice(&flow.peer.octets());
    bytes[16..20].copy_from_slice(&u32::from(flow.protocol).to_ne_bytes());
    bytes[20..22].copy_from_slice(&flow.own_port.to_be_bytes());
    bytes[22..24].copy_from_slice(&flow.peers_port.to_be_bytes());
    bytes
}
