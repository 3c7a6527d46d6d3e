"""Markdown files with YAML frontmatter: role cards and skill packs."""

from __future__ import annotations

from typing import Any

import yaml

MARK = "---"


def split_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Split a Markdown text into its frontmatter and body. Raises ValueError without frontmatter."""
    lines = text.removeprefix("\ufeff").splitlines()
    marks = [number for number, line in enumerate(lines) if line.rstrip() == MARK]
    if len(marks) < 2 or any(line.strip() for line in lines[: marks[0]]):
        raise ValueError("the file must begin with frontmatter between two lines of ---")
    header = yaml.safe_load("\n".join(lines[marks[0] + 1 : marks[1]])) or {}
    if not isinstance(header, dict):
        raise ValueError("the frontmatter must be a map of keys and values")
    fields: dict[str, Any] = header
    return fields, "\n".join(lines[marks[1] + 1 :]).strip()
