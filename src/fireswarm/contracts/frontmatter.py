"""YAML of people and strangers, and Markdown files with YAML frontmatter: role cards and skill packs.

Every YAML text passes `check_yaml` before a loader builds its values: a few bytes can stand for gigabytes, contain
themselves, or nest until a loader overflows its stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

MARK = "---"

MAX_DEPTH = 64
"""Maximum depth of a YAML value, aliases included. Settings and frontmatter need 8."""

MAX_NODES = 20_000
"""Maximum number of values in a YAML text after its aliases are followed."""

MAX_YAML_CHARS = 1_000_000


def check_yaml(text: str, loader: Any = yaml.SafeLoader) -> None:
    """Raise YAMLError for a YAML text that is too large, nests too deeply or contains itself. Builds no values.

    *loader* is the one that will build them: another parser could read another text.
    """
    if len(text) > MAX_YAML_CHARS:
        raise yaml.YAMLError(f"it has {len(text):,} characters; {MAX_YAML_CHARS:,} are allowed")
    shape = _YamlSize()
    for event in yaml.parse(text, Loader=loader):
        shape.add(event)
        if len(shape.above) + shape.depth > MAX_DEPTH:
            raise _fault(f"it nests more than {MAX_DEPTH} levels deep", event)
        if shape.nodes > MAX_NODES:
            anchors = ", ".join(f"&{name}" for name in list(shape.known)[:3])
            after = f" after its anchors are followed ({anchors} and others)" if anchors else ""
            raise _fault(f"it has more than {MAX_NODES:,} values{after}", event)


@dataclass(slots=True)
class _YamlSize:
    """The size of a YAML text as far as it was read, with its aliases followed.

    ``depth`` is that of the last value. ``above`` are the open collections: anchor, number of values before, depth so
    far. ``known`` has the number and depth of the values that each anchor stands for.
    """

    nodes: int = 0
    depth: int = 0
    above: list[tuple[str | None, int, int]] = field(default_factory=list[tuple[str | None, int, int]])
    known: dict[str | None, tuple[int, int]] = field(default_factory=dict[str | None, tuple[int, int]])

    def add(self, event: Any) -> None:
        """Take the next event of a parser. Raises YAMLError for an alias of a value that is not complete."""
        if isinstance(event, yaml.CollectionStartEvent):
            self.above.append((event.anchor, self.nodes, 0))
            self.nodes, self.depth = self.nodes + 1, 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before, depth = self.above.pop()
            self._end(anchor, self.nodes - before, depth + 1)
        elif isinstance(event, yaml.ScalarEvent):
            self.nodes += 1
            self._end(event.anchor, 1, 1)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.known:
                raise _fault("an alias stands for a value that contains it, or for none", event)
            nodes, depth = self.known[event.anchor]
            self.nodes += nodes
            self._end(None, nodes, depth)

    def _end(self, anchor: str | None, nodes: int, depth: int) -> None:
        self.depth = depth
        if anchor is not None:
            self.known[anchor] = nodes, depth
        if self.above:
            opened, before, deepest = self.above[-1]
            self.above[-1] = opened, before, max(deepest, depth)


def load_yaml(text: str) -> Any:
    """Return the value of a YAML text. Raises YAMLError for every text that cannot be used."""
    check_yaml(text)
    try:
        return yaml.safe_load(text)
    except (ValueError, TypeError, OverflowError) as error:  # such as the date 2026-13-45
        raise yaml.YAMLError(str(error)) from error


def split_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Split a Markdown text into its frontmatter and body. Raises ValueError without frontmatter, and YAMLError."""
    lines = text.removeprefix("\ufeff").splitlines()
    marks = [number for number, line in enumerate(lines) if line.rstrip() == MARK]
    if len(marks) < 2 or any(line.strip() for line in lines[: marks[0]]):
        raise ValueError("the file must begin with frontmatter between two lines of ---")
    header = load_yaml("\n".join(lines[marks[0] + 1 : marks[1]])) or {}
    if not isinstance(header, dict):
        raise ValueError("the frontmatter must be a map of keys and values")
    fields: dict[str, Any] = header
    return fields, "\n".join(lines[marks[1] + 1 :]).strip()


def explain_yaml(error: yaml.YAMLError) -> str:
    """Return what is wrong with a YAML text in one line."""
    mark: Any = getattr(error, "problem_mark", None)
    problem = " ".join(str(getattr(error, "problem", None) or error).split())
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem


def _fault(problem: str, event: Any) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
