"""Confinement on macOS: a profile for Seatbelt, which its program ``sandbox-exec`` reads.

The profile denies all that it does not name; of several rules that fit an operation, the last one counts. Seatbelt asks
with the path of what is opened, without links. It can therefore forbid a name that does not exist yet.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import Launch
from fireswarm.processes.confinement.paths.names import GIT, GIT_PROTECTED, OWN_FOLDER, PROTECTED
from fireswarm.processes.confinement.paths.rules import PathRules, private_folders

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
TRIAL_SECONDS = 60.0

_SYSTEM = (
    *("/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes", "/Library/Apple", "/usr/share"),
    *("/Library/Developer/CommandLineTools", "/Applications/Xcode.app/Contents/Developer", "/private/var/db/timezone"),
    *("/Library/Preferences/.GlobalPreferences.plist", "/Library/Frameworks", "/private/var/db/dyld", "/opt/local"),
    *("/private/etc/ssl", "/private/etc/localtime", "/private/etc/shells", "/private/etc/protocols", "/dev/fd"),
    *("/private/var/select", "/private/etc/services", "/private/etc/profile", "/private/etc/bashrc"),
)
"""Folders and files of the system that programs read."""

_ROOTS = ("/", "/private", "/var", "/etc", "/tmp", "/dev", "/private/var", "/private/etc", "/private/tmp")
"""What a path leads through, among it the three links of the system."""

_SOURCES = ("/dev/random", "/dev/urandom")
_DEVICES = ("/dev/null", "/dev/zero")
_SERVICES = ("com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo")
_NETWORK_SERVICES = (
    *("com.apple.SystemConfiguration.configd", "com.apple.SystemConfiguration.DNSConfiguration", "com.apple.trustd"),
    *("com.apple.trustd.agent", "com.apple.dnssd.service"),
)
_NETWORK = (
    '(allow network-outbound (remote ip) (literal "/private/var/run/mDNSResponder"))',
    "(allow network-bind network-inbound (local ip))",
    "(allow system-socket)",
)
_BEGIN = (
    "(version 1)",
    "(deny default)",
    "(allow process-fork sysctl-read ipc-posix-sem)",
    "(allow signal process-info* (target same-sandbox))",
)
_READ = "file-read* file-map-executable process-exec*"
_FOLDED = {"s": "(s|S|\u017f)", "k": "(k|K|\u212a)"}
"""Letters that a file system which does not tell cases apart takes for others than the two cases."""


@dataclass(slots=True)
class Profile:
    """The text of a profile, and the paths that stand in it as parameters, so that none can be read as a rule."""

    lines: list[str] = field(default_factory=lambda: list(_BEGIN))
    parameters: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def text(self) -> str:
        """The profile as ``sandbox-exec -p`` takes it."""
        return "\n".join(self.lines)

    def add(self, action: str, operations: str, kind: str, places: Iterable[Path | str]) -> None:
        """Add a rule for *places*; *kind* is ``subpath`` for all that is below them, or ``literal``."""
        words: list[str] = []
        for place in dict.fromkeys(map(str, places)):
            name = f"P{len(self.parameters)}"
            self.parameters[name] = place
            words.append(f'({kind} (param "{name}"))')
        if words:
            self.lines.append(f"({action} {operations} {' '.join(words)})")

    def add_pattern(self, action: str, operations: str, pattern: str) -> None:
        """Add a rule for paths that fit the regular expression *pattern*, which has no quotes."""
        self.lines.append(f'({action} {operations} (regex #"{pattern}"))')


def profile_of(rules: PathRules, private: Path) -> Profile:
    """Return the profile for *rules*, with the private folders of the command in *private*."""
    made = Profile()
    readable = [_real(place) for place in (*rules.readable, *_SYSTEM, private / "files")]
    writable = [*map(str, rules.writable), *(str(private / name) for name in ("home", "tmp"))]
    workspace = str(rules.workspace) if rules.workspace else ""
    changed = [*writable, *([workspace] if workspace and rules.changes else [])]
    made.add("allow", "file-read-metadata", "literal", [*_ROOTS, *_parents([*readable, *changed, str(rules.folder)])])
    made.add("allow", "file-read*", "literal", ["/", *map(str, rules.listed), *_SOURCES])
    made.add("allow", _READ, "subpath", readable)
    made.add("allow", f"{_READ} file-write*", "subpath", changed)
    made.add("allow", "file-read* file-write-data", "literal", _DEVICES)
    services = [*_SERVICES, *(_NETWORK_SERVICES if rules.network else ())]
    made.lines.append(f"(allow mach-lookup {' '.join(f'(global-name "{name}")' for name in services)})")
    made.lines += _NETWORK if rules.network else ()
    if workspace:
        _protect(made, rules, workspace)
    made.add("deny", f"{_READ} file-write*", "subpath", rules.hidden)
    made.add("allow", _READ, "subpath", _inner(readable, rules))
    made.add("allow", f"{_READ} file-write*", "subpath", _inner(writable, rules))
    return made


def _inner(places: Iterable[str], rules: PathRules) -> list[str]:
    """Return the places within what is hidden: folders of the task in the state of its swarm."""
    hidden = [f"{place}/" for place in rules.hidden]
    return [place for place in places if any(f"{place}/".startswith(above) for above in hidden)]


def _protect(made: Profile, rules: PathRules, workspace: str) -> None:
    """Deny changes of protected names, whether they exist or not, and of the folders above what is hidden."""
    start = f"^{_pattern_of(workspace)}/"
    names = "|".join(map(_fold, sorted(PROTECTED)))
    made.add_pattern("deny", "file-write*", f"{start}({names})(/.*)?$")
    inner = "|".join(map(_fold, sorted(GIT_PROTECTED)))
    made.add_pattern("deny", "file-write*", f"{start}{_fold(GIT)}(/({inner})(/.*)?)?$")
    made.add("deny", "file-write*", "subpath", rules.kept)
    above = {parent for place in (*rules.hidden, *rules.kept) for parent in place.parents}
    made.add("deny", "file-write-unlink file-write-create", "literal", [workspace, *sorted(above, key=str)])
    made.add_pattern("deny", "file-read* file-write*", f"{start}(.*/)?{_fold(OWN_FOLDER)}(/.*)?$")


def _pattern_of(path: str) -> str:
    """Return a pattern that fits *path*: any character stands for each that has a meaning in a pattern."""
    return re.sub(r"[^A-Za-z0-9/_-]", ".", os.fsencode(path).decode("latin-1"))


def _fold(name: str) -> str:
    """Return a pattern that fits *name* in both cases."""
    return "".join(
        _FOLDED.get(each) or (f"[{each}{each.upper()}]" if each.isalpha() else f"[{each}]") for each in name.casefold()
    )


def _real(place: Path | str) -> str:
    return os.path.realpath(place)


def _parents(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        yield from map(str, Path(place).parents)


@contextmanager
def confine_with_seatbelt(rules: PathRules, environment: Mapping[str, str]) -> Generator[Launch]:
    """Yield the start of a command with *rules*, which lasts until the end of the block.

    For its private folders see `private_folders`. Raises SandboxRefused where Seatbelt does not work.
    """
    if reason := reason_against_seatbelt():
        raise SandboxRefused(reason)
    if rules.owner is not None:
        raise SandboxRefused(f"{rules.folder} belongs to another user: root acts as its owner on Linux only")
    with private_folders(rules) as private:
        launch = Launch(_words(profile_of(rules, private.folder)), {}, places=private.places)
        yield replace(launch, environment=private.environment(launch, environment))


def _words(profile: Profile) -> list[str]:
    given = [word for name, value in profile.parameters.items() for word in ("-D", f"{name}={value}")]
    return [SANDBOX_EXEC, *given, "-p", profile.text]


@cache
def reason_against_seatbelt() -> str:
    """Test Seatbelt once with a file that a command may read and one that it may not; returns what is wrong, or ""."""
    if sys.platform != "darwin" or not Path(SANDBOX_EXEC).exists():
        return f"code cannot be confined with Seatbelt on {sys.platform}"
    with tempfile.TemporaryDirectory(prefix="fireswarm-trial-") as temporary:
        folder = Path(temporary).resolve()
        for name in ("seen", "unseen"):
            (folder / name).mkdir()
            (folder / name / "file").write_text(name)
        rules = PathRules(folder=folder / "seen", readable=["/bin", "/usr/lib", folder / "seen"])
        with private_folders(rules) as private:
            words = _words(profile_of(rules, private.folder))
            told = [_read_as_trial(words, folder / name / "file") for name in ("seen", "unseen")]
    if told[0] != "seen":
        return f"Seatbelt does not start commands on this machine: {told[0]}"
    return "Seatbelt does not confine commands on this machine" if "unseen" in told[1].split() else ""


def _read_as_trial(words: list[str], place: Path) -> str:
    command = [*words, "/bin/cat", str(place)]
    try:
        tried = subprocess.run(command, capture_output=True, timeout=TRIAL_SECONDS, check=False, env={})
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (tried.stdout or tried.stderr).decode("utf-8", "replace").strip()
