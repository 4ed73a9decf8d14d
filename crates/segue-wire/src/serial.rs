//! Serial-number newtypes: comparison modulo 2^n (RFC 1982, RFC 9260 section 1.6).

use core::cmp::Ordering;

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
        pub struct $name(pub $raw);

        impl $name {
            /// The serial number `n` steps further, modulo the size of the number space.
            #[must_use]
            pub const fn add(self, n: $raw) -> Self {
                Self(self.0.wrapping_add(n))
            }
            /// The serial number `n` steps back, modulo the size of the number space.
            #[must_use]
            pub const fn sub(self, n: $raw) -> Self {
                Self(self.0.wrapping_sub(n))
            }
            /// The next serial number.
            #[must_use]
            pub const fn next(self) -> Self {
                self.add(1)
            }
            /// The previous serial number.
            #[must_use]
            pub const fn previous(self) -> Self {
                self.sub(1)
            }
            /// Steps from `earlier` to `self`, modulo the size of the number space.
            #[must_use]
            pub const fn distance_from(self, earlier: Self) -> $raw {
                self.0.wrapping_sub(earlier.0)
            }
            /// `self < other` in serial arithmetic (RFC 1982 section 3.2).
            #[must_use]
            pub const fn before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) < 0
            }
            /// `self <= other` in serial arithmetic.
            #[must_use]
            pub const fn at_or_before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) <= 0
            }
            /// Total order around the half-space that both numbers lie in.
            #[must_use]
            pub fn serial_cmp(self, other: Self) -> Ordering {
                (self.0.wrapping_sub(other.0) as $signed).cmp(&0)
            }
        }
    };
}

serial!(
    /// Transmission Sequence Number (RFC 9260 section 1.6).
    Tsn, u32, i32
);
serial!(
    /// Stream Sequence Number (RFC 9260 section 1.6).
    Ssn, u16, i16
);
serial!(
    /// ASCONF serial number (RFC 5061 section 4.1.1).
    AsconfSerial, u32, i32
);

serial!(
    /// TCP sequence number (RFC 9293 section 3.4).
    SeqNumber, u32, i32
);
serial!(
    /// Re-configuration request sequence number (RFC 6525 section 4).
    ReConfigSerial, u32, i32
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_comparison_wraps_around() {
        assert!(Tsn(u32::MAX).before(Tsn(0)));
        assert!(!Tsn(0).before(Tsn(u32::MAX)));
        assert!(Tsn(7).at_or_before(Tsn(7)));
        assert_eq!(Ssn(1).distance_from(Ssn(65535)), 2);
        assert_eq!(Tsn(5).serial_cmp(Tsn(5)), Ordering::Equal);
    }
}
