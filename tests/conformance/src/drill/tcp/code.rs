//! The Python between `%{` and `}%`, as far as scripts need it: `assert`, assignments, arithmetic and comparisons of whole
//! numbers. `print` prints nothing.

use crate::drill::stack::{Comparison, Refusal};
use std::collections::BTreeMap;

/// Variables, which live as long as the script.
#[derive(Debug, Default)]
pub struct Interpreter {
    variables: BTreeMap<String, i64>,
}

/// A word.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Word {
    Number(i64),
    Name(String),
    Text,
    Sign(&'static str),
}

/// Operators and brackets, longer ones first.
const SIGNS: [&str; 22] = [
    "==", "!=", "<=", ">=", "//", "+=", "-=", "*=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "=", ",",
    "[", "]", ".",
];

impl Interpreter {
    /// Runs `code`; a name that is none of its variables is asked of `value`.
    ///
    /// # Errors
    /// If it is not understood, or a name has no value.
    pub fn run(
        &mut self,
        code: &str,
        value: impl Fn(&str) -> Result<i64, Refusal>,
    ) -> Result<Comparison, Refusal> {
        let code = code.replace("\\\n", " ");
        for statement in code.lines().flat_map(split_statements) {
            let words = words(&statement)?;
            if let Comparison::Differs(difference) = self.statement(&words, &value)? {
                return Ok(Comparison::Differs(difference));
            }
        }
        Ok(Comparison::Same)
    }

    fn statement(
        &mut self,
        words: &[Word],
        value: &impl Fn(&str) -> Result<i64, Refusal>,
    ) -> Result<Comparison, Refusal> {
        match words {
            [] => {}
            [Word::Name(name), ..] if name == "print" || name == "import" || name == "pass" => {}
            [Word::Name(name), rest @ ..] if name == "assert" => return self.assert(rest, value),
            [Word::Name(name), Word::Sign(sign), ..]
                if ASSIGNMENTS.contains(sign) && name.starts_with("tcpi_") =>
            {
                return Refusal::new(format!(
                    "an assignment to `{name}`, which is the connection's to say"
                ));
            }
            [Word::Name(name), Word::Sign(sign), rest @ ..] if ASSIGNMENTS.contains(sign) => {
                let new = self.evaluate(rest, value)?;
                let operator = sign.trim_end_matches('=');
                let new = if operator.is_empty() {
                    new
                } else {
                    let old = self.variables.get(name).copied();
                    let old =
                        old.ok_or_else(|| Refusal(format!("the variable `{name}` before it has a value")))?;
                    arithmetic(operator, old, new)?
                };
                self.variables.insert(name.clone(), new);
            }
            other => return Refusal::new(format!("Python that is neither assert nor assignment: {other:?}")),
        }
        Ok(Comparison::Same)
    }

    /// `assert a == b, message`: what the message would print is said in other words.
    fn assert(
        &self,
        words: &[Word],
        value: &impl Fn(&str) -> Result<i64, Refusal>,
    ) -> Result<Comparison, Refusal> {
        let mut depth = 0;
        let end = words.iter().position(|word| {
            match word {
                Word::Sign("(" | "[") => depth += 1,
                Word::Sign(")" | "]") => depth -= 1,
                _ => {}
            }
            depth == 0 && *word == Word::Sign(",")
        });
        let condition = &words[..end.unwrap_or(words.len())];
        if self.evaluate(condition, value)? != 0 {
            return Ok(Comparison::Same);
        }
        let mut values = Vec::new();
        for word in condition {
            if let Word::Name(name) = word
                && !KEYWORDS.contains(&name.as_str())
                && !name.starts_with("TCP_")
            {
                let value = self
                    .variables
                    .get(name)
                    .copied()
                    .map_or_else(|| value(name), Ok)?;
                values.push(format!("{name} is {value}"));
            }
        }
        Ok(Comparison::Differs(values.join(", ")))
    }

