//! Segments: from a script's numbers to real ones, and back.

use super::{OWN, PEER};
use crate::drill::ast::{Direction, Packet, Payload, Sequence, Tcp, TcpOption};
use crate::drill::stack::{Comparison, Refusal};
use bytes::Bytes;
use segue_wire::tcp::{MAX_SACK_BLOCKS, SackBlock, TcpFlags, TcpOptions, TcpSegment, Timestamps};
use segue_wire::{Data, Ipv6Header, Packet as WirePacket, Payload as WirePayload, SeqNumber};

/// The peer's initial sequence number: close to where they wrap.
const PEER_ISN: u32 = 0xffff_f000;
/// The peer's port, where it calls.
const PEER_PORT: u16 = 49_000;
/// What our timestamps count, microseconds.
const TICK_MICROS: u32 = 1000;
/// packetdrill's tolerance.
const TOLERANCE_MICROS: u32 = 4000;
/// What fits into a packet with all its headers.
const MOST_DATA: u32 = 65_000;
/// Letters of flags, as packetdrill has them.
const FLAGS: [(char, TcpFlags); 6] = [
    ('F', TcpFlags::FIN),
    ('S', TcpFlags::SYN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('.', TcpFlags::ACK),
    ('U', TcpFlags::URG),
];

/// How a script's numbers are related to real ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// Initial sequence number of our end, once it has sent a SYN.
    own_isn: Option<u32>,
    /// Ports of our end and of the peer, likewise.
    ports: Option<(u16, u16)>,
    /// What our timestamps are beyond the script's, once one was compared.
    timestamp_offset: Option<u32>,
    verifies_timestamps: bool,
    strict: bool,
    /// Bytes of the line that is due that came in earlier segments.
    progress: u32,
}

impl Numbers {
    /// The script knows how fast our timestamps tick.
    pub fn verify_timestamps(&mut self, yes: bool) {
        self.verifies_timestamps = yes;
    }

    /// Data of one line comes in one segment.
    pub fn be_strict(&mut self) {
        self.strict = true;
    }

    /// Our end has sent a packet.
    pub fn note_sent(&mut self, bytes: &[u8]) {
        if let Some(segment) = parsed(&Bytes::copy_from_slice(bytes))
            && segment.flags.contains(TcpFlags::SYN)
        {
            self.own_isn = Some(segment.seq.0);
            self.ports = Some((segment.source_port, segment.destination_port));
        }
    }

    fn own(&self, number: u32) -> u32 {
        number.wrapping_sub(self.own_isn.unwrap_or(0))
    }

    /// The segment that a script's line is; `own_port` is that of our end if it has not sent yet.
    pub fn segment(&self, tcp: &Tcp, own_port: u16) -> Result<TcpSegment, Refusal> {
        let Some(sequence) = tcp.sequence else {
            return Refusal::new("a segment that arrives without sequence numbers");
        };
        if tcp.urgent.is_some() {
            return Refusal::new("urgent data");
        }
        if tcp.length > MOST_DATA {
            return Refusal::new(format!(
                "a segment of {} bytes, where {MOST_DATA} are the most",
                tcp.length
            ));
        }
        let mut flags = TcpFlags::default();
        for letter in tcp.flags.chars() {
            match FLAGS.iter().find(|(l, _)| *l == letter) {
                Some((_, flag)) => flags = flags | *flag,
                None => return Refusal::new(format!("ECN (the flag {letter})")),
            }
        }
        let isn = if sequence.absolute { 0 } else { PEER_ISN };
        let own_isn = self.own_isn.unwrap_or(0);
        let (own_port, peer_port) = self.ports.unwrap_or((own_port, PEER_PORT));
        Ok(TcpSegment {
            source_port: peer_port,
            destination_port: own_port,
            seq: SeqNumber(sequence.start.wrapping_add(isn)),
            ack: SeqNumber(tcp.ack.map_or(0, |ack| ack.wrapping_add(own_isn))),
            flags,
            window: tcp.window.unwrap_or(0),
            options: self.options(tcp.options.as_deref().unwrap_or(&[]))?,
            data: Data::Synthetic {
                offset: u64::from(sequence.start.wrapping_sub(1)),
                len: tcp.length,
            },
        })
    }

