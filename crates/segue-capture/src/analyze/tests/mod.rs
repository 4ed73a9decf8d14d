//! Captures made byte by byte, and what the analysis makes of them.

mod apart;
mod boundaries;
mod clocks;
mod counting;
mod datagrams;
mod dead;
mod decoding;
mod dripping;
mod frames;
mod links;
mod live;
mod outages;
mod packed;
mod parts;
mod paths;
mod pieces;
mod readers;
mod restarts;
mod robustness;
mod shares;
mod signalling;
mod signals;
mod snapped;
mod transports;
mod twice;

use super::*;
use frames::*;

fn analysed(captures: &[Vec<u8>]) -> Analysis {
    analysed_with(captures, &Options::default())
}

fn analysed_with(captures: &[Vec<u8>], options: &Options) -> Analysis {
    analyze_inputs(&inputs(captures), options).unwrap_or_else(|e| panic!("{e}"))
}

fn inputs(captures: &[Vec<u8>]) -> Vec<Input> {
    let input = |(n, bytes): (usize, &Vec<u8>)| Input::Bytes(format!("capture {n}"), bytes.as_slice().into());
    captures.iter().enumerate().map(input).collect()
}
