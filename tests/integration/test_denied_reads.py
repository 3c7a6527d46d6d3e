"""Files that ``deny: Read(...)`` names are not there: for commands, tools, searches, skills and outputs alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.agent.run import carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.capabilities.workspace.outputs import collect_outputs
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.permissions import StricterPermissions
from fireswarm.contracts.skills.skill import Check, SkillRequest
from fireswarm.errors import SandboxRefused, SkillRefused
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.redaction import Redactor
from fireswarm.runs.assemble import file_tools
from fireswarm.settings import AgentSettings
from fireswarm.settings.packaged import packaged_path
from fireswarm.settings.run_folders import STATE_HOME
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.skills.running import denied_reads
from fireswarm.skills.running.denied_reads import DeniedReads
from fireswarm.skills.running.execute import CodeRules, run_skill
from tests.integration.test_thinking import answers_so_far, one_turn, thinking
from tests.support.confinement import use_rung
from tests.support.experts import Expert, bash, calls, run
from tests.support.minds import Bench
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

RULES = ("Read(secrets/**)", "Read(**/*.env)", "Read(notes.txt)")
KEY = "hidden content"
DENIED = ("secrets/deep/k", "secrets/l", "src/a.env", ".env", "notes.txt")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path).set(skills__prefilter_min_score=1)
    for name in (*DENIED, "src/b.py"):
        (bench.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.cwd / name).write_text(f"{KEY}\n" if name in DENIED else "plain content\n")
    (bench.cwd / "src" / "link").symlink_to("../secrets/l")
    return bench


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("profile", ["permissive", "read_only"])
async def test_no_command_reads_or_changes_a_denied_file(
    rung: str, profile: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_rung(rung, monkeypatch)
    outputs = bench.root / "outputs"
    outputs.mkdir()
    (bench.cwd / "src" / "hard").hardlink_to(bench.cwd / "secrets" / "deep" / "k")
    read = "cat src/b.py; cat secrets/deep/k secrets/l src/a.env src/link src/hard .env notes.txt; grep -r hidden ."
    copy = (
        "cp -rL . $OUTPUT_DIR/all; ln secrets/l $OUTPUT_DIR/second; ln notes.txt hard; cat hard; tar c . | tr -d '\\0'"
    )
    spoil = "mv secrets s; mv notes.txt n; cat s/l n; echo x > notes.txt; echo x > secrets/l; rm -rf secrets; ls src"
    expert = Expert(*(calls(bash(line)) for line in (read, copy, spoil)), "Done.")
    grant = Grant(bench.cwd, profile, deny=RULES[:2], stricter=StricterPermissions(deny=RULES[2:]))
    await run(bench, expert, grant=grant, outputs=outputs)
    assert "plain content" in expert.told[0], expert.told
    assert not any(KEY in told for told in expert.told)
    assert not any(KEY in path.read_text("utf-8", "replace") for path in outputs.rglob("*") if path.is_file())
    assert [(bench.cwd / name).read_text() for name in DENIED] == [f"{KEY}\n"] * len(DENIED)


async def test_no_tool_reads_lists_finds_or_quotes_a_denied_file(bench: Bench) -> None:
    grant = Grant(bench.cwd, deny=RULES)
    outputs = bench.root / "outputs"
    outputs.mkdir()
    tools = file_tools(grant, outputs, Redactor())
    asked = [
        ("list_files", {}), ("list_files", {"path": "secrets"}), ("search_files", {"pattern": "hidden"}),
        ("search_files", {"pattern": "hidden", "path": "secrets"}),
        ("search_files", {"pattern": "hidden", "path": ".env"}),
        *(("edit_file", {"path": name, "old_text": "hidden contents", "new_text": "x"}) for name in DENIED),
        *(("read_file", {"path": name}) for name in (*DENIED, "src/link")),
        *(("write_artifact", {"name": "a", "path": name}) for name in (*DENIED, "src/link")),
        ("write_file", {"path": "secrets/l", "content": "x"}),
    ]  # fmt: skip
    expert = Expert(*(calls(each) for each in asked), "Done.")
    await bench_run(bench, expert, grant, tools)
    assert len(expert.told) == len(asked)
    assert not any(KEY in told for told in expert.told)
    assert "src/b.py" in expert.told[0] and not any(name in expert.told[0] for name in DENIED)
    assert [(bench.cwd / name).read_text() for name in DENIED] == [f"{KEY}\n"] * len(DENIED)


async def test_no_tool_reads_or_changes_what_a_denied_name_links_to(bench: Bench) -> None:
    """Rules name `keys` and `token.txt`, which are links, and `old.txt`, which has a second name."""
    (bench.cwd / ".vault").mkdir()
    named = (".vault/key", "real.txt", "second.txt")
    for name in named:
        (bench.cwd / name).write_text(f"{KEY}\n")
    (bench.cwd / "keys").symlink_to(".vault")
    (bench.cwd / "token.txt").symlink_to("real.txt")
    (bench.cwd / "old.txt").hardlink_to(bench.cwd / "second.txt")
    grant = Grant(bench.cwd, deny=("Read(keys/**)", "Read(token.txt)", "Read(old.txt)"))
    outputs = bench.root / "outputs"
    outputs.mkdir()
    asked = [
        ("search_files", {"pattern": "hidden", "ignored": True}), ("list_files", {"path": ".vault"}),
        *(("read_file", {"path": name}) for name in named),
        *(("write_artifact", {"name": "a", "path": name}) for name in named),
        *(("edit_file", {"path": name, "old_text": "hidden contents", "new_text": "x"}) for name in named),
        *(("write_file", {"path": name, "content": "x"}) for name in named),
    ]  # fmt: skip
    expert = Expert(*(calls(each) for each in asked), "Done.")
    await bench_run(bench, expert, grant, file_tools(grant, outputs, Redactor()))
    assert len(expert.told) == len(asked)
    assert "second.txt" not in expert.told[0] and "key" not in expert.told[1]
    assert all("may not be read: the permissions deny it" in told for told in expert.told[2:]), expert.told
    assert not any(KEY in told.replace("hidden contents", "") for told in expert.told[1:])
    assert all((bench.cwd / name).read_text() == f"{KEY}\n" for name in named)


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("line", ["rm keys", "mv keys other", "ln -sfn /nowhere keys", "mv proj proj2; rm proj"])
async def test_a_command_takes_no_link_of_a_denied_name_away(
    line: str, rung: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the next command nor a tool reads what was behind it; a pattern may lead through a link too."""
    use_rung(rung, monkeypatch)
    for name in (".vault/key", "real/private/key"):
        (bench.cwd / name).parent.mkdir(parents=True)
        (bench.cwd / name).write_text(f"{KEY}\n")
    (bench.cwd / "keys").symlink_to(".vault")
    (bench.cwd / "proj").symlink_to("real")
    grant = Grant(bench.cwd, "permissive", deny=("Read(keys/**)", "Read(*/private/**)"))
    outputs = bench.root / "outputs"
    outputs.mkdir()
    read = bash("cat .vault/key real/private/key proj/private/key src/b.py")
    files = [("read_file", {"path": name}) for name in (".vault/key", "real/private/key")]
    expert = Expert(calls(read), calls(bash(line)), calls(read), *(calls(each) for each in files), "Done.")
    await run(bench, expert, grant=grant, outputs=outputs, tools=file_tools(grant, outputs, Redactor()))
    assert "plain content" in expert.told[0] and "plain content" in expert.told[2]
    assert not any(KEY in told for told in expert.told), expert.told


