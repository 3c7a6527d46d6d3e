"""Parts of projects that are made when a run begins: a long log, and a history in git. The same ones each time."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

LOG_LINES = 5_000
LOG_START = datetime(2026, 10, 14, 1, 0, tzinfo=UTC)
LOG_SEED = 20261014
CAUSE_LINE = 2_611
"""Index of the line that tells the cause; the failures begin some hundred lines later."""

FIRST_FAILURE_LINE = 2_960
COMMITS = 17
FIRST_BAD = 11
"""Number of the commit that breaks the conversion of units, from 0."""


def order_log(project: Path) -> None:
    """Write ``logs/orders.log``: a night of a web shop, in which a reloaded setting starves the database pool."""
    random_source = random.Random(LOG_SEED)
    moment, lines = LOG_START, list[str]()
    for number in range(LOG_LINES):
        moment += timedelta(milliseconds=random_source.randint(200, 4_500))
        lines.append(f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z {_log_line(number, random_source)}")
    folder = project / "logs"
    folder.mkdir(exist_ok=True)
    (folder / "orders.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _log_line(number: int, random_source: random.Random) -> str:
    order, millis = random_source.randint(400_000, 499_999), random_source.randint(8, 240)
    if number == CAUSE_LINE:
        changed = "db.pool_size 24 -> 2, http.keepalive 5 -> 15"
        return f"INFO  config   reloaded /etc/shop/orders.toml by deploy d-7731: {changed}"
    if number == CAUSE_LINE - 40:
        return "WARN  disk     /var/lib/shop at 81 % of its space"
    if number == CAUSE_LINE + 60:
        return "WARN  payments provider answered slowly: 2104 ms"
    if number == FIRST_FAILURE_LINE:
        return f"ERROR checkout order={order} no connection after 5000 ms (pool 2/2 in use, 1 waiting)"
    if number > FIRST_FAILURE_LINE and random_source.random() < 0.12:
        waiting = 1 + (number - FIRST_FAILURE_LINE) // 60
        service = random_source.choice(("checkout", "invoices", "stock", "search"))
        return f"ERROR {service:<8} order={order} no connection after 5000 ms (pool 2/2 in use, {waiting} waiting)"
    if random_source.random() < 0.01:
        return f"WARN  search   slow query: {millis + 900} ms"
    if random_source.random() < 0.004:
        return f"ERROR payments order={order} card refused by issuer, code 51"
    service = random_source.choice(("checkout", "invoices", "stock", "search", "payments"))
    return f"INFO  {service:<8} order={order} done in {millis} ms"


def unit_history(project: Path) -> None:
    """Commit the project step by step; one of the commits breaks ``units.py`` without a test noticing."""
    source = project / "units.py"
    good = source.read_text(encoding="utf-8")
    subjects = iter(_SUBJECTS)
    _git(project, 0, "init", "--quiet", "--initial-branch=main")
    for key, value in (("name", "Units Team"), ("email", "units@example.com")):  # the agent has no settings of a user
        _git(project, 0, "config", f"user.{key}", value)
    for number in range(COMMITS):
        rate = '"mi": 1_609.344' if number < FIRST_BAD else '"mi": 1_852.0'
        changes = "".join(f"- change {step}\n" for step in range(1, number + 1))
        (project / "CHANGES.md").write_text(f"# Changes\n\n{changes}", encoding="utf-8")
        source.write_text(good.replace('"mi": 1_609.344', rate) + _aliases(number), encoding="utf-8")
        _git(project, number, "add", "--all")
        _git(project, number, "commit", "--quiet", "--no-gpg-sign", "-m", next(subjects))


_SUBJECTS = (
    "Convert lengths between units",
    "Describe the units in the README",
    "Add aliases for metres",
    "Refuse negative lengths",
    "Add aliases for kilometres",
    "Tidy the list of changes",
    "Add aliases for feet",
    "Explain the aliases",
    "Add aliases for yards",
    "Sort the table of factors",
    "Add aliases for inches",
    "Take the factors from one table",
    "Add aliases for miles",
    "Explain how to add a unit",
    "Add aliases for centimetres",
    "Tidy the README",
    "Prepare the release",
)
_ALIASES = ("metre", "kilometre", "foot", "yard", "inch", "mile", "centimetre")


def _aliases(number: int) -> str:
    names = _ALIASES[: number // 2]
    lines = "".join(f'ALIASES["{name}"] = "{_SHORT[name]}"\n' for name in names)
    return f"\n{lines}" if lines else ""


_SHORT = {"metre": "m", "kilometre": "km", "foot": "ft", "yard": "yd", "inch": "in", "mile": "mi", "centimetre": "cm"}


def _git(project: Path, number: int, *arguments: str) -> None:
    """Run git without the user's settings, at a fixed time, so that the ids of commits are always the same."""
    when = f"{datetime(2026, 9, 1, 9, tzinfo=UTC) + timedelta(days=number):%Y-%m-%dT%H:%M:%S}+00:00"
    people = {
        f"GIT_{who}_{key}": value
        for who in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "Units Team"), ("EMAIL", "units@example.com"), ("DATE", when))
    }
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    environment = {"PATH": os.environ.get("PATH", os.defpath), **people, **own}
    subprocess.run(["git", *arguments], cwd=project, env=environment, check=True, capture_output=True)


MATERIALS: dict[str, Callable[[Path], None]] = {"order_log": order_log, "unit_history": unit_history}
"""What ``prepare`` of a task may name."""
