"""Trust in a folder's own settings file: until the user trusts its content, it cannot start programs.

A folder may come from a stranger. Its file may set everything but the keys in ``GUARDED``, which can start programs,
send the API key to another server, or loosen confinement; and it cannot choose a provider that an account pays for. A
file that the user names, the user's own file, and the environment are trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fireswarm.contracts.base import command_line, is_yes
from fireswarm.errors import ConfigError
from fireswarm.settings.providers import DEFAULTS, is_paid_by_account

STORE_TOKEN = "FIRESWARM_STORE_TOKEN"
"""Environment variable with the token of a store. It is for the store that the user names, not for that of a folder."""

GUARDED: dict[str, object] = {
    "model.script": None,
    "runtime.confinement": "auto",
    "runtime.network": False,
    "runtime.readable": [],
    "runtime.pass_environment": [],
    "runtime.shell_linux": "/bin/bash",
    "runtime.shell_windows": "pwsh",
    "permissions.default": "auto",
    "permissions.allow": [],
    "skills.outside_scripts": "block",
    "backbone.confinement": "auto",
    "backbone.auto_merge_enabled": False,
}
"""Keys for which an untrusted file may give only the default."""

STRICTER = {
    "permissions.default": ("ask", "deny"),
    "runtime.confinement": ("bubblewrap",),
    "backbone.confinement": ("bubblewrap",),
}
"""Further values that loosen nothing."""

MAX_TRUSTED_FILES = 2_000
MAX_TRUSTED_BYTES = 50_000_000
"""Limits of a folder of a skill that a user trusts."""

USUAL_KEYS = {name: provider.usual_key for name, provider in DEFAULTS.items() if provider.usual_key}
"""Environment variables that an untrusted file may name for a provider's API key."""

ADDRESSES = ("base_url", "project")
"""Settings of a provider that decide who receives the prompts."""

VARIABLE = "FIRESWARM_TRUST_SETTINGS"
"""Environment variable that trusts every settings file, for images with only the operator's files."""


def trusts_all() -> bool:
    """Return True if the environment trusts every settings file."""
    return is_yes(os.environ.get(VARIABLE))


