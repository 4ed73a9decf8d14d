use super::*;
use std::sync::Mutex;

/// A store in memory, which can be told to fail.
#[derive(Debug, Default)]
struct Bytes {
    written: Mutex<Vec<u8>>,
    reserved: Mutex<u64>,
    fails: bool,
}

impl Store for Bytes {
    fn reserve(&self, bytes: u64) -> u64 {
        let mut reserved = self.reserved.lock().unwrap();
        *reserved += bytes;
        *reserved - bytes
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        if self.fails {
            return Err("store: full".to_owned());
        }
        let (at, mut written) = (at as usize, self.written.lock().unwrap());
        let length = written.len().max(at + bytes.len());
        assert!(length as u64 <= *self.reserved.lock().unwrap());
        written.resize(length, 0xff);
        written[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), String> {
        let at = at as usize;
        bytes.copy_from_slice(&self.written.lock().unwrap()[at..at + bytes.len()]);
        Ok(())
    }
}

#[test]
fn values_have_their_places_at_the_borders_of_blocks() {
    let mut list = Rows::default();
    assert!(list.is_empty() && list.last().is_none() && list.get(0).is_none());
    for number in 0..3 * BLOCK as u64 {
        assert_eq!(list.len() as u64, number);
        list.push(number);
        assert_eq!(
            (list.last(), list.get(number as usize)),
            (Some(number), Some(number))
        );
    }
    list.update(BLOCK, |row| *row = 7);
    list.update(2 * BLOCK - 1, |row| *row = 8);
    *list.last_mut().unwrap() = 9;
    let changed = [(BLOCK, 7), (2 * BLOCK - 1, 8), (3 * BLOCK - 1, 9)];
    let expected = (0..3 * BLOCK).map(|n| {
        changed
            .iter()
            .find(|(at, _)| *at == n)
            .map_or(n as u64, |(_, to)| *to)
    });
    assert!(list.iter().eq(expected));
    assert_eq!(list.get(3 * BLOCK), None);
    list.update(3 * BLOCK, |_| panic!("there is no such row"));
}

#[test]
fn a_list_with_a_store_is_what_it_would_be_without() {
    for block in [1, 2, 3, 16] {
        let spill = Spill::new(Bytes::default(), block);
        let mut stream = random(block as u64);
        // two in one store
        let mut lists = [Rows::default(), Rows::default()];
        lists.iter_mut().for_each(|list| list.keep_in(&spill));
        let mut known = [Rows::default(), Rows::default()];
        for step in 0..3000_u64 {
            let which = (stream() % 2) as usize;
            let (list, known) = (&mut lists[which], &mut known[which]);
            let at = (stream() % (list.len() as u64 + 2)) as usize;
            match stream() % 4 {
                0 | 1 => (list.push((step, true)), known.push((step, true))),
                2 => {
                    let change = |row: &mut (u64, bool)| *row = (row.0 + 1, !row.1);
                    (list.update(at, change), known.update(at, change))
                }
                _ => {
                    let change = |row: &mut (u64, bool)| row.0 += 7;
                    let of = |list: &mut Rows<(u64, bool)>| list.last_mut().map_or((), change);
                    (of(list), of(known))
                }
            };
            assert_eq!(list.len(), known.len());
            assert_eq!((list.get(at), list.last()), (known.get(at), known.last()));
            assert!(list.here.len() <= STAY + 1, "{} blocks are here", list.here.len());
        }
        for (mut list, known) in lists.into_iter().zip(known) {
            assert!(list.iter().eq(known.iter()));
            assert!(list.clone().iter().eq(known.iter()));
            assert!(list.away > 0 && list.extents.len() <= 10);
            list.recall();
            assert!(list.away == 0 && list.iter().eq(known.iter()));
            list.push((1, false));
            assert_eq!(list.get(known.len()), Some((1, false)));
        }
        assert_eq!(spill.failure(), None);
    }
}

#[test]
fn of_a_store_that_fails_it_is_said_why_and_no_row_is_lost() {
    let store = Bytes {
        fails: true,
        ..Bytes::default()
    };
    let spill = Spill::new(store, 2);
    let mut list = Rows::default();
    list.keep_in(&spill);
    (0..4).for_each(|number: u32| list.push(number));
    assert_eq!(spill.failure(), None);
    (4..100).for_each(|number| list.push(number));
    assert_eq!(spill.failure(), Some("store: full"));
    assert!(list.iter().eq(0..100));
}

#[test]
fn rows_come_out_as_they_went_in() {
    fn check<T: Row + PartialEq + Debug>(row: T) {
        let mut bytes = vec![9];
        row.put(&mut bytes);
        assert_eq!(bytes.len(), 1 + T::BYTES, "{row:?}");
        bytes.extend([1, 2, 3]);
        let mut from = &bytes[1..];
        assert_eq!(T::read(&mut from), row);
        assert_eq!(from, [1, 2, 3]);
    }
    check(7_u8);
    check(0x1234_u16);
    check(u32::MAX - 1);
    check(u64::MAX / 3);
    check(u128::MAX / 3);
    check((true, false));
    check(-0.1_f64);
    check(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6));
    check(Some((3_u32, Some(4_u8))));
    check(Some((3_u32, None::<u8>)));
    check(None::<(u32, Option<u8>)>);
}

/// Numbers that look random (xorshift64).
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed + 0x9e37_79b9_7f4a_7c15;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
