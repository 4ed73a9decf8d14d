//! Random moves of [`Flight`] beside a model of it that looks at every chunk each time.

use super::*;
use crate::random::Stream;
use crate::sctp::ids::PathId;
use crate::sctp::lengths::chunk_size;
use crate::sctp::multipath::Cuc;
use crate::sctp::{Config, SendOptions};
use crate::time::{Duration, Instant};
use segue_wire::{Data, Tsn};

const RTO: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Is {
    Outstanding,
    Marked,
    Acknowledged,
    Abandoned,
}

/// A chunk as the model has it: where it stands, its path unless that was left, user bytes, and its place in the order of sending.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    is: Is,
    path: Option<usize>,
    len: u32,
    number: u64,
}

/// What is under way as a list.
#[derive(Default)]
struct Model {
    base: u32,
    chunks: Vec<Chunk>,
    numbers: u64,
}

impl Model {
    fn where_is(&self, is: Is) -> impl Iterator<Item = (u32, &Chunk)> {
        let chunks = (self.base..).zip(&self.chunks);
        chunks.filter(move |(_, chunk)| chunk.is == is)
    }

    fn sum(&self, path: usize) -> u32 {
        let own = self
            .where_is(Is::Outstanding)
            .filter(|(_, c)| c.path == Some(path));
        own.map(|(_, c)| chunk_size(c.len)).sum()
    }

    /// What T3-rtx of a path runs for.
    fn earliest(&self, path: usize, by_order: bool) -> Option<u32> {
        let own = self
            .where_is(Is::Outstanding)
            .filter(|(_, c)| c.path == Some(path));
        let key = |&(tsn, chunk): &(u32, &Chunk)| if by_order { chunk.number } else { u64::from(tsn) };
        own.min_by_key(key).map(|(tsn, _)| tsn)
    }

    fn change(&mut self, from: &[Is], to: Is, which: impl Fn(u32, &Chunk) -> bool) -> u32 {
        let base = self.base;
        let mut changed = 0;
        for (tsn, chunk) in (base..).zip(&mut self.chunks) {
            if from.contains(&chunk.is) && which(tsn, chunk) {
                chunk.is = to;
                changed += 1;
            }
        }
        changed
    }
}

#[test]
fn a_thousand_random_moves_leave_flight_as_a_list_has_it() {
    for seed in 0..40 {
        let by_order = seed % 2 == 1;
        let cuc = [Cuc::Off, Cuc::V1, Cuc::V2][seed as usize % 3];
        let mut random = Stream::new(seed, "flight");
        let mut queue = SendQueue::default();
        let mut flight = Flight::with(Tsn(1), by_order, cuc);
        let mut detector = LossDetector::new(&Config::default());
        let mut model = Model {
            base: 1,
            ..Model::default()
        };
        let tsn = |n: u32| Tsn(n);
        let paths = [0, 1, 2].map(PathId::first_at);
        for step in 0..1000 {
            let now = Instant::ZERO + Duration::from_millis(step);
            let path = random.below(3) as usize;
            let at = model
                .base
                .wrapping_add(random.below(model.chunks.len() as u64 + 1) as u32);
            let one = |n: u32, _: &Chunk| n == at;
            match random.below(12) {
                0..4 if model.chunks.len() < 40 => {
                    let len = 1 + random.below(1000) as u32;
                    let data = Data::Synthetic { offset: 0, len };
                    queue.push(now, 0, data, SendOptions::default());
                    let content = queue.cut(1000, false).expect("it waits");
                    let transmission = detector.on_sent(now);
                    flight.send(now, content, paths[path], RTO, transmission);
                    model.numbers += 1;
                    let number = model.numbers;
                    model.chunks.push(Chunk {
                        is: Is::Outstanding,
                        path: Some(path),
                        len,
                        number,
                    });
                }
                4..6 => {
                    if let Some(marked) = flight.next_marked(None) {
                        let again = |former, moves| detector.on_sent_again(now, former, moves);
                        assert!(flight.resend(now, marked, paths[path], RTO, again).is_some());
                        model.numbers += 1;
                        let chunk = &mut model.chunks[marked.distance_from(tsn(model.base)) as usize];
                        (chunk.is, chunk.path, chunk.number) = (Is::Outstanding, Some(path), model.numbers);
                    }
                }
                6 => {
                    let acknowledged = flight.acknowledge(tsn(at)).is_some();
                    let changed = model.change(&[Is::Outstanding, Is::Marked], Is::Acknowledged, one);
                    assert_eq!(u32::from(acknowledged), changed);
                }
                7 => {
                    let cause = [Cause::Rescheduled, Cause::MissingReports][random.below(2) as usize];
                    let lost = flight.lose_one(cause, tsn(at)).is_some();
                    assert_eq!(u32::from(lost), model.change(&[Is::Outstanding], Is::Marked, one));
                }
                8 => {
                    let lost = flight.leave(&[paths[path]]);
                    let there = |_, chunk: &Chunk| chunk.path == Some(path);
                    assert_eq!(lost, model.change(&[Is::Outstanding], Is::Marked, there));
                    for chunk in &mut model.chunks {
                        chunk.path = chunk.path.filter(|&other| other != path);
                    }
                }
                9 => {
                    let (lost, _) = flight.expire(now, paths[path], Instant::MAX, RTO);
                    let there = |_, chunk: &Chunk| chunk.path == Some(path);
                    assert_eq!(lost, model.change(&[Is::Outstanding], Is::Marked, there));
                }
                10 => {
                    flight.abandon(tsn(at));
                    model.change(
                        &[Is::Outstanding, Is::Marked, Is::Acknowledged],
                        Is::Abandoned,
                        one,
                    );
                }
                // by order of sending, T3-rtx goes on to run for what it ran for: the model would have what was reneged
                11 if !by_order && random.chance(0.5) => {
                    let reneged = flight.renege(now, tsn(at), |_| RTO);
                    let known = |n: u32, chunk: &Chunk| n == at && chunk.path.is_some();
                    let changed = model.change(&[Is::Acknowledged], Is::Outstanding, known);
                    let left = model.change(&[Is::Acknowledged], Is::Marked, one);
                    assert_eq!(u32::from(reneged), changed + left);
                }
                _ => {
                    let passed = flight.acknowledge_next().is_some();
                    assert_eq!(passed, !model.chunks.is_empty());
                    if passed {
                        model.chunks.remove(0);
                        model.base = model.base.wrapping_add(1);
                    }
                }
            }
            for path in paths {
                flight.settle(path, None);
            }
            flight
                .check_invariants()
                .unwrap_or_else(|wrong| panic!("seed {seed}, step {step}: {wrong}"));
            let bytes: u32 = model.where_is(Is::Outstanding).map(|(_, c)| c.len).sum();
            let counts = (
                bytes,
                model.where_is(Is::Outstanding).count() as u32,
                model.where_is(Is::Marked).count() as u32,
            );
            assert_eq!(flight.counts(), counts, "seed {seed}, step {step}");
            let first_marked = model.where_is(Is::Marked).next().map(|(n, _)| n);
            assert_eq!(
                flight.next_marked(None).map(|t| t.0),
                first_marked,
                "seed {seed}, step {step}"
            );
            for (index, &path) in paths.iter().enumerate() {
                assert_eq!(flight.size_on(path), model.sum(index), "seed {seed}, step {step}");
                let watched = flight.watched(path).map(|w| w.0);
                assert_eq!(
                    watched,
                    model.earliest(index, by_order),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}
