//! Files of every kind.

use super::*;

fn datagram(n: u16) -> Vec<u8> {
    ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, n, &udp((1000, 2000), &[7; 50]))
}

fn frames() -> Vec<(u64, Vec<u8>)> {
    (0..10)
        .map(|n| (1_700_000_000_000_000_000 + n * 10 * MS, datagram(n as u16)))
        .collect()
}

/// The only flow, and how long it lasted.
fn only(analysis: &Analysis) -> (u64, f64) {
    assert_eq!(analysis.flows.len(), 1, "{:#?}", analysis.captures);
    let flow = &analysis.flows[0];
    (flow.forward.data_packets, flow.end_s - flow.begin_s)
}

#[test]
fn pcap_is_read_in_both_byte_orders_with_both_resolutions() {
    for (big, nanoseconds) in [(false, false), (false, true), (true, false), (true, true)] {
        let analysis = analysed(&[pcap(101, big, nanoseconds, &frames())]);
        assert_eq!(only(&analysis), (10, 0.09), "{big} {nanoseconds}");
        assert_eq!(analysis.start_time_ns, 1_700_000_000_000_000_000);
        assert_eq!(analysis.captures[0].format, "pcap");
        assert_eq!(analysis.captures[0].interfaces[0].link, Some("raw-ip"));
    }
}

#[test]
fn the_modified_pcap_header_has_eight_bytes_more() {
    let mut file = pcap(101, false, false, &frames()[..1]);
    file[..4].copy_from_slice(&0xa1b2_cd34u32.to_le_bytes());
    file.splice(40..40, [0; 8]);
    assert_eq!(only(&analysed(&[file])).0, 1);
}

#[test]
fn sections_may_differ_in_byte_order_and_interfaces_in_their_clocks() {
    let packet = datagram(1);
    let mut file = section(false);
    // microseconds by default, nanoseconds, 2^-10 s, and milliseconds with an offset of 1 s
    file.extend(interface(false, 101, 0, &[(2, b"first")]));
    file.extend(interface(false, 101, 0, &[(9, &[9])]));
    file.extend(block(false, 0xbad, &[1; 40]));
    file.extend(enhanced(false, 0, 2_000_000, &packet, packet.len()));
    file.extend(enhanced(false, 1, 2_010_000_000, &packet, packet.len()));
    file.extend(section(true));
    file.extend(interface(true, 101, 0, &[(9, &[0x80 | 10])]));
    file.extend(interface(true, 101, 0, &[(9, &[3]), (14, &1i64.to_be_bytes())]));
    file.extend(enhanced(true, 0, 2048 + 512, &packet, packet.len()));
    file.extend(enhanced(true, 1, 1600, &packet, packet.len()));
    let analysis = analysed(&[file]);
    assert_eq!(only(&analysis), (4, 0.6));
    let names: Vec<_> = analysis.captures[0]
        .interfaces
        .iter()
        .map(|i| (i.name.as_deref(), i.packets))
        .collect();
    assert_eq!(names, [(Some("first"), 1), (None, 1), (None, 1), (None, 1)]);
    assert_eq!(analysis.captures[0].partial, None);
}

#[test]
fn simple_and_obsolete_packet_blocks_are_read() {
    let packet = datagram(1);
    let mut file = section(false);
    file.extend(interface(false, 101, 60, &[]));
    let mut body = vec![0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x42, 0x0f, 0];
    body.extend((packet.len() as u32).to_le_bytes());
    body.extend((packet.len() as u32).to_le_bytes());
    body.extend(&packet);
    file.extend(block(false, 2, &body));
    let mut body = (packet.len() as u32).to_le_bytes().to_vec();
    body.extend(&packet[..60]);
    file.extend(block(false, 3, &body));
    let analysis = analysed(&[file]);
    assert_eq!(only(&analysis), (2, 0.0));
    assert_eq!(analysis.start_time_ns, 1_000_000_000);
    assert_eq!(analysis.captures[0].truncated_packets, 1);
}

