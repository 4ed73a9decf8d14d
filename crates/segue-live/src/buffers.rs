//! Memory that packets are received into, which comes back when they have been sent on: a stream of packets takes none anew.

use bytes::{Bytes, BytesMut};
use core::mem::MaybeUninit;
use std::io;

/// A super-packet with what is in front of it.
const LARGE: usize = 65_536 + 64;
/// What is no longer than this is copied to where it fits, and nobody keeps 64 kB for an acknowledgement.
const SMALL: usize = 2048;
/// Buffers of a size that are kept while nothing is in them.
const MOST_KEPT: usize = 16;

/// Buffers for packets.
#[derive(Debug, Default)]
pub struct Buffers {
    large: Vec<BytesMut>,
    small: Vec<BytesMut>,
}

impl Buffers {
    /// What `read` reads, which is to say how many bytes it has put where it was shown; nothing if there was nothing to read.
    ///
    /// # Errors
    /// Those of `read`.
    #[allow(
        unsafe_code,
        reason = "the kernel writes to memory that nobody has written to yet"
    )]
    pub fn receive(
        &mut self,
        read: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<BytesMut>> {
        let mut large = self.large.pop().unwrap_or_else(|| new(LARGE));
        let space = &mut large.spare_capacity_mut()[..LARGE];
        let length = match read(space) {
            Ok(Some(length)) => length.min(LARGE),
            nothing => {
                self.large.push(large);
                return nothing.map(|_| None);
            }
        };
        // SAFETY: `read` has written the first `length` bytes, and there is room for as many.
        unsafe { large.set_len(length) };
        if length > SMALL {
            return Ok(Some(large));
        }
        let mut small = self.small.pop().unwrap_or_else(|| new(SMALL));
        small.extend_from_slice(&large);
        large.clear();
        self.large.push(large);
        Ok(Some(small))
    }

    /// A packet is not needed any more. Its memory is used again, unless somebody else has a part of it or it is none of these
    /// buffers.
    pub fn give_back(&mut self, bytes: Bytes) {
        let Ok(mut buffer) = bytes.try_into_mut() else {
            return;
        };
        buffer.clear();
        let kept = if buffer.try_reclaim(LARGE) {
            &mut self.large
        } else if buffer.try_reclaim(SMALL) {
            &mut self.small
        } else {
            return;
        };
        if kept.len() < MOST_KEPT {
            kept.push(buffer);
        }
    }
}

/// One of which a part can be given away without a word in memory beside it, as of one that was split.
fn new(capacity: usize) -> BytesMut {
    let mut buffer = BytesMut::with_capacity(capacity + 1);
    drop(buffer.split_off(capacity));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(buffers: &mut Buffers, packet: &[u8]) -> Bytes {
        let read = |space: &mut [MaybeUninit<u8>]| {
            space[..packet.len()].write_copy_of_slice(packet);
            Ok(Some(packet.len()))
        };
        buffers.receive(read).unwrap().unwrap().freeze()
    }

    #[test]
    fn memory_comes_back_whatever_was_cut_off_and_is_used_again() {
        let mut buffers = Buffers::default();
        for length in [60_000, 1500] {
            let packet: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut whole = receive(&mut buffers, &packet);
            assert_eq!(whole, packet);
            let place = whole.as_ptr();
            // the headers in front go, and what is left is changed on its way
            let rest = whole.split_off(40);
            drop(whole);
            let mut changed = rest.try_into_mut().unwrap();
            changed[0] ^= 1;
            buffers.give_back(changed.freeze());
            let again = receive(&mut buffers, &packet);
            assert_eq!((again.as_ptr(), &again[..]), (place, &packet[..]));
            // while somebody has it, others are taken
            assert_ne!(receive(&mut buffers, &packet).as_ptr(), place);
        }
    }

    #[test]
    fn what_somebody_has_and_what_is_of_others_is_not_used_again() {
        let mut buffers = Buffers::default();
        let packet = receive(&mut buffers, &[7; 3000]);
        buffers.give_back(packet.clone());
        buffers.give_back(Bytes::from_static(&[1; 4]));
        buffers.give_back(Bytes::from(vec![1; 4]));
        assert!(buffers.large.is_empty() && buffers.small.is_empty());
        assert_eq!(receive(&mut buffers, &[8; 3000]), [8; 3000][..]);
        assert_eq!(packet, [7; 3000][..]);
    }

    #[test]
    fn a_small_packet_does_not_keep_a_large_buffer_and_nothing_is_lost_where_there_is_none() {
        let mut buffers = Buffers::default();
        let held: Vec<Bytes> = (0..100u8).map(|n| receive(&mut buffers, &[n; 60])).collect();
        assert_eq!(buffers.large.len(), 1);
        assert!(held.iter().zip(0u8..).all(|(packet, n)| packet[..] == [n; 60]));
        held.into_iter().for_each(|packet| buffers.give_back(packet));
        assert_eq!((buffers.large.len(), buffers.small.len()), (1, MOST_KEPT));
        assert!(buffers.receive(|_| Ok(None)).unwrap().is_none());
        assert!(buffers.receive(|_| Err(io::ErrorKind::Other.into())).is_err());
        assert_eq!(buffers.large.len(), 1);
    }
}