@dataclass(frozen=True, slots=True)
class TrustedFiles:
    """The files that a user trusts, by path and content."""

    home: Path

    @property
    def path(self) -> Path:
        """The list: a JSON object of paths and hashes."""
        return self.home / ".config" / "fireswarm" / "trusted.json"

    def has(self, file: Path, digest: str) -> bool:
        """Return True if the user trusts *file* with the content of this hash."""
        return self._read().get(str(file.resolve())) == digest

    def has_folder(self, folder: Path) -> bool:
        """Return True if the user trusts all files of a folder as they are now."""
        known = self._read().get(str(folder.resolve()))
        return known is not None and known == digest_of_folder(folder)

    def add_folder(self, folder: Path, expected: str = "") -> str:
        """Trust all files of a folder as they are, and return their hash. Raises ConfigError."""
        digest = digest_of_folder(folder)
        if not digest:
            raise ConfigError(
                f"{folder} cannot be trusted as a whole: it has links, other special files, more than "
                f"{MAX_TRUSTED_FILES:,} files, or more than {MAX_TRUSTED_BYTES:,} bytes"
            )
        if expected not in ("", digest):
            raise ConfigError(f"{folder} changed while it was shown: trust it again")
        self._store({str(folder.resolve()): digest})
        return digest

    def add(self, file: Path, expected: str = "") -> str:
        """Trust *file* with its current content, keep a copy of it, and return its hash.

        Raises ConfigError if it cannot be read, or if its hash is not the *expected* one.
        """
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
        digest = digest_of(content)
        if expected not in ("", digest):
            raise ConfigError(f"{file} changed while it was shown: trust it again")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._copy(digest).parent.mkdir(mode=0o700, exist_ok=True)
        _replace(self._copy(digest), content)
        self._store({str(file.resolve()): digest})
        return digest

    def content(self, file: Path) -> bytes | None:
        """Return the content with which the user trusted *file*; None if there is no copy of it."""
        digest = self._read().get(str(file.resolve()))
        with contextlib.suppress(OSError):
            content = self._copy(str(digest)).read_bytes()
            return content if digest_of(content) == digest else None
        return None

    def _store(self, entries: Mapping[str, str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _replace(self.path, (json.dumps({**self._read(), **entries}, indent=2) + "\n").encode())

    def _copy(self, digest: str) -> Path:
        return self.path.parent / "trusted" / digest

    def _read(self) -> Mapping[str, object]:
        return _read_object(self.path)


@dataclass(frozen=True, slots=True)
class PinnedTools:
    """What the tools of a server were when they were first listed, or a person last approved a call, as digests."""

    home: Path
    server: str

    @property
    def path(self) -> Path:
        """The list: a JSON object of servers, each with the digests of its tools by name."""
        return self.home / ".config" / "fireswarm" / "mcp_tools.json"

    def find_changed(self, digests: Mapping[str, str]) -> frozenset[str]:
        """Return the tools that are new or have changed; those of a new server are pinned, and none is returned."""
        known = self._read().get(self.server)
        if not isinstance(known, dict):
            self._write(digests)
            return frozenset()
        return frozenset(name for name, digest in digests.items() if known.get(name) != digest)

    def pin(self, tool: str, digest: str) -> None:
        """Pin a tool as it is now."""
        known = self._read().get(self.server)
        self._write({**(cast("dict[str, str]", known) if isinstance(known, dict) else {}), tool: digest})

    def _write(self, digests: Mapping[str, str]) -> None:
        with contextlib.suppress(OSError):  # a read-only home: every run begins anew
            self.path.parent.mkdir(parents=True, exist_ok=True)
            entries = {**self._read(), self.server: dict(digests)}
            _replace(self.path, (json.dumps(entries, indent=2) + "\n").encode())

    def _read(self) -> Mapping[str, object]:
        return _read_object(self.path)


def _read_object(path: Path) -> Mapping[str, object]:
    with contextlib.suppress(OSError, ValueError):
        content: object = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return cast("dict[str, object]", content)
    return {}


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(content)
    partial.replace(path)


def guarded_keys(values: Mapping[str, Any]) -> list[str]:
    """Return the dotted keys in *values* that only a trusted file may set to these values."""
    flat = dict(_flatten(values))
    found = [
        key
        for key, default in GUARDED.items()
        if key in flat and flat[key] not in (None, default, *STRICTER.get(key, ()))
    ]
    uri = str(_section(values, "store").get("uri"))
    if _is_remote(uri) or (uri.startswith("firelite:") and os.environ.get(STORE_TOKEN)):  # the token is sent there
        found.append("store.uri")
    model = _section(values, "model")
    choices = {
        "model.provider": model.get("provider"),
        "memory.embeddings": _section(values, "memory").get("embeddings"),
    }
    for key, chosen in choices.items():
        provider = DEFAULTS.get(str(chosen))
        if provider is not None and provider.access:  # paid by the account of the machine
            found.append(key)
    found += _paid_choices("model", model)
    for role, chosen in _section(values, "roles").items():
        found += _paid_choices(f"roles.{role}", chosen)
    for name, keys in _section(model, "providers").items():
        given = cast("Mapping[str, Any]", keys) if isinstance(keys, Mapping) else {}
        found += [f"model.providers.{name}.{key}" for key in ADDRESSES if given.get(key) is not None]
        if "http_options" in _section(given, "options"):  # Google's SDK reads a base URL from it
            found.append(f"model.providers.{name}.options")
        if given.get("api_key_env") not in (None, USUAL_KEYS.get(name)):
            found.append(f"model.providers.{name}.api_key_env")
    if _section(_section(values, "budget"), "prices"):  # a price of nothing would lift each budget
        found.append("budget.prices")
    return [*found, *_outer_folders(values), *_starting_capabilities(values)]


def _paid_choices(place: str, chosen: object) -> list[str]:
    """Return the keys of a choice of models that name a provider which the account of the machine pays for."""
    found: list[str] = []
    given = cast("Mapping[str, object]", chosen) if isinstance(chosen, Mapping) else {}
    for key in ("model", "fallback"):
        named = given.get(key)
        names = cast("list[object]", named) if isinstance(named, list) else [named]
        if any(is_paid_by_account(name) for name in names if isinstance(name, str)):
            found.append(f"{place}.{key}")
    return found


def untrusted_keys(file: Path, digest: str, values: Mapping[str, Any], home: Path) -> list[str]:
    """Return the guarded keys of a folder's own *file*, or [] if the user trusts its content."""
    keys = guarded_keys(values)
    return [] if not keys or trusts_all() or TrustedFiles(home).has(file, digest) else keys


def _is_remote(uri: str) -> bool:
    """Return True for a firelite that other machines serve."""
    scheme, _, place = uri.partition("://")
    host = place.rpartition(":")[0].strip("[]")
    is_local = place.startswith("unix:") or host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host)
    return scheme == "firelite" and not is_local


def refuse_untrusted(
    file: Path, digest: str, values: Mapping[str, Any], lines: Mapping[tuple[str, ...], int], home: Path
) -> None:
    """Raise ConfigError if a folder's own *file* sets guarded keys and the user does not trust its content.

    *digest* is the hash of the bytes from which *values* were parsed, so that a change in between is noticed.
    """
    keys = untrusted_keys(file, digest, values, home)
    if not keys:
        return
    why = "can start programs, send your API key elsewhere, use your account or loosen limits"
    told = [f"{file}:{_line(key, lines)}: {key} {why}" for key in keys]
    told.append(f"read the file, then trust its content: {command_line('agent', 'trust', file)}")
    raise ConfigError("\n".join(told))


def _starting_capabilities(values: Mapping[str, Any]) -> list[str]:
    """Return the key of the capabilities if one of them starts servers, or reaches private hosts."""
    uses = values.get("capabilities")
    listed = cast("list[object]", uses) if isinstance(uses, list) else []
    names = [cast("Mapping[str, object]", use).get("id") if isinstance(use, Mapping) else use for use in listed]
    reaching = [use for use in listed if isinstance(use, Mapping) and _has_hosts(cast("Mapping[str, Any]", use))]
    return ["capabilities"] if "mcp" in names or reaching else []


def _has_hosts(use: Mapping[str, Any]) -> bool:
    """Return True if a capability is given private hosts that it may reach."""
    return bool(_section(use, "config").get("allow_hosts"))


def _outer_folders(values: Mapping[str, Any]) -> list[str]:
    """Return the key of the folders of skills if one of them is outside of the folder of the file."""
    given = _section(values, "skills").get("dir")
    named = cast("list[object]", given) if isinstance(given, list) else [given]
    outer = [path for path in named if isinstance(path, str) and os.path.normpath(path).startswith(("/", "~", ".."))]
    return ["skills.dir"] if outer else []


def _flatten(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(cast("Mapping[str, Any]", value), f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else {}


def _line(key: str, lines: Mapping[tuple[str, ...], int]) -> int:
    keys = tuple(key.split("."))
    while keys and keys not in lines:
        keys = keys[:-1]
    return lines.get(keys, 1)


def digest_of_folder(folder: Path) -> str:
    """Return the hash of all files of a folder, hidden ones too; "" if it has links, or is too large to be hashed."""
    digest, count, size = hashlib.sha256(), 0, 0
    for where, folders, files in os.walk(folder.resolve()):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = Path(where, name)
            count += 1
            if path.is_symlink() or count > MAX_TRUSTED_FILES:
                return ""
            if name in folders:
                continue
            try:
                size += path.stat().st_size
                if not path.is_file() or size > MAX_TRUSTED_BYTES:
                    return ""
                content = path.read_bytes()
            except OSError:
                return ""
            digest.update(f"{path.relative_to(folder.resolve()).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def digest_of(content: bytes) -> str:
    """Return the hash of a file's content."""
    return hashlib.sha256(content).hexdigest()