    fn options(&self, from: &[TcpOption]) -> Result<TcpOptions, Refusal> {
        let mut options = TcpOptions::default();
        let own = |number: u32| SeqNumber(number.wrapping_add(self.own_isn.unwrap_or(0)));
        for option in from {
            match option {
                TcpOption::Nop | TcpOption::Eol => {}
                TcpOption::Mss(mss) => options.set_mss(*mss),
                TcpOption::WindowScale(shift) => options.set_window_scale(*shift),
                TcpOption::SackPermitted => options.set_sack_permitted(),
                TcpOption::Sack(blocks) if blocks.len() <= MAX_SACK_BLOCKS => {
                    let blocks: Vec<SackBlock> = blocks
                        .iter()
                        .map(|(left, right)| SackBlock {
                            left: own(*left),
                            right: own(*right),
                        })
                        .collect();
                    options.set_sack_blocks(&blocks);
                }
                TcpOption::Timestamps {
                    value: Some(value),
                    echo,
                    absolute,
                } => {
                    let offset = if *absolute || *echo == 0 {
                        0
                    } else {
                        self.timestamp_offset.unwrap_or(0)
                    };
                    options.timestamps = Some(Timestamps {
                        value: *value,
                        echo: echo.wrapping_add(offset),
                    });
                }
                other => return Refusal::new(format!("the TCP option `{other}`")),
            }
        }
        Ok(options)
    }

    /// Holds a packet against the line that is due, or against what is left of it.
    pub fn compare(&mut self, due: &Tcp, bytes: &Bytes) -> Result<Comparison, Refusal> {
        let before = core::mem::take(&mut self.progress);
        let Some(segment) = parsed(bytes) else {
            return Ok(Comparison::Differs(
                "no TCP segment, or one with a wrong checksum".to_owned(),
            ));
        };
        if let Some(letter) = due.flags.chars().find(|c| !FLAGS.iter().any(|(l, _)| l == c)) {
            return Refusal::new(format!("ECN (the flag {letter})"));
        }
        let came = self.shown(&segment);
        let left = due.length - before;
        let is_part = came.length > 0 && came.length < left && !self.strict;
        let mut differences = Vec::new();
        let mut hold = |what: &str, due: String, came: String| {
            if due != came {
                differences.push(format!("{what} is {came}, due is {due}"));
            }
        };
        let flags = |flags: &str, is_part: bool| -> String {
            // when to push is the sender's choice (RFC 9293 section 3.9.1.2); FIN comes with the last part
            let wanted = FLAGS.iter().map(|(letter, _)| *letter);
            wanted
                .filter(|l| flags.contains(*l) && *l != 'P' && !(is_part && *l == 'F'))
                .collect()
        };
        hold(
            "the set of flags",
            flags(&due.flags, is_part),
            flags(&came.flags, is_part),
        );
        if let Some(Sequence { start, absolute, .. }) = due.sequence {
            let came = match (came.sequence, absolute) {
                (_, true) => segment.seq.0,
                (Some(sequence), false) => sequence.start,
                (None, false) => 0,
            };
            hold(
                "the sequence number",
                start.wrapping_add(before).to_string(),
                came.to_string(),
            );
        }
        if !is_part {
            hold("the length", left.to_string(), came.length.to_string());
        }
        let number = |number: Option<u32>| number.map_or("none".to_owned(), |n| n.to_string());
        if due.flags.contains('.') || due.ack.is_some() {
            hold("the acknowledgement number", number(due.ack), number(came.ack));
        }
        if due.window.is_some() {
            hold(
                "the window",
                number(due.window.map(u32::from)),
                number(came.window.map(u32::from)),
            );
        }
        if let Some(options) = &due.options {
            let (due, came) = self.options_to_compare(options, came.options.as_deref().unwrap_or(&[]));
            hold("the list of options", due, came);
        }
        let offset = u64::from(self.own(segment.seq.0).wrapping_sub(1));
        if !segment.data.is_empty() && !segment.data.is_synthetic_at(offset) {
            differences.push("the data is not what was written".to_owned());
        }
        Ok(match differences.is_empty() {
            false => Comparison::Differs(differences.join("; ")),
            true if is_part => {
                self.progress = before + came.length;
                Comparison::Part
            }
            true => Comparison::Same,
        })
    }

