//! What is emitted parses to the same value, and is as long as foretold.

use super::pseudo_header;
use crate::arbitrary;
use crate::dhcpv6::Dhcpv6Message;
use crate::icmpv6::Icmpv6;
use crate::icmpv6::nd::NdOption;
use crate::ipv6::HOP_BY_HOP;
use crate::mobility::MobilityHeader;
use crate::reader::Reader;
use crate::sctp::{
    Asconf, AsconfAck, AsconfParameter, Chunk, DataChunk, ErrorCause, ForwardTsn, Init, Parameter, ReConfig,
    ReConfigParameter, Sack, SctpPacket,
};
use crate::tcp::TcpSegment;
use crate::udp::UdpDatagram;
use crate::{Data, ExtensionHeader, Packet, ParseError, Payload};
use bytes::Bytes;
use core::fmt::Debug;
use proptest::prelude::*;

/// Emits `value` behind something else, checks the length, and parses it again.
fn check<T: PartialEq + Debug>(
    value: &T,
    buffer_len: usize,
    emit: impl FnOnce(&T, &mut Vec<u8>),
    parse: impl FnOnce(&Bytes) -> Result<T, ParseError>,
) -> Result<(), TestCaseError> {
    // Three bytes before, so that padding and checksums cannot lean on where the vector begins.
    let mut out = vec![0xff; 3];
    emit(value, &mut out);
    let bytes = Bytes::from(out).slice(3..);
    prop_assert_eq!(bytes.len(), buffer_len);
    prop_assert_eq!(
        &parse(&bytes).map_err(|e| TestCaseError::fail(e.to_string()))?,
        value
    );
    Ok(())
}

