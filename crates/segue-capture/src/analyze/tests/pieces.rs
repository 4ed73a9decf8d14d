//! Parts of a flow by themselves, as the tests of them begin.

use super::decode::Address;
use super::flows::conn::Conn;
use super::flows::item::{Item, Settings};
use super::flows::parties::Parties;
use super::model::Protocol;

pub(super) const S: u64 = 1_000_000_000;
pub(super) const MS: u64 = 1_000_000;

pub(super) const SETTINGS: Settings = Settings {
    window_ns: S,
    min_gap_ns: 50 * MS,
    series: false,
    start_ns: 0,
};

pub(super) fn item(seq: u32, span: u32) -> Item {
    Item::new(seq, span, span, None)
}

pub(super) fn end(host: u16, port: u16) -> (Address, u16) {
    (Address::v6(super::v6(1, host)), port)
}

pub(super) fn conn_since(protocol: Protocol, ns: u64) -> Box<Conn> {
    let ends = [end(1, 10), end(2, 20)];
    Conn::new(protocol, Parties::new(ends, ends.map(|end| end.0)), ns)
}
