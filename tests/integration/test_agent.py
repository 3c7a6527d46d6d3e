"""The agent command as a person uses it: runs, replays, prompts, chats and configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.swarm.event import EventRecord
from tests.support.commands import GOOD, TASK, TURNS, agent, at, events, kept, lay_out, script, serving
from tests.support.minds import KEY, KEYED, ask, command, decided, use
from tests.support.providers import Reply


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


# ── run and replay ──────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_needs_no_key_and_calls_nothing(root: Path) -> None:
    done = agent(root, "run", "list the Markdown files here and draft a report", "--dry-run", "true")
    assert done.code == 0, done.stderr
    assert events(root)[-1].payload["mode"] == "dry_run"
    for said in (
        "model: anthropic claude",
        "  - csv-forecast (",
        "read_file",
        "no limit of tokens",
        "size: about ",
    ):
        assert said in done.stdout, said
    assert "llm_request_sent" not in done.stderr


def test_scripted_run_of_several_turns_is_logged_live_and_replayed_identically(root: Path) -> None:
    (root / "agent.yaml").write_text("logging:\n  level: debug\n")
    done = agent(root, "run", TASK, *script(root, *TURNS), "--yes")
    assert done.code == 0, done.stderr
    assert "Hello, Ada." in done.stdout
    steps = [event.payload for event in events(root) if event.event_type == "skill_step_executed"]
    assert "Say hello, and nothing else." in steps[0]["stdout_summary"]
    assert [(step["stdout_summary"], step["status"]) for step in steps[1:]] == [
        ("Hello, Ada.\n", "ok"),
        ("greeter\n", "ok"),
    ]
    *live, last = done.stderr.splitlines()
    assert len(live) == len(events(root))
    assert last.startswith("run ")
    replayed = agent(root, "replay", "latest", "--event-stream")
    assert replayed.stdout.splitlines()[: len(live)] == live
    assert replayed.stdout.rstrip().endswith("Hello, Ada.")
    as_json = agent(root, "replay", "latest", "--json").json
    assert [EventRecord.model_validate(event) for event in as_json] == events(root)


def test_packaged_code_skill_reads_the_working_folder(root: Path) -> None:
    (root / "notes.md").write_text("# Notes\n")
    plan = decided(use("workspace-inventory"))
    done = agent(root, "run", "list the files here", *script(root, plan, GOOD), "--json")
    assert done.code == 0, done.stderr
    [step] = [event.payload for event in events(root) if event.event_type == "skill_step_executed"]
    assert step["status"] == "ok"
    assert "notes.md" in step["stdout_summary"] or done.json["artifacts"]


def test_log_truncated_by_a_crash_can_be_replayed(root: Path) -> None:
    agent(root, "run", TASK, *script(root, GOOD))
    [path] = kept(root).glob("*/events.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    replayed = agent(root, "replay", path.parent.name, "--event-stream")
    assert replayed.code == 0
    assert "run_started" in replayed.stdout
    assert "run_finished" not in replayed.stdout
    assert agent(root, "replay", "nonsense").code == 1


def test_json_option_prints_only_the_conclusion(root: Path) -> None:
    done = agent(root, "run", TASK, *script(root, *TURNS), "--json", "--yes")
    assert done.stderr == ""
    told = done.json
    assert (told["ending"], told["answer"], told["skill"], told["turns"]) == ("finished", "Hello, Ada.", "greeter", 3)
    assert (kept(root) / told["run_id"]).is_dir()
    assert (root / "runs" / told["run_id"] / "events.jsonl").is_file()
    assert told["calls"] == 3


@pytest.mark.parametrize(
    ("answers", "code", "told"),
    [
        ((GOOD,), 0, "Hello, Ada."),
        ((decided(ask("Who is it?")),), 3, "needs name: Who is it?"),
        ((decided(command("exit 1")),), 1, "error (step_failed)"),
        (({"error": 401},), 1, "error (model_rejected)"),
        (({"text": "No.", "stop": "refusal"},), 1, "error (decision_invalid)"),
    ],
)
def test_exit_code_reflects_how_the_run_ended(answers: tuple[Any, ...], code: int, told: str, root: Path) -> None:
    (root / "agent.yaml").write_text("runtime: {on_step_failure: abort}\n")
    done = agent(root, "run", TASK, *script(root, *answers), "--skill", "greeter", "--yes")
    assert done.code == code
    assert told in done.stdout + done.stderr


@pytest.mark.parametrize("provider", KEYED)
def test_missing_api_key_is_reported_before_any_call(provider: str, root: Path) -> None:
    with serving((Reply(GOOD),)) as served:
        at(served, root)
        done = agent(root, "run", TASK, "--provider", provider)
        assert not served.received
    assert done.code == 1
    assert "error (missing_provider_api_key)" in done.stderr
    assert f"{provider.upper()}_API_KEY is not set" in done.stderr
    assert events(root)[-1].payload["reason"] == "missing_provider_api_key"


@pytest.mark.parametrize("provider", KEYED)
def test_run_uses_the_sdk_of_the_chosen_provider(provider: str, root: Path) -> None:
    with serving([Reply(answer) for answer in TURNS]) as served:
        done = agent(root, "run", TASK, "--yes", "--provider", provider, **at(served, root))
        assert len(served.calls) == 3
        assert {call.provider for call in served.calls} == {provider}
    assert done.code == 0, done.stderr
    assert KEY not in done.stderr


# ── the prompt ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", KEYED)
@pytest.mark.parametrize("mode", ["native_with_json_fallback", "json_only"])
def test_show_prompt_prints_the_prompt_that_a_run_sends(provider: str, mode: str, root: Path) -> None:
    options = ("--provider", provider, "--context", "who=Ada", "--context", "n=5")
    with serving((Reply(GOOD),)) as served:
        keys = at(served, root, structured_output_mode=mode)
        shown = agent(root, "run", TASK, *options, "--show-prompt")
        assert shown.code == 0, shown.stderr
        assert not served.received  # and no key was needed
        assert not (root / "runs").exists()
        assert agent(root, "run", TASK, *options, **keys).code == 0
        [sent] = served.calls
    body = {key: value for key, value in sent.body.items() if key != "stream"}
    assert shown.json == {"model": sent.model, **body}


@pytest.mark.parametrize("provider", KEYED)
def test_show_prompt_prints_the_first_request_of_a_model_with_tools(provider: str, root: Path) -> None:
    (root / "AGENTS.md").write_text("Run make check.")
    with serving((Reply("Hello, Ada."),)) as served:
        keys = at(served, root, decision_mode="tools")
        shown = agent(root, "run", TASK, "--provider", provider, "--show-prompt", **keys).json
        ran = agent(root, "run", TASK, "--provider", provider, **keys)
        assert ran.code == 0, ran.stderr
        [sent] = [call.body for call in served.calls]
    assert "Run make check." in str(sent)
    for part in ("system", "systemInstruction", "tools", "messages", "contents"):
        assert shown.get(part) == sent.get(part), part


def test_run_goes_on_only_in_its_folder(root: Path, tmp_path: Path) -> None:
    (root / "agent.yaml").write_text(f"logging: {{jsonl_dir: {root / 'runs'}}}\n")
    options = script(root, "Hello.")
    assert agent(root, "run", TASK, *options).code == 0
    (root / "elsewhere").mkdir()
    moved = ("--config", str(root / "agent.yaml"), "--script", str(root / "answers.json"))
    run = kept(root).glob("*-*-*").__next__().name
    ended = agent(root / "elsewhere", "resume", run, *moved, HOME=str(root / "home"))
    assert (ended.code, f"worked in {root}: resume it there" in ended.stderr) == (1, True)


def test_show_prompt_without_a_matching_skill_fails(root: Path) -> None:
    (root / "agent.yaml").write_text(
        "skills:\n  prefilter_zero_candidate_strategy: fail_fast\n  prefilter_min_score: 100\n"
    )
    done = agent(root, "run", "xyzzy plugh", "--show-prompt")
    assert (done.code, "no skill matches the task" in done.stderr) == (1, True)


# ── chat ────────────────────────────────────────────────────────────────────────────────────────────────

GROWING = """
def answer(request):
    said = [message.text for message in request.messages if message.role == "user" and not message.outputs]
    if len(said) == 2 and not request.messages[-1].outputs:
        return {"calls": [{"name": "run_command", "input": {"command": "echo once >> log"}}], "text": "I do that."}
    return f"Answer {len(said)} to {said[-1].splitlines()[-1] if len(said) > 1 else 'the first'}"

