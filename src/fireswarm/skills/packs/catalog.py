"""The catalog: all skills by name. An invalid file does not affect the others, and accepted faults are reported."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.catalog import SkillMetadata
from fireswarm.errors import NotFound
from fireswarm.skills.packs import field_values, origin, skill_body
from fireswarm.skills.packs.cache import CatalogCache, Stamp
from fireswarm.skills.packs.discovery import SKILL_FILE, DiscoveryLimits, FoundSkill, discover, files_below
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, parse

REFERENCE_FOLDERS = ("references", "resources", "assets")
_USUAL_FOLDERS = (*REFERENCE_FOLDERS, "scripts")
FOR_SWARMS = "needs a swarm: start one with `swarm up`, and use `swarm submit`"

MAX_REFERENCES = 500
"""Maximum number of listed reference files of a skill; others can still be requested by path."""


def may_run_again(metadata: Mapping[str, str]) -> bool:
    """Return True if a skill says that it may be repeated after a crash, or that it writes nothing."""
    declared, writes = (metadata.get(name, "").strip().lower() for name in ("idempotent", "writes"))
    return declared == "true" or (not declared and writes == "false")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill pack. ``entry`` is its code, relative to ``folder``; None if it has only instructions.

    ``idempotent`` is True if it is run again after a crash: see `may_run_again`. ``references_index`` lists
    files of references/, resources/ and assets/ and files named in the body, relative to ``folder``. ``outside`` lists
    scripts of other folders that the body names; ``is_material`` is True for a skill of the folder that the work is
    about, which its user has not trusted; ``warnings`` lists faults that the loader accepted.
    """

    name: str
    description: str
    folder: Path
    entry: Path | None = None
    version: str = ""
    tags: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    idempotent: bool = False
    allowed_tools: tuple[str, ...] = ()
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    references_index: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    file: str = SKILL_FILE
    is_material: bool = False

    @property
    def path(self) -> Path:
        """Path of the skill's SKILL.md."""
        return self.folder / self.file

    @property
    def writes(self) -> bool:
        """False if ``metadata.writes`` is "false": its code changes only its output folder."""
        return self._declared_writes != "false"

    @property
    def respects_read_only(self) -> bool:
        """True if its code changes only its output folder in a read_only task, by its ``metadata.writes``."""
        return self._declared_writes in ("false", "unless_read_only")

    @property
    def _declared_writes(self) -> str:
        return self.metadata.get("writes", "").strip().lower()

    @property
    def asked_for(self) -> tuple[str, ...]:
        """Words and phrases of ``metadata.asked_for``, of which an objective for this skill's code has at least one."""
        return tuple(word.strip() for word in self.metadata.get("asked_for", "").lower().split(",") if word.strip())

    @property
    def needs_swarm(self) -> bool:
        """True if only a swarm can run it, by its ``metadata.needs: swarm`` or as a step of a pipeline."""
        return self.metadata.get("needs", "").strip().lower() == "swarm" or self.execution_mode is not None

    @property
    def execution_mode(self) -> ExecutionMode | None:
        """``metadata.execution_mode``; None for a skill that is not a pipeline step, or for an invalid value."""
        said = self.metadata.get("execution_mode", "").strip().lower()
        return ExecutionMode(said) if said in set(ExecutionMode) else None

    def describe(self) -> SkillMetadata:
        """Return stage 0 as a contract."""
        return SkillMetadata(
            name=self.name,
            description=self.description,
            tags=self.tags,
            version=self.version,
            allowed_tools=self.allowed_tools,
            references_index=self.references_index,
            license=self.license,
            compatibility=self.compatibility,
            metadata=dict(self.metadata),
        )


@dataclass(frozen=True, slots=True)
class Catalog:
    """Skills by name. ``left_out`` has skipped or shadowed skills with the reason. ``warned`` has accepted faults.

    ``for_swarms`` are skills that are not available here, since only a swarm can run them.
    """

    skills: Mapping[str, Skill] = field(default_factory=dict)
    left_out: tuple[tuple[Path, str], ...] = ()
    warned: tuple[tuple[Path, str], ...] = ()
    for_swarms: Mapping[str, Skill] = field(default_factory=dict)

    def without_swarm(self) -> Catalog:
        """Return the catalog of an agent without a swarm."""
        skills = {name: skill for name, skill in self.skills.items() if not skill.needs_swarm}
        others = {name: skill for name, skill in self.skills.items() if skill.needs_swarm}
        return replace(self, skills=skills, for_swarms=others)

    def reason_unavailable(self, name: str) -> str:
        """Return the reason why an existing skill cannot be used here, or ""."""
        return f"skill {name!r} {FOR_SWARMS}" if name in self.for_swarms else ""

    def get(self, name: str) -> Skill:
        """Return a skill. Raises NotFound with the known names."""
        if reason := self.reason_unavailable(name):
            raise NotFound(reason)
        if name not in self.skills:
            known = ", ".join(sorted(self.skills)[:50]) or "none"
            raise NotFound(f"there is no skill {name!r} (found: {known}); add skills/{name}/SKILL.md")
        return self.skills[name]


