//! The player judged: a script that passes fails once it is damaged, and the message names the line and what is wrong.

use segue_conformance::drill::files;
use segue_conformance::drill::play::{Settings, play};
use segue_conformance::drill::verdict::{Report, Verdict};
use segue_proto::random::Stream;

const SCTP: &str = "\
--tolerance_usecs=4000
+0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < sctp: INIT[flgs=0, tag=1, a_rwnd=100000, os=4, is=4, tsn=1]
+0 > sctp: INIT_ACK[flgs=0, tag=2, a_rwnd=131072, os=4, is=..., tsn=1, ...]
+0 < sctp: COOKIE_ECHO[flgs=0, len=..., val=...]; DATA[flgs=BE, len=116, tsn=1, sid=0, ssn=0, ppid=0]
+0 > sctp: COOKIE_ACK[flgs=0]; SACK[flgs=0, cum_tsn=1, a_rwnd=130972, gaps=[], dups=[]]
+0 accept(3, ..., ...) = 4
+0 read(4, ..., 200) = 100
+0.1 < sctp: DATA[flgs=BE, len=116, tsn=3, sid=0, ssn=2, ppid=0]
+0 > sctp: SACK[flgs=0, cum_tsn=1, a_rwnd=130972, gaps=[2:2], dups=[]]
+0 < sctp: DATA[flgs=BE, len=116, tsn=2, sid=0, ssn=1, ppid=0]
+0 > sctp: SACK[flgs=0, cum_tsn=3, a_rwnd=130872, gaps=[], dups=[]]
+0 write(4, ..., 1000) = 1000
+0 > sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]
+1 > sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]
+0 < sctp: SACK[flgs=0, cum_tsn=1, a_rwnd=100000, gaps=[], dups=[]]
+0 close(4) = 0
+0 > sctp: SHUTDOWN[flgs=0, cum_tsn=3]
+0 < sctp: SHUTDOWN_ACK[flgs=0]
+0 > sctp: SHUTDOWN_COMPLETE[flgs=0]
+0 close(3) = 0
";

