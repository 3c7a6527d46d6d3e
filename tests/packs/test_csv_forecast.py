"""csv-forecast: evaluation on held-out rows, and clear messages about malformed tables."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.contracts.skills.skill import SkillResult, SkillState
from tests.support.packs import MakeRequest, kept, run_skill, skill_module

NAME = "csv-forecast"


def numbers(rows: int, *, noise: float = 1.0, open_every: int = 0, seed: int = 1) -> str:
    generator = random.Random(seed)
    lines = ["id,size,region,price"]
    for row in range(rows):
        size, region = generator.uniform(0, 10), generator.choice("NSEW")
        price = 3 * size + {"N": 0, "S": 5, "E": 2, "W": 9}[region] + generator.gauss(0, noise)
        shown = "" if open_every and row % open_every == 0 else f"{price:.3f}"
        lines.append(f"{row},{size:.3f},{region},{shown}")
    return "\n".join(lines) + "\n"


def classes(rows: int, *, seed: int = 1, strength: float = 1.5) -> str:
    generator = random.Random(seed)
    lines = ["size;region;won"]
    for _ in range(rows):
        size, region = generator.uniform(0, 10), generator.choice("NSEW")
        chance = 1 / (1 + math.exp(-strength * (size - 5 + (region == "N"))))
        lines.append(f"{size:.3f};{region};{'yes' if generator.random() < chance else 'no'}")
    return "\n".join(lines) + "\n"


def forecast(make_request: MakeRequest, text: str, **context: Any) -> tuple[dict[str, Any], SkillResult]:
    request = make_request(role="predictor", objective="Forecast.", context={"csv": text, **context})
    result = run_skill(NAME, request)
    assert result.state is SkillState.COMPLETED, result.summary
    uri = kept(request, result)[0].uri
    assert uri is not None
    return json.loads(Path(uri).read_bytes()), result


def test_regression_beats_the_median_and_its_intervals_cover_the_values(make_request: MakeRequest) -> None:
    found, result = forecast(make_request, numbers(240, open_every=12), target="price")
    evaluation = found["evaluation"]
    assert found["task"] == "regression"
    assert evaluation["mae"] < 0.3 * evaluation["mae_of_median"]
    low, high = evaluation["coverage_range"]
    assert low < evaluation["coverage"] < high
    assert [entry["row"] for entry in found["forecasts"]] == list(range(1, 241, 12))
    assert all(entry["low"] < entry["forecast"] < entry["high"] for entry in found["forecasts"])
    assert "id" not in found["features"]
    assert result.confidence is not None
    assert result.confidence > 0.7


def test_intervals_cover_held_out_rows_at_the_promised_rate(make_request: MakeRequest) -> None:
    found = [forecast(make_request, numbers(160, seed=seed), target="price")[0]["evaluation"] for seed in range(12)]
    rows = sum(evaluation["held_out_rows"] for evaluation in found)
    covered = sum(evaluation["coverage"] * evaluation["held_out_rows"] for evaluation in found)
    assert covered / rows == pytest.approx(0.8, abs=0.07)


def test_classification_gives_calibrated_probabilities(make_request: MakeRequest) -> None:
    found, _ = forecast(make_request, classes(400), target="won")
    evaluation = found["evaluation"]
    assert found["task"] == "classification"
    assert evaluation["brier"] < evaluation["brier_of_base_rate"]
    assert evaluation["log_loss"] < evaluation["log_loss_of_base_rate"]
    assert evaluation["reliability"]["expected_calibration_error"] < 0.15
    assert evaluation["set_coverage"] >= 0.7
    assert evaluation["ranges_95"]["brier"][0] <= evaluation["brier"] <= evaluation["ranges_95"]["brier"][1]


def noise(kind: str) -> str:
    """Thirty columns of noise and a target of noise: only a model that has seen the held-out rows can forecast it."""
    generator = random.Random(5)
    lines = [",".join([*(f"c{column}" for column in range(30)), "y"])]
    for _ in range(200):
        answer = generator.choice("uv") if kind == "classification" else f"{generator.gauss(0, 1):.4f}"
        lines.append(",".join([*(f"{generator.random():.4f}" for _ in range(30)), answer]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("kind", "error", "naive"),
    [("classification", "brier", "brier_of_base_rate"), ("regression", "mae", "mae_of_median")],
)
def test_target_of_pure_noise_gets_no_confidence(kind: str, error: str, naive: str, make_request: MakeRequest) -> None:
    found, result = forecast(make_request, noise(kind), target="y")
    assert found["task"] == kind
    assert found["evaluation"][error] > 0.95 * found["evaluation"][naive]
    assert result.confidence is not None
    assert result.confidence < 0.05


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(20, 60), st.sampled_from([0.5, 0.8, 0.9]))
def test_conformal_quantiles_cover_at_the_promised_rate(seed: int, count: int, level: float) -> None:
    quantile = skill_module(NAME, "conformal").conformal_quantile
    generator = random.Random(seed)
    tries = 400
    covered = 0
    for _ in range(tries):
        scores = [generator.expovariate(1) for _ in range(count + 1)]
        covered += scores[-1] <= quantile(scores[:-1], level)
    slack = 4.5 * math.sqrt(level * (1 - level) / tries)
    assert covered / tries >= level - slack
    assert covered / tries <= level + 1 / (count + 1) + slack


def test_too_few_scores_give_an_infinite_quantile() -> None:
    quantile = skill_module(NAME, "conformal").conformal_quantile
    assert quantile([1.0, 2.0, 3.0], 0.8) == math.inf
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.8) == 4.0


def test_unclear_target_is_asked_for(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(objective="Forecast.", context={"csv": numbers(30)}))
    assert result.state is SkillState.INPUT_REQUIRED
    assert result.questions[0].name == "target"
    assert "size, region, price" in result.questions[0].description
    assert result.questions[0].choices == ("id", "size", "region", "price")
    answered = make_request(objective="Forecast.", context={"csv": numbers(30)}, answers={"target": "price"})
    assert run_skill(NAME, answered).state is SkillState.COMPLETED


def test_answer_that_names_no_column_is_asked_for_again(make_request: MakeRequest) -> None:
    wrong = make_request(objective="Forecast.", context={"csv": numbers(30)}, answers={"target": "costs"})
    result = run_skill(NAME, wrong)
    assert result.state is SkillState.INPUT_REQUIRED
    assert result.summary == "inline CSV has no column 'costs'."


def test_the_objective_may_name_the_target(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(objective="Predict the price.", context={"csv": numbers(30)}))
    assert "price" in result.summary


@pytest.mark.parametrize(
    ("text", "context", "says"),
    [
        ("a,b\n1,2\n3\n", {"target": "b"}, "row 2 (line 3) has 1 field, the header has 2: column 'b'"),
        ("a,b\n1,2\n3,4,5\n", {"target": "b"}, "after the last column 'b'"),
        ("a,a\n1,2\n", {"target": "a"}, "columns 1 and 2 are both called 'a'"),
        ("a,,c\n1,2,3\n", {"target": "a"}, "column 2 has no name"),
        ("a,b\n", {"target": "b"}, "no rows"),
        ("\n\n", {"target": "b"}, "empty"),
        ('a,b\n1,"2\n', {"target": "b"}, "line 2 is not valid CSV"),
        ("a,b\n1,2\n", {"target": "z"}, "no column 'z'"),
        ("a,b\n1,\n2,\n", {"target": "b"}, "empty in every row"),
        ("a,b\n" + "1,2.5\n2,3.5\n" * 30 + "3,oops\n", {"target": "b"}, "row 61 (line 62), column 'b': 'oops'"),
        ("a,b\n1,2\n", {"target": "b", "exclude": "q"}, "context.exclude: inline CSV has no column q"),
    ],
)
def test_malformed_table_fails_and_names_the_location(
    text: str, context: dict[str, Any], says: str, make_request: MakeRequest
) -> None:
    result = run_skill(NAME, make_request(objective="x", context={"csv": text, **context}))
    assert result.state is SkillState.FAILED
    assert not result.retryable
    assert says in result.summary


def test_missing_file_binary_file_or_folder_fails_with_the_reason(tmp_path: Path, make_request: MakeRequest) -> None:
    missing = run_skill(NAME, make_request(context={"path": "/no/such.csv", "target": "x"}))
    assert "cannot be read" in missing.summary
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"a,b\n1,\x00\n")
    assert "line 2 has a zero byte" in run_skill(NAME, make_request(context={"path": str(binary)})).summary
    folder = run_skill(NAME, make_request(context={"path": str(tmp_path)}))
    assert "is a folder" in folder.summary


def test_leaking_column_is_reported(make_request: MakeRequest) -> None:
    lines = numbers(120).splitlines()
    invoiced = [f"{line},{float(line.rsplit(',', 1)[1]) * 1.2:.3f}" for line in lines[1:]]
    text = "\n".join([lines[0] + ",invoice", *invoiced])
    _, result = forecast(make_request, text, target="price")
    assert any(text.startswith("invoice alone almost determines") for text in result.insights)
    assert any(signal.name == "leakage" and signal.subject == "invoice" for signal in result.signals)
    excluded, _ = forecast(make_request, text, target="price", exclude=["invoice"])
    assert "invoice" not in excluded["features"]


def test_table_with_few_rows_gets_a_baseline_and_a_warning(make_request: MakeRequest) -> None:
    found, result = forecast(make_request, numbers(15, open_every=5), target="price")
    assert found["method"] == "median"
    assert any("too few to learn from" in text for text in result.insights)
    assert len(found["forecasts"]) == 3


def test_constant_target_is_reported(make_request: MakeRequest) -> None:
    found, result = forecast(make_request, "a,b\n" + "".join(f"{n},7\n" for n in range(40)), target="b")
    assert found["method"] == "constant"
    assert any("nothing to learn" in text for text in result.insights)


def test_target_with_a_rare_class_uses_class_frequencies(make_request: MakeRequest) -> None:
    rows = "".join(f"{n % 7}.5,{'rare' if n < 2 else 'usual'}\n" for n in range(60))
    found, result = forecast(make_request, "a,b\n" + rows, target="b")
    assert found["method"] == "class frequencies"
    assert any("'rare' has 2 rows" in text for text in result.insights)


def test_missing_scikit_learn_gives_a_baseline_and_names_the_extra(
    make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "sklearn" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    found, result = forecast(make_request, numbers(80), target="price")
    assert found["method"] == "median"
    assert any("scikit-learn>=" in text for text in result.insights)


def test_missing_malformed_and_date_cells_are_recognised(make_request: MakeRequest) -> None:
    generator = random.Random(2)
    lines = ["day,size,price"]
    for row in range(100):
        size = generator.uniform(0, 10)
        cell = "n/a" if row % 9 == 0 else ("broken" if row == 50 else f"{size:.2f}")
        lines.append(f"2024-{1 + row % 12:02}-{1 + row % 28:02},{cell},{2 * size:.2f}")
    found, result = forecast(make_request, "\n".join(lines), target="price")
    kinds = {column["name"]: column["kind"] for column in found["columns"]}
    assert kinds == {"day": "date", "size": "number", "price": "number"}
    assert any("row 51 (line 52): 'broken'" in text for text in result.insights)


def test_three_classes_can_be_forecast_at_a_chosen_level(make_request: MakeRequest) -> None:
    generator = random.Random(3)
    rows = [(generator.uniform(0, 9), generator.uniform(0, 1)) for _ in range(240)]
    text = "a,b,kind\n" + "".join(
        f"{a:.3f},{b:.3f},{'low' if a < 3 else 'mid' if a < 6 else 'high'}\n" for a, b in rows
    )
    found, _ = forecast(make_request, text, target="kind", level=0.9)
    assert found["evaluation"]["set_level"] == 0.9
    assert found["evaluation"]["accuracy"] > 0.75
    assert found["evaluation"]["set_coverage"] > 0.8


def test_same_table_produces_the_same_bytes(make_request: MakeRequest) -> None:
    one, other = (forecast(make_request, classes(120), target="won")[1].artifacts[0].sha256 for _ in range(2))
    assert one == other


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=20, max_size=80), st.integers(0, 99))
def test_each_labelled_row_is_in_exactly_one_part(answers: list[str], seed: int) -> None:
    split = skill_module(NAME, "split").split_rows(answers, seed)
    assert sorted(split.train + split.calibrate + split.held_out) == list(range(len(answers)))


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_held_out_answers_do_not_reach_the_model(kind: str) -> None:
    import numpy

    module, problem_type = skill_module(NAME, kind), skill_module(NAME, "problem").Problem
    generator = random.Random(8)
    matrix = numpy.array([[generator.random(), generator.random()] for _ in range(80)])
    split = skill_module(NAME, "split").split_rows([float(row) for row in range(80)], 1)

    def forecasts(answers: list[Any]) -> list[list[float]]:
        problem = problem_type(matrix, answers, split, ["a", "b"], [], matrix[:0], 0.8, 1)
        _, model = module._chosen(problem, split.train)
        found = model.predict_proba(matrix) if kind == "classification" else model.predict(matrix)
        return found.tolist()

    answers: list[Any] = ["uv"[row % 2] if kind == "classification" else float(row % 7) for row in range(80)]
    changed = list(answers)
    for row in [*split.held_out, *split.calibrate]:
        changed[row] = "u" if kind == "classification" else 99.0
    assert forecasts(changed) == forecasts(answers)
