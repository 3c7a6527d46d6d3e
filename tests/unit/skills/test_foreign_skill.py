"""Code of a skill that is not packaged, in a task that may write: it changes its own folders only."""

from __future__ import annotations

import os
import py_compile
import socket
from pathlib import Path

import psutil
import pytest

from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.errors import SandboxRefused, SkillFailed, SkillRefused
from fireswarm.processes.confinement.process_limits import ProcessLimits
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.skills.running import execute
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.skills.running.execute import CodeRules, run_skill
from tests.support.confinement import hide_landlock
from tests.unit.skills.test_confined_skill import (
    ATTACKS,
    HEAD,
    NAP,
    SECRET,
    SHARED,
    TAIL,
    code,
    skill_with,
    state,
    work,
)
from tests.unit.skills.test_running import request

__all__ = ["work"]
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("rung")]
REFUSED = ("OSError", "PermissionError")
"""Errors of bubblewrap's read-only mounts, and of Landlock."""


async def run(place: Path, source: str, rules: CodeRules | None = None, **context: object) -> SkillResult:
    """Run the code as a skill that declares that it writes; its task names *context*, usually a ``path``."""
    scripts = place / "skills" / "attack" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    (scripts / "skill.py").write_text(source)
    (scripts.parent / "SKILL.md").write_text(
        "---\nname: attack\ndescription: Attacks.\nmetadata: {entry: scripts/skill.py}\n---\n"
    )
    skill = load_catalog([place / "skills"]).get("attack")
    return await run_skill(skill, request(place / "out", **context), rules=rules)


@pytest.mark.parametrize(("denied", "reads"), [((), True), (("Read(secret.txt)",), False)])
async def test_code_of_a_trusted_skill_is_confined_only_where_a_rule_denies_files(
    denied: tuple[str, ...], reads: bool, work: Path
) -> None:
    (work / "home" / "seen.txt").write_text("seen")
    body = f"told.append(Path({str(work / 'home' / 'seen.txt')!r}).read_text())"
    rules = CodeRules(trusted=frozenset({"attack"}), denied=DeniedReads(denied))
    (work / "target" / "secret.txt").write_text("key")
    told = (await run(work, code(body), rules, path=str(work / "target"))).summary
    assert ("seen" in told) is reads


async def test_skill_changes_nothing_outside_of_its_folders(work: Path) -> None:
    steps = (f"    with trying():\n        {body}\n    met({name!r})\n" for name, body in ATTACKS.items())
    source = HEAD.replace('request.context["path"]', repr(str(work / "target"))) + "".join(steps) + TAIL
    (work / "own").mkdir()
    places = [work / place for place in ("target", "home")]
    before = [state(place) for place in places]
    result = await run(work, source, path=str(work / "own"), home=str(work / "home"), pids=[os.getpid()])
    # These succeed in the private /tmp, in which the test has its folders.
    private = {"git", "folder for all", "mount call", "user namespace", "handle"}
    assert ATTACKS.keys() - set(result.summary.split("; ")) <= private, "one met no resistance"
    assert [state(place) for place in places] == before
    assert not any(path.exists() for path in SHARED)


async def test_skill_writes_to_the_folder_of_the_tasks_path(work: Path) -> None:
    result = await run(work, code('file.write_text("new"); told.append("wrote")'), path=str(work / "target"))
    assert result.summary == "wrote"
    assert (work / "target" / "a.txt").read_text() == "new"


async def test_skill_that_says_it_writes_nothing_cannot_write_to_that_folder(work: Path) -> None:
    skill = skill_with(work, code('file.write_text("new")'))  # its metadata says writes: "false"
    assert (await run_skill(skill, request(work / "out", path=str(work / "target")))).summary in REFUSED
    assert (work / "target" / "a.txt").read_text() == "a\n"


async def test_failure_by_a_read_only_file_tells_where_the_skill_can_write(work: Path) -> None:
    steps = HEAD + "    Path(__file__).write_text('x')\n" + TAIL
    with pytest.raises(SkillFailed, match="can write to its workdir and to the folder of the task's `path` only"):
        await run(work, steps, path=str(work / "target"))


