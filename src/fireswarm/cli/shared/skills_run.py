"""Implementation of ``swarm skills`` and ``agent skills``."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fireswarm.cli.shared.options import console, print_json
from fireswarm.cli.shared.tables import cell, table
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.skills.catalog import SkillCandidate
from fireswarm.settings import load_found_settings, load_settings
from fireswarm.settings.load import home_folder
from fireswarm.skills import disclosure
from fireswarm.skills.checks.pack import check_paths
from fireswarm.skills.packs import skill_body
from fireswarm.skills.packs.cache import default_cache
from fireswarm.skills.packs.catalog import Catalog, Skill, load_catalog
from fireswarm.skills.packs.discovery import places, require_folders
from fireswarm.skills.packs.field_values import slug
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, Parsed, parse
from fireswarm.skills.routing import benchmark
from fireswarm.skills.routing.router import MIN_SCORE, Router


def _packaged_skills() -> Path:
    from fireswarm.settings.packaged import (
        packaged_path,  # imports the whole engine, which --help and a given folder do not need
    )

    return packaged_path("skills")


def _catalog(skills_dirs: Sequence[Path] | None, program: str) -> Catalog:
    """Return the skills that *program*, ``agent`` or ``swarm``, offers in the current folder. Raises ConfigError."""
    here, home = Path.cwd(), home_folder()
    require_folders(skills_dirs or (), here)
    if program == "agent":
        from fireswarm.runs.make_mind import agent_catalog

        return agent_catalog(load_found_settings(None, here, home), here, home, skills_dirs or ())
    packaged = _packaged_skills() if load_settings(here).skills.builtin else None
    folders = places(skills_dirs or (), here, home, packaged)
    return load_catalog(folders, cache=default_cache(folders))


def list_skills(skills_dir: Sequence[Path] | None, program: str, *, as_json: bool) -> None:
    """List the skills in search order, and those that were skipped."""
    catalog = _catalog(skills_dir, program)
    if as_json:
        print_json(
            {
                "skills": [_skill_row(skill) for skill in catalog.skills.values()],
                "for_swarms": [_skill_row(skill) for skill in catalog.for_swarms.values()],
                "left_out": [{"path": path, "reason": reason} for path, reason in catalog.left_out],
                "warnings": [{"path": path, "warning": warning} for path, warning in catalog.warned],
            }
        )
        return
    rows = [
        (name, skill.version or "-", "code" if skill.entry else "text", cell(skill.description, 100))
        for name, skill in sorted(catalog.skills.items())
    ]
    table("skills", ["skill", "version", "kind", "description"], rows, none="no skills: add skills/NAME/SKILL.md")
    if catalog.for_swarms:
        names = ", ".join(sorted(catalog.for_swarms))
        console.print(f"not listed, since only a swarm can run them: {names}", markup=False, soft_wrap=True)
    for path, reason in (*catalog.left_out, *catalog.warned):
        console.print(f"{path}: {reason}", markup=False, soft_wrap=True)


def inspect(
    name: str,
    skills_dir: Sequence[Path] | None,
    program: str,
    *,
    show_frontmatter: bool,
    show_sections: bool,
    as_json: bool,
) -> None:
    """Show one skill: its metadata, the material of each stage, and its faults."""
    catalog = _catalog(skills_dir, program)
    skill = catalog.for_swarms.get(name) or catalog.get(name)
    scripts = disclosure.scripts(skill, block_outside=False)
    shown: dict[str, Any] = _skill_row(skill) | {"scripts": scripts.offered, "provenance": disclosure.provenance(skill)}
    with skill.path.open("rb") as file:
        parsed = parse(file.read(MAX_FILE_BYTES + 1))
    if show_frontmatter:
        shown["frontmatter"] = parsed.header
    if show_sections:
        shown["sections"] = _sections(parsed)
    if as_json:
        print_json(shown)
        return
    for key, value in shown.items():
        if value and key not in {"frontmatter", "sections"}:
            console.print(f"{key}: {_in_words(value)}", markup=False, soft_wrap=True)
    if show_frontmatter:
        console.print(f"\n{parsed.header}", markup=False, soft_wrap=True)
    if show_sections:
        rows = [
            (str(line), str(tokens), "  " * (level - 1) + title)
            for title, level, line, tokens in map(dict[str, Any].values, _sections(parsed))
        ]
        table("sections", ["line", "tokens", "section"], rows, none="no sections")


def _sections(parsed: Parsed) -> list[dict[str, Any]]:
    """Return title, level, line in the file and estimated tokens of each section."""
    return [
        {
            "title": section.title,
            "level": section.level,
            "line": section.line + parsed.body_line - 1,
            "tokens": disclosure.estimated_tokens(section.text),
        }
        for section in skill_body.sections(parsed.body)
    ]


def check(paths: Sequence[Path] | None, skills_dir: Sequence[Path] | None, *, as_json: bool) -> int:
    """Check skills strictly against the specification; returns the exit code: 1 if there is an error."""
    places = [*(paths or ()), *(skills_dir or ())]
    usual = [path for path in (Path("skills"), Path(".agents/skills")) if path.is_dir()]
    report = check_paths(places or usual or [_packaged_skills()])
    if as_json:
        faults = [
            {"path": fault.path, "line": fault.line, "rule": fault.rule, "message": fault.message}
            for fault in report.faults
        ]
        print_json({"skills": report.skills, "faults": faults})
    else:
        for fault in report.faults:
            console.print(str(fault), markup=False, soft_wrap=True)
        said = count_noun(len(report.faults), "fault") if report.faults else "no fault"
        console.print(f"{count_noun(report.skills, 'skill')} checked, {said}")
    return 1 if report.faults else 0


def bench(file: Path, skills_dir: Sequence[Path] | None, top_k: int, program: str) -> None:
    """Measure routing on labelled prompts, with the skills of --skills-dir only; prints JSON."""
    prompts = benchmark.read_labelled(file)
    started = time.perf_counter()
    catalog = load_catalog(skills_dir) if skills_dir else _catalog(None, program)
    loaded = time.perf_counter()
    router = Router(catalog)
    _ = router.index  # built on first use; measured separately here
    built = time.perf_counter()
    gc.freeze()  # keep the garbage collector from scanning the catalog during the measurement
    proposed: dict[str, list[SkillCandidate]] = {}

    def rank(query: str) -> list[str]:
        proposed[query] = router.route(query, top_k=top_k, min_score=0.0)
        return [candidate.skill_name for candidate in proposed[query]]

    labelled = [_catalog_name(prompt, catalog) for prompt in prompts]
    figures = benchmark.measure(rank, labelled, top_k=top_k)
    passed = [
        any(c.skill_name == prompt.skill and c.score >= MIN_SCORE for c in proposed[prompt.query])
        for prompt in labelled
    ]
    print_json(
        {
            "skills": len(catalog.skills),
            **figures,
            f"passes_{MIN_SCORE:.0f}": round(sum(passed) / len(passed), 4),
            "unknown_skills": sorted({prompt.skill for prompt in labelled} - set(catalog.skills)),
            "load_seconds": round(loaded - started, 3),
            "index_build_seconds": round(built - loaded, 3),
        }
    )


def _catalog_name(prompt: benchmark.Labelled, catalog: Catalog) -> benchmark.Labelled:
    """Replace the label by the catalog's name of the skill, which differs if the name in the file is invalid."""
    if prompt.skill in catalog.skills or slug(prompt.skill) not in catalog.skills:
        return prompt
    return prompt._replace(skill=slug(prompt.skill))


def _skill_row(skill: Skill) -> dict[str, Any]:
    return {
        **skill.describe().model_dump(),
        "folder": str(skill.folder),
        "entry": skill.entry.as_posix() if skill.entry else None,
        "warnings": skill.warnings,
    }


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
