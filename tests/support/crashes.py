"""The moments at which a test kills its run: a part that the printed seed chooses, or all with ``CRASHES=all``.

``SEED`` repeats a choice. `make chaos` kills at all of them.
"""

from __future__ import annotations

import os
import random

EVERYWHERE = os.environ.get("CRASHES") == "all"


def choose_moments(last: int, few: int = 6) -> list[int]:
    """Return the first moment, the *last* one, and *few* between them, in order; moments are numbered from 1."""
    moments = range(1, last + 1)
    if EVERYWHERE or last <= few + 2:
        return list(moments)
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
    print(f"SEED={seed}", flush=True)
    return [1, *sorted(random.Random(seed).sample(moments[1:-1], few)), last]