answer.tools = True
"""


def test_chat_is_one_conversation_that_grows_and_goes_on_later(root: Path) -> None:
    (root / "model.py").write_text(GROWING)
    options = ("chat", "--script", "model.py:answer", "--yes")
    first = agent(root, *options, typed="hello\n/cost\n/nonsense\nwrite the log\n")
    assert first.code == 0, first.stderr
    assert "Answer 1 to the first" in first.stdout and "Answer 2 to write the log" in first.stdout
    assert "USD" in first.stdout and "unknown command /nonsense" in first.stdout
    second = agent(root, *options, typed="and a third\n\n")
    assert "continues (run " in second.stdout
    assert "Answer 3 to and a third" in second.stdout
    assert (root / "log").read_text() == "once\n", "what was done is not done again"
    assert len(list((root / "runs").glob("*/events.jsonl"))) == 1
    other = agent(root, *options, "--session", "other", typed="hello\n")
    assert "a new conversation" in other.stdout and "Answer 1 to the first" in other.stdout


def test_run_goes_on_with_a_message_and_with_an_answer(root: Path) -> None:
    asking = [{"calls": [{"name": "ask_user", "input": {"question": "Who?", "name": "who"}}]}, "Hello.", "Bye."]
    options = script(root, *asking)
    waiting = agent(root, "run", TASK, *options)
    assert (waiting.code, "needs who: Who?" in waiting.stdout) == (3, True)
    answered = agent(root, "resume", "latest", "--resume-answer", "who=Ada", *options)
    assert (answered.code, "Hello." in answered.stdout) == (0, True), answered.stderr
    further = agent(root, "run", "say goodbye", "--continue", *options)
    assert (further.code, "Bye." in further.stdout) == (0, True), further.stderr
    assert len(list((root / "runs").glob("*/events.jsonl"))) == 1
    assert agent(root, "resume", "20260101-000000-00000000", *options).code == 1


# ── configuration ───────────────────────────────────────────────────────────────────────────────────────


def test_config_init_writes_a_valid_file_and_replaces_it_only_with_force(root: Path) -> None:
    assert agent(root, "config", "init").code == 0
    done = agent(root, "config", "validate")
    assert done.stdout == f"{root / 'agent.yaml'}: valid (anthropic, claude-sonnet-5-5)\n"
    again = agent(root, "config", "init")
    assert (again.code, "--force to replace it" in again.stderr) == (1, True)
    assert agent(root, "config", "init", "--force").code == 0
    assert agent(root, "config", "init", "--file", "deep/er/x.yaml").code == 0
    assert agent(root, "config", "validate", "--file", "deep/er/x.yaml").code == 0


def test_the_configuration_is_found_in_the_documented_order(root: Path) -> None:
    def turns(*arguments: str) -> int:
        return agent(root, "config", "validate", "--json", *arguments).json["runtime"]["max_turns"]

    assert turns() == 40
    home = root / "home" / ".config" / "agent"
    home.mkdir(parents=True)
    (home / "agent.yaml").write_text("runtime: {max_turns: 2}")
    assert turns() == 2
    (root / "agent.yaml").write_text("runtime: {max_turns: 3}")
    assert turns() == 3
    (root / "x.yaml").write_text("runtime: {max_turns: 1}")
    assert turns("--file", "x.yaml") == 1
    looping = script(root, *[decided(command(f"echo {number}")) for number in range(9)])
    done = agent(root, "run", TASK, "--config", "x.yaml", *looping, "--json", "--yes")
    assert (done.json["reason"], done.json["turns"]) == ("max_turns_exceeded", 1)
    done = agent(root, "run", TASK, "--config", "x.yaml", *looping, "--max-turns", "4", "--json", "--yes")
    assert done.json["turns"] == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("runtime:\n  max_turn: 5\n", "agent.yaml:2: runtime.max_turn: unknown key; did you mean max_turns?"),
        ("model:\n  provider: gpt\n", "agent.yaml:2: model.provider: Input should be"),
        ("model: [", "agent.yaml:1 is not YAML"),
    ],
)
def test_configuration_error_stops_every_command_and_names_its_location(text: str, told: str, root: Path) -> None:
    (root / "agent.yaml").write_text(text)
    for arguments in (("run", TASK), ("chat",), ("replay", "latest"), ("config", "validate")):
        done = agent(root, *arguments)
        assert done.code == 1
        assert "error (config_error)" in done.stderr
        assert told in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dry-run", "maybe"), "Got unexpected extra argument"),
        (("--profile", "wild"), "runtime.profile"),
        (("--provider", "gpt"), "model.provider"),
        (("--script", "none.json"), "none.json does not exist"),
        (("--config", "none.yaml"), "none.yaml does not exist"),
        (("--max-turns", "0"), "--max-turns"),
        (("--context", "novalue"), "is not key=value"),
    ],
)
def test_invalid_option_is_reported(arguments: tuple[str, ...], told: str, root: Path) -> None:
    done = agent(root, "run", TASK, *arguments)
    assert done.code != 0
    assert told in done.stderr


@pytest.mark.parametrize("provider", KEYED)
def test_invalid_bytes_and_escape_sequences_are_removed_from_the_task(provider: str, root: Path) -> None:
    with serving((Reply(GOOD),)) as served:
        done = agent(root, "run", "caf\udce9 \x1b[31mgreet Ada\x07", "--provider", provider, **at(served, root))
        assert b"caf greet Ada" in served.calls[0].raw
    assert done.code == 0, done.stderr
    assert "\x1b" not in done.stderr


def test_empty_task_is_rejected(root: Path) -> None:
    done = agent(root, "run", " \n", *script(root, GOOD))
    assert (done.code, "the task is empty" in done.stderr) == (1, True)
    assert not (root / "runs").exists()
