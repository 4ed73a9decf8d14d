//! `segue-agent trace`: what the agent takes and sends, on both sides of the shim, for whoever asks over the control socket.
//!
//! The agent opens no file and knows no format: it hands packets over, and the program that asked writes them. A reader who does
//! not read has a queue of a fixed length, behind which packets are counted and not kept. While nobody reads, a packet costs the
//! look whether somebody does.
//!
//! Behind the line of JSON with the names of the interfaces there are records, integers with the first byte first:
//!
//! ```text
//!   a packet   length of what follows u32 | 1 u8 | interface u8 | sent u8 | time u64, ns since 1970 | length on the way u32 | bytes
//!   the end    length of what follows u32 | 2 u8 | packets taken u64 | packets dropped u64
//! ```

use bytes::{Buf as _, BufMut as _};
use segue_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Who wants to know of packets, and of how many.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TraceRequest {
    /// It ends after so long.
    pub seconds: u32,
    /// Or after so many.
    pub packets: u64,
    /// Of a packet, so many bytes at most.
    pub snap: u32,
}

/// Readers at a time.
pub(crate) const MOST_READERS: usize = 2;
/// What waits for a reader, bytes.
const LONGEST_QUEUE: usize = 1 << 20;
/// What is in the queue at the end has so long to be read.
const PATIENCE: Duration = Duration::from_secs(2);
/// The greatest packet of IPv6, and what is before it.
const LONGEST_RECORD: usize = 40 + 65_535 + 32;

const PACKET: u8 = 1;
const END: u8 = 2;

/// Those who read.
#[derive(Default)]
pub(crate) struct Traces {
    readers: Vec<Reader>,
}

/// A packet on its way by the agent.
pub(crate) struct Passing<'a> {
    /// Place of the interface among those that the answer names.
    pub interface: u8,
    /// Whether the machine sends it there, and does not receive it.
    pub sent: bool,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    pub bytes: &'a [u8],
}

struct Reader {
    stream: UnixStream,
    until: Instant,
    request: TraceRequest,
    queue: VecDeque<u8>,
    taken: u64,
    dropped: u64,
    /// There is nothing more to come.
    ended: bool,
}

impl Traces {
    /// Whether nobody reads: there is nothing to hand over then.
    pub const fn is_idle(&self) -> bool {
        self.readers.is_empty()
    }

    /// Whether there are as many as there may be.
    pub const fn is_full(&self) -> bool {
        self.readers.len() >= MOST_READERS
    }

    /// Somebody reads from now on; `head` goes before everything.
    pub fn begin(&mut self, now: Instant, stream: UnixStream, request: TraceRequest, head: Vec<u8>) {
        self.readers.push(Reader {
            stream,
            until: now + Duration::from_secs(request.seconds.into()),
            request,
            queue: head.into(),
            taken: 0,
            dropped: 0,
            ended: false,
        });
    }

    /// A packet passes.
    pub fn take(&mut self, packet: &Passing<'_>) {
        for reader in self.readers.iter_mut().filter(|reader| !reader.ended) {
            reader.take(packet);
        }
    }

    /// Writes as far as that can be done without waiting, and ends those whose time is over or who are gone.
    pub fn turn(&mut self, now: Instant) {
        self.readers.retain_mut(|reader| reader.turn(now));
    }

    /// When the time of one is over.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = |reader: &Reader| {
            if reader.ended {
                reader.until + PATIENCE
            } else {
                reader.until
            }
        };
        self.readers.iter().map(due).min()
    }

    /// What is to be waited for, and whether there is something to write to it.
    pub fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let waits = |reader: &Reader| !reader.queue.is_empty();
        self.readers.iter().map(move |r| (r.stream.as_fd(), waits(r)))
    }
}

impl Reader {
    fn take(&mut self, packet: &Passing<'_>) {
        let kept = packet.bytes.len().min(self.request.snap as usize);
        let length = 1 + 1 + 1 + 8 + 4 + kept;
        self.taken += 1;
        if self.queue.len() + 4 + length > LONGEST_QUEUE {
            self.dropped += 1;
        } else {
            let mut head = Vec::with_capacity(19);
            head.put_u32_le(length as u32);
            head.put_slice(&[PACKET, packet.interface, u8::from(packet.sent)]);
            head.put_u64_le(packet.time_ns);
            head.put_u32_le(packet.bytes.len() as u32);
            self.queue.extend(head);
            self.queue.extend(&packet.bytes[..kept]);
        }
        if self.taken == self.request.packets {
            self.end();
        }
    }

    fn end(&mut self) {
        let mut end = Vec::with_capacity(21);
        end.put_u32_le(17);
        end.put_u8(END);
        end.put_u64_le(self.taken);
        end.put_u64_le(self.dropped);
        self.queue.extend(end);
        self.ended = true;
    }

