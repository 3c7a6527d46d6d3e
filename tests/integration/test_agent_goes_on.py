"""`agent resume` and `--continue`: the model of the run, answers by name, lost steps, and runs without an end."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fireswarm.cli.shared.errors import report_errors
from tests.support.commands import TASK, agent, kept, lay_out, script
from tests.support.experts import calls

ASKING: list[Any] = [{"calls": [{"name": "ask_user", "input": {"question": "Who?", "name": "who"}}]}, "Hello.", "Bye."]
WORKING: list[Any] = [
    {"calls": [{"name": "run_command", "input": {"command": "echo a >> log"}}]},
    {"calls": [{"name": "run_command", "input": {"command": "echo b >> log"}}]},
    "Done.",
]
FUNCTION = "def answer(request):\n    return 'from a function'\n\nanswer.tools = True\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


def run_folder(root: Path) -> Path:
    [events] = kept(root).glob("*/events.jsonl")
    return events.parent


# ── the model ───────────────────────────────────────────────────────────────────────────────────────────


def test_run_goes_on_with_the_model_that_it_was_begun_with(root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *ASKING)).code == 3
    answered = agent(root, "resume", "latest", "--resume-answer", "who=Ada")
    assert (answered.code, "Hello." in answered.stdout) == (0, True), answered.stderr
    further = agent(root, "run", "say goodbye", "--continue")
    assert (further.code, "Bye." in further.stdout) == (0, True), further.stderr


def test_model_named_by_an_option_wins(root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *ASKING)).code == 3
    (root / "others.json").write_text(json.dumps([ASKING[0], "From the other script."]))
    options = ("--script", "others.json", "--resume-answer", "who=Ada")
    assert "From the other script." in agent(root, "resume", "latest", *options).stdout
    refused = agent(root, "resume", "latest", "--provider", "anthropic")
    assert (refused.code, "ANTHROPIC_API_KEY" in refused.stderr) == (1, True)


def test_chat_goes_on_with_its_model(root: Path) -> None:
    (root / "model.py").write_text(FUNCTION)
    assert "from a function" in agent(root, "chat", "--script", "model.py:answer", typed="hello\n").stdout
    again = agent(root, "chat", typed="hello again\n/model\n")
    assert (again.code, again.stdout.count("from a function")) == (0, 2), again.stderr
    assert "scripted" in again.stdout


def test_script_that_has_gone_is_named(root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *ASKING)).code == 3
    (root / "answers.json").unlink()
    done = agent(root, "resume", "latest")
    assert done.code == 1
    assert f"{root / 'answers.json'} of run" in done.stderr and "--script" in done.stderr


@pytest.mark.parametrize("model", [{"provider": "scripted", "script": "/x.py:f"}, {"provider": "anthropic-vertex"}])
def test_run_folder_of_a_stranger_chooses_no_script_and_no_account(model: dict[str, str], root: Path) -> None:
    (root / "model.py").write_text(FUNCTION)
    assert agent(root, "run", TASK, "--script", "model.py:answer").code == 0
    (run_folder(root) / "model.json").write_text(json.dumps({"name": "m", **model}))
    done = agent(root, "resume", "latest")
    assert (done.code, "you did not choose here" in done.stderr) == (1, True)
    assert f"--provider {model['provider']}" in done.stderr


def test_script_of_a_trusted_settings_file_needs_no_option(root: Path) -> None:
    script(root, *ASKING)
    (root / "agent.yaml").write_text("model: {provider: scripted, script: answers.json}\n")
    assert agent(root, "trust").code == 0
    assert agent(root, "run", TASK).code == 3
    assert "Hello." in agent(root, "resume", "latest", "--resume-answer", "who=Ada").stdout


@pytest.mark.parametrize("content", ["", "[]", "null", "7", '{"provider": "x"}', '{"provider": {"a": 1}}', "\ud800"])
def test_damaged_model_file_is_named_and_an_option_helps(content: str, root: Path) -> None:
    options = script(root, *ASKING)
    assert agent(root, "run", TASK, *options).code == 3
    (run_folder(root) / "model.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    done = agent(root, "resume", "latest")
    assert done.code == 1 and "Traceback" not in done.stderr
    assert "Hello." in agent(root, "resume", "latest", *options, "--resume-answer", "who=Ada").stdout


# ── answers by name ─────────────────────────────────────────────────────────────────────────────────────


def test_answer_to_no_open_question_is_refused_with_the_names_of_those(root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *ASKING)).code == 3
    refused = agent(root, "resume", "latest", "--resume-answer", "whom=Ada")
    assert refused.code == 3
    assert "no open question is named whom; open questions: who" in refused.stderr
    assert agent(root, "resume", "latest", "--resume-answer", "who=Ada").code == 0
    none = agent(root, "resume", "latest", "--resume-answer", "who=Bea")
    assert (none.code, "open questions: none" in none.stderr) == (1, True)


CHOOSING = (calls(("ask_user", {"question": "Which capital?", "options": ["Bern", "New York"]})), "Chosen.")


def test_question_without_a_terminal_shows_its_options_and_the_command_that_answers_it(root: Path) -> None:
    asked = agent(root, "run", TASK, *script(root, *CHOOSING))
    assert asked.code == 3
    run = run_folder(root).name
    assert "needs answer: Which capital?\n  one of: Bern, New York\n" in asked.stdout
    assert f"agent resume {run} --resume-answer answer=...\n" in asked.stdout


def test_other_answers_than_the_options_are_refused_with_them(root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *CHOOSING)).code == 3
    refused = agent(root, "resume", "latest", "--resume-answer", "answer=Berlin")
    assert (refused.code, "Chosen." in refused.stdout) == (3, False)
    assert "error: answer=Berlin is not a choice: Bern, New York\n" in refused.stderr
    taken = agent(root, "resume", "latest", "--resume-answer", "answer=new york")
    assert (taken.code, "Chosen." in taken.stdout) == (0, True), taken.stderr
    assert '"New York"' in (run_folder(root) / "steps.jsonl").read_text()


def test_approval_without_a_terminal_names_the_options_of_this_command(root: Path) -> None:
    waiting = agent(root, "run", TASK, *script(root, *WORKING[1:]))
    assert re.search(r"--resume-answer approval\.[0-9a-f]{40}=always allows Bash\(", waiting.stdout)
    command = rf"agent resume {run_folder(root).name} --resume-answer approval\.[0-9a-f]{{40}}=yes"
    assert re.search(command, waiting.stdout)
    assert "--always" not in waiting.stdout


# ── lost steps, and runs without an end ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kept_lines", [None, 0, 2])
def test_run_whose_steps_are_lost_is_refused(kept_lines: int | None, root: Path) -> None:
    assert agent(root, "run", TASK, "--yes", *script(root, *WORKING)).code == 0
    steps = run_folder(root) / "steps.jsonl"
    lines = steps.read_bytes().splitlines(keepends=True)
    if kept_lines is None:
        steps.unlink()
    else:
        steps.write_bytes(b"".join(lines[:kept_lines]))
    done = agent(root, "resume", "latest", "--yes")
    assert done.code == 1
    assert "resuming would run them again" in done.stderr and "agent replay" in done.stderr
    assert (root / "log").read_text() == "a\nb\n"


def interrupt(root: Path) -> None:
    """Take the end of the last command out of the run's files, as a kill in the middle of it leaves them."""
    folder = run_folder(root)
    for name in ("steps.jsonl", "events.jsonl"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        done = [n for n, line in enumerate(lines) if '"act:' in line or "skill_step_executed" in line]
        (folder / name).write_text("".join(lines[: done[-1]]))


def test_action_that_was_interrupted_is_shown_as_such(root: Path) -> None:
    assert agent(root, "run", TASK, "--yes", *script(root, *WORKING[:1], "Done.")).code == 0
    interrupt(root)
    done = agent(root, "resume", "latest", "--yes", "--events")
    assert done.code == 0, done.stderr
    assert "interrupted The run was interrupted during this action" in done.stderr
    assert "ok (0)" not in done.stderr
    assert (root / "log").read_text() == "a\n"


def test_replay_of_a_run_without_an_end_says_so(root: Path) -> None:
    assert agent(root, "run", TASK, "--yes", *script(root, *WORKING)).code == 0
    folder = run_folder(root)
    assert "agent resume" not in agent(root, "replay", "latest").stdout
    events = folder / "events.jsonl"
    events.write_text("".join(events.read_text().splitlines(keepends=True)[:-1]))
    told = agent(root, "replay", "latest").stdout
    assert (
        f"has not ended: it is in progress, or its process was killed. Continue with `agent resume {folder.name}`"
        in told
    )


def test_replay_of_a_run_that_waits_says_so(root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *ASKING)).code == 3
    assert (
        f"This run waits for an answer. Continue with `agent resume {run_folder(root).name}`"
        in agent(root, "replay", "latest").stdout
    )


