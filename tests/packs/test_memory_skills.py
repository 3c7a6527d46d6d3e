"""fact-recall and session-compactor: ranking of known facts, detection of changes, and size limits."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import ChildResult, Fact, SkillRequest, SkillState
from tests.support.packs import NOW, MakeRequest, kept, run_skill, skill_module

BUCKET = "folder:0123456789abcdef"


def fact(key: str, value: Any, source: str = "task-old", bucket: str = BUCKET, **fields: Any) -> Fact:
    usual: dict[str, Any] = {"bucket": bucket, "key": key, "value": value, "source": source, "learned_at": NOW}
    return Fact(**(usual | fields))


def test_recall_lists_facts_of_the_folder_first_and_names_their_tasks(make_request: MakeRequest) -> None:
    facts = (
        fact("files", 4, bucket="folder:other", keywords=("report",)),
        fact("files", 12, "inventory-1"),
        fact("riskiest_files", ["a.py"], "risk-1"),
    )
    context = {"bucket": BUCKET, "path": "/home/me/project"}
    result = run_skill("fact-recall", make_request(objective="Report on files", context=context, facts=facts))
    recalled = result.artifacts[0].value["facts"]
    assert [entry["bucket"] for entry in recalled] == [BUCKET, BUCKET, "folder:other"]
    assert recalled[0]["key"] == "files"
    assert "Recalled 3 facts about project" in result.summary
    assert "1 from inventory-1" in result.summary
    assert "1 from risk-1" in result.summary


def test_recall_reports_a_new_folder(make_request: MakeRequest) -> None:
    context = {"bucket": BUCKET, "path": "/home/me/project"}
    empty = run_skill("fact-recall", make_request(context=context))
    assert empty.summary.startswith("This is the first objective on project")
    assert empty.artifacts[0].value["facts"] == []
    other = (fact("lead", "blue whale", bucket="folder:other"),)
    some = run_skill("fact-recall", make_request(objective="blue whale", context=context, facts=other))
    assert "first objective on project" in some.summary
    assert "1 fact about other things" in some.summary


def test_recall_keeps_only_the_newest_relevant_fact_of_each_key(make_request: MakeRequest) -> None:
    facts = (
        fact("files", 2, "newer", learned_at=NOW + timedelta(days=1)),
        fact("files", 1, "older"),
        fact("files", 3, "task-1", bucket="folder:self"),
        fact("zebra", "stripes", bucket="folder:else"),
    )
    result = run_skill("fact-recall", make_request(objective="files", context={"bucket": BUCKET}, facts=facts))
    assert [(entry["value"], entry["source"]) for entry in result.artifacts[0].value["facts"]] == [(2, "newer")]


def test_recalled_facts_stay_within_the_size_limit(make_request: MakeRequest) -> None:
    facts = tuple(fact(f"k{number}", "word " * 100, keywords=("word",)) for number in range(200))
    result = run_skill("fact-recall", make_request(objective="word", context={"bucket": BUCKET}, facts=facts))
    assert len(json.dumps(result.artifacts[0].value)) < 16_384
    assert result.artifacts[0].value["considered"] == 200


def test_fact_with_a_rare_word_outranks_one_with_a_common_word() -> None:
    ranking = skill_module("fact-recall", "ranking")
    facts = [fact(f"k{number}", "common") for number in range(8)] + [fact("rare", "quokka")]
    ranked = ranking.rank(facts, "common quokka", "")
    assert ranked[0][1].key == "rare"


def test_recall_finds_names_of_two_letters_and_words_without_blanks(make_request: MakeRequest) -> None:
    facts = (fact("db", "数据库是 PostgreSQL 15", bucket="cn"), fact("oil", "Öl wird montags geliefert", bucket="de"))
    for objective, key in (("我们的数据库", "db"), ("wann kommt öl", "oil"), ("wann kommt ol", "oil")):
        result = run_skill("fact-recall", make_request(objective=objective, facts=facts))
        assert [entry["key"] for entry in result.artifacts[0].value["facts"]] == [key], objective


def stated(values: dict[str, Any], kind: str = "inventory", source: str = "scout-2") -> Artifact:
    value = {"facts": [{"bucket": BUCKET, "key": key, "value": entry} for key, entry in values.items()]}
    return Artifact(type=kind, name=kind, summary=f"{kind} summary.", value=value, source_task_id=source)


def test_compaction_distinguishes_new_changed_and_confirmed_facts(make_request: MakeRequest) -> None:
    known = (fact("files", 10), fact("lines", 500), fact("share", 0.1 + 0.2))
    artifacts = (stated({"files": 12, "lines": 500, "share": 0.3, "tests": 3}),)
    context = {"bucket": BUCKET}
    result = run_skill("session-compactor", make_request(artifacts=artifacts, facts=known, context=context))
    assert "2 new facts, 1 changed fact, 2 confirmed facts" in result.summary
    assert {fact.key for fact in result.facts if not fact.key.startswith("objective:")} == {"files", "tests"}
    assert "files: 10 -> 12 (known from task-old)" in result.artifacts[0].value
    assert result.insights == ("files: 10 -> 12 (known from task-old)",)


def test_facts_written_by_the_same_tasks_do_not_count_as_confirmed(make_request: MakeRequest) -> None:
    artifacts = (stated({"files": 12}, source="scout-2"),)
    overwritten = (fact("files", 12, "scout-2"),)
    recalled = Artifact(
        type="recalled_facts", name="recalled",
        value={"facts": [{"bucket": BUCKET, "key": "files", "value": 10, "source": "scout-1"}]},
    )  # fmt: skip
    fresh = run_skill("session-compactor", make_request(artifacts=artifacts, facts=overwritten))
    assert "confirmed" not in fresh.summary
    later = run_skill("session-compactor", make_request(artifacts=(*artifacts, recalled), facts=overwritten))
    assert "1 changed" in later.summary


def test_objective_outcome_becomes_a_fact_that_can_be_recalled(tmp_path: Path, make_request: MakeRequest) -> None:
    report = tmp_path / "report.md"
    report.write_text(
        "# Report\n\n## Summary\n\n- The parser module crashes on empty input in 12 files. [A1]\n\n"
        "| a | b |\n| --- | --- |\n| cell | never quoted |\n\n## Sources\n\nThis sentence is about sources only.\n"
    )
    artifact = Artifact(
        type="report", name="report.md", summary="Report: 40 words.", uri=report.as_uri(), source_task_id="r"
    )
    objective = "Compact what was learned about x while answering: Why does the parser crash?"
    context = {"bucket": BUCKET, "keywords": [BUCKET, "parser"]}
    result = run_skill("session-compactor", make_request(objective=objective, context=context, artifacts=(artifact,)))
    text = result.artifacts[0].value
    assert "The parser module crashes on empty input in 12 files." in text
    assert "never quoted" not in text
    assert "about sources only" not in text
    outcome = next(fact for fact in result.facts if fact.key.startswith("objective:"))
    assert outcome.value == {"objective": "Why does the parser crash?", "outcome": "Report: 40 words."}
    assert {BUCKET, "parser", "crash"} <= set(outcome.keywords)
    recall = make_request(
        objective="What about the parser?", context={"bucket": BUCKET}, facts=result.facts, task_id="other"
    )
    assert run_skill("fact-recall", recall).artifacts[0].value["facts"][0]["key"].startswith(("objective:", "last_"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=60), st.integers(200, 20_000))
def test_summary_stays_within_its_limit_and_keeps_whole_sentences(texts: list[str], room: int) -> None:
    child = ChildResult(
        task_id="c", assigned_to="scout", objective="o", status="done", summary="Done.", insights=tuple(texts)
    )
    request = SkillRequest(
        task_id="t", session_hash="s", objective="anything", role="memory", workdir=Path("unused"), now=NOW,
        children=(child,), context={"max_chars": room},
    )  # fmt: skip
    result = run_skill("session-compactor", request)
    text = result.artifacts[0].value
    assert len(text) <= min(room, 10_000)
    said = {" ".join(entry.split()) for entry in [*texts, "Done."]}
    lines = text.split("Findings:\n- ")[1].split("\n- ") if "Findings:" in text else []
    assert all(line.strip() in said for line in lines if len(text) < room)


def test_short_summary_keeps_the_statement_that_answers_the_objective(make_request: MakeRequest) -> None:
    noise = tuple(Signal(name=f"noise{n}", strength=0.1, subject=f"file{n}", note="nothing much") for n in range(200))
    artifacts = (Artifact(type="inventory", summary="The parser fails in 3 of 4 files."),)
    request = make_request(
        objective="Why does the parser fail?", artifacts=artifacts, signals=noise, context={"max_chars": 600}
    )
    text = run_skill("session-compactor", request).artifacts[0].value
    assert "The parser fails in 3 of 4 files." in text
    assert len(text) <= 600


def test_compaction_without_input_fails_with_the_reason(make_request: MakeRequest) -> None:
    result = run_skill("session-compactor", make_request())
    assert result.state is SkillState.FAILED
    assert "nothing to compact" in result.summary


def test_compaction_is_deterministic(make_request: MakeRequest) -> None:
    artifacts = (stated({"files": 12, "lines": 500}), stated({"risk": 1}, "risk_scores", "risk"))
    request = make_request(artifacts=artifacts, signals=(Signal(name="a", strength=0.5),))
    assert run_skill("session-compactor", request) == run_skill("session-compactor", request)
    assert kept(request, run_skill("session-compactor", request))


def test_compaction_reads_artifacts_and_not_summaries_of_them(tmp_path: Path, make_request: MakeRequest) -> None:
    findings = tmp_path / "findings.md"
    findings.write_text("# Findings\n\nThe parser drops the last row of 12 files. It was written in 2019.\n")
    said = "All is well, except that tests take an hour."
    artifacts = (
        Artifact(type="findings", name="findings.md", summary="Looked.", uri=findings.as_uri(), source_task_id="c"),
        Artifact(type="answer", name="answer", summary="All is well…", value=said, mime="text/plain"),
        Artifact(type="session_summary", name="s", summary="Compacted.", value="An earlier summary of summaries."),
        Artifact(type="inventory", name="inventory", summary="There are 12 files in it.", value={"files": 12}),
    )
    child = ChildResult(task_id="c", assigned_to="scout", objective="o", status="done", summary="Found something.")
    request = make_request(artifacts=artifacts, children=(child, child.model_copy(update={"task_id": "d"})))
    text = run_skill("session-compactor", request).artifacts[0].value
    for kept_text in ("drops the last row of 12 files", "tests take an hour", "There are 12 files", "Found something"):
        assert kept_text in text, kept_text
    assert "Looked" not in text and "earlier summary" not in text
    alone = make_request(artifacts=artifacts[:1], children=(child,))
    assert "Found something" not in run_skill("session-compactor", alone).artifacts[0].value
