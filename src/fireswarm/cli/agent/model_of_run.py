"""The model of a run: stored in the run's folder, and used when the run is resumed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fireswarm.errors import ConfigError
from fireswarm.settings import AgentSettings
from fireswarm.settings.load import home_folder
from fireswarm.settings.run_folders import make_kept_folder
from fireswarm.settings.trust import TrustedFiles, digest_of, trusts_all
from fireswarm.settings.untrusted import guarded_keys

MODEL_FILE = "model.json"
FIELDS = ("provider", "name", "script")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options ``--provider``, ``--model`` and ``--script`` of a command."""

    provider: str | None = None
    name: str | None = None
    script: str | None = None

    def values(self) -> dict[str, Any]:
        """Return the settings that the options set."""
        return {
            "model.provider": self.provider or ("scripted" if self.script else None),
            "model.name": self.name,
            "model.script": self.script,
        }

    def keep(self, folder: Path, settings: AgentSettings) -> None:
        """Write the model of a new run into its folder.

        If an option chose a script or an account, the file is trusted like the option.
        """
        model = settings.model
        script = _absolute(model.script) if model.script and model.provider == "scripted" else None
        content = {"provider": model.provider, "name": model.model_name, "script": script}
        make_kept_folder(folder)
        file = folder / MODEL_FILE
        file.write_text(json.dumps(content) + "\n", encoding="utf-8")
        if self != ModelOptions() and guarded_keys({"model": content}):
            with contextlib.suppress(OSError):  # without a home folder, the options must be given again
                TrustedFiles(home_folder()).add(file)

    def settings_for(self, folder: Path, load: Callable[[dict[str, Any]], AgentSettings]) -> AgentSettings:
        """Return the settings with the model of the run in *folder*; *load* applies values to them.

        An option overrides it. Raises ConfigError if the file is damaged, names a missing script, or is not trusted.
        """
        file = folder / MODEL_FILE
        if self.provider or self.script or not file.is_file():
            return load(self.values())
        kept, digest = _read(file)
        values = {f"model.{name}": value for name, value in kept.items()}
        settings = load(values | {name: value for name, value in self.values().items() if value is not None})
        if guarded_keys({"model": kept}) and not _is_trusted(file, digest, kept, load):
            flags = " ".join(f"--{name} {kept[name]}" for name in ("provider", "script") if kept.get(name))
            raise ConfigError(f"{file} names a model that you did not choose here: to use it, add {flags}")
        script = kept.get("script")
        if script and not (path := Path(_split(script)[0])).is_file():
            raise ConfigError(f"the script {path} of run {folder.name} is missing: give another with --script")
        return settings


def _read(file: Path) -> tuple[dict[str, str], str]:
    """Return the fields of a file, and the hash of its content."""
    try:
        content = file.read_bytes()
        fields: Any = json.loads(content)
        found = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
        if not all(isinstance(value, str) for value in found.values()):
            raise ValueError("its values must be strings")
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise ConfigError(f"{file} cannot be read ({error}): name the model with --provider and --model") from error
    return cast("dict[str, str]", found), digest_of(content)


def _is_trusted(file: Path, digest: str, kept: dict[str, str], load: Callable[[dict[str, Any]], AgentSettings]) -> bool:
    """Return True if the person chose the model by an option, or in settings that have not changed."""
    if trusts_all() or TrustedFiles(home_folder()).has(file, digest):
        return True
    try:
        model = load({}).model
    except ConfigError:
        return False
    script = _absolute(model.script) if model.script else None
    return (model.provider, script if kept.get("script") else None) == (kept.get("provider"), kept.get("script"))


def _absolute(script: str) -> str:
    path, function = _split(script)
    return f"{Path.cwd() / path}{function}"


def _split(script: str) -> tuple[str, str]:
    """Return the path of a script, and ``:FUNCTION`` of a Python file."""
    path, mark, function = script.rpartition(":")
    return (path, mark + function) if path.endswith(".py") else (script, "")
