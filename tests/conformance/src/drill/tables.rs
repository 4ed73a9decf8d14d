//! Layouts of RFC 9260, of its extensions, and of what packetdrill's SCTP branch knows beyond them; names are packetdrill's
//! where it has one. ASCONF, AUTH and their parameters are of `docs/drill.md`.

use super::layout::{Class, Field, Layout, Shape};

/// The layout with this name.
pub fn by_name(class: Class, name: &str) -> Option<&'static Layout> {
    table(class).iter().find(|l| l.name == name)
}

/// The layout with this number: the generic one if there is no other.
pub fn by_number(class: Class, number: u16) -> &'static Layout {
    let table = table(class);
    table
        .iter()
        .find(|l| l.number == Some(number))
        .unwrap_or(&table[0])
}

/// All layouts of a class, the generic one first.
pub const fn table(class: Class) -> &'static [Layout] {
    match class {
        Class::Chunk => CHUNKS,
        Class::Parameter => PARAMETERS,
        Class::Cause => CAUSES,
    }
}

/// Address types by their name (RFC 9260 section 3.3.2.1.5).
pub const ADDRESS_TYPES: &[(&str, u64)] = &[("IPv4", 5), ("IPv6", 6), ("HOSTNAME", 11)];

const fn field(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        optional: false,
    }
}

const fn optional(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        optional: true,
    }
}

const fn hidden(shape: Shape) -> Field {
    field("", shape)
}

const fn chunk(name: &'static str, number: u16, fields: &'static [Field]) -> Layout {
    layout(Class::Chunk, name, number, fields)
}

const fn parameter(name: &'static str, number: u16, fields: &'static [Field]) -> Layout {
    layout(Class::Parameter, name, number, fields)
}

const fn cause(name: &'static str, number: u16, fields: &'static [Field]) -> Layout {
    layout(Class::Cause, name, number, fields)
}

const fn layout(class: Class, name: &'static str, number: u16, fields: &'static [Field]) -> Layout {
    Layout {
        class,
        name,
        number: Some(number),
        fields,
    }
}

const NO_LETTERS: Shape = Shape::Flags(&[]);
const T_BIT: Shape = Shape::Flags(&[('T', 1)]);
const DATA_BITS: Shape = Shape::Flags(&[('I', 8), ('U', 4), ('B', 2), ('E', 1)]);
const FLAGS: Field = field("flgs", NO_LETTERS);
const LEN: Field = field("len", Shape::Length);
const VAL: Field = field("val", Shape::Bytes);
const CUM_TSN: Field = field("cum_tsn", Shape::PeerTsn);
const A_RWND: Field = field("a_rwnd", Shape::Number(4));
const MORE_PARAMETERS: Field = optional("", Shape::Parameters);
const MORE_CAUSES: Field = optional("", Shape::Causes);
const INIT: &[Field] = &[
    FLAGS,
    field("tag", Shape::Tag),
    A_RWND,
    field("os", Shape::Number(2)),
    field("is", Shape::Number(2)),
    field("tsn", Shape::OwnTsn),
    MORE_PARAMETERS,
];
const HEARTBEAT: &[Field] = &[FLAGS, field("", Shape::Parameter)];
const OPAQUE: &[Field] = &[LEN, VAL];
const ECHO: &[Field] = &[FLAGS, LEN, VAL];

