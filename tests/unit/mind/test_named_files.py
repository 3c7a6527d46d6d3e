"""The files that an approval is for: what a line names, wherever a shell goes, and what a skill's code loads."""

from __future__ import annotations

import os
import py_compile
from pathlib import Path

import pytest

from fireswarm.contracts.grant import Grant
from fireswarm.mind.approvals import bind_call, decision_on, place_of
from fireswarm.mind.calls.named_files import files_of
from fireswarm.mind.gate import Call, command_call
from fireswarm.skills.packs.content_hash import whole_hash
from fireswarm.skills.running.in_child import load_entry

LINES = (
    ("bash run.sh", "run.sh"), ("bash < run.sh", "run.sh"), ("bash 0<run.sh", "run.sh"),
    ("bash <'my run.sh'", "my run.sh"), ("cd sub && ./x.sh", "sub/x.sh"), ("(cd sub; sh x.sh)", "sub/x.sh"),
    ("pushd sub/deep; . ./y.sh", "sub/deep/y.sh"), ("cd sub; cd deep; ./y.sh", "sub/deep/y.sh"),
    ("make -fevil.mk", "evil.mk"), ("make --file=evil.mk", "evil.mk"), ("make -C sub -f evil.mk", "sub/evil.mk"),
    ("env -C sub ./x.sh", "sub/x.sh"), ("git -C sub apply a.patch", "sub/a.patch"),
    ("git apply < a.patch", "a.patch"), ("python3 - < job.py", "job.py"),
    ("curl -d@out.txt https://localhost", "out.txt"), ("tar -xzfall.tar", "all.tar"),
    ("F=run.sh; bash $F", "run.sh"), ("bash -c 'cd sub; ./x.sh'", "sub/x.sh"), ("bash *.sh", "run.sh"),
    ("cd sub; for f in x*; do sh $f; done", "sub/x.sh"), ("bash r[tu]n.sh", "run.sh"),
    ("bash my\\ run.sh", "my run.sh"), ("bash <<EOF\n./run.sh\nEOF", "run.sh"),
    ("cat a | bash -s<run.sh", "run.sh"), ("bash <(cat run.sh)", "run.sh"), ("source ./run.sh", "run.sh"),
    ("rsync -e./run.sh a b", "run.sh"),
    ("bash ~+/run.sh", "run.sh"), ("bash run.{sh,none}", "run.sh"), ("bash r{u,v}n.sh", "run.sh"),
    ("shopt -s extglob; bash @(run).sh", "run.sh"), ("bash $'r\\x75n.sh'", "run.sh"),
    ("python -m pkg.mod", "pkg/mod.py"),
    ("python -mpkg.mod", "pkg/mod.py"), ("python -c 'import pkg.mod'", "pkg/mod.py"), ("bash ru[^a].sh", "run.sh"),
    ("python -c 'from pkg import mod'", "pkg/mod.py"), ("bash ru[[:lower:]].sh", "run.sh"),
    ("node run", "run.js"), ("node ./lib", "lib/index.js"), ("python -m unittest mod.Case.test", "mod.py"),
    ("perl -I. -MFoo -e 1", "Foo.pm"), ("python -m unittest pkg.mod.Case", "pkg/mod.py"),
    ("cd sub/de*; bash ./y.sh", "sub/deep/y.sh"), ("bash */*/y.sh", "sub/deep/y.sh"), ("bash run\\\n.sh", "run.sh"),
)  # fmt: skip


READ_BY_ITSELF = (
    ("make", "Makefile"), ("make -C sub test", "sub/GNUmakefile"), ("cd sub && make", "sub/rules.mk"),
    ("npm test", "package.json"), ("npx vitest run", "vitest.config.ts"), ("pnpm --dir sub run x", "sub/package.json"),
    ("python3 -m pytest -q", "conftest.py"), ("pytest sub", "sub/conftest.py"), (".venv/bin/pytest", "pyproject.toml"),
    ("env A=1 timeout 9 tox", "tox.ini"), ("sh -c 'just all'", "justfile"), ("cargo build", "build.rs"),
    ("./gradlew build", "build.gradle.kts"), ("pip install -e .", "setup.py"), ("docker build .", "Dockerfile"),
    ("python -m pkg.mod", "pkg/__pycache__/mod.cpython-312.pyc"), ("python run.py", "__pycache__/run.cpython-313.pyc"),
    ("python -m only", "only.pyc"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("named_in", "text"),
    [
        ("Makefile", "test:\n\t@sh scripts/test.sh $(ARGS)\ninclude scripts/test.sh\n"),
        ("package.json", '{"scripts": {"test": "sh scripts/test.sh --fast"}}'),
        ("tox.ini", "[testenv]\ncommands = sh {toxinidir}/scripts/test.sh\n"),
    ],
)
def test_a_yes_does_not_count_after_a_file_that_a_build_file_names_was_changed(
    named_in: str, text: str, tmp_path: Path
) -> None:
    line = {"Makefile": "make test", "package.json": "npm test", "tox.ini": "tox -e py"}[named_in]
    (tmp_path / named_in).write_text(text.replace("{toxinidir}/", ""))
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "test.sh").write_text("echo harmless\n")
    before = files_of(command_call(line, tmp_path), tmp_path)
    (tmp_path / "scripts" / "test.sh").write_text("echo evil\n")
    assert files_of(command_call(line, tmp_path), tmp_path) != before


