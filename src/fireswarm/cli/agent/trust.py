"""Trust files and skills of a folder by their content, and say what that allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from fireswarm.errors import ConfigError
from fireswarm.redaction import Redactor, spell
from fireswarm.settings.load import read_source
from fireswarm.settings.trust import TrustedFiles, digest_of, digest_of_folder
from fireswarm.settings.untrusted import guarded_values, script_file
from fireswarm.skills.packs.discovery import SKILL_FILE

SETTINGS = (".yaml", ".yml")


def trust_each(places: Sequence[Path], home: Path, *, only_show: bool) -> None:
    """Print what the trust in each file or folder allows, with the hash of its content, and store it."""
    trusted = TrustedFiles(home)
    for place in places:
        is_skill = place.is_dir()
        if is_skill and not (place / SKILL_FILE).is_file():
            raise ConfigError(f"{place} has no {SKILL_FILE}: name the folder of one skill, or a file")
        digest = digest_of_folder(place) if is_skill else digest_of(read_bytes(place))
        allowed = _allowed_by_skill(place) if is_skill else _allowed_by_file(place)
        said = "trust in" if only_show else "trusted"
        typer.echo(f"{said} {spell(str(place))} with its current content, which allows:")
        for line in allowed:
            shown = line.replace("\n", "\\n")  # one value, one line
            typer.echo(f"  {Redactor().clean(spell(shown))}")
        typer.echo(f"  sha256 {digest or 'unknown: it has links or is too large'}")
        if not only_show:
            (trusted.add_folder if is_skill else trusted.add)(place, digest)
        if script := None if is_skill else _script_of(place):
            digest = digest_of(read_bytes(script))
            typer.echo(f"{said} {spell(str(script))}, which model.script names: sha256 {digest}")
            if not only_show:
                trusted.add(script, digest)


def read_bytes(file: Path) -> bytes:
    """Return the content of a file. Raises ConfigError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error


def _allowed_by_skill(folder: Path) -> list[str]:
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return ["its code runs without a question, and its text counts as yours", *(f"  {name}" for name in files)]


def _script_of(file: Path) -> Path | None:
    """Return the script of a settings file in its folder, whose content has to be trusted too."""
    return script_file(read_source(file).values, file.parent) if file.suffix in SETTINGS else None


def _allowed_by_file(file: Path) -> list[str]:
    """Return the guarded keys of a settings file with their values; other files are notes for the model."""
    if file.suffix not in SETTINGS:
        return ["its text counts as the user's words"]
    guarded = guarded_values(read_source(file).values, file.parent)
    return [f"{key}: {value}" for key, value in guarded.items()] or ["nothing that it does not allow already"]
