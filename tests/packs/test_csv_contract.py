"""The csv-contract pipeline: what its validator finds, and what it says of files that nobody here wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillResult, SkillState
from fireswarm.pipelines.files import Carried, lay_out
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.support.documents import run_step

EXAMPLE = packaged_path("pipelines") / "csv-contract" / "example"
MADE = ("csv-intake", "csv-validator")
ALL = (*MADE, "code-validate", "csv-report")


def run(work: Path, steps: tuple[str, ...] = ALL, **files: Path) -> tuple[SkillResult, Carried]:
    """Run the steps one after another until one does not complete."""
    artifacts: tuple[Artifact, ...] = ()
    result = SkillResult(summary="")
    for step in steps:
        result = run_step(step, work, artifacts, **{key: str(path) for key, path in files.items()})
        if result.state is not SkillState.COMPLETED:
            break
        artifacts = result.artifacts
    return result, Carried(work, {each.name: each for each in artifacts})


def checker() -> Any:
    """Return the module of the validator."""
    return load_entry(packaged_path("skills") / "csv-validator", Path("scripts/validator.py"))


def contract_of(work: Path, text: str, sample: bytes = b"a\n") -> tuple[SkillResult, Carried]:
    lay_out({"contract.yaml": text}, work / "given")
    (work / "given" / "sample.csv").write_bytes(sample)
    return run(work, MADE, contract=work / "given" / "contract.yaml", sample=work / "given" / "sample.csv")


def report_on(tmp_path: Path, contract: str, data: bytes) -> dict[str, Any]:
    """Return the validator's report on *data*."""
    lay_out({"contract.yaml": contract}, tmp_path / "given")
    (tmp_path / "given" / "sample.csv").write_bytes(b"x\n")
    place = tmp_path / "given" / "contract.yaml"
    result, carried = run(tmp_path, ("csv-intake",), contract=place, sample=tmp_path / "given" / "sample.csv")
    assert result.state is SkillState.COMPLETED, result.summary
    return checker().validate(data, carried.json("contract.json"), "data.csv")


def found(report: dict[str, Any]) -> dict[tuple[str, str], tuple[int, list[int]]]:
    """Return count and lines of each kind of departure."""
    return {
        (each["code"], each["column"]): (each["count"], [example["line"] for example in each["examples"]])
        for each in report["findings"]
    }


def test_example_becomes_a_tested_validator_and_a_report_of_each_departure(tmp_path: Path) -> None:
    result, carried = run(
        tmp_path,
        contract=EXAMPLE / "contract.yaml",
        sample=EXAMPLE / "sample.csv",
        data=EXAMPLE / "drifted.csv",
    )
    assert result.state is SkillState.COMPLETED, result.summary
    assert carried.json("validation.json")["passed"] is True, carried.text("validation_logs.txt")
    report = carried.json("drift_report.json")
    assert (report["rows"], report["delimiter"], report["keeps"]) == (4, ";", False)
    assert found(report) == {
        ("renamed_column", "customer"): (1, [1]),
        ("missing_column", "note"): (1, [1]),
        ("extra_column", "channel"): (1, [1]),
        ("pattern", "customer"): (1, [3]),
        ("enumeration", "country"): (1, [3]),
        ("duplicate", "order_id"): (1, [4]),
        ("type", "ordered_on"): (1, [4]),
        ("null", "amount"): (1, [4]),
        ("range", "ordered_on"): (1, [5]),
        ("type", "amount"): (1, [5]),
    }
    assert "| type | ordered_on | 1 | values are no date | line 4: 01.04.2026 |" in carried.text("drift_report.md")


