"""Load the pipelines of a swarm: the files ``pipelines/*.yaml`` of its folder, then those of the package.

A file that cannot be used does not affect the others: it is left out with the reason, the line and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from fireswarm.contracts.base import command_line, describe_fault
from fireswarm.contracts.frontmatter import check_yaml, explain_yaml, load_yaml
from fireswarm.contracts.inputs import check_schema
from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.pipelines.definition import FAULTS, SUFFIX, Pipeline, PipelineStep
from fireswarm.pipelines.files import safe_path
from fireswarm.pipelines.gates import CONDITIONS, GATES
from fireswarm.skills.packs import field_values
from fireswarm.skills.packs.catalog import Catalog, Skill

FOLDER = "pipelines"
MAX_FILE_BYTES = 200_000
"""A larger file is a mistake."""

MAX_FAULTS = 10
"""So many faults of a file are named in an error; `find_faults` returns all."""

RouteFault = Callable[[str, str], str]
"""Returns why the first role may not hand work to the second one, or ""."""


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline and the file that it was read from. ``line_of`` gives the line of a field by its keys, from 1."""

    name: str
    path: Path
    pipeline: Pipeline
    lines: Mapping[tuple[Any, ...], int] = field(default_factory=dict)

    @property
    def skill_name(self) -> str:
        """The skill of the task that plans the steps."""
        return f"{self.name}{SUFFIX}"

    def where(self, *keys: Any) -> str:
        """Return ``file:line`` of a field, or of its nearest parent in the file."""
        return _where(self.path, self.lines, keys)


@dataclass(frozen=True, slots=True)
class Pipelines:
    """Pipelines by the skill that plans them. ``left_out`` has the files that cannot be used, with the reason."""

    by_skill: Mapping[str, PipelineFile] = field(default_factory=dict)
    left_out: tuple[tuple[Path, str], ...] = ()

    def get(self, name: str) -> PipelineFile:
        """Return a pipeline by its name. Raises InvalidInput with the known names, or why it was left out."""
        if found := self.by_skill.get(f"{name}{SUFFIX}"):
            return found
        if reasons := [reason for path, reason in self.left_out if path.stem == name]:
            raise InvalidInput(f"pipeline {name!r} cannot be used: {reasons[0]}")
        known = ", ".join(sorted(each.name for each in self.by_skill.values())) or "none"
        make = command_line("swarm", "pipeline", "new", name)
        raise InvalidInput(f"unknown pipeline {name!r}; known: {known}. `{make}` makes one")

    def planner_of(self, skill: str) -> str:
        """Return the skill that plans the steps with *skill*, or ""."""
        return next((name for name, each in self.by_skill.items() if each.pipeline.find_step(skill) is not None), "")

    def step_of(self, skill: str) -> PipelineStep | None:
        """Return the first step with *skill*, or None."""
        steps = (each.pipeline.find_step(skill) for each in self.by_skill.values())
        return next((step for step in steps if step is not None), None)


def load_pipelines(
    folders: Iterable[Path], catalog: Catalog, roles: Iterable[str] | None = None, route: RouteFault | None = None
) -> tuple[Pipelines, Catalog]:
    """Load every pipeline of *folders*; for equal names the earlier folder wins.

    Returns them with the catalog that also has the skills that plan them. Without *roles*, roles are not checked.
    """
    found: dict[str, PipelineFile] = {}
    left_out: list[tuple[Path, str]] = []
    known = frozenset(roles) if roles is not None else None
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            try:
                file = read_pipeline(path)
                check_pipeline(file, catalog, known, route)
            except InvalidInput as error:
                left_out.append((path, str(error)))
                continue
            if file.skill_name in found:
                left_out.append((path, f"shadowed by {found[file.skill_name].path}"))
            else:
                found[file.skill_name] = file
    skills = {**catalog.skills, **{name: _planning_skill(file) for name, file in found.items()}}
    return Pipelines(found, tuple(left_out)), replace(catalog, skills=skills)


