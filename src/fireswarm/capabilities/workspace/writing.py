"""Tools that write and edit files below one folder, and show the change before."""

from __future__ import annotations

import difflib
import heapq
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fireswarm.capabilities.capability import tool
from fireswarm.capabilities.text_diff import cut_diff, text_diff
from fireswarm.capabilities.workspace.look_alikes import describe_look_alikes
from fireswarm.capabilities.workspace.place import Hides, Workspace, place_of
from fireswarm.capabilities.workspace.reading import MAX_FILE_BYTES, FilePath, reading_tools
from fireswarm.capabilities.workspace.shown_text import count_hidden, find_passage, lines_of, replace_passage
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.text_page import MAX_LINE_CHARS
from fireswarm.errors import InvalidInput
from fireswarm.redaction import FileSecrets, Redactor, count_placeholders, environment_redactor, tag_secret

MAX_WRITTEN_BYTES = 10_000_000
Content = Annotated[str, Field(description="the whole new text")]
OldText = Annotated[str, Field(min_length=1, description="the passage to replace, exactly as in the file")]
NewText = Annotated[str, Field(description="the passage to put in its place")]
ReplaceAll = Annotated[bool, Field(description="replace every occurrence")]
MAX_SHOWN_DIFF_CHARS = 4_000
"""Maximum length of the change in the result of an edit."""

MAX_COMPARED_LINES = 5_000
MAX_COMPARED_CHARS = 2_000
"""Longer passages are compared by their beginning: comparing takes more than linear time."""

MAX_NEAR = 30
MAX_NEAR_CHARS = 120
"""At most so many lines that begin like the first line of a passage are compared with all of it."""

MAX_NEAR_SECONDS = 0.4
"""A search for the nearest passage that takes longer uses what it has found so far."""

NEAR = 0.5
"""Least likeness of a passage that is shown as the nearest one to a text that was not found."""


def workspace_tools(
    root: Path,
    outputs: Path | None = None,
    *,
    writable: bool = True,
    inputs: GivenFiles | None = None,
    redact: Redactor | None = None,
    hides: Hides | None = None,
) -> dict[str, Tool]:
    """Return the tools that read and write the files of one folder, and of that for outputs, and read input files.

    If the task may change nothing but its outputs, it is not *writable*: files are written there only. *redact* finds
    the secrets of files: a model reads placeholders, and what it writes gets the values of the same file again. What
    the task *hides* is not read.
    """
    writing = writing_tools(root, outputs, writable=writable, inputs=inputs, redact=redact, hides=hides)
    return reading_tools(root, outputs, inputs, redact, hides) | writing


def writing_tools(
    root: Path,
    outputs: Path | None = None,
    *,
    writable: bool = True,
    inputs: GivenFiles | None = None,
    redact: Redactor | None = None,
    hides: Hides | None = None,
) -> dict[str, Tool]:
    """Return the tools for one folder, and for that of outputs by its whole path. Other paths are refused."""
    root = root.resolve()
    outputs_only = outputs is not None and not writable
    files = _Changes(root, outputs, inputs, outputs_only, redact or environment_redactor(), hides)

    def write_file(path: FilePath, content: Content) -> str:
        """Creates or replaces a text file, and creates its folders. To change a part of it, use edit_file."""
        place, target, before, content = files.plan_write(path, content)
        place.write(target, _encode(content))
        return _describe_write(place, target, before, content, files)

    def edit_file(path: FilePath, old_text: OldText, new_text: NewText, replace_all: ReplaceAll = False) -> str:
        """Replaces a passage of a text file. The passage must occur exactly once, unless replace_all is true."""
        place, target, before, after = files.plan_edit(path, old_text, new_text, replace_all)
        place.write(target, _encode(after))
        return _describe_edit(place, target, before, after, files)

    def preview_write(path: FilePath, content: Content) -> str:
        place, target, before, content = files.plan_write(path, content)
        _encode(content)
        return _diff(place.name_of(target), before, content, files.redact)

    def preview_edit(path: FilePath, old_text: OldText, new_text: NewText, replace_all: ReplaceAll = False) -> str:
        place, target, before, after = files.plan_edit(path, old_text, new_text, replace_all)
        _encode(after)
        return _diff(place.name_of(target), before, after, files.redact)

    made = (
        replace(tool(writes=True, preview=preview_write, idempotent=True)(write_file), spec_name="Write"),
        replace(tool(writes=True, preview=preview_edit, idempotent=False)(edit_file), spec_name="Edit"),
    )
    return {each.name: replace(each, outputs_only=outputs_only) for each in made}


