//! `[remedy]`: what shortens the adaptation time (Cottingham and Vidales, section 7), and its modern form.

use super::keys::range::{at_least, within};
use super::model::ScenarioFile;
use super::schemes::Scheme;
use super::technology::BearerSection;
use super::validate::{Problem, problem};
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::tcp::Remedy;
use segue_proto::units::Bytes;
use serde::{Deserialize, Serialize};

/// `[remedy]`
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RemedySection {
    /// A sender whose peer moves to a network that it has been in takes the RTT that it last had there for its estimate.
    /// It learns of the move by its binding: with scheme `mip6-ro`.
    pub rtt_injection: bool,
    /// Fraction added to it, for safety.
    #[schemars(extend("x-range" = within("0", "10")))]
    pub rtt_margin: f64,
    /// A sender remembers RTT and window of networks, and resumes carefully (draft-ietf-tsvwg-careful-resume).
    pub careful_resume: bool,
    /// A proxy lowers the windows that hosts in cells with bearers offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_clamp: Option<WindowClampSection>,
}

/// The proxy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowClampSection {
    /// The router that it is on: all packets of a connection must pass there from its SYNs on, wherever the host is, or it
    /// does not know the scale of windows.
    pub router: String,
    /// Greatest window. Left out: what the bearer of the cell carries in a round trip, and two segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("1500 B").below("1 GiB")))]
    pub size: Option<Bytes>,
}

/// What TCP does.
pub(crate) fn of_senders(s: &ScenarioFile) -> Remedy {
    Remedy {
        rtt_injection: s.remedy.rtt_injection || s.remedy.careful_resume,
        rtt_margin: s.remedy.rtt_margin,
        careful_resume: s.remedy.careful_resume,
    }
}

/// The greatest window in a cell with bearers.
pub(crate) fn greatest_window(clamp: &WindowClampSection, bearer: &BearerSection) -> u32 {
    if let Some(size) = clamp.size {
        return size.bytes() as u32;
    }
    let way = |d: &super::technology::DirectionSection, length: u64| {
        d.delay + Duration::from_nanos(d.jitter.as_nanos() / 2) + d.rate.time_for(length)
    };
    let mut round_trip = way(&bearer.down, SEGMENT) + way(&bearer.up, ACKNOWLEDGEMENT);
    // acknowledgements come as segments do: what is let go before the next one is set up for each
    let pause = (bearer.down.rate.time_for(SEGMENT)).saturating_sub(bearer.up.rate.time_for(ACKNOWLEDGEMENT));
    if bearer.up.set_up_hold < pause {
        round_trip += bearer.up.set_up;
    }
    let carried = bearer.down.rate.bits_per_second() as f64 / 8.0 * round_trip.as_secs_f64();
    (carried as u64 + 2 * SEGMENT).min(1 << 30) as u32
}

/// Bytes of a full segment, and of an acknowledgement with Home Address option and timestamps.
const SEGMENT: u64 = 1500;
const ACKNOWLEDGEMENT: u64 = 96;

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    let r = &s.remedy;
    for (key, on) in [
        ("remedy.rtt_injection", r.rtt_injection),
        ("remedy.careful_resume", r.careful_resume),
    ] {
        if on && s.scheme != Scheme::Mip6Ro {
            return problem(
                key,
                "a sender learns of handoffs by its binding: expected scheme = \"mip6-ro\"",
            );
        }
    }
    let Some(clamp) = &r.window_clamp else {
        return Ok(());
    };
    if s.router.iter().all(|router| router.name != clamp.router) {
        return problem(
            "remedy.window_clamp.router",
            format!("`{}`: expected the name of a router", clamp.router),
        );
    }
    if s.cell.iter().all(|c| c.bearer.is_none()) {
        return problem(
            "remedy.window_clamp",
            "expected a [[cell]] with bearers, such as technology = \"gprs\"",
        );
    }
    Ok(())
}
