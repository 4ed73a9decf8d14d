//! How far an analysis has come, seen from another thread, and its end before its end.

use super::source::Source;
use std::io::{Error, Read, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between the thread that analyses and one that waits for it.
#[derive(Debug, Default)]
pub struct Watch {
    bytes: AtomicU64,
    cancelled: AtomicBool,
    ended: AtomicBool,
}

impl Watch {
    /// Bytes read so far, of all captures. One capture is read once; two are read twice, first for their clocks.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends the reading: what was read is analysed, and its result says that it is partial.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Ends a capture that is analysed live: what was read until then is all of it.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether that was said.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// A source that is watched.
pub(super) struct Watched {
    source: Source,
    watch: Arc<Watch>,
}

impl Watched {
    /// Reads from this source as long as the watch allows it.
    pub(super) const fn new(source: Source, watch: Arc<Watch>) -> Self {
        Self { source, watch }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.watch.cancelled.load(Ordering::Relaxed) {
            return Err(Error::other("cancelled"));
        }
        if self.watch.is_ended() {
            return Ok(0);
        }
        let count = self.source.read(buffer)?;
        self.watch.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Input, Options, analyze_inputs};
    use super::*;

    /// A pcap file of raw IP packets that are none.
    fn capture(packets: u32) -> Arc<[u8]> {
        let mut file = vec![
            0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 101, 0, 0, 0,
        ];
        for second in 0..packets {
            for word in [second, 0, 100, 100] {
                file.extend(word.to_le_bytes());
            }
            file.extend([0; 100]);
        }
        file.into()
    }

    #[test]
    fn bytes_are_counted_once_for_one_capture_and_twice_for_two() {
        let bytes = capture(1000);
        let input = Input::Bytes("x".to_owned(), Arc::clone(&bytes));
        for number in [1, 2] {
            let watch = Arc::new(Watch::default());
            let inputs = vec![input.clone().watched(&watch); number];
            analyze_inputs(&inputs, &Options::default()).unwrap();
            assert_eq!(watch.bytes_read(), (number * number * bytes.len()) as u64);
        }
    }

    #[test]
    fn what_is_cancelled_reads_no_further() {
        let watch = Arc::new(Watch::default());
        let input = Input::Bytes("x".to_owned(), capture(100_000)).watched(&watch);
        watch.cancel();
        assert!(analyze_inputs(&[input], &Options::default()).is_err());
        assert_eq!(watch.bytes_read(), 0);
    }
}
