//! Neighbour discovery messages and options (RFC 4861 section 4).

use crate::ParseError;
use crate::reader::Reader;
use crate::writer::{length_u8, pad};
use bytes::{BufMut, Bytes};
use core::net::Ipv6Addr;

/// The solicited-node multicast address of `address` (RFC 4291 section 2.7.1).
#[must_use]
pub const fn solicited_node_multicast(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(SOLICITED_NODE_PREFIX | address.to_bits() & 0x00ff_ffff)
}

/// Whether `address` is the solicited-node multicast address of some address (RFC 4291 section 2.7.1).
#[must_use]
pub const fn is_solicited_node_multicast(address: Ipv6Addr) -> bool {
    address.to_bits() & !0x00ff_ffff == SOLICITED_NODE_PREFIX
}

/// A 48-bit link-layer address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkLayerAddress(pub [u8; 6]);

/// Router solicitation (section 4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouterSolicitation {
    /// Options.
    pub options: Vec<NdOption>,
}

impl RouterSolicitation {
    /// Parses what follows the checksum.
    ///
    /// # Errors
    /// If the message is truncated or an option has length zero.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        reader.skip(4)?;
        Ok(Self {
            options: NdOption::parse_all(reader)?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        4 + options_len(&self.options)
    }

    /// Appends what follows the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(0);
        emit_options(&self.options, out);
    }
}

/// Router advertisement (section 4.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouterAdvertisement {
    /// Default hop limit, 0 for unspecified.
    pub cur_hop_limit: u8,
    /// M flag: addresses are available by DHCPv6.
    pub managed: bool,
    /// O flag: other configuration is available by DHCPv6.
    pub other: bool,
    /// H flag: the router is a Mobile IPv6 home agent (RFC 6275 section 7.1).
    pub home_agent: bool,
    /// Lifetime as default router, seconds.
    pub router_lifetime_s: u16,
    /// Reachable time, milliseconds, 0 for unspecified.
    pub reachable_time_ms: u32,
    /// Time between retransmitted neighbour solicitations, milliseconds, 0 for unspecified.
    pub retrans_timer_ms: u32,
    /// Options.
    pub options: Vec<NdOption>,
}

impl RouterAdvertisement {
    /// Parses what follows the checksum.
    ///
    /// # Errors
    /// If the message is truncated or an option has length zero.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let cur_hop_limit = reader.u8()?;
        let flags = reader.u8()?;
        Ok(Self {
            cur_hop_limit,
            managed: flags & 0x80 != 0,
            other: flags & 0x40 != 0,
            home_agent: flags & 0x20 != 0,
            router_lifetime_s: reader.u16()?,
            reachable_time_ms: reader.u32()?,
            retrans_timer_ms: reader.u32()?,
            options: NdOption::parse_all(reader)?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        12 + options_len(&self.options)
    }

    /// Appends what follows the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u8(self.cur_hop_limit);
        out.put_u8(flag(self.managed, 0x80) | flag(self.other, 0x40) | flag(self.home_agent, 0x20));
        out.put_u16(self.router_lifetime_s);
        out.put_u32(self.reachable_time_ms);
        out.put_u32(self.retrans_timer_ms);
        emit_options(&self.options, out);
    }
}

/// Neighbour solicitation (section 4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighborSolicitation {
    /// Address asked for.
    pub target: Ipv6Addr,
    /// Options.
    pub options: Vec<NdOption>,
}

impl NeighborSolicitation {
    /// Parses what follows the checksum.
    ///
    /// # Errors
    /// If the message is truncated or an option has length zero.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        reader.skip(4)?;
        Ok(Self {
            target: reader.ipv6()?,
            options: NdOption::parse_all(reader)?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        20 + options_len(&self.options)
    }

    /// Appends what follows the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u32(0);
        out.put_slice(&self.target.octets());
        emit_options(&self.options, out);
    }
}

/// Neighbour advertisement (section 4.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighborAdvertisement {
    /// Address advertised.
    pub target: Ipv6Addr,
    /// R flag: sender is a router.
    pub router: bool,
    /// S flag: answer to a solicitation.
    pub solicited: bool,
    /// O flag: overrides a cache entry.
    pub override_flag: bool,
    /// Options.
    pub options: Vec<NdOption>,
}

