//! The language on text of our own. What is parsed is written again, and must be what was read.

use super::{asked_for, parse};
use crate::drill::ast::{Action, Expression, Payload, Span, TcpOption, When};
use segue_proto::Duration;

/// The packet of a script of one line, written again.
fn rewritten(line: &str) -> String {
    let script = parse("t.pkt", &format!("+0 {line}"), &[]).unwrap_or_else(|e| panic!("{e}"));
    match &script.events[..] {
        [event] => match &event.action {
            Action::Packet(packet) => packet.to_string(),
            other => panic!("{other:?}"),
        },
        events => panic!("{events:?}"),
    }
}

fn error(source: &str) -> String {
    parse("t.pkt", source, &[]).expect_err(source).to_string()
}

#[test]
fn packets_are_written_as_they_are_read() {
    for line in [
        "> sctp: INIT[flgs=0, tag=1, a_rwnd=..., os=..., is=..., tsn=0, ...]",
        "< sctp: INIT[flgs=0, tag=1, a_rwnd=1500, os=1, is=1, tsn=7, IPV4_ADDRESS[addr=192.0.2.9], \
         IPV6_ADDRESS[addr=2001:db8::9], SUPPORTED_ADDRESS_TYPES[types=[IPv4, IPv6, HOSTNAME]], ECN_CAPABLE[], \
         FORWARD_TSN_SUPPORTED[], SUPPORTED_EXTENSIONS[types=[RECONFIG, ASCONF, 0x77]], \
         ADAPTATION_INDICATION[adaptation_code_point=3], PARAMETER[type=0xc0cc, len=6, val=[0x01, 0x02]]]",
        "< sctp: INIT_ACK[flgs=0, tag=2, a_rwnd=1500, os=1, is=1, tsn=1, STATE_COOKIE[len=4, val=...], \
         UNRECOGNIZED_PARAMETER[params=[COOKIE_PRESERVATIVE[incr=9]]], HOSTNAME_ADDRESS[addr=\"a.b\"]]",
        "> sctp: DATA[flgs=UBE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]; SHUTDOWN[flgs=0, cum_tsn=0]",
        "> sctp: SACK[flgs=0, cum_tsn=2, a_rwnd=..., gaps=[2:2, 4:6], dups=[1, 2]]",
        "> sctp: NR_SACK[flgs=0, cum_tsn=2, a_rwnd=1, gaps=..., nr_gaps=[2:3], dups=[]]",
        "< sctp(tag=3): ABORT[flgs=T, PROTOCOL_VIOLATION[info=\"no\"], CAUSE[code=0x99, len=4, info=[]]]",
        "> sctp: ABORT[flgs=0, ...]",
        "> sctp: ABORT[flgs=..., MISSING_MANDATORY_PARAMETER[types=[7, 8]]]",
        "> sctp: ERROR[flgs=0, UNRECOGNIZED_CHUNK_TYPE[chk=CHUNK[type=0xef, flgs=0, len=5, val=[0x01]]]]",
        "< sctp(bad_crc32c, tag=5): HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[len=8, val=[0x01, 0x02, 0x03, 0x04]]]",
        "< sctp(zero_checksum): COOKIE_ECHO[flgs=0, len=..., val=...]",
        "< sctp(tag=0): [0x01, 0x00, 0x00, 0x60]",
        "> sctp: FORWARD_TSN[cum_tsn=4, ids=[{1,2}, {3,4}]]",
        "> sctp: I_FORWARD_TSN[cum_tsn=4, ids=[{1,0,2}]]",
        "< sctp: RECONFIG[flgs=0, OUTGOING_SSN_RESET[req_sn=1, resp_sn=2, last_tsn=3, sids=[1, 2]], \
         RECONFIG_RESPONSE[resp_sn=1, result=1]]",
        "< 192.0.2.9 > 192.168.0.1 sctp: COOKIE_ACK[flgs=0]",
        "> 2001:db8:a::1 > 2001:db8:b::1 5000 > 5001 sctp: ASCONF[flgs=0, sn=1, addr=2001:db8:a::1, \
         ADD_IP_ADDRESS[id=..., addr=2001:db8:c::1]]",
        "> sctp: AUTH[flgs=0, key=0, hmac_id=1, val=...]; ASCONF_ACK[flgs=0, sn=1]",
        "> . 1:1001(1000) ack 1",
        "< S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>",
        "< - 1:1001(1000) win 20000",
        "< [ect1] . 1:1(0) ack 1 win 320 <nop,nop,sack 16061:17521 20441:26281>",
        "> SEW 0:0(0) <...>",
        "> FP. 13001:20001(7000) ack 1 <nop,nop,TS val 100 ecr 200>",
        "< F. ...(0) ack 7 urg 3 <nop,nop,TS val ... ecr 200!>",
        "< P.5 1:2(1)! ack 1 win 9 <md5 valid,gen-254 f989cafe>",
        "< icmp unreachable frag_needed mtu 1200 [1:1461(1460)]",
        "> udp (1000)",
        "< [ttl 64, ecn ect0] udplite (100, 20)",
    ] {
        assert_eq!(rewritten(line), line);
    }
}

