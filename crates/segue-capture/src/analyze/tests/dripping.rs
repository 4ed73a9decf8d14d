//! Captures whose bytes come one by one.

use super::reader::{Bytes, Next};
use super::*;
use std::io::{Cursor, ErrorKind, Read, Result as IoResult};

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

fn read(bytes: Bytes) -> All {
    let mut reader = Reader::begin(bytes, "x").unwrap();
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
            let dripped = read(Bytes::Here(Box::new(dripping)));
            let whole = read(Bytes::Here(Box::new(Cursor::new(bytes))));
            assert_eq!(dripped.packets, whole.packets);
            assert_eq!(dripped.partial, whole.partial);
            assert!(dripped.waits > len / 2 && whole.waits == 0);
            assert!(frames.starts_with(&whole.packets) && whole.packets.len() >= 8);
        }
    }
}

#[test]
fn records_that_are_longer_than_what_is_read_at_a_time_are_read_ahead_too() {
    let frames: Vec<_> = [9_000_000, 20, 70_000, 400_000, 90, 16_000_000, 1, 600_000, 3]
        .into_iter()
        .zip(0..)
        .map(|(len, n)| (n * 1000, vec![n as u8; len]))
        .collect();
    let file = pcap(101, false, true, &frames);
    for bytes in [file.clone(), file[..file.len() - 1].to_vec()] {
        let ahead = read(Bytes::Ahead(ahead::Ahead::new(Box::new(Cursor::new(
            bytes.clone(),
        )))));
        let whole = read(Bytes::Here(Box::new(Cursor::new(bytes))));
        assert!(ahead.packets == whole.packets && frames.starts_with(&ahead.packets));
        assert_eq!(
            (ahead.packets.len() + usize::from(ahead.partial.is_some())),
            frames.len()
        );
        assert_eq!(ahead.partial, whole.partial);
    }
}
