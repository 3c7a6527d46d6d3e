"""What to tell of a failed command if its confinement may be the cause: what it is, and what would allow it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from fireswarm.processes.confinement.view import HOME, View, is_workspace
from fireswarm.processes.shell import Ran

NOT_FOUND = 127

_NETWORK = re.compile(
    r"Could not resolve|Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|No matching distribution|ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo|[Cc]onnection refused|dial tcp"
    r"|Could not fetch|no such host|failed to lookup address"
)
_REFUSALS = (": No such file or directory", ": Permission denied", ": permission denied")
_NOT_FOUND_WORDS = (": command not found", ": not found")


def describe_limit(view: View, ran: Ran) -> str:
    """Return one line on the limit of *view* that a failed command seems to have met, or ""."""
    text = f"{ran.stdout[-4_000:]}\n{ran.stderr}"
    if not view.network and _NETWORK.search(text):
        what = "a read-only command never has one" if not view.writable else "`runtime.network: true` allows it"
        return f"[commands have no network here: {what}; only the operator can set that]"
    for name in _names_before(_REFUSALS, text):
        if _is_elsewhere(Path(name), view):
            return f"[commands see programs and the workspace: the operator can add {name} to `runtime.readable`]"
    unknown = _names_before(_NOT_FOUND_WORDS, text) if ran.exit_code == NOT_FOUND else []
    for place in filter(None, map(shutil.which, unknown)):
        return f"[{place} is not in the view of commands: the operator can add its folder to `runtime.readable`]"
    for name in _names_before((": Read-only file system",), text):
        why = "it is protected, or outside of the workspace" if view.writable else "the task is read-only"
        return f"[{name} cannot be changed by commands: {why}]"
    return ""


def _names_before(endings: tuple[str, ...], text: str) -> list[str]:
    """Return the words before *endings* in the lines of *text*, without quotes."""
    heads = [line.partition(ending)[0] for line in text.splitlines() for ending in endings if ending in line]
    return [head.split()[-1].strip("'\"‘’") for head in heads if head.split()]


def _is_elsewhere(path: Path, view: View) -> bool:
    """Return True for a path outside of the workspace and of the folders that every command sees."""
    if not path.is_absolute():
        return False
    return is_workspace(path) and not any(path.is_relative_to(place) for place in (view.workspace, "/tmp", HOME))
