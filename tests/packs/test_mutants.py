"""code-validate changes the code of operations: what no expectation finds is told, and too much of it fails."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fireswarm.pipelines.files import PROJECT
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.packs.test_forged_verdicts import CODE, made_files, validate


@pytest.fixture
def mutants() -> ModuleType:
    module: ModuleType = load_entry(packaged_path("skills") / "code-validate", Path("scripts/skill.py")).mutants
    return module


def test_all_changes_of_written_code_are_found(tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    result, _ = validate(files, files.text(CODE), tmp_path / "validated")
    counted = result["mutants"]
    assert result["passed"] and counted["alive"] == []
    assert counted["killed"] == counted["made"] == counted["possible"] > 40


def test_code_that_no_expectation_looks_at_fails(tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    code = files.text(CODE)
    unseen = "".join(
        f"    if parameters.get('tags') == 'unseen-{number}':\n"
        "        send('DELETE', '/unseen', query={'a': 1, 'b': 2})\n"
        for number in range(4)
    )
    start = code.index("    return", code.index("def "))
    result, log = validate(files, code[:start] + unseen + code[start:], tmp_path / "validated")
    assert result["passed"] is False
    assert "of the code, at least 80% are needed" in log and "'/unseen_' instead of '/unseen'" in log
    assert any("without" in each or "instead of" in each for each in result["mutants"]["alive"])


def test_changed_code_that_does_not_end_is_found(mutants: ModuleType, tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    project = files.tree(PROJECT)
    path = CODE.removeprefix(PROJECT)
    start = project[path].index("    return", project[path].index("def "))
    loop = "    count = 0\n    while count != 3:\n        count += 1\n"
    project[path] = project[path][:start] + loop + project[path][start:]
    judge = mutants.judge
    expected = judge.read_expected(project)
    first = [each for each in expected if each.call["operation"] == expected[0].call["operation"]][:1]
    counted = mutants.count_killed(project, first, tmp_path / "changed", 60.0, "auto")
    assert counted is not None and not [each for each in counted["alive"] if "2 instead of 1" in each], counted


def test_changes_whose_process_does_not_answer_are_not_found(mutants: ModuleType, tmp_path: Path) -> None:
    """The code ends its process when it is not what it was."""
    files = made_files(tmp_path / "made")
    project = files.tree(PROJECT)
    path = CODE.removeprefix(PROJECT)
    start = project[path].index("    return", project[path].index("def "))
    ends = "    import os\n    if __builtins__ and 'a' != 'a':\n        os._exit(0)\n"
    project[path] = project[path][:start] + ends + project[path][start:]
    expected = mutants.judge.read_expected(project)
    assert not any(mutants.judge.replay(project, expected, tmp_path / "right", 60.0, "auto").values())
    counted = mutants.count_killed(project, expected, tmp_path / "changed", 60.0, "auto")
    assert counted is not None and counted["killed"] == 0 and counted["made"] > 40


def test_code_is_parsed_once_for_all_operations(
    mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each operation, a document of a thousand operations did not end."""
    project = made_files(tmp_path / "made").tree(PROJECT)
    expected = mutants.judge.read_expected(project)
    assert len({each.call["operation"] for each in expected}) > 3
    parsed: list[str] = []
    parse = ast.parse

    def counted(text: str, *more: Any, **options: Any) -> ast.Module:
        parsed.append(text)
        return parse(text, *more, **options)

    monkeypatch.setattr(mutants.ast, "parse", counted)
    mutants.count_killed(project, expected, tmp_path / "changed", 60.0, "auto")
    assert parsed.count(project[CODE.removeprefix(PROJECT)]) == 1


def test_each_change_is_one(mutants: ModuleType) -> None:
    code = '''
def put(parameters, send):
    """It tells what it does: "GET"."""
    a = [1, "b"] if parameters["a"] == 2 and not parameters["c"] else True
    return send("GET", "/a" + quote(parameters["id"]), body=keep({"a": a, "b": None}))
'''
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    before = ast.unparse(function)
    made = [changed for _, _, changed in mutants.mutate(function)]
    assert ast.unparse(function) == before
    assert before not in made and len(made) == len(set(made))
    assert all('tells what it does: "GET"' in each for each in made)
    wanted = (
        "'POST'",
        "'/a_'",
        "['b'] if",
        "!= 2",
        " or ",
        "else False",
        "'/a' + parameters['id']",
        "keep({'b': None})",
    )
    assert not [each for each in wanted if not any(each in changed for changed in made)]
