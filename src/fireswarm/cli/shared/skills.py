"""``swarm skills`` and ``agent skills``: list, inspect, check and benchmark skills.

Only options are declared here; the implementation is imported when a command is called, so that ``--help`` is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TOP_K = 8
"""Number of candidates per prompt, as in ``skills.prefilter_top_k``."""

app = typer.Typer(
    help="List, inspect and check skills, and measure their routing.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SkillsDir = Annotated[
    list[Path] | None,
    typer.Option("--skills-dir", help="Folder of skills, searched first; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _program(ctx: typer.Context) -> str:
    """Return the name of the program that a command belongs to: agent or swarm."""
    return str(ctx.find_root().command.name)


@app.command("list")
def list_skills(ctx: typer.Context, skills_dir: SkillsDir = None, as_json: AsJson = False) -> None:
    """List the skills in search order, and those that were skipped."""
    from fireswarm.cli.shared import skills_run

    skills_run.list_skills(skills_dir, _program(ctx), as_json=as_json)


@app.command()
def inspect(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Skill name.")],
    show_frontmatter: Annotated[bool, typer.Option("--show-frontmatter", help="Show the raw frontmatter.")] = False,
    show_sections: Annotated[bool, typer.Option("--show-sections", help="Show the sections and their sizes.")] = False,
    skills_dir: SkillsDir = None,
    as_json: AsJson = False,
) -> None:
    """Show one skill: its metadata, the material of each stage, and its faults."""
    from fireswarm.cli.shared import skills_run

    skills_run.inspect(
        name, skills_dir, _program(ctx), show_frontmatter=show_frontmatter, show_sections=show_sections, as_json=as_json
    )


@app.command()
def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="SKILL.md files, skill folders or folders of skills.")
    ] = None,
    skills_dir: SkillsDir = None,
    as_json: AsJson = False,
) -> None:
    """Check skills strictly against the specification; exit code 1 if there is an error."""
    from fireswarm.cli.shared import skills_run

    if skills_run.check(paths, skills_dir, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def bench(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help='JSON: [{"skill": name, "query": text}].')],
    skills_dir: SkillsDir = None,
    top_k: Annotated[int, typer.Option("--top-k", min=1, max=100, help="Candidates per prompt.")] = TOP_K,
) -> None:
    """Measure routing on labelled prompts, with the skills of --skills-dir only; prints JSON."""
    from fireswarm.cli.shared import skills_run

    skills_run.bench(file, skills_dir, top_k, _program(ctx))
