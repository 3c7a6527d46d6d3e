"""Write the validator of a CSV file by template, with tests that its contract and a sample give."""

from __future__ import annotations

import json
from pathlib import Path

from fireswarm import SkillRequest, SkillResult, count_noun, errors, pipelines

from . import cases, validator

TEMPLATE = Path(__file__).parents[1] / "references" / "test_validator.py.tmpl"
README = Path(__file__).parents[1] / "references" / "README.md.tmpl"
SCOPE = ["validator.py", "contract.json", "README.md", "tests/**"]
MAX_NAMED = 3
MAX_SAMPLE_ROWS = 500
"""So many rows of the sample become a file of the tests; all are compared with the contract here."""


def run(request: SkillRequest) -> SkillResult:
    """Return the project: ``validator.py``, ``contract.json``, ``README.md`` and its tests."""
    carried = pipelines.Carried.of(request)
    snapshot, contract = carried.json("request_snapshot.json"), carried.json(pipelines.CONTRACT)
    name = snapshot["sample"]["name"]
    try:
        content = pipelines.read_unchanged(carried, "sample")
        text = validator.decode(content, contract["encoding"], name)
        report = validator.validate(content, contract, name)
    except (errors.InvalidInput, validator.CannotRead) as error:
        return SkillResult.failure(f"the validator cannot be made: {error}")
    if not report["keeps"]:
        told = "; ".join(validator.describe(report)[1 : MAX_NAMED + 1])
        return SkillResult.failure(f"the sample {name} departs from the contract: {told}. Correct one of them")
    rows = [fields for _, fields in validator.read_rows(text, report["delimiter"], name)]
    made = cases.make_cases(contract, rows)
    carried.write_json("allowlist.json", {"patterns": SCOPE})
    carried.write_project(
        {
            "validator.py": Path(validator.__file__).read_text(encoding="utf-8"),
            "contract.json": carried.text(pipelines.CONTRACT),
            "README.md": README.read_text(encoding="utf-8").replace("$name", contract["name"]),
            "tests/test_validator.py": TEMPLATE.read_text(encoding="utf-8"),
            "tests/cases.json": json.dumps(made, indent=2, ensure_ascii=False) + "\n",
            "tests/sample.csv": cases.write_rows(rows[: MAX_SAMPLE_ROWS + 1]),
        }
    )
    told = f"a validator of {count_noun(len(contract['columns']), 'column')} with {count_noun(len(made), 'case')}"
    return SkillResult(summary=told, artifacts=carried.artifacts(), confidence=1.0)
