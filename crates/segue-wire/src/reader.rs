//! A checked cursor over bytes.
