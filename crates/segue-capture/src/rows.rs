//! Lists for what a long observation has a row of, which leave memory while it goes on.
//!
//! [`Rows`] is a list that is added to. Without a store it keeps everything in memory, as a run of the simulator does. With a
//! [`Spill`] it keeps the last rows there and puts those before into the store that the driver gave, block by block; a row that
//! changes after all is changed where it lies, so that nobody has to know which rows are settled. What it needs in memory for
//! rows that are away does not grow with them, but for eight bytes whenever their number doubles. This crate opens no file: the driver does.
//!
//! A store that fails is asked by its driver ([`Spill::failure`]), which ends the observation: what is read of the store after
//! that may lack rows.

#[cfg(test)]
mod tests;

use core::fmt::Debug;
use core::net::Ipv6Addr;
use std::sync::{Arc, OnceLock};

/// Rows in a block, without a store.
const BLOCK: usize = 64;
/// Full blocks that stay in memory beside the one that is filled.
const STAY: usize = 1;

/// A row of a fixed number of bytes.
pub trait Row: Copy {
    /// Bytes that it takes in a store.
    const BYTES: usize;

    /// Appends these bytes.
    fn put(self, to: &mut Vec<u8>);

    /// Takes it from the front of what [`put`](Self::put) has appended.
    fn read(from: &mut &[u8]) -> Self;
}

/// Where rows go that leave memory. A driver implements it: a file, for instance.
pub trait Store: Debug + Send + Sync {
    /// Room for so many bytes, which nobody else gets: where it begins.
    fn reserve(&self, bytes: u64) -> u64;

    /// Writes into room that was reserved.
    ///
    /// # Errors
    /// Why it could not, with the name of the store.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), String>;

    /// Reads what was written.
    ///
    /// # Errors
    /// Why it could not, with the name of the store.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), String>;
}

/// A store that lists share, and whether it has failed.
#[derive(Clone, Debug)]
pub struct Spill(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Box<dyn Store>,
    block: usize,
    failed: OnceLock<String>,
}

impl Spill {
    /// Lists put `block` rows at a time into `store`, and have twice as many in memory at most.
    #[must_use]
    pub fn new(store: impl Store + 'static, block: usize) -> Self {
        Self(Arc::new(Shared {
            store: Box::new(store),
            block: block.max(1),
            failed: OnceLock::new(),
        }))
    }

    /// Why the store failed first, if it has: then rows may be missing, and the observation has to end.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.0.failed.get().map(String::as_str)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Option<()> {
        self.note(self.0.store.write(at, bytes))
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.note(self.0.store.read(at, bytes))
    }

    fn note(&self, result: Result<(), String>) -> Option<()> {
        result.map_err(|why| self.0.failed.get_or_init(|| why)).ok()
    }
}

/// A list of rows; see the module's documentation. A copy of it has everything in memory.
///
/// ```
/// let mut list = segue_capture::rows::Rows::default();
/// for number in 0..1000_u32 {
///     list.push(number);
/// }
/// assert_eq!((list.len(), list.get(700), list.get(1000)), (1000, Some(700), None));
/// assert!(list.iter().eq(0..1000));
/// ```
#[derive(Debug)]
pub struct Rows<T> {
    len: usize,
    block: usize,
    /// Blocks that are in the store, the first of the list.
    away: usize,
    /// Where they are: room for one block, for two, for four and so on.
    extents: Vec<u64>,
    /// The others. All but the last are full.
    here: Vec<Vec<T>>,
    spill: Option<Spill>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Row> Clone for Rows<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        self.iter().for_each(|row| copy.push(row));
        copy
    }
}

impl<T> Rows<T> {
    /// An empty list, in memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            len: 0,
            block: BLOCK,
            away: 0,
            extents: Vec::new(),
            here: Vec::new(),
            spill: None,
        }
    }

    /// Number of rows.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row added last, to be changed.
    #[must_use]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.here.last_mut()?.last_mut()
    }
}

impl<T: Row> Rows<T> {
    /// Leaves all but the last rows in this store from now on.
    pub fn keep_in(&mut self, spill: &Spill) {
        let empty = Self {
            block: spill.0.block,
            spill: Some(spill.clone()),
            ..Self::default()
        };
        let rows = core::mem::replace(self, empty);
        rows.iter().for_each(|row| self.push(row));
    }

    /// Adds a row at the end.
    pub fn push(&mut self, row: T) {
        self.len += 1;
        match self.here.last_mut() {
            Some(last) if last.len() < self.block => last.push(row),
            // most lists are short: the first block grows as it is needed
            None => self.here.push(vec![row]),
            Some(_) => {
                let mut block = self.put_away().unwrap_or_else(|| Vec::with_capacity(self.block));
                block.push(row);
                self.here.push(block);
            }
        }
    }

    /// The row added last.
    #[must_use]
    pub fn last(&self) -> Option<T> {
        self.here.last()?.last().copied()
    }

