//! Captures whose bytes come one by one.

use super::reader::Next;
use super::source::Source;
use super::*;
use std::io::{ErrorKind, Read, Result as IoResult};

/// Gives a byte each second time, and has one wait before.
struct Dripping {
    bytes: Vec<u8>,
    at: usize,
    waits: bool,
}

impl Read for Dripping {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        self.waits = !self.waits;
        if self.waits {
            return Err(ErrorKind::WouldBlock.into());
        }
        let (Some(byte), Some(place)) = (self.bytes.get(self.at), buffer.first_mut()) else {
            return Ok(0);
        };
        *place = *byte;
        self.at += 1;
        Ok(1)
    }
}

/// What was read to the end.
#[derive(Default)]
struct All {
    /// Times and bytes.
    packets: Vec<(u64, Vec<u8>)>,
    /// How often there was nothing yet.
    waits: usize,
    partial: Option<Partial>,
}

fn read(source: Source) -> All {
    let mut reader = Reader::begin(source, "x").unwrap();
    let mut all = All::default();
    loop {
        match reader.advance() {
            Next::Packet(time_ns) => all.packets.push((time_ns, reader.record().bytes.to_vec())),
            Next::Pending => all.waits += 1,
            Next::End => break,
        }
    }
    all.partial = reader.partial().cloned();
    all
}

#[test]
fn what_comes_byte_by_byte_is_what_comes_at_once() {
    let frame = |n: u8| vec![n; 20 + usize::from(n)];
    let mut pcapng = section(false);
    pcapng.extend(interface(false, 101, 0, &[]));
    let mut frames = Vec::new();
    for n in 0..9 {
        frames.push((u64::from(n) * 1_000_000, frame(n)));
        // blocks that are passed over wait too
        pcapng.extend(block(false, 0xbad, &[1; 40]));
        pcapng.extend(enhanced(false, 0, u64::from(n) * 1000, &frame(n), 99));
    }
    for bytes in [pcap(101, true, false, &frames), pcapng] {
        for len in [bytes.len(), bytes.len() - 3] {
            let bytes = bytes[..len].to_vec();
            let dripping = Dripping {
                bytes: bytes.clone(),
                at: 0,
                waits: false,
            };
            let dripped = read(Box::new(dripping));
            let whole = read(Box::new(std::io::Cursor::new(bytes)));
            assert_eq!(dripped.packets, whole.packets);
            assert_eq!(dripped.partial, whole.partial);
            assert!(dripped.waits > len / 2 && whole.waits == 0);
            assert!(frames.starts_with(&whole.packets) && whole.packets.len() >= 8);
        }
    }
}