def read_pipeline(path: Path) -> PipelineFile:
    """Read a pipeline's file. Raises InvalidInput with the file, the line, the field and the fault."""
    read = _read(path)
    if isinstance(read, PipelineFile):
        return read
    raise InvalidInput("; ".join(read[:MAX_FAULTS]))


def _read(path: Path) -> PipelineFile | list[str]:
    """Return the pipeline of a file, or the faults of its text and its fields."""
    if not field_values.is_name(path.stem):
        return [f"{path}: name the file in lower-case letters, digits and hyphens, such as my-steps.yaml"]
    try:
        text = read_regular_file(path, MAX_FILE_BYTES).decode("utf-8")
        content, lines = load_yaml(text), _lines_of(text)
    except FileNotFoundError:
        make = command_line("swarm", "pipeline", "new", path.stem)
        return [f"{path} does not exist: `{make}` makes one"]
    except OSError as error:
        return [f"{path} cannot be read: {error}"]
    except UnicodeDecodeError as error:
        return [f"{path} is not UTF-8 text: {error}"]
    except yaml.YAMLError as error:
        return [f"{path} is not YAML: {explain_yaml(error)}"]
    if not isinstance(content, dict) or "steps" not in content:
        return [f"{path} is no pipeline: it has no `steps`; `swarm pipeline new` writes an example"]
    try:
        pipeline = Pipeline.model_validate(content)
    except ValidationError as error:
        return [*_validation_faults(path, lines, error)]
    steps: list[PipelineStep] = []
    faults: list[str] = []
    for number, step in enumerate(pipeline.steps):
        try:
            steps.append(step.model_copy(update={"answer_schema": _answer_schema(path, step)}))
        except (OSError, ValueError, RecursionError, ConfigError, InvalidInput) as error:
            told = f"step {step.id!r}: {step.advice} is no JSON Schema of an answer: {error}"
            faults.append(f"{_where(path, lines, ('steps', number, 'advice'))}: steps.{number}.advice: {told}")
    return faults or PipelineFile(path.stem, path, pipeline.model_copy(update={"steps": tuple(steps)}), lines)


def _answer_schema(path: Path, step: PipelineStep) -> dict[str, Any]:
    """Return the JSON Schema in the file that a step names, which is in the folder of the pipeline's file or below."""
    if step.answer_schema:
        raise InvalidInput("write the schema to a file, and name it as `advice`")
    if not step.advice:
        return {}
    schema: Any = json.loads(read_regular_file(path.parent / safe_path(step.advice), MAX_FILE_BYTES, follow=False))
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise InvalidInput('an answer is an object: write {"type": "object", "properties": {...}}')
    check_schema(schema, step.advice)
    return schema


def _validation_faults(path: Path, lines: Mapping[tuple[Any, ...], int], error: ValidationError) -> Iterator[str]:
    for item in error.errors():
        found = [(item["loc"], describe_fault(cast("Mapping[str, Any]", item)))]
        if item["type"] == FAULTS:
            found = [(tuple(keys), fault) for keys, fault in item.get("ctx", {})["faults"]]
        for keys, fault in found:
            named = f"{'.'.join(map(str, keys))}: " if keys else ""
            yield f"{_where(path, lines, keys)}: {named}{fault}"


def _where(path: Path, lines: Mapping[tuple[Any, ...], int], keys: tuple[Any, ...]) -> str:
    while keys and keys not in lines:
        keys = keys[:-1]
    return f"{path}:{lines[keys]}" if keys else str(path)