#[test]
fn a_file_that_breaks_off_is_analysed_as_far_as_it_goes() {
    let file = pcap(101, false, true, &frames());
    let record = 16 + datagram(0).len();
    for (end, packets, at, reason) in [
        (file.len() - 1, 9, 24 + 9 * record, "within a packet"),
        (
            24 + 3 * record + 7,
            3,
            24 + 3 * record,
            "within the header of a packet",
        ),
    ] {
        let analysis = analysed(&[file[..end].to_vec()]);
        assert_eq!(only(&analysis).0, packets);
        let partial = analysis.captures[0].partial.clone().expect("it is marked");
        assert_eq!(partial.offset, at as u64);
        assert!(partial.reason.contains(reason), "{}", partial.reason);
    }
    let mut damaged = file;
    damaged[24 + 2 * record + 8..][..4].copy_from_slice(&[0xff; 4]);
    let analysis = analysed(&[damaged]);
    assert_eq!(only(&analysis).0, 2);
    assert!(
        analysis.captures[0]
            .partial
            .as_ref()
            .is_some_and(|p| p.reason.contains("4294967295 bytes"))
    );
}

#[test]
fn lengths_of_a_block_that_disagree_end_the_file() {
    let packet = datagram(1);
    let mut file = section(false);
    file.extend(interface(false, 101, 0, &[]));
    file.extend(enhanced(false, 0, 1, &packet, packet.len()));
    let good = file.len();
    file.extend(enhanced(false, 0, 2, &packet, packet.len()));
    let last = file.len() - 4;
    file[last] ^= 4;
    let analysis = analysed(&[file.clone()]);
    let partial = analysis.captures[0].partial.clone().expect("marked");
    assert_eq!((partial.offset, only(&analysis).0), (good as u64, 1));
    // and so does a packet of an interface that nobody described
    file.truncate(good);
    file.extend(enhanced(false, 7, 2, &packet, packet.len()));
    let analysis = analysed(&[file]);
    assert!(
        analysis.captures[0]
            .partial
            .as_ref()
            .is_some_and(|p| p.reason.contains("interface 7"))
    );
}

#[test]
fn what_is_no_capture_is_said_in_one_line() {
    let error = |bytes: &[u8]| {
        let input = Input::Bytes("x".to_owned(), bytes.into());
        analyze_inputs(&[input], &Options::default())
            .expect_err("no capture")
            .to_string()
    };
    assert_eq!(
        error(b""),
        "x: the file is empty: expected a pcap or pcapng capture"
    );
    assert_eq!(
        error(b"ab"),
        "x: the file has 2 bytes: expected a pcap or pcapng capture"
    );
    assert_eq!(
        error(b"GIF89a.."),
        "x: it begins with 47 49 46 38: expected a pcap or pcapng capture"
    );
    assert_eq!(
        error(&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]),
        "x: the file is compressed (xz): expected a pcap or pcapng capture"
    );
    assert_eq!(
        error(&[0x1f, 0x8b, 8, 0, 0]),
        "x: what gzip compressed breaks off"
    );
    assert!(error(&[0xd4, 0xc3, 0xb2, 0xa1, 0, 0]).contains("within its header"));
    assert!(error(&[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0, 1, 2, 3, 4]).contains("byte-order magic"));
    let missing = analyze(&[PathBuf::from("no-such-file.pcap")], &Options::default());
    assert!(missing.is_err_and(|e| e.to_string().starts_with("no-such-file.pcap: ")));
    assert_eq!(analyze(&[], &Options::default()), Err(Error::Count(0)));
}

#[test]
fn a_capture_without_packets_is_an_empty_analysis() {
    let analysis = analysed(&[pcap(1, false, false, &[])]);
    assert_eq!((analysis.flows_total, analysis.captures[0].packets), (0, 0));
    assert_eq!(analysis.captures[0].first_time_ns, None);
    assert!(analysis.captures[0].partial.is_none());
}