@pytest.mark.parametrize("file", ["secrets/data.json", "data.json", "link.json"])
async def test_a_check_of_a_denied_file_tells_nothing_of_it(file: str, bench: Bench) -> None:
    """The schema fits no value, so that each value would stand in the fault."""
    text = json.dumps({"owner": KEY})
    for name in ("secrets/data.json", "kept.json"):
        (bench.cwd / name).write_text(text)
    (bench.cwd / "data.json").symlink_to("secrets/data.json")
    (bench.cwd / "link.json").symlink_to("kept.json")
    check = Check.model_validate({"file": file, "json_schema": {"additionalProperties": {"const": 1}}})
    expert = Expert("Done.", "Done.")
    grant = Grant(bench.cwd, deny=(*RULES, "Read(link.json)"))
    ran = await run(bench, expert, grant=grant, checks=(check,))
    shown = f"{ran} {expert.requests[-1].messages}"
    assert "may not be read: the permissions deny it" in shown and KEY not in shown, shown


async def test_the_tools_of_capabilities_show_nothing_of_a_denied_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, swarm: SwarmRig
) -> None:
    """The capability `workspace`, which the agent and roles usually have, lists and searches as well."""
    asked = [
        ("list_files", {}), ("list_files", {"path": "secrets"}), ("search_files", {"pattern": "hidden"}),
        ("search_files", {"pattern": "hidden", "path": "secrets"}), ("read_file", {"path": "src/link"}),
    ]  # fmt: skip
    told: list[str] = []

    def model(request: ChatRequest) -> dict[str, Any] | str:
        told.extend(output.text for output in request.messages[-1].outputs)
        done = answers_so_far(request)
        return {"calls": [{"name": asked[done][0], "input": asked[done][1]}]} if done < len(asked) else "Done."

    monkeypatch.chdir(bench.cwd)
    monkeypatch.setenv(STATE_HOME, str(bench.root / "state"))
    settings = AgentSettings.model_validate({"permissions": {"deny": RULES}})
    await carry_out(settings, load_catalog([]), AgentTask("look"), bench.cwd, model=ScriptedModel(model))
    await swarm.submit("look", context={"path": str(bench.cwd)}, capabilities=({"id": "workspace"},))
    await one_turn(swarm, thinking(swarm, model, bench.root / "swarm", permissions={"deny": RULES}))
    assert len(told) == 2 * len(asked)
    assert not any(KEY in text for text in told), told
    assert not any(name in text for text in (told[0], told[len(asked)]) for name in DENIED), told
    assert "src/b.py" in told[0] and "src/b.py" in told[len(asked)]


