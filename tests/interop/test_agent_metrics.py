"""The numbers that the agent serves: by a client and a parser that are Python's and Prometheus's own."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import lab
import pytest
from agents import World, identity, wait_until

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
# Connects within a namespace, and prints what comes.
CLIENT = """
import http.client, sys
connection = http.client.HTTPConnection("::1", 9477, timeout=5)
connection.request("GET", "/metrics")
response = connection.getresponse()
print(response.status, response.getheader("Content-Type"))
sys.stdout.write(response.read().decode())
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What a parser makes of a page."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families: list[Any] = list(parser.text_string_to_metric_families(text))
    assert all(family.name.startswith("segue_agent_") and family.documentation for family in families)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def test_a_scrape_has_the_handover_and_the_interfaces(machines: World) -> None:
    file = machines.configuration("mobile")
    file.write_text(file.read_text().replace("[ilnp]", 'metrics = "[::1]:9477"\n[ilnp]', 1))
    mobile = machines.hosts["mobile"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile", written=True))
        wait_until(lambda: agents.reaches(mobile, identity("peer")), "the peer")
        agent.move("eth1")
        wait_until(lambda: agent.status()["handovers"][-1].get("delay_s") is not None, "the end of the handover")
        scraped = subprocess.run(
            mobile.command(sys.executable, "-c", CLIENT), check=True, capture_output=True, text=True, timeout=lab.SOON
        )
        head, _, text = scraped.stdout.partition("\n")
        assert head == "200 application/openmetrics-text; version=1.0.0; charset=utf-8"
        found = samples(text)
        status = agent.status()

    def value(of: str, /, **labels: str) -> float:
        return found["segue_agent_" + of, frozenset(labels.items())]

    assert value("interface_in_use", interface="eth1") == 1
    assert value("interface_in_use", interface="eth0") == 0
    assert value("interface_up", interface="eth0") == 1
    assert value("locators", interface="eth1", state="active") == 1
    assert value("sessions", mode="ilnp") == 1
    assert value("handovers_total") == len(status["handovers"])
    assert value("handover_delay_seconds_count") >= 1
    assert value("handover_last_delay_seconds") == pytest.approx(status["handovers"][-1]["delay_s"])
    assert value("handover_delay_seconds_bucket", le="30.0") == value("handover_delay_seconds_count")
    assert value("events_total", part="packets", name="from_kernel") >= 2


def test_a_socket_of_the_file_system_does_too_and_a_crowd_is_borne(machines: World) -> None:
    at = machines.folder / "metrics.sock"
    file = machines.configuration("mobile")
    file.write_text(file.read_text().replace("[ilnp]", f'metrics = "{at}"\n[ilnp]', 1))
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(machines.agent("mobile", written=True))

        def connected() -> socket.socket:
            made = stack.enter_context(socket.socket(socket.AF_UNIX))
            made.settimeout(10)
            made.connect(str(at))
            return made

        crowd = [connected() for _ in range(30)]
        asks = connected()
        asks.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        # those who say nothing are let go after two seconds, eight at a time
        response = http.client.HTTPResponse(asks)
        response.begin()
        assert response.status == 200
        assert "segue_agent_info" in response.read().decode()
        assert agent.in_use() == "eth0"
        assert crowd[0].recv(1) == b""
    assert not at.exists()


def test_an_address_of_the_network_is_refused(tmp_path: Path) -> None:
    file = World(tmp_path).configuration("mobile")
    file.write_text(file.read_text().replace("[ilnp]", 'metrics = "[::]:9477"\n[ilnp]', 1))
    done = subprocess.run([agents.program(), "check", file], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "expected a loopback address and port" in done.stderr