    fn evaluate(
        &self,
        words: &[Word],
        value: &impl Fn(&str) -> Result<i64, Refusal>,
    ) -> Result<i64, Refusal> {
        let mut expression = Expression {
            words,
            next: 0,
            depth: 0,
            variables: &self.variables,
            value,
        };
        let result = expression.alternative()?;
        match expression.words.get(expression.next) {
            None => Ok(result),
            Some(word) => Refusal::new(format!("Python: {word:?} where an expression should end")),
        }
    }
}

/// What gives a variable a value.
const ASSIGNMENTS: [&str; 4] = ["=", "+=", "-=", "*="];

/// Operands within operands, at most.
const DEEPEST: usize = 100;
const KEYWORDS: [&str; 5] = ["and", "or", "not", "True", "False"];

struct Expression<'a, V> {
    words: &'a [Word],
    next: usize,
    /// Operands within operands.
    depth: usize,
    variables: &'a BTreeMap<String, i64>,
    value: &'a V,
}

impl<V: Fn(&str) -> Result<i64, Refusal>> Expression<'_, V> {
    fn take(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let found = match self.words.get(self.next) {
            Some(Word::Sign(sign)) => wanted.iter().find(|w| *w == sign),
            Some(Word::Name(name)) => wanted.iter().find(|w| *w == name),
            _ => None,
        };
        self.next += usize::from(found.is_some());
        found.copied()
    }

    fn alternative(&mut self) -> Result<i64, Refusal> {
        let mut result = self.conjunction()?;
        while self.take(&["or"]).is_some() {
            let other = self.conjunction()?;
            result = i64::from(result != 0 || other != 0);
        }
        Ok(result)
    }

    fn conjunction(&mut self) -> Result<i64, Refusal> {
        let mut result = self.negation()?;
        while self.take(&["and"]).is_some() {
            let other = self.negation()?;
            result = i64::from(result != 0 && other != 0);
        }
        Ok(result)
    }

    fn negation(&mut self) -> Result<i64, Refusal> {
        let mut negated = false;
        while self.take(&["not"]).is_some() {
            negated = !negated;
        }
        let result = self.comparison()?;
        Ok(if negated { i64::from(result == 0) } else { result })
    }

    /// Comparisons may be chained: `a <= b < c`.
    fn comparison(&mut self) -> Result<i64, Refusal> {
        let mut left = self.sum()?;
        let mut chain = None;
        while let Some(operator) = self.take(&["==", "!=", "<=", ">=", "<", ">"]) {
            let right = self.sum()?;
            let holds = match operator {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            chain = Some(chain.unwrap_or(true) && holds);
            left = right;
        }
        Ok(chain.map_or(left, i64::from))
    }

    fn sum(&mut self) -> Result<i64, Refusal> {
        let mut result = self.product()?;
        while let Some(operator) = self.take(&["+", "-"]) {
            let other = self.product()?;
            result = arithmetic(operator, result, other)?;
        }
        Ok(result)
    }

    fn product(&mut self) -> Result<i64, Refusal> {
        let mut result = self.operand()?;
        while let Some(operator) = self.take(&["*", "//", "/", "%"]) {
            let other = self.operand()?;
            result = arithmetic(operator, result, other)?;
        }
        Ok(result)
    }

    fn operand(&mut self) -> Result<i64, Refusal> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Refusal::new("Python: brackets within too many brackets");
        }
        let result = self.operand_within();
        self.depth -= 1;
        result
    }

    fn operand_within(&mut self) -> Result<i64, Refusal> {
        if self.take(&["-"]).is_some() {
            let operand = self.operand()?.checked_neg();
            return operand.ok_or_else(|| Refusal("Python: a number out of range".to_owned()));
        }
        if self.take(&["("]).is_some() {
            let result = self.alternative()?;
            return match self.take(&[")"]) {
                Some(_) => Ok(result),
                None => Refusal::new("Python: a bracket that is not closed"),
            };
        }
        let word = self.words.get(self.next).cloned();
        self.next += 1;
        match word {
            Some(Word::Number(number)) => Ok(number),
            Some(Word::Name(name)) => match name.as_str() {
                "True" => Ok(1),
                "False" => Ok(0),
                "abs" => Ok(self.operand()?.abs()),
                _ => match self.variables.get(&name) {
                    Some(number) => Ok(*number),
                    None => (self.value)(&name),
                },
            },
            Some(word) => Refusal::new(format!("Python: {word:?} where a value should be")),
            None => Refusal::new("Python: an expression that ends too soon"),
        }
    }
}

