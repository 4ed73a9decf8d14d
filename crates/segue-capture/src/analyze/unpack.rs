//! Captures that are compressed: gzip (RFC 1952), of one member or several, and Zstandard (RFC 8878), of one frame or several.
//! They are known by their first bytes and not by their name, and unpacked as a stream.

use super::source::{Source, words};
use flate2::bufread::MultiGzDecoder;
use std::io::{BufReader, Error, ErrorKind, Read, Result};

/// Read of what is compressed at a time.
const CHUNK: usize = 128 << 10;

/// Bytes by which compression is told.
const MAGIC: usize = 4;

/// Greatest window of Zstandard that is taken, as a power of two: what `zstd -d` takes if it is not told otherwise.
const MAX_WINDOW_LOG: u32 = 27;

/// From where on something is refused because it unpacks to far more than it is: nobody's capture does.
#[derive(Clone, Copy, Debug)]
struct Most {
    /// So many bytes are never too many.
    bytes: u64,
    /// So many times its size is.
    times: u64,
}

/// Deflate cannot make more than 1032 bytes of one. Headers of packets differ, so that even those which carry zeros alone, in the
/// largest segments that are captured (64 kB), stay below it.
const MOST: Most = Most {
    bytes: 256 << 20,
    times: 1000,
};

/// It unpacks to far more than it is. The reading ends here, and there is no result.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "unpacks to more than {} times its size, as nothing but a decompression bomb does: unpack it first if it is none",
    MOST.times
)]
pub(super) struct Bomb;

/// How something is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    Gzip,
    Zstandard,
}

impl Packing {
    fn of(magic: &[u8]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // a frame, or one that is to be skipped
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Self::Zstandard),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstandard => "zstd",
        }
    }
}

/// A source, and what it is compressed with taken off.
pub(super) struct Unpacked {
    state: State,
    /// Bytes that came out.
    unpacked: u64,
    most: Most,
}

enum State {
    /// Its first bytes were not looked at yet.
    Unread(Source),
    Plain(Packed),
    Gzip(Box<MultiGzDecoder<BufReader<Packed>>>),
    Zstandard(Box<zstd::Decoder<'static, BufReader<Packed>>>),
    /// It failed.
    Over,
}

impl Unpacked {
    /// Of this source, which is not read yet.
    pub(super) const fn new(source: Source) -> Self {
        Self {
            state: State::Unread(source),
            unpacked: 0,
            most: MOST,
        }
    }

    /// Whether there is something to be unpacked: reads its first bytes.
    pub(super) fn is_packed(&mut self) -> Result<bool> {
        self.look()?;
        Ok(matches!(self.state, State::Gzip(_) | State::Zstandard(_)))
    }

    fn look(&mut self) -> Result<()> {
        let State::Unread(source) = &mut self.state else {
            return Ok(());
        };
        let mut first = Vec::with_capacity(MAGIC);
        source.by_ref().take(MAGIC as u64).read_to_end(&mut first)?;
        let packing = Packing::of(&first);
        let State::Unread(source) = core::mem::replace(&mut self.state, State::Over) else {
            return Ok(());
        };
        let packed = Packed {
            first,
            source,
            bytes: 0,
            failed: false,
        };
        let buffered = |packed| BufReader::with_capacity(CHUNK, packed);
        self.state = match packing {
            None => State::Plain(packed),
            Some(Packing::Gzip) => State::Gzip(Box::new(MultiGzDecoder::new(buffered(packed)))),
            Some(Packing::Zstandard) => {
                let mut decoder = zstd::Decoder::with_buffer(buffered(packed))?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                State::Zstandard(Box::new(decoder))
            }
        };
        Ok(())
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.look()?;
        let (packing, read) = match &mut self.state {
            State::Unread(_) | State::Over => return Ok(0),
            State::Plain(source) => return source.read(buffer),
            State::Gzip(decoder) => (Packing::Gzip, decoder.read(buffer)),
            State::Zstandard(decoder) => (Packing::Zstandard, decoder.read(buffer)),
        };
        let packed = match &self.state {
            State::Gzip(decoder) => decoder.get_ref().get_ref(),
            State::Zstandard(decoder) => decoder.get_ref().get_ref(),
            State::Unread(_) | State::Plain(_) | State::Over => return read,
        };
        let (size, failed) = (packed.bytes, packed.failed);
        let count = match read {
            Ok(count) => count,
            Err(error) if failed || error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.state = State::Over;
                return Err(why(packing, &error));
            }
        };
        self.unpacked += count as u64;
        if self.unpacked > self.most.bytes && self.unpacked / self.most.times > size {
            self.state = State::Over;
            return Err(Error::other(Bomb));
        }
        Ok(count)
    }
}

/// What is wrong with what is compressed, in words.
fn why(packing: Packing, error: &Error) -> Error {
    let name = packing.name();
    let text = if error.kind() == ErrorKind::UnexpectedEof {
        format!("what {name} compressed breaks off")
    } else {
        format!("what {name} compressed is damaged: {}", words(error))
    };
    Error::new(error.kind(), text)
}

/// What is compressed, from its first bytes on.
struct Packed {
    /// Those that were looked at and have not been read.
    first: Vec<u8>,
    source: Source,
    /// Bytes that were read.
    bytes: u64,
    /// The source failed, and not what is in it.
    failed: bool,
}

