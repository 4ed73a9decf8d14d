//! Values of arguments, for the stacks.

use super::ast::{Expression, Member};
use super::layout::Class;
use super::stack::Refusal;
use super::tables::by_name;

/// The number that an argument is: as it is written, or a constant by name.
pub fn number(expression: &Expression) -> Result<i64, Refusal> {
    match expression {
        Expression::Number(number) => Ok(*number),
        Expression::Apply(name, of) if of.len() == 1 && matches!(name.as_str(), "htons" | "htonl") => {
            number(&of[0])
        }
        Expression::Name(name) => match (
            CONSTANTS.iter().find(|(n, _)| n == name),
            by_name(Class::Chunk, name),
        ) {
            (Some((_, number)), _) => Ok(*number),
            (None, Some(layout)) => Ok(layout.number.unwrap_or_default().into()),
            (None, None) => Refusal::new(format!("the constant {name}")),
        },
        Expression::Any => Refusal::new("`...` where a number is needed"),
        other => Refusal::new(format!("{other:?} where a number is needed")),
    }
}

/// The numbers of `[a, b]`.
pub fn numbers(expression: &Expression) -> Result<Vec<i64>, Refusal> {
    match expression {
        Expression::Array(values) => values.iter().map(number).collect(),
        other => Ok(vec![number(other)?]),
    }
}

/// The names in `A | B`; none in `0` and `...`.
pub fn flags(expression: &Expression) -> Result<Vec<&str>, Refusal> {
    match expression {
        Expression::Any | Expression::Number(0) => Ok(Vec::new()),
        Expression::Name(name) => Ok(vec![name]),
        Expression::Or(operands) => operands
            .iter()
            .map(|operand| match operand {
                Expression::Name(name) => Ok(name.as_str()),
                other => Refusal::new(format!("{other:?} among flags")),
            })
            .collect(),
        other => Refusal::new(format!("{other:?} as flags")),
    }
}

/// The members of a structure.
pub struct Members<'a>(&'a [Member]);

/// The members of `{...}`.
pub fn members(expression: &Expression) -> Result<Members<'_>, Refusal> {
    match expression {
        Expression::Struct(members) => Ok(Members(members)),
        other => Refusal::new(format!("{other:?} where a structure is needed")),
    }
}

impl<'a> Members<'a> {
    /// The value of the member `name`.
    pub fn value(&self, name: &str) -> Option<&'a Expression> {
        let mut members = self.0.iter();
        members
            .find(|m| m.name.as_deref() == Some(name))
            .map(|m| &m.value)
    }

    /// The number that the member `name` is.
    pub fn number(&self, name: &str) -> Result<i64, Refusal> {
        self.value(name)
            .map_or_else(|| Refusal::new(format!("a structure without {name}")), number)
    }

    /// The same, unless it is left out or `...`.
    pub fn optional(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.value(name) {
            None | Some(Expression::Any) => Ok(None),
            Some(value) => number(value).map(Some),
        }
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = &'a Member> + use<'a> {
        self.0.iter()
    }
}

const CONSTANTS: &[(&str, i64)] = &[
    ("NULL", 0),
    ("SCTP_FUTURE_ASSOC", 0),
    ("SCTP_AUTH_HMAC_ID_SHA1", 1),
    ("SCTP_AUTH_HMAC_ID_SHA256", 3),
];
