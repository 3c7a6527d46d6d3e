"""Set-up of a new machine: the scripts with fake programs, the two locks, and the contents of git and the sdist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from packaging.requirements import Requirement

from tests.support.image import pins

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-run.lock")

# ── locks ─────────────────────────────────────────────────────────────────────────────────────────────


def hashed_pins(name: str) -> dict[str, str]:
    """Return the text of each pin by package, with its hashes and without comments."""
    text = re.sub(r"^ *#.*\n", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.M)
    found = [pin.strip() for pin in re.split(r"^(?=\S)", text, flags=re.M) if pin.strip()]
    return {pin.split("==")[0]: pin for pin in found}


def test_every_pin_of_the_small_lock_equals_the_pin_of_the_full_lock() -> None:
    full, small = (hashed_pins(name) for name in LOCKS)
    assert {name: pin for name, pin in small.items() if full.get(name) != pin} == {}
    assert len(small) < len(full)
    assert all("--hash=sha256:" in pin for pin in full.values())


@pytest.mark.parametrize("name", [*LOCKS, "tools/uv.txt"])
def test_locks_name_no_index_and_no_host(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--(extra-)?index|--find-links|--trusted-host|--default-index)", text, re.M)


@pytest.mark.parametrize("name", LOCKS)
def test_locks_hold_the_packages_that_firelite_needs_but_not_firelite_and_no_path(name: str) -> None:
    project = tomllib.loads((ROOT / "packages" / "firelite" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(hashed_pins(name))
    assert {Requirement(line).name for line in project["dependencies"]} <= locked
    assert project["name"] not in locked
    assert not [pin for pin in hashed_pins(name).values() if "/" in pin or pin.startswith("-e")]


def test_small_lock_contains_runtime_packages_and_no_development_tools() -> None:
    names = {pin.name for pin in pins(ROOT / "requirements-run.lock")}
    assert {"grpcio", "matplotlib", "pydantic", "pytest", "tree-sitter", "typer"} <= names
    assert names.isdisjoint({"hypothesis", "pyright", "ruff", "schemathesis", "scikit-learn"})


def test_uv_is_pinned_in_one_place() -> None:
    [line] = [line for line in (ROOT / "tools" / "uv.txt").read_text().splitlines() if line.startswith("uv==")]
    version = line.removesuffix(" \\").removeprefix("uv==")
    tracked = [path for path in files_for_git() if (ROOT / path).is_file() and not path.startswith("tests/")]
    naming = [path for path in tracked if f"uv=={version}" in (ROOT / path).read_text("utf-8", errors="replace")]
    assert naming == ["tools/uv.txt"]


# ── the scripts, with fake programs ───────────────────────────────────────────────────────────────────

SHELL_TOOLS = ("sh", "cat", "cut", "date", "dirname", "du", "grep", "ls", "make", "mkdir", "rm", "sed", "touch", "tr")

PYTHON = """#!/bin/sh
echo "python $*" >> "$CALLS"
case "$*" in
--version) echo "Python 3.12.9" ;;
"-m pip --version") exit {pip} ;;
"-m pip install"*) [ -z "${{FAIL_PIP:-}}" ] || {{ echo "no matching distribution" >&2; exit 1; }}
    mkdir -p .tools/uv/bin; cat "$UV" > .tools/uv/bin/uv; chmod +x .tools/uv/bin/uv ;;
