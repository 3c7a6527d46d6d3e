"""Files that programs read by themselves in a folder, and that say what they run: build files, settings of tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fireswarm.contracts.regular_file import read_regular_file

MAX_BYTES = 1_000_000
MAX_WORDS = 5_000
"""Of one file that are looked at as names of further files."""

_OF_PYTHON = ("pyproject.toml", "setup.cfg", "setup.py")
_OF_NODE = ("package.json", "*.config.*", ".npmrc", "tsconfig*.json")
_READ: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake", "bmake"), ("GNUmakefile", "makefile", "Makefile", "*.mk")),
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "corepack"), _OF_NODE),
    **dict.fromkeys(
        ("node", "jest", "vitest", "mocha", "vite", "webpack", "rollup", "eslint", "tsc", "turbo"), _OF_NODE
    ),
    "deno": ("deno.json", "deno.jsonc", *_OF_NODE),
    "grunt": ("Gruntfile.*", *_OF_NODE),
    "gulp": ("gulpfile.*", *_OF_NODE),
    **dict.fromkeys(
        ("pytest", "py.test", "unittest", "coverage"),
        ("conftest.py", "pytest.ini", "tox.ini", ".coveragerc", *_OF_PYTHON),
    ),
    **dict.fromkeys(("pip", "pip3", "uv", "uvx", "poetry", "pdm", "hatch", "build", "pipx"), _OF_PYTHON),
    "tox": ("tox.ini", "tox.toml", *_OF_PYTHON),
    "nox": ("noxfile.py", *_OF_PYTHON),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py", "invoke.*")),
    "fab": ("fabfile.py",),
    "doit": ("dodo.py", *_OF_PYTHON),
    "just": ("justfile", "Justfile", ".justfile", "*.just"),
    "task": ("Taskfile.*", "taskfile.*"),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb", "*.rake"),
    **dict.fromkeys(("bundle", "bundler", "rspec"), ("Gemfile", "Rakefile", ".rspec")),
    "cargo": ("Cargo.toml", "build.rs"),
    "go": ("go.mod", "go.work"),
    **dict.fromkeys(("mvn", "mvnw"), ("pom.xml",)),
    **dict.fromkeys(("gradle", "gradlew"), ("*.gradle", "*.gradle.kts", "gradle.properties")),
    "ant": ("build.xml",),
    "sbt": ("build.sbt",),
    "mix": ("mix.exs",),
    "composer": ("composer.json",),
    **dict.fromkeys(("dotnet", "msbuild"), ("*.csproj", "*.fsproj", "*.sln", "Directory.Build.*")),
    **dict.fromkeys(("cmake", "ctest"), ("CMakeLists.txt", "CMakePresets.json", "*.cmake")),
    "ninja": ("build.ninja",),
    "meson": ("meson.build",),
    "scons": ("SConstruct", "SConscript"),
    **dict.fromkeys(
        ("docker", "podman", "docker-compose", "podman-compose"), ("Dockerfile", "compose.*", "docker-compose.*")
    ),
    **dict.fromkeys(("terraform", "tofu"), ("*.tf",)),
    "ansible-playbook": ("ansible.cfg",),
    **dict.fromkeys(("pre-commit", "prek"), (".pre-commit-config.yaml",)),
    **dict.fromkeys(("lefthook",), ("lefthook.*", ".lefthook.*")),
}
"""By the name of a program, what it reads in the folder in which it starts."""

_SEPARATORS = re.compile(r"[\s;&|()<>{}\[\]`\"'=,:@\\$]+")


def find_read_by_itself(words: Iterable[str]) -> list[str]:
    """Return the names, some as patterns, of what the programs among *words* read by themselves."""
    programs = (word.rstrip("/").rpartition("/")[2].removesuffix(".exe") for word in words)
    return list(dict.fromkeys(name for program in programs for name in _READ.get(program, ())))


def find_words_in(file: Path) -> Iterator[str]:
    """Yield the words of a file that could name further files; nothing for one that cannot be read."""
    try:
        text = read_regular_file(file, MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    words = dict.fromkeys(word for word in _SEPARATORS.split(text) if "." in word or "/" in word)
    yield from list(words)[:MAX_WORDS]
