"""Totals of the lines of an order. A line is (article, pieces, cents, grams)."""


def calc_total(lines, *, shipping=0):
    """Return the cents of all lines, and the shipping."""
    return sum(pieces * cents for _, pieces, cents, _ in lines) + shipping


def calc_total_weight(lines):
    """Return the grams of all lines. For the money see calc_total()."""
    return sum(pieces * grams for _, pieces, _, grams in lines)
