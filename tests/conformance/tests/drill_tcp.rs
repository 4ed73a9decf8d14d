//! The player of TCP scripts judged: a script that is right passes, and one that is damaged fails at the line that is.

use crate::drill_damaged::play_with_slips;
use segue_conformance::drill::play::{Settings, play};
use segue_conformance::drill::verdict::{Failure, Verdict};
use segue_proto::tcp::Profile;

/// RFC 9293, RFC 2018 and RFC 8985: a handshake, a loss that SACK shows and a probe, data both ways, and the end.
const RIGHT: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 30000 <mss 1000,sackOK,TS val 500 ecr 0>
+0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 100 ecr 500>
+.05 < . 1:1(0) ack 1 win 30000 <nop,nop,TS val 550 ecr 100>
+0 accept(3, ..., ...) = 4
+0 %{ assert tcpi_snd_cwnd == 10 and tcpi_snd_mss == 988 }%
+0 write(4, ..., 2964) = 2964
+0 > P. 1:2965(2964) ack 1 <TS val 150 ecr 550>
+.05 < . 1:1(0) ack 1 win 30000 <nop,nop,TS val 600 ecr 150,nop,nop,sack 1977:2965>
+.0125 > . 1:989(988) ack 1 win 65535 <TS val 212 ecr 600>
+0 %{
before = tcpi_snd_cwnd
assert tcpi_ca_state == TCP_CA_Recovery and tcpi_lost == 2
}%
+.05 < . 1:1(0) ack 989 win 30000 <nop,nop,TS val 662 ecr 212,nop,nop,sack 1977:2965>
+0 > . 989:1977(988) ack 1 <TS val 262 ecr 662>
+.05 < P. 1:501(500) ack 2965 win 30000 <nop,nop,TS val 712 ecr 262>
+0 > . 2965:2965(0) ack 501 <TS val 312 ecr 712>
+0 %{ assert tcpi_ca_state == TCP_CA_Open, 'state %d' % tcpi_ca_state; before += 9; assert before > tcpi_snd_cwnd }%
+0 ioctl(4, SIOCINQ, [500]) = 0
+0 read(4, ..., 1000) = 500
+.5 close(4) = 0
+0 > F. 2965:2965(0) ack 501 <TS val 812 ecr 712>
+.05 < F. 501:501(0) ack 2966 win 30000 <nop,nop,TS val 1300 ecr 812>
+0 > . 2966:2966(0) ack 502 <TS val 862 ecr 1300>
";

fn verdict(source: &str) -> Verdict {
    let source = format!("--tcp_ts_tick_usecs=1000\n{source}");
    let played = play("tcp.pkt", &source, &Settings::default());
    played.unwrap_or_else(|error| panic!("{error}")).verdict
}

/// Line, from 1, of the first line of `RIGHT` with `part`, the option's line before it counted.
fn line_of(source: &str, part: &str) -> usize {
    let line = source.lines().position(|line| line.contains(part));
    line.unwrap_or_else(|| panic!("no line has {part}")) + 2
}

#[test]
fn a_script_that_is_right_passes() {
    assert_eq!(verdict(RIGHT), Verdict::Passed);
}

