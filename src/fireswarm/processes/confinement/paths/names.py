"""Names in a workspace that its commands, skills and file tools may read, but not change.

These files start programs outside of the confinement, or speak for the user: settings, hooks of git and of editors,
skills. A person changes them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

CALLERS_PATH = "FIRESWARM_PATH"
"""Variable that holds the caller's PATH until a login shell has set its own."""

OWN_FOLDER = ".fireswarm"
"""Folder of a swarm with its store and runs, which commands and skills neither see nor change."""

GIT = ".git"

PROTECTED = frozenset(
    {
        *("agent.yaml", "swarm.yaml", "roles", "skills", "capabilities", "mailbox", "schemas", "pipelines"),
        *(".agents", ".claude", ".codex", ".cursor", ".gemini", ".mcp.json"),
        *(".vscode", ".idea", ".devcontainer", ".devcontainer.json", ".zed", ".envrc", ".husky", ".gitmodules"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".gitconfig"),
        *(".ssh", ".gnupg", ".config", ".pam_environment", ".ripgreprc", ".cshrc", ".tcshrc", ".kshrc", ".gdbinit"),
        *(".exrc", ".vimrc", ".nvim.lua", ".dir-locals.el", ".yarnrc.yml", ".windsurf", ".opencode"),
    }
)
"""Names at the top of a workspace. The names of shells and accounts matter where the workspace is a home folder."""

GIT_PROTECTED = frozenset(
    {
        *("config", "config.worktree", "hooks", "info", "modules", "worktrees", "commondir", "gitdir", "description"),
        *("remotes", "branches"),
    }
)
"""Names in ``.git``: with them, git runs programs, or uses another repository or sends to it. ``git add`` and
``git commit`` change none of them.
"""

BARE_PROTECTED = frozenset({"HEAD", *GIT_PROTECTED})
"""Names at the top of a workspace that git takes for a repository without a work tree."""


def is_protected(parts: tuple[str, ...]) -> bool:
    """Return True if the path with these *parts* below a workspace belongs to what only a person changes."""
    if not parts:
        return False
    first = parts[0].casefold()  # some file systems do not tell the two cases apart
    if first == GIT:
        return len(parts) == 1 or parts[1].casefold() in GIT_PROTECTED
    return first in PROTECTED or OWN_FOLDER in parts


def find_names(workspace: Path) -> Iterator[Path]:
    """Yield the protected names that exist in *workspace*."""
    own = {*PROTECTED, OWN_FOLDER, GIT}
    if is_bare_repository(workspace):
        own |= {name.casefold() for name in BARE_PROTECTED}
    for folder, names in ((workspace, own), (workspace / GIT, GIT_PROTECTED)):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            yield from sorted(Path(entry.path) for entry in entries if entry.name.casefold() in names)


def is_bare_repository(folder: Path) -> bool:
    """Return True for what git takes for a bare repository."""
    return all(os.path.lexists(folder / name) for name in ("HEAD", "objects", "refs"))