def load_catalog(
    folders: Iterable[Path], *, limits: DiscoveryLimits | None = None, cache: Path | None = None
) -> Catalog:
    """Load every skill below *folders*; for equal names the earlier folder wins.

    With *cache*, a file that need not exist yet, unchanged skills come from the cache.
    """
    with without_collection():
        return _load(discover(folders, limits), CatalogCache.load(cache))


def _load(found: FoundSkill, remembered: CatalogCache) -> Catalog:
    """Build the catalog; the first skill of each name wins."""
    skills: dict[str, Skill] = {}
    left_out: list[tuple[Path, str]] = []
    warned = list(found.notes)
    for _, file, stamp in found.skills:
        skill = _load_cached(file, stamp, remembered)
        if isinstance(skill, str):
            left_out.append((Path(file), skill))
        elif skill.name in skills:
            left_out.append((Path(file), f"shadowed by {skills[skill.name].folder}"))
        else:
            skills[skill.name] = skill
            warned += [(Path(file), warning) for warning in skill.warnings]
    remembered.save()
    return Catalog(skills, tuple(left_out), tuple(warned))


@contextmanager
def without_collection() -> Generator[None]:
    """Pause the cyclic garbage collector: loading creates no cycles, and collections took a third of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load_cached(file: str, stamp: Stamp, cache: CatalogCache) -> Skill | str:
    """Return a skill, from the cache if unchanged, or the reason why it cannot be used."""
    record = cache.get(file, stamp)
    skill = _unpack(record) if record is not None else None
    if skill is not None:
        return skill
    watched: list[str] = []
    try:
        skill = load_skill(Path(file), watched)
    except ValueError as reason:
        skill = str(reason)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    cache.put(file, stamp, watched, _pack(skill))
    return skill


def load_skill(path: Path, watched: list[str] | None = None) -> Skill:
    """Read one SKILL.md leniently. Raises ValueError with the reason if it cannot be used, or OSError.

    Folders that affect the result are added to *watched*.
    """
    with path.open("rb") as file:
        parsed = parse(file.read(MAX_FILE_BYTES + 1))
    folder = _real(path.parent)
    warnings = list(parsed.warnings)
    description = field_values.plain(parsed.fields.get("description"))
    if not description:
        raise ValueError(f"it has no description, which routing needs{_because(warnings)}")
    if len(description) > field_values.MAX_DESCRIPTION_CHARS:
        warnings.append(f"the description has {len(description):,} characters; at most 1,024 are allowed")
    metadata = field_values.flat(parsed.fields.get("metadata"))
    listing = _Listing.of(folder)
    if watched is not None:
        watched += listing.folders
    outside = (*origin.entry_outside(metadata, folder), *origin.outside(parsed, folder))
    return Skill(
        name=_name(parsed.fields, folder.name, warnings),
        description=description[: field_values.KEPT_DESCRIPTION_CHARS],
        folder=folder,
        entry=_entry(folder, metadata.get("entry"), warnings),
        version=metadata.get("version") or field_values.plain(parsed.fields.get("version")),
        tags=field_values.word_list(metadata.get("tags") or parsed.fields.get("tags")),
        roles=field_values.word_list(metadata.get("roles")),
        idempotent=may_run_again(metadata),
        headings=tuple(title for _, title, _ in skill_body.headings(parsed.body)),
        allowed_tools=field_values.tools(_first(parsed.fields, "allowed-tools", "allowed_tools", "tools")),
        license=field_values.plain(parsed.fields.get("license")),
        compatibility=field_values.plain(parsed.fields.get("compatibility")),
        metadata=metadata,
        references_index=_references(folder, listing, parsed.body),
        outside=outside,
        warnings=(*warnings, *outside),
        file=path.name,
    )


def _real(folder: Path) -> Path:
    """Resolve a link at the end of the path; the parent was resolved when the search began."""
    if os.path.islink(folder):  # noqa: PTH114 - a Path's own methods take four times as long
        return Path(os.path.realpath(folder))
    return folder if folder.is_absolute() else Path(os.path.realpath(folder))


def _because(warnings: list[str]) -> str:
    return f" ({'; '.join(warnings)})" if warnings else ""


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def _name(fields: Mapping[str, Any], folder: str, warnings: list[str]) -> str:
    """Return the name as written if valid, otherwise the folder's name, otherwise the nearest valid name."""
    written = field_values.plain(fields.get("name"))
    if field_values.is_name(written):
        if written != folder:
            warnings.append(f"its name is {written} but its folder is named {folder}")
        return written
    name = (
        folder if field_values.is_name(folder) else field_values.slug(written) or field_values.slug(folder) or "unnamed"
    )
    said = f"{written[:80]!r} is not a valid name" if written else "it has no name"
    warnings.append(f"{said}; using {name} instead")
    return name


