from __future__ import annotations

import json
from dataclasses import asdict, fields

import pytest

import synthetic
from segue import Metrics, Spread
from segue.distributions import Worst
from segue.metrics import Multipath


def test_document_of_the_simulator_becomes_dataclasses() -> None:
    document = synthetic.metrics(
        handovers=[synthetic.handover(8.14, 0.006, 0), synthetic.handover(22.1, -0.002, 3)],
        handover_latency_s=synthetic.spread(0.006, low=-0.002),
    )
    metrics = Metrics.from_json(json.dumps(document))
    assert metrics.handover_latency_s == Spread(
        0.002, 0.006, -0.002, 0.006, 2, 0, False, False, False, False, Worst("mh", 0, 8.14)
    )
    assert metrics.interruption_s is None
    assert [(h.from_address, h.to_address) for h in metrics.handovers] == [(synthetic.OLD, synthetic.NEW)] * 2
    assert metrics.handovers[1].lost_packets == 3
    assert metrics.handover_latency_mean_s == pytest.approx(0.002)


def test_without_handovers_there_is_no_latency() -> None:
    metrics = Metrics.from_json(json.dumps(synthetic.metrics()))
    assert metrics.handovers == ()
    assert metrics.handover_latency_mean_s is None


def test_a_missing_metric_is_noticed_and_a_new_one_is_kept() -> None:
    document = synthetic.metrics(new_metric=0)
    assert Metrics.from_json(json.dumps(document)).extra == {"new_metric": 0}
    del document["loss_rate"]
    with pytest.raises(KeyError, match="loss_rate"):
        Metrics.from_json(json.dumps(document))


def test_counters_of_concurrent_multipath_transfer_become_a_dataclass() -> None:
    counters = {field.name: number for number, field in enumerate(fields(Multipath))}
    metrics = Metrics.from_json(json.dumps(synthetic.metrics(multipath=counters, transfer_time_s=35.3)))
    assert metrics.multipath is not None
    assert asdict(metrics.multipath) == counters
    assert (metrics.transfer_time_s, metrics.theory_s) == (35.3, None)