# ── odd input ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("said", "made"), [("y", True), ("yes", True), ("a", True), ("no: not now", False)])
def test_approval_is_answered_by_an_option(root: Path, said: str, made: bool) -> None:
    waiting = agent(root, "run", TASK, *script(root, *WORKING[1:]))
    assert (waiting.code, "--resume-answer approval." in waiting.stdout) == (3, True)
    answered = agent(root, "resume", "latest", "--resume-answer", f"approval={said}")
    assert (answered.code, (root / "log").exists()) == (0, made), answered.stderr


@pytest.mark.parametrize("said", ["maybe", "allow", ""])
def test_unclear_answer_to_an_approval_decides_nothing(root: Path, said: str) -> None:
    assert agent(root, "run", TASK, *script(root, *WORKING[1:])).code == 3
    refused = agent(root, "resume", "latest", "--resume-answer", f"approval={said}")
    assert (refused.code, "write yes, always, or no and a reason" in refused.stderr) == (1, True), refused.stderr
    assert agent(root, "resume", "latest", "--resume-answer", "approval=yes").code == 0
    assert (root / "log").read_text() == "b\n"


def test_approval_without_its_id_is_refused_if_the_file_changed_since_the_question(root: Path) -> None:
    (root / "run.sh").write_text("echo first > log\n")
    waiting = agent(root, "run", TASK, *script(root, calls(("run_command", {"command": "sh run.sh"})), "Done."))
    assert (waiting.code, "with run.sh sha256:" in waiting.stdout) == (3, True)
    (root / "run.sh").write_text("echo second > log\n")
    refused = agent(root, "resume", "latest", "--resume-answer", "approval=yes")
    assert (refused.code, (root / "log").exists()) == (3, False)
    assert "changed since the question" in refused.stderr
    earlier, now = (re.findall(r"approval\.[0-9a-f]{40}(?==yes)", shown.stdout)[0] for shown in (waiting, refused))
    assert agent(root, "resume", "latest", "--resume-answer", f"{earlier}=yes").code == 3
    assert not (root / "log").exists()
    assert agent(root, "resume", "latest", "--resume-answer", f"{now}=yes").code == 0
    assert (root / "log").read_text() == "second\n"