def _lines_of(text: str) -> dict[tuple[Any, ...], int]:
    """Return the line of each key and each entry of a YAML text, from 1."""
    check_yaml(text)
    lines: dict[tuple[Any, ...], int] = {}
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    open_nodes: list[tuple[tuple[Any, ...], Any]] = [((), root)]
    while open_nodes:
        keys, node = open_nodes.pop()
        if isinstance(node, yaml.MappingNode):
            pairs = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            pairs = [(number, value, value) for number, value in enumerate(node.value)]
        else:
            continue
        for name, marked, value in pairs:
            lines[*keys, name] = marked.start_mark.line + 1
            open_nodes.append(((*keys, name), value))
    return lines


def find_faults(
    path: Path, catalog: Catalog, roles: Iterable[str] | None = None, route: RouteFault | None = None
) -> list[str]:
    """Return every fault of a pipeline's file, each with the file, the line, the field and what to do."""
    read = _read(path)
    known = frozenset(roles) if roles is not None else None
    return [*_pipeline_faults(read, catalog, known, route)] if isinstance(read, PipelineFile) else read


def check_pipeline(
    file: PipelineFile, catalog: Catalog, roles: frozenset[str] | None = None, route: RouteFault | None = None
) -> None:
    """Check skills, modes, roles, gates and conditions of a pipeline. Raises InvalidInput with its faults."""
    if faults := [*_pipeline_faults(file, catalog, roles, route)]:
        raise InvalidInput("; ".join(faults[:MAX_FAULTS]))


def _pipeline_faults(
    file: PipelineFile, catalog: Catalog, roles: frozenset[str] | None, route: RouteFault | None
) -> Iterator[str]:
    for number, step in enumerate(file.pipeline.steps):
        for name, fault in _step_faults(file, step, catalog, roles, route):
            keys = ("steps", number, name)
            yield f"{file.where(*keys)}: {'.'.join(map(str, keys))}: step {step.id!r}: {fault}"
    if roles is not None and file.pipeline.role not in roles:
        yield f"{file.where('role')}: role: there is no role {file.pipeline.role!r}; known: {_list_names(roles)}"


def _step_faults(
    file: PipelineFile, step: PipelineStep, catalog: Catalog, roles: frozenset[str] | None, route: RouteFault | None
) -> Iterator[tuple[str, str]]:
    skill = catalog.skills.get(step.skill_name)
    if skill is None or skill.entry is None:
        yield "skill", f"there is no skill {step.skill_name!r} with code: add skills/{step.skill_name}/SKILL.md"
    elif skill.execution_mode is None:
        modes = ", ".join(mode.value for mode in ExecutionMode)
        yield "skill", f"add `execution_mode: deterministic` to the metadata of {skill.path}, or another of {modes}"
    elif step.mode not in (None, skill.execution_mode):
        yield "mode", f"the skill is {skill.execution_mode.value} by {skill.path}: write that, or omit `mode`"
    if roles is not None and step.role not in roles:
        yield "role", f"there is no role {step.role!r}; known: {_list_names(roles)}"
    elif route is not None and (fault := route(file.pipeline.role, step.role)):
        yield "role", fault
    if unknown := sorted({*step.gates} - GATES.keys()):
        yield "gates", f"there is no gate {', '.join(unknown)}; known: {_list_names(GATES)}"
    asked = [*step.when, *([step.loop.until] if step.loop is not None else [])]
    if unknown := sorted({each.holds for each in asked if each.holds} - CONDITIONS.keys()):
        yield "when", f"there is no condition {', '.join(unknown)}; known: {_list_names(CONDITIONS)}"


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _planning_skill(file: PipelineFile) -> Skill:
    """Return the skill that plans a pipeline's steps. Its code is that of fireswarm."""
    pipeline = file.pipeline
    tags: Sequence[str] = field_values.word_list(pipeline.tags)
    return Skill(
        name=file.skill_name,
        description=" ".join(pipeline.description.split()),
        folder=file.path.parent,
        version=pipeline.version,
        tags=tuple(tags),
        roles=(pipeline.role,),
        idempotent=True,
        metadata={"execution_mode": ExecutionMode.DETERMINISTIC.value, "writes": "false"},
        file=file.path.name,
    )
