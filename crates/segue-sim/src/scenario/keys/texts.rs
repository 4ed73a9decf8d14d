//! JSON Schema of what is read by hand: texts with a form of their own, and one or several of something.

use crate::assertion::Assertion;
use crate::scenario::application_list::Applications;
use crate::scenario::events::Places;
use crate::scenario::mobiles::Mobiles;
use crate::scenario::mobility::quantities::{Angle, SpeedRange};
use crate::scenario::model::{ApplicationEntry, MobileSection};
use crate::scenario::named::Named;
use crate::scenario::presence::Presence;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use segue_proto::Duration;
use segue_proto::units::{BitRate, Speed};
use serde_json::Value;
use std::borrow::Cow;

/// The texts that are a quantity, as a regular expression, but for blanks around them.
fn pattern<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
    let schema = T::json_schema(generator);
    let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
    pattern
        .trim_start_matches("^ *")
        .trim_end_matches(" *$")
        .to_owned()
}

fn text(pattern: &str, quantity: &str, example: &str) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": format!("^ *{pattern} *$"),
        "examples": [example],
        "x-quantity": quantity,
    })
}

fn one_or_several(one: &Schema) -> Schema {
    json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
}

impl JsonSchema for Angle {
    fn schema_name() -> Cow<'static, str> {
        "Angle".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        text("[+-]?[0-9]{1,15}(\\.[0-9]{0,15})? *deg", "angle", "90 deg")
    }
}

impl JsonSchema for SpeedRange {
    fn schema_name() -> Cow<'static, str> {
        "SpeedRange".into()
    }
    /// That the lower speed comes first it does not say.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let speed = pattern::<Speed>(generator);
        text(
            &format!("{speed} *(\\.\\. *{speed})?"),
            "speed or range of speeds",
            "0.5 m/s..2 m/s",
        )
    }
}

impl JsonSchema for Presence {
    fn schema_name() -> Cow<'static, str> {
        "Presence".into()
    }
    /// That windows are in order it does not say.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = pattern::<Duration>(generator);
        let window = text(
            &format!("{time} *\\.\\. *({time})?"),
            "window of time",
            "20 s..40 s",
        );
        json_schema!({ "anyOf": [window, { "type": "array", "items": window, "minItems": 1 }] })
    }
}

impl JsonSchema for Assertion {
    fn schema_name() -> Cow<'static, str> {
        "Assertion".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let limits = Self::forms(&pattern::<Duration>(generator), &pattern::<BitRate>(generator));
        text(&limits, "condition", "interruption < 50 ms")
    }
}

impl JsonSchema for Places {
    fn schema_name() -> Cow<'static, str> {
        "Places".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        one_or_several(&json_schema!({ "type": "string" }))
    }
}

impl JsonSchema for Mobiles {
    fn schema_name() -> Cow<'static, str> {
        "Mobiles".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        one_or_several(&generator.subschema_for::<MobileSection>())
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Named_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Vec<T>>()
    }
}

impl JsonSchema for Applications {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Applications".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Vec<ApplicationEntry>>()
    }
}

/// A name, or a number that is one.
pub(in crate::scenario) fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer"] })
}

/// A share, as 0.3 or "30 %".
pub(in crate::scenario) fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "number" },
            { "type": "string", "pattern": "^ *[+-]?[0-9]{1,15}(\\.[0-9]{0,15})? *% *$" },
        ],
        "examples": [0.3, "30 %"],
        "x-quantity": "share",
    })
}

/// Keys of another part of the scenario.
pub(in crate::scenario) fn any_table(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}
