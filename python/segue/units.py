"""Units of scenarios, as numbers: what `"200 ms"` is in seconds, `"20 Mbit/s"` in bit/s."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a scenario.

    Attributes:
        base: The unit of numbers in tables: "s", "bit/s", "B", "packets", "m", "m/s", "dBm", "dB", "deg" or "%".
        factor: How many of them it is.
    """

    base: str
    factor: Fraction


# As `segue_proto::units` has them.
_FACTORS: dict[str, dict[str, str]] = {
    "s": {"ns": "1e-9", "us": "1e-6", "\N{MICRO SIGN}s": "1e-6", "\N{GREEK SMALL LETTER MU}s": "1e-6", "ms": "1e-3",
          "s": "1", "min": "60", "h": "3600"},
    "bit/s": {"bit/s": "1", "kbit/s": "1e3", "Mbit/s": "1e6", "Gbit/s": "1e9",
              "bps": "1", "kbps": "1e3", "Mbps": "1e6", "Gbps": "1e9"},
    "B": {"B": "1", "byte": "1", "bytes": "1", "kB": "1e3", "MB": "1e6", "GB": "1e9",
          "KiB": "1024", "MiB": "1048576", "GiB": "1073741824"},
    "packets": {"packets": "1", "packet": "1"},
    "m": {"m": "1", "km": "1000", "cm": "0.01"},
    "m/s": {"m/s": "1", "km/h": "5/18", "km/s": "1000"},
    "dBm": {"dBm": "1"},
    "dB": {"dB": "1"},
    "deg": {"deg": "1"},
    "%": {"%": "1"},
}  # fmt: skip
UNITS = {name: Unit(base, Fraction(factor)) for base, names in _FACTORS.items() for name, factor in names.items()}
"""Every unit by its name."""

BEYOND = 10**280
"""No quantity is so large: a double holds smaller ones in every unit."""
MOST_LETTERS = 1000
"""Of a number."""

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([^\s\d.,]*)\s*")


def split(text: str) -> tuple[Fraction, str] | None:
    """The number of a quantity and its unit, empty if there is none; nothing if it is no quantity, or `BEYOND`.

    >>> split("200 ms"), split("1.5e3"), split("sigma")
    ((Fraction(200, 1), 'ms'), (Fraction(1500, 1), ''), None)
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or (match[2] and match[2] not in UNITS):
        return None
    if len(match[1]) > MOST_LETTERS or abs(number := Fraction(match[1])) >= BEYOND:
        return None
    return number, match[2]


_SHOWN = {
    "s": ((1e-3, 1e6, "\N{GREEK SMALL LETTER MU}s"), (2.0, 1e3, "ms"), (float("inf"), 1.0, "s")),
    "bit/s": ((1e6, 1e-3, "kbit/s"), (float("inf"), 1e-6, "Mbit/s")),
    "B": ((1e4, 1.0, "B"), (1e6, 1e-3, "kB"), (float("inf"), 1e-6, "MB")),
}
"""Below which greatest value a unit is shown how: the factor, and its name."""


def in_words(unit: str, greatest: float) -> tuple[float, str]:
    """The unit in which values up to this one are shown: the factor to it, and its name.

    >>> in_words("s", 0.6), in_words("packets", 3.0)
    ((1000.0, 'ms'), (1.0, 'packets'))
    """
    return next(((factor, name) for limit, factor, name in _SHOWN.get(unit, ()) if greatest < limit), (1.0, unit))


def percent(share: float) -> str:
    """A share as a person writes it, not rounded up.

    >>> percent(0.9375), percent(0.95)
    ('93.7 %', '95 %')
    """
    return f"{int(share * 1000 + 1e-9) / 10:g} %"
