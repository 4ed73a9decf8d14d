"""Axes of a sweep: a key, and the values that it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from segue._native import ScenarioError
from segue.units import UNITS, split

MOST_VALUES = 100_000
"""Of one axis."""
MOST_POWERS = 1000
"""Of one axis by factors: numbers are exact, and grow with every one."""
MOST_COLOURS = 12
"""Of a figure."""
SUFFIXES = {"s": "s", "bit/s": "bps", "B": "bytes", "packets": "packets", "m": "m", "m/s": "mps", "dBm": "dbm",
            "dB": "db", "deg": "deg", "%": "percent"}  # fmt: skip
"""What a column's name ends in, by the unit of its numbers."""

Values = str | Sequence[object]
"""`"100ms..600ms/100ms"`, `"mip6,sigma"`, or a value each."""

Quantity = tuple[Fraction, str]


@dataclass(frozen=True, slots=True)
class Axis:
    """A key and its values.

    Attributes:
        key: Override key: "l2.latency".
        column: Its column in results: "l2_latency_s", or "scheme" of what has no unit.
        unit: Unit of the column: "s", "bit/s", "B" and so on; empty of words and plain numbers.
        values: What the column has: numbers in that unit, or words.
        settings: The values as a scenario has them: "100 ms".
    """

    key: str
    column: str
    unit: str
    values: tuple[float | str, ...]
    settings: tuple[str, ...]

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers."""
        return not any(isinstance(value, str) for value in self.values)


def parse_axes(grid: Mapping[str, Values] | Sequence[str]) -> tuple[Axis, ...]:
    """The axes of a grid, the slowest first.

    Args:
        grid: Keys to values, or `KEY=VALUES` each.

    Raises:
        ScenarioError: One line that says what was expected.
    """
    if isinstance(grid, Mapping):
        axes = tuple(parse_axis(key, values) for key, values in grid.items())
    else:
        axes = tuple(parse_axis(*_key_and_values(text)) for text in grid)
    if not axes:
        raise ScenarioError("grid: expected at least one KEY=VALUES")
    for number, axis in enumerate(axes):
        if axis.column in {other.column for other in axes[:number]} | {"seed"}:
            raise ScenarioError(f"grid: {axis.key}: expected each key once, and none whose column is `seed`")
        for other in axes[:number]:
            if f"{axis.key}.".startswith(f"{other.key}.") or f"{other.key}.".startswith(f"{axis.key}."):
                raise ScenarioError(
                    f"grid: {axis.key}: expected no key above or below another, and there is {other.key}"
                )
    return axes


def parse_axis(key: str, values: Values) -> Axis:
    """A key and what it takes.

    Values are separated by commas outside of brackets and quotes. `A..B/STEP` is from A to B in steps, `A..B*FACTOR` by
    factors; without a step it is what a scenario has, a range to draw from.

    >>> parse_axis("l2.latency", "100ms..300ms/100ms").settings
    ('100 ms', '200 ms', '300 ms')
    >>> parse_axis("rate", "1 Mbit/s, 500 kbit/s")
    Axis(key='rate', column='rate_bps', unit='bit/s', values=(1000000.0, 500000.0), settings=('1 Mbit/s', '500 kbit/s'))

    Raises:
        ScenarioError: No value, one twice, or steps that do not lead from A to B.
    """
    if not key:
        raise ScenarioError("grid: expected KEY=VALUES, as in l2.latency=100ms..600ms/100ms")
    texts = _items(values) if isinstance(values, str) else [_text(value) for value in values]
    settings = [setting for text in texts for setting in _expanded(key, text)]
    if not settings:
        raise ScenarioError(f"grid: {key}: expected at least one value")
    found = [split(setting) for setting in settings]
    units = {UNITS[one[1]].base if one and one[1] else "" for one in found}
    name = re.sub(r"\W+", "_", key).strip("_")
    if None in found or len(units) > 1:
        axis = Axis(key, name, "", tuple(settings), tuple(settings))
    else:
        [unit] = units
        numbers = tuple(float(_in_base(one)) for one in found if one is not None)
        axis = Axis(key, f"{name}_{SUFFIXES[unit]}" if unit else name, unit, numbers, tuple(settings))
    if len(set(axis.values)) < len(axis.values):
        raise ScenarioError(f"grid: {key}: expected each value once")
    return axis


def find_axis(axes: Sequence[Axis], name: str) -> Axis:
    """The axis of a key or a column.

    Raises:
        ScenarioError: There is none.
    """
    for axis in axes:
        if name in (axis.key, axis.column):
            return axis
    raise ScenarioError(f"axis `{name}`: expected one of {', '.join(axis.key for axis in axes)}")


def choose_axes(axes: Sequence[Axis], x: str | None, hue: str | None) -> tuple[Axis, Axis | None]:
    """The axis that a figure has below, and that of its colours, if there is one.

    Args:
        axes: All of them.
        x: Key of the one below; the one with the most numbers if left out.
        hue: Key of the one of the colours; the other one if left out.

    Raises:
        ScenarioError: No such axis, too many colours, or there is a third with several values.
    """
    several = [axis for axis in axes if len(axis.values) > 1]
    colours = find_axis(axes, hue) if hue is not None else None
    if x is not None:
        below = find_axis(axes, x)
    else:
        free = [axis for axis in several if axis is not colours] or list(axes)
        below = max(free, key=lambda axis: (axis.is_numeric, len(axis.values)))
    if below is colours:
        raise ScenarioError(f"{below.key}: expected another axis for the colours than for x")
    others = [axis for axis in several if axis is not below and axis is not colours]
    if colours is None and len(others) == 1:
        colours, others = others[0], []
    if others:
        one = others[0]
        raise ScenarioError(
            f"{one.key}: has {len(one.values)} values, expected --where {one.key}={one.settings[0]} or another of them"
        )
    if colours is not None and len(colours.values) > MOST_COLOURS:
        raise ScenarioError(
            f"{colours.key}: {len(colours.values)} curves, expected at most {MOST_COLOURS}: see --where"
        )
    return below, colours


def _key_and_values(text: str) -> tuple[str, str]:
    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise ScenarioError(f"--grid {text}: expected KEY=VALUES, as in l2.latency=100ms..600ms/100ms")
    return key.strip(), values


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _items(values: str) -> list[str]:
    """What stands between commas that are in no brackets or quotes."""
    items, depth, quote = [""], 0, ""
    for letter in values:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth <= 0 and not quote:
            items.append("")
        else:
            items[-1] += letter
    return [item.strip() for item in items if item.strip()]


def _expanded(key: str, text: str) -> list[str]:
    """The values of a range with steps; any other text is one, with a space before its unit."""
    found = _range(text)
    if found is None:
        return [_written(text)]
    first, last, sign, by = found
    unit = last[1] or first[1]
    begin, end = (number * _factor(own or unit) for number, own in (first, last))
    is_sum = sign == "/"
    if _base(first[1] or unit) != _base(unit) or (by[1] and (not is_sum or not _is_step(by[1], unit))):
        raise ScenarioError(f"grid: {key}: `{text}`: expected one unit, as in 100ms..600ms/100ms")
    step = by[0] * _factor(by[1] or unit) if is_sum else by[0]
    if end < begin or step <= (0 if is_sum else 1) or (not is_sum and begin <= 0):
        raise ScenarioError(f"grid: {key}: `{text}`: expected steps that lead from the first to the last value")
    values: list[str] = []
    most = MOST_VALUES if is_sum else MOST_POWERS
    while begin <= end:
        if len(values) == most:
            raise ScenarioError(f"grid: {key}: `{text}`: expected at most {most} values")
        values.append(f"{_decimal(begin / _factor(unit))} {unit}".rstrip())
        begin = begin + step if is_sum else begin * step
    return values


def _range(text: str) -> tuple[Quantity, Quantity, str, Quantity] | None:
    """First and last value, "/" or "*", and the step; a slash may be part of a unit, as in 5m/s..20m/s/5m/s."""
    begin, dots, rest = text.partition("..")
    first = split(begin) if dots else None
    for sign in re.finditer(r"[/*]", rest):
        last, by = split(rest[: sign.start()]), split(rest[sign.end() :])
        if first is not None and last is not None and by is not None:
            return first, last, sign[0], by
    return None


def _written(text: str) -> str:
    """A quantity with a space before its unit, anything else as it is."""
    found = split(text)
    if found is None or not found[1]:
        return text
    return f"{text.removesuffix(found[1]).strip()} {found[1]}"


def _is_step(step: str, unit: str) -> bool:
    """Whether quantities of a unit can be this far apart: powers are so by a ratio."""
    return _base(step) == _base(unit) or (step == "dB" and unit == "dBm")


def _base(unit: str) -> str:
    return UNITS[unit].base if unit else ""


def _factor(unit: str) -> Fraction:
    return UNITS[unit].factor if unit else Fraction(1)


def _in_base(quantity: Quantity) -> Fraction:
    return quantity[0] * _factor(quantity[1])


def _decimal(number: Fraction) -> str:
    """A number without an exponent; of one that has no end, so many digits as a double holds.

    >>> _decimal(Fraction(1, 10)), _decimal(Fraction(100))
    ('0.1', '100')
    """
    text = f"{float(number):.15f}" if abs(number) < 1 else f"{float(number):.15g}"
    if "e" in text:
        return str(int(number))
    return text.rstrip("0").rstrip(".") if "." in text else text
