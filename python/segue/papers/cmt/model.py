"""Equations (1) to (6) of the paper: how long a file takes, if nothing but the bandwidth of the links counts.

A mobile node downloads `L` bytes. For `t_1` seconds it has the faster link, of bandwidth `bw_1`; for `t_dwell` seconds
both; from then on the slower one, `bw_2`. `bw_1 = bw_ratio x bw_2`, with `bw_ratio >= 1`.

The raw equations assume that the file is "large enough not to complete the transmission before leaving the overlap
area". Where it is not, they still give a number, and it is wrong: with 8 MB, a ratio of 4 and 40 s, equation (3) gives
less than t_1. The functions here clamp: a file that ends in the overlap, or before it, takes the bandwidth of where it
ends.

All times are seconds, bandwidths bit/s of user data and sizes bytes of user data, unless an argument says otherwise.
Link rates become bandwidths of user data by `payload_share`. Scalars in, scalars out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BITS = 8


class Scheme(StrEnum):
    """What carries the data during the overlap."""

    CMT = "cmt"
    """Both links: equation (2) with a_i = bw_i."""
    MSCTP_BEST = "msctp-best"
    """The faster link, as long as it is there."""
    MSCTP_WORST = "msctp-worst"
    """The slower link, as soon as it is there."""
    FAILOVER = "failover"
    """The faster link until it dies; the time that its end goes unnoticed is not in the model."""
    SINGLE = "single"
    """The faster link, which never ends: figure 5's reference."""


@dataclass(frozen=True, slots=True)
class Handover:
    """What the equations are about.

    Attributes:
        size: File, bytes of user data (L).
        bw_2: Bandwidth of the slower link, bit/s of user data.
        bw_ratio: That of the faster link over it, 1 or more.
        t_1: When the overlap begins, s from the start of the transmission.
        t_dwell: How long it lasts, s.
    """

    size: float
    bw_2: float
    bw_ratio: float
    t_1: float
    t_dwell: float

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: If a size, bandwidth or time is negative, a bandwidth zero, or the ratio under 1.
        """
        if self.bw_2 <= 0:
            raise ValueError(f"bandwidth of {self.bw_2:g} bit/s: must be positive")
        if self.bw_ratio < 1:
            raise ValueError(f"bandwidth ratio of {self.bw_ratio:g}: must be at least 1, faster over slower")
        for name in ("size", "t_1", "t_dwell"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} of {getattr(self, name):g}: must not be negative")

    @property
    def bw_1(self) -> float:
        """Bandwidth of the faster link, bit/s of user data."""
        return self.bw_2 * self.bw_ratio

    @property
    def t_2(self) -> float:
        """When the overlap ends, s."""
        return self.t_1 + self.t_dwell


def bw_overlap(handover: Handover, scheme: Scheme) -> float:
    """Bandwidth in the overlap, bit/s: equation (2) for CMT, and what section IV-A says of the others."""
    match scheme:
        case Scheme.CMT:
            return handover.bw_1 + handover.bw_2
        case Scheme.MSCTP_WORST:
            return handover.bw_2
        case Scheme.MSCTP_BEST | Scheme.FAILOVER | Scheme.SINGLE:
            return handover.bw_1


def transfer_time(handover: Handover, scheme: Scheme) -> float:
    """Time that the file takes, s: equation (1), the sum of what is spent before, in and after the overlap.

    Clamped, so that it holds wherever the file ends. Where it ends after the overlap, it is equation (3) for CMT, (4)
    for mSCTP's worst case and (5) for its best; failover is (5), and a single link L / bw_1.

    >>> short = Handover(size=8e6, bw_2=384e3, bw_ratio=2, t_1=2, t_dwell=10)
    >>> round(transfer_time(short, Scheme.CMT), 2), round(t_cmt_raw(short), 2)
    (144.67, 144.67)
    >>> long = Handover(size=8e6, bw_2=384e3, bw_ratio=4, t_1=2, t_dwell=40)
    >>> round(transfer_time(long, Scheme.CMT), 2), round(t_cmt_raw(long), 2)
    (33.73, 0.67)
    """
    left = handover.size * BITS
    if scheme is Scheme.SINGLE:
        return left / handover.bw_1
    begins = 0.0
    for lasts, bandwidth in (
        (handover.t_1, handover.bw_1),
        (handover.t_dwell, bw_overlap(handover, scheme)),
    ):
        if left <= lasts * bandwidth:
            return begins + left / bandwidth
        left -= lasts * bandwidth
        begins += lasts
    return begins + left / handover.bw_2


def t_cmt_raw(handover: Handover) -> float:
    """Equation (3) as printed, s: wrong, even below t_1, unless the file ends after the overlap."""
    return _l_over_bw_2(handover) + handover.t_1 - handover.t_2 * handover.bw_ratio


def t_msctp_worst_raw(handover: Handover) -> float:
    """Equation (4) as printed, s: right unless the file ends before the overlap."""
    return _l_over_bw_2(handover) + handover.t_1 - handover.t_1 * handover.bw_ratio


def t_msctp_best_raw(handover: Handover) -> float:
    """Equation (5) as printed, s: wrong unless the file ends after the overlap."""
    return _l_over_bw_2(handover) + handover.t_2 - handover.t_2 * handover.bw_ratio


def ends_after_overlap(handover: Handover, scheme: Scheme) -> bool:
    """Whether the file outlasts the overlap, so that the raw equation holds."""
    return transfer_time(handover, scheme) >= handover.t_2


def gain(handover: Handover, over: Scheme) -> float:
    """Time that CMT saves over another scheme at most, s, by the clamped equations."""
    return transfer_time(handover, over) - transfer_time(handover, Scheme.CMT)


def gain_bounds_raw(handover: Handover) -> tuple[float, float]:
    """Equation (6) as printed: what CMT saves over mSCTP's best case and over its worst, s.

    `t_dwell` and `t_dwell x bw_ratio`, where the file outlasts the overlap under every scheme; less elsewhere.
    """
    return handover.t_dwell, handover.t_dwell * handover.bw_ratio


def payload_share(payload: int, packet: int) -> float:
    """Share of a link's rate that is user data, where full packets fill it.

    Args:
        payload: User data of a packet, bytes.
        packet: Its size as the link counts it, bytes, headers of all layers included.

    >>> payload_share(1468, 1536)
    0.9557291666666666
    """
    return payload / packet


def _l_over_bw_2(handover: Handover) -> float:
    return handover.size * BITS / handover.bw_2
