//! The hosts that move: `[mobile]` for one, `[[mobile]]` for several.

use super::model::MobileSection;
use super::named::Named;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The hosts that move, in the order of the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Mobiles(Named<MobileSection>);

impl Mobiles {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &MobileSection> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut MobileSection> {
        self.0.iter_mut()
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self) -> Option<&MobileSection> {
        self.0.first()
    }

    /// How `host` moves, if it does.
    #[must_use]
    pub fn of(&self, host: &str) -> Option<&MobileSection> {
        self.0.named(host)
    }

    /// Whether the host of the one with this number is that of nobody before it.
    pub(super) fn is_first(&self, number: usize) -> bool {
        self.0.is_first(number)
    }

    /// Whether nobody moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many hosts move.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The key of number `index` in messages: `mobile` where it is the only one.
    pub(super) fn key(&self, index: usize) -> String {
        if self.len() == 1 {
            "mobile".to_owned()
        } else {
            format!("mobile[{index}]")
        }
    }
}

impl Serialize for Mobiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Mobiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Mobiles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table [mobile] or a list of tables [[mobile]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mobiles, A::Error> {
        MobileSection::deserialize(MapAccessDeserializer::new(map)).map(|one| Mobiles(vec![one].into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Mobiles, A::Error> {
        let mut all = Vec::new();
        while let Some(next) = list.next_element()? {
            all.push(next);
        }
        Ok(Mobiles(all.into()))
    }
}
