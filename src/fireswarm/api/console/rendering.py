"""Make pages of templates: every value is escaped, without secrets, and with what no screen shows spelled out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nh3
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import clip
from fireswarm.contracts.swarm.task import Task
from fireswarm.redaction import Redactor, spell
from fireswarm.storage.memory.fact_documents import value_text

TEMPLATES = Path(__file__).parent / "templates"

SAFE_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"}
    | {"s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
"""Tags of a model's Markdown. Images are left out: they would be read from other hosts."""

MAX_CLEANED_CHARS = 10_000
"""Of a text of which a line is shown, this much is searched for secrets before it is cut."""

MAX_SHOWN_CHARS = 20_000
"""Of a text on a page with many, so much is shown."""

MAX_MARKDOWN_CHARS, MAX_TABLE_COLUMNS = 50_000, 60
"""Limits of what is drawn as Markdown: of these, the slowest known takes a second, in a thread."""

AGES = ((90, 1, "s"), (5_400, 60, "min"), (129_600, 3_600, "h"), (float("inf"), 86_400, "d"))
"""Units of an age: up to how many seconds, and the seconds of one."""

MIN_LINES = 3

SHORT_SECONDS, EXACT_SECONDS, MINUTE = 90, 1_200, 60
"""Durations between the first two have minutes and seconds, so that they can be compared."""

_COMMAND = re.compile(r"`([^`\n]{1,500})`")
_DIFF_CLASSES = (("+++", "file"), ("---", "file"), ("@@", "hunk"), ("+", "added"), ("-", "removed"))


def make_environment(redactor: Redactor) -> Environment:
    """Return the templates with the filters that they use; *redactor* removes secrets from every value."""

    def finalize(value: Any) -> Any:
        if isinstance(value, Markup) or not isinstance(value, str):
            return value
        return clean_text(redactor, value)

    def clean_line(text: str, length: int = 120) -> str:
        return clip_line(redactor.clean(str(text)[:MAX_CLEANED_CHARS]), length)

    def cut(text: str, length: int = MAX_SHOWN_CHARS) -> str:
        return cut_text(clean_text(redactor, str(text)), length)

    def count(number: Any, noun: str = "task") -> str:
        return count_noun(round(number), noun)

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        enable_async=False,
    )
    environment.filters |= {
        "noun": count,
        "ago": describe_age,
        "duration": describe_duration,
        "seconds": describe_seconds,
        "clock": lambda moment: f"{moment:%H:%M:%S}" if isinstance(moment, datetime) else "",
        "clip": clean_line,
        "cut": cut,
        "ends": first_and_last_line,
        "as_json": lambda value: as_json(redactor.value(value)),
        "as_text": lambda value: value_text(redactor.value(value)),
        "quoted": quote_part,
        "diff": _with(redactor, draw_diff),
        "commands": _with(redactor, draw_commands),
        "markdown": _with(redactor, draw_markdown),
    }
    return environment


def clean_text(redactor: Redactor, text: str) -> str:
    """Return *text* as a page shows it: without secrets, and with what no screen shows spelled out."""
    return spell(redactor.clean(text))


def first_and_last_line(text: str) -> str:
    """Return a text of several lines without those between: a traceback is shown elsewhere."""
    lines = [line for line in text.splitlines() if line.strip()]
    return text if len(lines) < MIN_LINES else f"{lines[0]} ... {lines[-1]}"


def quote_part(text: str) -> str:
    """Return *text* as one part of an address: a slash or a question mark in it is no more than a character."""
    return quote(text, safe="")


def cut_text(text: str, length: int) -> str:
    """Return the first *length* characters of a text without secrets, and how long it is."""
    return text if len(text) <= length else f"{text[:length]}\n(cut: it has {len(text):,} characters)"


def clip_line(text: str, length: int = 120) -> str:
    """Return the first words of *text*, all lines as one, at most *length* characters."""
    return clip(" ".join(text[: length * 4].split()), length)


def as_json(value: Any) -> str:
    """Return *value* as JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def describe_age(moment: Any) -> Markup | str:
    """Return the time since *moment* as an element that the page keeps up to date; "-" for what is no time."""
    if not isinstance(moment, datetime):
        return "-"
    seconds = max(0.0, (datetime.now(UTC) - moment).total_seconds())
    size, unit = next((size, unit) for limit, size, unit in AGES if seconds < limit)
    return Markup('<time datetime="{at}" title="{at}">{number:.0f} {unit}</time>').format(
        at=moment.astimezone(UTC).isoformat(timespec="seconds"), number=seconds / size, unit=unit
    )


def describe_duration(task: Task) -> str:
    """Return how long an ended task took, from its creation on; "" for another."""
    return describe_seconds(None if task.ended_at is None else (task.ended_at - task.created_at).total_seconds())


def describe_seconds(seconds: float | None) -> str:
    """Return a duration in words; "" for none."""
    if seconds is None:
        return ""
    seconds = max(0.0, seconds)
    if SHORT_SECONDS <= seconds < EXACT_SECONDS:
        return f"{seconds // MINUTE:.0f} min {seconds % MINUTE:.0f} s"
    size, unit = next((size, unit) for limit, size, unit in AGES if seconds < limit)
    return f"{seconds / size:.0f} {unit}"


def draw_diff(text: str) -> Markup:
    """Return a unified diff with a class for each kind of line."""
    lines = [
        Markup('<span class="{}">{}</span>').format(
            next((name for start, name in _DIFF_CLASSES if line.startswith(start)), "same"), line
        )
        for line in text.splitlines()
    ]
    return Markup("\n").join(lines)


def draw_commands(text: str) -> Markup:
    """Return a text of this program with what is between backticks as code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))


def draw_markdown(text: str) -> Markup:
    """Return a model's Markdown as HTML: its HTML as text, no images, links to the web and mail only.

    A long text, and one with a wide table, stays as it is: a few kinds of both take time by their square.
    """
    if len(text) > MAX_MARKDOWN_CHARS or any(line.count("|") > MAX_TABLE_COLUMNS for line in text.splitlines()):
        return Markup("<pre>{}</pre>").format(text)
    drawn = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image").render(text)
    schemes = {"http", "https", "mailto"}
    return Markup(nh3.clean(drawn, tags=set(SAFE_TAGS), attributes={"a": {"href"}}, url_schemes=schemes))


def _with(redactor: Redactor, draw: Callable[[str], Markup]) -> Callable[[str], Markup]:
    def draw_clean(text: str) -> Markup:
        return draw(clean_text(redactor, str(text)))

    return draw_clean
