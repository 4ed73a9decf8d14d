//! What a run says of itself that its figures do not: what had no effect, was never served, or was out of reach.

use serde::Serialize;

/// What is warned of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// An application never moved a byte.
    NeverServed,
    /// The scheme does nothing for a flow.
    SchemeWithoutEffect,
    /// A key that nothing of this run reads.
    KeyWithoutEffect,
    /// A host was out of reach of every cell.
    OutOfCoverage,
    /// A scheme fell back to what works without it.
    Fallback,
    /// A queue dropped much of what came, or a channel was nearly always busy.
    Overload,
    /// Packets for which no router knew a way.
    NoRoute,
}

impl WarningKind {
    /// Name in JSON and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverServed => "never-served",
            Self::SchemeWithoutEffect => "scheme-without-effect",
            Self::KeyWithoutEffect => "key-without-effect",
            Self::OutOfCoverage => "out-of-coverage",
            Self::Fallback => "fallback",
            Self::Overload => "overload",
            Self::NoRoute => "no-route",
        }
    }
}

/// A warning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Warning {
    /// What of.
    pub kind: WarningKind,
    /// The host concerned, if it is one.
    pub host: Option<String>,
    /// Number of the flow concerned, if it is one.
    pub flow: Option<u64>,
    /// In a line.
    pub text: String,
}