@pytest.mark.parametrize(("line", "name"), (*LINES, *READ_BY_ITSELF))
def test_a_yes_does_not_count_after_a_file_that_the_line_names_was_changed(
    line: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "sub" / "deep").mkdir(parents=True, exist_ok=True)
    if "__pycache__" in name:
        (tmp_path / Path(name).parent.parent / f"{Path(name).name.partition('.')[0]}.py").write_text("x = 1\n")
    (tmp_path / name).write_text("echo harmless\n")
    before = bind_call(command_call(line, tmp_path), Grant(tmp_path))
    answered = {place_of(before, "0/1.1"): {"approval": "yes"}}
    assert decision_on(before, place_of(before, "0/1.1"), answered) is not None
    (tmp_path / name).write_text("echo evil\n")
    after = bind_call(command_call(line, tmp_path), Grant(tmp_path))
    assert decision_on(after, place_of(after, "0/1.1"), answered) is None, before.files


@pytest.mark.parametrize(
    "line", ["echo hello", "echo $HOME ${PWD}", "ls -la", "cat ../other.txt", "cd ..; cat other.txt", "", "'", "<"]
)
def test_only_files_of_the_workspace_are_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("x")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link.txt").symlink_to("../other.txt")
    (folder / "own.txt").write_text("x")
    assert files_of(command_call(line, folder), folder) == ()
    assert files_of(command_call("cat link.txt", folder), folder) == ()


def test_long_line_is_read_within_a_limit(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"d{number}").mkdir()
    line = " ".join([f"d{number % 30}/{'x' * 10}{number} -{'y' * 20}" for number in range(20_000)])
    [told] = files_of(Call("Bash", line), tmp_path)
    assert told.startswith("more places than are looked at, so it cannot be approved")


def test_large_build_file_is_read_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    exists = Path.exists

    def count(path: Path) -> bool:
        nonlocal looks
        looks += 1
        return exists(path)

    monkeypatch.setattr(Path, "exists", count)
    (tmp_path / "Makefile").write_text(" ".join(f"src/{number}.c" for number in range(50_000)))
    assert len(files_of(command_call("make", tmp_path), tmp_path)) == 1
    assert looks < 6_000


def test_what_cannot_be_bound_is_never_approved(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for number in range(30):
        (tmp_path / f"d{number}").mkdir()
    os.mkfifo(tmp_path / "Makefile")
    for line in ("bash pipe", "make all", f"cat {' '.join(f'd{number}' for number in range(30))}; bash run.sh"):
        before = bind_call(command_call(line, tmp_path), Grant(tmp_path))
        answered = {place_of(before, "0/1.1"): {"approval": "yes"}}
        after = bind_call(command_call(line, tmp_path), Grant(tmp_path))
        assert "cannot be approved" in before.files[0]
        assert decision_on(after, place_of(after, "0/1.1"), answered) is None


def test_large_file_whose_time_was_set_back_is_another_one(tmp_path: Path) -> None:
    file = tmp_path / "big.sh"
    with file.open("wb") as large:
        large.truncate(60_000_000)
    before = files_of(command_call("bash big.sh", tmp_path), tmp_path)
    times = file.stat()
    with file.open("r+b") as large:
        large.write(b"echo evil")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert files_of(command_call("bash big.sh", tmp_path), tmp_path) != before


def plant(folder: Path, kind: str) -> None:
    """Change what code of the skill could load, in a place that nobody looks at."""
    match kind:
        case "compiled":
            cache = folder / "scripts" / "__pycache__"
            cache.mkdir()
            (cache / "run.cpython-312.pyc").write_bytes(b"x")
        case "hidden":
            (folder / "scripts" / ".more.py").write_text("x = 1\n")
        case "large":
            with (folder / "large.bin").open("r+b") as file:
                file.write(b"changed")
        case "late":
            (folder / "zzz" / "1100.txt").write_text("changed")
        case "linked":
            (folder.parent / "shared" / "lib.py").write_text("changed")
        case _:
            (folder / "link.txt").unlink()
            (folder / "link.txt").symlink_to("large.bin")


@pytest.mark.parametrize("kind", ["compiled", "hidden", "large", "late", "linked", "link"])
def test_hash_of_a_skill_is_of_all_that_its_code_loads(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "skill"
    (folder / "scripts").mkdir(parents=True)
    (folder / "zzz").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "lib.py").write_text("x = 1\n")
    (folder / "scripts" / "run.py").write_text("x = 1\n")
    (folder / "SKILL.md").write_text("x")
    (folder / "large.bin").write_bytes(bytes(6_000_000))
    for number in range(1_101):
        (folder / "zzz" / f"{number}.txt").write_text("x")
    (folder / "shared").symlink_to("../shared")
    (folder / "again").symlink_to(".")
    (folder / "link.txt").symlink_to("SKILL.md")
    os.mkfifo(folder / "pipe")
    before = whole_hash(folder)
    assert whole_hash(folder) == before
    plant(folder, kind)
    assert whole_hash(folder) != before


def test_code_of_a_skill_runs_from_its_source(tmp_path: Path) -> None:
    """Compiled code that does not say of which source it is would run in the place of what a person reads."""
    scripts = tmp_path / "nice" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "evil.py").write_text("NAME = 'evil'\n")
    modes = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for name in ("run", "helper"):
        (scripts / f"{name}.py").write_text(
            "from . import helper\nNAME = 'nice'\n" if name == "run" else "NAME = 'nice'\n"
        )
        planted = Path(py_compile.compile(str(tmp_path / "evil.py"), invalidation_mode=modes) or "")
        cache = scripts / "__pycache__"
        cache.mkdir(exist_ok=True)
        planted.rename(cache / planted.name.replace("evil", name))
    (scripts / "only.pyc").write_bytes(next((scripts / "__pycache__").iterdir()).read_bytes())
    module = load_entry(scripts.parent, Path("scripts/run.py"))
    assert (module.NAME, module.helper.NAME) == ("nice", "nice")
    with pytest.raises(ModuleNotFoundError):
        load_entry(scripts.parent, Path("scripts/only.py"))