#[test]
fn other_ways_to_write_the_same() {
    for (line, same) in [
        (
            "> sctp: HEARTBEAT[flgs=0x00, HEARTBEAT_INFORMATION[...]]",
            "> sctp: HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[len=..., val=...]]",
        ),
        (
            "> sctp: DATA[flgs=3, len=16, tsn=1, sid=0, ssn=0, ppid=0x10]",
            "> sctp: DATA[flgs=BE, len=16, tsn=1, sid=0, ssn=0, ppid=16]",
        ),
        (
            "> sctp: CHUNK[type=INIT_ACK, flgs=0x00, len=8, val=[...]]",
            "> sctp: CHUNK[type=INIT_ACK, flgs=0, len=8, val=...]",
        ),
        ("< udp 9 > 10 (3)", "< 9 > 10 udp (3)"),
        ("< (tos 0x2) . 1:1(0) ack 1", "< [tos 0x2] . 1:1(0) ack 1"),
    ] {
        assert_eq!(rewritten(line), same);
    }
}

#[test]
fn times_options_and_what_encloses_the_events() {
    let source = "// a script\n--tolerance_usecs=10000\n--ip_version=ipv6 # and so on\n`sysctl -q a=1\nb`\n\
                  \x20 0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n+.3~+.400 > sctp: COOKIE_ACK[flgs=0]\n\
                  1.5~2 /* a * comment */ shutdown(3, SHUT_WR) = 0\n* > sctp: SHUTDOWN[flgs=0, cum_tsn=...]\n\
                  +0...0.300 read(3, ..., 10) = -1 EAGAIN (Resource temporarily unavailable)\n\
                  +1 `ls`\n+0 %{ assert a == 1, a }%\n`cleanup`\n";
    let script = parse("t.pkt", source, &[]).unwrap();
    let options: Vec<_> = script
        .options
        .iter()
        .map(|o| (o.name.as_str(), o.value.as_deref()))
        .collect();
    assert_eq!(
        options,
        [("tolerance_usecs", Some("10000")), ("ip_version", Some("ipv6"))]
    );
    assert_eq!(script.setup.unwrap().commands, "sysctl -q a=1\nb");
    assert_eq!(script.cleanup.unwrap().commands, "cleanup");
    let ms = Duration::from_millis;
    let at = |from, to| Span { from, to };
    let whens: Vec<_> = script.events.iter().map(|e| e.when).collect();
    assert_eq!(
        whens,
        [
            When::At(at(ms(0), ms(0))),
            When::After(at(ms(300), ms(400))),
            When::At(at(ms(1500), ms(2000))),
            When::Any,
            When::After(at(ms(0), ms(0))),
            When::After(at(ms(1000), ms(1000))),
            When::After(at(ms(0), ms(0))),
        ]
    );
    let lines: Vec<_> = script.events.iter().map(|e| e.line).collect();
    assert_eq!(lines, [6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(script.events[1].text, "+.3~+.400 > sctp: COOKIE_ACK[flgs=0]");
    let Action::Call(read) = &script.events[4].action else {
        panic!()
    };
    assert_eq!(read.until, Some(ms(300)));
    assert_eq!(
        (read.result.clone(), read.errno.as_deref()),
        (Expression::Number(-1), Some("EAGAIN"))
    );
    assert!(matches!(&script.events[6].action, Action::Code(code) if code == "assert a == 1, a"));
}

#[test]
fn arguments_of_calls() {
    let source = "+0 f(3, {msg_name(...)=..., msg_iov(2)=[{..., 40}, {\"ab\", 2}], msg_flags=0}, A | B|C, [1],\n\
                  {sa_family=AF_INET6, sin6_port=htons(8080), sin6_addr=inet_pton(\"::1\")}, -7, 0x10, ::1) = 0x02 (flags O_RDWR)";
    let script = parse("t.pkt", source, &[]).unwrap();
    let Action::Call(call) = &script.events[0].action else {
        panic!()
    };
    let [
        Expression::Number(3),
        Expression::Struct(message),
        Expression::Or(or),
        Expression::Array(one),
        rest @ ..,
    ] = &call.arguments[..]
    else {
        panic!("{call:?}")
    };
    assert_eq!((or.len(), one.len()), (3, 1));
    assert_eq!(message[0].length, Some(Expression::Any));
    assert_eq!(message[1].name.as_deref(), Some("msg_iov"));
    assert!(matches!(&message[1].value, Expression::Array(parts) if parts.len() == 2));
    assert!(matches!(&rest[0], Expression::Struct(address)
        if address[1].value == Expression::Apply("htons".to_owned(), vec![Expression::Number(8080)])));
    assert_eq!(rest[1..3], [Expression::Number(-7), Expression::Number(16)]);
    assert_eq!(call.result, Expression::Number(2));
}

#[test]
fn a_segment_has_its_parts() {
    let script = parse("t.pkt", "+0 < P. 5:7(2) ack 9 win 3 <sack 1:2 3:4>", &[]).unwrap();
    let Action::Packet(packet) = &script.events[0].action else {
        panic!()
    };
    let Payload::Tcp(tcp) = &packet.payload else {
        panic!()
    };
    assert_eq!(
        (tcp.flags.as_str(), tcp.length, tcp.ack, tcp.window),
        ("P.", 2, Some(9), Some(3))
    );
    assert_eq!(tcp.options, Some(vec![TcpOption::Sack(vec![(1, 2), (3, 4)])]));
}

#[test]
fn what_an_ifdef_encloses_counts_for_its_name_alone() {
    let source =
        "+0 f() = 0\n#ifdef FreeBSD\n+0 g() = 0\n#endif\n#ifdef Linux\n+0 h() = 0\n#endif\n+1 i() = 0";
    assert_eq!(asked_for(source), ["FreeBSD", "Linux"]);
    let lines = |defined: &[&str]| -> Vec<usize> {
        let script = parse("t.pkt", source, defined).unwrap();
        script.events.iter().map(|e| e.line).collect()
    };
    assert_eq!(lines(&[]), [1, 8]);
    assert_eq!(lines(&["FreeBSD"]), [1, 3, 8]);
    assert_eq!(lines(&["Linux"]), [1, 6, 8]);
    assert_eq!(
        error("#ifdef A\n#ifdef B\n#endif"),
        "t.pkt:2: expected `#endif` first: no `#ifdef` stands in another, found `#ifdef B`"
    );
    assert_eq!(
        error("+0 f() = 0\n#ifdef A"),
        "t.pkt:2: expected an `#endif` for it, found `#ifdef A`"
    );
    assert_eq!(
        error("\n#endif"),
        "t.pkt:2: expected an `#ifdef` before it, found `#endif`"
    );
}

#[test]
fn an_error_is_a_line_that_says_what_was_expected() {
    for (source, expected) in [
        ("", "t.pkt:1: expected an event, found the end of the file"),
        (
            "+0 > sctp: DATUM[]",
            "t.pkt:1: expected the name of a chunk, found `DATUM`",
        ),
        (
            "+0 > sctp: SACK[flgs=0, cum_tsn=1]",
            "t.pkt:1: expected `,`, found `]`",
        ),
        (
            "+0 > sctp: SHUTDOWN[flgs=0,\n tsn=1]",
            "t.pkt:2: expected `cum_tsn=`, found `tsn`",
        ),
        (
            "+0 > sctp: SHUTDOWN[flgs=300, cum_tsn=1]",
            "t.pkt:1: expected flags, or `...`, at most 255, found `300`",
        ),
        (
            "+0 > sctp: DATA[flgs=BB, len=9]",
            "t.pkt:1: expected flags: a number, or letters of `IUBE`, each once, found `BB`",
        ),
        (
            "+0 > . 1:5(3) ack 1",
            "t.pkt:1: expected the difference of the two sequence numbers, found `3`",
        ),
        (
            "+0 > . 1:5(4) ack 1 <mss>",
            "t.pkt:1: expected a segment size, at most 65535, found `>`",
        ),
        (
            "+0 > X. 1:5(4)",
            "t.pkt:1: expected TCP flags, `sctp`, `udp` or `icmp`, found `X`",
        ),
        (
            "+0 f(1",
            "t.pkt:1: expected `,` or `)`, found the end of the file",
        ),
        (
            "+0 f(1) = 2\n+0 `ls",
            "t.pkt:2: expected a packet (`<` or `>`), a system call, commands or code, found ```",
        ),
        (
            "0.2~0.1 f(1) = 2",
            "t.pkt:1: expected a time that is not before the beginning of the range, found `0.1`",
        ),
        (
            "--tolerance_usecs=\n+0 f() = 1",
            "t.pkt:2: expected the option's value on the line of its name, found `+`",
        ),
        (
            "f() = 0",
            "t.pkt:1: expected the time of an event: seconds, `+` and seconds, or `*`, found `f`",
        ),
    ] {
        assert_eq!(error(source), expected, "{source}");
    }
}
