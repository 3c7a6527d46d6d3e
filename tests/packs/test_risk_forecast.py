"""risk-forecast: learned and ranked scores, their intervals and their evaluation."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillResult, SkillState
from tests.support.packs import MakeRequest, kept, run_skill, skill_module

NAME = "risk-forecast"


def made_inventory(*, files: int = 60, commits: int = 200, signal: bool = True, seed: int = 1) -> dict[str, Any]:
    """Make an inventory whose history fixes large files often or, without *signal*, random files."""
    generator = random.Random(seed)
    paths = [f"src/f{number:03}.py" for number in range(files)]
    sizes = [10 + number * 10 for number in range(files)]
    weights = [float(size) ** 2 for size in sizes] if signal else [1.0] * files
    log: list[dict[str, Any]] = [
        {"sha": "0", "time": 1_000_000, "author": 0, "fix": False, "files": [[n, sizes[n], 0] for n in range(files)]}
    ]
    for number in range(1, commits):
        touched = sorted(set(generator.choices(range(files), weights=weights, k=2)))
        log.append(
            {
                "sha": str(number),
                "time": 1_000_000 + number * 86_400,
                "author": generator.randrange(3),
                "fix": generator.random() < 0.5,
                "files": [[n, generator.randrange(20), generator.randrange(5)] for n in touched],
            }
        )
    snapshot = {path: [size, size // 8 + 1] for path, size in zip(paths, sizes, strict=True)}
    splits = [{"commit": "x", "time": log[int(commits * share)]["time"], "files": snapshot} for share in (0.5, 0.75)]
    return {
        "folder": {"name": "made", "path": "/made", "bucket": "folder:made"},
        "totals": {"files": files, "test_files": 0},
        "files": [
            {
                "path": path, "kind": "text", "language": "Python", "lines": size, "bytes": size * 30,
                "complexity": size // 8 + 1, "sha256": f"{size:064}",
            }
            for path, size in zip(paths, sizes, strict=True)
        ],
        "history": {"head": "abc", "paths": paths, "commits": log, "splits": splits},
    }  # fmt: skip


def forecast(make_request: MakeRequest, inventory: dict[str, Any]) -> tuple[dict[str, Any], SkillResult]:
    request = make_request(role="predictor", artifacts=(Artifact(type="inventory", value=inventory),))
    result = run_skill(NAME, request)
    assert result.state is SkillState.COMPLETED, result.summary
    uri = kept(request, result)[0].uri
    assert uri is not None
    return json.loads(Path(uri).read_bytes()), result


def test_history_with_a_pattern_is_learned_and_evaluated_on_later_commits(make_request: MakeRequest) -> None:
    found, result = forecast(make_request, made_inventory())
    assert found["method"] == "logistic regression"
    assert found["evaluation"]["auc"] > 0.75
    assert found["evaluation"]["brier"] < found["evaluation"]["brier_of_base_rate"]
    assert found["scores"][0]["path"] > "src/f040"
    assert result.confidence == found["evaluation"]["auc"]
    assert all(score["low"] <= score["score"] <= score["high"] for score in found["scores"])
    assert 0.2 < sum(score["score"] for score in found["scores"]) / 60 < 0.8


def test_history_without_a_pattern_is_judged_unusable(make_request: MakeRequest) -> None:
    verdicts = [
        skill_module(NAME, "supervised").judge(made_inventory(signal=False, seed=seed)["history"]) for seed in range(6)
    ]
    areas = [verdict.evaluation["auc"] for verdict in verdicts]
    assert 0.3 < sum(areas) / len(areas) < 0.65
    assert [verdict.usable for verdict in verdicts] == [area >= 0.6 for area in areas]


def test_short_history_is_ranked_and_the_reason_is_reported(make_request: MakeRequest) -> None:
    found, result = forecast(make_request, made_inventory(files=12))
    assert found["method"] == "weighted ranks"
    assert "40 are needed" in found["why_not_supervised"]
    assert any(text.startswith("Ranked rather than learned") for text in result.insights)
    assert found["evaluation"]["auc"] > 0.5
    assert all(score["low"] <= score["score"] <= score["high"] for score in found["scores"])


def test_files_without_git_history_are_ranked_by_size_and_complexity(make_request: MakeRequest) -> None:
    inventory = made_inventory(files=5) | {"history": None}
    found, result = forecast(make_request, inventory)
    assert found["scores"][0]["path"] == "src/f004.py"
    assert found["features"] == ["complexity", "lines"]
    assert result.confidence == 0.5


def test_missing_scikit_learn_ranks_the_files_and_names_the_extra(
    make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "sklearn" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    found, result = forecast(make_request, made_inventory())
    assert found["method"] == "weighted ranks"
    assert any("scikit-learn>=" in text for text in result.insights)


def test_same_inventory_produces_the_same_bytes_and_changed_content_another_seed(make_request: MakeRequest) -> None:
    inventory = made_inventory(files=12)
    one, other = (forecast(make_request, inventory)[1].artifacts[0].sha256 for _ in range(2))
    assert one == other
    changed = json.loads(json.dumps(inventory))
    changed["files"][0]["sha256"] = "f" * 64
    seed_of = skill_module(NAME).seed_of
    assert seed_of(inventory) != seed_of(changed)


def test_commits_after_the_split_do_not_change_the_features() -> None:
    supervised = skill_module(NAME, "supervised")
    history = made_inventory()["history"]
    split = history["splits"][0]
    before = supervised.stretch(history, split, history["splits"][1]["time"])
    for commit in history["commits"]:
        if commit["time"] > split["time"]:
            commit["files"] = [[number, 9_999, 9_999] for number, _, _ in commit["files"]]
            commit["author"] = 77
    assert supervised.stretch(history, split, history["splits"][1]["time"]).rows == before.rows


def test_missing_inventory_fails_with_advice(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(role="predictor"))
    assert result.state is SkillState.FAILED
    assert "workspace-inventory" in result.summary


def test_missing_inventory_file_fails_as_retryable(make_request: MakeRequest) -> None:
    artifact = Artifact(type="inventory", name="inventory.json", uri="/no/such/file", value={"totals": {}})
    result = run_skill(NAME, make_request(artifacts=(artifact,)))
    assert result.state is SkillState.FAILED
    assert result.retryable


def test_folder_without_text_files_has_no_scores(make_request: MakeRequest) -> None:
    inventory = {"folder": {"name": "x", "bucket": "folder:x"}, "files": [], "totals": {}, "history": None}
    found, _ = forecast(make_request, inventory)
    assert found["scores"] == []


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
def test_auc_equals_the_share_of_correctly_ordered_pairs(pairs: list[tuple[float, bool]]) -> None:
    scores, labels = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    area = skill_module(NAME, "metrics").auc(scores, labels)
    positives = [score for score, label in pairs if label]
    negatives = [score for score, label in pairs if not label]
    if not positives or not negatives:
        assert area is None
    else:
        ordered = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
        assert area == pytest.approx(ordered / len(positives) / len(negatives))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_percentile_ranks_keep_the_order_and_stay_within_bounds(values: list[int]) -> None:
    ranks = skill_module(NAME, "features").percentile_ranks(values)
    assert all(0 <= rank <= 1 for rank in ranks)
    for one, first in zip(values, ranks, strict=True):
        for other, second in zip(values, ranks, strict=True):
            assert (one < other) == (first < second)
