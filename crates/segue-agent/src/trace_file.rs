//! The end of `segue-agent trace` at which a file is written: pcapng, by the writer that all of segue has.

use crate::control::{Request, Response, open};
use crate::trace::{TraceRecord, TraceRequest};
use anyhow::{Context as _, anyhow, bail};
use segue_capture::pcapng::{CaptureInterface, Direction, PcapngWriter};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

/// `segue-agent trace`.
pub(crate) fn trace(socket: &Path, file: &Path, request: TraceRequest) -> anyhow::Result<u8> {
    let patience = std::time::Duration::from_secs(u64::from(request.seconds) + 10);
    let (response, stream) = open(socket, Request::Trace(request), patience)?;
    let Response::Trace { interfaces } = response else {
        bail!("{}: expected a trace", socket.display());
    };
    let shown = file.display();
    #[expect(clippy::disallowed_methods, reason = "the file that was asked for")]
    let out = File::create(file).with_context(|| shown.to_string())?;
    let (written, (taken, dropped)) =
        copy(stream, BufWriter::new(out), &interfaces).with_context(|| shown.to_string())?;
    let mut said = io::stdout();
    write!(said, "{shown}: {written} of {taken} packets")?;
    if dropped > 0 {
        write!(
            said,
            ", {dropped} dropped, since they came faster than they were written"
        )?;
    }
    writeln!(said)?;
    Ok(0)
}

/// How many packets were written, how many were taken and dropped.
fn copy(
    mut from: BufReader<impl io::Read>,
    out: impl Write,
    names: &[String],
) -> anyhow::Result<(u64, (u64, u64))> {
    let mut writer = PcapngWriter::new(out, "segue agent")?;
    let mut interfaces: Vec<CaptureInterface> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let about = match number {
            0 => "applications, over the shim",
            1 => "what the kernel's own routes carry, below the shim",
            _ => "a network, below the shim",
        };
        interfaces.push(writer.interface(name, about)?);
    }
    let mut written = 0;
    let ended = loop {
        match TraceRecord::read(&mut from) {
            Ok(TraceRecord::Packet {
                interface,
                sent,
                time_ns,
                original_length,
                bytes,
            }) => {
                let interface = interfaces.get(usize::from(interface));
                let interface = *interface.context("a packet of an interface that was not named")?;
                let direction = if sent {
                    Direction::Outbound
                } else {
                    Direction::Inbound
                };
                writer.cut_packet(interface, time_ns, direction, &bytes, original_length)?;
                written += 1;
            }
            Ok(TraceRecord::End { taken, dropped }) => break Some((taken, dropped)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break None,
            Err(error) => return Err(error.into()),
        }
    };
    writer.finish()?;
    let ended = ended.ok_or_else(|| anyhow!("the agent ended, after {written} packets"))?;
    Ok((written, ended))
}