const CHUNKS: &[Layout] = &[
    Layout {
        class: Class::Chunk,
        name: "CHUNK",
        number: None,
        fields: &[field("type", Shape::Type), FLAGS, LEN, VAL],
    },
    chunk(
        "DATA",
        0,
        &[
            field("flgs", DATA_BITS),
            LEN,
            field("tsn", Shape::OwnTsn),
            field("sid", Shape::Number(2)),
            field("ssn", Shape::Number(2)),
            field("ppid", Shape::Number(4)),
            hidden(Shape::UserData),
        ],
    ),
    chunk("INIT", 1, INIT),
    chunk("INIT_ACK", 2, INIT),
    chunk(
        "SACK",
        3,
        &[
            FLAGS,
            CUM_TSN,
            A_RWND,
            field("gaps", Shape::Blocks),
            field("dups", Shape::Duplicates),
        ],
    ),
    chunk("HEARTBEAT", 4, HEARTBEAT),
    chunk("HEARTBEAT_ACK", 5, HEARTBEAT),
    chunk("ABORT", 6, &[field("flgs", T_BIT), MORE_CAUSES]),
    chunk("SHUTDOWN", 7, &[FLAGS, CUM_TSN]),
    chunk("SHUTDOWN_ACK", 8, &[FLAGS]),
    chunk("ERROR", 9, &[FLAGS, MORE_CAUSES]),
    chunk("COOKIE_ECHO", 10, ECHO),
    chunk("COOKIE_ACK", 11, &[FLAGS]),
    chunk("ECNE", 12, &[FLAGS, field("tsn", Shape::PeerTsn)]),
    chunk("CWR", 13, &[FLAGS, field("tsn", Shape::OwnTsn)]),
    chunk("SHUTDOWN_COMPLETE", 14, &[field("flgs", T_BIT)]),
    chunk(
        "AUTH",
        15,
        &[
            FLAGS,
            field("key", Shape::Number(2)),
            field("hmac_id", Shape::Number(2)),
            VAL,
        ],
    ),
    chunk(
        "NR_SACK",
        16,
        &[
            FLAGS,
            CUM_TSN,
            A_RWND,
            field("gaps", Shape::Blocks),
            field("nr_gaps", Shape::Blocks),
            field("dups", Shape::Duplicates),
        ],
    ),
    chunk(
        "I_DATA",
        64,
        &[
            field("flgs", DATA_BITS),
            LEN,
            field("tsn", Shape::OwnTsn),
            field("sid", Shape::Number(2)),
            hidden(Shape::Reserved(2)),
            field("mid", Shape::Number(4)),
            field("ppid|fsn", Shape::Number(4)),
            hidden(Shape::UserData),
        ],
    ),
    chunk(
        "ASCONF_ACK",
        0x80,
        &[FLAGS, field("sn", Shape::PeerTsn), MORE_PARAMETERS],
    ),
    chunk("RECONFIG", 0x82, &[FLAGS, MORE_PARAMETERS]),
    chunk("PAD", 0x84, ECHO),
    chunk(
        "FORWARD_TSN",
        0xc0,
        &[
            field("cum_tsn", Shape::OwnTsn),
            field("ids", Shape::Groups(&[2, 2])),
        ],
    ),
    chunk(
        "ASCONF",
        0xc1,
        &[
            FLAGS,
            field("sn", Shape::OwnTsn),
            field("addr", Shape::AddressParameter),
            MORE_PARAMETERS,
        ],
    ),
    chunk(
        "I_FORWARD_TSN",
        0xc2,
        &[
            field("cum_tsn", Shape::OwnTsn),
            field("ids", Shape::Groups(&[2, 2, 4])),
        ],
    ),
];

const REQUEST: &[Field] = &[
    field("id", Shape::Number(4)),
    field("addr", Shape::AddressParameter),
];
const NEW_STREAMS: &[Field] = &[
    field("req_sn", Shape::OwnTsn),
    field("number_of_new_streams", Shape::Number(2)),
    hidden(Shape::Reserved(2)),
];