impl NeighborAdvertisement {
    /// Parses what follows the checksum.
    ///
    /// # Errors
    /// If the message is truncated or an option has length zero.
    pub fn parse(mut reader: Reader<'_>) -> Result<Self, ParseError> {
        let flags = reader.u8()?;
        reader.skip(3)?;
        Ok(Self {
            target: reader.ipv6()?,
            router: flags & 0x80 != 0,
            solicited: flags & 0x40 != 0,
            override_flag: flags & 0x20 != 0,
            options: NdOption::parse_all(reader)?,
        })
    }

    /// Number of bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        20 + options_len(&self.options)
    }

    /// Appends what follows the checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.put_u8(flag(self.router, 0x80) | flag(self.solicited, 0x40) | flag(self.override_flag, 0x20));
        out.put_slice(&[0; 3]);
        out.put_slice(&self.target.octets());
        emit_options(&self.options, out);
    }
}

/// A neighbour discovery option (section 4.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NdOption {
    /// Source link-layer address (1).
    SourceLinkLayerAddress(LinkLayerAddress),
    /// Target link-layer address (2).
    TargetLinkLayerAddress(LinkLayerAddress),
    /// Prefix information (3).
    PrefixInformation(PrefixInformation),
    /// MTU (5), bytes.
    Mtu(u32),
    /// Advertisement interval (7), milliseconds (RFC 6275 section 7.3).
    AdvertisementInterval(u32),
    /// Home agent information (8, RFC 6275 section 7.4).
    HomeAgentInformation {
        /// Preference: more is better, as a signed number.
        preference: i16,
        /// Lifetime as a home agent, seconds.
        lifetime_s: u16,
    },
    /// Nonce (14), used by enhanced duplicate address detection (RFC 7527).
    Nonce(Bytes),
    /// Any other option; `data` is the whole option after type and length, a multiple of 8 less 2 bytes long.
    Unknown {
        /// Option type.
        option_type: u8,
        /// Option data.
        data: Bytes,
    },
}

impl NdOption {
    /// Option type.
    #[must_use]
    pub const fn option_type(&self) -> u8 {
        match self {
            Self::SourceLinkLayerAddress(_) => SOURCE_LINK_LAYER_ADDRESS,
            Self::TargetLinkLayerAddress(_) => TARGET_LINK_LAYER_ADDRESS,
            Self::PrefixInformation(_) => PREFIX_INFORMATION,
            Self::Mtu(_) => MTU,
            Self::AdvertisementInterval(_) => ADVERTISEMENT_INTERVAL,
            Self::HomeAgentInformation { .. } => HOME_AGENT_INFORMATION,
            Self::Nonce(_) => NONCE,
            Self::Unknown { option_type, .. } => *option_type,
        }
    }

