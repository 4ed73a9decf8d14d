//! Traffic of people, kind by kind: `[application.voice]`, and what it must be.

use super::keys::range::{above, at_least, at_most, within};
use super::model::{ApplicationEntry, ApplicationKind, ScenarioFile};
use super::validate::{Problem, problem};
use schemars::JsonSchema;
use segue_proto::Duration;
use segue_proto::app::{
    Codec, Holding, HoldingKind, OnOffConfig, REQUEST, Transport, VideoConfig, VoiceConfig, WebConfig,
};
use segue_proto::units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

/// `[application.on_off]`: how long a source is on, and how long it is off.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OnOffSection {
    /// Mean of the times that it is on.
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub on: Duration,
    /// Mean of the times that it is off.
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub off: Duration,
    /// Distribution of both.
    pub distribution: HoldingKind,
    /// Shape of a Pareto distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
}

impl Default for OnOffSection {
    /// One second on and one off.
    fn default() -> Self {
        Self {
            on: Duration::from_secs(1),
            off: Duration::from_secs(1),
            distribution: HoldingKind::Exponential,
            shape: None,
        }
    }
}

impl OnOffSection {
    /// What the machine needs of it, and beside it.
    #[must_use]
    pub fn config(self, rate: BitRate, message: Bytes) -> OnOffConfig {
        let holding = |mean| match self.distribution {
            HoldingKind::Exponential => Holding::Exponential { mean },
            HoldingKind::Pareto => Holding::Pareto {
                mean,
                shape: self.shape.unwrap_or(DEFAULT_SHAPE),
            },
        };
        OnOffConfig {
            rate,
            message,
            on: holding(self.on),
            off: holding(self.off),
        }
    }
}

/// `[application.voice]`: a call, or one direction of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VoiceSection {
    /// Codec.
    pub codec: Codec,
    /// Whether both ends talk, over one connection, and each hears the other; otherwise `from` talks and `to` hears. What
    /// they say is independent of each other.
    pub two_way: bool,
    /// Whether there are frames of speech only while the person talks: not with G.711 alone, unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence_suppression: Option<bool>,
    /// Mean of the exponentially distributed talk spurts.
    #[schemars(extend("x-range" = within("20 ms", "3600 s")))]
    pub talk_spurt: Duration,
    /// Mean of the exponentially distributed pauses between them.
    #[schemars(extend("x-range" = within("20 ms", "3600 s")))]
    pub pause: Duration,
    /// Depth of the receiver's playout buffer.
    #[schemars(extend("x-range" = at_most("10 s")))]
    pub playout_delay: Duration,
    /// Whether the receiver makes up for losses of G.711 (its appendix I); other codecs always do.
    pub concealment: bool,
    /// Over SCTP: when a frame is given up (RFC 3758); never without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = above("0 s")))]
    pub lifetime: Option<Duration>,
    /// Equipment impairment factor without losses, in place of the published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("0").below("95").by("ITU-T G.113")))]
    pub ie: Option<f64>,
    /// Packet-loss robustness factor, in place of the published one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = at_least("0.1").below("1000").by("ITU-T G.113")))]
    pub bpl: Option<f64>,
}

impl Default for VoiceSection {
    /// Talk spurts and pauses of ITU-T P.59 table 1.
    fn default() -> Self {
        Self {
            codec: Codec::G711,
            two_way: false,
            silence_suppression: None,
            talk_spurt: Duration::from_millis(1004),
            pause: Duration::from_millis(1587),
            playout_delay: Duration::from_millis(60),
            concealment: true,
            lifetime: None,
            ie: None,
            bpl: None,
        }
    }
}

impl VoiceSection {
    /// What the machine needs of it.
    #[must_use]
    pub fn config(&self) -> VoiceConfig {
        let pauses = self.silence_suppression.unwrap_or(self.codec != Codec::G711);
        VoiceConfig {
            codec: self.codec,
            pauses: pauses.then_some((self.talk_spurt, self.pause)),
            lifetime: self.lifetime,
        }
    }
}

