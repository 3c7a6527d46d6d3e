"""Free rooms between bookings. A booking is (start, end) in days; the day of its end is free again."""


def merge(bookings):
    """Return the bookings in order, those that overlap or touch as one."""
    merged = []
    for start, end in sorted(bookings):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def free_days(bookings, first, last):
    """Return the days from first to last, both included, that no booking has."""
    taken = merge(bookings)
    return [day for day in range(first, last + 1) if not any(start <= day < end for start, end in taken)]