def _entry(folder: Path, named: str | None, warnings: list[str]) -> Path | None:
    """Return the code of a skill; a path that is outside or does not exist is dropped with a warning."""
    if not named:
        return None
    entry = Path(os.path.realpath(folder / named))
    if not entry.is_relative_to(os.path.realpath(folder)):
        return None  # reported by ``provenance``
    if not entry.is_file():
        warnings.append(f"its entry {named!r} does not exist")
        return None
    return entry.relative_to(os.path.realpath(folder))


@dataclass(frozen=True, slots=True)
class _Listing:
    """The reference files of a skill, the folders that were listed, and a flag for other files in its folder."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    more: bool

    @classmethod
    def of(cls, folder: Path) -> _Listing:
        """List the usual folders of a skill."""
        files: list[str] = []
        folders: list[str] = []
        names = set(os.listdir(folder))  # noqa: PTH208 - names only, for each of 20,000 folders
        for name in sorted(names.intersection(_USUAL_FOLDERS), key=_USUAL_FOLDERS.index):
            path = f"{folder}/{name}"
            folders.append(path)
            for relative, entry in files_below(path, limit=MAX_REFERENCES) if name != "scripts" else ():
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    files.append(relative)
        return cls(tuple(files), tuple(folders), not names <= {SKILL_FILE, *_USUAL_FOLDERS})


def _references(folder: Path, listing: _Listing, body: str) -> tuple[str, ...]:
    """Return listed reference files, then other files in the folder named in the body. Scripts belong to stage 3."""
    if not listing.more:
        return listing.files  # any other name in the body is a listed file, a script, or missing
    named: list[str] = []
    for mention in skill_body.mentions(body)[:MAX_REFERENCES]:
        path = mention.path.replace("\\", "/")
        if path in listing.files or skill_body.is_script(path) or path == SKILL_FILE:
            continue
        if os.path.isfile(f"{folder}/{path}") and not origin.leads_outside(path, folder):  # noqa: PTH113 - for every file that 20,000 skills name
            named.append(os.path.normpath(path).replace("\\", "/"))
    return tuple(dict.fromkeys([*listing.files, *named]))


# ── remembering ─────────────────────────────────────────────────────────────────────────────────────────

_FIELDS = tuple(name for name in Skill.__dataclass_fields__ if name != "is_material")  # trust is asked for each time
_KINDS = (str, str, str, str | None, str, list, list, list, bool, list, str, str, dict, list, list, list, str)
"""JSON types of a skill's fields, in their order."""


def _pack(skill: Skill | str) -> list[Any]:
    if isinstance(skill, str):
        return [skill]
    values_of: list[Any] = [getattr(skill, name) for name in _FIELDS]
    return [str(value) if isinstance(value, Path) else value for value in values_of]


def _unpack(record: list[Any]) -> Skill | str | None:
    """Restore a skill from its record; None if the record was not written by ``_pack``."""
    if len(record) == 1 and isinstance(record[0], str):
        return record[0]
    if len(record) != len(_FIELDS) or not all(map(isinstance, record, _KINDS)):
        return None
    # Fields by position: by name, 20,000 skills would take twice as long.
    name, description, folder, entry, version, tags, roles, headings, idempotent, tools, *rest = record
    license_, compatibility, metadata, references, outside, warnings, file = rest
    return Skill(
        name, description, Path(folder), Path(entry) if entry else None, version, tuple(tags), tuple(roles),
        tuple(headings), idempotent, tuple(tools), license_, compatibility, metadata, tuple(references), tuple(outside),
        tuple(warnings), file,
    )  # fmt: skip