    /// Parses one option.
    ///
    /// A known option whose length is not the one it has on a link with 48-bit addresses, and prefix information with
    /// more than 128 bits, become [`NdOption::Unknown`]: they are ignored, the message is not.
    ///
    /// # Errors
    /// If the option is truncated or has length zero (RFC 4861 section 4.6).
    pub fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let option_type = reader.u8()?;
        let units = usize::from(reader.u8()?);
        let body_len = (8 * units)
            .checked_sub(2)
            .ok_or(ParseError::BadLength("neighbour discovery option"))?;
        let mut body = reader.take(body_len, "neighbour discovery option")?;
        let whole = body;
        let known = match (option_type, units) {
            (SOURCE_LINK_LAYER_ADDRESS, 1) => {
                Some(Self::SourceLinkLayerAddress(LinkLayerAddress(body.array()?)))
            }
            (TARGET_LINK_LAYER_ADDRESS, 1) => {
                Some(Self::TargetLinkLayerAddress(LinkLayerAddress(body.array()?)))
            }
            (PREFIX_INFORMATION, 4) => PrefixInformation::parse(&mut body)?.map(Self::PrefixInformation),
            (MTU, 1) => {
                body.skip(2)?;
                Some(Self::Mtu(body.u32()?))
            }
            (ADVERTISEMENT_INTERVAL, 1) => {
                body.skip(2)?;
                Some(Self::AdvertisementInterval(body.u32()?))
            }
            (HOME_AGENT_INFORMATION, 1) => {
                body.skip(2)?;
                Some(Self::HomeAgentInformation {
                    preference: body.u16()?.cast_signed(),
                    lifetime_s: body.u16()?,
                })
            }
            (NONCE, _) => Some(Self::Nonce(body.rest())),
            _ => None,
        };
        Ok(known.unwrap_or_else(|| {
            let mut body = whole;
            Self::Unknown {
                option_type,
                data: body.rest(),
            }
        }))
    }

    /// Number of bytes that [`emit`](Self::emit) appends: a multiple of 8.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match self {
            Self::SourceLinkLayerAddress(_)
            | Self::TargetLinkLayerAddress(_)
            | Self::Mtu(_)
            | Self::AdvertisementInterval(_)
            | Self::HomeAgentInformation { .. } => 8,
            Self::PrefixInformation(_) => 32,
            Self::Nonce(data) | Self::Unknown { data, .. } => (2 + data.len()).next_multiple_of(8),
        }
    }

    /// Appends the option, padded with zeros to a multiple of 8 bytes.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(&[self.option_type(), length_u8(self.buffer_len() / 8)]);
        match self {
            Self::SourceLinkLayerAddress(address) | Self::TargetLinkLayerAddress(address) => {
                out.put_slice(&address.0)
            }
            Self::PrefixInformation(prefix) => prefix.emit(out),
            Self::Mtu(value) | Self::AdvertisementInterval(value) => {
                out.put_u16(0);
                out.put_u32(*value);
            }
            Self::HomeAgentInformation {
                preference,
                lifetime_s,
            } => {
                out.put_u16(0);
                out.put_i16(*preference);
                out.put_u16(*lifetime_s);
            }
            Self::Nonce(data) | Self::Unknown { data, .. } => {
                out.put_slice(data);
                pad(out, start, 8);
            }
        }
    }

    /// Parses the options that fill `reader`.
    fn parse_all(mut reader: Reader<'_>) -> Result<Vec<Self>, ParseError> {
        let mut options = Vec::new();
        while !reader.is_empty() {
            options.push(Self::parse(&mut reader)?);
        }
        Ok(options)
    }
}

/// Prefix information option (section 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInformation {
    /// Prefix.
    pub prefix: Ipv6Addr,
    /// Number of leading bits that count, 0 to 128.
    pub prefix_length: u8,
    /// L flag: prefix is on link.
    pub on_link: bool,
    /// A flag: prefix may be used for address autoconfiguration.
    pub autonomous: bool,
    /// R flag: prefix field holds the router's whole address (RFC 6275 section 7.2).
    pub router_address: bool,
    /// Valid lifetime, seconds; all ones is infinity.
    pub valid_lifetime_s: u32,
    /// Preferred lifetime, seconds; all ones is infinity.
    pub preferred_lifetime_s: u32,
}

impl PrefixInformation {
    /// Parses what follows type and length; nothing if the prefix length is out of range.
    fn parse(reader: &mut Reader<'_>) -> Result<Option<Self>, ParseError> {
        let prefix_length = reader.u8()?;
        let flags = reader.u8()?;
        let valid_lifetime_s = reader.u32()?;
        let preferred_lifetime_s = reader.u32()?;
        reader.skip(4)?;
        let prefix = reader.ipv6()?;
        Ok((prefix_length <= 128).then_some(Self {
            prefix,
            prefix_length,
            on_link: flags & 0x80 != 0,
            autonomous: flags & 0x40 != 0,
            router_address: flags & 0x20 != 0,
            valid_lifetime_s,
            preferred_lifetime_s,
        }))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.put_u8(self.prefix_length);
        out.put_u8(flag(self.on_link, 0x80) | flag(self.autonomous, 0x40) | flag(self.router_address, 0x20));
        out.put_u32(self.valid_lifetime_s);
        out.put_u32(self.preferred_lifetime_s);
        out.put_u32(0);
        out.put_slice(&self.prefix.octets());
    }
}

/// ff02::1:ff00:0/104 (RFC 4291 section 2.7.1).
const SOLICITED_NODE_PREFIX: u128 = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).to_bits();

// Option types of RFC 4861 section 4.6, RFC 6275 sections 7.3 and 7.4 and RFC 3971 section 5.3.2.
pub(super) const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;
const ADVERTISEMENT_INTERVAL: u8 = 7;
const HOME_AGENT_INFORMATION: u8 = 8;
const NONCE: u8 = 14;

fn options_len(options: &[NdOption]) -> usize {
    options.iter().map(NdOption::buffer_len).sum()
}

fn emit_options(options: &[NdOption], out: &mut Vec<u8>) {
    for option in options {
        option.emit(out);
    }
}

const fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}