    /// The row at a place.
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> Option<T> {
        match (at / self.block).checked_sub(self.away) {
            Some(block) => self.here.get(block)?.get(at % self.block).copied(),
            None => self.fetch(at),
        }
    }

    /// Changes the row at a place, if there is one.
    pub fn update(&mut self, at: usize, change: impl FnOnce(&mut T)) {
        let block = (at / self.block).checked_sub(self.away);
        if let Some(block) = block {
            let row = self.here.get_mut(block).and_then(|b| b.get_mut(at % self.block));
            return row.map_or((), change);
        }
        if let (Some(mut row), Some(spill)) = (self.fetch(at), &self.spill) {
            change(&mut row);
            let mut bytes = Vec::with_capacity(T::BYTES);
            row.put(&mut bytes);
            // a failure is noted
            let _ = spill.write(self.place(at), &bytes);
        }
    }

    /// All rows, in order: those that are away are read at once.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.fetch_all()
            .into_iter()
            .chain(self.here.iter().flatten().copied())
    }

    /// Has all rows in memory again, and from now on.
    pub fn recall(&mut self) {
        if self.away > 0 {
            *self = self.clone();
        }
        self.spill = None;
    }

    /// Puts the first block that is here into the store, if there is one and enough stay here. Gives its memory.
    #[cold]
    fn put_away(&mut self) -> Option<Vec<T>> {
        let spill = self.spill.as_ref().filter(|_| self.here.len() > STAY)?;
        let mut bytes = Vec::with_capacity(self.block * T::BYTES);
        self.here[0].iter().for_each(|row| row.put(&mut bytes));
        // a power of two and more blocks before
        if (self.away + 1).is_power_of_two() && self.extents.len() == extent(self.away) {
            let room = (self.away + 1) as u64 * bytes.len() as u64;
            self.extents.push(spill.0.store.reserve(room));
        }
        spill.write(self.place(self.away * self.block), &bytes)?;
        self.away += 1;
        let mut block = self.here.remove(0);
        block.clear();
        Some(block)
    }

    /// A row that is away.
    #[cold]
    fn fetch(&self, at: usize) -> Option<T> {
        let mut bytes = vec![0; T::BYTES];
        self.spill.as_ref()?.read(self.place(at), &mut bytes)?;
        Some(T::read(&mut &bytes[..]))
    }

    /// Those that are away.
    fn fetch_all(&self) -> Vec<T> {
        let mut rows = Vec::with_capacity(self.away * self.block);
        let mut bytes = vec![0; self.block * T::BYTES];
        for block in 0..self.away {
            let spill = self.spill.as_ref();
            if spill.is_some_and(|s| s.read(self.place(block * self.block), &mut bytes).is_some()) {
                let mut from = &bytes[..];
                rows.extend((0..self.block).map(|_| T::read(&mut from)));
            }
        }
        rows
    }

    /// Where a row is that is away, or about to be.
    fn place(&self, at: usize) -> u64 {
        let (block, within) = (at / self.block, at % self.block);
        let extent = extent(block);
        let before = block + 1 - (1 << extent);
        let begin = self.extents.get(extent).copied().unwrap_or_default();
        begin + ((before * self.block + within) * T::BYTES) as u64
    }
}

/// In which piece of room a block is: the first has room for one, the next for two, and so on.
const fn extent(block: usize) -> usize {
    (block + 1).ilog2() as usize
}

macro_rules! integers {
    ($($kind:ty)+) => {$(
        impl Row for $kind {
            const BYTES: usize = size_of::<$kind>();

            fn put(self, to: &mut Vec<u8>) {
                to.extend(self.to_be_bytes());
            }

            fn read(from: &mut &[u8]) -> Self {
                let Some((bytes, rest)) = from.split_first_chunk() else {
                    return 0;
                };
                *from = rest;
                Self::from_be_bytes(*bytes)
            }
        }
    )+};
}

integers!(u8 u16 u32 u64 u128);

impl Row for bool {
    const BYTES: usize = 1;

    fn put(self, to: &mut Vec<u8>) {
        u8::from(self).put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        u8::read(from) != 0
    }
}

impl Row for f64 {
    const BYTES: usize = 8;

    fn put(self, to: &mut Vec<u8>) {
        self.to_bits().put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        Self::from_bits(u64::read(from))
    }
}

impl Row for Ipv6Addr {
    const BYTES: usize = 16;

    fn put(self, to: &mut Vec<u8>) {
        self.to_bits().put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        Self::from_bits(u128::read(from))
    }
}

/// A byte that says whether there is one, and room for it.
impl<T: Row> Row for Option<T> {
    const BYTES: usize = 1 + T::BYTES;

    fn put(self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        match self {
            Some(value) => value.put(to),
            None => to.resize(to.len() + T::BYTES, 0),
        }
    }

    fn read(from: &mut &[u8]) -> Self {
        let is_some = bool::read(from);
        let value = T::read(from);
        is_some.then_some(value)
    }
}

impl<A: Row, B: Row> Row for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn put(self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn read(from: &mut &[u8]) -> Self {
        let first = A::read(from);
        (first, B::read(from))
    }
}
