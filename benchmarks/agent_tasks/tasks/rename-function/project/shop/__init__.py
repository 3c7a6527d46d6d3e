"""Carts and invoices of a small shop."""

from shop.cart import Cart
from shop.totals import calc_total, calc_total_weight

__all__ = ["Cart", "calc_total", "calc_total_weight"]
