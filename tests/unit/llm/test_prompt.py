"""The token budget: fixed order of components, fixed order of trimming, and parts that are never trimmed."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.contracts.llm.chat import ToolOutput
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.errors import BudgetExceeded
from fireswarm.llm.prompt import (
    MAX_MEDIA_CHARS,
    MEDIA_DROPPED,
    NO_ANSWER,
    TRIM_TO,
    TRIMMED,
    Component,
    Part,
    Transcript,
)
from fireswarm.llm.tokens import estimate_tokens, with_safety

ORDER = ["system_prompt", "user_task", "run_state_summary", "candidate_skill_metadata", "disclosed_content"]


def talk(results: int = 4, size: int = 2_000) -> Transcript:
    """Make a transcript of a task, two references, and one answer and one result per turn."""
    made = Transcript("system " * 20)
    made.say(
        Part(Component.TASK, "the task " * 20, "the task"),
        Part(Component.CANDIDATES, "candidate " * 20, "the candidates"),
        Part(Component.DISCLOSED, "old reference " * 100, "references of a"),
    )
    for number in range(results):
        made.add_answer(f"answer {number} " * 10)
        parts = [Part(Component.STATE, f"result {number} " + "x" * size, f"results of turn {number}")]
        if number == 1:
            parts.append(Part(Component.DISCLOSED, "new reference " * 100, "references of b"))
        made.say(*parts)
    return made


def test_token_budget_lists_components_in_fixed_order() -> None:
    budget = talk().budget(10_000, 1_000)
    assert list(budget.components) == ORDER
    assert budget.components["user_task"] == estimate_tokens("the task " * 20)
    assert budget.allocated_disclosure_tokens == budget.components["disclosed_content"]
    assert budget.allocated_prompt_tokens == with_safety(sum(budget.components.values()))


def test_prompt_within_the_limit_is_not_trimmed() -> None:
    made = talk()
    before = [message.text for message in made.messages]
    assert made.fit(made.tokens) == ()
    assert [message.text for message in made.messages] == before


def test_trimming_removes_oldest_references_then_old_results_and_answers() -> None:
    made = talk()
    whole = made.tokens
    assert copy.deepcopy(made).fit(whole - 1)[0] == "references of a"
    cut = made.fit(int(whole * 0.5))
    assert (
        list(cut)
        == [
            "references of a",
            "references of b",
            "results of turn 0",
            "results of turn 1",
            "results of turn 2",
        ][: len(cut)]
    )
    assert len(cut) >= 3
    assert made.tokens <= int(whole * 0.5)


def test_trimming_goes_well_below_the_limit() -> None:
    made = talk(8)
    limit = int(made.tokens * 0.9)
    made.fit(limit)
    assert made.tokens <= limit * TRIM_TO


def test_trimmed_parts_are_marked_and_last_results_are_kept() -> None:
    made = talk()
    made.fit(1_200)
    first, last = made.messages[0].text, made.messages[-1].text
    assert f"{TRIMMED}: references of a; ask for it again" in first
    assert last.startswith("result 3 xxx")
    assert len(last) > 2_000
    assert any(message.text == f"{TRIMMED}: results of turn 0]" for message in made.messages), "whole, never cut"


def test_trimming_is_deterministic_and_trims_nothing_twice() -> None:
    one, other = talk(), talk()
    assert one.fit(1_500) == other.fit(1_500)
    assert [message.text for message in one.messages] == [message.text for message in other.messages]
    assert one.fit(1_500) == ()


def test_task_that_does_not_fit_exceeds_the_budget_and_is_not_trimmed() -> None:
    made = Transcript("system")
    made.say(Part(Component.TASK, "x" * 40_000))
    with pytest.raises(BudgetExceeded, match=r"raise model.max_context_tokens"):
        made.fit(1_000)
    assert made.messages[0].text == "x" * 40_000


@settings(deadline=None)
@given(st.integers(0, 6), st.integers(0, 3_000), st.integers(100, 6_000))
def test_system_text_and_task_are_never_trimmed(results: int, size: int, limit: int) -> None:
    made = talk(results, size)
    try:
        made.fit(limit)
    except BudgetExceeded:
        pass
    else:
        assert made.tokens <= limit
    assert made.system == "system " * 20
    assert made.messages[0].text.startswith("the task " * 20)
    assert ("candidate " * 20) in made.messages[0].text
    budget = made.budget(9_999, 1)
    assert sum(budget.components.values()) == sum(
        estimate_tokens(part.text) for entry in made.entries for part in entry.parts
    ) + estimate_tokens(made.system)


def test_provider_count_replaces_the_estimate() -> None:
    made = talk(1)
    made.add_answer("an answer")
    made.set_counts(500, 40)
    assert (made.tokens, made.counted_by) == (541, "usage")
    made.say(Part(Component.STATE, "y" * 400))
    assert made.tokens == 540 + with_safety(100)
    made.fit(500)
    assert made.counted_by == "estimate"


def test_empty_answer_is_replaced_by_a_placeholder() -> None:
    made = talk(0)
    made.add_answer("  \n")
    assert made.messages[-1].text == NO_ANSWER


def test_untrimmed_message_keeps_its_wire_form() -> None:
    made = talk()
    for message in made.messages:
        message.wire = object()
    before = made.messages
    made.fit(made.tokens - 1)
    assert made.messages[0].wire is None
    for old, new in zip(before, made.messages, strict=True):
        assert new.wire is (old.wire if new.text == old.text else None)


def test_prompt_is_trimmed_when_the_provider_counts_more_than_the_estimate() -> None:
    made = talk()
    estimated = made.tokens
    made.set_counts(estimated * 2, 0)
    cut = made.fit(int(estimated * 1.5))
    assert cut
    assert made.tokens <= estimated * 1.5 * TRIM_TO
    made.add_answer("next")
    made.set_counts(estimated, 10)
    assert made.tokens == estimated + 10 + with_safety(0)


def test_summary_replaces_all_but_the_task_and_the_last_exchange() -> None:
    made = talk(4)
    estimated = made.tokens
    made.set_counts(estimated * 2, 0)
    assert made.answers == 4
    gone = made.fold(Part(Component.STATE, "what was done", "the summary"))
    assert gone == ("references of b",)
    first, *last = (message.text for message in made.messages)
    assert first.endswith("old reference " * 100 + "\n\nwhat was done")
    assert [text[:8] for text in last] == ["answer 3", "result 3"]
    assert made.answers == 4, "an answer that was replaced still counts"
    again = sum(estimate_tokens(part.text) for entry in made.entries for part in entry.parts)
    assert made.tokens >= 1.9 * again, "the provider's count corrects the estimate of what is left"


def test_next_summary_replaces_the_one_before() -> None:
    made = talk(3)
    for number in range(3):
        made.fold(Part(Component.STATE, f"summary {number}", "the summary"))
        made.add_answer("more")
        made.say(Part(Component.STATE, "and more"))
    text = made.messages[0].text
    assert "summary 2" in text and "summary 1" not in text
    assert text.startswith("the task ")
    assert made.answers == 6


def test_oldest_images_make_room_for_new_ones_in_a_request() -> None:
    made = Transcript("system")
    made.say(Part(Component.TASK, "the task", "the task"))
    image = MediaBlock(media_type="image/png", data="A" * (MAX_MEDIA_CHARS // 3))
    for number in range(5):
        made.add_answer(f"answer {number}")
        outputs = [ToolOutput(call_id=f"c{number}", name="read_file", text=f"{number}.png", media=(image,))]
        made.say(outputs=outputs)
    shown = [output for message in made.messages for output in message.outputs]
    assert [len(output.media) for output in shown] == [0, 0, 1, 1, 1]
    assert [MEDIA_DROPPED in output.text for output in shown] == [True, True, False, False, False]
