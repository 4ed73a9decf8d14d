//! What an association is given to send.

use crate::setup;
use anyhow::{Context as _, Result};
use segue_proto::sctp::{Association, SendError, SendOptions};
use segue_proto::units::{BitRate, Bytes};
use segue_proto::{Duration, Instant};
use segue_wire::Data;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where messages come from.
#[derive(Debug)]
enum Source {
    Nothing,
    /// This many bytes of the synthetic sequence.
    Bytes(u64),
    File(SharedFile),
    /// Messages of the synthetic sequence, one per `every`, until the association ends.
    Paced {
        every: Duration,
        next: Option<Instant>,
    },
}

/// A file as one association reads it.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: Rc<File>,
    /// Where this association is in it; a pipe has no places.
    at: Option<u64>,
}

impl SharedFile {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some(at) = &mut self.at else {
            return (&*self.file).read(into);
        };
        let len = self.file.read_at(into, *at)?;
        *at += len as u64;
        Ok(len)
    }
}

/// The file that every association is sent: opened once, however many there are, if it is one that can be read at several
/// places.
#[derive(Debug)]
pub(crate) struct ToSend {
    path: PathBuf,
    opened: Option<Rc<File>>,
}

impl ToSend {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            opened: Some(Rc::new(setup::open(path)?)),
        })
    }

    pub(crate) fn is_same_file(&self, other: &Path) -> bool {
        self.opened
            .as_ref()
            .is_some_and(|file| setup::is_same_file(file, other))
    }

    /// For one more association.
    pub(crate) fn share(&mut self) -> Result<SharedFile> {
        let file = match self.opened.take() {
            Some(file) => file,
            None => Rc::new(setup::open(&self.path)?),
        };
        let is_regular = file.metadata().is_ok_and(|m| m.is_file());
        if is_regular {
            self.opened = Some(file.clone());
        }
        Ok(SharedFile {
            file,
            at: is_regular.then_some(0),
        })
    }
}

/// Sends messages, spread over the streams in turn.
#[derive(Debug)]
pub(crate) struct Sender {
    source: Source,
    size: usize,
    streams: u16,
    /// Message read and not yet taken.
    waiting: Option<Data>,
    offset: u64,
    messages: u64,
    done: bool,
    /// The association took no more before the end was reached.
    cut_short: bool,
}

impl Sender {
    fn new(source: Source, size: Bytes, streams: u16) -> Self {
        Self {
            source,
            size: size.bytes() as usize,
            streams,
            waiting: None,
            offset: 0,
            messages: 0,
            done: false,
            cut_short: false,
        }
    }

    pub(crate) fn nothing() -> Self {
        Self::new(Source::Nothing, Bytes::new(1), 1)
    }

    pub(crate) fn bytes(bytes: Bytes, size: Bytes, streams: u16) -> Self {
        Self::new(Source::Bytes(bytes.bytes()), size, streams)
    }

    /// A file goes over stream 0, so that it arrives in order.
    pub(crate) fn file(file: SharedFile, size: Bytes) -> Self {
        Self::new(Source::File(file), size, 1)
    }

    pub(crate) fn paced(rate: BitRate, size: Bytes, streams: u16) -> Self {
        let every = rate.time_for(size.bytes());
        Self::new(Source::Paced { every, next: None }, size, streams)
    }

    /// Whether there is anything to send at all.
    pub(crate) const fn has_source(&self) -> bool {
        !matches!(self.source, Source::Nothing)
    }

    /// Whether everything has been given to the association.
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }

    /// Whether a file or a number of bytes has an end that the association has not been given.
    pub(crate) const fn is_incomplete(&self) -> bool {
        matches!(self.source, Source::Bytes(_) | Source::File(_)) && (self.cut_short || !self.done)
    }

    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.offset
    }

    pub(crate) const fn sent_messages(&self) -> u64 {
        self.messages
    }

    /// When the next message is due.
    pub(crate) const fn next_at(&self) -> Option<Instant> {
        match self.source {
            // while the send buffer is full, the association tells when there is room
            Source::Paced { next, .. } if self.waiting.is_none() => next,
            _ => None,
        }
    }

    /// Gives the association what is due and what it has room for.
    pub(crate) fn send(&mut self, now: Instant, association: &mut Association) -> Result<()> {
        let streams = self.streams.min(association.outbound_streams()).max(1);
        loop {
            let Some(data) = self.next_message(now)? else {
                return Ok(());
            };
            let len = data.len() as u64;
            let stream_id = (self.messages % u64::from(streams)) as u16;
            match association.send(now, stream_id, data.clone(), SendOptions::default()) {
                Ok(()) => {
                    self.offset += len;
                    self.messages += 1;
                }
                Err(SendError::BufferFull) => {
                    self.waiting = Some(data);
                    return Ok(());
                }
                Err(SendError::Closing) => {
                    self.done = true;
                    self.cut_short = true;
                    return Ok(());
                }
                Err(error) => return Err(error).context("sending"),
            }
        }
    }

    fn next_message(&mut self, now: Instant) -> Result<Option<Data>> {
        if self.waiting.is_some() {
            return Ok(self.waiting.take());
        }
        let synthetic = |len: u64| Data::Synthetic {
            offset: self.offset,
            len: len as u32,
        };
        match &mut self.source {
            Source::Nothing => Ok(None),
            Source::Bytes(total) => {
                let left = *total - self.offset;
                self.done = left == 0;
                Ok((!self.done).then(|| synthetic(left.min(self.size as u64))))
            }
            Source::File(file) => {
                let mut bytes = vec![0; self.size];
                let mut len = 0;
                while len < bytes.len() {
                    match file.read(&mut bytes[len..]).context("reading the file to send")? {
                        0 => break,
                        n => len += n,
                    }
                }
                bytes.truncate(len);
                self.done = len == 0;
                Ok((!self.done).then(|| Data::Bytes(bytes.into())))
            }
            Source::Paced { every, next } => {
                let due = next.get_or_insert(now);
                if *due > now {
                    return Ok(None);
                }
                *due += *every;
                Ok(Some(synthetic(self.size as u64)))
            }
        }
    }
}
