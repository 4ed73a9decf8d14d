//! Bytes of packets, frames and files.

pub(super) const MS: u64 = 1_000_000;

/// IPv6 addresses of a document's network, by number.
pub(super) fn v6(net: u16, host: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    address[6..8].copy_from_slice(&net.to_be_bytes());
    address[14..].copy_from_slice(&host.to_be_bytes());
    address
}

pub(super) fn ipv6(source: [u8; 16], destination: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x60, 0, 0, 0];
    out.extend((payload.len() as u16).to_be_bytes());
    out.extend([next, 64]);
    out.extend(source);
    out.extend(destination);
    out.extend(payload);
    out
}

pub(super) fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend((20 + payload.len() as u16).to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend([0x40, 0, 64, protocol, 0, 0]);
    out.extend(source);
    out.extend(destination);
    out.extend(payload);
    out
}

pub(super) fn udp(ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend((8 + data.len() as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(data);
    out
}

/// A segment; `options` is padded to words.
pub(super) fn tcp(ports: (u16, u16), seq: u32, ack: u32, flags: u8, options: &[u8], data: usize) -> Vec<u8> {
    let options_len = options.len().next_multiple_of(4);
    let mut out = Vec::new();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(seq.to_be_bytes());
    out.extend(ack.to_be_bytes());
    out.extend([((20 + options_len) as u8 / 4) << 4, flags, 1, 0, 0, 0, 0, 0]);
    out.extend(options);
    out.resize(20 + options_len, 1);
    out.resize(20 + options_len + data, 0xaa);
    out
}

pub(super) fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    let mut out = vec![1, 1, 8, 10];
    out.extend(value.to_be_bytes());
    out.extend(echo.to_be_bytes());
    out
}

/// An Ethernet frame; the type follows from the packet.
pub(super) fn ethernet(packet: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    out.extend(ether_type(packet));
    out.extend(packet);
    out
}

pub(super) fn ether_type(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 {
        [0x08, 0x00]
    } else {
        [0x86, 0xdd]
    }
}

/// A pcap file of frames with times in nanoseconds.
pub(super) fn pcap(link: u16, big: bool, nanoseconds: bool, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut out = Vec::new();
    out.extend(word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    out.extend(half(2));
    out.extend(half(4));
    out.extend([0; 8]);
    out.extend(word(262_144));
    out.extend(word(u32::from(link)));
    for (time_ns, frame) in frames {
        out.extend(word((time_ns / 1_000_000_000) as u32));
        let rest = time_ns % 1_000_000_000;
        out.extend(word((if nanoseconds { rest } else { rest / 1000 }) as u32));
        out.extend(word(frame.len() as u32));
        out.extend(word(frame.len() as u32));
        out.extend(frame);
    }
    out
}

/// Raw IP with nanoseconds, which most tests are content with.
pub(super) fn raw(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    pcap(101, false, true, packets)
}

/// A block of pcapng.
pub(super) fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let padded = body.len().next_multiple_of(4);
    let total = padded as u32 + 12;
    let mut out = Vec::new();
    out.extend(word(kind));
    out.extend(word(total));
    out.extend(body);
    out.resize(8 + padded, 0);
    out.extend(word(total));
    out
}

pub(super) fn section(big: bool) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut body = Vec::new();
    body.extend(word(0x1a2b_3c4d));
    body.extend(if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] });
    body.extend([0xff; 8]);
    block(big, 0x0a0d_0d0a, &body)
}

/// An interface with options as (code, value).
pub(super) fn interface(big: bool, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut body = Vec::new();
    body.extend(half(link));
    body.extend([0, 0]);
    body.extend(if big {
        snap.to_be_bytes()
    } else {
        snap.to_le_bytes()
    });
    for (code, value) in options {
        body.extend(half(*code));
        body.extend(half(value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body.extend([0; 4]);
    block(big, 1, &body)
}

/// An enhanced packet block.
pub(super) fn enhanced(big: bool, interface: u32, units: u64, frame: &[u8], wire_len: usize) -> Vec<u8> {
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut body = Vec::new();
    body.extend(word(interface));
    body.extend(word((units >> 32) as u32));
    body.extend(word(units as u32));
    body.extend(word(frame.len() as u32));
    body.extend(word(wire_len as u32));
    body.extend(frame);
    block(big, 6, &body)
}
