//! Lists of streams, as requests to reset streams have them (RFC 6525 section 4.1).

/// Whether a list of streams, in which none stands for all, names `stream_id`.
pub(super) fn concerns(streams: &[u16], stream_id: u16) -> bool {
    streams.is_empty() || streams.contains(&stream_id)
}
