//! A sender against acknowledgements made by hand. Segments are of 1000 bytes; positions are counted from the first byte of
//! data, which is 1.

use super::tcp_script::{ACK, SYN, Script, ms, plain};
use segue_proto::Duration;
use segue_proto::congestion::Algorithm;
use segue_proto::tcp::{Config, InitialWindow, LossDetection, Reduction, RtoRule};
use segue_wire::SeqNumber;
use segue_wire::tcp::{SackBlock, TcpOptions};

/// Round-trip time of the handshake.
pub const RTT: u64 = 100;
/// What RFC 6298 makes of it: SRTT + 4 (SRTT / 2).
pub const RTO: u64 = 300;

/// With SACK, Reno and RFC 6675, and nothing of what came later.
pub fn standard() -> Config {
    Config {
        sack: true,
        congestion_control: Algorithm::Reno,
        initial_window: InitialWindow::Rfc6928,
        loss_detection: LossDetection::Rfc6675,
        reduction: Reduction::Immediate,
        rto_rule: RtoRule::Rfc6298,
        tail_loss_probe: false,
        frto: false,
        undo: false,
        ..plain()
    }
}

pub fn rack() -> Config {
    Config {
        loss_detection: LossDetection::Rack,
        ..standard()
    }
}

/// A connection whose handshake took one round trip; cwnd is ten segments.
pub fn sender(config: Config) -> Script {
    sender_with(config, TcpOptions::default())
}

pub fn sender_with(config: Config, mut options: TcpOptions) -> Script {
    let mut s = Script::listening(config);
    options.set_mss(1000);
    options.set_sack_permitted();
    s.timestamps = options.timestamps;
    let mut syn = s.segment(SYN, 0, 0, 0);
    syn.options = options;
    s.give(syn);
    s.iss = s.only().seq.0;
    s.now += ms(RTT);
    s.give(s.segment(ACK, 1, 1, 0));
    assert_eq!(s.sent(), []);
    s.events.clear();
    s
}

pub fn shown(s: &Script, segments: &[segue_wire::tcp::TcpSegment]) -> Vec<(u32, usize)> {
    segments
        .iter()
        .map(|segment| (s.numbers(segment).1, segment.data.len()))
        .collect()
}

/// Writes so many bytes and says what goes out: position and length.
pub fn write(s: &mut Script, offset: u64, len: u32) -> Vec<(u32, usize)> {
    s.write(offset, len);
    let sent = s.sent();
    shown(s, &sent)
}

/// An acknowledgement with these blocks, and what goes out for it.
pub fn ack(s: &mut Script, to: u32, blocks: &[(u32, u32)]) -> Vec<(u32, usize)> {
    let mut segment = s.segment(ACK, 1, to, 0);
    let number = |position: u32| SeqNumber(s.iss.wrapping_add(position));
    let blocks: Vec<SackBlock> = blocks
        .iter()
        .map(|(left, right)| SackBlock {
            left: number(*left),
            right: number(*right),
        })
        .collect();
    segment.options.set_sack_blocks(&blocks);
    s.give(segment);
    let sent = s.sent();
    shown(s, &sent)
}

pub fn wait(s: &mut Script, time: Duration) -> Vec<(u32, usize)> {
    let sent = s.wait(time);
    shown(s, &sent)
}

pub const NONE: [(u32, usize); 0] = [];

/// Ten segments are out.
pub fn ten(config: Config) -> Script {
    let mut s = sender(config);
    assert_eq!(write(&mut s, 0, 10_000).len(), 10);
    s
}
