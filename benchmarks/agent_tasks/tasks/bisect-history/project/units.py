"""Convert lengths.

python3 units.py 26.2 mi km
"""

import sys

METRES = {
    "cm": 0.01,
    "ft": 0.3048,
    "in": 0.0254,
    "km": 1_000.0,
    "m": 1.0,
    "mi": 1_609.344,
    "yd": 0.9144,
}
ALIASES = {}


def convert(length, source, target):
    """Return a length in another unit."""
    if length < 0:
        raise ValueError("a length is not negative")
    return length * METRES[ALIASES.get(source, source)] / METRES[ALIASES.get(target, target)]


if __name__ == "__main__":
    print(f"{convert(float(sys.argv[1]), sys.argv[2], sys.argv[3]):.2f}")
