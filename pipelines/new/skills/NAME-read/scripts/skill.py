"""Read the text, and refuse what is no text."""

from __future__ import annotations

from pathlib import Path

from fireswarm import SkillRequest, SkillResult, count_noun, pipelines

MAX_BYTES = 1_000_000


def run(request: SkillRequest) -> SkillResult:
    """Return ``text.txt``."""
    path = Path(str(request.context["path"]))
    if not path.is_file():
        return SkillResult.failure(f"{path} is not a file: run the pipeline again with --input path=FILE")
    content = path.read_bytes()
    if len(content) > MAX_BYTES:
        return SkillResult.failure(f"{path.name} has {len(content):,} bytes; {MAX_BYTES:,} are allowed")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return SkillResult.failure(f"{path.name} is not UTF-8 text ({error}): save it as UTF-8")
    carried = pipelines.Carried.of(request)
    carried.write("text.txt", text, f"the text of {path.name}")
    summary = f"{path.name}: {count_noun(len(text.splitlines()), 'line')}"
    return SkillResult(summary=summary, artifacts=carried.artifacts())