def test_message_that_no_model_takes_does_not_stay_in_the_run(root: Path) -> None:
    (root / "agent.yaml").write_text("model:\n  max_context_tokens: 20000\n")
    assert agent(root, "run", TASK, *script(root, "One.", "Two.")).code == 0
    refused = agent(root, "run", "word " * 30_000, "--continue")
    assert (refused.code, "The message has about" in refused.stderr) == (1, True), refused.stderr
    further = agent(root, "run", "a short one", "--continue")
    assert (further.code, "Two." in further.stdout) == (0, True), further.stderr


def test_script_that_fails_ends_the_run_with_its_error_and_its_line(root: Path) -> None:
    (root / "model.py").write_text(
        "def answer(request):\n    raise RuntimeError('boom \\x1b[31m')\n\nanswer.tools = True\n"
    )
    failed = agent(root, "run", TASK, "--script", "model.py:answer")
    assert failed.code == 1
    assert "the script failed: RuntimeError: boom" in failed.stdout + failed.stderr
    assert "model.py:2" in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stderr and "\x1b" not in failed.stderr
    unnamed = agent(root, "run", TASK, "--script", "model.py")
    assert "model.py:FUNCTION" in unnamed.stderr


def test_folder_that_cannot_be_written_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "home" / ".local").write_text("a file")
    refused = agent(root, "run", TASK, *script(root, "One."))
    assert (refused.code, "Traceback" in refused.stderr) == (1, False)
    assert ".local" in refused.stderr and "XDG_STATE_HOME" in refused.stderr


