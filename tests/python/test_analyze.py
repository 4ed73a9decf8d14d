"""`segue analyze`: the command and the function, on good captures and bad ones."""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import segue as package
from capture_files import ETHERNET, Way, download, pcap, pcapng, udp, wireguard_data
from command import Segue
from segue import CaptureError, analyze, explain
from segue.cli.findings import print_findings
from segue.findings import Findings, TrafficHandover
from segue.report.analysis import write_analysis_report
from test_cli import one_line

SILENCE_S = 0.4
GAP_S = 0.005
# The first packet after the move comes so long after the last before it.
MOVED_S = SILENCE_S + GAP_S


@pytest.fixture(scope="module")
def moving() -> bytes:
    """A TCP download that goes from wlan0 to lte0 after a silence."""
    return pcapng(download(Way()), ("wlan0", "lte0"))


@pytest.fixture
def capture(tmp_path: Path, moving: bytes) -> Path:
    path = tmp_path / "mn.pcapng"
    path.write_bytes(moving)
    return path


@pytest.fixture(scope="module")
def simulated() -> package.Run:
    return package.run("sigma", {"duration": "60 s"}, trace=False, pcap=True)


def test_a_move_to_another_interface_is_found(moving: bytes) -> None:
    analysis = analyze(("mn.pcapng", moving))
    [handover] = analysis.findings.handovers
    assert handover.kind == "interface"
    assert handover.interruption_s == pytest.approx(MOVED_S, abs=1e-6)
    assert handover.latency_s == pytest.approx(MOVED_S, abs=1e-6)
    # Before it, the flow had lasted for less than the window.
    for throughput_bps in (handover.throughput_before_bps, handover.throughput_after_bps):
        assert throughput_bps == pytest.approx(1000 * 8 / GAP_S, rel=0.02)
    flow = analysis.findings.flow(handover.flow)
    assert (flow.protocol, str(flow.a), str(flow.b)) == ("tcp", "[2001:db8:1::2]:40000", "[2001:db8:c::2]:443")
    assert flow.direction(handover.direction).useful_bytes == 400_000
    assert explain.moved(handover, flow) == ("wlan0", "lte0")
    assert "another interface" in explain.reason(handover, analysis.findings)


def test_what_limits_cut_off_is_said(moving: bytes) -> None:
    analysis = analyze(("mn.pcapng", moving))
    [handover] = analysis.findings.handovers
    assert handover.adaptation is not None
    assert not handover.adaptation.is_capped
    assert analysis.handovers["t_a_is_capped"].to_list() == [False]
    assert "hour" not in explain.until_full_speed(handover)
    capped = replace(handover, adaptation=replace(handover.adaptation, is_capped=True))
    assert "hour" in explain.until_full_speed(capped)
    [speed] = [text for name, text in explain.story(capped, analysis.findings, None) if name == "speed"]
    assert "hour" in speed
    assert not any("PARTIAL" in note for note in explain.notes(analysis.findings))
    evicted = replace(analysis.findings, flows_evicted=7)
    [note] = [note for note in explain.notes(evicted) if "PARTIAL" in note]
    assert "7 made room" in note
    full = replace(analysis.findings, limits={"packets-captured-twice": 400, "copies": 3})
    [note] = [note for note in explain.notes(full) if "PARTIAL" in note]
    assert "copies, 3 times" in note
    assert any(note.startswith("400 packets were captured on two interfaces") for note in explain.notes(full))


def test_flows_of_one_packet_have_no_points_and_that_is_no_error() -> None:
    header = "d4c3b2a1020004000000000000000000ffff00000100000000000000000000003400000034000000" + "00" * 12 + "0800"
    packet = "450000260000000040110000010101010202020203e8003500120000" + "78" * 10
    analysis = analyze(("dns.pcap", bytes.fromhex(header + packet)), series=True)
    assert analysis.flows.height == 2
    assert analysis.gaps.is_empty()
    assert analysis.segments.is_empty()
    with pytest.raises(ValueError, match="series=False"):
        _ = analyze(("dns.pcap", bytes.fromhex(header + packet))).gaps