@dataclass(frozen=True, slots=True)
class _Changes:
    """Finds the file that a call would change, and its text before and after, with its secrets in place."""

    root: Path
    outputs: Path | None
    inputs: GivenFiles | None
    outputs_only: bool
    redact: Redactor
    hides: Hides | None = None

    def plan_write(self, path: str, content: str) -> tuple[Workspace, Path, bytes | None, str]:
        """Return the file's folder, the file, its present content, if there is any, and its new text."""
        place, target = self._locate(path, new=True)
        before = place.read(target, MAX_FILE_BYTES) if target.exists() else None
        return place, target, before, _put_secrets_back(before, content, self.redact)

    def plan_edit(self, path: str, old_text: str, new_text: str, every: bool) -> tuple[Workspace, Path, str, str]:
        """Return the file's folder, the file, its present text, and its new text."""
        place, target = self._locate(path)
        before = _text(place, target)
        return place, target, before, _edit_text(before, old_text, new_text, every, self.redact)

    def _locate(self, named: str, *, new: bool = False) -> tuple[Workspace, Path]:
        place, path = place_of(named, self.root, self.outputs, self.inputs, hides=self.hides)
        if self.inputs is not None and place.root == self.inputs.root:
            raise InvalidInput(f"{named} is an input file, which cannot be changed: write a copy of it elsewhere")
        if self.outputs is not None and self.outputs_only and place.root != self.outputs:
            if Path(path).is_absolute():
                raise InvalidInput(f"{named}: this task may only write to its output folder, {self.outputs}")
            place = Workspace(self.outputs)
        return place, place.locate(path, new=new, writes=True)


def _describe_write(place: Workspace, target: Path, before: bytes | None, content: str, files: _Changes) -> str:
    wrote = f"wrote {_shown_name(place, target, files.root)}: {count_noun(len(lines_of(content)), 'line')}"
    text = (before or b"").decode("utf-8", "replace")
    wrote += _not_secrets(text, content)
    if before is None or before == _encode(content):
        return wrote
    held = count_noun(len(lines_of(text)), "line")
    diff = cut_diff(
        _diff(place.name_of(target), before, content, files.redact), MAX_SHOWN_DIFF_CHARS, "the rest is not kept"
    )
    return f"{wrote}, in place of {held} ({len(before):,} bytes) that the file had\n{diff}"


def _describe_edit(place: Workspace, target: Path, before: str, after: str, files: _Changes) -> str:
    lost = count_hidden(before) - count_hidden(after)
    gone = f"; {lost:,} control character{' was' if lost == 1 else 's were'} in what it replaced" if lost > 0 else ""
    diff = cut_diff(
        _diff(place.name_of(target), before, after, files.redact), MAX_SHOWN_DIFF_CHARS, "read_file shows the rest"
    )
    return f"edited {_shown_name(place, target, files.root)}{gone}{_not_secrets(before, after)}\n{diff}"


def _put_secrets_back(before: bytes | None, content: str, redact: Redactor) -> str:
    """Return the new text of a file with the secrets that it has, in place of their placeholders.

    Raises InvalidInput if a secret would be lost.
    """
    if before is None or not count_placeholders(content):
        return content
    text = before.decode("utf-8", "replace")
    secrets = FileSecrets.find(text, redact)
    content = secrets.put_back(content)
    secrets.check_kept(text, content)
    return content


def _edit_text(before: str, old_text: str, new_text: str, replace_all: bool, redact: Redactor) -> str:
    """Return the text of a file after an edit, with its secrets in place of their placeholders. Raises InvalidInput."""
    if not (count_placeholders(old_text) or count_placeholders(new_text)):
        return replace_text(before, old_text, new_text, replace_all=replace_all, redact=redact)
    secrets = FileSecrets.find(before, redact)
    old_text, new_text = secrets.put_back(old_text), secrets.put_back(new_text)
    after = replace_text(before, old_text, new_text, replace_all=replace_all, redact=redact)
    secrets.check_kept(before, after)
    return after


def _not_secrets(before: str, after: str) -> str:
    """Return a note on the placeholders that were written as they are, or ""."""
    new = count_placeholders(after) - count_placeholders(before)
    held = count_noun(new, "placeholder")
    return f"; {held} written as text: a secret is put back into its own file only" if new > 0 else ""


def _diff(name: str, before: bytes | str | None, after: str, redact: Redactor) -> str:
    """Return the change of a file's content to a text. Lines of a private key are masked: alone they look like none."""

    def mask(text: str) -> str:
        return redact.text(text, by_line=True) if "PRIVATE" in text else text

    if isinstance(before, bytes):
        try:
            before = before.decode()
        except UnicodeDecodeError:
            return text_diff(name, before, _encode(after))
    return text_diff(name, before if before is None else mask(before), mask(after))


