"""Load settings from the file, then the environment, then the command line.

Errors name the file, the line and the key, and list the known keys.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fireswarm.contracts.base import command_line, describe_fault
from fireswarm.contracts.frontmatter import check_yaml
from fireswarm.errors import ConfigError
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import AgentSettings
from fireswarm.settings.providers import DEFAULTS
from fireswarm.settings.run_folders import add_named_places
from fireswarm.settings.swarm import CONFIG_FILE, ENVIRONMENT, Settings
from fireswarm.settings.trust import TrustedFiles, digest_of, trusts_all
from fireswarm.settings.untrusted import LARGEST, LOWERED, describe_refusal, untrusted_keys, untrusted_script

AGENT_FILE = "agent.yaml"
MAX_FILE_BYTES = 1_000_000
"""A larger settings file is a mistake."""

Keys = tuple[str, ...]


@dataclass(slots=True)
class Source:
    """A parsed settings file: its values, the line of each key (from 1), and the hash of its content."""

    path: Path | None = None
    digest: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Keys, int] = field(default_factory=dict)

    def where(self, keys: Keys) -> str:
        """Return ``file:line`` of a key, or of its nearest parent in the file."""
        if self.path is None:
            return "settings"
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return f"{self.path}:{self.lines[keys]}" if keys else str(self.path)


def load_settings(
    root: Path,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    on_untrusted: Callable[[str], None] | None = None,
) -> Settings:
    """Load ``<root>/swarm.yaml`` if it exists, then the environment, then *overrides* (dotted keys).

    Raises ConfigError for a file with guarded keys that the user does not trust. With *on_untrusted*, the settings with
    which the user trusted the file apply instead, or else the defaults, and the function is called with a note.
    """
    env = os.environ if environment is None else environment
    path = require_root(root) / CONFIG_FILE
    source = read_source(path) if path.exists() else Source()
    if on_untrusted is None:
        _refuse_untrusted(source, home_folder())
    else:
        source = _trusted_source(source, home_folder(), on_untrusted)
    for name, keys in ENVIRONMENT.items():
        if env.get(name):
            _put(source, keys, env[name])
    if env.get("FIRESTORE_EMULATOR_HOST") and "FIRESWARM_STORE" not in env:
        _put(source, ("store", "uri"), f"firelite://{env['FIRESTORE_EMULATOR_HOST']}")
    _override(source, overrides or {})
    source.values["root"] = root
    return validate(Settings, source)


def require_root(root: Path) -> Path:
    """Return the folder of a swarm. Raises ConfigError if there is none."""
    if root.is_dir():
        return root
    found = "is not a folder" if root.exists() else "does not exist"
    raise ConfigError(
        f"the folder {root} {found}: name an existing one with --root, or create a swarm there with "
        f"`{command_line('swarm', 'init', root)}`"
    )


def home_folder() -> Path:
    """Return the user's home folder, or ``/`` for a user id without one, as container runtimes set it."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def find_agent_file(named: Path | None, root: Path, home: Path) -> Path | None:
    """Return the settings file of ``agent``: *named*, ``./agent.yaml``, ``~/.config/agent/agent.yaml``, or None."""
    if named is not None:
        if not named.is_file():
            raise ConfigError(f"{named} does not exist: give another --config, or make one with `agent config init`")
        return named
    candidates = (root / AGENT_FILE, home / ".config" / "agent" / AGENT_FILE)
    return next((path for path in candidates if path.is_file()), None)


def load_found_settings(
    named: Path | None, root: Path, home: Path, overrides: Mapping[str, Any] | None = None
) -> AgentSettings:
    """Load the file that ``find_agent_file`` finds. Raises ConfigError for guarded keys in a folder without trust."""
    path = find_agent_file(named, root, home)
    source = read_source(path) if path is not None else Source()
    if named is not None:
        add_named_places(named)
    if named is None and path == root / AGENT_FILE:
        _refuse_untrusted(source, home, lowers=True)
        trusted = trusts_all() or TrustedFiles(home).has(root / AGENT_FILE, source.digest)
        _keep_own_limits(source, home / ".config" / "agent" / AGENT_FILE, trusted=trusted)
    return _agent_settings(source, overrides)


_BY_STRICTNESS = ("allow", "auto", "ask", "deny")


def _keep_own_limits(source: Source, own_path: Path, *, trusted: bool) -> None:
    """Add the rules, the profile and the limits of the user's own file, or the defaults: a folder's file loosens none.

    If the file of the folder is *trusted*, its numbers are in force as they are.
    """
    own = _agent_settings(read_source(own_path) if own_path.is_file() else Source(), None)
    chosen = _agent_settings(source, None)
    source.values = chosen.model_dump(by_alias=True, exclude_unset=True)  # each key in one spelling
    for key in () if trusted else _numbers():
        limit, wanted = (_value_of(key, each) for each in (own, chosen))
        limit = LARGEST.get(key) if limit is None and wanted is not None else limit
        if limit is not None and (wanted is None or wanted > limit):
            _put(source, tuple(key.split(".")), limit)
    if _BY_STRICTNESS.index(own.permissions.default) > _BY_STRICTNESS.index(chosen.permissions.default):
        _put(source, ("permissions", "default"), own.permissions.default)
    for name in ("ask", "deny"):
        rules = (*getattr(own.permissions, name), *getattr(chosen.permissions, name))
        if rules:
            _put(source, ("permissions", name), list(dict.fromkeys(rules)))
    strictness = ("permissive", "demo_safe", "read_only")
    if strictness.index(own.runtime.profile) > strictness.index(chosen.runtime.profile):
        _put(source, ("runtime", "profile"), own.runtime.profile)


