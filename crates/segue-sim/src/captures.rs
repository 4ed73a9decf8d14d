//! pcapng files of a run, one per host, one interface block per interface.

use crate::sink::{Sink, SinkError};
use segue_capture::pcapng::{CaptureInterface, Direction, PcapngWriter};
use segue_proto::{Instant, InterfaceId};
use segue_wire::Packet;

/// Bytes of a capture that wait for its sink.
const PIECE_BYTES: usize = 1 << 16;

/// The captures of a run.
pub struct Captures {
    hosts: Vec<HostCapture>,
}

struct HostCapture {
    node: u32,
    file: String,
    /// What the sink has not been given yet.
    writer: PcapngWriter<Vec<u8>>,
    interfaces: Vec<CaptureInterface>,
}

/// A host to capture at: its node, its name, and its interfaces with a description each.
pub struct CapturedHost {
    /// Node number.
    pub node: u32,
    /// Name, which names the file.
    pub name: String,
    /// Name and description of every interface.
    pub interfaces: Vec<(String, String)>,
}

impl Captures {
    /// Captures at these hosts. `comment` says where the packets come from.
    ///
    /// # Panics
    /// Never: writing to memory does not fail.
    #[must_use]
    pub fn new(hosts: Vec<CapturedHost>, comment: &str) -> Self {
        let hosts = hosts
            .into_iter()
            .map(|host| {
                let mut writer = PcapngWriter::new(Vec::new(), comment).expect("memory takes all");
                let interfaces = host
                    .interfaces
                    .iter()
                    .map(|(name, description)| writer.interface(name, description).expect("memory takes all"))
                    .collect();
                HostCapture {
                    node: host.node,
                    file: format!("{}.pcapng", host.name),
                    writer,
                    interfaces,
                }
            })
            .collect();
        Self { hosts }
    }

    /// A packet leaves or enters a host.
    pub(crate) fn packet(
        &mut self,
        now: Instant,
        node: u32,
        interface: InterfaceId,
        packet: &Packet,
        out: bool,
    ) {
        let Some(host) = self.hosts.iter_mut().find(|h| h.node == node) else {
            return;
        };
        let Some(&at) = host.interfaces.get(interface.0 as usize) else {
            return;
        };
        let direction = if out {
            Direction::Outbound
        } else {
            Direction::Inbound
        };
        host.writer
            .packet(at, now.as_nanos(), direction, packet)
            .expect("memory takes all");
    }

    /// Gives the sink what waits, where that is much, or of every capture, if `all`.
    pub(crate) fn give(&mut self, sink: &mut dyn Sink, all: bool) -> Result<(), SinkError> {
        for host in &mut self.hosts {
            let waits = host.writer.output_mut();
            if all || waits.len() >= PIECE_BYTES {
                sink.capture(&host.file, waits)?;
                waits.clear();
            }
        }
        Ok(())
    }
}
