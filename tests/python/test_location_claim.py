"""Claim S10 on made-up facts: those that meet it, and each way not to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from segue.papers.sigma.location import Call, Effect, Facts, Window, s10

EFFECT = Effect(handovers=1, lost=0, timeouts=0, delivered_bytes=1_000_000, signalling=("add-sent", "delete-sent"))
CALLS = (Call(-0.001, False, 0.03), Call(0.002, False, 0.03), Call(0.004, True, 0.03), Call(0.05, True, 0.03))
WINDOW = Window(delay_ms=20.0, ttl_s=None, update_s=0.046, calls=CALLS)
FACTS = Facts((EFFECT,), (EFFECT,), (EFFECT,), (WINDOW,), (replace(WINDOW, ttl_s=2),))


def test_a_decoupled_location_manager_meets_the_claim() -> None:
    claim = s10(FACTS)
    assert claim.holds
    assert "1 given the old one" in claim.measured
    assert "2 ms (update 46 ms, location manager 20 ms away)" in claim.note


@pytest.mark.parametrize(
    "effect",
    [
        replace(EFFECT, handovers=2),
        replace(EFFECT, lost=1),
        replace(EFFECT, timeouts=1),
        replace(EFFECT, delivered_bytes=990_000),
        replace(EFFECT, signalling=("add-sent",)),
    ],
)
def test_an_association_that_notices_fails_the_claim(effect: Effect) -> None:
    assert not s10(replace(FACTS, present=(effect,))).holds
    assert not s10(replace(FACTS, gone=(effect,))).holds


@pytest.mark.parametrize("call", [Call(0.05, False, 0.03), Call(0.05, True, None), Call(0.05, True, 3.1)])
def test_a_call_that_does_not_arrive_fails_the_claim(call: Call) -> None:
    assert not s10(replace(FACTS, windows=(replace(WINDOW, calls=(*CALLS[:3], call)),))).holds


def test_no_calls_are_no_evidence() -> None:
    assert not s10(replace(FACTS, windows=())).holds
    assert not s10(replace(FACTS, present=(), gone=(), without=())).holds