fn arithmetic(operator: &str, a: i64, b: i64) -> Result<i64, Refusal> {
    let result = match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "//" => a.checked_div_euclid(b),
        "%" => a.checked_rem_euclid(b),
        // a quotient that is no whole number is none of ours
        "/" if b != 0 && a % b == 0 => Some(a / b),
        _ => None,
    };
    result.ok_or_else(|| Refusal(format!("Python: {a} {operator} {b}")))
}

/// Statements of one line, without its comment.
fn split_statements(line: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '#') => break,
            (None, ';') => {
                statements.push(String::new());
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            _ => {}
        }
        if let Some(last) = statements.last_mut() {
            last.push(c);
        }
    }
    statements
}

fn words(statement: &str) -> Result<Vec<Word>, Refusal> {
    let mut words = Vec::new();
    let mut rest = statement.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() {
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            let text = &rest[..end];
            let number = match text.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            words.push(Word::Number(
                number.map_err(|_| Refusal(format!("Python: the number {text}")))?,
            ));
            end
        } else if first.is_alphabetic() || first == '_' {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            words.push(Word::Name(rest[..end].to_owned()));
            end
        } else if first == '\'' || first == '"' {
            let Some(end) = rest[1..].find(first) else {
                return Refusal::new("Python: a text without end");
            };
            words.push(Word::Text);
            end + 2
        } else {
            let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) else {
                return Refusal::new(format!("Python: `{first}`"));
            };
            words.push(Word::Sign(sign));
            sign.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(interpreter: &mut Interpreter, code: &str) -> Result<Comparison, Refusal> {
        interpreter.run(code, |name| match name {
            "tcpi_snd_cwnd" => Ok(12),
            _ => Refusal::new(name),
        })
    }

    #[test]
    fn variables_last_and_operators_bind_as_in_python() {
        let mut i = Interpreter::default();
        for code in [
            "a = 2 + 3 * 4 # a comment; not a statement",
            "assert a == 14; a += 0x10; assert a == 30, 'a is %d' % a",
            "assert not a < 30 and (a == 1 or a != 2)",
            "assert 10 <= tcpi_snd_cwnd < 13",
            "assert abs(-a) // 4 == 7 and a % 4 == 2 and a / 3 == 10, (a, 'text, with \"comma\"')",
            "print(a); a -= 1; a *= 2",
            "assert a == 58 and \\\n   tcpi_snd_cwnd == 12",
            "assert True; assert not False",
        ] {
            assert_eq!(run(&mut i, code), Ok(Comparison::Same), "{code}");
        }
        assert_eq!(
            run(&mut i, "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd"),
            Ok(Comparison::Differs("tcpi_snd_cwnd is 12".to_owned()))
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for code in [
            "import_it()",
            "assert tcpi_rtt == 1",
            "assert (1 == 1",
            "assert 1 ==",
            "assert 1 1",
            "b += 1",
            "b = 1 / 0",
            "b = 7 / 2",
            "for x in y:",
            "b = 'text'",
            "b = 'open",
            "b = 1 ? 2",
            "b = 99999999999999999999",
        ] {
            assert!(run(&mut Interpreter::default(), code).is_err(), "{code}");
        }
    }
}