def _value_of(key: str, settings: Any) -> Any:
    return reduce(getattr, key.replace("-", "_").split("."), settings)


def _numbers() -> Iterator[str]:
    """Yield the keys of numbers in ``agent.yaml`` that an untrusted file only lowers, for each provider."""
    for key in LOWERED:
        if key.partition(".")[0] in AgentSettings.model_fields:
            yield from [key.replace("*", provider) for provider in DEFAULTS] if "*" in key else [key]


def load_agent_settings(path: Path | None, overrides: Mapping[str, Any] | None = None) -> AgentSettings:
    """Load an ``agent.yaml`` (None: the defaults), then *overrides* (dotted keys)."""
    if path is not None:
        add_named_places(path)
    return _agent_settings(read_source(path) if path is not None else Source(), overrides)


def _agent_settings(source: Source, overrides: Mapping[str, Any] | None) -> AgentSettings:
    _override(source, overrides or {})
    return validate(AgentSettings, source)


def _refuse_untrusted(source: Source, home: Path, *, lowers: bool = False) -> None:
    """Raise ConfigError for guarded keys in the content that was read, unless the user trusts it."""
    if source.path is not None:
        keys = untrusted_keys(source.path, source.digest, source.values, home, lowers=lowers)
        if keys:
            raise ConfigError(describe_refusal(keys, source.path, source.lines))
        if script := untrusted_script(source.path, source.values, home):
            raise ConfigError(
                f"{source.where(('model', 'script'))}: model.script names {script}, whose content you do not trust: "
                f"read it, then `{command_line('agent', 'trust', source.path)}`"
            )


def _trusted_source(source: Source, home: Path, note: Callable[[str], None]) -> Source:
    """Return *source* if the user trusts it; else what was trusted of the file, or nothing, and call *note*."""
    if source.path is None or not untrusted_keys(source.path, source.digest, source.values, home):
        return source
    content = TrustedFiles(home).content(source.path)
    applies = "the defaults apply" if content is None else "the trusted content applies"
    note(
        f"{source.path} is not in force until you trust it, {applies}: read the file, then "
        f"`{command_line('agent', 'trust', source.path)}`"
    )
    return Source() if content is None else _parse_source(source.path, content)


def read_source(path: Path) -> Source:
    """Read a YAML file with the line of every key. Raises ConfigError if it is not a map of settings."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return _parse_source(path, content)


def _parse_source(path: Path, content: bytes) -> Source:
    try:
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes and is not a settings file")
        text = content.decode("utf-8-sig")
        check_yaml(text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {error.problem or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    source = Source(path, digest_of(content))
    if node is None or node.tag == "tag:yaml.org,2002:null":
        return source
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}:{node.start_mark.line + 1} must be a map of settings")
    _lines(node, (), source, set())
    loader = yaml.SafeLoader("")
    try:
        source.values = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line} uses YAML that settings do not support: {error.problem}") from error
    except (ValueError, RecursionError) as error:  # such as the date 2026-13-45
        raise ConfigError(f"{path} uses YAML that settings do not support: {error}") from error
    return source


def _lines(node: yaml.MappingNode, above: Keys, source: Source, seen: set[int]) -> None:
    """Record the line of each key; a section used twice by an alias is visited once."""
    seen.add(id(node))
    for key, value in node.value:
        keys = (*above, str(key.value))
        if keys in source.lines:
            raise ConfigError(f"{source.path}:{key.start_mark.line + 1}: {'.'.join(keys)} is given twice")
        source.lines[keys] = key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode) and id(value) not in seen:
            _lines(value, keys, source, seen)


def validate[T: BaseModel](kind: type[T], source: Source) -> T:
    """Validate the values. Raises ConfigError with every fault, its location and the allowed values."""
    try:
        return kind.model_validate(source.values)
    except ValidationError as error:
        faults = [_describe_fault(kind, source, item) for item in error.errors()]
        raise ConfigError("\n".join(faults)) from error


def _describe_fault(kind: type[BaseModel], source: Source, item: ErrorDetails) -> str:
    keys: Keys = tuple(str(part) for part in item["loc"])
    place = f"{source.where(keys)}: {'.'.join(keys) or 'settings'}"
    if item["type"] != "extra_forbidden":
        return f"{place}: {describe_fault(item)} (given: {_preview(item['input'])})"
    known = _known_keys(kind, keys[:-1])
    near = difflib.get_close_matches(keys[-1], known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
    return f"{place}: unknown key; {hint}"


def _preview(value: Any) -> str:
    return "a map" if isinstance(value, dict) else Redactor().text(repr(value))[:80]


def _known_keys(kind: type[BaseModel], keys: Keys) -> list[str]:
    for key in keys:
        annotation = next((field.annotation for name, field in _named_fields(kind) if name == key), None)
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        kind = annotation
    return sorted(name for name, _ in _named_fields(kind))


def _named_fields(kind: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields with their names as they stand in a file."""
    return ((field.alias or name, field) for name, field in kind.model_fields.items())


def _override(source: Source, overrides: Mapping[str, Any]) -> None:
    for key, value in overrides.items():
        if value is not None:
            _put(source, tuple(key.split(".")), value)


def _put(source: Source, keys: Keys, value: Any) -> None:
    values = source.values
    for key in keys[:-1]:
        section = values.setdefault(key, {})
        if section is None:
            section = values[key] = {}
        if not isinstance(section, dict):
            raise ConfigError(f"{source.where(keys)}: {key} must be a map")
        values = cast("dict[str, Any]", section)
    values[keys[-1]] = value