def test_a_silence_in_which_nothing_was_held_up_may_be_the_applications(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = package.run("browse", {"duration": "20 s"}, trace=False, pcap=True)
    ends = [capture for capture in run.captures() if Path(capture[0]).stem in ("phone", "server")]
    analysis = analyze(*ends, series=True)
    findings = analysis.findings
    handover = findings.handovers[0]
    assert handover.interruption_s > 5
    # The run knows that somebody was reading.
    assert run.metrics.interruption_s is not None
    assert run.metrics.interruption_s.max < 0.1

    def said(handover: TrafficHandover) -> str:
        return dict(explain.story(handover, findings, None))["silence"]

    assert "perhaps none was to send" in said(handover)
    assert handover.ends is not None
    for other in (
        replace(handover, ends=None),
        replace(handover, ends=replace(handover.ends, lost_packets=1)),
        replace(handover, ends=replace(handover.ends, retransmissions=1)),
        replace(handover, interruption_s=0.19),
    ):
        assert "perhaps" not in said(other)
    assert "perhaps none was to send" in write_analysis_report(analysis, tmp_path / "r.html").read_text()
    # many handovers are a row each, with the reason where there is room
    monkeypatch.setenv("COLUMNS", "200")
    print_findings(replace(findings, handovers=(handover,) * 4))
    assert "perhaps none" in " ".join(capsys.readouterr().out.split())


def test_without_a_move_a_silence_is_a_pause() -> None:
    findings = analyze(("mn.pcap", pcap((at, data) for at, _, data in download(Way())))).findings
    assert findings.handovers == ()
    [pause] = findings.interruptions
    assert pause.duration_s == pytest.approx(MOVED_S, abs=1e-6)
    assert not pause.ended_by_retransmission


def test_a_wireguard_peer_that_said_nothing_before_it_moved() -> None:
    server, homes = "2001:db8:c::2", ("2001:db8:1::2", "2001:db8:2::2")
    index, other = 0x1234, 0x5678
    packets = [(n * 0.01, udp(server, homes[0], wireguard_data(index, n, 640))) for n in range(100)]
    # A keepalive with an index that the capture has never seen, from an address that is new.
    packets.append((1.4, udp(homes[1], server, wireguard_data(other, 0, 0))))
    packets += [(1.401 + n * 0.01, udp(server, homes[1], wireguard_data(index, 100 + n, 640))) for n in range(100)]
    analysis = analyze(("wg.pcap", pcap(packets)))
    [handover] = analysis.findings.handovers
    assert handover.kind == "wireguard-endpoint"
    assert explain.moved(handover, analysis.findings.flow(handover.flow)) == homes
    assert handover.interruption_s == pytest.approx(0.411, abs=1e-6)


def test_simulated_handovers_are_found_in_both_captures(simulated: package.Run) -> None:
    # The mobile host first, which receives: times are those of its clock.
    analysis = analyze(*sorted(simulated.captures(), reverse=True))
    expected = simulated.metrics.handovers
    assert len(expected) > 2
    found = [h for h in analysis.findings.handovers if analysis.findings.flow(h.flow).protocol == "sctp"]
    assert [h.kind for h in found] == ["sctp-path"] * len(expected)
    start_s = analysis.findings.start_time_ns / 1e9
    for ours, theirs in zip(found, expected, strict=True):
        assert start_s + ours.time == pytest.approx(theirs.time_s, abs=1e-6)
        assert ours.latency_s == pytest.approx(theirs.latency_s, abs=1e-6)
    assert analysis.findings.clock_offset is not None
    assert "clock" in explain.clock_line(analysis.findings)


def test_json_is_exactly_one_document(segue: Segue, capture: Path) -> None:
    result = segue("analyze", capture, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1
    document = json.loads(result.stdout)
    assert document == json.loads(analyze(capture).json)
    assert set(Findings.__dataclass_fields__) <= set(document)
    [handover] = document["handovers"]
    assert {
        "flow",
        "kind",
        "time",
        "from",
        "to",
        "from_path",
        "layer",
        "host",
        "latency_s",
        "interruption_s",
        "adaptation",
    } <= set(handover)
    assert all(flow[way]["series"] is None for flow in document["flows"] for way in ("forward", "reverse"))


def test_table_is_for_people(segue: Segue, capture: Path) -> None:
    result = segue("analyze", capture)
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b[" not in result.stdout
    for words in ("1 handover", "wlan0", "lte0", f"{MOVED_S * 1e3:.0f} ms without new data", "why", "TCP"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 200


def test_many_handovers_make_a_table(segue: Segue, tmp_path: Path, simulated: package.Run) -> None:
    paths = []
    for name, content in simulated.captures():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
    result = segue("analyze", *paths)
    assert result.returncode == 0, result.stderr
    assert "full speed" in result.stdout
    assert "the clock of" in result.stdout


def test_no_handover_is_said(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "still.pcap"
    path.write_bytes(pcap((at, data) for at, _, data in download(Way(), silence_s=0)))
    assert "No handover" in segue("analyze", path).stdout


def test_out_is_one_parquet_file_or_all_in_a_directory(segue: Segue, capture: Path, tmp_path: Path) -> None:
    assert segue("analyze", capture, "--out", tmp_path / "h.parquet").returncode == 0
    frame = pl.read_parquet(tmp_path / "h.parquet")
    assert frame.equals(analyze(capture).handovers)
    assert frame["interruption_s"].to_list() == pytest.approx([MOVED_S])
    assert segue("analyze", capture, "--out", tmp_path / "all").returncode == 0
    names = {path.name for path in (tmp_path / "all").iterdir()}
    assert names == {"handovers.parquet", "flows.parquet", "paths.parquet", "outages.parquet",
                     "interruptions.parquet", "shares.parquet", "signals.parquet", "analysis.json"}  # fmt: skip
    assert json.loads((tmp_path / "all" / "analysis.json").read_text())["format"] == 2
    assert pl.read_parquet(tmp_path / "all" / "flows.parquet").height == 2


def test_report_is_one_file_that_asks_for_nothing(segue: Segue, capture: Path, tmp_path: Path) -> None:
    result = segue("analyze", capture, "--report", tmp_path / "r.html", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["flows"][0]["forward"]["series"] is None
    html = (tmp_path / "r.html").read_text()
    assert html.startswith("<!DOCTYPE html>")
    assert not re.search(r"(src|href)=\"(?!data:|#)", html)
    assert html.count("<figure>") == 4
    for words in ("wlan0", "lte0", f"{MOVED_S * 1e3:.1f}", "Timeline", "Flow 0: TCP"):
        assert words in html


def test_frames_of_points(moving: bytes) -> None:
    analysis = analyze(("mn.pcapng", moving), series=True)
    own = analysis.throughput.filter(pl.col("bytes") > 0)
    assert own["bytes"].sum() == 400_000
    assert analysis.segments["mark"].unique().to_list() == ["new"]
    assert analysis.segments["path"].n_unique() == 2
    with pytest.raises(ValueError, match="series=False"):
        _ = analyze(("mn.pcapng", moving)).throughput


# Bad input.


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.pcap", b"", "empty"),
        ("text.pcap", b"this is no capture at all, it is text\n" * 20, "expected a pcap or pcapng capture"),
        ("magic.pcap", bytes(range(64)), "expected a pcap or pcapng capture"),
        ("header.pcap", b"\xd4\xc3\xb2\xa1\x02\x00", "header"),
        ("byte.pcap", b"\x0a", "expected a pcap or pcapng capture"),
        ("section.pcapng", b"\x0a\x0d\x0d\x0a\x1c\x00", "section header"),
        ("packed.pcap.gz", gzip.compress(b"x" * 100, mtime=0), "expected a pcap or pcapng capture"),
        ("twice.gz.gz", gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "compressed twice (gzip)"),
    ],
)
def test_what_is_no_capture_is_refused_in_one_line(
    segue: Segue, tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    message = one_line(segue("analyze", path))
    assert name in message
    assert words in message
    with pytest.raises(CaptureError, match=re.escape(words)):
        analyze(path)


def test_what_cannot_be_read_is_refused(segue: Segue, tmp_path: Path, capture: Path) -> None:
    assert "nothing.pcap" in one_line(segue("analyze", tmp_path / "nothing.pcap"))
    assert "directory" in one_line(segue("analyze", tmp_path)).lower()
    assert "nothing.pcap" in one_line(segue("analyze", capture, tmp_path / "nothing.pcap"))
    assert "3" in one_line(segue("analyze", capture, capture, capture))
    assert "MN" in one_line(segue("analyze"))


def test_name_that_is_not_utf8(segue: Segue, tmp_path: Path, moving: bytes) -> None:
    path = tmp_path / "caf\udce9.pcapng"
    path.write_bytes(moving)
    assert segue("analyze", path).returncode == 0


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_output_that_cannot_be_written_is_refused(segue: Segue, capture: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in one_line(segue("analyze", capture, option, tmp_path / "file" / "x.parquet"))
    (tmp_path / "x.parquet").mkdir()
    assert "directory" in one_line(segue("analyze", capture, option, tmp_path / "x.parquet"))


def test_one_capture_given_twice_is_refused(segue: Segue, capture: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.pcapng"
    link.symlink_to(capture)
    for other in (capture, link):
        assert "given twice" in one_line(segue("analyze", capture, other))


def test_captures_without_a_packet_in_common_are_said(segue: Segue, capture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcapng"
    other.write_bytes(pcapng(download(Way(client="2001:db8:7::2", client_port=7)), ("wlan0", "lte0")))
    assert "have no packets in common" in " ".join(segue("analyze", capture, other).stdout.split())
    assert "in common" not in segue("analyze", capture).stdout


def test_a_capture_is_not_replaced_by_its_report(segue: Segue, tmp_path: Path, capture: Path) -> None:
    named = tmp_path / "capture.html"
    named.write_bytes(capture.read_bytes())
    assert "is read itself" in one_line(segue("analyze", named, "--report", named))
    assert named.read_bytes() == capture.read_bytes()


def test_a_capture_that_breaks_off_is_analysed_as_far_as_it_goes(segue: Segue, tmp_path: Path, moving: bytes) -> None:
    path = tmp_path / "broken.pcapng"
    path.write_bytes(moving[:-10])
    result = segue("analyze", path)
    assert result.returncode == 0
    assert "PARTIAL" in result.stdout
    assert "1 handover" in result.stdout
    [capture] = json.loads(segue("analyze", path, "--json").stdout)["captures"]
    assert capture["partial"]["offset"] > 0
    assert segue("analyze", path, "--report", tmp_path / "r.html").returncode == 0
    assert "PARTIAL" in (tmp_path / "r.html").read_text()
    assert analyze(path).findings.is_partial


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_capture_without_packets(segue: Segue, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"none.{form}"
    path.write_bytes(pcap([]) if form == "pcap" else pcapng([], ("eth0",)))
    result = segue("analyze", path, "--report", tmp_path / "r.html", "--out", tmp_path / "h.parquet")
    assert (result.returncode, result.stderr) == (0, "")
    assert "has no packets" in " ".join(result.stdout.split())
    assert pl.read_parquet(tmp_path / "h.parquet").height == 0


def test_packets_cut_short_are_said(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "short.pcap"
    path.write_bytes(pcap(((at, data) for at, _, data in download(Way())), snap=80))
    result = segue("analyze", path)
    assert "400 packets are cut short" in " ".join(result.stdout.split())
    assert "400.0 kB" in result.stdout


def test_unknown_link_type_is_said(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "odd.pcap"
    path.write_bytes(pcap([(0.0, bytes(60))], link=147))
    result = segue("analyze", path)
    assert result.returncode == 0
    assert "147" in result.stdout


def test_raw_packets_that_are_said_to_be_ethernet(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "raw.pcap"
    path.write_bytes(pcap(((at, data) for at, _, data in download(Way())), link=ETHERNET))
    result = segue("analyze", path)
    assert result.returncode == 0
    assert "No flow" in result.stdout


def test_a_snap_length_leaves_numbers_as_they_are_or_says_that_they_are_not_known(segue: Segue, tmp_path: Path) -> None:
    packets = [(at, data) for at, _, data in download(Way(), silence_s=0)]
    whole = analyze(("mn.pcap", pcap(packets))).findings
    # raw IPv6: 40 bytes, and 20 of TCP
    cut = analyze(("mn.pcap", pcap(packets, snap=60))).findings
    assert (cut.flows, cut.handovers, cut.cut_flows) == (whole.flows, whole.handovers, ())
    assert cut.captures[0].truncated_packets > 0
    association = b"\x13\x88\x17\x70\x00\x00\x00\x09" + bytes(4) + b"\x00\x03\x00\x20" + bytes(28)
    sctp = [(at, bytes([*data[:6], 132, *data[7:40]]) + association * (len(data[40:]) // 44)) for at, data in packets]
    path = tmp_path / "mn.pcap"
    path.write_bytes(pcap(sorted([*packets, *sctp], key=lambda packet: packet[0]), snap=60))
    mixed = analyze(path).findings
    assert mixed.flows == whole.flows
    [unknown] = mixed.cut_flows
    assert unknown.protocol == "sctp"
    assert unknown.needed_bytes > 60
    result = segue("analyze", path, "--json")
    assert result.stderr == f"segue: warning: {mixed.warnings[-1].text}\n"
    assert "nothing can be said of a flow" in result.stderr


def test_headers_that_are_cut_off_are_said(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "headers.pcap"
    path.write_bytes(pcap(((at, data) for at, _, data in download(Way())), snap=50))
    assert "803 cut off within their headers" in " ".join(segue("analyze", path).stdout.split())


def test_every_beginning_of_a_capture_is_an_error_or_a_result(moving: bytes) -> None:
    whole = analyze(("mn.pcapng", moving)).findings
    lengths = range(0, len(moving), 997)
    refused = partial = 0
    for length in lengths:
        try:
            findings = analyze(("mn.pcapng", moving[:length])).findings
        except CaptureError:
            refused += 1
            continue
        partial += findings.is_partial
        assert findings.captures[0].packets <= whole.captures[0].packets
    # Nothing but the file's header is cut off in the first; a few end between two records.
    assert refused == 1
    assert partial > 0.9 * len(lengths)


def test_damaged_captures_are_an_error_or_a_result(moving: bytes) -> None:
    number = random.Random(4)
    refused = 0
    for _ in range(300):
        damaged = bytearray(moving)
        for _ in range(number.randrange(1, 20)):
            damaged[number.randrange(len(damaged))] = number.randrange(256)
        try:
            analyze(("mn.pcapng", bytes(damaged)), series=True).frames()
        except CaptureError:
            refused += 1
    assert refused < 10


# Progress.


def test_progress_goes_from_nothing_to_all(moving: bytes) -> None:
    seen: list[tuple[int, int]] = []
    analyze(("mn.pcapng", moving), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(moving), len(moving))
    assert seen == sorted(seen)


def test_what_progress_raises_ends_the_analysis(moving: bytes) -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        analyze(("mn.pcapng", moving), progress=stop)