impl Read for Packed {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if !self.first.is_empty() {
            let count = self.first.len().min(buffer.len());
            let first = self.first.drain(..count);
            buffer.iter_mut().zip(first).for_each(|(to, from)| *to = from);
            self.bytes += count as u64;
            return Ok(count);
        }
        match self.source.read(buffer) {
            Ok(count) => {
                self.bytes += count as u64;
                Ok(count)
            }
            // of those who wait for it, none is here
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.failed = true;
                Err(Error::other(words(&error)))
            }
            Err(error) => {
                self.failed |= error.kind() != ErrorKind::Interrupted;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::{Cursor, Write};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> Unpacked {
        Unpacked::new(Box::new(Cursor::new(bytes.to_vec())))
    }

    fn whole(mut unpacked: Unpacked) -> (Vec<u8>, Option<String>) {
        let mut out = Vec::new();
        let error = unpacked.read_to_end(&mut out).err();
        (out, error.map(|e| e.to_string()))
    }

    #[test]
    fn members_and_frames_come_out_one_after_the_other() {
        let (a, b) = (vec![7; 300_000], b"and what is behind".to_vec());
        let both = [a.clone(), b.clone()].concat();
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
        // a frame that is to be skipped may stand anywhere
        let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], &[9; 3]].concat();
        for packed in [
            [gzip(&a), gzip(&b)].concat(),
            [frame(&a), frame(&b)].concat(),
            [&skipped[..], &frame(&a), &skipped, &frame(&b), &skipped].concat(),
        ] {
            assert!(unpacked(&packed).is_packed().unwrap());
            assert_eq!(whole(unpacked(&packed)), (both.clone(), None));
        }
    }

    #[test]
    fn what_is_not_compressed_comes_as_it_is() {
        for bytes in [
            &b""[..],
            b"x",
            b"abc",
            b"\x1f",
            b"plain bytes",
            &[0x28, 0xb5, 0x2f],
        ] {
            assert!(!unpacked(bytes).is_packed().unwrap());
            assert_eq!(whole(unpacked(bytes)), (bytes.to_vec(), None));
        }
    }

    #[test]
    fn what_breaks_off_gives_what_is_before_and_says_so() {
        // numbers, which do not compress to nothing
        let bytes: Vec<u8> = (0..200_000u32)
            .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
            .collect();
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&bytes).unwrap();
        for (name, packed) in [("gzip", gzip(&bytes)), ("zstd", encoder.finish().unwrap())] {
            let (out, error) = whole(unpacked(&packed[..packed.len() / 2]));
            assert!(
                out.len() > bytes.len() / 4 && bytes.starts_with(&out),
                "{name}: {}",
                out.len()
            );
            assert_eq!(error, Some(format!("what {name} compressed breaks off")));
            let mut damaged = packed.clone();
            let last = damaged.len() - 6;
            damaged[last] ^= 0x55;
            let (_, error) = whole(unpacked(&damaged));
            let error = error.expect("a checksum is wrong, or more");
            assert!(
                error.starts_with(&format!("what {name} compressed is damaged: ")),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn a_window_that_takes_too_much_memory_is_refused() {
        // a frame header with a window of 2^(10 + 21) bytes (RFC 8878 section 3.1.1.1.2)
        let header = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0, 0, 0];
        let (out, error) = whole(unpacked(&header));
        assert!(out.is_empty());
        assert!(error.is_some_and(|e| e.contains("memory")));
    }

    #[test]
    fn a_bomb_is_refused_and_a_large_capture_is_not() {
        let most = Most {
            bytes: 1 << 20,
            times: 100,
        };
        let limited = |bytes: &[u8]| Unpacked {
            most,
            ..unpacked(bytes)
        };
        let zeros = vec![0; 4 << 20];
        for packed in [gzip(&zeros), zstd::encode_all(&zeros[..], 3).unwrap()] {
            assert!(packed.len() < zeros.len() / 200);
            let mut bomb = limited(&packed);
            let mut out = Vec::new();
            let error = bomb.read_to_end(&mut out).unwrap_err();
            assert!(error.get_ref().is_some_and(|e| e.is::<Bomb>()), "{error}");
            assert!(out.len() <= 2 << 20, "{}", out.len());
            // and there is no more of it
            assert_eq!(bomb.read(&mut [0; 10]).unwrap(), 0);
            assert_eq!(whole(unpacked(&packed)).1, None);
        }
        let few = gzip(&zeros[..1 << 20]);
        assert_eq!(whole(limited(&few)).0.len(), 1 << 20);
        let numbers: Vec<u8> = (0..1 << 20u32).flat_map(|n: u32| n.to_le_bytes()).collect();
        assert_eq!(whole(limited(&gzip(&numbers))), (numbers, None));
    }

    #[test]
    fn a_source_that_fails_is_not_taken_for_a_damaged_one() {
        struct Failing(Cursor<Vec<u8>>);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                match self.0.read(buffer)? {
                    0 => Err(Error::other("cancelled")),
                    count => Ok(count),
                }
            }
        }
        let packed = gzip(&[5; 1000]);
        let source = Failing(Cursor::new(packed[..20].to_vec()));
        let (_, error) = whole(Unpacked::new(Box::new(source)));
        assert_eq!(error.as_deref(), Some("cancelled"));
    }
}