def test_changed_validator_fails_the_tests_that_were_made_with_it(tmp_path: Path) -> None:
    result, carried = run(tmp_path, MADE, contract=EXAMPLE / "contract.yaml", sample=EXAMPLE / "sample.csv")
    code = carried.text("project/validator.py")
    for number, (before, after) in enumerate(
        {
            'if column["required"]:': "if False:",
            "parsed < least": "False",
            "parsed > most": "False",
            "value not in values": "False",
            "!= line:": "!= line and False:",
            "not pattern.fullmatch(value)": "False",
            "len(fields) != len(header)": "False",
            "yield line, fields": "yield line + 1, fields",
        }.items()
    ):
        assert code.count(before) == 1, before
        text = code.replace(before, after)
        artifacts = [
            Artifact(type=each.type, name=each.name, value=text) if each.name == "project/validator.py" else each
            for each in result.artifacts
        ]
        judged = run_step("code-validate", tmp_path / str(number), artifacts)
        assert judged.summary.startswith("failed"), before


ORDERS = "columns: [{name: id, type: integer, unique: true}, {name: größe, type: decimal}, {name: note}]"
ROWS = 'id,größe,note\n1,2.5,x\n2,3,"two\nlines"\n3,x,y\n'


@pytest.mark.parametrize(
    "data",
    [
        ROWS.encode(),
        ROWS.encode("utf-8-sig"),
        ROWS.encode("utf-16"),
        ROWS.replace("\n", "\r\n").encode(),
        ROWS.replace(",", ";").encode(),
        ROWS.replace(",", "\t").encode(),
        ROWS.replace(",", "|").encode(),
        b"\n\n" + ROWS.encode(),
    ],
    ids=["plain", "mark", "utf-16", "crlf", "semicolon", "tab", "bar", "empty lines"],
)
def test_form_of_a_file_changes_nothing_but_lines(tmp_path: Path, data: bytes) -> None:
    report = report_on(tmp_path, ORDERS, data)
    line = 7 if data.startswith(b"\n") else 5
    assert (report["rows"], found(report)) == (3, {("type", "größe"): (1, [line])})


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "data.csv is empty: it needs a line with the names of the columns"),
        (b"\xef\xbb\xbf", "data.csv is empty"),
        (b"\n \n"[:1], "data.csv is empty"),
        (ROWS.encode("latin-1"), "data.csv line 1: byte 0xf6 is not utf-8: save it as UTF-8, or write its encoding"),
        (b"id\n1\0\n", "data.csv line 2 has a zero byte"),
        (b'id,note\n1,x\n2,"open\n3,y\n', "data.csv line 3 is no CSV (unexpected end of data): check the quotes"),
        (b'id,note\n1,"x"y\n', "data.csv line 2 is no CSV"),
    ],
)
def test_file_that_cannot_be_read_is_an_error_that_says_what_to_do(tmp_path: Path, data: bytes, fault: str) -> None:
    with pytest.raises(Exception, match="data.csv") as refused:
        report_on(tmp_path, ORDERS, data)
    assert type(refused.value).__name__ == "CannotRead" and fault in str(refused.value)


def test_named_encoding_and_decimal_commas_are_read(tmp_path: Path) -> None:
    data = ROWS.replace(",", ";").replace("2.5", "2,5").encode("latin-1")
    report = report_on(tmp_path, f"{ORDERS}\nencoding: latin-1\ndecimal_comma: true", data)
    assert found(report) == {("type", "größe"): (1, [5])}


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("id,größe,note", {}),
        ("id,id,größe,note", {("duplicate_column", "id"): (1, [1])}),
        ("ID,größe,note", {("renamed_column", "id"): (1, [1])}),
        ("id,gro\u0308\u00dfe,note", {("renamed_column", "größe"): (1, [1])}),
        ("id,größe,\U0001f4a1", {("missing_column", "note"): (1, [1]), ("extra_column", "\U0001f4a1"): (1, [1])}),
        ("id,größe,note,", {("extra_column", ""): (1, [1])}),
    ],
)
def test_header_alone_is_compared(tmp_path: Path, header: str, expected: dict[Any, Any]) -> None:
    report = report_on(tmp_path, ORDERS, f"{header}\n".encode())
    assert (report["rows"], found(report)) == (0, expected)