def replace_text(
    text: str, old_text: str, new_text: str, *, replace_all: bool = False, redact: Redactor | None = None
) -> str:
    """Return *text* with *old_text* replaced. Raises InvalidInput unless it occurs once, or with *replace_all* at all.

    Raises it also if nothing would change. The error shows the passage that is nearest to a text that was not found. A
    part of a secret is not found: the answer would tell how the secret goes on.
    """
    redact = redact or environment_redactor()
    spans = _without_cuts(find_passage(text, old_text), redact.spans(text, by_line=True))
    if spans and old_text == new_text and replace_passage(text, spans, new_text) == text:
        raise InvalidInput("old_text and new_text are the same: nothing would change")
    if len(spans) > 1 and not replace_all:
        raise InvalidInput(
            f"old_text occurs {len(spans)} times: give more lines around it so that it is unique, or set replace_all"
        )
    if spans:
        return replace_passage(text, spans, new_text)
    masked = redact.text(text, by_line=True, mark=tag_secret)
    if alike := describe_look_alikes(masked, old_text):
        raise InvalidInput(f"old_text was not found: {alike}. Copy these characters, or leave them out of old_text.")
    near = _nearest(masked, old_text)
    raise InvalidInput("old_text was not found" + (f".\nThe nearest passage is:\n{near}" if near else ""))


def _without_cuts(spans: list[tuple[int, int]], secrets: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the *spans* that do not begin or end within one of the *secrets*."""
    return [
        (start, end)
        for start, end in spans
        if all(last <= start or end <= first or (start <= first and last <= end) for first, last in secrets)
    ]


def _nearest(text: str, wanted: str) -> str:
    """Return the numbered lines of *text* most similar to *wanted*, ignoring case, or "" if no lines are similar."""
    wanted = wanted[:MAX_COMPARED_CHARS]
    lines = [line[:MAX_LINE_CHARS] for line in lines_of(text)[:MAX_COMPARED_LINES]]
    size = max(1, len(lines_of(wanted)))
    first = next((line.strip()[:MAX_NEAR_CHARS] for line in wanted.splitlines() if line.strip()), "")
    best, best_ratios = -1, (NEAR, 1.0)
    for start in _near_lines(first.casefold(), [line.strip()[:MAX_NEAR_CHARS].casefold() for line in lines]):
        passage = "\n".join(lines[start : start + size])[:MAX_COMPARED_CHARS]
        ratio = difflib.SequenceMatcher(None, passage.casefold(), wanted.casefold()).ratio()
        if ratio < best_ratios[0]:
            continue
        ratios = (ratio, difflib.SequenceMatcher(None, passage, wanted).ratio())  # of equal ones, that with its case
        if ratios > best_ratios:
            best, best_ratios = start, ratios
    passage = lines[best : best + size] if best >= 0 else []
    return "\n".join(f"{best + 1 + number:>6}\t{line}" for number, line in enumerate(passage))


def _near_lines(first: str, lines: list[str]) -> list[int]:
    """Return the numbers of the lines that are most like *first*: of three texts, as far as the time reaches."""
    until = time.monotonic() + MAX_NEAR_SECONDS
    ratios: dict[str, float] = {}
    matcher = difflib.SequenceMatcher(None, "", first)
    for line in dict.fromkeys(lines):
        if time.monotonic() > until:
            break
        matcher.set_seq1(line)
        if matcher.real_quick_ratio() >= NEAR and matcher.quick_ratio() >= NEAR and matcher.ratio() >= NEAR:
            ratios[line] = matcher.ratio()
    near = set(heapq.nlargest(3, ratios, key=lambda line: ratios[line]))
    return [number for number, line in enumerate(lines) if line in near][:MAX_NEAR]


def _text(place: Workspace, path: Path) -> str:
    if path.is_dir():
        raise InvalidInput(f"{place.name_of(path)} is a folder")
    content = place.read(path, MAX_FILE_BYTES)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place.name_of(path)} is not text in UTF-8: use run_command to change it") from error


def _encode(text: str) -> bytes:
    content = text.encode("utf-8", "replace")
    if len(content) > MAX_WRITTEN_BYTES:
        raise InvalidInput(f"the text has {len(content):,} bytes; {MAX_WRITTEN_BYTES:,} are allowed")
    return content


def _shown_name(place: Workspace, path: Path, root: Path) -> str:
    """Return the name of a written file; in the output folder, its whole path."""
    return place.name_of(path) if place.root == root else str(path)
