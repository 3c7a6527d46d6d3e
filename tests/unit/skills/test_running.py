"""The catalog loads every valid pack, the router chooses, and a skill runs in a separate process."""

from __future__ import annotations

import math
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.clocks import ServerClock
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.skills.skill import SkillRequest
from fireswarm.errors import LeaseLost, NotFound, SkillFailed, SkillRefused
from fireswarm.processes.child_pool import EndTime, Hold
from fireswarm.processes.messages import steady_seconds
from fireswarm.skills.packs.catalog import Skill, load_catalog
from fireswarm.skills.routing import router
from fireswarm.skills.running import execute
from fireswarm.skills.running.end_time import Checked, has_passed
from fireswarm.skills.running.execute import CodeRules, run_skill
from tests.support.patience import PATIENCE_SECONDS

GOOD = (
    "from fireswarm.contracts.skills.skill import SkillResult\nfrom .words import WORD\n\n"
    "def run(request):\n    {body}\n"
)


def make(folder: Path, name: str, body: str = "return SkillResult(summary=WORD)", header: str | None = None) -> Skill:
    scripts = folder / name / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "words.py").write_text(f"WORD = 'from {name}'\n")
    (scripts / "skill.py").write_text(GOOD.format(body=body))
    header = header or f"name: {name}\ndescription: does {name}\nmetadata: {{entry: scripts/skill.py}}"
    (folder / name / "SKILL.md").write_text(f"---\n{header}\n---\n# Title\n")
    catalog = load_catalog([folder])
    return catalog.skills.get(name) or Skill(name, "left out", folder)


def request(workdir: Path, **context: object) -> SkillRequest:
    return SkillRequest(
        task_id="t",
        session_hash="s",
        objective="x",
        role="scout",
        workdir=workdir,
        now=datetime.now(UTC),
        context=context,
    )


def test_invalid_skill_does_not_stop_the_catalog(tmp_path: Path) -> None:
    make(tmp_path, "good")
    make(tmp_path, "no-description", header="name: no-description")
    make(tmp_path, "bad-yaml", header="name: [")
    make(tmp_path, "outside", header="name: outside\ndescription: x\nmetadata: {entry: ../../etc/passwd}")
    make(tmp_path, "missing", header="name: missing\ndescription: x\nmetadata: {entry: scripts/none.py}")
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    catalog = load_catalog([tmp_path])
    reasons = {path.parent.name: reason for path, reason in catalog.left_out}
    assert "no description" in reasons["no-description"]
    assert set(reasons) == {"no-description", "bad-yaml", "bytes"}
    assert set(catalog.skills) == {"good", "missing", "outside"}
    warnings = {path.parent.name: reason for path, reason in catalog.warned}
    assert "outside its folder" in warnings["outside"]
    assert "does not exist" in warnings["missing"]
    assert catalog.get("outside").entry is None
    assert catalog.get("missing").entry is None


