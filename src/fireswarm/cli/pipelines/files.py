"""Files of pipelines: write one, list them, check them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.options import AsJson, Root, console, print_json, settings_for
from fireswarm.cli.shared.tables import cell, table
from fireswarm.contracts.base import command_line, count_noun
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.loading import FOLDER, Pipelines, find_faults
from fireswarm.settings import Settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs import field_values
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.swarm.opening.open_parts import load_swarm
from fireswarm.swarm.opening.pipeline_files import pipeline_folders
from fireswarm.swarm.records.policy import HandoffPolicy

TEMPLATE = Path("new")
"""Folder with the files of a new pipeline, in the packaged one. NAME stands for its name in paths and in texts."""

PLACEHOLDER = "NAME"
WITH_NAME = (".yaml", ".md")
MAX_NAME_CHARS = 40
"""Room for the names of the skills, which begin with that of the pipeline."""

SHOWN_DESCRIPTION_CHARS = 100


@dataclass(frozen=True, slots=True)
class FolderOfSwarm:
    """What the files of a pipeline are checked against."""

    settings: Settings
    roles: dict[str, RoleCard]
    catalog: Catalog
    policy: HandoffPolicy
    pipelines: Pipelines

    @classmethod
    def at(cls, root: Path) -> FolderOfSwarm:
        """Load roles, skills, the policy and pipelines of a folder."""
        settings = settings_for(root, None)
        return cls(settings, *load_swarm(settings))

    def faults_of(self, path: Path) -> list[str]:
        """Return every fault of a pipeline's file."""
        return find_faults(path, self.catalog, self.roles, self.policy.route_fault)

    def paths(self) -> Iterator[Path]:
        """Yield the files of all pipelines, in the order of the search."""
        for folder in pipeline_folders(self.settings):
            yield from map(_near, sorted(folder.glob("*.yaml")))


def _near(path: Path) -> Path:
    """Return a path relative to the current folder, if it is in it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def new(
    name: Annotated[str, typer.Argument(help="Name of the pipeline: lower-case letters, digits and hyphens.")],
    root: Root = Path(),
) -> None:
    """Write a pipeline that runs: pipelines/NAME.yaml, and a skill for each of its steps.

    It counts the words of a file, without a model and without a key. Change its steps into yours.
    """
    if not field_values.is_name(name) or len(name) > MAX_NAME_CHARS:
        shaped = f"lower-case letters, digits and hyphens, at most {MAX_NAME_CHARS}, such as my-steps"
        raise InvalidInput(f"{name!r} cannot be the name of a pipeline: choose {shaped}")
    settings = settings_for(root, None)
    template = packaged_path(FOLDER) / TEMPLATE
    written = {path: settings.path(_target(path.relative_to(template), name)) for path in _files_below(template)}
    if (packaged_path(FOLDER) / f"{name}.yaml").exists():
        raise InvalidInput(f"fireswarm has a pipeline {name!r}: choose another name")
    if taken := sorted(str(target) for target in written.values() if target.exists()):
        raise InvalidInput(f"{taken[0]} exists: choose another name, or remove it")
    for path, target in written.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        text = text.replace(PLACEHOLDER, name) if path.suffix in WITH_NAME else text
        target.write_text(text, encoding="utf-8")
        console.print(f"wrote {target.relative_to(settings.path('.'))}", soft_wrap=True)
    if faults := FolderOfSwarm.at(root).faults_of(settings.path(FOLDER) / f"{name}.yaml"):
        _print_faults(faults)
        raise typer.Exit(1)
    run = command_line("swarm", "pipeline", "run", name, "--input", "path=FILE")
    console.prose("next: start `swarm up`, again if it runs; then in another terminal:")
    console.print(f"  {run}", soft_wrap=True)


def _files_below(template: Path) -> list[Path]:
    return sorted(path for path in template.rglob("*") if path.is_file() and path.suffix in (*WITH_NAME, ".py"))


def _target(path: Path, name: str) -> Path:
    """Return the place of a file of the template in the swarm's folder."""
    placed = path if len(path.parts) > 1 else Path(FOLDER) / path
    return Path(*(part.replace(PLACEHOLDER, name) for part in placed.parts))


def list_pipelines(root: Root = Path(), as_json: AsJson = False) -> None:
    """List the pipelines, with their steps and files, and the files that are left out, each with the reason."""
    folder = FolderOfSwarm.at(root)
    found = sorted(folder.pipelines.by_skill.values(), key=lambda each: each.name)
    if as_json:
        print_json(
            {
                "pipelines": [{"name": each.name, "path": each.path, **each.pipeline.model_dump()} for each in found],
                "left_out": [{"path": path, "reason": reason} for path, reason in folder.pipelines.left_out],
            }
        )
        return
    rows = [
        (
            each.name,
            each.pipeline.version,
            str(len(each.pipeline.steps)),
            _shown_path(each.path, folder.settings.root),
            cell(" ".join(each.pipeline.description.split()), SHOWN_DESCRIPTION_CHARS),
        )
        for each in found
    ]
    columns = ["pipeline", "version", "steps", "file", "description"]
    table("pipelines", columns, rows, none="no pipelines: `swarm pipeline new NAME` writes one", folded=("file",))
    for path, reason in folder.pipelines.left_out:
        text = reason if reason.startswith(str(path)) else f"{path}: {reason}"
        console.print(f"left out: {text}", soft_wrap=True, markup=False)


def _shown_path(path: Path, root: Path) -> str:
    """Return a path relative to the swarm's folder; that of the package is the same on no other machine."""
    inside = path.resolve().is_relative_to(root.resolve())
    return str(path.resolve().relative_to(root.resolve())) if inside else "part of fireswarm"


def check(
    names: Annotated[list[str] | None, typer.Argument(help="Names of pipelines, or YAML files; default: all.")] = None,
    root: Root = Path(),
    as_json: AsJson = False,
) -> None:
    """Check pipelines: every fault with its file, line and field, and what to do. Exit code 1 if there is one."""
    folder = FolderOfSwarm.at(root)
    paths = [_path_of(name, folder) for name in names] if names else [*folder.paths()]
    faults = {path: folder.faults_of(path) for path in dict.fromkeys(paths)}
    count = sum(map(len, faults.values()))
    if as_json:
        print_json([{"path": path, "faults": found} for path, found in faults.items()])
    else:
        for found in faults.values():
            _print_faults(found)
        console.print(f"{count_noun(len(faults), 'pipeline')}, {count_noun(count, 'fault')}")
    if count:
        raise typer.Exit(1)


def _print_faults(faults: list[str]) -> None:
    for fault in faults:
        console.print(fault, soft_wrap=True, markup=False)


def _path_of(name: str, folder: FolderOfSwarm) -> Path:
    """Return the file of a pipeline that is named by its name or by its file. Raises InvalidInput."""
    if name.endswith(".yaml") or "/" in name:
        if Path(name).is_dir():
            trace = command_line("swarm", "pipeline", "trace", name)
            raise InvalidInput(f"{name} is a folder: name a YAML file. `{trace}` checks the trace map of a run")
        return Path(name)
    for path in folder.paths():
        if path.stem == name:
            return path
    return folder.pipelines.get(name).path
