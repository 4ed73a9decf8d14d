use super::*;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;

fn duration(text: &str) -> Result<u64, String> {
    text.parse::<Duration>()
        .map(Duration::as_nanos)
        .map_err(|e| e.to_string())
}

#[test]
fn durations_are_exact_in_every_unit() {
    for (text, ns) in [
        ("200 ms", 200_000_000),
        ("0.1 ms", 100_000),
        ("0.3 s", 300_000_000),
        ("1.000000001 s", 1_000_000_001),
        ("500 s", 500_000_000_000),
        ("2 min", 120_000_000_000),
        ("1 h", 3_600_000_000_000),
        ("7us", 7_000),
        ("7 µs", 7_000),
        ("  5 ns ", 5),
        ("1e3 ms", 1_000_000_000),
        ("15e-1 us", 1_500),
        (".5 s", 500_000_000),
        ("0 s", 0),
        ("-0 s", 0),
        ("18446744073709551615 ns", u64::MAX),
    ] {
        assert_eq!(duration(text), Ok(ns), "{text}");
    }
}

#[test]
fn other_quantities_are_read_with_their_units() {
    assert_eq!("384 kbit/s".parse(), Ok(BitRate(384_000)));
    assert_eq!("0.384 Mbit/s".parse(), Ok(BitRate(384_000)));
    assert_eq!("11 Mbps".parse(), Ok(BitRate(11_000_000)));
    assert_eq!("1500 B".parse(), Ok(Bytes(1500)));
    assert_eq!("64 kB".parse(), Ok(Bytes(64_000)));
    assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
    assert_eq!("50 packets".parse(), Ok(Packets(50)));
    assert_eq!("50 packets".parse(), Ok(QueueLimit::Packets(Packets(50))));
    assert_eq!("64 KiB".parse(), Ok(QueueLimit::Bytes(Bytes(65_536))));
    assert_eq!("40 m".parse(), Ok(Metres(40.0)));
    assert_eq!("5 m/s".parse(), Ok(Speed(5.0)));
    assert_eq!("18 km/h".parse(), Ok(Speed(5.0)));
    assert_eq!("-82 dBm".parse(), Ok(Dbm(-82.0)));
    assert_eq!("-1.5 dB".parse(), Ok(Decibel(-1.5)));
}

#[test]
fn a_bare_number_is_refused_with_the_unit_it_lacks() {
    let message = "`200` has no unit: expected a duration with a unit, such as \"200 ms\"";
    assert_eq!(duration("200").unwrap_err(), message);
    let number: de::value::I64Deserializer<ValueError> = 200_i64.into_deserializer();
    assert_eq!(Duration::deserialize(number).unwrap_err().to_string(), message);
    let number: de::value::F64Deserializer<ValueError> = 0.5_f64.into_deserializer();
    assert_eq!(
        Speed::deserialize(number).unwrap_err().to_string(),
        "`0.5` has no unit: expected a speed with a unit, such as \"5 m/s\""
    );
}

#[test]
fn what_is_not_such_a_quantity_is_refused_with_a_reason() {
    for (text, reason) in [
        (
            "-5 ms",
            "`-5 ms` is negative: expected a duration with a unit, such as \"200 ms\", not below zero",
        ),
        (
            "5 m",
            "`5 m`: unknown unit `m`: expected a duration with a unit, such as \"200 ms\"",
        ),
        (
            "5 Ms",
            "`5 Ms`: unknown unit `Ms`: expected a duration with a unit, such as \"200 ms\"",
        ),
        (
            "NaN s",
            "`NaN s` is not a number with a unit: expected a duration with a unit, such as \"200 ms\"",
        ),
        (
            "inf s",
            "`inf s` is not a number with a unit: expected a duration with a unit, such as \"200 ms\"",
        ),
        (
            "",
            "`` is not a number with a unit: expected a duration with a unit, such as \"200 ms\"",
        ),
        (
            ". s",
            "`. s` is not a number with a unit: expected a duration with a unit, such as \"200 ms\"",
        ),
        (
            "18446744073709551616 ns",
            "`18446744073709551616 ns` is too large",
        ),
        ("1e99 s", "`1e99 s` is too large"),
        ("1e9999999999 s", "`1e9999999999 s` is too large"),
        ("0.5 ns", "`0.5 ns` is not a whole number of nanoseconds"),
        (
            "1e-2000000000 s",
            "`1e-2000000000 s` is not a whole number of nanoseconds",
        ),
    ] {
        assert_eq!(duration(text).unwrap_err(), reason);
    }
    assert!("-1 kbit/s".parse::<BitRate>().is_err());
    assert!("-1 m".parse::<Metres>().is_err());
    assert!("-1 m/s".parse::<Speed>().is_err());
    assert!("1e999 m".parse::<Metres>().is_err());
    assert!("nan m/s".parse::<Speed>().is_err());
    assert!("inf dBm".parse::<Dbm>().is_err());
    assert!("2 packets/s".parse::<QueueLimit>().is_err());
    assert!("0.5 packets".parse::<Packets>().is_err());
}

#[test]
fn the_canonical_text_is_read_back_as_the_same_quantity() {
    for (text, canonical) in [
        ("1500 ms", "1500 ms"),
        ("0.1 ms", "100 us"),
        ("2 min", "120 s"),
        ("3 ns", "3 ns"),
        ("0 ms", "0 s"),
    ] {
        let value: Duration = text.parse().unwrap();
        let written = Canonical(&value).to_string();
        assert_eq!(written, canonical);
        assert_eq!(written.parse(), Ok(value));
    }
    assert_eq!(BitRate(384_000).to_string(), "384 kbit/s");
    assert_eq!(BitRate(0).to_string(), "0 bit/s");
    assert_eq!(Speed(2.5).to_string(), "2.5 m/s");
    assert_eq!(QueueLimit::Packets(Packets(50)).to_string(), "50 packets");
}

#[test]
fn transmission_time_is_rounded_up() {
    assert_eq!(BitRate(384_000).time_for(1500), Duration::from_nanos(31_250_000));
    assert_eq!(BitRate(3).time_for(1), Duration::from_nanos(2_666_666_667));
    assert_eq!(BitRate(0).time_for(1), Duration::MAX);
}

proptest::proptest! {
    #[test]
    fn every_duration_survives_its_text(ns: u64) {
        let value = Duration::from_nanos(ns);
        proptest::prop_assert_eq!(Canonical(&value).to_string().parse(), Ok(value));
    }

    #[test]
    fn no_text_makes_parsing_panic(text: String) {
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Metres>();
        let _ = text.parse::<QueueLimit>();
    }
}