@pytest.mark.parametrize("call", ["touch()", "read_text()"])
async def test_failure_by_a_file_that_is_not_visible_says_so(call: str, work: Path) -> None:
    (work / "home" / "x").write_text("x")
    with pytest.raises(SkillFailed, match=r"It reads these, its own folder, .* with `runtime.readable`"):
        await run(work, HEAD + f"    Path({str(work / 'home' / 'x')!r}).{call}\n" + TAIL, path=str(work / "target"))
    readable = CodeRules(readable=(work / "home",))
    source = code(f"told.append(Path({str(work / 'home' / 'x')!r}).read_text())")
    assert (await run(work, source, readable, path=str(work / "target"))).summary == "x"


async def test_store_of_a_swarm_in_the_folder_is_not_writable(work: Path) -> None:
    (work / "target" / ".fireswarm").mkdir()
    (work / "target" / ".fireswarm" / "store.db").write_text("tasks")
    body = 'file.touch(); (target / ".fireswarm" / "store.db").write_text("x")'
    assert (await run(work, code(body), path=str(work / "target"))).summary in REFUSED


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr/share"])
async def test_path_to_the_system_makes_nothing_of_it_writable(folder: str, work: Path) -> None:
    body = f"Path({folder!r}, 'fireswarm-attack').touch()"
    assert (await run(work, code(body), path=folder)).summary in REFUSED
    assert not any(path.exists() for path in [*SHARED, Path(folder, "fireswarm-attack")])


@pytest.mark.parametrize(("passed", "found"), [((), "None None"), (("DEPLOY_TOKEN",), "sesame None")])
async def test_skill_gets_the_credentials_that_are_passed_on_only(
    passed: tuple[str, ...], found: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "sesame")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sesame")
    body = "told.append(f\"{os.environ.get('DEPLOY_TOKEN')} {os.environ.get('ANTHROPIC_API_KEY')}\")"
    rules = CodeRules(pass_environment=passed)
    assert (await run(work, code(body), rules, path=str(work / "target"))).summary == found


async def test_skill_reaches_servers_but_no_local_socket(work: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(work / "s"))
        local.listen()
        body = (
            f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2).close(); told.append('reached')\n"
            f"    with trying():\n        socket.socket(socket.AF_UNIX).connect({str(work / 's')!r})"
        )
        assert (await run(work, code(body), path=str(work / "target"))).summary == "reached; OSError"


async def test_skill_runs_an_event_loop_and_resolves_names(work: Path) -> None:
    body = (
        "import asyncio; asyncio.run(asyncio.sleep(0)); told.append(socket.getaddrinfo('localhost', 80)[0][4][0])\n"
        "        told.append(str(Path('/etc/resolv.conf').exists()))"
    )
    summary = (await run(work, code(body), path=str(work / "target"))).summary
    assert summary in ("127.0.0.1; True", "::1; True")


async def test_each_task_has_a_process_of_its_own(work: Path) -> None:
    """A process that was reused could keep files of earlier tasks open, and exchange them while they are published."""
    rules = CodeRules(workdirs=work)
    source = (
        "from fireswarm import SkillResult\nnumbers = iter('123')\n"
        "def run(request):\n    return SkillResult(summary=next(numbers))\n"
    )
    assert [(await run(work, source, rules, path=str(work / "target"))).summary for _ in range(2)] == ["1", "1"]


@pytest.mark.parametrize("place", ["home", "target", "out", "~"])
async def test_program_of_a_skill_reads_no_more_than_packages(place: str, work: Path) -> None:
    named = place if place == "~" else str(work / place)
    body = (
        f"place = request.workdir / 'p'; place.mkdir()\n"
        f"        view = pipelines.View(place, writable=True, readable=(Path({named!r}),))\n"
        "        told.append(str(pipelines.run_confined(['ls'], view, {'PATH': '/usr/bin:/bin'}, 60.0)))"
    )
    told = (await run(work, code(body), path=str(work / "target"))).summary
    assert told.startswith("a skill does not let programs read")