async def bench_run(bench: Bench, expert: Expert, grant: Grant, tools: object) -> None:
    await run(bench, expert, grant=grant, tools=tools)


SOURCE = """
from pathlib import Path
from fireswarm import SkillResult
def run(request):
    found = []
    for path in sorted(Path(request.context["path"]).rglob("*")):
        try:
            found.append(path.read_text())
        except OSError:
            pass
    return SkillResult(summary=" ".join(found) or "nothing")
"""


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("read_only", [True, False])
async def test_code_of_a_skill_does_not_read_a_denied_file(
    rung: str, read_only: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_rung(rung, monkeypatch)
    metadata = 'name: reader\ndescription: Reads.\nmetadata:\n  entry: scripts/skill.py\n  writes: "false"\n'
    bench.skill("reader", f"---\n{metadata}---\n# Reader\n", {"scripts/skill.py": SOURCE})
    request = SkillRequest(
        task_id="t", session_hash="s", objective="read", role="scout", context={"path": str(bench.cwd)},
        constraints={"read_only": read_only}, workdir=bench.root / "workdir", now=bench.clock.now(),
    )  # fmt: skip
    (bench.root / "workdir").mkdir()
    skill = load_catalog([bench.skills]).get("reader")
    result = await run_skill(skill, request, rules=CodeRules(denied=DeniedReads(RULES)))
    assert "plain content" in result.summary and KEY not in result.summary


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock"])
async def test_packaged_skill_that_gets_a_folder_as_its_source_does_not_read_a_denied_file(
    rung: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_rung(rung, monkeypatch)
    for name in ("secrets/a.md", "b.md"):
        (bench.cwd / name).write_text(f"{KEY}\n")
    workdir = bench.root / "workdir"
    workdir.mkdir()
    request = SkillRequest(
        task_id="t", session_hash="s", objective="read", role="scout", context={"source": str(bench.cwd)},
        workdir=workdir, now=bench.clock.now(),
    )  # fmt: skip
    skill, rules = load_catalog([packaged_path("skills")]).get("node-normalize"), CodeRules(denied=DeniedReads(RULES))
    result = await run_skill(skill, request, rules=rules)
    assert "1 file" in result.summary
    snapshot = (workdir / "request_snapshot.json").read_text(encoding="utf-8")
    assert "b.md" in snapshot and "secrets" not in snapshot
    denied = request.model_copy(update={"context": {"source": str(bench.cwd / "secrets" / "a.md")}})
    with pytest.raises(SkillRefused, match="the permissions deny it"):
        await run_skill(skill, denied, rules=CodeRules(denied=DeniedReads(RULES, bench.cwd), root=bench.cwd))


def test_file_with_a_denied_name_is_no_output(tmp_path: Path) -> None:
    for name in ("report.md", "x.env", "secrets/k"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("late")
    found = collect_outputs(tmp_path, str, denied=DeniedReads(RULES))
    assert [file.name for file in found.files] == ["report.md"]
    assert "secrets/k: the permissions deny" in found.note and "x.env: the permissions deny" in found.note


def test_too_many_denied_files_run_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denied_reads, "MAX_PLACES", 1)
    with pytest.raises(SandboxRefused, match="name their folder"):
        DeniedReads(RULES).places(bench.cwd)
    assert DeniedReads(RULES[:1]).places(bench.cwd) == (bench.cwd / "secrets",)
