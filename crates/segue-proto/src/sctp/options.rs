//! What a user asks of one message that it sends.

/// How a message is to be sent (RFC 9260 section 11.1.5, SEND). The default: ordered, payload protocol identifier 0.
///
/// ```
/// use segue_proto::sctp::SendOptions;
///
/// let options = SendOptions { unordered: true, ..SendOptions::default() };
/// # let _ = options;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// Deliver without regard to the order of the stream (U bit).
    pub unordered: bool,
    /// Payload protocol identifier: carried, and not looked at.
    pub payload_protocol_id: u32,
    /// Ask for the SACK of the message's last chunk at once (I bit, RFC 7053 section 4).
    pub sack_immediately: bool,
}