async def test_program_of_a_skill_gets_no_folders_of_programs_that_the_skill_chooses(work: Path) -> None:
    (work / "home" / "bin").mkdir()
    (work / "home" / "bin" / "file").write_text(SECRET)
    body = (
        "place = request.workdir / 'p'; place.mkdir()\n"
        f"        path = {{'PATH': '/usr/bin:/bin:{work}/home/bin', 'LD_PRELOAD': '/nowhere/own.so'}}\n"
        f"        command = ['cat', {str(work / 'home' / 'bin' / 'file')!r}]\n"
        "        told.append(str(pipelines.run_confined(command, pipelines.View(place), path, 60.0)))"
    )
    told = (await run(work, code(body), path=str(work / "target"))).summary
    assert SECRET not in told and "ld.so" not in told and "cat" in told


async def test_process_that_left_another_one_behind_is_ended_with_it(work: Path) -> None:
    body = f"subprocess.Popen(['sleep', '{NAP}'], start_new_session=True); told.append('started')"
    rules = CodeRules(workdirs=work)
    assert (await run(work, code(body), rules, path=str(work / "target"))).summary == "started"
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


async def test_skill_that_exceeds_its_memory_is_ended(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.skills.running.skill_process.LIMITS", ProcessLimits(memory_bytes=300_000_000))
    body = "hold = [bytearray(1_000_000) for _ in range(450)]; signal.pause()"
    with pytest.raises(SkillFailed, match="was killed: it took more than 300 MB of memory"):
        await run(work, code(body), path=str(work / "target"))


async def test_machine_without_bubblewrap_refuses_the_skill(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(work))
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match=r"the code of skill 'attack' cannot be confined.*confinement: none"):
        await run(work, code("pass"), path=str(work / "target"))


@pytest.mark.parametrize("confinement", ["none", "container"])
async def test_operator_can_choose_another_boundary(confinement: str, work: Path) -> None:
    body = f"Path({str(work / 'home' / 'x')!r}).touch(); told.append('wrote')"
    result = await run(work, code(body), CodeRules(confinement), path=str(work / "target"))
    assert result.summary == "wrote"


async def test_folder_that_is_exchanged_for_a_link_at_the_last_moment_refuses_the_call_only(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine can confine code: a run goes on, and its model is told."""
    (work / "part").symlink_to(work / "home")

    def checked(*_: object) -> tuple[Path, ...]:
        return (work / "part",)

    monkeypatch.setattr(execute, "_workspaces", checked)
    with pytest.raises(SkillRefused, match="a link has taken its place"):
        await run(work, code("    pass"), path=str(work / "target"))


HELPED = """
import importlib.util, subprocess, sys
from pathlib import Path
from fireswarm import SkillResult
here = Path(__file__).parent
sys.path.insert(0, str(here.parent / "lib"))
import helper

def run(request):
    spec = importlib.util.spec_from_file_location("other", here / "helper.py")
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    line = [sys.executable, "-c", "import helper; print(helper.SAID)"]
    child = subprocess.run(line, cwd=here, capture_output=True, text=True).stdout.strip()
    return SkillResult(summary=" ".join((helper.SAID, other.SAID, child)))
"""


async def test_compiled_code_of_a_skill_is_not_seen(work: Path) -> None:
    """A person reads the source. Compiled code can say that it is never to be compared with it."""
    modes = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for name in ("lib", "scripts"):
        folder = work / "skills" / "attack" / name
        (folder / "__pycache__").mkdir(parents=True)
        (folder / "helper.py").write_text("SAID = 'planted'\n")
        py_compile.compile(str(folder / "helper.py"), invalidation_mode=modes)
        (folder / "helper.py").write_text("SAID = 'read'\n")
        if name == "lib":
            (work / "skills" / "attack" / "linked").symlink_to("lib")
    assert (await run(work, HELPED)).summary == "read read read"
