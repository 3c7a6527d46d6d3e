"""Opening hours of a shop, written as `Mo-Fr 08:00-18:00; Sa 22:00-02:00`."""

DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
MINUTES_A_DAY = 24 * 60


def parse_time(text):
    """Return the minutes since midnight of `HH:MM`."""
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def parse_days(text):
    """Return the numbers of the days in `Mo`, `Mo-Fr` or `Fr-Mo`; Monday is 0."""
    first, _, last = text.partition("-")
    start, end = DAYS.index(first), DAYS.index(last or first)
    if end < start:
        end += 7
    return [day % 7 for day in range(start, end + 1)]


def parse_hours(text):
    """Return (day, opens, closes) for each day that the text names."""
    spans = []
    for part in text.split(";"):
        days, times = part.split()
        opens, _, closes = times.partition("-")
        for day in parse_days(days):
            spans.append((day, parse_time(opens), parse_time(closes)))
    return spans


def is_open(text, day, time):
    """Return True if the shop is open on a day, such as `Sa`, at a time, such as `23:30`."""
    minute = parse_time(time)
    number = DAYS.index(day)
    for opens_on, opens, closes in parse_hours(text):
        if opens_on == number and opens <= minute < closes:
            return True
    return False