/// Parses with `parse`, and checks that nothing is left over.
fn all<T>(
    bytes: &Bytes,
    parse: impl FnOnce(&mut Reader<'_>) -> Result<T, ParseError>,
) -> Result<T, ParseError> {
    let mut reader = Reader::new(bytes, "all of it");
    let value = parse(&mut reader)?;
    reader.finish()?;
    Ok(value)
}

proptest! {
    #[test]
    fn packet(packet in arbitrary::packet()) {
        check(&packet, packet.buffer_len(), Packet::emit, |b| Packet::parse_bytes(b.clone()))?;
        prop_assert_eq!(Packet::parse(&packet.to_vec()), Ok(packet));
    }

    #[test]
    fn bytes_behind_a_packet_are_ignored(packet in arbitrary::packet(), padding in arbitrary::bytes(0..20)) {
        let mut out = packet.to_vec();
        out.extend_from_slice(&padding);
        prop_assert_eq!(Packet::parse(&out), Ok(packet));
    }

    #[test]
    fn every_truncation_of_a_packet_is_refused(packet in arbitrary::packet()) {
        let out = packet.to_vec();
        for len in 0..out.len() {
            prop_assert!(Packet::parse(&out[..len]).is_err());
        }
    }

    #[test]
    fn extension_header(header in arbitrary::extension_header(), next_header: u8) {
        check(&header, header.buffer_len(), |h, out| h.emit(next_header, out), |b| {
            let (parsed, following) = all(b, |r| ExtensionHeader::parse(header.header_type(), r))?;
            assert_eq!(following, next_header);
            Ok(parsed)
        })?;
    }

    #[test]
    fn hop_by_hop_options(options in arbitrary::ipv6_options()) {
        let header = ExtensionHeader::HopByHop(options);
        check(&header, header.buffer_len(), |h, out| h.emit(59, out), |b| {
            all(b, |r| ExtensionHeader::parse(HOP_BY_HOP, r)).map(|(header, _)| header)
        })?;
    }

    #[test]
    fn udp(datagram in arbitrary::udp()) {
        let pseudo = pseudo_header();
        check(&datagram, datagram.buffer_len(), |d, out| d.emit(&pseudo, out), |b| UdpDatagram::parse(b, &pseudo))?;
    }

    #[test]
    fn tcp(segment in arbitrary::tcp()) {
        let pseudo = pseudo_header();
        check(&segment, segment.buffer_len(), |s, out| s.emit(&pseudo, out), |b| TcpSegment::parse(b, &pseudo))?;
    }

    #[test]
    fn icmpv6(message in arbitrary::icmpv6()) {
        let pseudo = pseudo_header();
        check(&message, message.buffer_len(), |m, out| m.emit(&pseudo, out), |b| Icmpv6::parse(b, &pseudo))?;
    }

    #[test]
    fn mobility_header(header in arbitrary::mobility_header()) {
        let pseudo = pseudo_header();
        check(&header, header.buffer_len(), |h, out| h.emit(&pseudo, out), |b| MobilityHeader::parse(b, &pseudo))?;
    }

    /// What the codes cover is the same whether the header was built here or came as bytes.
    #[test]
    fn authenticated_bytes_of_a_mobility_header(header in arbitrary::mobility_header()) {
        let pseudo = pseudo_header();
        let mut out = Vec::new();
        header.emit(&pseudo, &mut out);
        let parsed = MobilityHeader::parse(&Bytes::from(out), &pseudo).unwrap();
        prop_assert_eq!(parsed.authorized_bytes(), header.authorized_bytes());
        prop_assert_eq!(parsed.authenticated_bytes(), header.authenticated_bytes());
    }

    #[test]
    fn nd_option(options in arbitrary::nd_options()) {
        for option in options {
            check(&option, option.buffer_len(), NdOption::emit, |b| all(b, NdOption::parse))?;
        }
    }

    #[test]
    fn dhcpv6(message in arbitrary::dhcpv6()) {
        check(&message, message.buffer_len(), Dhcpv6Message::emit, Dhcpv6Message::parse)?;
        prop_assert_eq!(Dhcpv6Message::parse(&message.to_bytes()), Ok(message));
    }

    #[test]
    fn sctp_packet(packet in arbitrary::sctp_packet()) {
        check(&packet, packet.buffer_len(), SctpPacket::emit, SctpPacket::parse)?;
    }

    #[test]
    fn chunk(chunk in arbitrary::chunk()) {
        prop_assert_eq!(chunk.buffer_len() % 4, 0);
        check(&chunk, chunk.buffer_len(), Chunk::emit, |b| all(b, Chunk::parse))?;
    }

    #[test]
    fn data_chunk(chunk in arbitrary::data_chunk()) {
        let flags = chunk.flags();
        check(&chunk, chunk.buffer_len(), DataChunk::emit, |b| DataChunk::parse(flags, Reader::new(b, "")))?;
    }

    #[test]
    fn sack(sack in arbitrary::sack()) {
        check(&sack, sack.buffer_len(), Sack::emit, |b| Sack::parse(sack.flags(), Reader::new(b, "")))?;
    }

    #[test]
    fn init(init in arbitrary::init()) {
        check(&init, init.buffer_len(), Init::emit, |b| Init::parse(Reader::new(b, "")))?;
    }

    #[test]
    fn parameter(parameter in arbitrary::parameter()) {
        check(&parameter, parameter.buffer_len(), Parameter::emit, |b| all(b, Parameter::parse))?;
    }

    #[test]
    fn asconf(asconf in arbitrary::asconf()) {
        check(&asconf, asconf.buffer_len(), Asconf::emit, |b| Asconf::parse(Reader::new(b, "")))?;
    }

    #[test]
    fn asconf_parameter(parameter in arbitrary::asconf_parameter()) {
        check(&parameter, parameter.buffer_len(), AsconfParameter::emit, |b| all(b, AsconfParameter::parse))?;
    }

    #[test]
    fn asconf_ack(ack in arbitrary::asconf_ack()) {
        check(&ack, ack.buffer_len(), AsconfAck::emit, |b| AsconfAck::parse(Reader::new(b, "")))?;
    }

    #[test]
    fn forward_tsn(chunk in arbitrary::forward_tsn()) {
        check(&chunk, chunk.buffer_len(), ForwardTsn::emit, |b| ForwardTsn::parse(Reader::new(b, "")))?;
    }

    #[test]
    fn re_config(chunk in arbitrary::re_config()) {
        check(&chunk, chunk.buffer_len(), ReConfig::emit, |b| ReConfig::parse(Reader::new(b, "")))?;
    }

    #[test]
    fn re_config_parameter(parameter in arbitrary::re_config_parameter()) {
        check(&parameter, parameter.buffer_len(), ReConfigParameter::emit, |b| all(b, ReConfigParameter::parse))?;
    }

    #[test]
    fn error_cause(causes in arbitrary::error_causes()) {
        for cause in causes {
            check(&cause, cause.buffer_len(), ErrorCause::emit, |b| all(b, ErrorCause::parse))?;
        }
    }

    /// Synthetic data comes back as the bytes it stands for, in the storage that was parsed.
    #[test]
    fn synthetic_user_data(
        ip in arbitrary::ipv6_header(),
        mut chunk in arbitrary::data_chunk(),
        offset: u64,
        len in 0..3000_u32,
    ) {
        chunk.data = Data::Synthetic { offset, len };
        let sctp = SctpPacket {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
            chunks: [Chunk::Data(chunk)].into_iter().collect(),
        };
        let packet = Packet { ip, extensions: Vec::new(), payload: Payload::Sctp(sctp) };
        let bytes = Bytes::from(packet.to_vec());
        prop_assert_eq!(bytes.len(), packet.buffer_len());
        let storage = bytes.as_ptr_range();
        let parsed = Packet::parse_bytes(bytes.clone()).unwrap();
        let Payload::Sctp(sctp) = &parsed.payload else { unreachable!() };
        let Some(Chunk::Data(chunk)) = sctp.chunks.first() else { unreachable!() };
        prop_assert!(chunk.data.is_synthetic_at(offset));
        prop_assert_eq!(chunk.data.len(), len as usize);
        if let Data::Bytes(data) = &chunk.data && len > 0 {
            prop_assert!(storage.contains(&data.as_ptr()), "user data was copied");
        }
        prop_assert_eq!(parsed.to_vec(), bytes);
    }
}
