//! Lengths of the connection IDs of QUIC.

/// Lengths of connection IDs in use, remembered to recognise short headers.
pub(super) const MAX_ID_LENGTHS: usize = 8;

/// Lengths of connection IDs that were seen in long headers; zero for none.
pub(super) type QuicIdLengths = [u8; MAX_ID_LENGTHS];
