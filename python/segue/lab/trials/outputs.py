"""Files of a comparison: table as CSV and JSON, figure, JUnit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from xml.etree import ElementTree

from segue.lab.trials.results import Estimate, Result, Row, verdicts
from segue.output import write_file

NOTE = (
    "Medians of the runs that were not too late. Interruption: the longest time without new data around a handover, in "
    "an outage or around the event, less the time between two messages of the application. Where `median_censored` is "
    "true it is a lower bound: the flow was dead to the end. What was through before anything happened is counted in "
    "`ended_before`, and has none."
)
NOT_JUDGED = "conditions are not for this scheme, whose figures are what programs read"
_ESTIMATES = ("interruption_ms", "lost", "before_bps", "after_bps", "predicted_ms")


def write_table(directory: Path, results: Sequence[Result], rows: Sequence[Row]) -> list[Path]:
    """`compare.csv`, `compare.json` and the figure `compare.svg` and `compare.png`."""
    from segue.figures.style import render
    from segue.figures.trials import comparison

    picture = render(comparison(rows))
    return [
        write_file(directory / "compare.csv", as_csv(rows)),
        write_file(directory / "compare.json", as_json(results, rows)),
        write_file(directory / "compare.svg", picture.svg),
        write_file(directory / "compare.png", picture.png),
    ]


def as_json(results: Sequence[Result], rows: Sequence[Row]) -> str:
    """One document: the rows, and how each run was."""
    runs = [
        {
            "scheme": one.combination.scheme,
            "event": one.combination.event,
            "run": number,
            "seed": run.metrics.seed,
            "too_late": run.too_late,
            "share_late": run.share_late,
            "failed_programs": sorted(run.failed),
            "conditions": [asdict(verdict) for verdict in verdicts(run, one.combination)],
        }
        for one in results
        for number, run in enumerate(one.runs, 1)
    ]
    return json.dumps({"note": NOTE, "rows": [asdict(row) for row in rows], "runs": runs}, indent=1) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """A line per row; an estimate is its median, least and greatest, and whether the median is a bound."""
    names: list[str] = []
    for field in fields(Row):
        ends = ("", "_low", "_high", "_censored") if field.name in _ESTIMATES else ("",)
        names += [field.name + end for end in ends]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells: list[object] = []
        for field in fields(Row):
            value = getattr(row, field.name)
            if field.name in _ESTIMATES:
                cells += _cells(value)
            else:
                cells.append("" if value is None else value)
        writer.writerow(cells)
    return text.getvalue()


def as_junit(results: Sequence[Result], *, conditions: Sequence[str] = ()) -> str:
    """A test case per combination: failed if a condition does not hold of a run, an error if all runs were too late.

    Skipped if there are conditions and the scheme is one that they are not for.
    """
    suite = ElementTree.Element("testsuite", name="segue lab compare", tests=str(len(results)))
    failures = errors = skipped = 0
    seconds = 0.0
    for one in results:
        combination = one.combination
        took = combination.duration_s * len(one.runs)
        seconds += took
        case = ElementTree.SubElement(
            suite, "testcase", classname=combination.scheme, name=combination.event, time=f"{took:.3f}"
        )
        late = len(one.runs) - len(one.usable)
        if one.refuted:
            failures += 1
            failure = ElementTree.SubElement(case, "failure", message=one.refuted[0])
            failure.text = "\n".join(one.refuted)
        elif not one.usable:
            errors += 1
            ElementTree.SubElement(case, "error", message=f"all {late} runs were too late for figures")
        elif conditions and combination.is_of_others:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=NOT_JUDGED)
        if late:
            ElementTree.SubElement(
                case, "system-out"
            ).text = f"{late} of {len(one.runs)} runs were too late, and not used"
    suite.set("failures", str(failures))
    suite.set("errors", str(errors))
    suite.set("skipped", str(skipped))
    suite.set("time", f"{seconds:.3f}")
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _cells(estimate: Estimate | None) -> list[object]:
    if estimate is None:
        return [""] * 4
    return [estimate.median, estimate.low, estimate.high, str(estimate.median_censored).lower()]
