"""Keys of scenarios: what is said of them, and a schema that takes nothing that is not read."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TypeAlias

import jsonschema
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import segue
from segue import _native
from segue.cli.app import TEMPLATES
from segue.keys import find, keys, markdown, schema

ROOT = Path(__file__).resolve().parents[2]
SEGUE = [sys.executable, "-c", "from segue.cli import main; main()"]
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json]"
Schema: TypeAlias = "dict[str, Json] | bool"

WHOLE: dict[str, Json] = json.loads(schema())
VALIDATOR = jsonschema.Draft7Validator(WHOLE)
LEFT_OUT = {"cases", "derived", "when", "parameters", "case"}
"""Keys that change others."""


def toml_of(value: Json) -> str:
    """A value as TOML has it, tables inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml_of(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_of(one) for one in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def file_of(table: dict[str, Json]) -> str:
    """A scenario file."""
    return "\n".join(f"{json.dumps(key)} = {toml_of(value)}" for key, value in table.items()) + "\n"


def is_read(table: dict[str, Json]) -> str | None:
    """What the reader says of its form; None if nothing."""
    try:
        _native.check_form(file_of(table), "file")
    except segue.ScenarioError as error:
        return str(error)
    return None


def resolved(one: Schema) -> Schema:
    """The schema that a reference is to."""
    if isinstance(one, dict) and isinstance(reference := one.get("$ref"), str):
        definitions = WHOLE["definitions"]
        assert isinstance(definitions, dict)
        found = definitions[reference.rpartition("/")[2]]
        assert isinstance(found, dict)
        return resolved(found)
    return one


def values(one: Schema) -> st.SearchStrategy[Json]:
    """Values that a schema takes."""
    one = resolved(one)
    assert isinstance(one, dict), "a key that must not be there"
    if "const" in one:
        return st.just(one["const"])
    if isinstance(choices := one.get("enum"), list):
        return st.sampled_from(choices)
    for part in ("anyOf", "oneOf"):
        if isinstance(forms := one.get(part), list):
            return st.one_of([values(form) for form in forms if isinstance(form, dict) and written_out(form)])
    if isinstance(parts := one.get("allOf"), list) and "properties" not in one:
        assert len(parts) == 1
        assert isinstance(parts[0], dict)
        return values(parts[0])
    return of_type(one)


def written_out(form: dict[str, Json]) -> bool:
    """What stands for many is worked out first, and what is of a file is read from it."""
    reference = str(form.get("$ref", ""))
    return not reference.endswith(("OfMany", "OfFile"))


def of_type(one: dict[str, Json]) -> st.SearchStrategy[Json]:
    """Values of a schema that names their type."""
    kind = one.get("type")
    if isinstance(kind, list):
        return st.one_of([of_type({**one, "type": name}) for name in kind])
    if kind == "string":
        pattern = one.get("pattern")
        return st.from_regex(str(pattern), fullmatch=True) if pattern else of_format(str(one.get("format", "")))
    if kind == "integer":
        least, greatest = one.get("minimum"), one.get("maximum")
        return st.integers(
            int(least) if isinstance(least, int | float) else -(2**63),
            int(greatest) if isinstance(greatest, int | float) else 2**63 - 1,
        )
    if kind == "number":
        return reals(one)
    if kind == "boolean":
        return st.booleans()
    if kind == "array":
        least, greatest = one.get("minItems", 0), one.get("maxItems", 3)
        items = one["items"]
        assert isinstance(least, int)
        assert isinstance(greatest, int)
        if isinstance(items, list):
            return st.tuples(*[values(item) for item in items if isinstance(item, dict)]).map(list)
        assert isinstance(items, dict)
        return st.lists(values(items), min_size=least, max_size=greatest)
    assert kind == "object", one
    return tables(one)


def reals(one: dict[str, Json]) -> st.SearchStrategy[Json]:
    """Real numbers of a schema, in thousandths."""
    ends = {name: float(str(end)) for name, end in one.items() if name.endswith(("imum", "Minimum", "Maximum"))}
    least = ends.get("minimum", ends.get("exclusiveMinimum", -1e6))
    greatest = ends.get("maximum", ends.get("exclusiveMaximum", 1e6))
    inside = st.integers(round(least * 1000), round(greatest * 1000)).map(lambda number: number / 1000)
    return inside.filter(lambda number: VALIDATOR.evolve(schema=one).is_valid(number))


def of_format(name: str) -> st.SearchStrategy[Json]:
    """Texts of a format, or any."""
    if name == "ipv6":
        return st.ip_addresses(v=6).map(str)
    return st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)


