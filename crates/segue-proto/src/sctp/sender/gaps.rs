//! Gap ack blocks as ranges (RFC 9260 section 3.3.4).

use segue_wire::sctp::Sack;
use smallvec::SmallVec;

/// Ranges as offsets from the cumulative TSN ack, both ends inclusive, ascending.
pub(in crate::sctp) type Ranges = SmallVec<[(u32, u32); 4]>;

/// The gap ack blocks, if they are in order and within what was sent (`reach` TSNs beyond the cumulative TSN ack).
pub(super) fn valid_blocks(sack: &Sack, reach: u32) -> Option<Ranges> {
    let mut last = 0;
    for block in &sack.gap_ack_blocks {
        let (start, end) = (u32::from(block.start), u32::from(block.end));
        if start <= last || end < start || end > reach {
            return None;
        }
        last = end;
    }
    Some(
        sack.gap_ack_blocks
            .iter()
            .map(|b| (u32::from(b.start), u32::from(b.end)))
            .collect(),
    )
}

/// What of `a` is not in `b`.
pub(super) fn difference(a: &Ranges, b: &Ranges) -> Ranges {
    let mut out = Ranges::new();
    let mut j = 0;
    for &(start, end) in a {
        let mut at = start;
        while j < b.len() && b[j].1 < at {
            j += 1;
        }
        let mut k = j;
        while at <= end {
            match b.get(k) {
                Some(&(from, to)) if from <= end => {
                    if at < from {
                        out.push((at, from - 1));
                    }
                    at = at.max(to + 1);
                    k += 1;
                }
                _ => {
                    out.push((at, end));
                    break;
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_ranges() {
        let r = |v: &[(u32, u32)]| v.iter().copied().collect::<Ranges>();
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[])), r(&[(2, 9)]));
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[(2, 9)])), r(&[]));
        assert_eq!(difference(&r(&[(2, 9)]), &r(&[(2, 7)])), r(&[(8, 9)]));
        assert_eq!(
            difference(&r(&[(2, 9), (12, 14)]), &r(&[(3, 4), (6, 12)])),
            r(&[(2, 2), (5, 5), (13, 14)])
        );
        assert_eq!(difference(&r(&[(5, 6), (8, 8)]), &r(&[(1, 20)])), r(&[]));
    }
}
