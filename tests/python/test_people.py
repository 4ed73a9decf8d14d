from __future__ import annotations

import json
from typing import Any

import synthetic
from segue import Metrics
from segue.people import people_rows
from segue.summary import headline


def of(**application: Any) -> Metrics:
    document = synthetic.metrics(applications=[{"application": 0, "from": "desk", "to": "phone", **application}])
    return Metrics.from_json(json.dumps(document))


def quality(mos: float | None, **more: Any) -> dict[str, Any]:
    r = None if mos is None else 20 * mos
    return {"frames": 500, "lost_frames": 20, "late_frames": 5, "r": r, "mos": mos, **more}


def spread(median: float, p95: float, *, censored: bool = False) -> dict[str, Any]:
    return {"median": median, "median_censored": False, "p95": p95, "p95_censored": censored}


def test_a_call_says_how_it_sounded_and_around_which_handover_it_was_worst() -> None:
    around = [quality(3.9, time=11.0), quality(2.25, time=36.5), quality(None, time=60.0)]
    metrics = of(kind="voice", handovers=around, **quality(4.2))
    assert people_rows(metrics) == [
        (
            "voice desk to phone",
            "MOS 4.20 (R 84.0); 25 of 500 frames not heard; worst around a handover: MOS 2.25 (R 45.0), at 36.500 s",
        )
    ]
    assert people_rows(metrics)[0] in headline(metrics)


def test_a_rating_of_losses_that_the_e_model_is_not_for_says_so() -> None:
    burst = {"is_extrapolated": True, "loss": 0.05, "burst_ratio": 23.75}
    metrics = of(kind="voice", handovers=[quality(2.25, time=36.5, **burst)], **quality(4.2, is_extrapolated=False))
    [(_, text)] = people_rows(metrics)
    whole, _, around = text.partition("; worst around a handover: ")
    assert "E-model" not in whole
    assert around == "MOS 2.25 (R 45.0), beyond the E-model: 5.0 % lost, BurstR 23.8, at 36.500 s"


def test_a_call_that_cannot_be_rated_says_so() -> None:
    [(_, text)] = people_rows(of(kind="voice", handovers=[], **quality(None)))
    assert text == "not rated; 25 of 500 frames not heard"


def test_pages_that_never_came_are_lower_bounds() -> None:
    pages = {"pages": 20, "loaded_pages": 19, "load_time_s": spread(0.4, 1.5, censored=True)}
    [(name, text)] = people_rows(of(kind="web", load_time_during_handovers_s=None, **pages))
    assert (name, text) == ("web desk to phone", "19 of 20 pages: median 0.40 s, 95th percentile ≥ 1.50 s")
    [(_, text)] = people_rows(of(kind="web", load_time_during_handovers_s=spread(2.0, 3.0), **pages))
    assert text.endswith("; met by a handover: median 2.00 s, 95th percentile 3.00 s")


def test_a_film_says_how_often_it_stood_still() -> None:
    film = {"startup_delay_s": 0.5, "stalls": 1, "stalled_s": 2.25, "stalled_at_end": False}
    film |= {"rate_switches": 3, "mean_rate_bps": 1.75e6}
    [(_, text)] = people_rows(of(kind="video", **film))
    assert text == "began after 0.50 s; 1 stall, 2.2 s; 1.75 Mbit/s, 3 switches"
    [(_, text)] = people_rows(of(kind="video", **film | {"stalls": 2, "stalled_at_end": True}))
    assert "2 stalls, ≥ 2.2 s" in text
    [(_, text)] = people_rows(of(kind="video", **film | {"startup_delay_s": None}))
    assert text == "never began"


def test_documents_of_earlier_versions_have_no_applications() -> None:
    assert Metrics.from_json(json.dumps(synthetic.metrics())).applications == ()
