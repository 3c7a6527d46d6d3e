"""Prices of a small shop, in euros."""

VAT = 0.19


def gross(net: float) -> float:
    """Return a price with value added tax, in whole cents."""
    return round(net * (1 + VAT), 2)


def total(items: list[tuple[int, float]]) -> float:
    """Return what an order costs: a list of counts and net prices."""
    return round(sum(count * gross(price) for count, price in items), 2)
