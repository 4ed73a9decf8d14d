//! From text to a script: descent by the rules of packetdrill's grammar.

mod call;
mod packet;
mod sctp;
#[cfg(test)]
mod tests;

use super::SyntaxError;
use super::ast::{Action, Event, ProgramOption, Script, Shell, Span, When};
use super::lexer::{self, Kind, Token};
use segue_proto::Duration;

pub use lexer::asked_for;

/// Reads the script `source` of `file`; what stands between an `#ifdef` and its `#endif` counts if its name is one of
/// `defined`.
///
/// ```
/// use segue_conformance::drill::parse::parse;
///
/// let script = parse("close.pkt", "+0.1 close(3) = 0\n+0 > sctp: SHUTDOWN[flgs=0, cum_tsn=0]", &[]).unwrap();
/// assert_eq!(script.events.len(), 2);
/// assert_eq!(script.events[1].line, 2);
/// let error = parse("close.pkt", "+0.1 close(3 = 0", &[]).unwrap_err();
/// assert_eq!(error.to_string(), "close.pkt:1: expected `,` or `)`, found `=`");
/// ```
///
/// # Errors
/// At the first word that cannot stand where it stands.
pub fn parse(file: &str, source: &str, defined: &[&str]) -> Result<Script, SyntaxError> {
    Parser {
        file,
        source,
        tokens: lexer::tokens(file, source, defined)?,
        next: 0,
        depth: 0,
    }
    .script()
}

type Parsed<T> = Result<T, SyntaxError>;

struct Parser<'a> {
    file: &'a str,
    source: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    /// Values within values.
    depth: usize,
}

impl<'a> Parser<'a> {
    fn script(mut self) -> Parsed<Script> {
        let options = self.options()?;
        let setup = self.shell();
        let mut events = Vec::new();
        let mut cleanup = None;
        while self.peek().is_some() {
            if cleanup.is_some() {
                return Err(self.error("the end of the script, as commands without a time end it"));
            }
            if self.is_kind(Kind::Shell) {
                cleanup = self.shell();
            } else {
                events.push(self.event()?);
            }
        }
        if events.is_empty() {
            return Err(self.error("an event"));
        }
        Ok(Script {
            file: self.file.to_owned(),
            options,
            setup,
            cleanup,
            events,
        })
    }

    fn options(&mut self) -> Parsed<Vec<ProgramOption>> {
        let mut options = Vec::new();
        while let Some(token) = self.take_kind(Kind::Option) {
            let value = if self.take("=") {
                let first = self
                    .peek()
                    .filter(|t| t.line == token.line)
                    .ok_or_else(|| self.error("the option's value on the line of its name"))?;
                let mut end = first.end();
                while let Some(part) = self.peek().filter(|t| t.line == token.line) {
                    end = part.end();
                    self.next += 1;
                }
                Some(self.source[first.start..end].to_owned())
            } else {
                None
            };
            options.push(ProgramOption {
                line: token.line,
                name: token.text[2..].to_owned(),
                value,
            });
        }
        Ok(options)
    }

    fn shell(&mut self) -> Option<Shell> {
        self.take_kind(Kind::Shell).map(|token| Shell {
            line: token.line,
            commands: token.inner().to_owned(),
        })
    }

    fn event(&mut self) -> Parsed<Event> {
        let first = self.peek().ok_or_else(|| self.error("the time of an event"))?;
        let when = self.when()?;
        let action = match self.peek().map(|t| (t.kind, t.text)) {
            Some((Kind::Sign, "<" | ">")) => Action::Packet(Box::new(self.packet()?)),
            Some((Kind::Shell, _)) => Action::Shell(self.shell().ok_or_else(|| self.error("commands"))?),
            Some((Kind::Code, _)) => {
                Action::Code(self.advance().inner().trim_matches([' ', '\t']).to_owned())
            }
            Some((Kind::Name | Kind::Ellipsis, _)) => Action::Call(self.call()?),
            _ => return Err(self.error("a packet (`<` or `>`), a system call, commands or code")),
        };
        let end = self.tokens[self.next - 1].end();
        Ok(Event {
            line: first.line,
            text: self.source[first.start..end].to_owned(),
            when,
            action,
        })
    }

    fn when(&mut self) -> Parsed<When> {
        if self.take("*") {
            return Ok(When::Any);
        }
        let relative = self.take("+");
        let from = self.seconds("the time of an event: seconds, `+` and seconds, or `*`")?;
        let to = if self.take("~") {
            if relative {
                self.expect("+")?;
            }
            let to = self.seconds("the end of the range of times")?;
            if to < from {
                self.next -= 1;
                return Err(self.error("a time that is not before the beginning of the range"));
            }
            to
        } else {
            from
        };
        let span = Span { from, to };
        Ok(if relative {
            When::After(span)
        } else {
            When::At(span)
        })
    }

