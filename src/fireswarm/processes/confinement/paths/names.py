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

_OF_SWARMS = ("agent.yaml", "swarm.yaml", "roles", "skills", "capabilities", "mailbox", "schemas", "pipelines")
_OF_AGENTS = (
    *(".agents", ".claude", ".claude.json", ".codex", ".cursor", ".gemini", ".windsurf", ".opencode", ".opencode.json"),
    *("opencode.json", "opencode.jsonc", ".crush", ".crush.json", "crush.json", ".clinerules", ".cline", ".roo"),
    *(".roomodes", ".kilocode", ".kiro", ".continue", ".continuerc.json", ".amazonq", ".augment", ".junie", ".goose"),
    *(".qwen", ".factory", ".trae", ".openhands", ".amp", ".copilot", ".aider.conf.yml", ".mcp.json", "mcp.json"),
)
_OF_EDITORS = (
    *(".vscode", ".vs", ".idea", ".run", ".fleet", ".zed", ".nova", ".helix", ".theia", ".trunk"),
    *(".devcontainer", ".devcontainer.json", ".neoconf.json", ".vimspector.json", ".projections.json"),
    *(".exrc", ".vimrc", ".gvimrc", ".lvimrc", ".nvimrc", ".nvim.lua", ".vim", "_vimrc", ".kakrc", ".nanorc"),
    *(".dir-locals.el", ".dir-locals-2.el", ".emacs", ".emacs.d"),
)
_OF_HOOKS = (
    *(".husky", ".huskyrc", ".pre-commit-config.yaml", "prek.toml", ".overcommit.yml", ".git-hooks", ".gitmodules"),
    *(".lefthook", ".lefthook-local"),
    *(
        f"{dot}lefthook{local}.{kind}"
        for dot in ("", ".")
        for local in ("", "-local")
        for kind in ("yml", "yaml", "toml", "json", "jsonc")
    ),
)
"""Settings of programs that run what they name at the next commit, checkout or push."""

_OF_FOLDERS = (
    *(
        ".envrc",
        ".envrc.local",
        ".envrc.private",
        ".direnv",
        ".autoenv.zsh",
        ".autoenv_leave.zsh",
        ".devbox",
        ".devenv",
    ),
    *(".flox", ".rvmrc", ".tool-versions", ".mise", ".mise.toml", ".mise.local.toml", "mise", "mise.toml"),
    *("mise.local.toml", ".rtx.toml", ".prototools", "rust-toolchain", "rust-toolchain.toml"),
)
"""Settings by which a shell runs programs when it enters the folder, or takes other programs by their names."""

_OF_PROGRAMS = (
    *(
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        ".pnpmfile.mjs",
        "pnpmfile.cjs",
        "bunfig.toml",
        ".bunfig.toml",
    ),
    *("pyvenv.cfg", "sitecustomize.py", "usercustomize.py", ".pdbrc", ".pdbrc.py", ".pythonrc", ".pythonrc.py"),
    *(".ipython", ".jupyter", ".irbrc", ".pryrc", ".iex.exs", ".ghci", ".ocamlinit", ".octaverc", ".erlang", ".perldb"),
    *(".rprofile", ".renviron", ".rdata", ".sbclrc", ".guile", ".tclshrc", ".phpdbginit", ".sqliterc", ".psqlrc"),
    *(".mongorc.js", ".mongoshrc.js", ".gdbinit", ".lldbinit", ".ripgreprc", ".ackrc", ".hgrc", ".rpmmacros"),
)
"""Settings that interpreters, debuggers and installers read by themselves, and that name code to run."""

_OF_ACCOUNTS = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".cshrc", ".tcshrc", ".kshrc", ".mkshrc", ".login"),
    *(".logout", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".tmux.conf", ".screenrc", ".pam_environment"),
    *(".ssh", ".rhosts", ".shosts", ".k5login", ".gnupg", ".config", ".local", ".gitconfig", ".curlrc", ".wgetrc"),
    *(".lesskey", ".lessfilter", ".mailcap", ".forward", ".procmailrc", ".muttrc"),
    *(".cargo", ".rustup", ".pyenv", ".nvm", ".asdf", ".volta", ".bun", ".deno", ".rbenv", ".goenv", ".nodenv"),
    *(".sdkman", ".juliaup"),
)
"""Names that matter where the workspace is a home folder: shells, sessions, keys, and programs that its PATH finds."""

PROTECTED = frozenset((*_OF_SWARMS, *_OF_AGENTS, *_OF_EDITORS, *_OF_HOOKS, *_OF_FOLDERS, *_OF_PROGRAMS, *_OF_ACCOUNTS))
"""Names at the top of a workspace, in lower case: what a program reads by itself there, and which names code to run.

What a person names to run it, or runs as the work itself, is not among them: sources, tests, settings of builds, tests
and linters, and the packages that an installer fetches.
"""

INNER_PROTECTED = (
    *(
        (".yarn", "releases"),
        (".yarn", "plugins"),
        (".yarn", "sdks"),
        (".gradle", "init.d"),
        (".gradle", "init.gradle"),
    ),
    *((".hg", "hgrc"), (".jj", "repo", "config.toml"), (".github", "hooks")),
)
"""The like in folders of which other parts are work."""

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