def test_only_an_error_about_a_file_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), report_errors(OSError):
        raise PermissionError(13, "Permission denied", "notes.md")
    assert "notes.md" in capsys.readouterr().err
    with pytest.RaisesGroup(ConnectionResetError), report_errors(OSError):
        raise ConnectionResetError(104, "Connection reset by peer")


def test_message_to_a_run_that_waits_for_an_approval_is_told_and_the_action_is_not_done(root: Path) -> None:
    script(root, {"calls": [{"name": "write_file", "input": {"path": "x", "content": "x"}}]}, "Done.")
    assert agent(root, "run", TASK, "--script", "answers.json").code == 3
    said = agent(root, "run", "never mind", "--continue")
    assert (said.code, "Done." in said.stdout) == (0, True), said.stderr
    again = agent(root, "resume", "latest")
    assert (again.code, "Done." in again.stdout) == (0, True), again.stderr
    assert not (root / "x").exists()


def test_message_with_an_answer_to_another_question_is_an_error(root: Path) -> None:
    script(root, {"calls": [{"name": "write_file", "input": {"path": "x", "content": "x"}}]}, "Done.")
    assert agent(root, "run", TASK, "--script", "answers.json").code == 3
    said = agent(root, "run", "go on", "--continue", "--resume-answer", "colour=red")
    assert (said.code, "the message was not delivered" in said.stderr) == (3, True), said.stderr
    assert not (root / "x").exists()


def test_chat_asks_for_the_next_message_after_an_error_of_the_model(root: Path) -> None:
    (root / "model.py").write_text(
        "def answer(request):\n"
        "    last = request.messages[-1].text\n"
        "    if 'fail' in last and 'again' not in last:\n"
        "        raise RuntimeError('out of order')\n"
        "    return 'heard: ' + last.splitlines()[-1]\n\n"
        "answer.tools = True\n"
    )
    talked = agent(root, "chat", "--script", "model.py:answer", typed="hello\nfail\nagain\nbye\n")
    assert talked.code == 0, talked.stderr
    assert "out of order" in talked.stdout + talked.stderr
    assert "heard: again" in talked.stdout and "heard: bye" in talked.stdout
    opened = agent(root, "chat", typed="still here\n")
    assert (opened.code, "heard: still here" in opened.stdout) == (0, True), opened.stderr


def test_first_message_stays_the_same_when_a_run_goes_on(root: Path) -> None:
    """A prefix that changes by a byte is paid for anew: the folder's state is that of the beginning."""
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    (root / "AGENTS.md").write_text("Be brief.\n")
    (root / "model.py").write_text(
        "import json\n"
        "def answer(request):\n"
        "    with open('sent.jsonl', 'a') as file:\n"
        "        file.write(json.dumps(request.messages[0].text) + '\\n')\n"
        "    if request.answers == 0:\n"
        "        return {'calls': [{'name': 'ask_user', 'input': {'question': 'Who?'}}]}\n"
        "    return 'Done.'\n\n"
        "answer.tools = True\n"
    )
    assert agent(root, "run", TASK, "--script", "model.py:answer").code == 3
    (root / "AGENTS.md").write_text("Be long.\n")
    assert agent(root, "resume", "latest", "--resume-answer", "answer=Ada").code == 0
    first, second = (root / "sent.jsonl").read_text().splitlines()
    assert "Be brief." in first and "Branch: " in first
    assert first == second