    /// Options as they are compared: their order and padding are the sender's choice, and timestamps only tell something
    /// where the script knows how fast they tick. The first one says where they begin.
    fn options_to_compare(&mut self, due: &[TcpOption], came: &[TcpOption]) -> (String, String) {
        let mut live = came.iter().find_map(|option| match option {
            TcpOption::Timestamps {
                value: Some(value), ..
            } => Some(*value),
            _ => None,
        });
        let mut lists: [Vec<String>; 2] = [Vec::new(), Vec::new()];
        for (list, options) in lists.iter_mut().zip([due, came]) {
            for option in options
                .iter()
                .filter(|o| !matches!(o, TcpOption::Nop | TcpOption::Eol))
            {
                list.push(match option {
                    TcpOption::Timestamps {
                        value,
                        echo,
                        absolute,
                    } => {
                        let shown = match (*value, live) {
                            (Some(value), Some(live)) if core::ptr::eq(options, due) => {
                                let offset = self.timestamp_offset.get_or_insert(live.wrapping_sub(value));
                                let off = live.wrapping_sub(*offset).wrapping_sub(value) as i32;
                                let near = off.unsigned_abs() <= TOLERANCE_MICROS / TICK_MICROS;
                                (near || !self.verifies_timestamps)
                                    .then(|| live.wrapping_sub(*offset))
                                    .or(Some(value))
                            }
                            (value, _) => value.map(|v| v.wrapping_sub(self.timestamp_offset.unwrap_or(0))),
                        };
                        TcpOption::Timestamps {
                            value: shown,
                            echo: *echo,
                            absolute: *absolute,
                        }
                        .to_string()
                    }
                    other => other.to_string(),
                });
            }
            // `TS val ...`
            if list.iter().any(|o| o.starts_with("TS val ...")) {
                live = None;
            }
            list.sort();
        }
        let [due, came] = lists.map(|list| format!("<{}>", list.join(",")));
        (due, came)
    }

    /// A packet as a script would write it.
    pub fn describe(&self, bytes: &Bytes) -> String {
        let Some(segment) = parsed(bytes) else {
            return format!("> {} bytes that are no TCP", bytes.len());
        };
        let mut tcp = self.shown(&segment);
        if let (Some(options), Some(offset)) = (&mut tcp.options, self.timestamp_offset) {
            for option in options {
                if let TcpOption::Timestamps {
                    value: Some(value), ..
                } = option
                {
                    *value = value.wrapping_sub(offset);
                }
            }
        }
        Packet {
            direction: Direction::Out,
            outer: Vec::new(),
            ip: Vec::new(),
            addresses: None,
            ports: None,
            in_udp: None,
            payload: Payload::Tcp(tcp),
        }
        .to_string()
    }

    /// A segment of our end with the script's numbers, but for timestamps.
    fn shown(&self, segment: &TcpSegment) -> Tcp {
        let start = self.own(segment.seq.0);
        let length = segment.data.len() as u32;
        let peer = |number: SeqNumber| number.0.wrapping_sub(PEER_ISN);
        let options = &segment.options;
        let mut list = Vec::new();
        list.extend(options.mss().map(TcpOption::Mss));
        list.extend(options.sack_permitted().then_some(TcpOption::SackPermitted));
        list.extend(options.timestamps.map(|t| TcpOption::Timestamps {
            value: Some(t.value),
            echo: t.echo,
            absolute: false,
        }));
        list.extend(options.window_scale().map(TcpOption::WindowScale));
        if !options.sack_blocks().is_empty() {
            let blocks = options.sack_blocks().iter();
            list.push(TcpOption::Sack(
                blocks.map(|b| (peer(b.left), peer(b.right))).collect(),
            ));
        }
        let letters = FLAGS.iter().filter(|(_, flag)| segment.flags.contains(*flag));
        Tcp {
            flags: letters.map(|(letter, _)| *letter).collect(),
            sequence: Some(Sequence {
                start,
                end: start.wrapping_add(length),
                absolute: false,
            }),
            length,
            ack: segment.flags.contains(TcpFlags::ACK).then(|| peer(segment.ack)),
            window: Some(segment.window),
            urgent: None,
            options: Some(list),
        }
    }
}

/// The TCP segment of a packet, if its checksum is right.
fn parsed(bytes: &Bytes) -> Option<TcpSegment> {
    match WirePacket::parse_bytes(bytes.clone()).ok()?.payload {
        WirePayload::Tcp(segment) => Some(segment),
        _ => None,
    }
}

/// A packet of the peer's.
pub fn bytes(segment: TcpSegment) -> Vec<u8> {
    let packet = WirePacket {
        ip: Ipv6Header {
            source: PEER,
            destination: OWN,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        },
        extensions: Vec::new(),
        payload: WirePayload::Tcp(segment),
    };
    packet.to_vec()
}

/// What a line may say beside its segment, and our TCP has not.
pub fn refuse_surroundings(packet: &Packet) -> Result<(), Refusal> {
    if !packet.outer.is_empty() {
        return Refusal::new("packets in packets");
    }
    if let Some(field) = packet.ip.first() {
        let what = match field.name.as_str() {
            "ect0" | "ect1" | "noecn" | "ce" | "ecn" => "ECN",
            _ => "a field of the IP header",
        };
        return Refusal::new(format!("{what} ({field})"));
    }
    if packet.addresses.is_some() || packet.ports.is_some() {
        return Refusal::new("addresses or ports: there is one connection");
    }
    if packet.in_udp.is_some() {
        return Refusal::new("TCP in UDP");
    }
    Ok(())
}
