"""Split-conformal intervals and prediction sets: plain arithmetic, no library.

With *m* calibration scores exchangeable with the new one, the ``ceil((m + 1) * level)``-th smallest covers it with
probability at least *level* (Vovk et al., 2005; Lei et al., 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def conformal_quantile(scores: Sequence[float], level: float) -> float:
    """Return the score that a new one does not exceed with probability *level*; infinite if *scores* are too few."""
    position = math.ceil((len(scores) + 1) * level - 1e-9)
    return math.inf if position > len(scores) else sorted(scores)[position - 1]


def wilson(successes: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval for a share: the uncertainty of a measured coverage."""
    if not count:
        return 0.0, 1.0
    share = successes / count
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, centre - reach), min(1.0, centre + reach)
