"""Find the commands that a command runs: behind wrappers such as ``env``, in shells, by git's settings, by ``find``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from fireswarm.skills.shell_line import ANY, SPLIT, ShellLine, is_literal, read_shell_line

KEYWORDS = frozenset(
    (
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
        "time", "coproc", "in", "!", "{", "}", "[[", "]]", "eval", "exec",
    )
)  # fmt: skip
"""Words that change how the shell parses the line, or that execute the following words as a command."""

_LISTS = frozenset({"for", "select", "case", "[["})
"""Words after which come no commands, but words that are assigned or compared."""

_BEFORE_COMMANDS = KEYWORDS - _LISTS - {"eval", "exec", "time", "coproc"}

_DEVICES = ("/dev/", "/proc/")
_WRAPPERS = frozenset(
    (
        "builtin", "busybox", "bwrap", "chpst", "chronic", "chroot", "chrt", "command", "coproc", "cpulimit",
        "dbus-run-session", "doas", "dumb-init", "env", "exec", "expect", "fakechroot", "fakeroot", "faketime",
        "firejail", "flock", "gdb", "gosu", "hyperfine", "i386", "ionice", "ld-linux-x86-64.so.2", "linux32",
        "linux64", "ltrace", "nice", "nohup", "nsenter", "numactl", "parallel", "perf", "pkexec", "prlimit", "proot",
        "rlwrap", "runuser", "s6-setuidgid", "screen", "script", "setarch", "setpriv", "setsid", "setuidgid", "sg",
        "softlimit", "ssh", "ssh-agent", "sshpass", "start-stop-daemon", "stdbuf", "strace", "su", "su-exec", "sudo",
        "systemd-run", "taskset", "time", "timeout", "tini", "tmux", "toybox", "trickle", "unbuffer", "unshare",
        "valgrind", "watch", "x86_64", "xargs", "xvfb-run",
    )
)  # fmt: skip
"""Programs whose arguments name another program."""

_NAME_FIRST = frozenset(
    (
        "chroot", "faketime", "flock", "gosu", "perf", "runuser", "s6-setuidgid", "screen", "setarch", "setuidgid",
        "sg", "ssh", "su", "su-exec", "taskset", "tmux",
    )
)  # fmt: skip
"""Wrappers with a word of their own, such as a user, before the program."""

_RUNNERS = {"git": ("run", "foreach"), "uv": ("run",), "poetry": ("run",), "pipenv": ("run",)}
"""Programs with a subcommand that runs the words after it."""

_LINE_OPTIONS = ("--command", "--init-command")
_HAS_LINE = re.compile(r"-\w{0,20}[cS]|--(?:session-)?command|--split-string")
_HAS_VALUE = re.compile(r"-\w[\d{]|--[\w-]+=")
_NUMBER = re.compile(r"[\d.]+[smhd]?")
_FLAGS_OF_XARGS = frozenset({"-0", "-r", "-t", "--null", "--no-run-if-empty"})
_APPENDS = frozenset({"xargs", "parallel"})
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh"})
_LANGUAGES = re.compile(r"(?:python|pypy|perl|ruby|node|deno|bun|php|lua|tclsh|expect|Rscript|ghci|osascript)[\d.]*")
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_READ_COMMANDS = frozenset(
    {"at", "batch", "crontab", "entr", "hash", "enable", "bind", "complete", "mapfile", "readarray"}
)
"""Programs and builtins that take commands from elsewhere, or change which program a word names."""

_EDITORS = frozenset(
    (
        "debugfs", "ed", "emacs", "ex", "gdb", "less", "lldb", "man", "more", "nvim", "nvi", "psql", "rview", "rvim",
        "socat", "sqlite3", "vi", "view", "vim", "vimdiff",
    )
)  # fmt: skip
"""Programs with commands of their own that run programs; they come from options, from ``+`` words or from the input."""

_EDITS = re.compile(
    r"\+|-+(?:c|S|s|e|ex|eval|cmd|command|execute|R|x|f|batch|init-command)(?:[=!]|$)|-[cex]\W|(?i:exec|system):"
)
_PROXIES = re.compile(r"(?i:proxycommand|localcommand|knownhostscommand|pkcs11provider)[ =]?(.*)", re.DOTALL)
"""Options of ssh after ``-o`` that name a command."""

_PYTHON_INLINE = re.compile(r"-[A-Za-z]{0,20}c")
_OTHER_INLINE = re.compile(r"-[A-Za-z]{0,20}[eErp]|--(?:eval|print|run)")
_SED_RUNS = re.compile(r"(?:^|[;{}\n\d$/!,])[ \t]*e(?:\s|$|[;}])|[^\w\s][gpiImM\d]*e[gpiImMw\d]*(?:\s|$|[;}])")

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")
_NAMES_PROGRAMS = re.compile(
    r"PATH|LD_\w+|BASH_ENV|ENV|SHELL|IFS|PROMPT_COMMAND|PS4|GIT_(?!AUTHOR_|COMMITTER_|TERMINAL_PROMPT)\w+|\w*(?:PAGER|EDITOR)"
)
"""Variables that decide which program runs."""

_HARMLESS_KEYS = re.compile(
    r"(?:user\.|color\.|advice\.|log\.|safe\.directory|init\.defaultbranch|commit\.gpgsign|core\.(?:quotepath|autocrlf|abbrev|"
    r"longpaths|bare|filemode|ignorecase|eol)).*",
    re.IGNORECASE | re.DOTALL,
)
"""Settings of git that run nothing."""

_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_RUN_OPTIONS = re.compile(
    r"exec|command|cmd|program|action|shell|rsh|helper|-filter|upload-pack|receive-pack|askpass|invoke"
)
"""Parts of the names of options that name a command."""

_SHORT_RUNS = frozenset({("git", "-x"), ("rg", "--pre")})
"""Programs with an option of another name that names a command."""


_LETTERS: Mapping[str, str] = {
    "env": "S",
    "flock": "c",
    "rsync": "e",
    "runuser": "c",
    "script": "c",
    "su": "c",
    "tar": "I",
}
"""Letters after which, in the same word or the next one, a program is given a command."""


def base_name(word: str) -> str:
    """Return the name of a program without its folders."""
    return word.rpartition("/")[2]


def inner_commands(words: Sequence[str]) -> ShellLine:
    """Return the commands that the command *words* runs by itself, not those that these run in turn."""
    found = ShellLine()
    start = 0
    while start < len(words) and (is_assignment(words[start]) or words[start] in _BEFORE_COMMANDS):
        start += 1
    for word in words[:start]:
        _add_assignment(word, found)
    if start:
        found.commands.append(list(words[start:]))
    elif words and words[0] not in _LISTS:
        _add_by_program(base_name(words[0]), list(words[1:]), found)
    return found


def runs_programs_of_its_own(words: Sequence[str]) -> bool:
    """Return True for a language such as Python: a rule that allows it allows programs in its arguments."""
    program = base_name(words[0])
    return program == "sed" or program in _AWKS or _LANGUAGES.fullmatch(program) is not None


def is_assignment(word: str) -> bool:
    """Return True for ``NAME=value``."""
    return _ASSIGNMENT.match(word) is not None


def _add_assignment(word: str, found: ShellLine) -> None:
    given = _ASSIGNMENT.match(word)
    if given is None or not _NAMES_PROGRAMS.fullmatch(given[1]):
        return
    _add_line(word[given.end() :], found)
    found.computed = found.computed or given[1].startswith(("PATH", "LD_", "BASH_ENV", "ENV", "IFS", "GIT_CONFIG"))


def _add_by_program(program: str, rest: list[str], found: ShellLine) -> None:
    if _LANGUAGES.fullmatch(program):
        found.computed = found.computed or _is_inline(program, rest)
    elif program in _READERS:
        _READERS[program](rest, found)
    elif program in _READ_COMMANDS:
        found.computed = True
    elif program in _EDITORS:
        found.computed = found.computed or program in ("ex", "ed") or any(_EDITS.match(word) for word in rest)
    if program in _WRAPPERS:
        found.commands += _behind_wrapper(program, rest)
        for option, line in itertools.pairwise(rest):
            if _HAS_LINE.fullmatch(option):
                _add_line(line, found)
    for name in _RUNNERS.get(program, ()):
        if name in rest:
            found.commands += _behind_wrapper(program, rest[rest.index(name) + 1 :])
    _add_run_options(program, rest, found)


def _add_joined(rest: list[str], found: ShellLine) -> None:
    _add_line(" ".join(_without_lists(rest)), found)


def _add_each(rest: list[str], found: ShellLine) -> None:
    for line in rest:
        _add_line(line, found)


def _add_aliases(rest: list[str], found: ShellLine) -> None:
    _add_each([word[given.end() :] if (given := _ASSIGNMENT.match(word)) else word for word in rest], found)


def _add_script(rest: list[str], found: ShellLine) -> None:
    found.computed = found.computed or not rest or not is_literal(rest[0]) or rest[0].startswith(_DEVICES)


def _add_awk(rest: list[str], found: ShellLine) -> None:
    found.computed = found.computed or any(re.search(r"system|\||@", word) for word in rest)


def _add_sed(rest: list[str], found: ShellLine) -> None:
    found.computed = found.computed or any(_SED_RUNS.search(word) for word in rest if word != "-e")


def _add_find(rest: list[str], found: ShellLine) -> None:
    if "-delete" in rest:
        found.commands.append(["rm"])


def _add_shell(rest: list[str], found: ShellLine) -> None:
    """Add what a shell runs: its ``-c`` line, or anything if it reads its commands from its input."""
    for place, word in enumerate(rest):
        if not is_literal(word):
            found.computed = True
        elif word.startswith(("--rcfile", "--init-file")):
            found.computed = True
            return
        elif (word[:1] in ("-", "+") and word[1:].isalpha() and "c" in word.lower()) or word.startswith(_LINE_OPTIONS):
            for line in rest[place + 1 :]:
                _add_line(line, found)
            found.computed = found.computed or place + 1 == len(rest)
            return
        elif not word.startswith(("-", "+")):
            found.computed = found.computed or word.startswith(_DEVICES)
            return
        elif "s" in word or word == "-":
            break
    found.computed = True


def _add_line(line: str, found: ShellLine) -> None:
    """Add the commands of a text that is read as a shell line once more."""
    read = read_shell_line(line)
    found.commands += read.commands
    found.computed = found.computed or read.computed or not is_literal(line)


def _is_inline(program: str, rest: Sequence[str]) -> bool:
    """Return True if a program of a language comes from its arguments or its input, not from a file or module."""
    inline = _PYTHON_INLINE if program.startswith(("py", "expect")) else _OTHER_INLINE
    for word in rest:
        if inline.match(word) and not word.startswith("-m"):
            return True
        if word in ("-", "eval") or not is_literal(word) or word.startswith(_DEVICES):
            return True
        if not word.startswith("-") or word.startswith("-m") or word in ("--version", "-V", "-v", "--help", "-h"):
            return False
    return True


def _add_git(rest: list[str], found: ShellLine) -> None:
    """Add what settings of git run: aliases, pagers, editors, transports."""
    for place, word in enumerate(rest):
        if word.startswith(("--exec-path=", "--config-env")) or "ext::" in word:
            found.computed = True
        if word == "-c" and place + 1 < len(rest):
            key, _, value = rest[place + 1].partition("=")
            _add_git_setting(key, value, found)
        elif word == "config":
            key = next((each for each in rest[place + 1 :] if "." in each and not each.startswith("-")), "")
            after = rest[rest.index(key) + 1 :] if key else []
            if after:
                _add_git_setting(key, after[0], found)
            return
        elif not word.startswith("-") and (not place or rest[place - 1] not in ("-C", "-c")):
            _add_git_subcommand(word, rest[place + 1 :], found)
            return


def _add_git_subcommand(name: str, rest: list[str], found: ShellLine) -> None:
    """Add what a subcommand runs, or does under another name."""
    if name in ("send-pack", "http-push") or (name == "subtree" and "push" in rest):
        found.commands.append(["git", "push", *rest])
    if name == "rebase":
        for word in rest:
            if word.startswith("-x"):
                _add_line(word[2:], found)
    if name == "grep":
        for word in rest:
            if word.startswith("--"):
                option, _, value = word.partition("=")
                _add_line(value if option.startswith("--open") else "", found)
            elif word.startswith("-"):  # behind other letters too, and with any sign in the value
                _add_line(word.partition("O")[2], found)


def _add_git_setting(key: str, value: str, found: ShellLine) -> None:
    if not is_literal(key):
        found.computed = True
    elif not _HARMLESS_KEYS.fullmatch(key):
        _add_line(value.removeprefix("!"), found)
        if key.lower().startswith("alias.") and not value.startswith("!"):
            found.commands.append(f"git {value}".split())
        found.computed = found.computed or key.lower().startswith(("include", "core.hookspath"))


def _behind_wrapper(program: str, rest: list[str]) -> Iterator[list[str]]:
    """Yield the commands that may follow a wrapper. The word after an option may be its value or the program."""
    if program in _APPENDS:
        rest = _with_inputs(rest)
    after_option = program in _NAME_FIRST
    for place, word in enumerate(rest):
        if is_assignment(word):
            yield [word]
        elif word.startswith("-"):
            after_option = not _HAS_VALUE.match(word)
            yield word.partition("=")[2].split()
            yield word.partition("S")[2].split()
        elif not _NUMBER.fullmatch(word):
            yield rest[place:]
            if not after_option:
                return
            after_option = False


def _without_lists(rest: list[str]) -> list[str]:
    """Return the words of ``parallel`` before its lists of inputs."""
    return list(itertools.takewhile(lambda word: not word.startswith(":::"), rest))


def _with_inputs(rest: list[str]) -> list[str]:
    """Return the words of ``xargs`` with those that it reads from its input, in place of a mark or at the end."""
    rest = [
        word
        for word in itertools.takewhile(lambda each: not each.startswith(":::"), rest)
        if word not in _FLAGS_OF_XARGS
    ]
    if all(word.startswith("-") for word in rest):
        return rest
    marks = {"{}"}
    for word, after in itertools.pairwise([*rest, ""]):
        if word.startswith(("-I", "-i", "-J")):
            marks.add(word[2:] or after)
    for mark in marks - {""}:
        rest = [word.replace(mark, ANY) for word in rest]
    return [*rest, SPLIT]


def _add_run_options(program: str, rest: list[str], found: ShellLine) -> None:
    """Add what an option such as ``-exec`` or ``--to-command=`` names."""
    for word, after in itertools.pairwise([*rest, ""]):
        letter = _LETTERS.get(program)
        if letter and word.startswith("-") and not word.startswith("--") and letter in word:
            _add_line(word.partition(letter)[2] or after, found)
    for place, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if place and rest[place - 1] == "-o" and (proxy := _PROXIES.match(word)):
            _add_line(proxy[1], found)
        if word == "-wrapper" and place + 1 < len(rest):
            _add_line(rest[place + 1].replace(",", " "), found)
            found.commands.append([*rest[place + 1].replace(",", " ").split(), *rest[place + 2 :]])
        is_long = option.startswith("--") and _RUN_OPTIONS.search(option)
        if not (is_long or option in _FIND_RUNS or (program, option) in _SHORT_RUNS):
            continue
        if equals:
            _add_line(value.removeprefix("exec="), found)
        elif option in _FIND_RUNS or place + 1 == len(rest):
            ended = itertools.takewhile(lambda each: each not in (";", "+"), rest[place + 1 :])
            found.commands.append([each.replace("{}", ANY) for each in ended])
        else:
            _add_line(rest[place + 1], found)


_READERS: Mapping[str, Callable[[list[str], ShellLine], None]] = {
    **dict.fromkeys(SHELLS, _add_shell),
    **dict.fromkeys(_AWKS, _add_awk),
    **dict.fromkeys(("eval", "parallel", "ssh", "watch"), _add_joined),
    **dict.fromkeys(("source", "."), _add_script),
    "trap": _add_each,
    "alias": _add_aliases,
    "sed": _add_sed,
    "find": _add_find,
    "git": _add_git,
}
"""How the arguments of a program are read for the commands that it runs."""
