"""The command, in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import click
import polars as pl
import pytest

import segue as package
from command import Segue
from segue.cli.program import find_program
from segue.scenarios import scenarios

SHORT = ("--set", "duration=20 s")
HEAVY = ("polars", "matplotlib", "rich", "pydantic", "numpy", "pyarrow", "asyncio")


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


def find_lab() -> str | None:
    try:
        return find_program("segue-lab")
    except click.ClickException:
        return None


def test_help_and_version(segue: Segue) -> None:
    result = segue("--help")
    assert result.returncode == 0
    for command in ("analyze", "run", "reproduce", "scenarios"):
        assert command in result.stdout
    assert segue("--version").stdout == f"segue {package.__version__}\n"


def test_start_up_imports_nothing_heavy(segue: Segue) -> None:
    del segue
    code = "import sys; import segue.cli.app; print(' '.join(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "segue._native" in modules
    assert sorted({module.partition(".")[0] for module in modules} & set(HEAVY)) == []


def test_json_is_exactly_one_document(segue: Segue) -> None:
    result = segue("run", "papers/sigma", *SHORT, "--seed", "3", "--json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    for key in (
        "handovers",
        "handover_latency_s",
        "loss_rate",
        "throughput_bps",
        "packets_sent",
        "event_log_hash",
        "events",
    ):
        assert key in document
    assert document["seed"] == 3
    [first, *_] = document["handovers"]
    assert {"time", "from", "to", "latency_s", "lost_packets"} <= set(first)
    assert set(document["handover_latency_s"]) >= {"median", "min", "max"}


def test_two_processes_give_the_same_hash(segue: Segue) -> None:
    hashes = {json.loads(segue("run", "sigma", *SHORT, "--json").stdout)["event_log_hash"] for _ in range(2)}
    assert len(hashes) == 1


def test_table_is_for_people(segue: Segue) -> None:
    result = segue("run", "sigma", *SHORT)
    assert result.returncode == 0
    assert "throughput" in result.stdout
    assert "\x1b[" not in result.stdout


def test_a_transfer_is_in_the_table_and_the_report(segue: Segue, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    result = segue("run", "cmt", "--set", "file_size=1 MB", "--report", report)
    assert result.returncode == 0, result.stderr
    for text in (result.stdout, report.read_text()):
        assert "transfer time" in text
        assert "in theory" in text
        assert "ran1" in text


def test_parts_of_a_handover_are_in_the_table_and_the_report(segue: Segue, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    result = segue("run", "vertical", "--set", "case=gprs-lan", "--report", report)
    assert result.returncode == 0, result.stderr
    for text in (result.stdout, report.read_text()):
        for part in ("t_d", "t_c", "t_r", "t_a"):
            assert part in text
    assert "Handovers" in report.read_text()


def test_run_writes_captures_frames_and_report(segue: Segue, tmp_path: Path) -> None:
    result = segue(
        "run", "sigma", *SHORT, "--pcap", tmp_path / "p", "--trace", tmp_path / "t", "--report", tmp_path / "r.html"
    )
    assert result.returncode == 0, result.stderr
    assert {path.suffix for path in (tmp_path / "p").iterdir()} == {".pcapng"}
    assert pl.read_parquet(tmp_path / "t" / "packets.parquet").height > 100
    assert json.loads((tmp_path / "t" / "metrics.json").read_text())["scenario"] == "sigma"
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]


def test_conditions_set_the_exit_status_and_are_test_cases(segue: Segue, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    kept = segue("run", "papers/sigma", *SHORT, "--assert", "dead_flows == 0", "--assert", "lost < 1000000")
    assert kept.returncode == 0, kept.stderr
    assert kept.stderr.count(": holds: ") == 2
    broken = segue(
        "run", "papers/sigma", *SHORT, "--set", 'assert=["throughput > 1 kbit/s"]',
        "--assert", "throughput > 1 Gbit/s", "--json", "--junit", str(junit),
    )  # fmt: skip
    assert broken.returncode == 1
    throughput = json.loads(broken.stdout)["throughput_bps"]
    said = broken.stderr.splitlines()[-2:]
    assert said == [
        f"segue: throughput > 1 kbit/s: holds: {throughput / 1e6:.3f} Mbit/s",
        f"segue: throughput > 1 Gbit/s: does not hold: {throughput / 1e6:.3f} Mbit/s",
    ]
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib == {
        "name": "segue run", "tests": "2", "failures": "1", "errors": "0", "time": "20.000"
    }  # fmt: skip
    held, failed = suite
    assert (held.get("name"), list(held)) == ("throughput > 1 kbit/s", [])
    assert [child.get("message") for child in failed] == [said[1].removeprefix("segue: ")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--assert", "interruption < 50"), "--assert `interruption < 50`: `50`: expected a time such as 50 ms\n"),
        (("--set", 'assert=["loss > 2"]'), "expected a share such as 1 %\n"),
        (("--set", 'assert="loss > 2 %"'), "expected a list, in brackets\n"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused(segue: Segue, arguments: tuple[str, str], expected: str) -> None:
    assert one_line(segue("run", "papers/sigma", *arguments)).endswith(expected)


def test_lab_lists_what_it_does(segue: Segue) -> None:
    if find_lab() is None:
        pytest.skip("segue-lab is not built")
    said = segue("lab", "--help")
    assert said.returncode == 0, said.stderr
    assert [command for command in ("run", "compare") if f"\n  {command} " not in said.stdout] == []
    assert segue("lab", "compare", "--help").stdout.startswith("Usage: segue lab compare")


def test_scenarios_are_listed_and_shown(segue: Segue) -> None:
    listed = segue("scenarios", "list").stdout
    assert "papers/sigma" in listed
    for scenario in scenarios():
        assert segue("scenarios", "show", scenario.name).stdout == scenario.text


def test_unknown_scenario_is_refused_with_the_nearest(segue: Segue) -> None:
    message = one_line(segue("run", "sigam"))
    assert "sigam" in message
    assert "papers/sigma" in message
    assert "papers/sigma" in one_line(segue("scenarios", "show", "paper/sigma"))


def test_missing_file_is_refused(segue: Segue, tmp_path: Path) -> None:
    message = one_line(segue("run", tmp_path / "nothing.toml"))
    assert "nothing.toml" in message
    assert "no such file" in message


def test_directory_is_refused(segue: Segue, tmp_path: Path) -> None:
    assert "directory" in one_line(segue("run", tmp_path))


def test_text_that_is_not_utf8_is_refused(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "caf\xe9"\n')
    message = one_line(segue("run", path))
    assert "latin.toml" in message
    assert "UTF-8" in message


def test_file_that_is_not_toml_is_refused(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("this is no toml\nat all")
    message = one_line(segue("run", path))
    assert "bad.toml" in message
    assert "TOML" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file_is_refused(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "secret.toml"
    path.write_text("")
    path.chmod(0)
    assert "secret.toml" in one_line(segue("run", path))


@pytest.mark.parametrize("setting", ["l2.latency", "=5", "", "  =x"])
def test_setting_without_a_key_or_value_is_refused(segue: Segue, setting: str) -> None:
    assert "KEY=VALUE" in one_line(segue("run", "sigma", "--set", setting))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("mobile.sped=5 m/s", ["sped", "speed"]),
        ("mobile.speed=5", ["mobile.speed"]),
        ("l2.latency=200", ["l2.latency"]),
        ("l2.latency=-1 ms", ["l2.latency"]),
        ("handover.policy=hope", ["handover.policy", "signal"]),
        ("duration=", ["duration"]),
    ],
)
def test_wrong_setting_is_refused_by_key(segue: Segue, setting: str, words: list[str]) -> None:
    message = one_line(segue("run", "sigma", "--set", setting))
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("scenario", "setting", "message"),
    [
        (
            "papers/cmt",
            "parameters.rbuf=5",
            "--set parameters.rbuf=5: rbuf: `5` has no unit: expected a size with a unit",
        ),
        ("papers/cmt", "queue.packets=1.5", "--set queue.packets=1.5: is 1.5 packets: expected a whole number"),
        ("papers/cmt", "t_dwel=10 s", "--set t_dwel=10 s: unknown key: did you mean `t_dwell`?"),
        ("papers/cmt", "rto.mim=1 s", "--set rto.mim=1 s: unknown key: did you mean `rto.min`?"),
        ("papers/cmt", "t_dwell=10", "--set t_dwell=10: `10` has no unit: expected a duration"),
        ("papers/cmt", "t_dwell=-1 s", "--set t_dwell=-1 s: `-1 s` is negative"),
        ("papers/cmt", "rto.min=100 s", "--set rto.min=100 s: expected at most rto_max, 60 s"),
        ("papers/sigma", "link.0.loss=0.1", "expected a table such as { model ="),
        ("papers/vertical", "cell.0.technology=wlan", "`wlan-802.11b`, `wlan-802.11g` or `wlan-802.11n`?)"),
        ("papers/sigma", "l2.latency=8 s..7 s", "`8 s..7 s`: expected a range with the shorter duration first"),
        ("papers/vertical", "cell.0.present=20 s..10 s", "`20 s..10 s`: expected a window that ends after it begins"),
        ("papers/vertical", "host.mn.technologies=gprs", 'technologies: `"gprs"`: expected a list such as ["lan"]'),
        (
            "papers/sigma",
            "application.0.start=1000 s",
            "--set application.0.start=1000 s: expected a time before `duration`, 500 s",
        ),
        (
            "papers/vertical",
            "scheme=cmt",
            'scheme: "cmt" carries TCP in `segue lab run` alone: expected an [[application]] with transport = "sctp"',
        ),
        ("papers/cmt", "scheme=mip6", "--set scheme=mip6: moves hosts from [[cell]] to [[cell]]: expected [mobile]"),
    ],
)
def test_what_makes_no_sense_is_refused_in_plain_words(segue: Segue, scenario: str, setting: str, message: str) -> None:
    assert message in one_line(segue("run", scenario, "--set", setting))


@pytest.mark.parametrize("option", ["--pcap", "--trace", "--report"])
def test_output_that_cannot_be_written_is_refused_before_the_run(segue: Segue, tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    started = time.monotonic()
    message = one_line(segue("run", "sigma", "--set", "duration=100000 s", option, tmp_path / "file" / "x.html"))
    assert "file" in message
    assert time.monotonic() - started < 10


def test_a_report_into_a_directory_that_is_not_there_is_refused_before_the_run(segue: Segue, tmp_path: Path) -> None:
    report = tmp_path / "nowhere" / "r.html"
    forever = ("--set", "duration=100000 s")
    message = one_line(segue("run", "sigma", *forever, "--report", report))
    assert message == f"segue: {report}: expected a directory that is there, not {tmp_path / 'nowhere'}\n"
    capture = tmp_path / "x.pcapng"
    capture.write_bytes(b"")
    for option, name in (("--report", "r.html"), ("--out", "h.csv"), ("--out", "h.parquet")):
        assert "a directory that is there" in one_line(segue("analyze", capture, option, tmp_path / "nowhere" / name))
    assert [path.name for path in tmp_path.iterdir()] == ["x.pcapng"]
    # One that is made for captures or frames is there in time, and so are those above it.
    for option in ("--pcap", "--trace"):
        places = (option, tmp_path / option / "more", "--report", tmp_path / option / "r.html")
        assert segue("run", "sigma", *SHORT, *places).returncode == 0


@pytest.mark.parametrize("option", ["--pcap", "--trace"])
def test_a_directory_that_takes_no_files_is_told_of_as_it_is(segue: Segue, option: str) -> None:
    message = one_line(segue("run", "sigma", *SHORT, option, "/proc/foo"))
    assert message == "segue: /proc/foo: cannot be made in /proc: it takes no files\n"
    assert "segue: /proc: " in one_line(segue("run", "sigma", *SHORT, "--report", "/proc/r.html"))


def test_no_message_has_the_numbers_of_the_system(segue: Segue, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    trace = f'link.0.trace={{ file = "{nothing}", format = "csv" }}'
    for arguments in (("analyze", nothing), ("analyze", tmp_path), ("run", "sigma", "--set", trace)):
        message = one_line(segue(*arguments))
        assert "os error" not in message
        assert any(words in message for words in ("No such file or directory", "Is a directory")), message


def test_report_may_not_be_a_directory(segue: Segue, tmp_path: Path) -> None:
    assert "directory" in one_line(segue("run", "sigma", *SHORT, "--report", tmp_path))


def test_a_report_has_the_name_of_a_page(segue: Segue, tmp_path: Path) -> None:
    (tmp_path / "c.pcapng").write_bytes(b"")
    report = tmp_path / "r.pdf"
    for arguments in (("run", "sigma", "--set", "duration=100000 s"), ("analyze", tmp_path / "c.pcapng")):
        message = one_line(segue(*arguments, "--report", report))
        assert message == f"segue: {report}: expected a name that ends in .html or .htm\n"
    assert segue("run", "sigma", *SHORT, "--report", tmp_path / "r.HTM").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [("fly",), ("run",), ("run", "sigma", "--sed", "3"), ("run", "sigma", "--seed", "x"), ("reproduce", "x")],
)
def test_wrong_command_line_is_one_line(segue: Segue, arguments: tuple[str, ...]) -> None:
    one_line(segue(*arguments))


def test_reproduce_into_a_file_is_refused(segue: Segue, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in one_line(segue("reproduce", "sigma", "--quick", "--out", tmp_path / "file"))


def interrupt(*arguments: str | Path, after_s: float) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", "from segue.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def test_ctrl_c_ends_a_run_cleanly() -> None:
    result = interrupt("run", "sigma", "--set", "duration=1000000 s", after_s=1.0)
    assert result.returncode == 130
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("after_s", [0.6, 1.5, 3.0])
def test_interrupted_reproduce_leaves_whole_files_only(tmp_path: Path, after_s: float) -> None:
    result = interrupt("reproduce", "sigma", "--seeds", "40", "--out", tmp_path, after_s=after_s)
    assert result.returncode == 130
    assert "Traceback" not in result.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in left if path.name.startswith(".") or path.name.endswith(".part")]
    assert tmp_path / "claims.json" not in left
    assert tmp_path / "report.html" not in left


def test_closed_pipe_is_no_error() -> None:
    code = "from segue.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "scenarios", "show", "sigma"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.wait(timeout=20)
    process.stderr.close()
    assert errors == b""


@pytest.mark.parametrize(
    ("before", "word"),
    [
        (("run", "sigma", "--set"), "l2.latency=VALUE"),
        (("run",), "VALUE.toml"),
        (("sweep", "sigma", "--grid", "l2.latency=1ms,2ms", "--metric"), "VALUE"),
        (("sweep", "sigma", "--grid", "l2.latency=1ms,2ms", "--until"), "VALUE"),
        (("compare", "mip6", "sigma", "--scenario"), "VALUE"),
        (("analyze",), "VALUE.pcapng"),
    ],
)
def test_long_values_are_cut_in_what_is_wrong_with_them(segue: Segue, before: tuple[str, ...], word: str) -> None:
    done = segue(*before, word.replace("VALUE", 20_000 * "x"))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert 100 < line.count("x") < 300
    assert "\N{HORIZONTAL ELLIPSIS}" in line
    assert "expected" in line or "File name too long" in line or "unknown" in line or "no such" in line


def test_setting_that_is_not_utf8_is_one_line(segue: Segue) -> None:
    assert "expected UTF-8" in one_line(segue("run", "sigma", "--set", "name=\udcff"))


def test_two_applications_that_one_host_would_serve_are_refused(segue: Segue) -> None:
    both = '[{kind="bulk",from="cn",to="mh"},{kind="bulk",from="mh",to="cn"}]'
    assert "application[1]" in one_line(segue("run", "sigma", "--set", f"application={both}"))


def test_a_terminal_without_the_letters_gets_others() -> None:
    words = ["from segue.cli import main; main()", "run", "papers/sigma", *SHORT, "--set", "name=d\u00fcnn"]
    ran = subprocess.run(
        [sys.executable, "-c", *words],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 0, ran.stderr
    assert "d?nn" in ran.stdout
