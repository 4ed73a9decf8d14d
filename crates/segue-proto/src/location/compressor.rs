//! Compression of the names in a message (RFC 1035 section 4.1.4).

use bytes::BytesMut;
use core::convert::Infallible;
use domain::base::name::{Label, ToName};
use domain::base::wire::Composer;
use domain::dep::octseq::{OctetsBuilder, Truncate};

/// Greatest place that a pointer can name: it has 14 bits.
const MOST_PLACE: u16 = 0x3fff;

/// Places kept of names and what they end with. A name with more labels is not compressed by its last ones.
const MOST_PLACES: usize = 24;

/// Places kept of whole names beyond those, so that there always is one for a name that comes again and again.
const MOST_NAMES: usize = 8;

/// A message that is being written, and where the names in it are.
pub struct Compressor {
    message: BytesMut,
    places: Vec<u16>,
}

impl Compressor {
    pub fn new() -> Self {
        Self {
            message: BytesMut::new(),
            places: Vec::new(),
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.message.to_vec()
    }

    /// Where one of the first `known` names is what these labels are.
    fn find<'a>(&self, known: usize, name: &(impl Iterator<Item = &'a Label> + Clone)) -> Option<u16> {
        let mut places = self.places.iter().take(known).copied();
        places.find(|&place| {
            let labels = Label::iter_slice(&self.message, usize::from(place));
            name.clone().eq(labels)
        })
    }

    /// Whether the place of what is written next is kept.
    fn keep_place(&mut self, whole: bool) -> bool {
        let most = if whole {
            MOST_PLACES + MOST_NAMES
        } else {
            MOST_PLACES
        };
        let place = u16::try_from(self.message.len()).ok();
        match place.filter(|&place| place <= MOST_PLACE && self.places.len() < most) {
            Some(place) => self.places.push(place),
            None => return false,
        }
        true
    }
}

impl Composer for Compressor {
    fn append_compressed_name<N: ToName + ?Sized>(&mut self, name: &N) -> Result<(), Infallible> {
        let mut labels = name.iter_labels();
        // what a name ends with is none of its longer ends
        let known = self.places.len();
        let mut whole = true;
        loop {
            let rest = labels.clone();
            let Some(label) = labels.next().filter(|label| !label.is_root()) else {
                return Label::root().compose(self);
            };
            if let Some(place) = self.find(known, &rest) {
                return self.append_slice(&(place | !MOST_PLACE).to_be_bytes());
            }
            if !self.keep_place(whole) {
                for label in rest {
                    label.compose(self)?;
                }
                return Ok(());
            }
            label.compose(self)?;
            whole = false;
        }
    }

    fn can_compress(&self) -> bool {
        true
    }
}

impl OctetsBuilder for Compressor {
    type AppendError = Infallible;

    fn append_slice(&mut self, slice: &[u8]) -> Result<(), Infallible> {
        self.message.extend_from_slice(slice);
        Ok(())
    }
}

impl Truncate for Compressor {
    fn truncate(&mut self, len: usize) {
        self.message.truncate(len);
        self.places.retain(|&place| usize::from(place) < len);
    }
}

impl AsRef<[u8]> for Compressor {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl AsMut<[u8]> for Compressor {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.message
    }
}
