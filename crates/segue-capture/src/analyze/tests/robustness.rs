//! Captures that somebody damaged: never a panic, and what can be read is read.

use super::*;

/// A generator of random numbers; the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Damages a file in one of the ways in which files are damaged.
fn mutate(random: &mut Random, file: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        // every fourth in the headers of the file, which are short
        let range = if random.below(4) == 0 {
            file.len().min(40)
        } else {
            file.len()
        };
        let at = random.below(range);
        match random.below(7) {
            0 => file.truncate(at),
            1 => file[at] ^= 1 << random.below(8),
            2 => file[at] = random.next() as u8,
            3 => {
                let value = [0u32, 1, 3, 11, 0x7fff_ffff, 0x8000_0000, u32::MAX, 1 << 20][random.below(8)];
                let end = (at + 4).min(file.len());
                file[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            4 => {
                let end = (at + random.below(64)).min(file.len());
                file.drain(at..end);
            }
            5 => {
                let end = (at + random.below(64)).min(file.len());
                let copy = file[at..end].to_vec();
                file.splice(at..at, copy);
            }
            _ => {
                for byte in file.iter_mut().skip(at).take(8) {
                    *byte = random.next() as u8;
                }
            }
        }
        if file.is_empty() {
            return;
        }
    }
}

#[test]
fn ten_thousand_damaged_captures_give_an_error_or_a_result() {
    let seeds = transports::everything();
    let mut random = Random(0x5e90e);
    let options = Options {
        series: true,
        max_live_flows: 20,
        max_reported_flows: 5,
        ..Options::default()
    };
    let (mut errors, mut partial, mut whole) = (0u32, 0u32, 0u32);
    for round in 0..10_000 {
        let mut captures = vec![seeds[random.below(seeds.len())].clone()];
        if round % 4 == 0 {
            captures.push(captures[0].clone());
        }
        let damaged = random.below(captures.len());
        mutate(&mut random, &mut captures[damaged]);
        match analyze_inputs(&inputs(&captures), &options) {
            Err(error) => {
                assert_eq!(error.to_string().lines().count(), 1);
                errors += 1;
            }
            Ok(analysis) if analysis.captures.iter().any(|c| c.partial.is_some()) => partial += 1,
            Ok(analysis) => {
                assert!(analysis.flows.len() <= 5);
                whole += 1;
            }
        }
    }
    // all three happen, so that the damage is of every kind
    assert!(
        errors > 50 && partial > 1000 && whole > 1000,
        "{errors} {partial} {whole}"
    );
}

#[test]
fn more_flows_than_are_followed_make_room_for_one_another() {
    let mut packets = Vec::new();
    for n in 0..5000u32 {
        let source = [10, 0, (n >> 8) as u8, n as u8];
        packets.push((
            u64::from(n) * MS,
            ipv4(source, [192, 0, 2, 1], 6, 0, &tcp((1, 2), n, 0, 2, &[], 0)),
        ));
    }
    // one that goes on all the time stays
    let long = |n: u32| {
        ipv4(
            [1, 1, 1, 1],
            [2, 2, 2, 2],
            6,
            0,
            &tcp((3, 4), n * 10, 0, 16, &[], 10),
        )
    };
    for n in 0..500 {
        packets.push((u64::from(n) * 10 * MS, long(n)));
    }
    packets.sort_by_key(|p| p.0);
    let options = Options {
        max_live_flows: 100,
        max_reported_flows: 10,
        ..Options::default()
    };
    let analysis = analysed_with(&[raw(&packets)], &options);
    assert_eq!((analysis.flows_total, analysis.flows.len()), (5001, 10));
    assert_eq!(analysis.flows_evicted, 4901);
    let most = analysis.flows.iter().map(|f| f.forward.data_packets).max();
    assert_eq!(most, Some(500));
}

#[test]
fn times_that_make_no_sense_do_no_harm() {
    let segment = |n: u32| {
        ipv4(
            [1, 1, 1, 1],
            [2, 2, 2, 2],
            6,
            0,
            &tcp((3, 4), n * 10, 0, 16, &timestamps(n, 0), 10),
        )
    };
    let times = [
        5,
        u64::from(u32::MAX) * 1_000_000_000,
        0,
        7,
        3,
        1_000_000_000_000,
        8,
    ];
    let packets: Vec<_> = times.iter().zip(0..).map(|(t, n)| (*t, segment(n))).collect();
    let mut analysis = analysed_with(
        &[raw(&packets), raw(&packets)],
        &Options {
            min_gap_s: f64::NAN,
            throughput_window_s: f64::INFINITY,
            series: true,
            ..Options::default()
        },
    );
    assert_eq!(analysis.flows.remove(0).forward.data_packets, 14);
    assert_eq!(analysis.captures[0].time_went_back, 3);
}

#[test]
fn times_at_the_ends_of_64_bits_are_told_apart_without_harm() {
    let (here, there) = (v6(1, 1), v6(2, 2));
    let data = |n: u32, moved: bool| {
        let source = if moved { v6(3, 1) } else { here };
        let segment = tcp((3, 4), n * 10, 0, 16, &timestamps(n, 0), 10);
        ipv6(source, there, 6, &segment)
    };
    let answer = |n: u32| {
        ipv6(
            there,
            here,
            6,
            &tcp((4, 3), 0, n * 10 + 10, 16, &timestamps(0, n), 0),
        )
    };
    let file = |times: &[u64]| {
        let mut file = section(true);
        file.extend(interface(true, 101, 0, &[(9, &[9])]));
        for (n, pair) in (0..40).zip(times.iter().cycle().zip(times.iter().cycle().skip(1))) {
            for (time, packet) in [(pair.0, data(n, n % 8 > 3)), (pair.1, answer(n))] {
                file.extend(enhanced(true, 0, *time, &packet, packet.len()));
            }
        }
        file
    };
    let captures = [
        file(&[0]),
        file(&[u64::MAX]),
        file(&[1 << 63]),
        file(&[0, u64::MAX]),
        file(&[0, 1 << 63, u64::MAX, 5, 1, u64::MAX - 7]),
        file(&[u64::MAX, 3, u64::MAX, 4, 0]),
    ];
    let options = Options {
        series: true,
        throughput_window_s: f64::INFINITY,
        ..Options::default()
    };
    for first in &captures {
        let alone = analysed_with(core::slice::from_ref(first), &options);
        assert_eq!(alone.captures[0].packets, 80);
        for second in &captures {
            let both = analysed_with(&[first.clone(), second.clone()], &options);
            assert_eq!(both.captures[1].packets, 80);
        }
    }
}
