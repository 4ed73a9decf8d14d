"""`--set KEY=VALUE` and others of its form, as the commands have them."""

from __future__ import annotations

from segue import ScenarioError


def overrides(settings: tuple[str, ...], option: str = "--set") -> dict[str, object]:
    """Keys to values, of an option that is to be named if one is wrong.

    >>> overrides(("l2.latency=200 ms",))
    {'l2.latency': '200 ms'}

    Raises:
        ScenarioError: One is not so written.
    """
    found: dict[str, object] = {}
    for setting in settings:
        if any("\ud800" <= character <= "\udfff" for character in setting):
            raise ScenarioError(f"{option} {setting!a}: expected UTF-8")
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(f"{option} {setting}: expected KEY=VALUE, as in l2.latency='200 ms'")
        found[key.strip()] = value.strip()
    return found