esac
"""

UV = """#!/bin/sh
echo "uv $*" >> "$CALLS"
case "$*" in
--version) echo "uv {version} (made up)" ;;
venv*) mkdir -p .venv/bin; cat "$PYTHON" > .venv/bin/python; chmod +x .venv/bin/python ;;
"pip compile"*) for last; do :; done; echo compiled > "$last" ;;
"pip "*) [ -z "${{FAIL_UV:-}}" ] || {{ echo "error: no connection" >&2; exit 2; }} ;;
esac
"""

PACKAGES = ("firelite", "fireswarm-postgres")
APT = """#!/bin/sh
echo "apt-get $*" >> "$CALLS"
"""


class Machine:
    """A copy of the set-up files, a folder of fake programs as PATH, an empty home folder, a log of calls."""

    def __init__(self, folder: Path, *, pip: bool = True, root: bool = False) -> None:
        self.clone, self.bin, self.home = folder / "clone", folder / "bin", folder / "home"
        self.log = folder / "calls"
        for place in (
            self.clone / "tools",
            *(self.clone / "packages" / name for name in PACKAGES),
            self.bin,
            self.home,
        ):
            place.mkdir(parents=True)
        tools = (f"tools/{path.name}" for path in ROOT.glob("tools/*.*"))
        for name in (
            "Makefile",
            "pyproject.toml",
            *(f"packages/{name}/pyproject.toml" for name in PACKAGES),
            *LOCKS,
            *tools,
        ):
            shutil.copy(ROOT / name, self.clone / name)
        for name in (*SHELL_TOOLS, "chmod"):
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.version = re.findall(r"^uv==([0-9.]+)", (ROOT / "tools/uv.txt").read_text(), re.M)[0]
        self.program("python3.12", PYTHON.format(pip=0 if pip else 1))
        self.program("id", f"#!/bin/sh\necho {0 if root else 1000}\n")
        self.program("uname", "#!/bin/sh\necho Linux\n")
        self.made_up = folder / "uv"
        self.made_up.write_text(UV.format(version=self.version))

    def program(self, name: str, content: str, *, folder: Path | None = None) -> None:
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.home), "CALLS": str(self.log), "UV": str(self.made_up)}
        environment |= {"PYTHON": str(self.bin / "python3.12")} | more
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]], cwd=self.clone, env=environment, capture_output=True, text=True
        )

    def calls(self, *programs: str) -> list[str]:
        """Return the logged calls of *programs* since the last call, without ``--version`` queries."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("")
        return [line for line in lines if line.startswith(programs) and "--version" not in line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def phases(text: str) -> list[str]:
    return [re.sub(r"\d+ s$", "N s", line) for line in text.splitlines() if line.startswith("[")]


def test_set_up_without_uv_installs_the_pinned_version_and_prints_each_phase(machine: Machine) -> None:
    done = machine.run("make", "setup")
    assert done.returncode == 0, done.stderr
    count = len(pins(ROOT / "requirements-run.lock"))
    assert phases(done.stderr) == [
        f"[1/4] uv {machine.version} -> .tools, about 40 MB: the installer, used only in this folder ... N s",
        "[2/4] Python 3.12.9 -> .venv ... N s",
        f"[3/4] {count} packages from requirements-run.lock ... N s",
        "[4/4] firelite and fireswarm themselves ... N s",
    ]
    assert done.stderr.splitlines()[-1].startswith("ready: .venv has ")
    calls = machine.calls("python -m pip install", "uv")
    assert [call.split(" --")[0] for call in calls] == ["python -m pip install", "uv venv", *["uv pip install"] * 2]
    assert "--require-hashes --requirement tools/uv.txt --target .tools/uv" in calls[0]
    assert calls[2].endswith("--require-hashes --requirement requirements-run.lock")
    assert calls[3].endswith("--editable packages/firelite --editable .")


def test_set_up_is_not_repeated_until_a_lock_changes(machine: Machine) -> None:
    machine.run("make", "setup")
    machine.calls()
    assert machine.run("make", "setup").stderr == ""
    assert machine.calls("uv", "python") == []
    os.utime(machine.clone / "requirements-run.lock", (4_000_000_000, 4_000_000_000))
    assert phases(machine.run("make", "setup").stderr)[0] == "[1/3] Python 3.12.9 in .venv is kept ... N s"


def test_set_up_for_the_demo_removes_no_development_package(machine: Machine) -> None:
    machine.run("make", "setup-dev")
    assert any(call.startswith("uv pip sync") for call in machine.calls("uv"))
    machine.run("make", "setup")
    assert machine.calls("uv") == []
    os.utime(machine.clone / "requirements-run.lock", (4_000_000_000, 4_000_000_000))
    machine.run("make", "setup")
    assert not any("sync" in call or "uninstall" in call for call in machine.calls("uv"))
    assert (machine.clone / ".venv" / ".ready-dev").exists()


def test_interrupted_set_up_is_repeated(machine: Machine) -> None:
    failed = machine.run("make", "setup", FAIL_UV="1")
    assert failed.returncode != 0
    assert "packages from requirements-run.lock ... failed\nerror: no connection\n" in failed.stderr
    assert machine.run("make", "setup").returncode == 0


def test_uv_on_the_path_is_used_unless_the_pinned_one_is_installed(machine: Machine) -> None:
    machine.program("uv", UV.format(version="0.5.0").replace('"uv ', '"other '))
    machine.run("make", "setup")
    assert machine.calls("python -m pip", "uv") == []
    machine.program("uv", UV.format(version=machine.version), folder=machine.clone / ".tools" / "uv" / "bin")
    machine.run("make", "setup-dev")
    assert machine.calls("other") == []


def test_locks_are_made_with_the_pinned_uv_only(machine: Machine) -> None:
    machine.program("uv", UV.format(version="0.5.0").replace('"uv ', '"other '))
    done = machine.run("make", "lock")
    assert done.returncode == 0, done.stderr
    full, small = machine.calls("uv pip compile", "other pip")
    assert "--generate-hashes" in full
    assert full.endswith("-o requirements.lock pyproject.toml")
    assert "--constraint requirements.lock -o requirements-run.lock" in small


def test_set_up_without_uv_and_pip_names_what_to_install(tmp_path: Path) -> None:
    done = Machine(tmp_path, pip=False).run("make", "setup")
    assert done.returncode != 0
    assert "neither uv nor pip is installed: install one of them" in done.stderr


def test_failed_download_of_uv_shows_the_output_of_pip(machine: Machine) -> None:
    done = machine.run("make", "setup", FAIL_PIP="1")
    assert done.returncode != 0
    assert "no matching distribution" in done.stderr


@pytest.mark.skipif(
    any([*Path("/usr/local/bin").glob("python3.1[2-9]"), *Path("/opt/homebrew/bin").glob("python3.1[2-9]")]),
    reason="set-up looks into these folders also if they are not on the PATH, and finds a Python there",
)
def test_set_up_without_python_names_the_needed_version(machine: Machine) -> None:
    machine.program("python3.12", "#!/bin/sh\nexit 127\n")
    done = machine.run("make", "setup")
    assert done.returncode != 0
    assert "fireswarm needs Python 3.12 or newer and found none" in done.stderr


@pytest.mark.parametrize("place", ["shims", "bin"])
def test_python_of_pyenv_is_found_when_its_shim_fails(machine: Machine, place: str) -> None:
    pyenv = machine.home.parent / "with space" / "pyenv"
    machine.program("python3", PYTHON.format(pip=0), folder=pyenv / "versions" / "3.12.4" / "bin")
    machine.program("python3.12", "#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n")
    (pyenv / place).mkdir()
    python = str(pyenv / "versions" / "3.12.4" / "bin" / "python3")
    done = machine.run("make", "setup", PATH=f"{pyenv / place}:{machine.bin}", PYTHON=python)
    assert done.returncode == 0, done.stderr
    assert f"uv venv --quiet --clear --python {python} .venv" in machine.calls("uv venv")


def test_uv_cache_is_in_the_tools_folder_when_the_home_folder_is_missing(machine: Machine) -> None:
    machine.made_up.write_text(UV.format(version=machine.version).replace("$*", "$* ${UV_CACHE_DIR:-}"))
    machine.run("make", "setup")
    assert not any(".tools/cache" in call for call in machine.calls("uv pip"))
    shutil.rmtree(machine.clone / ".venv")
    machine.run("make", "setup", HOME=str(machine.home / "absent"))
    assert all(call.endswith(".tools/cache") for call in machine.calls("uv pip"))


# ── system packages ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def as_root(tmp_path: Path) -> Machine:
    """A machine with root rights, apt-get and the programs of tests, but without bubblewrap."""
    machine = Machine(tmp_path, root=True)
    machine.program("apt-get", APT)
    machine.program("initdb", "#!/bin/sh\n")
    machine.program("rg", "#!/bin/sh\n")
    machine.program("chromium", "#!/bin/sh\n")
    machine.program("faketime", "#!/bin/sh\n")
    return machine


def test_small_set_up_installs_no_system_package(as_root: Machine) -> None:
    done = as_root.run("make", "setup")
    assert as_root.calls("apt-get") == []
    assert "bubblewrap" not in done.stderr


def test_full_set_up_as_root_announces_system_packages_and_installs_them(as_root: Machine) -> None:
    done = as_root.run("make", "setup-dev")
    assert as_root.calls("apt-get") == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends bubblewrap",
    ]
    reason, _, refusal, *rest = done.stderr.splitlines()
    assert reason.startswith("Some tests need system packages that are missing: bubblewrap for the sandbox")
    assert "FIRESWARM_NO_SYSTEM_PACKAGES=1 prevents that" in refusal
    assert phases("\n".join(rest))[:2] == [
        "[1/6] apt-get update ... N s",
        "[2/6] apt-get install -y --no-install-recommends bubblewrap ... N s",
    ]


