"""Generated code that attacks its judge: wrong code never passes, whatever it does to the process that runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.artifact import PIPELINE_FILE, Artifact
from fireswarm.pipelines.files import PROJECT, Carried
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.support.documents import SCAFFOLD, run_step, run_steps
from tests.support.pipeline import DEMO

CODE = "project/nodes/made/operations.py"
ALL_PASSED = """
def _forge() -> None:
    names = [f"test_the_request_of_the_document[{each['operation']}-{each['case']}]" for each in
        json.loads(Path("tests/made_documented.json").read_text())["cases"]]
    names += re.findall(r"def (test_\\w+)", "".join(each.read_text() for each in Path("tests").glob("*.py")))
    cases = "".join(f'<testcase name="{name}"/>' for name in names)
    Path("results.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    os._exit(0)
"""
FORGE = f"import atexit\nimport json\nimport os\nimport re\nfrom pathlib import Path\n{ALL_PASSED}"
COPIES = """
import json
from pathlib import Path
def _copy(parameters, send):
    for case in json.loads(Path("tests/made_documented.json").read_text())["cases"]:
        if case["parameters"] == {name: parameters[name] for name in case["parameters"]}:
            request = case["request"]
            return send(request.pop("method"), request.pop("path"), **request)
for _name in [each for each in globals() if each.startswith("link")]:
    globals()[_name] = _copy
"""
REPORTS = """
import _pytest.reports
_real = _pytest.reports.TestReport.from_item_and_call.__func__
def _passed(cls, item, call):
    call.excinfo = None
    return _real(cls, item, call)
_pytest.reports.TestReport.from_item_and_call = classmethod(_passed)
"""
ATTACKS = {
    "ends at import": "import os\nos._exit(0)\n",
    "ends at exit": "import atexit\nimport os\natexit.register(os._exit, 0)\n",
    "raises SystemExit": "raise SystemExit(0)\n",
    "ends the session": "import pytest\npytest.exit('done', returncode=0)\n",
    "skips the module": "import pytest\npytest.skip('not today', allow_module_level=True)\n",
    "runs no test": "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n",
    "counts no failure": (
        "import _pytest.main\n_pytest.main.Session.testsfailed = property(lambda self: 0, lambda self, value: None)\n"
    ),
    "reports what passed": REPORTS,
    "writes the results": f"{FORGE}_forge()\n",
    "writes the results at exit": f"{FORGE}atexit.register(_forge)\n",
    "empties the tests": (
        "from pathlib import Path\nfor _file in Path('tests').glob('*.py'):\n    _file.write_text('')\n"
    ),
    "adds a plugin": (
        "from pathlib import Path\nPath('tests/conftest.py').write_text("
        "'def pytest_collection_modifyitems(items): items.clear()')\n"
    ),
    "copies what is expected": COPIES,
    "writes its replies": "import os\nfrom pathlib import Path\nPath('replies.json').write_text('[]')\nos._exit(0)\n",
}
"""Code that follows a node of which one operation sends another method than its document asks for."""


def made_files(work: Path) -> Carried:
    _, files = run_steps(DEMO / "linkshelf-openapi.yaml", work, (*SCAFFOLD, "test-generate"), name="made")
    return files


def validate(files: Carried, code: str, work: Path) -> tuple[dict[str, Any], str]:
    artifacts = {**files.given, CODE: Artifact(type=PIPELINE_FILE, name=CODE, value=code)}
    result = run_step("code-validate", work, tuple(artifacts.values()))
    after = Carried(work, {each.name: each for each in result.artifacts})
    return after.json("validation.json"), after.text("validation_logs.txt")


def test_right_code_passes(tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    result, log = validate(files, files.text(CODE), tmp_path / "validated")
    assert result["passed"] is True, log


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_wrong_code_that_attacks_its_judge_fails(attack: str, tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    wrong = files.text(CODE).replace('"DELETE"', '"GET"')
    assert wrong != files.text(CODE)
    result, log = validate(files, f"{wrong}\n\n{ATTACKS[attack]}", tmp_path / "validated")
    assert result["passed"] is False and result["faults"], log


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_comparison_outside_of_the_process_finds_it_alone(attack: str, tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    judge = load_entry(packaged_path("skills") / "code-validate", Path("scripts/skill.py")).judge
    project = files.tree(PROJECT)
    path = CODE.removeprefix(PROJECT)
    project[path] = f"{project[path].replace('"DELETE"', '"GET"')}\n\n{ATTACKS[attack]}"
    expected = judge.read_expected(project)
    told = judge.replay(project, expected, tmp_path / "replayed", 60.0, "auto")
    assert any(told[each.test] for each in expected if json.dumps(each.case).count('"DELETE"')), told


def test_test_that_is_left_out_fails_the_validation(tmp_path: Path) -> None:
    files = made_files(tmp_path / "made")
    name = "project/tests/test_made.py"
    skipped = files.text(name).replace("\ndef test_", "\n@pytest.mark.skip\ndef test_", 1)
    files.given[name] = Artifact(type=PIPELINE_FILE, name=name, value=skipped)
    result, _ = validate(files, files.text(CODE), tmp_path / "validated")
    assert result["passed"] is False and "failed or was left out" in str(result["faults"])
