"""The cart of a customer."""

from shop import totals
from shop.totals import calc_total as total_of


class Cart:
    """Lines that a customer has chosen so far."""

    FREE_SHIPPING_FROM = 50_00
    SHIPPING = 4_90

    def __init__(self):
        self.lines = []

    def add(self, article, pieces, cents, grams):
        self.lines.append((article, pieces, cents, grams))

    def total(self):
        """Return what is to be paid, with the shipping."""
        shipping = 0 if total_of(self.lines) >= self.FREE_SHIPPING_FROM else self.SHIPPING
        return totals.calc_total(self.lines, shipping=shipping)