    /// Whether there is more to do.
    fn turn(&mut self, now: Instant) -> bool {
        if !self.ended && self.until <= now {
            self.end();
        }
        // who reads has nothing to say: what can be read is the end of him
        let gone = !matches!(self.stream.read(&mut [0; 64]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        while !self.queue.is_empty() {
            match self.stream.write(self.queue.as_slices().0) {
                Ok(written) => drop(self.queue.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        let patient = now < self.until + PATIENCE;
        !gone && patient && !(self.ended && self.queue.is_empty())
    }
}

/// What comes of a trace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TraceRecord {
    Packet {
        interface: u8,
        sent: bool,
        time_ns: u64,
        original_length: u32,
        bytes: Vec<u8>,
    },
    End {
        taken: u64,
        dropped: u64,
    },
}

impl TraceRecord {
    /// The next record.
    ///
    /// # Errors
    /// As `from` has them, and `InvalidData` for what is none.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "expected a record of a trace");
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_RECORD {
            return Err(wrong());
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        let mut rest = &bytes[..];
        match rest.try_get_u8() {
            Ok(PACKET) if rest.len() >= 14 => Ok(Self::Packet {
                interface: rest.get_u8(),
                sent: rest.get_u8() != 0,
                time_ns: rest.get_u64_le(),
                original_length: rest.get_u32_le(),
                bytes: rest.to_vec(),
            }),
            Ok(END) if rest.len() == 16 => Ok(Self::End {
                taken: rest.get_u64_le(),
                dropped: rest.get_u64_le(),
            }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(packets: u64, snap: u32) -> TraceRequest {
        TraceRequest {
            seconds: 10,
            packets,
            snap,
        }
    }

    fn begun(request: TraceRequest) -> (Traces, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut traces = Traces::default();
        assert!(traces.is_idle());
        traces.begin(Instant::ZERO, ours, request, Vec::new());
        (traces, theirs)
    }

    fn pass(traces: &mut Traces, bytes: &[u8]) {
        traces.take(&Passing {
            interface: 2,
            sent: true,
            time_ns: 77,
            bytes,
        });
    }

    #[test]
    fn packets_come_cut_and_with_their_length_and_then_the_end() {
        let (mut traces, mut reader) = begun(request(2, 3));
        pass(&mut traces, b"first");
        pass(&mut traces, b"2");
        pass(&mut traces, b"one too many");
        traces.turn(Instant::ZERO);
        let packet = |original_length, bytes: &[u8]| TraceRecord::Packet {
            interface: 2,
            sent: true,
            time_ns: 77,
            original_length,
            bytes: bytes.to_vec(),
        };
        assert_eq!(TraceRecord::read(&mut reader).unwrap(), packet(5, b"fir"));
        assert_eq!(TraceRecord::read(&mut reader).unwrap(), packet(1, b"2"));
        let end = TraceRecord::End { taken: 2, dropped: 0 };
        assert_eq!(TraceRecord::read(&mut reader).unwrap(), end);
        assert!(traces.is_idle());
    }

    #[test]
    fn time_ends_it_and_who_goes_is_let_go() {
        let (mut traces, mut reader) = begun(request(100, 100));
        let end = Instant::ZERO + Duration::from_secs(10);
        assert_eq!(traces.poll_timeout(), Some(end));
        traces.turn(Instant::ZERO);
        assert!(!traces.is_idle());
        traces.turn(end);
        let none = TraceRecord::End { taken: 0, dropped: 0 };
        assert_eq!(TraceRecord::read(&mut reader).unwrap(), none);
        assert!(traces.is_idle());
        let (mut traces, reader) = begun(request(100, 100));
        drop(reader);
        traces.turn(Instant::ZERO);
        assert!(traces.is_idle());
    }

    #[test]
    fn who_does_not_read_costs_a_queue_and_no_more() {
        let (mut traces, mut reader) = begun(request(10_000, 2000));
        let packet = [7; 1500];
        for _ in 0..10_000 {
            pass(&mut traces, &packet);
            traces.turn(Instant::ZERO);
        }
        assert!(traces.readers[0].queue.len() <= LONGEST_QUEUE + 21);
        let (mut kept, mut said) = (0, None);
        while said.is_none() {
            match TraceRecord::read(&mut reader).unwrap() {
                TraceRecord::Packet { .. } => kept += 1,
                TraceRecord::End { taken, dropped } => said = Some((taken, dropped)),
            }
            traces.turn(Instant::ZERO);
        }
        let (taken, dropped) = said.unwrap();
        assert_eq!((taken, dropped + kept), (10_000, 10_000));
        assert!(dropped > 5000, "{dropped}");
        // one who does not even take the end is let go
        let (mut traces, _reader) = begun(request(10_000, 2000));
        for _ in 0..10_000 {
            pass(&mut traces, &packet);
        }
        traces.turn(Instant::ZERO + Duration::from_secs(12));
        assert!(traces.is_idle());
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for bytes in [
            &[255; 8][..],
            &[1, 0, 0, 0, 9],
            &[2, 0, 0, 0, 1, 1],
            &[0, 0, 0, 0],
        ] {
            let error = TraceRecord::read(&mut &*bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