def tables(one: dict[str, Json]) -> st.SearchStrategy[Json]:
    """Tables with the keys that they need, and some of the others."""
    properties = one.get("properties", {})
    required = one.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    names = {str(name) for name in required}
    for group in conditions(one):
        names |= {str(name) for name in group}
    allowed = {name: found for name, found in properties.items() if isinstance(found, dict) and name not in LEFT_OUT}
    return st.lists(st.sampled_from(sorted(allowed) or [""]), max_size=6).flatmap(
        lambda more: st.fixed_dictionaries(
            {name: values(found) for name, found in allowed.items() if name in names or name in more}
        )
    )


def conditions(one: dict[str, Json]) -> list[list[Json]]:
    """Of groups of keys of which one is there, the first."""
    groups = []
    parts = one.get("allOf", [])
    assert isinstance(parts, list)
    for part in parts:
        assert isinstance(part, dict)
        forms = part["anyOf"]
        assert isinstance(forms, list)
        first = forms[0]
        assert isinstance(first, dict)
        required = first["required"]
        assert isinstance(required, list)
        groups.append(required)
    return groups


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, phases=[Phase.generate])
"""The same every time, and no smaller example looked for: what fails is printed."""

ORDERED = ("expected a range", "range with the", "windows in order", "a window that ends after")
"""What the reader asks for and no schema can say: that the lesser of two comes first."""


def agrees(table: dict[str, Json]) -> None:
    """What the schema takes is read."""
    problem = is_read(table)
    if problem is not None and not any(words in problem for words in ORDERED):
        assert not VALIDATOR.is_valid(table), problem


@settings(QUICK, max_examples=300)
@given(st.data())
def test_what_the_schema_makes_is_read(data: st.DataObject) -> None:
    table = data.draw(tables(WHOLE))
    assert isinstance(table, dict)
    problem = is_read(table)
    assert problem is None or any(words in problem for words in ORDERED), problem
    VALIDATOR.validate(table)