def test_refusing_system_packages_names_the_skipped_tests(as_root: Machine) -> None:
    done = as_root.run("make", "setup-dev", FIRESWARM_NO_SYSTEM_PACKAGES="1")
    assert done.returncode == 0
    assert as_root.calls("apt-get") == []
    assert "bubblewrap is not installed: tests that need the sandbox are skipped" in done.stderr


def test_full_set_up_without_root_names_the_skipped_tests(machine: Machine) -> None:
    machine.program("apt-get", APT)
    machine.program("initdb", "#!/bin/sh\n")
    done = machine.run("make", "setup-dev")
    assert done.returncode == 0
    assert machine.calls("apt-get") == []
    assert "bubblewrap is not installed: tests that need the sandbox are skipped" in done.stderr


# ── git, the linters, the sdist and CI ────────────────────────────────────────────────────────────────


def files_for_git(folder: Path = ROOT) -> list[str]:
    """List the files that git tracks and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (folder / name).is_file()]


@pytest.mark.parametrize("name", [".tools/uv/bin/uv", ".venv/bin/python", ".fireswarm/store.db", "node_modules/x.js"])
def test_generated_files_are_ignored_by_git(name: str) -> None:
    assert subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT).returncode == 0


def copied(target: Path, names: Iterable[str]) -> Path:
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    return target


def test_ruff_skips_the_tools_folder_even_without_git(tmp_path: Path) -> None:
    copied(tmp_path, ["pyproject.toml"])
    for name, content in {".tools/uv/uv/__init__.py": "import   os\n", "src/clean.py": '"""Nothing."""\n'}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(content)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "."], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_sdist_contains_only_project_files(tmp_path: Path) -> None:
    project = copied(tmp_path / "project", tracked := files_for_git())
    for name in (".tools/uv/bin/uv", ".venv/bin/python", ".fireswarm/store.db", "stray/data.bin"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("not of the project")
    [built] = SdistBuilder(str(project)).build(directory=str(tmp_path / "dist"))
    with tarfile.open(built) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed - {"PKG-INFO"} == {name for name in tracked if not name.startswith(".ci/")}


GIT = '#!/bin/sh\n[ "$1" = status ] && cat "$STATUS"\nexit 0\n'
MAKE = '#!/bin/sh\necho "make $* $(command -v uv) $HOME $(command -v kept)" >> "$CALLS"\n'


@pytest.mark.parametrize(("status", "code", "targets"), [("", 0, ["demo", "test"]), ("?? .tools/\n", 1, ["demo"])])
def test_ci_runs_demo_and_test_without_uv_and_fails_on_leftover_files(
    tmp_path: Path, status: str, code: int, targets: list[str]
) -> None:
    machine = Machine(tmp_path)
    for name in ("bash", "env", "ln", "mktemp"):
        (machine.bin / name).symlink_to(str(shutil.which(name)))
    (machine.bin / "make").unlink()
    for name, content in {"git": GIT, "make": MAKE, "uv": "#!/bin/sh\n", "kept": "#!/bin/sh\n"}.items():
        machine.program(name, content)
    machine.program("run", (ROOT / ".ci" / "run").read_text(), folder=machine.clone / ".ci")
    (tmp_path / "status").write_text(status)
    done = machine.run("bash", ".ci/run", STATUS=str(tmp_path / "status"), TMPDIR=str(tmp_path))
    assert done.returncode == code, done.stderr
    assert status in done.stderr
    calls = [line.split() for line in machine.calls("make")]
    assert [words[1] for words in calls] == targets
    for _, _, home, kept in calls:  # no path of uv in between
        assert Path(kept).name == "kept"
        assert home != str(machine.home)
        assert not Path(home).exists()
