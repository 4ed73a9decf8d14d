//! Timestamps of segments that are no ordinary ones: RFC 7323, RFC 5961.

use crate::common::tcp_script::{ACK, RST, Script, ms, plain};
use segue_proto::tcp::Config;
use segue_wire::tcp::{TcpOptions, Timestamps};

#[test]
fn the_reset_of_an_abort_has_timestamps_like_any_segment() {
    // RFC 7323 section 3.2; the echo is only valid with ACK
    let mut s = Script::accepted_with(
        Config {
            timestamps: true,
            ..plain()
        },
        TcpOptions::with_timestamps(Some(Timestamps { value: 900, echo: 0 })),
    );
    let before = s.connection().counters().segments_sent;
    assert_eq!(before, 1);
    s.now += ms(1500);
    s.command(|c| c.abort());
    let reset = s.only();
    let t = reset.options.timestamps.expect("timestamps");
    assert_eq!((reset.flags, t.echo), (RST | ACK, 900));
}

#[test]
fn a_timestamp_of_a_segment_that_acknowledges_what_was_never_sent_is_not_believed() {
    // RFC 5961 section 5.2 discards it, before RFC 7323 section 4.3 looks at it: PAWS would refuse what follows
    let stamped = |value| TcpOptions::with_timestamps(Some(Timestamps { value, echo: 0 }));
    let mut s = Script::accepted_with(
        Config {
            timestamps: true,
            ..plain()
        },
        stamped(100),
    );
    let mut forged = s.segment(ACK, 1, 9999, 0);
    forged.options = stamped(200_000);
    s.give(forged);
    assert_eq!(s.only().flags, ACK, "a challenge");
    let mut good = s.segment(ACK, 1, 1, 1000);
    good.options = stamped(101);
    s.give(good);
    assert_eq!(s.connection().counters().refused.old_timestamp, 0);
    assert_eq!(s.connection().counters().data_bytes_received, 1000);
}