const PARAMETERS: &[Layout] = &[
    Layout {
        class: Class::Parameter,
        name: "PARAMETER",
        number: None,
        fields: &[field("type", Shape::Type), LEN, VAL],
    },
    parameter("HEARTBEAT_INFORMATION", 1, OPAQUE),
    parameter("IPV4_ADDRESS", 5, &[field("addr", Shape::Ipv4)]),
    parameter("IPV6_ADDRESS", 6, &[field("addr", Shape::Ipv6)]),
    parameter("STATE_COOKIE", 7, OPAQUE),
    parameter("UNRECOGNIZED_PARAMETER", 8, &[field("params", Shape::Parameters)]),
    parameter("COOKIE_PRESERVATIVE", 9, &[field("incr", Shape::Number(4))]),
    parameter("HOSTNAME_ADDRESS", 11, &[field("addr", Shape::Text)]),
    parameter(
        "SUPPORTED_ADDRESS_TYPES",
        12,
        &[field("types", Shape::AddressTypes)],
    ),
    parameter(
        "OUTGOING_SSN_RESET",
        13,
        &[
            field("req_sn", Shape::OwnTsn),
            field("resp_sn", Shape::PeerTsn),
            field("last_tsn", Shape::OwnTsn),
            optional("sids", Shape::Numbers(2)),
        ],
    ),
    parameter(
        "INCOMING_SSN_RESET",
        14,
        &[
            field("req_sn", Shape::OwnTsn),
            optional("sids", Shape::Numbers(2)),
        ],
    ),
    parameter("SSN_TSN_RESET", 15, &[field("req_sn", Shape::OwnTsn)]),
    parameter(
        "RECONFIG_RESPONSE",
        16,
        &[
            field("resp_sn", Shape::PeerTsn),
            field("result", Shape::Number(4)),
            optional("sender_next_tsn", Shape::OwnTsn),
            optional("receiver_next_tsn", Shape::PeerTsn),
        ],
    ),
    parameter("ADD_OUTGOING_STREAMS", 17, NEW_STREAMS),
    parameter("ADD_INCOMING_STREAMS", 18, NEW_STREAMS),
    parameter("ECN_CAPABLE", 0x8000, &[]),
    parameter(
        "ZERO_CHECKSUM_ACCEPTABLE",
        0x8001,
        &[field("edmid", Shape::Number(4))],
    ),
    parameter("RANDOM", 0x8002, OPAQUE),
    parameter("CHUNKS", 0x8003, &[field("types", Shape::ChunkTypes)]),
    parameter("HMAC_ALGO", 0x8004, &[field("ids", Shape::Numbers(2))]),
    parameter("PAD", 0x8005, OPAQUE),
    parameter(
        "SUPPORTED_EXTENSIONS",
        0x8008,
        &[field("types", Shape::ChunkTypes)],
    ),
    parameter("FORWARD_TSN_SUPPORTED", 0xc000, &[]),
    parameter("ADD_IP_ADDRESS", 0xc001, REQUEST),
    parameter("DELETE_IP_ADDRESS", 0xc002, REQUEST),
    parameter(
        "ERROR_CAUSE_INDICATION",
        0xc003,
        &[field("id", Shape::Number(4)), MORE_CAUSES],
    ),
    parameter("SET_PRIMARY_ADDRESS", 0xc004, REQUEST),
    parameter("SUCCESS_INDICATION", 0xc005, &[field("id", Shape::Number(4))]),
    parameter(
        "ADAPTATION_INDICATION",
        0xc006,
        &[field("adaptation_code_point", Shape::Number(4))],
    ),
];

const CAUSES: &[Layout] = &[
    Layout {
        class: Class::Cause,
        name: "CAUSE",
        number: None,
        fields: &[field("code", Shape::Type), LEN, field("info", Shape::Bytes)],
    },
    cause(
        "INVALID_STREAM_IDENTIFIER",
        1,
        &[field("sid", Shape::Number(2)), hidden(Shape::Reserved(2))],
    ),
    cause(
        "MISSING_MANDATORY_PARAMETER",
        2,
        &[field("types", Shape::CountedNumbers)],
    ),
    cause("STALE_COOKIE_ERROR", 3, &[field("staleness", Shape::Number(4))]),
    cause("OUT_OF_RESOURCE", 4, &[]),
    cause("UNRESOLVABLE_ADDRESS", 5, &[field("param", Shape::Parameter)]),
    cause("UNRECOGNIZED_CHUNK_TYPE", 6, &[field("chk", Shape::Chunk)]),
    cause("INVALID_MANDATORY_PARAMETER", 7, &[]),
    cause(
        "UNRECOGNIZED_PARAMETERS",
        8,
        &[field("params", Shape::Parameters)],
    ),
    cause("NO_USER_DATA", 9, &[field("tsn", Shape::PeerTsn)]),
    cause("COOKIE_RECEIVED_WHILE_SHUTDOWN", 10, &[]),
    cause(
        "RESTART_WITH_NEW_ADDRESSES",
        11,
        &[field("params", Shape::Parameters)],
    ),
    cause("USER_INITIATED_ABORT", 12, &[field("info", Shape::Text)]),
    cause("PROTOCOL_VIOLATION", 13, &[field("info", Shape::Text)]),
    cause("DELETE_LAST_ADDRESS", 0xa0, &[field("param", Shape::Parameter)]),
    cause("RESOURCE_SHORTAGE", 0xa1, &[field("param", Shape::Parameter)]),
    cause("DELETE_SOURCE_ADDRESS", 0xa2, &[field("param", Shape::Parameter)]),
    cause("ILLEGAL_ASCONF_ACK", 0xa3, &[]),
    cause("NO_AUTHORIZATION", 0xa4, &[field("param", Shape::Parameter)]),
    cause(
        "UNSUPPORTED_HMAC_IDENTIFIER",
        0x105,
        &[field("hmac_id", Shape::Number(2))],
    ),
];