/// `[application.web]`: somebody who reads web pages. Sizes and numbers of objects are the model's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WebSection {
    /// Size of a request.
    pub request: Bytes,
    /// Mean time between a page that is there and the next.
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub reading_time: Duration,
    /// Mean time between a main object that is there and the requests for those embedded in it.
    #[schemars(extend("x-range" = within("1 ms", "3600 s")))]
    pub parsing_time: Duration,
}

impl Default for WebSection {
    /// Times of the HTTP traffic model of NGMN and 3GPP2, and its request of 350 bytes.
    fn default() -> Self {
        Self {
            request: Bytes::new(350),
            reading_time: Duration::from_secs(30),
            parsing_time: Duration::from_millis(130),
        }
    }
}

impl WebSection {
    /// What the machine needs of it.
    #[must_use]
    pub const fn config(&self) -> WebConfig {
        WebConfig {
            request_bytes: self.request.bytes(),
            reading: self.reading_time,
            parsing: self.parsing_time,
        }
    }
}

/// `[application.video]`: somebody who watches a film.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VideoSection {
    /// Rates to choose from, from the lowest up.
    #[schemars(extend("x-range" = above("0 bit/s").at_most("1 Gbit/s")))]
    pub ladder: Vec<BitRate>,
    /// Length of a segment.
    #[schemars(extend("x-range" = within("100 ms", "60 s")))]
    pub segment: Duration,
    /// Most film in the buffer.
    #[schemars(extend("x-range" = at_most("3600 s")))]
    pub buffer: Duration,
    /// The film goes on once so much of it is there.
    pub startup: Duration,
    /// Below so much film in the buffer the lowest rate is chosen; 37.5 % of the buffer unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservoir: Option<Duration>,
    /// Above so much more the highest; 52.5 % of the buffer unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = above("0 s")))]
    pub cushion: Option<Duration>,
    /// Length of the film; without it, it goes on to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-range" = above("0 s")))]
    pub length: Option<Duration>,
    /// Size of a request.
    pub request: Bytes,
}

impl Default for VideoSection {
    /// Segments of 4 s, and reservoir and cushion of 90 s and 126 s by a buffer of 240 s, are of Huang et al. 2014; a buffer of
    /// 60 s, as browsers have it, and the rates, from 235 kbit/s to 5.8 Mbit/s, are a choice.
    fn default() -> Self {
        Self {
            ladder: [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800]
                .map(|kbps| BitRate::from_bits_per_second(kbps * 1000))
                .to_vec(),
            segment: Duration::from_secs(4),
            buffer: Duration::from_secs(60),
            startup: Duration::from_secs(4),
            reservoir: None,
            cushion: None,
            length: None,
            request: Bytes::new(350),
        }
    }
}

impl VideoSection {
    fn reservoir(&self) -> Duration {
        let thousandth = self.buffer.as_nanos() / 1000;
        self.reservoir.unwrap_or(Duration::from_nanos(thousandth * 375))
    }

    fn cushion(&self) -> Duration {
        let thousandth = self.buffer.as_nanos() / 1000;
        self.cushion.unwrap_or(Duration::from_nanos(thousandth * 525))
    }

    /// What the machine needs of it.
    #[must_use]
    pub fn config(&self) -> VideoConfig {
        VideoConfig {
            ladder: self.ladder.clone(),
            segment: self.segment,
            buffer: self.buffer,
            startup: self.startup,
            reservoir: self.reservoir(),
            cushion: self.cushion(),
            length: self.length,
            request_bytes: self.request.bytes(),
        }
    }
}

/// What an application of one of these kinds must be.
pub(super) fn check(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let name = super::applications::name_of(a.kind);
    let tables = [
        ("on_off", a.on_off.is_some(), ApplicationKind::OnOff),
        ("voice", a.voice.is_some(), ApplicationKind::Voice),
        ("web", a.web.is_some(), ApplicationKind::Web),
        ("video", a.video.is_some(), ApplicationKind::Video),
    ];
    for (table, is_there, kind) in tables {
        if is_there && kind != a.kind {
            return problem(
                key(table),
                format!("has no effect with kind = \"{name}\": expected it to be left out"),
            );
        }
    }
    match a.kind {
        ApplicationKind::OnOff => on_off(a, key),
        ApplicationKind::Voice => voice(a, key),
        ApplicationKind::Web => web(a, key),
        ApplicationKind::Video => video(a, key),
        _ => Ok(()),
    }
}

