//! Packets as a pcapng file, from the IPv6 header on.

use anyhow::Context as _;
use segue_capture::pcapng::{CaptureInterface, Direction, PcapngWriter};
use segue_live::Clock;
use segue_proto::Instant;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A capture of some interfaces. After the first error of the file, nothing more is written.
pub(crate) struct Capture {
    writer: PcapngWriter<BufWriter<std::fs::File>>,
    interfaces: Vec<CaptureInterface>,
    clock: Clock,
    path: PathBuf,
    failed: Option<std::io::Error>,
}

impl Capture {
    /// Starts a file; interfaces are numbered in the order of their names.
    pub(crate) fn new(path: &Path, names: &[&str], clock: Clock) -> anyhow::Result<Self> {
        let context = || format!("capture {}", path.display());
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .with_context(context)?;
        let mut writer = PcapngWriter::new(BufWriter::new(file), "segue-lab").with_context(context)?;
        let interfaces = names
            .iter()
            .map(|name| writer.interface(name, ""))
            .collect::<Result<_, _>>()
            .with_context(context)?;
        Ok(Self {
            writer,
            interfaces,
            clock,
            path: path.to_owned(),
            failed: None,
        })
    }

    /// Writes what was received over interface number `interface`.
    pub(crate) fn received(&mut self, now: Instant, interface: usize, packet: &[u8]) {
        self.write(now, interface, Direction::Inbound, packet);
    }

    /// Writes what was sent over interface number `interface`.
    pub(crate) fn sent(&mut self, now: Instant, interface: usize, packet: &[u8]) {
        self.write(now, interface, Direction::Outbound, packet);
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let ended = match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish().and_then(|mut out| out.flush()),
        };
        ended.with_context(|| format!("capture {}", self.path.display()))
    }

    fn write(&mut self, now: Instant, interface: usize, direction: Direction, packet: &[u8]) {
        if self.failed.is_none()
            && let Some(interface) = self.interfaces.get(interface)
        {
            let time = self.clock.unix_ns(now);
            let written = self.writer.packet_bytes(*interface, time, direction, packet);
            self.failed = written.err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named_at_the_end_too() {
        let capture = Capture::new(Path::new("/dev/full"), &["a"], Clock::new()).unwrap();
        let error = capture.finish().unwrap_err();
        let said = format!("{error:#}");
        assert!(said.starts_with("capture /dev/full: No space left"), "{said}");
    }
}
