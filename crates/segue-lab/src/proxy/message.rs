//! What the ends of a stream tell each other: a message of SCTP each, whose payload protocol identifier says what it is.
//!
//! ```text
//!   identifier   body
//!   "SEG" 0x00   port: 16 bits                          Open
//!   "SEG" 0x01   data                                   Data
//!   "SEG" 0x02   bytes that may be sent more: 32 bits   Credit
//!   "SEG" 0x03   0: 8 bits                              Fin
//!   "SEG" 0x04   reason: 8 bits                         End
//! ```

use bytes::Bytes;

/// Identifiers have this in their upper 24 bits; they are not assigned by IANA.
const IDENTIFIERS: u32 = 0x5345_4700;

/// What one end of a stream tells the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A program has connected to this port of the other end's host.
    Open(u16),
    /// What it sent.
    Data(Bytes),
    /// So many bytes have been read, and as many may be sent more.
    Credit(u32),
    /// It sends no more: its half of the connection is closed.
    Fin,
    /// This end is done with the connection. Nothing of it follows.
    End(Reason),
}

/// Why an end is done with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Both halves are closed.
    Closed,
    /// It was reset.
    Reset,
    /// Nobody listens to the port.
    Refused,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// An identifier that is not one of these.
    #[error("unknown payload protocol identifier")]
    Unknown,
    /// A body that is none of that identifier.
    #[error("malformed body")]
    Body,
}

impl Message {
    /// From the payload protocol identifier and the body of a message of SCTP.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn parse(payload_protocol_id: u32, body: Bytes) -> Result<Self, MessageError> {
        let kind = payload_protocol_id ^ IDENTIFIERS;
        match (kind, &body[..]) {
            (0, &[high, low]) => Ok(Self::Open(u16::from_be_bytes([high, low]))),
            (1, [_, ..]) => Ok(Self::Data(body)),
            (2, &[a, b, c, d]) => Ok(Self::Credit(u32::from_be_bytes([a, b, c, d]))),
            (3, [0]) => Ok(Self::Fin),
            (4, [0]) => Ok(Self::End(Reason::Closed)),
            (4, [1]) => Ok(Self::End(Reason::Reset)),
            (4, [2]) => Ok(Self::End(Reason::Refused)),
            (0..=4, _) => Err(MessageError::Body),
            _ => Err(MessageError::Unknown),
        }
    }

    /// Payload protocol identifier and body.
    #[must_use]
    pub fn emit(self) -> (u32, Bytes) {
        let copy = Bytes::copy_from_slice;
        let (kind, body) = match self {
            Self::Open(port) => (0, copy(&port.to_be_bytes())),
            Self::Data(data) => (1, data),
            Self::Credit(bytes) => (2, copy(&bytes.to_be_bytes())),
            Self::Fin => (3, Bytes::from_static(&[0])),
            Self::End(Reason::Closed) => (4, Bytes::from_static(&[0])),
            Self::End(Reason::Reset) => (4, Bytes::from_static(&[1])),
            Self::End(Reason::Refused) => (4, Bytes::from_static(&[2])),
        };
        (IDENTIFIERS | kind, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_as_it_was_written() {
        let all = [
            Message::Open(9_001),
            Message::Data(Bytes::from_static(b"abc")),
            Message::Credit(65_536),
            Message::Fin,
            Message::End(Reason::Closed),
            Message::End(Reason::Reset),
            Message::End(Reason::Refused),
        ];
        for message in all {
            let (identifier, body) = message.clone().emit();
            assert_eq!(Message::parse(identifier, body), Ok(message));
        }
        let (identifier, body) = Message::Open(9_001).emit();
        assert_eq!((identifier, &body[..]), (0x5345_4700, &[0x23, 0x29][..]));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let parse = |kind: u32, body: &'static [u8]| Message::parse(kind, Bytes::from_static(body));
        assert_eq!(parse(0, &[0, 1]), Err(MessageError::Unknown));
        assert_eq!(parse(IDENTIFIERS | 5, &[0]), Err(MessageError::Unknown));
        for (kind, body) in [
            (0, &[1][..]),
            (1, &[]),
            (2, &[1, 2, 3]),
            (3, &[1]),
            (4, &[3]),
            (4, &[]),
        ] {
            assert_eq!(parse(IDENTIFIERS | kind, body), Err(MessageError::Body), "{kind}");
        }
    }
}
