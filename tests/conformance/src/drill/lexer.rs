//! Words of the language. Which text is one word is packetdrill's rule: the longest that any kind of word can be.

use super::SyntaxError;
use core::fmt;
use logos::Logos;

/// A kind of word.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\n]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
pub enum Kind {
    /// `...`.
    #[token("...")]
    Ellipsis,
    /// A number with a point.
    #[regex(r"-?[0-9]*\.[0-9]+")]
    Decimal,
    /// A whole number.
    #[regex(r"-?[0-9]+", priority = 8)]
    Integer,
    /// A number of base 16, `0x` before it.
    #[regex(r"0x[0-9a-fA-F]+", priority = 9)]
    Hexadecimal,
    /// A name.
    #[regex(r"[a-zA-Z0-9_]+", priority = 2)]
    #[regex(r"(exp|EXP)-(FO|AccECN[01]|tarr|[0-9a-fA-F]+)", priority = 12)]
    #[regex(r"gen-[0-9]+", priority = 12)]
    #[token("voice-admit")]
    Name,
    /// An IPv4 address.
    #[regex(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")]
    Ipv4,
    /// An IPv6 address; `1:1001`, a range of sequence numbers, is none.
    #[token("::", priority = 20)]
    #[regex(r"([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}", priority = 20)]
    #[regex(r"([0-9a-fA-F]{1,4}:){1,7}:", priority = 20)]
    #[regex(r"([0-9a-fA-F]{1,4}:){1,6}(:[0-9a-fA-F]{1,4}){1,6}", priority = 20)]
    #[regex(r":(:[0-9a-fA-F]{1,4}){1,7}", priority = 20)]
    #[regex(r"::ffff:[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", priority = 20)]
    #[regex(r"([0-9a-fA-F]{1,4}:){1,4}:[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", priority = 20)]
    Ipv6,
    /// Text between quotation marks.
    #[regex(r#""(\\.|[^"\\])*""#)]
    Text,
    /// Commands of a shell, between backquotes.
    #[regex(r"`(\\(.|\n)|[^`\\])*`")]
    Shell,
    /// Python, between `%{` and `}%`.
    #[regex(r"%\{([^}]|\}[^%])*\}%")]
    Code,
    /// An option of the program, `--` before it.
    #[regex(r"--[a-zA-Z0-9_]+")]
    Option,
    /// `#ifdef` with its name.
    #[regex(r"#ifdef[ \t]+[a-zA-Z][a-zA-Z0-9_]*", priority = 20)]
    If,
    /// `#endif`.
    #[token("#endif", priority = 20)]
    EndIf,
    /// Any other `#` begins a comment.
    #[regex(r"#[^\n]*", priority = 1, allow_greedy = true)]
    Comment,
    /// Any other character.
    #[regex(r"[^ \t\r\n]", priority = 0)]
    Sign,
}

/// A word and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Its first byte in the file.
    pub start: usize,
    /// Its line, from 1.
    pub line: usize,
}

impl Token<'_> {
    /// The byte behind its last one.
    pub const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Text, shell or code without what encloses it.
    pub fn inner(&self) -> &str {
        let width = match self.kind {
            Kind::Code => 2,
            Kind::Text | Kind::Shell => 1,
            _ => 0,
        };
        &self.text[width..self.text.len() - width]
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.text.lines().next().unwrap_or_default();
        if first.len() < self.text.len() {
            write!(f, "`{first} ...`")
        } else {
            write!(f, "`{first}`")
        }
    }
}

/// The words of a script, without those between an `#ifdef` whose name is not one of `defined` and its `#endif`.
///
/// # Errors
/// If an `#ifdef` stands in another, or one of the two stands alone.
pub fn tokens<'a>(file: &str, source: &'a str, defined: &[&str]) -> Result<Vec<Token<'a>>, SyntaxError> {
    let mut out = Vec::new();
    let (mut line, mut counted) = (1, 0);
    let mut open: Option<Token<'_>> = None;
    let mut kept = true;
    let error = |token: &Token<'_>, expected: &str| SyntaxError {
        file: file.to_owned(),
        line: token.line,
        expected: expected.to_owned(),
        found: token.to_string(),
    };
    for (kind, span) in Kind::lexer(source).spanned() {
        line += source[counted..span.start].matches('\n').count();
        counted = span.start;
        let token = Token {
            kind: kind.unwrap_or(Kind::Sign),
            text: &source[span.clone()],
            start: span.start,
            line,
        };
        match token.kind {
            Kind::Comment => {}
            Kind::If if open.is_some() => {
                return Err(error(&token, "`#endif` first: no `#ifdef` stands in another"));
            }
            Kind::If => {
                open = Some(token);
                kept = token
                    .text
                    .split_whitespace()
                    .last()
                    .is_some_and(|name| defined.contains(&name));
            }
            Kind::EndIf => {
                open.take()
                    .ok_or_else(|| error(&token, "an `#ifdef` before it"))?;
                kept = true;
            }
            _ if kept => out.push(token),
            _ => {}
        }
    }
    open.map_or(Ok(out), |token| Err(error(&token, "an `#endif` for it")))
}

/// The names that the `#ifdef`s of a script ask for, each once, in the order of the text.
pub fn asked_for(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (kind, span) in Kind::lexer(source).spanned() {
        if kind == Ok(Kind::If) {
            let name = source[span].split_whitespace().last().unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