/// Who asks for objects knows what it has asked for, and opens the connection.
pub(super) fn asks(
    s: &ScenarioFile,
    a: &ApplicationEntry,
    key: &impl Fn(&str) -> String,
) -> Result<(), Problem> {
    let asks = matches!(a.kind, ApplicationKind::Web | ApplicationKind::Video);
    if asks && *crate::build::opener(s, a) != a.from {
        return problem(
            key("to"),
            format!(
                "`{}` has no address that stays, and `{}` asks it: expected a host on a [[link]], by_name, or a `scheme` with \
                 identities",
                a.to, a.from
            ),
        );
    }
    Ok(())
}

fn request(size: Bytes, key: String) -> Result<(), Problem> {
    let most = (*REQUEST.end()).min(LARGEST_REQUEST);
    if (*REQUEST.start()..=most).contains(&size.bytes()) {
        return Ok(());
    }
    problem(
        key,
        format!(
            "expected {} B, which say what is asked for, to {most} B",
            REQUEST.start()
        ),
    )
}

fn web(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let own = |k: &str| key(&format!("web.{k}"));
    let w = a.web.unwrap_or_default();
    request(w.request, own("request"))
}

fn video(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let own = |k: &str| key(&format!("video.{k}"));
    let v = a.video.clone().unwrap_or_default();
    let is_rising = v.ladder.windows(2).all(|pair| pair[0] < pair[1]);
    if v.ladder.is_empty() || !is_rising {
        return problem(
            own("ladder"),
            "expected rates from the lowest up, such as [\"235 kbit/s\", \"750 kbit/s\", \"3 Mbit/s\"]",
        );
    }
    if v.buffer < v.segment {
        return problem(own("buffer"), "expected `segment` at least");
    }
    if v.startup > v.buffer {
        return problem(own("startup"), "expected no more than `buffer`");
    }
    if v.cushion().is_zero() {
        return problem(own("cushion"), "expected more than 0 s");
    }
    if v.reservoir() + v.cushion() > v.buffer {
        let k = if v.cushion.is_some() {
            "cushion"
        } else {
            "reservoir"
        };
        return problem(
            own(k),
            "expected `reservoir` and `cushion` to be no more than `buffer` together",
        );
    }
    request(v.request, own("request"))
}

fn on_off(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    let own = |k: &str| key(&format!("on_off.{k}"));
    let o = a.on_off.unwrap_or_default();
    match (o.distribution, o.shape) {
        (HoldingKind::Exponential, Some(_)) => problem(
            own("shape"),
            "expected it to be left out with distribution = \"exponential\"",
        ),
        (HoldingKind::Pareto, Some(shape)) if !(1.05..=100.0).contains(&shape) => {
            problem(own("shape"), "expected 1.05 to 100, such as 1.5")
        }
        _ => Ok(()),
    }
}

fn voice(a: &ApplicationEntry, key: &impl Fn(&str) -> String) -> Result<(), Problem> {
    if a.transport == Transport::Tcp {
        return problem(
            key("transport"),
            "expected \"udp\" or \"sctp\" with kind = \"voice\", whose frames are messages",
        );
    }
    let own = |k: &str| key(&format!("voice.{k}"));
    let v = a.voice.clone().unwrap_or_default();
    if v.lifetime.is_some() && a.transport != Transport::Sctp {
        return problem(
            own("lifetime"),
            "expected it to be left out with transport = \"udp\", which sends nothing again",
        );
    }
    if !v.concealment && v.codec != Codec::G711 {
        return problem(
            own("concealment"),
            "expected it to be left out: only codec = \"g711\" can be without",
        );
    }
    if v.ie.is_some() != v.bpl.is_some() && v.codec == Codec::Evs {
        return problem(
            own(if v.ie.is_some() { "bpl" } else { "ie" }),
            "expected both `ie` and `bpl`, or neither: codec = \"evs\" has no published ones",
        );
    }
    Ok(())
}

/// What fits into every send buffer.
const LARGEST_REQUEST: u64 = 16_384;

/// Shape of a Pareto distribution, where the scenario gives none: that of ns-2's sources.
const DEFAULT_SHAPE: f64 = 1.5;
