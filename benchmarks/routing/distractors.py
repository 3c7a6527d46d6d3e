"""Skills to get lost among: generated, the same ones every time, each about a thing that somebody could want."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

ACTIVITIES = {
    "sync": ("Keeps {thing} in step with {place}", "two-way sync, conflicts and a log of what moved"),
    "importer": ("Imports {thing} from {place}", "mapping of fields, encodings, a dry run and an undo"),
    "exporter": ("Exports {thing} to {place}", "formats, filters, schedules and file names"),
    "auditor": ("Audits {thing} in {place}", "rules, severity, evidence and a report with fixes"),
    "planner": ("Plans {thing} for {place}", "goals, calendar, owners, budget and risks"),
    "notifier": ("Sends alerts about {thing} to {place}", "thresholds, quiet hours and digests by mail or chat"),
    "designer": ("Designs {thing} for {place}", "layout, colours, type, templates and a review"),
    "coach": ("Coaches people on {thing} in {place}", "exercises, feedback, examples and a weekly plan"),
    "reporter": ("Writes reports on {thing} for {place}", "charts, tables, a summary for the boss and sources"),
    "migrator": ("Migrates {thing} to {place}", "inventory, batches, checks before and after, and rollback"),
    "tester": ("Tests {thing} against {place}", "cases, fixtures, edge conditions and flaky runs"),
    "optimizer": ("Makes {thing} in {place} faster and cheaper", "profiles, caching, limits and a before and after"),
    "summarizer": ("Summarises {thing} from {place}", "key points, quotes, decisions and open questions"),
    "translator": ("Translates {thing} for {place}", "glossary, tone, placeholders and a second reading"),
    "scraper": ("Collects {thing} from {place}", "pages, selectors, politeness and duplicates"),
    "generator": ("Generates {thing} for {place}", "templates, variants, names and checks of the result"),
    "debugger": ("Finds out why {thing} fail in {place}", "logs, reproduction, causes and a fix"),
    "archiver": ("Archives {thing} from {place}", "retention, compression, an index and restore"),
    "estimator": ("Estimates {thing} for {place}", "assumptions, ranges, history and a comparison with the outcome"),
    "classifier": ("Sorts {thing} from {place} into categories", "labels, examples, confidence and corrections"),
}
HERE = Path(__file__).resolve().parent
THINGS = (HERE / "things.txt").read_text(encoding="utf-8").splitlines()
PLACES = (HERE / "places.txt").read_text(encoding="utf-8").splitlines()
HINTS = (
    "Use when {thing} pile up and somebody has to deal with them.",
    "Use it for {thing} that come from {place}.",
    "Trigger on questions about {thing}.",
    "Not for anything other than {thing}.",
    "",
)
STEPS = (
    "Ask which {thing} are meant, for which period and who reads the result.",
    "Connect to {place} with the least rights that will do.",
    "Begin with ten {thing}, show them, and only then go on.",
    "Keep a log of each step so that it can be undone.",
    "Check counts and totals against {place} at the end.",
    "Say what was left out, and why.",
)


def texts(count: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """(name, SKILL.md) of *count* different skills."""
    chosen = random.Random(seed)
    combinations = [(t, p, a) for t in THINGS for p in PLACES for a in ACTIVITIES]
    names: set[str] = set()
    for thing, place, activity in chosen.sample(combinations, min(len(combinations), count + count // 5)):
        name = "-".join(f"{thing} {place} {activity}".lower().replace("3d", "three-d").split())[:64].strip("-")
        if name in names:
            continue
        names.add(name)
        what, how = ACTIVITIES[activity]
        hint = chosen.choice(HINTS).format(thing=thing, place=place)
        steps = chosen.sample(STEPS, 4)
        description = f"{what.format(thing=thing, place=place)}: {how}. {hint}".strip()
        body = "\n".join(f"{n}. {step.format(thing=thing, place=place)}" for n, step in enumerate(steps, start=1))
        yield name, f"---\nname: {name}\ndescription: '{description}'\n---\n\n# {name}\n\n## Steps\n\n{body}\n"
        if len(names) == count:
            return


def write(folder: Path, count: int) -> None:
    """Lay *count* generated skills down below *folder*."""
    for name, text in texts(count):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(text, encoding="utf-8")