def places(value: Json, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """All places in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    found = [before] if before else []
    for key, one in inner:
        found += places(one, (*before, key))
    return found


def with_other(value: Json, place: tuple[str | int, ...], other: Json | None) -> Json:
    """The value with another in this place; None for nothing."""
    first, rest = place[0], place[1:]
    if isinstance(value, dict):
        inside = with_other(value[str(first)], rest, other) if rest else other
        changed: dict[str, Json | None] = {**value, str(first): inside}
        return {key: one for key, one in changed.items() if one is not None}
    assert isinstance(value, list)
    assert isinstance(first, int)
    inner = [with_other(value[first], rest, other)] if rest else [] if other is None else [other]
    return [*value[:first], *inner, *value[first + 1 :]]


OTHERS: list[Json | None] = [None, True, -1, 2**40, 0.5, "x", "10", "10 parsecs", "-3 ms", [], ["x"], {}, {"no": "key"}]


@settings(QUICK, max_examples=400)
@given(st.data())
def test_what_is_not_read_the_schema_does_not_take(data: st.DataObject) -> None:
    table = data.draw(tables(WHOLE))
    assert isinstance(table, dict)
    changed = with_other(table, data.draw(st.sampled_from(places(table))), data.draw(st.sampled_from(OTHERS)))
    assert isinstance(changed, dict)
    agrees(changed)


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").rglob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_is_as_the_schema_has_it(path: Path) -> None:
    VALIDATOR.validate(tomllib.loads(path.read_text(encoding="utf-8")))


def test_every_key_says_what_it_means_and_what_it_takes() -> None:
    for key in keys():
        assert key.meaning, key.key
        assert key.kind not in {"", "value"}, key
        assert key.kind != "one of" or len(key.choices) > 0, key


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("l2.beacon_loss", ["l2.beacon_loss"]),
        ("link[].rate", ["link[].rate"]),
        ("link.rate", ["link[].rate"]),
        ("link.0.rate", ["link[].rate"]),
        ("link.fast.rate", ["link[].rate"]),
        ("seed", ["seed"]),
    ],
)
def test_keys_are_found_as_they_are_set(prefix: str, found: list[str]) -> None:
    assert [key.key for key in find(prefix)] == found


def test_what_is_no_key_ends_with_what_was_meant() -> None:
    done = subprocess.run([*SEGUE, "keys", "l2.latencey"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("segue: l2.latencey: no scenario has such a key: did you mean `l2.latency` or ")
    assert done.stderr.count("\n") == 1


def test_keys_are_told_in_full() -> None:
    done = subprocess.run([*SEGUE, "keys", "l2"], capture_output=True, text=True, check=True)
    assert "l2.loss_detection\n    one of" in done.stdout
    assert "100 ms if left out" in done.stdout
    as_json = subprocess.run([*SEGUE, "keys", "--json"], capture_output=True, text=True, check=True)
    assert len(json.loads(as_json.stdout)) == len(keys())


RANGES = [key for key in keys() if key.range]


def test_ranges_are_told_with_their_sources() -> None:
    told = {key.key: key.range for key in RANGES}
    assert told["link[].mtu"] == "1280 B to 65535 B (RFC 8200 section 5)"
    assert told["cell[].sharing.slot"] == "10 us to 1 s"
    assert len(told) > 80
    done = subprocess.run([*SEGUE, "keys", "radio.slot"], capture_output=True, text=True, check=True)
    assert "more than 0 s and at most 10 ms" in done.stdout
    sharing = resolved_at("SharingSection", "slot")
    assert str(sharing["description"]).endswith(" Expected: 10 us to 1 s.")


def resolved_at(definition: str, key: str) -> dict[str, Json]:
    """The schema of a key of a table."""
    definitions = WHOLE["definitions"]
    assert isinstance(definitions, dict)
    table = definitions[definition]
    assert isinstance(table, dict)
    properties = table["properties"]
    assert isinstance(properties, dict)
    found = properties[key]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("l2.beacon_loss", "0", "expected at least 1"),
        ("link.0.delay", "2 h", "expected at most 3600 s"),
        ("link.0.corrupt", "1.5", "expected 0 to 1"),
        ("radio.slot", "0 s", "expected more than 0 s and at most 10 ms"),
        ("sctp.mtu", "1279 B", "expected 1280 B to 65535 B (RFC 8200 section 5)"),
        ("tcp.receive_buffer", "1 GiB", "expected 2048 B to less than 1 GiB (RFC 7323 section 2.3)"),
    ],
)
def test_what_is_out_of_a_range_is_refused_in_the_words_of_the_page(key: str, value: str, said: str) -> None:
    with pytest.raises(segue.ScenarioError, match=re.escape(said)):
        segue.run("sigma", {key: value})
    [found] = find(key)
    assert said == f"expected {found.range}"
    assert f"{found.range} |" in markdown()


def test_numbers_out_of_a_range_are_none_for_the_schema() -> None:
    table = tomllib.loads((ROOT / "scenarios" / "papers" / "sigma.toml").read_text(encoding="utf-8"))
    VALIDATOR.validate(table)
    assert not VALIDATOR.is_valid({**table, "l2": {**table["l2"], "beacon_loss": 0}})
    assert not VALIDATOR.is_valid({**table, "link": [{**table["link"][0], "corrupt": 1.5}, *table["link"][1:]]})
    assert not VALIDATOR.is_valid({**table, "radio": {**table.get("radio", {}), "attempts": 256}})


def schemas(value: Json) -> list[dict[str, Json]]:
    """A schema and all in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [one for part in inner for one in schemas(part)]
    return [value, *found] if isinstance(value, dict) else found


CELL: dict[str, Json] = {"name": "a", "router": "b", "present": "0 s.."}


def test_taplo_can_complete_keys() -> None:
    """Taplo 0.8, of Even Better TOML, never ends where it meets a reference in an `allOf`."""
    alone = [one for one in schemas(WHOLE) if isinstance(all_of := one.get("allOf"), list) and "$ref" in str(all_of)]
    assert alone == []


@pytest.mark.parametrize(
    ("key", "entry", "said"),
    [
        ("cell", {"radios": 1, "name": "a", "router": "b", "technology": "lte", "present": "0 s.."}, "'radios'"),
        (
            "cell",
            {"radios": 1, "name": "a", "router": "b", "technology": "wlan-802.11g", "present": "0 s.."},
            "'radios'",
        ),
        ("link", {"between": ["a", "b"], "rate": "1 Mbit/s", "delay": 3}, "3 is not of type 'string'"),
        ("link", {"between": ["a", "b"], "technology": "lte", "delya": "1 s"}, "'delya'"),
        ("host", {"name": "a{i}", "count": 3, "radois": 1}, "'radois'"),
        ("mobile", {"host": "a", "mobility": {"model": "manhattan"}, "seed": 1}, "'seed'"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_of_the_form_that_is_meant(
    key: str, entry: dict[str, Json], said: str
) -> None:
    table: dict[str, Json] = {"name": "x", "duration": "1 s", key: [entry]}
    messages = [error.message for error in VALIDATOR.iter_errors(table)]
    assert any(said in message for message in messages), messages
    # and nothing of forms that are not meant
    assert [message for message in messages if said not in message] == []


def test_descriptions_have_no_links_of_rust() -> None:
    for text in (schema(), markdown()):
        assert "[`" not in text
        assert "crate::" not in text


def test_the_page_of_keys_is_made_from_them() -> None:
    page = ROOT / "docs" / "keys.md"
    assert page.read_text(encoding="utf-8") == markdown(), "make keys makes it anew"


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`segue` with these arguments in a folder."""
    return subprocess.run([*SEGUE, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_scenario_of_ones_own_begins_as_one_that_runs(tmp_path: Path, template: str) -> None:
    done = run_in(tmp_path, "new", "my-walk", "--template", template)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "my-walk.toml").read_text(encoding="utf-8")
    assert text.startswith("#:schema ./segue.schema.json\n")
    assert json.loads((tmp_path / "segue.schema.json").read_text(encoding="utf-8")) == WHOLE
    VALIDATOR.validate(tomllib.loads(text))
    checked = run_in(tmp_path, "check", "my-walk.toml")
    assert (checked.stdout, checked.returncode) == ("my-walk.toml: can be run\n", 0), "no warnings either"
    run = segue.run(tmp_path / "my-walk.toml")
    assert run.metrics.scenario == "my-walk"
    assert run.metrics.handovers, "there is something to see"
    assert not run.metrics.warnings


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine", encoding="utf-8")
    done = run_in(tmp_path, "new", "mine")
    assert (done.returncode, done.stderr) == (
        2,
        "segue: mine.toml: is there already: expected another name, or --force\n",
    )
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == "mine"
    assert run_in(tmp_path, "new", "mine.toml", "--force").returncode == 0
    assert run_in(tmp_path, "new", "no/such/place").returncode == 2


def test_everything_that_is_wrong_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    text = (ROOT / "scenarios" / "templates" / "two-cells.toml").read_text(encoding="utf-8")
    text = text.replace('speed = "2 m/s"', "speed = 2").replace("hysteresis", "histeresis")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    done = run_in(tmp_path, "check", "mine.toml")
    lines = done.stderr.splitlines()
    line = {
        word: number
        for number, row in enumerate(text.splitlines(), 1)
        for word in ["speed", "hist"]
        if row.startswith(word)
    }
    assert done.returncode == 2
    assert lines[0].startswith(f"mine.toml:{line['speed']}:1: mobile.speed: `2` has no unit")
    assert lines[1].startswith(
        f"mine.toml:{line['hist']}:1: handover.histeresis: unknown key: did you mean `hysteresis`?"
    )
    assert lines[2:] == ["segue: mine.toml: 2 faults"]


def test_what_is_required_says_unless_what() -> None:
    unless = {key.key: key.unless for key in keys() if key.required}
    assert [unless[key] for key in ("mobile.from", "mobile[].speed", "link[].rate")] == [
        "mobility",
        "mobility",
        "technology",
    ]
    assert unless["link[].between"] is None
    assert unless["mobile.host"] is None


@pytest.mark.parametrize("wrong", ["link.rte", "link.0.rte", "mobile.sped"])
def test_a_key_of_an_entry_that_is_none_is_no_name_of_an_entry(wrong: str) -> None:
    with pytest.raises(segue.ScenarioError, match="no scenario has such a key: did you mean"):
        find(wrong)


HINTS = [
    (template, shlex.split(command)[3:])
    for template in TEMPLATES
    for line in (ROOT / "scenarios" / "templates" / f"{template}.toml").read_text(encoding="utf-8").splitlines()
    if (command := line.removeprefix("#").partition("  #")[0].strip()).startswith("segue run ")
]


@pytest.mark.parametrize(("template", "options"), HINTS, ids=str)
def test_what_a_template_hints_at_runs_without_dead_flows(template: str, options: list[str]) -> None:
    done = run_in(ROOT, "run", f"templates/{template}", *options, "--json")
    assert done.returncode == 0, done.stderr
    flows = json.loads(done.stdout)["flows"]
    assert flows
    assert [flow["id"] for flow in flows if flow["state"] != "active"] == []


def test_two_cells_with_a_scheme_and_a_transport_of_the_hints_begins_with_an_address() -> None:
    run = segue.run("templates/two-cells", {"scheme": "ilnp-soft", "application.0.transport": "udp"})
    assert run.metrics.packets_lost_to_handover + run.metrics.packets_lost_otherwise == 0


def test_a_file_is_meant_by_its_name_without_the_end(tmp_path: Path) -> None:
    assert run_in(tmp_path, "new", "my-walk").returncode == 0
    for command in ("run", "check"):
        done = run_in(tmp_path, command, "my-walk")
        assert (done.returncode, done.stderr) == (
            2,
            "segue: my-walk: no such file or scenario: did you mean my-walk.toml?\n",
        )
    done = run_in(tmp_path, "check", "nofile.toml")
    assert done.returncode == 2
    assert "did you mean" not in done.stderr


def test_what_only_real_hosts_can_run_is_told_by_check(tmp_path: Path) -> None:
    text = (ROOT / "scenarios" / "templates" / "two-cells.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(text.replace('scheme = "sigma"', 'scheme = "quic"'), encoding="utf-8")
    done = run_in(tmp_path, "check", "mine.toml")
    refused = run_in(tmp_path, "run", "mine.toml").stderr.removeprefix("segue: ")
    assert "has no model" in refused
    assert refused in done.stdout
    assert "can be run\n" not in done.stdout


def test_multipath_uses_both_networks_whenever_there_are_two_and_failover_fails_over() -> None:
    packets = segue.run("templates/multipath").packets
    data = packets.filter((pl.col("node") == "laptop") & (pl.col("action") == "received") & pl.col("tsn").is_not_null())
    for begin, end, networks in [(5, 20, 2), (21, 35, 1), (40, 60, 2)]:
        between = data.filter(pl.col("time_ns").is_between(begin * 10**9, end * 10**9))
        assert between["destination"].n_unique() == networks, (begin, end)
    one = segue.run("templates/multipath", {"scheme": "failover"}, trace=False).metrics
    assert [20 < handover.time_s < 35 for handover in one.handovers] == [True]