/// What is done to a script: the line, from 1; what stands there and what shall; the line that fails then, and the words
/// that say why.
type Damage = (usize, &'static str, &'static str, usize, &'static str);

const DAMAGES: &[Damage] = &[
    // wrong numbers
    (16, "tsn=1", "tsn=2", 16, "tsn is 1, not 2"),
    (20, "cum_tsn=3", "cum_tsn=4", 20, "cum_tsn is 3, not 4"),
    (12, "[2:2]", "[2:3]", 12, "gaps is [[2, 2]], not [[2, 3]]"),
    (14, "dups=[]", "dups=[3]", 14, "dups is [], not [3]"),
    (12, "130972", "130971", 12, "a_rwnd is 130972, not 130971"),
    (6, "os=4", "os=3", 6, "os is 4, not 3"),
    (16, "len=1016", "len=1015", 16, "len is 1016, not 1015"),
    (16, "ssn=0", "ssn=1", 16, "ssn is 0, not 1"),
    // wrong flags, chunks and order
    (22, "flgs=0", "flgs=T", 22, "flgs is 0, not 1"),
    (16, "flgs=BE", "flgs=B", 16, "flgs is 3, not 2"),
    (
        14,
        "SACK[flgs=0, cum_tsn=3, a_rwnd=130872, gaps=[], dups=[]]",
        "COOKIE_ACK[flgs=0]",
        14,
        "SACK, not COOKIE_ACK",
    ),
    (
        8,
        "COOKIE_ACK[flgs=0]; SACK[flgs=0, cum_tsn=1, a_rwnd=130972, gaps=[], dups=[]]",
        "SACK[flgs=0, cum_tsn=1, a_rwnd=130972, gaps=[], dups=[]]; COOKIE_ACK[flgs=0]",
        8,
        "COOKIE_ACK, not SACK",
    ),
    (8, "COOKIE_ACK[flgs=0]; ", "", 8, "COOKIE_ACK, not SACK"),
    (
        8,
        "dups=[]]",
        "dups=[]]; COOKIE_ACK[flgs=0]",
        8,
        "no COOKIE_ACK in it",
    ),
    (6, ", ...]", "]", 6, "too many"),
    // wrong headers
    (
        8,
        "> sctp:",
        "> sctp(tag=9):",
        8,
        "the verification tag is 1, not 9",
    ),
    (
        8,
        "> sctp:",
        "> 8080 > 9 sctp:",
        8,
        "ports are 8080 > 53055, not 8080 > 9",
    ),
    (
        8,
        "> sctp:",
        "> 192.168.0.1 > 192.0.2.9 sctp:",
        8,
        "to 192.0.2.1, not 192.0.2.9",
    ),
    (
        8,
        "> sctp:",
        "> 192.168.0.2 > 192.0.2.1 sctp:",
        8,
        "from 192.168.0.1, not 192.168.0.2",
    ),
    // a packet too many, one too few
    (
        16,
        "ppid=0]",
        "ppid=0]\n+0 > sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]",
        17,
        "nothing until",
    ),
    (
        17,
        "+1 > sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]\n",
        "+1 `sysctl`\n",
        20,
        "DATA, not SHUTDOWN",
    ),
    (
        22,
        "+0 > sctp: SHUTDOWN_COMPLETE[flgs=0]\n",
        "",
        22,
        "nothing that no line expects",
    ),
    // wrong times
    (17, "+1", "+2", 17, "1000 ms too early"),
    (17, "+1", "+0", 17, "nothing until"),
    (17, "+1", "+1.1~+1.2", 17, "100 ms too early"),
    (1, "--tolerance_usecs=4000", "// no options", 17, "passes"),
    // what arrives is not what the endpoint can take
    (18, "< sctp:", "< sctp(tag=7):", 20, "nothing until"),
    (18, "< sctp:", "< sctp(bad_crc32c):", 20, "nothing until"),
    (18, "cum_tsn=1", "cum_tsn=0", 20, "nothing until"),
    // calls
    (10, "= 100", "= 99", 10, "read(...) = 100"),
    (10, "= 100", "= -1 EAGAIN (no)", 10, "read(...) = 100"),
    (10, "read(4", "read(5", 10, "read(...) = -1 EBADF"),
    (
        10,
        "read(4, ..., 200) = 100",
        "getsockopt(4, SOL_SOCKET, SO_ERROR, [ECONNRESET], [4]) = 0",
        10,
        "SO_ERROR is [0]",
    ),
];

fn played(source: &str) -> Verdict {
    let played = play("damaged.pkt", source, &Settings::default());
    played.unwrap_or_else(|error| panic!("{error}")).verdict
}

/// The script with something else in a line, which has it.
fn damaged(source: &str, line: usize, from: &str, to: &str) -> String {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let (before, rest) = source.split_at(start);
    assert!(
        rest.find(from).is_some_and(|at| !rest[..at].contains('\n')),
        "line {line}: {from}"
    );
    format!("{before}{}", rest.replacen(from, to, 1))
}

#[test]
fn the_script_passes_as_it_is() {
    assert_eq!(played(SCTP), Verdict::Passed);
}

#[test]
fn a_damaged_script_fails_in_its_line_and_says_why() {
    let mut kinds = 0;
    for &(line, from, to, fails_in, why) in DAMAGES {
        let source = damaged(SCTP, line, from, to);
        let verdict = played(&source);
        if why == "passes" {
            assert_eq!(verdict, Verdict::Passed, "{to}");
            continue;
        }
        kinds += 1;
        let report = Report {
            file: "damaged.pkt",
            verdict: &verdict,
        }
        .to_string();
        let Verdict::Failed(failure) = &verdict else {
            panic!("{from} -> {to}: {report}")
        };
        assert_eq!(failure.line, fails_in, "{from} -> {to}: {report}");
        assert!(
            report.starts_with(&format!("damaged.pkt:{fails_in}: failed")),
            "{report}"
        );
        assert!(report.contains(why), "{from} -> {to}: {report}");
    }
    assert!(kinds >= 10);
}

#[test]
fn what_cannot_be_mapped_is_refused_by_name_and_line() {
    for (line, from, to, fails_in, what) in [
        (8, "> sctp:", "> [ect0] sctp:", 8, "ect0 in the IP header"),
        (8, "sctp:", "sctp/udp(9899 > 9899):", 8, "SCTP in UDP"),
        (
            5,
            "< sctp: INIT[flgs=0, tag=1, a_rwnd=100000, os=4, is=4, tsn=1]",
            "< icmp unreachable",
            5,
            "an ICMP message",
        ),
        (
            5,
            "a_rwnd=100000",
            "a_rwnd=...",
            5,
            "`a_rwnd=...` of INIT in a packet that is to be made",
        ),
        (
            10,
            "read(4, ..., 200) = 100",
            "poll(4, ..., 200) = 100",
            10,
            "poll on a socket",
        ),
        (10, "read(4, ..., 200) = 100", "%{ assert 1 == 1 }%", 10, "code"),
        (10, "read(4, ..., 200) = 100", "`tc qdisc`", 10, "the command tc"),
        (
            10,
            "read(4, ..., 200) = 100",
            "`sysctl a.b=1`",
            10,
            "the setting a.b",
        ),
        (
            1,
            "--tolerance_usecs=4000",
            "--strict_segments",
            1,
            "the option --strict_segments",
        ),
        (
            10,
            "read(4, ..., 200) = 100",
            "setsockopt(4, IPPROTO_SCTP, SCTP_EVENTS, ..., 8) = 0",
            10,
            "the socket option SCTP_EVENTS",
        ),
        (
            4,
            "listen(3, 1) = 0",
            "setsockopt(3, SOL_SOCKET, SO_RCVBUF, [9], 4) = 0\n+0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [8], 4) = 0",
            5,
            "receive_buffer set to 8, and to 9 in line 4",
        ),
        (2, "IPPROTO_SCTP", "IPPROTO_UDP", 2, "a socket of IPPROTO_UDP"),
        (2, "SOCK_STREAM", "SOCK_SEQPACKET", 2, "one-to-one style"),
        (
            5,
            "< sctp:",
            "< 255.255.255.255 > 192.168.0.1 sctp:",
            5,
            "a broadcast address",
        ),
    ] {
        match played(&damaged(SCTP, line, from, to)) {
            Verdict::Unmappable { line, what: said } => {
                assert_eq!(line, fails_in, "{to}: {said}");
                assert!(said.contains(what), "{to}: {said}");
            }
            other => panic!("{to}: {other:?}"),
        }
    }
}

const SIGNS: &[u8] = b"0123456789[]{}<>,.;:=*+-#`\"/% \nABST";

/// Whatever a user writes, the player says what is wrong with it; it does not break.
#[test]
fn no_text_breaks_the_player() {
    let mut scripts = vec![SCTP.to_owned()];
    for path in files::scripts(&files::own_scripts()).expect("scripts") {
        scripts.push(files::read(&path).expect("a script"));
    }
    let (errors, played_on) = play_with_slips(&scripts);
    assert!(
        errors > 300 && played_on > 300,
        "{errors} errors, {played_on} played"
    );
}

#[test]
fn a_tolerance_of_more_than_a_day_is_refused() {
    for tolerance in ["86400000001", "18446744073709551615"] {
        let source = format!("--tolerance_usecs={tolerance}\n{SCTP}");
        let played = play("script", &source, &Settings::default()).expect("the language");
        assert!(
            matches!(played.verdict, Verdict::Unmappable { line: 1, .. }),
            "{:?}",
            played.verdict
        );
    }
}

#[test]
fn values_within_values_without_end_are_a_syntax_error() {
    for sign in ["[", "{"] {
        let source = format!("0 socket({}) = 3\n", sign.repeat(10_000));
        let error = play("script", &source, &Settings::default()).expect_err("too deep");
        assert!(error.to_string().contains("script:1"), "{error}");
    }
}

/// Plays `scripts` 3,000 times with slips of the pen: how many are not the language, and how many are played.
pub fn play_with_slips(scripts: &[String]) -> (u32, u32) {
    let mut random = Stream::new(8, "damage");
    let settings = Settings::default();
    let (mut errors, mut played_on) = (0, 0);
    for round in 0..3_000 {
        let source = &scripts[round % scripts.len()];
        let mut bytes = source.clone().into_bytes();
        for _ in 0..=random.next_u64() % 3 {
            let at = random.next_u64() as usize % bytes.len();
            let len = random.next_u64() as usize % 12;
            let end = (at + len).min(bytes.len());
            match random.next_u64() % 6 {
                0 => drop(bytes.drain(at..end)),
                1 => bytes[at] = SIGNS[random.below(SIGNS.len() as u64) as usize],
                // a number of another size
                2 => drop(bytes.splice(at..at, *b"9999999")),
                4 => drop(bytes.splice(at..at, *b"999999999999999999")),
                5 => drop(bytes.splice(at..at, core::iter::repeat_n(b"[{("[len % 3], 10_000))),
                _ => {
                    let copy = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, copy));
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match play("t.pkt", &text, &settings) {
            Err(error) => {
                errors += 1;
                let line = error.to_string();
                assert!(line.starts_with("t.pkt:") && !line.contains('\n'), "{line}");
            }
            Ok(_) => played_on += 1,
        }
    }
    (errors, played_on)
}
