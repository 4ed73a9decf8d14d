//! A run's trace as Arrow record batches. Columns of numbers are moved, not copied; texts are string views whose
//! distinct values are stored once.

use crate::arrow_table::ArrowTable;
use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Float64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, LargeListArray, PrimitiveArray, RecordBatch, StringViewArray,
};
use arrow_select::take::take;
use segue_sim::Trace;
use segue_sim::output::{CellReach, PacketTable, PositionTable, SignallingTable, WindowTable};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The tables of a run, by name.
pub(crate) struct Tables {
    pieces: Pieces,
}

/// Parts of the tables of a run, in their order.
#[derive(Default)]
pub(crate) struct Pieces(Vec<[RecordBatch; Tables::NAMES.len()]>);

impl Pieces {
    /// Adds the rows that were recorded since.
    pub fn add(&mut self, rows: Trace) {
        self.0.push(Self::batches(rows));
    }

    /// Rows as batches, in the order of [`Tables::NAMES`]. Takes the columns over.
    pub fn batches(rows: Trace) -> [RecordBatch; Tables::NAMES.len()] {
        let nodes = rows.nodes;
        let cells = cells(&rows.cells);
        [
            packets(rows.packets, &nodes),
            windows(rows.windows, &nodes),
            signalling(rows.signalling, &nodes),
            positions(rows.positions, &nodes),
            cells,
        ]
    }
}

impl Tables {
    /// Names, in the order of a piece's batches.
    pub(crate) const NAMES: [&'static str; 5] = ["packets", "windows", "signalling", "positions", "cells"];

    /// The tables of these pieces.
    pub(crate) fn new(pieces: Pieces) -> Self {
        Self { pieces }
    }

    /// The table of that name.
    pub(crate) fn table(&self, name: &str) -> Option<ArrowTable> {
        let index = Self::NAMES.iter().position(|&n| n == name)?;
        let batches: Vec<RecordBatch> = self.pieces.0.iter().map(|piece| piece[index].clone()).collect();
        ArrowTable::new(batches)
    }
}

/// `present_s` has a beginning and an end for each time that a cell is there, one after the other; null where geometry says.
fn cells(cells: &[CellReach]) -> RecordBatch {
    let column = |of: fn(&CellReach) -> f64| numbers::<Float64Type>(cells.iter().map(of).collect());
    let present = cells.iter().map(|c| {
        let windows = c.present_s.as_ref()?;
        Some(
            windows
                .iter()
                .flat_map(|w| [Some(w.0), Some(w.1)])
                .collect::<Vec<_>>(),
        )
    });
    batch([
        ("name", texts(cells.iter().map(|c| c.name.as_str()))),
        ("x_m", column(|c| c.x_m)),
        ("y_m", column(|c| c.y_m)),
        ("radius_m", column(|c| c.radius_m)),
        (
            "present_s",
            Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>(present)),
        ),
    ])
}

fn packets(table: PacketTable, nodes: &[String]) -> RecordBatch {
    batch([
        ("time_ns", numbers::<UInt64Type>(table.time_ns)),
        ("node", named(&table.node, nodes)),
        ("action", constants(&table.action)),
        ("cause", constants(&table.cause)),
        ("interface", numbers::<UInt8Type>(table.interface)),
        ("packet_id", numbers::<UInt64Type>(table.packet_id)),
        (
            "connection",
            Arc::new(PrimitiveArray::<UInt32Type>::from(table.connection)),
        ),
        ("source", addresses(&table.source)),
        ("destination", addresses(&table.destination)),
        ("kind", constants(&table.kind)),
        ("tsn", Arc::new(PrimitiveArray::<UInt32Type>::from(table.tsn))),
        ("length_bytes", numbers::<UInt32Type>(table.length_bytes)),
        (
            "retransmission",
            Arc::new(BooleanArray::from(table.retransmission)),
        ),
    ])
}

fn windows(table: WindowTable, nodes: &[String]) -> RecordBatch {
    batch([
        ("time_ns", numbers::<UInt64Type>(table.time_ns)),
        ("node", named(&table.node, nodes)),
        ("connection", numbers::<UInt32Type>(table.connection)),
        ("source", addresses(&table.source)),
        ("destination", addresses(&table.destination)),
        ("cwnd_bytes", numbers::<UInt32Type>(table.cwnd_bytes)),
        ("ssthresh_bytes", numbers::<UInt32Type>(table.ssthresh_bytes)),
        ("flightsize_bytes", numbers::<UInt32Type>(table.flightsize_bytes)),
        ("rto_ns", numbers::<UInt64Type>(table.rto_ns)),
        ("primary", Arc::new(BooleanArray::from(table.primary))),
    ])
}

fn signalling(table: SignallingTable, nodes: &[String]) -> RecordBatch {
    batch([
        ("time_ns", numbers::<UInt64Type>(table.time_ns)),
        ("node", named(&table.node, nodes)),
        ("step", numbers::<UInt8Type>(table.step)),
        ("event", texts(table.event.iter().map(String::as_str))),
        ("detail", texts(table.detail.iter().map(String::as_str))),
    ])
}

fn positions(table: PositionTable, nodes: &[String]) -> RecordBatch {
    batch([
        ("time_ns", numbers::<UInt64Type>(table.time_ns)),
        ("node", named(&table.node, nodes)),
        ("x_m", numbers::<Float64Type>(table.x_m)),
        ("y_m", numbers::<Float64Type>(table.y_m)),
    ])
}

/// Columns of packets that may have no value; in `windows`, `connection` always has one.
const NULLABLE: [&str; 3] = ["tsn", "present_s", "connection"];

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, array)| (name, array, NULLABLE.contains(&name))),
    )
    .expect("the simulator keeps the columns of a table equally long")
}

fn numbers<T: ArrowPrimitiveType>(values: Vec<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringViewBuilder::new().with_deduplicate_strings();
    for value in values {
        builder.append_value(value);
    }
    Arc::new(builder.finish())
}

/// A column in which few texts come again and again: `text` is asked for each once. Values with one key have one text.
fn few<T: Copy, K: Ord + Copy, S: AsRef<str>>(
    values: &[T],
    key: impl Fn(T) -> K,
    text: impl Fn(T) -> S,
) -> ArrayRef {
    let mut numbers: BTreeMap<K, u32> = BTreeMap::new();
    let mut distinct: Vec<S> = Vec::new();
    // as a rule one of the last two: what is sent and what is received take turns
    let mut recent: [Option<(K, u32)>; 2] = [None; 2];
    let number = |&value: &T| {
        let key = key(value);
        match recent {
            [Some((last, number)), _] | [_, Some((last, number))] if last == key => number,
            _ => {
                let number = *numbers.entry(key).or_insert_with(|| {
                    distinct.push(text(value));
                    distinct.len() as u32 - 1
                });
                recent = [Some((key, number)), recent[0]];
                number
            }
        }
    };
    let indices: Vec<u32> = values.iter().map(number).collect();
    let texts = StringViewArray::from_iter_values(&distinct);
    take(&texts, &PrimitiveArray::<UInt32Type>::from(indices), None).expect("every number is one of a text")
}

/// By where they lie: the same text at two places is only written twice.
fn constants(values: &[&'static str]) -> ArrayRef {
    few(values, |text| (text.as_ptr().addr(), text.len()), |text| text)
}

fn named(indices: &[u16], names: &[String]) -> ArrayRef {
    let name = |node| names.get(usize::from(node)).map_or("", String::as_str);
    few(indices, |node| node, name)
}

fn addresses(values: &[Ipv6Addr]) -> ArrayRef {
    few(values, |address| address.to_bits(), |address| address.to_string())
}