def test_all_of_100_000_rows_are_counted_and_five_lines_of_each_kind_are_named(tmp_path: Path) -> None:
    rows = "".join(f"{number % 50_000},{'x' if number % 100 == 0 else number},n\n" for number in range(100_000))
    report = report_on(tmp_path, ORDERS, f"id,größe,note\n{rows}".encode())
    assert report["rows"] == 100_000
    assert found(report) == {
        ("type", "größe"): (1_000, [2, 102, 202, 302, 402]),
        ("duplicate", "id"): (50_000, [50_002, 50_003, 50_004, 50_005, 50_006]),
    }


@pytest.mark.parametrize(
    ("contract", "fault"),
    [
        ("", "contract.yaml is no contract: it needs `columns`"),
        ("columns: [", "contract.yaml is neither YAML nor JSON: line 1"),
        ("columns: []", "columns: Tuple should have at least 1 item"),
        ("columns: [{name: a, tpye: text}]", "columns.0.tpye: Extra inputs are not permitted"),
        ("columns: [{name: a, type: number}]", "columns.0.type: Input should be 'text', 'integer'"),
        ("columns: [{name: a}, {name: a}]", "two columns are called 'a': rename one"),
        ("columns: [{name: a, values: [yes]}]", 'write true, false, yes and no in quotes: "yes"'),
        ("columns: [{name: a, pattern: '('}]", "pattern is no regular expression of Python"),
        ("columns: [{name: a, minimum: 1}]", "minimum and maximum need a type of integer"),
        (
            "columns: [{name: a, type: integer, minimum: few}]",
            "column 'a' of the contract: the minimum 'few' is no integer",
        ),
        ("columns: [{name: a}]\nencoding: klingon", "there is no encoding 'klingon'"),
        ("columns: [{name: a}]\nencoding: base64", "there is no encoding 'base64'"),
        ("columns: [{name: b}]", "the sample sample.csv departs from the contract: missing_column 'b'"),
    ],
)
def test_fault_of_a_contract_or_sample_is_named(tmp_path: Path, contract: str, fault: str) -> None:
    result, _ = contract_of(tmp_path, contract)
    assert result.state is SkillState.FAILED and fault in result.summary


def test_input_that_is_missing_too_large_or_changed_is_named(tmp_path: Path) -> None:
    given = {"contract": EXAMPLE / "contract.yaml", "sample": EXAMPLE / "sample.csv"}
    result, _ = run(tmp_path / "a", MADE, **{**given, "sample": tmp_path / "none.csv"})
    assert "none.csv cannot be read (No such file or directory" in result.summary
    result, _ = run(tmp_path / "b", MADE, **{**given, "data": tmp_path})
    assert "data " in result.summary and "name a file by its path" in result.summary
    data = tmp_path / "data.csv"
    data.write_bytes(b"a" * 20_000_001)
    result, _ = run(tmp_path / "d", MADE, **{**given, "data": data})
    assert result.summary.endswith("data.csv has more than 20,000,000 bytes: give a part of it")
    data.write_text("order_id\n1\n")
    intake, _ = run(tmp_path / "c", ("csv-intake",), **given, data=data)
    data.write_text("order_id\n2\n")
    made = run_step("csv-validator", tmp_path / "c", intake.artifacts)
    validated = run_step("code-validate", tmp_path / "c", made.artifacts)
    assert "data.csv was changed during the run: run the pipeline again" in (
        run_step("csv-report", tmp_path / "c", validated.artifacts).summary
    )


@pytest.mark.parametrize("sample", [b"a\n", b"a,b\n", b"a\n1\n"])
def test_sample_with_a_header_only_gives_a_validator_whose_tests_pass(tmp_path: Path, sample: bytes) -> None:
    names = "{name: a, type: integer, required: true}" + (", {name: b}" if b"b" in sample else "")
    made, _ = contract_of(tmp_path, f"columns: [{names}]", sample)
    assert made.state is SkillState.COMPLETED, made.summary
    judged = run_step("code-validate", tmp_path, made.artifacts)
    assert judged.summary.startswith("passed"), judged.summary
    assert json.loads((tmp_path / "code-validate" / "validation.json").read_text())["passed"] is True
