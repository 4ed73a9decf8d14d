//! System calls and their arguments.

use super::{Parsed, Parser};
use crate::drill::ast::{Call, Expression, Member};
use crate::drill::lexer::Kind;

/// Values within values; no script of any suite has more than four.
const DEEPEST: usize = 64;

impl Parser<'_> {
    pub(super) fn call(&mut self) -> Parsed<Call> {
        let until = if self.take_kind(Kind::Ellipsis).is_some() {
            Some(self.seconds("the time at which the call returns")?)
        } else {
            None
        };
        let name = self.name("the name of a system call")?.to_owned();
        self.expect("(")?;
        let arguments = self.list(")", Self::expression)?;
        self.expect("=")?;
        let result = self.expression()?;
        let errno = self.take_kind(Kind::Name).map(|t| t.text.to_owned());
        if self.take("(") {
            // what strace says of the result: for those who read it
            self.text_up_to(")")?;
        }
        Ok(Call {
            until,
            name,
            arguments,
            result,
            errno,
        })
    }

    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        let first = self.operand()?;
        if !self.is("|") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take("|") {
            operands.push(self.operand()?);
        }
        Ok(Expression::Or(operands))
    }

    fn operand(&mut self) -> Parsed<Expression> {
        if self.depth == DEEPEST {
            return Err(self.error("no more than 64 values within values"));
        }
        self.depth += 1;
        let operand = self.operand_within();
        self.depth -= 1;
        operand
    }

    fn operand_within(&mut self) -> Parsed<Expression> {
        const EXPECTED: &str = "a value: `...`, a number, a name, a text, `[`, `{`";
        let token = self.peek().ok_or_else(|| self.error(EXPECTED))?;
        let unreadable = self.error(EXPECTED);
        self.next += 1;
        Ok(match (token.kind, token.text) {
            (Kind::Ellipsis, _) => Expression::Any,
            (Kind::Integer, text) => Expression::Number(text.parse().map_err(|_| unreadable)?),
            (Kind::Hexadecimal, text) => {
                Expression::Number(i64::from_str_radix(&text[2..], 16).map_err(|_| unreadable)?)
            }
            (Kind::Text, _) => {
                // `"..."...`: text that goes on
                self.take_kind(Kind::Ellipsis);
                Expression::Text(token.inner().to_owned())
            }
            (Kind::Ipv4 | Kind::Ipv6, text) => Expression::Address(text.parse().map_err(|_| unreadable)?),
            (Kind::Name, name) if self.take("(") => {
                Expression::Apply(name.to_owned(), self.list(")", Self::expression)?)
            }
            (Kind::Name, name) => Expression::Name(name.to_owned()),
            (Kind::Sign, "[") => Expression::Array(self.list("]", Self::expression)?),
            (Kind::Sign, "{") => Expression::Struct(self.list("}", Self::member)?),
            _ => return Err(unreadable),
        })
    }

    fn member(&mut self) -> Parsed<Member> {
        let first = self.expression()?;
        if !self.take("=") {
            return Ok(Member {
                name: None,
                length: None,
                value: first,
            });
        }
        let (name, length) = match first {
            Expression::Name(name) => (name, None),
            Expression::Apply(name, mut of) if of.len() == 1 => (name, of.pop()),
            _ => {
                self.next -= 1;
                return Err(self.error("`,` or `}`, as only a name can be given a value"));
            }
        };
        Ok(Member {
            name: Some(name),
            length,
            value: self.expression()?,
        })
    }
}
