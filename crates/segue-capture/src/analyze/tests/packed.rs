//! Captures that are compressed.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// In pieces, as programs that compress in parallel do.
fn pieces(bytes: &[u8], pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    bytes.chunks(bytes.len() / 3 + 1).flat_map(pack).collect()
}

#[test]
fn compressed_captures_give_what_they_give_unpacked() {
    let plain = transports::everything();
    for capture in &plain {
        let expected = analysed(core::slice::from_ref(capture));
        assert!(expected.captures[0].packets > 0);
        for pack in [gzip, zstandard] {
            for packed in [pack(capture), pieces(capture, pack)] {
                assert_eq!(analysed(&[packed]), expected);
            }
        }
    }
    let both = [plain[0].clone(), plain[1].clone()];
    assert_eq!(analysed(&[gzip(&both[0]), zstandard(&both[1])]), analysed(&both));
}

#[test]
fn a_compressed_capture_that_breaks_off_is_analysed_as_far_as_it_goes() {
    // payloads that do not compress, so that half of the file is half of the packets
    let mut word = 1u32;
    let mut payload = || {
        let next = core::iter::repeat_with(|| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (word >> 24) as u8
        });
        next.take(1000).collect::<Vec<u8>>()
    };
    let packets: Vec<_> = (0..1000u64)
        .map(|n| {
            let datagram = udp((1000, 2000), &payload());
            (
                n * MS,
                ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, n as u16, &datagram),
            )
        })
        .collect();
    for (pack, name) in [(gzip as fn(&[u8]) -> Vec<u8>, "gzip"), (zstandard, "zstd")] {
        let packed = pack(&raw(&packets));
        let analysis = analysed(&[packed[..packed.len() / 2].to_vec()]);
        let capture = &analysis.captures[0];
        assert!(
            (300..=500).contains(&capture.packets),
            "{name}: {}",
            capture.packets
        );
        let partial = capture.partial.as_ref().expect("it is marked");
        assert_eq!(partial.reason, format!("what {name} compressed breaks off"));
        // where it is cut off before its first packet, there is nothing to analyse
        let error = analyze_inputs(&inputs(&[packed[..12].to_vec()]), &Options::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("capture 0: what {name} compressed breaks off")
        );
    }
}

#[test]
fn what_is_compressed_twice_or_no_capture_is_said() {
    let error = |bytes: &[u8]| {
        let error = analyze_inputs(&inputs(&[bytes.to_vec()]), &Options::default()).unwrap_err();
        error.to_string()
    };
    let file = raw(&[]);
    assert_eq!(
        error(&gzip(&gzip(&file))),
        "capture 0: it is compressed twice (gzip): expected a pcap or pcapng capture"
    );
    assert!(error(&zstandard(&gzip(&file))).contains("twice (gzip)"));
    assert_eq!(
        error(&zstandard(b"")),
        "capture 0: the file is empty: expected a pcap or pcapng capture"
    );
}

#[test]
fn a_bomb_that_begins_like_a_capture_gives_no_result() {
    // a header, and then packets of no bytes at the beginning of time, as zeros are
    let file = [raw(&[]), vec![0; 300 << 20]].concat();
    let bomb = zstandard(&file);
    assert!(bomb.len() < 300 << 10);
    let error = analyze_inputs(&inputs(core::slice::from_ref(&bomb)), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("decompression bomb"), "{error}");
    let plain = raw(&[(0, vec![0x45; 40])]);
    let error = analyze_inputs(&inputs(&[plain, bomb]), &Options::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("capture 1: unpacks to more than 1000 times its size")
    );
}
