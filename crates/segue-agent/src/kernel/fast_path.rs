//! The programs of the fast path in the kernel, `fast_path/packets.bpf.c`: loaded, attached, and told what they carry. They go with the
//! process, whatever ends it.

use anyhow::{Context as _, bail};
use aya::maps::{Array, HashMap, MapData};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier, SocketFilter, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use segue_agent::fast_path::{Carried, Carrier, Flow, Leaves};
use segue_proto::ilnp::{Direct, SessionKey};
use segue_wire::ilnp::{Nid, Nonce};
use segue_wire::ipv6::ILNP_NONCE;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;

/// As `build.rs` has compiled them; nothing if it could not.
static PROGRAMS: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/packets.bpf.o"));

/// `struct way` and what the programs count, in bytes as they have them.
const WAY: usize = 144;
const COUNTERS: usize = 40;
const SESSION: usize = WAY + COUNTERS;
/// `struct place` and `struct flow`.
const PLACE: usize = 48;
const FLOW: usize = 24;

/// Of the 256 sessions that there is room for, `fast_path.rs` has at most 32 carried.
const MOST_ENDED: usize = 128;

/// The programs, loaded.
pub(crate) struct Programs {
    programs: Ebpf,
    sessions: HashMap<MapData, u64, [u8; SESSION]>,
    places: HashMap<MapData, [u8; PLACE], u64>,
    flows: HashMap<MapData, [u8; FLOW], u64>,
    own: Array<MapData, u64>,
    /// What the maps know sessions by that are carried: each time by another number.
    numbers: BTreeMap<SessionKey, u64>,
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
        // they ask for none of the kernel's types, which take up memory
        let mut programs = EbpfLoader::new().btf(None).load(PROGRAMS)?;
        let mut map = |name: &str| programs.take_map(name).with_context(|| name.to_owned());
        let mut own: Array<MapData, u64> = map("own")?.try_into()?;
        let (sessions, places, flows) = (map("sessions")?, map("places")?, map("flows")?);
        // in network order
        own.set(0, u64::from_ne_bytes(Nid::of(identity).0.to_be_bytes()), 0)?;
        let mut loaded = Self {
            sessions: sessions.try_into()?,
            places: places.try_into()?,
            flows: flows.try_into()?,
            own,
            numbers: BTreeMap::new(),
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

    /// A session is carried no more: the programs no longer find it.
    fn take_out(&mut self, number: u64) {
        self.ended.push_back(number);
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
    fn begin(&mut self, direct: &Direct, most: u32, leaves: Leaves) -> io::Result<()> {
        let mut session = [0; SESSION];
        let (option, length) = option_of(direct.nonce);
        let addresses = [
            [direct.peer, self.identity],
            [direct.there, direct.here],
            [direct.here, direct.there],
        ];
        let addresses = addresses.as_flattened().iter().flat_map(|a| a.octets());
        let numbers = [length, leaves.index, self.device, most];
        let numbers = numbers.into_iter().flat_map(u32::to_ne_bytes);
        let way = addresses
            .chain(option)
            .chain(numbers)
            .chain(leaves.next_hop.octets());
        for (to, from) in session.iter_mut().zip(way) {
            *to = from;
        }
        self.begun += 1;
        let number = self.begun;
        self.sessions
            .insert(number, session, 0)
            .map_err(io::Error::other)?;
        self.places.insert(place_of(direct), number, 0).map_err(|error| {
            self.take_out(number);
            io::Error::other(error)
        })?;
        self.numbers.insert(direct.session, number);
        Ok(())
    }

    fn add(&mut self, session: SessionKey, flow: Flow) -> io::Result<()> {
        let number = self.numbers.get(&session).ok_or(io::ErrorKind::NotFound)?;
        let done = self.flows.insert(flow_of(flow), *number, 0);
        done.map_err(io::Error::other)
    }

    fn forget(&mut self, session: SessionKey, flow: Flow) {
        let flow = flow_of(flow);
        // it may be another session's by now
        let owner = self.flows.get(&flow, 0).ok();
        if owner.is_some() && owner.as_ref() == self.numbers.get(&session) {
            let _ = self.flows.remove(&flow);
        }
    }

    fn end(&mut self, direct: &Direct, flows: &BTreeSet<Flow>) -> Carried {
        for flow in flows {
            self.forget(direct.session, *flow);
        }
        let place = place_of(direct);
        let owner = self.places.get(&place, 0).ok();
        if owner.is_some() && owner.as_ref() == self.numbers.get(&direct.session) {
            let _ = self.places.remove(&place);
        }
        // what is under way in between is counted
        let carried = self.carried(direct.session);
        if let Some(number) = self.numbers.remove(&direct.session) {
            self.take_out(number);
        }
        carried
    }

    fn missed(&self) -> u64 {
        self.own.get(&1, 0).unwrap_or_default()
    }

    fn carried(&mut self, session: SessionKey) -> Carried {
        let number = self.numbers.get(&session);
        let Some(session) = number.and_then(|number| self.sessions.get(number, 0).ok()) else {
            return Carried::default();
        };
        // behind the time at which something was heard
        let (counters, _) = session[WAY + 8..].as_chunks::<8>();
        let mut counters = counters.iter().map(|bytes| u64::from_ne_bytes(*bytes));
        let mut next = || counters.next().unwrap_or_default();
        Carried {
            received: next(),
            received_bytes: next(),
            sent: next(),
            sent_bytes: next(),
        }
    }
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

fn place_of(direct: &Direct) -> [u8; PLACE] {
    let mut place = [0; PLACE];
    place[..16].copy_from_slice(&direct.there.octets());
    place[16..32].copy_from_slice(&direct.here.octets());
    place[32..].copy_from_slice(&option_of(direct.peers_nonce).0);
    place
}

fn flow_of(flow: Flow) -> [u8; FLOW] {
    let mut bytes = [0; FLOW];
    bytes[..16].copy_from_slice(&flow.peer.octets());
    bytes[16..20].copy_from_slice(&u32::from(flow.protocol).to_ne_bytes());
    bytes[20..22].copy_from_slice(&flow.own_port.to_be_bytes());
    bytes[22..24].copy_from_slice(&flow.peers_port.to_be_bytes());
    bytes
}