def test_skill_of_the_nearer_folder_wins(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    make(near, "same")
    make(far, "same")
    catalog = load_catalog([near, far])
    assert catalog.get("same").folder == (near / "same").resolve()
    assert "shadowed by" in catalog.left_out[0][1]
    with pytest.raises(NotFound, match=r"skills/other/SKILL\.md"):
        catalog.get("other")


def test_router_chooses_the_named_skill_then_the_best_match_then_the_default(tmp_path: Path) -> None:
    make(tmp_path, "count-files", header="name: count-files\ndescription: Count the files of a folder by type")
    make(tmp_path, "fetch-page", header="name: fetch-page\ndescription: Fetch a web page and extract its links")
    catalog = load_catalog([tmp_path])
    names = ("fetch-page", "count-files")
    assert router.choose("anything", "count-files", names, catalog).name == "count-files"
    assert router.choose("count the files in this folder", None, names, catalog).name == "count-files"
    assert router.choose("zzz qqq", None, names, catalog).name == "fetch-page"


@pytest.mark.anyio
async def test_skill_runs_in_another_process_and_can_import_its_modules(tmp_path: Path) -> None:
    body = "import os; return SkillResult(summary=f'{WORD} {os.getpid()}')"
    result = await run_skill(make(tmp_path, "one", body), request(tmp_path))
    assert result.summary.startswith("from one ")
    assert int(result.summary.split()[-1]) != os.getpid()
    other = make(tmp_path / "second", "one", "return SkillResult(summary=WORD + ' again')")
    assert (await run_skill(other, request(tmp_path))).summary == "from one again"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('bad column 3')", "ValueError: bad column 3"),
        ("return 42", "returned int instead of SkillResult"),
        ("import os; os._exit(3)", "process of skill 'bad' ended unexpectedly"),
        ("import no_such_module", "No module named 'no_such_module'"),
    ],
)
async def test_misbehaving_skill_raises_skill_failed(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(SkillFailed, match=words):
        await run_skill(make(tmp_path, "bad", body), request(tmp_path))


@pytest.mark.anyio
async def test_cancelling_kills_the_process(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = f"import os, threading; open({str(mark)!r}, 'w').write(str(os.getpid())); threading.Event().wait()"
    skill = make(tmp_path, "endless", body)
    pid = 0
    async with anyio.create_task_group() as group:
        group.start_soon(run_skill, skill, request(tmp_path), None, None, CodeRules("none"))
        with anyio.fail_after(PATIENCE_SECONDS):
            while not (mark.exists() and mark.read_text()):
                await anyio.lowlevel.checkpoint()
        pid = int(mark.read_text())
        group.cancel_scope.cancel()
    with anyio.fail_after(PATIENCE_SECONDS):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_skill_without_code_fails_and_names_the_need_for_a_model(tmp_path: Path) -> None:
    skill = make(tmp_path, "words-only", header="name: words-only\ndescription: x")
    with pytest.raises(SkillFailed, match="run it with a model"):
        await run_skill(skill, request(tmp_path))


@pytest.mark.anyio
async def test_skill_process_gets_named_variables_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-planted")
    monkeypatch.setenv("DATABASE_URL", "planted")
    monkeypatch.setenv("VIRTUAL_ENV", "/v")
    body = (
        "import os; found = [os.environ.get(name) for name in ('ANTHROPIC_API_KEY', 'DATABASE_URL', 'VIRTUAL_ENV')]\n"
        "    return SkillResult(summary=str(found))"
    )
    skill = make(tmp_path, "curious", body)
    assert (await run_skill(skill, request(tmp_path))).summary == "[None, None, '/v']"
    rules = CodeRules(pass_environment=("DATABASE_URL", "ANTHROPIC_API_KEY"))
    assert (await run_skill(skill, request(tmp_path), rules=rules)).summary == "[None, 'planted', '/v']"


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["import anthropic", "__import__('anthropic')", "from fireswarm.llm import client"])
async def test_deterministic_skill_cannot_import_a_model_sdk_but_others_can(tmp_path: Path, how: str) -> None:
    body = f"{how}\n    return SkillResult(summary=WORD)"
    header = "name: {0}\ndescription: does it\nmetadata: {{{{entry: scripts/skill.py, execution_mode: {0}}}}}"
    skills = {mode: make(tmp_path, mode, body, header.format(mode).format()) for mode in ("hybrid", "deterministic")}
    for _ in range(2):  # the same process serves both, and has the SDK loaded by then
        assert (await run_skill(skills["hybrid"], request(tmp_path))).summary == "from hybrid"
        with pytest.raises(SkillFailed, match="ModuleNotFoundError|ImportError"):
            await run_skill(skills["deterministic"], request(tmp_path))


TALLY = "(request.workdir / 'tally').open('a').write('x'); return SkillResult(summary='ran')"


@pytest.mark.anyio
async def test_skill_does_not_start_after_its_lease_ended(tmp_path: Path) -> None:
    """The process becomes ready too late: the skill runs only if the lease can be extended."""
    skill = make(tmp_path, "late", TALLY)

    def lasting(*terms: float) -> Hold:
        left = iter(terms)

        async def seconds_left() -> float:
            for seconds in left:
                return seconds
            raise LeaseLost("taken by another")

        return Hold(seconds_left, [], 0.0)

    with pytest.raises(LeaseLost, match="taken by another"):
        await run_skill(skill, request(tmp_path), hold=lasting(0.0))
    assert not (tmp_path / "tally").exists()
    assert (await run_skill(skill, request(tmp_path), hold=lasting(0.0, 60.0))).summary == "ran"
    assert (tmp_path / "tally").read_text() == "x"


BUSY = """import threading
    (request.workdir / "began").touch()
    for _ in range(300):
        threading.Event().wait(0.1)
        if (request.workdir / "enough").exists():
            break
    return SkillResult(summary="ran to its end")"""


async def forever() -> float:
    return 1.0


@pytest.mark.anyio
@pytest.mark.parametrize("confinement", ["none", "bubblewrap"])
async def test_skill_ends_with_its_lease_when_its_worker_hangs(tmp_path: Path, confinement: str) -> None:
    """Nobody extends the hold, as in a worker that was stopped; its process ends long before the skill would."""
    skill = make(tmp_path, "busy", BUSY)
    began = time.monotonic()
    with pytest.raises(SkillFailed, match="ended unexpectedly"):
        await run_skill(skill, request(tmp_path), hold=Hold(forever, [], 0.0), rules=CodeRules(confinement))
    assert (tmp_path / "began").exists()
    assert time.monotonic() - began < 25.0, "the skill ran to its own end"


@pytest.mark.anyio
async def test_skill_goes_on_while_its_lease_is_renewed(tmp_path: Path) -> None:
    skill, hold = make(tmp_path, "busy", BUSY), Hold(forever, [], 0.0)
    renewals = 0

    async def renew() -> None:
        nonlocal renewals
        while not await ServerClock().wait(anyio.Event(), 0.2):
            for follow in hold.followers:
                follow(1.0)
                renewals += 1
            if renewals > 12:
                (tmp_path / "enough").touch()

    result = None
    async with anyio.create_task_group() as group:
        group.start_soon(renew)
        result = await run_skill(skill, request(tmp_path), hold=hold, rules=CodeRules("none"))
        group.cancel_scope.cancel()
    assert result is not None
    assert (result.summary, hold.followers) == ("ran to its end", [])


def test_a_child_that_stood_still_gives_its_parent_time() -> None:
    """All processes wake up at once after an hour; the parent has the grace to extend the end."""
    with EndTime(-3600.0, 20.0) as end:
        asleep = Checked(steady_seconds() - 3600.0, -math.inf)
        passed, woken = has_passed(end.path, asleep)
        assert not passed
        assert not has_passed(end.path, woken)[0]
        assert has_passed(end.path, Checked(steady_seconds(), steady_seconds() - 21.0))[0]
        end.extend(60.0)
        assert not has_passed(end.path, Checked(steady_seconds(), -math.inf))[0]
    assert not has_passed(end.path, Checked(steady_seconds(), -math.inf))[0]


@pytest.mark.anyio
@pytest.mark.parametrize("given", ["context", "answers"])
async def test_packaged_skill_that_is_given_a_folder_sees_no_other(
    given: str, rung: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "plain.txt").write_text("plain")
    (tmp_path / "private.txt").write_text("sesame-4711")
    (tmp_path / "work" / "link.txt").symlink_to(tmp_path / "private.txt")
    body = (
        "import pathlib; told = []\n"
        "    for name in ('plain.txt', 'link.txt', '../private.txt'):\n"
        "        try: told.append(pathlib.Path((request.answers or request.context)['path'], name).read_text())\n"
        "        except OSError: told.append('unseen')\n"
        "    return SkillResult(summary=' '.join(told))"
    )
    skill = make(tmp_path / "packaged", "reads", body)
    monkeypatch.setattr(execute, "_packaged_skills", lambda: tmp_path / "packaged")
    asked = request(tmp_path / "out").model_copy(update={given: {"path": str(tmp_path / "work")}})
    (tmp_path / "out").mkdir()
    result = await run_skill(skill, asked, rules=CodeRules(root=tmp_path / "work"))
    assert result.summary == "plain unseen unseen"


@pytest.mark.anyio
async def test_file_of_a_packaged_skill_that_became_a_link_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private.txt").write_text("sesame-4711")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "late.csv").symlink_to(tmp_path / "private.txt")
    skill = make(tmp_path / "packaged", "reads")
    monkeypatch.setattr(execute, "_packaged_skills", lambda: tmp_path / "packaged")
    asked = request(tmp_path, csv=str(tmp_path / "work" / "late.csv"))
    with pytest.raises(SkillRefused, match="has become a link to another place"):
        await run_skill(skill, asked, rules=CodeRules(root=tmp_path / "work"))


@pytest.mark.anyio
async def test_attached_file_that_became_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "private.txt").write_text("sesame-4711")
    (tmp_path / "data.csv").symlink_to(tmp_path / "private.txt")
    attached = Attachment(name="data.csv", mime="text/csv", uri=(tmp_path / "data.csv").as_uri())
    asked = request(tmp_path).model_copy(update={"attachments": (attached,)})
    with pytest.raises(SkillRefused, match=r"the attached .*data.csv has become a link to another place"):
        await run_skill(make(tmp_path / "packaged", "reads"), asked, rules=CodeRules(root=tmp_path))


@pytest.mark.anyio
async def test_path_that_became_a_link_to_the_state_of_a_swarm_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".fireswarm" / "inputs").mkdir(parents=True)
    (tmp_path / "data").symlink_to(tmp_path / ".fireswarm" / "inputs")
    asked = request(tmp_path, path=str(tmp_path / "data"))
    with pytest.raises(SkillRefused, match="has become a link to another place"):
        await run_skill(make(tmp_path / "packaged", "reads"), asked, rules=CodeRules(root=tmp_path))