    /// A time in seconds, exactly as it is written.
    fn seconds(&mut self, expected: &str) -> Parsed<Duration> {
        let token = self
            .peek()
            .filter(|t| matches!(t.kind, Kind::Decimal | Kind::Integer))
            .ok_or_else(|| self.error(expected))?;
        let (whole, fraction) = token.text.split_once('.').unwrap_or((token.text, ""));
        let whole = if whole.is_empty() {
            Ok(0)
        } else {
            whole.parse::<u64>()
        };
        let nanoseconds = format!("{fraction:0<9}");
        let time = whole
            .ok()
            .filter(|_| nanoseconds.len() == 9)
            .and_then(|whole| {
                let fraction: u64 = nanoseconds.parse().ok()?;
                Some(Duration::from_nanos(whole.checked_mul(1_000_000_000)? + fraction))
            })
            .ok_or_else(|| self.error(expected))?;
        self.next += 1;
        Ok(time)
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).copied()
    }

    fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next + 1).copied()
    }

    /// The next word, which is there: `peek` has said so.
    fn advance(&mut self) -> Token<'a> {
        self.next += 1;
        self.tokens[self.next - 1]
    }

    fn is(&self, text: &str) -> bool {
        self.peek().is_some_and(|t| t.text == text)
    }

    fn is_kind(&self, kind: Kind) -> bool {
        self.peek().is_some_and(|t| t.kind == kind)
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.next += usize::from(found);
        found
    }

    fn take_kind(&mut self, kind: Kind) -> Option<Token<'a>> {
        let token = self.peek().filter(|t| t.kind == kind)?;
        self.next += 1;
        Some(token)
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.take(text) {
            Ok(())
        } else {
            Err(self.error(&format!("`{text}`")))
        }
    }

    fn name(&mut self, expected: &str) -> Parsed<&'a str> {
        self.take_kind(Kind::Name)
            .map(|t| t.text)
            .ok_or_else(|| self.error(expected))
    }

    /// A number from 0 to `most`.
    fn number(&mut self, most: u64, expected: &str) -> Parsed<u64> {
        let value = self.peek().and_then(|t| match t.kind {
            Kind::Integer => t.text.parse().ok(),
            Kind::Hexadecimal => u64::from_str_radix(&t.text[2..], 16).ok(),
            _ => None,
        });
        match value.filter(|v| *v <= most) {
            Some(value) => {
                self.next += 1;
                Ok(value)
            }
            None => Err(self.error(&format!("{expected}, at most {most}"))),
        }
    }

    fn u16(&mut self, expected: &str) -> Parsed<u16> {
        Ok(self.number(u64::from(u16::MAX), expected)? as u16)
    }

    fn u32(&mut self, expected: &str) -> Parsed<u32> {
        Ok(self.number(u64::from(u32::MAX), expected)? as u32)
    }

    /// What `one` reads, with commas between, up to `end`.
    fn list<T>(&mut self, end: &str, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = Vec::new();
        if self.take(end) {
            return Ok(list);
        }
        loop {
            list.push(one(self)?);
            if self.take(end) {
                return Ok(list);
            }
            if !self.take(",") {
                return Err(self.error(&format!("`,` or `{end}`")));
            }
        }
    }

    /// The text up to `end`, which is passed over: for what no machine of ours has, and is refused by name when it is
    /// played.
    fn text_up_to(&mut self, end: &str) -> Parsed<String> {
        let first = self.next;
        while !self.is(end) {
            if self.peek().is_none() {
                return Err(self.error(&format!("`{end}`")));
            }
            self.next += 1;
        }
        let text = match (self.tokens.get(first), self.next > first) {
            (Some(token), true) => self.source[token.start..self.tokens[self.next - 1].end()].to_owned(),
            _ => String::new(),
        };
        self.next += 1;
        Ok(text)
    }

    fn error(&self, expected: &str) -> SyntaxError {
        let (line, found) = match self.peek() {
            Some(token) => (token.line, token.to_string()),
            None => (
                self.tokens.last().map_or(1, |t| t.line),
                "the end of the file".to_owned(),
            ),
        };
        SyntaxError {
            file: self.file.to_owned(),
            line,
            expected: expected.to_owned(),
            found,
        }
    }
}