#[test]
fn a_script_that_is_damaged_fails_at_the_damaged_line_and_says_what_differs() {
    // what stands there, what is made of it, the part that the line is found by, and what the message has to say
    let damages = [
        (
            "> S. 0:0(0) ack 1 ",
            "> S. 0:0(0) ack 2 ",
            "> S. 0",
            "acknowledgement number is 1, due is 2",
        ),
        ("> S. 0:0(0)", "> S 0:0(0)", "> S 0", "flags is S., due is S"),
        ("<mss 1460,sackOK,", "<mss 1440,sackOK,", "mss 1440", "mss 1460"),
        ("<mss 1460,sackOK,", "<mss 1460,", "> S.", "sackOK"),
        (
            "ack 1 <TS val 150 ecr 550>",
            "ack 1 <TS val 150 ecr 551>",
            "ecr 551",
            "ecr 550",
        ),
        (
            "ack 1 <TS val 150 ecr 550>",
            "ack 1 <TS val 170 ecr 550>",
            "val 170",
            "val 150",
        ),
        (
            "1:2965(2964)",
            "1:1977(1976)",
            "1:989(988)",
            "sequence number is 1977, due is 1",
        ),
        ("+.0125 > . 1:989", "+1.0125 > . 1:989", "+1.0125", "too early"),
        (
            "+.0125 > . 1:989",
            "+0 > . 1:989",
            "+0 > . 1:989",
            "nothing until",
        ),
        (
            "win 65535 <TS val 212",
            "win 65534 <TS val 212",
            "win 65534",
            "window is 65535, due is 65534",
        ),
        (
            "> . 989:1977(988)",
            "> . 1:989(988)",
            "+0 > . 1:989",
            "sequence number is 989, due is 1",
        ),
        (
            "> . 2965:2965(0) ack 501",
            "> . 2965:2965(0) ack 501 <TS val 312 ecr 712>\n+0 > . 2965:2965(0) ack 501",
            "> . 2965:2965(0) ack 501 <TS val 312 ecr 712>",
            "nothing until",
        ),
        (
            "> F. 2965:2965(0)",
            "> F. 2965:2966(1)",
            "> F.",
            "length is 0, due is 1",
        ),
        (
            "tcpi_lost == 2",
            "tcpi_lost == 1",
            "tcpi_lost == 1",
            "tcpi_lost is 2",
        ),
        (
            "tcpi_snd_cwnd == 10",
            "tcpi_snd_cwnd == 11",
            "== 11",
            "tcpi_snd_cwnd is 10",
        ),
        (
            "read(4, ..., 1000) = 500",
            "read(4, ..., 1000) = 501",
            "read",
            "= 500",
        ),
        ("SIOCINQ, [500]", "SIOCINQ, [499]", "SIOCINQ", "SIOCINQ is 500"),
        (
            "+.05 < F. 501",
            "+0 write(4, ..., 1) = 1\n+.05 < F. 501",
            "write(4, ..., 1)",
            "",
        ),
    ];
    for (from, to, line, words) in damages {
        assert!(RIGHT.contains(from), "{from}");
        let damaged = RIGHT.replacen(from, to, 1);
        let found = damaged.lines().filter(|l| l.contains(line)).count();
        let at = match line_of(&damaged, line) {
            // an extra line comes after the one that it repeats
            at if to.contains('\n') && found > 1 => at + 1,
            // Python begins two lines before
            at if line.starts_with("tcpi_lost") => at - 2,
            at => at,
        };
        match verdict(&damaged) {
            Verdict::Failed(failure) => {
                let Failure { came, difference, .. } = &failure;
                let said = format!("{came} {}", difference.clone().unwrap_or_default());
                assert_eq!(failure.line, at, "{from} -> {to}: {failure:?}");
                assert!(said.contains(words), "{from} -> {to}: {said}");
            }
            Verdict::Unmappable { line, .. } if words.is_empty() => assert_eq!(line, at),
            other => panic!("{from} -> {to}: {other:?}"),
        }
    }
}

