"""Invoices as text. The figures of a template are looked up by their names."""

from shop import totals

TEMPLATE = "{calc_total} cents for {calc_total_weight} grams"
FIGURES = ("calc_total", "calc_total_weight")


def invoice(lines, template=TEMPLATE):
    """Return the text of an invoice."""
    return template.format(**{name: getattr(totals, name)(lines) for name in FIGURES})
