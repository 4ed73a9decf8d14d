//! Reading what the writer writes: little-endian sections of raw IPv6. Other captures come with `segue analyze`.

use super::{
    BYTE_ORDER_MAGIC, Direction, ENHANCED_PACKET, EPB_FLAGS, IF_NAME, IF_TSRESOL, INTERFACE_DESCRIPTION,
    LINKTYPE_IPV6, OPT_END, SECTION_HEADER, TSRESOL_NANOSECONDS,
};

/// A capture in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PcapngFile {
    /// Interface names by number.
    pub interfaces: Vec<String>,
    /// Packets in order.
    pub packets: Vec<CapturedPacket>,
}

/// One packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPacket {
    /// Index into [`PcapngFile::interfaces`].
    pub interface: u32,
    /// Nanoseconds.
    pub time_ns: u64,
    /// Direction, if stated.
    pub direction: Option<Direction>,
    /// From the IPv6 header on.
    pub bytes: Vec<u8>,
}

/// Why a file could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// A block ends beyond the file, or its lengths disagree.
    #[error("block at byte {0} is cut off or its lengths disagree")]
    Block(usize),
    /// Not a pcapng section, or big-endian.
    #[error("not a little-endian pcapng section")]
    NotASection,
    /// A link type or a time resolution that the writer does not write.
    #[error("interface {0} is not raw IPv6 with nanosecond stamps")]
    Interface(usize),
}

impl PcapngFile {
    /// Reads a whole file; blocks of other types are skipped.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut file = Self::default();
        let mut at = 0;
        while at < bytes.len() {
            let (block_type, body, next) = block(bytes, at).ok_or(ReadError::Block(at))?;
            if (at == 0) != (block_type == SECTION_HEADER) {
                return Err(ReadError::NotASection);
            }
            match block_type {
                SECTION_HEADER if u32_at(body, 0) != Some(BYTE_ORDER_MAGIC) => {
                    return Err(ReadError::NotASection);
                }
                INTERFACE_DESCRIPTION => {
                    let name = interface(body).ok_or(ReadError::Interface(file.interfaces.len()))?;
                    file.interfaces.push(name);
                }
                ENHANCED_PACKET => file
                    .packets
                    .push(packet(body, file.interfaces.len()).ok_or(ReadError::Block(at))?),
                _ => {}
            }
            at = next;
        }
        if at == 0 {
            Err(ReadError::NotASection)
        } else {
            Ok(file)
        }
    }
}

fn block(bytes: &[u8], at: usize) -> Option<(u32, &[u8], usize)> {
    let total = u32_at(bytes, at + 4)? as usize;
    let end = at.checked_add(total)?;
    if total < 12 || !total.is_multiple_of(4) || u32_at(bytes, end.checked_sub(4)?)? as usize != total {
        return None;
    }
    Some((u32_at(bytes, at)?, bytes.get(at + 8..end - 4)?, end))
}

fn interface(body: &[u8]) -> Option<String> {
    let link_type = u16::from_le_bytes(body.get(..2)?.try_into().ok()?);
    let options = body.get(8..)?;
    let nanoseconds = option(options, IF_TSRESOL) == Some(&[TSRESOL_NANOSECONDS]);
    let name = String::from_utf8_lossy(option(options, IF_NAME).unwrap_or_default()).into_owned();
    (link_type == LINKTYPE_IPV6 && nanoseconds).then_some(name)
}

fn packet(body: &[u8], interfaces: usize) -> Option<CapturedPacket> {
    let interface = u32_at(body, 0).filter(|&i| (i as usize) < interfaces)?;
    let time_ns = (u64::from(u32_at(body, 4)?) << 32) | u64::from(u32_at(body, 8)?);
    let len = u32_at(body, 12)? as usize;
    let bytes = body.get(20..20usize.checked_add(len)?)?.to_vec();
    let options = body.get(20 + len.next_multiple_of(4)..)?;
    let direction = match option(options, EPB_FLAGS)
        .and_then(|v| u32_at(v, 0))
        .map(|f| f & 3)
    {
        Some(1) => Some(Direction::Inbound),
        Some(2) => Some(Direction::Outbound),
        _ => None,
    };
    Some(CapturedPacket {
        interface,
        time_ns,
        direction,
        bytes,
    })
}

fn option(mut options: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let code = u16::from_le_bytes(options.get(..2)?.try_into().ok()?);
        let len = usize::from(u16::from_le_bytes(options.get(2..4)?.try_into().ok()?));
        if code == OPT_END {
            return None;
        }
        let value = options.get(4..4 + len)?;
        if code == wanted {
            return Some(value);
        }
        options = options.get(4 + len.next_multiple_of(4)..)?;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}