LOOK: dict[str, Any] = {"calls": [{"name": "list_files", "input": {}}]}


@pytest.mark.parametrize(
    ("answers", "reason", "more"),
    [([LOOK] * 3, "no_progress", ("--message", "answer now")), ([{"error": 401}], "model_rejected", ())],
)
def test_run_that_failed_prints_the_command_that_continues_it(
    answers: list[Any], reason: str, more: tuple[str, ...], root: Path
) -> None:
    failed = agent(root, "run", TASK, *script(root, *answers, "Done."))
    assert failed.code == 1 and f"error ({reason})" in failed.stderr
    command = failed.stderr.splitlines()[-1].removeprefix("Continue it: ")
    assert command == f"agent resume {run_folder(root).name}" + (' --message "..."' if more else "")
    script(root, *answers[: -1 if "error" in answers[0] else None], "Done.")
    again = agent(root, *command.split()[1:3], *more)
    assert (again.code, "Done." in again.stdout) == (0, True), again.stderr


def test_always_holds_in_a_resumed_run(root: Path) -> None:
    command = calls(("run_command", {"command": "date +%s%N >> log"}))
    assert agent(root, "run", TASK, *script(root, command, command, ASKING[0], command, "Done.")).code == 3
    assert agent(root, "resume", "latest", "--resume-answer", "approval=always").code == 3, "it waits for the name"
    again = agent(root, "resume", "latest", "--resume-answer", "who=Ada")
    assert (again.code, len((root / "log").read_text().splitlines())) == (0, 3), again.stdout


@pytest.mark.parametrize(("said", "told"), [("n use docs/", "use docs/"), ("n", "Do not try it again in another form")])
def test_words_of_a_denial_are_the_message(said: str, told: str, root: Path) -> None:
    assert agent(root, "run", TASK, *script(root, *WORKING[1:])).code == 3
    assert agent(root, "resume", "latest", "--resume-answer", f"approval={said}").code == 0
    steps = kept(root).glob("*/steps.jsonl")
    [denied] = [line for path in steps for line in path.read_text().splitlines() if '"denied:' in line]
    assert told in denied and ("in another form" in denied) == (said == "n")


# ── piped input ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("task", "said"), [("why?", "why?\\n\\n# Standard input\\nline 1\\nline 2"), ("-", "line 1"), ("", "line 1")]
)
def test_piped_input_is_a_part_of_the_task(task: str, said: str, root: Path) -> None:
    ran = agent(root, "run", *([task] if task else []), *script(root, "Done."), typed="line 1\nline 2\n")
    assert (ran.code, "standard input: 14 bytes are part of the task" in ran.stderr) == (0, True), ran.stderr
    assert f'"task": "{said}' in (run_folder(root) / "task.json").read_text()


def test_long_piped_input_is_cut_and_says_so(root: Path) -> None:
    typed = "first\n" + "x" * 99 + "\n" * 1 + ("y" * 99 + "\n") * 5_000 + "last\n"
    ran = agent(root, "run", "why?", *script(root, "Done."), typed=typed)
    assert "the first and the last of them" in ran.stderr
    task = json.loads((run_folder(root) / "task.json").read_text())["task"]
    assert "first\n" in task and task.endswith("last\n") and "bytes omitted" in task and len(task) < 210_000


def test_empty_task_without_input_is_refused(root: Path) -> None:
    refused = agent(root, "run", *script(root, "Done."))
    assert (refused.code, "the task is empty" in refused.stderr) == (1, True)