#[test]
fn what_our_tcp_has_not_is_refused_by_its_name() {
    let begin = RIGHT.lines().take(8).collect::<Vec<_>>().join("\n");
    for (line, name) in [
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "TCP_CORK"),
        (
            "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0",
            "TCP_NODELAY",
        ),
        ("+0 send(4, ..., 10, MSG_MORE) = 10", "MSG_MORE"),
        ("+0 < [ect0] . 1:1(0) ack 1 win 10", "ECN"),
        ("+0 < E. 1:1(0) ack 1 win 10", "ECN"),
        ("+0 < U. 1:1(0) ack 1 win 10 urg 3", "urgent"),
        (
            "+0 < icmp unreachable frag_needed mtu 1000 [. 1:1001(1000) ack 1]",
            "icmp",
        ),
        ("+0 %{ assert tcpi_probes == 0 }%", "tcpi_probes"),
        ("+0 `tc qdisc replace dev tun0 root pfifo limit 0`", "qdisc"),
        ("+0 `sysctl -q net.ipv4.tcp_ecn=1`", "ECN"),
        ("+0 `sysctl -q net.ipv4.tcp_sack=0`", "tcp_sack"),
        ("+0 `reboot`", "reboot"),
        ("+0 sendfile(4, 5, ..., 10) = 10", "sendfile"),
    ] {
        match verdict(&format!("{begin}\n{line}\n")) {
            Verdict::Unmappable { line: at, what } => {
                assert_eq!(at, 10, "{line}");
                assert!(what.contains(name), "{line}: {what}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn settings_of_a_shell_are_settings_of_the_endpoint() {
    let play = |settings: &str, syn: &str, answer: &str| {
        let source = format!(
            "`{settings}`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 30000 <{syn}>\n+0 > S. 0:0(0) ack 1 <{answer}>\n"
        );
        let played = play("tcp.pkt", &source, &Settings::default());
        played.unwrap_or_else(|error| panic!("{error}")).verdict
    };
    let all = "mss 1000,sackOK,TS val 1 ecr 0,nop,wscale 2";
    for (settings, answer) in [
        ("", "mss 1460,sackOK,TS val 1 ecr 1,wscale 6"),
        (
            "sysctl -q net.ipv4.tcp_sack=0",
            "mss 1460,TS val 1 ecr 1,wscale 6",
        ),
        (
            "sysctl -q net.ipv4.tcp_timestamps=0 net.ipv4.tcp_window_scaling=0 # neither",
            "mss 1460,sackOK",
        ),
        (
            "set_sysctls.py /proc/sys/net/ipv4/tcp_rmem=\"4096 100000 $((8*1024*1024))\"",
            "mss 1460,sackOK,TS val 1 ecr 1,wscale 8",
        ),
    ] {
        assert_eq!(play(settings, all, answer), Verdict::Passed, "{settings}");
    }
    assert_ne!(
        play("sysctl -q net.ipv4.tcp_sack=0", all, "mss 1460,sackOK"),
        Verdict::Passed
    );
}

#[test]
fn the_profile_is_whose_tcp_answers() {
    // RFC 2581's window of two segments, and RFC 6928's
    let source = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 30000 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.05 < . 1:1(0) ack 1 win 30000
+0 accept(3, ..., ...) = 4
+0 %{ assert tcpi_snd_cwnd == 2 }%";
    for (tcp, passes) in [(Profile::Linux24, true), (Profile::Modern, false)] {
        let settings = Settings {
            tcp,
            ..Settings::default()
        };
        let played = play("tcp.pkt", source, &settings).expect("a script");
        assert_eq!(played.verdict == Verdict::Passed, passes, "{tcp:?}");
    }
}

#[test]
fn no_text_breaks_the_player_of_tcp() {
    let settings = "--tolerance_usecs=4000\n`sysctl -q net.ipv4.tcp_rmem=\"4096 $((1*2*3)) 600000\" net.ipv4.tcp_frto=2`\n";
    let (errors, played_on) = play_with_slips(&[RIGHT.to_owned(), format!("{settings}{RIGHT}")]);
    assert!(
        errors > 300 && played_on > 300,
        "{errors} errors, {played_on} played"
    );
}

#[test]
fn what_is_too_much_is_refused() {
    let begin = RIGHT.lines().take(8).collect::<Vec<_>>().join("\n");
    let deep = format!("+0 %{{ assert {}1{} }}%", "(".repeat(5000), ")".repeat(5000));
    for line in [
        "+0 < . 1:4000000001(4000000000) ack 1 win 10",
        "+0 < . 1:1(0) ack 1 win 10 <sack 1:2 3:4 5:6 7:8 9:10>",
        "+0 write(4, ..., 99999999999) = 1",
        "+0 `sysctl -q net.ipv4.tcp_rmem=\"1 2 $((99999999999*99999999999))\"`",
        "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [99999999999], 4) = 0",
        // the word `assert` is forgotten, and what the connection says would be taken for what the script says
        "+0 %{ tcpi_snd_cwnd == 99 }%",
        "+0 %{ tcpi_snd_cwnd = 99 }%",
        "+0 %{ assert -(-9223372036854775807 - 1) > 0 }%",
        &deep,
    ] {
        let verdict = verdict(&format!("{begin}\n{line}\n"));
        assert!(
            matches!(verdict, Verdict::Unmappable { line: 10, .. }),
            "{verdict:?}"
        );
    }
}
