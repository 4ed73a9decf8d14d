"""Our TCP gets as much through a link that loses packets as the kernel's does: three points of `loss_response.py`.

The bound is 20 % of the kernel's mean, and twice the standard error of the difference, since the kernel's side is a few
runs of real time.
"""

from __future__ import annotations

import math

import loss_response
import network
import pytest
from loss_response import CONTROLS

REASON = network.missing()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")

LOSSES = (0.002, 0.01, 0.05)


@pytest.mark.slow
def test_goodput_under_loss_is_the_kernels_within_a_fifth() -> None:
    theirs = loss_response.kernel_means(LOSSES, runs=2, seconds=20)
    ours = loss_response.our_means(LOSSES, runs=20, seconds=20)
    for control in CONTROLS:
        for loss in LOSSES:
            kernel, own = theirs[control, loss], ours[control, loss]
            margin = 2 * math.hypot(kernel.error, own.error)
            difference = abs(own.value - kernel.value)
            assert difference < 0.2 * kernel.value + margin, f"{control}, {loss:.1%}: ours {own}, the kernel's {kernel}"
