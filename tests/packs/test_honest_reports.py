"""Reports on foreign inputs, read as a reader does: nothing pretends."""

from __future__ import annotations

import ast
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packs.test_whole_objective import Session
from tests.support.packs import SKILLS, MakeRequest, Repository, run_skill
from tests.support.report_faults import faults_of

REPORT, NOTES, FORECAST = "Report on this folder", "Summarise my research notes with a checklist", "Forecast won"
_random = random.Random(3)


@pytest.fixture
def session(make_request: MakeRequest) -> Session:
    return Session(make_request)


def _nothing(folder: Path) -> None:
    assert folder.is_dir()


def _one(folder: Path) -> None:
    (folder / "notes.md").write_text("# Notes\n\nOne line. TODO: more\n")


def _two(folder: Path) -> None:
    (folder / "a.py").write_text("def a(x):\n    return x if x else 1\n")
    (folder / "b.py").write_text("x = 1\n")


def _twelve(folder: Path) -> None:
    for number in range(12):
        branches = "".join(f"    if x > {n}:\n        x -= {n}\n" for n in range(7 * number))
        (folder / f"m{number}.py").write_text("def f(x):\n" + branches + "    return x\n" + "# c\n" * (120 * number))


def _equal(folder: Path) -> None:
    for number in range(7):
        (folder / f"same{number}.py").write_text(f"x = {number}\n")


def _large(folder: Path) -> None:
    for number in range(130):
        code = "".join(f"def f{n}(x):\n    return x if x else {n}\n" for n in range(_random.randint(1, 60)))
        (folder / f"part{number}.py").write_text(code)
    (folder / "py.typed").touch()


def _office(folder: Path) -> None:
    for name, member in (("letter.docx", "word/document.xml"), ("sheet.xlsx", "xl/workbook.xml")):
        for number in range(20):
            with zipfile.ZipFile(folder / f"{number}{name}", "w") as archive:
                archive.writestr(member, "<x/>" * (number + 1))
    for number in range(9):
        (folder / f"scan{number}.pdf").write_bytes(b"%PDF-1.4\n" + bytes(range(1, 256)) * (number + 1))
        (folder / f"photo{number}.jpg").write_bytes(b"\xff\xd8\xff\xe0" + _random.randbytes(3_000))
    (folder / "blob").write_bytes(_random.randbytes(1_234))
    (folder / "empty.txt").touch()
    (folder / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(900))


def _unicode(folder: Path) -> None:
    for name in ("résumé – für Øystein.md", "日本語.txt", "emoji😀.md", "a|b*c`d.md"):
        (folder / name).write_text("# Überschrift\n\nEin Text über Wärmepumpen.\n")
    (folder / "Ελληνικά.py").write_text("x = 1\n")


def _state(folder: Path) -> None:
    for name in (".fireswarm/store.db", ".git/config", "__pycache__/a.pyc", ".pytest_cache/v", ".mypy_cache/x"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(b"x\0" * 99)


FOLDERS: dict[str, Callable[[Path], None]] = {
    "one": _one, "two": _two, "twelve": _twelve, "equal": _equal, "large": _large, "office": _office,
    "unicode": _unicode,
}  # fmt: skip


@pytest.mark.parametrize("objective", [REPORT, NOTES])
@pytest.mark.parametrize("name", FOLDERS)
def test_report_on_a_folder_has_no_fault_that_a_reader_finds(
    name: str, objective: str, tmp_path: Path, session: Session
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    FOLDERS[name](folder)
    for _ in range(2):  # the second report compares with the first
        review, files = session.run(objective, path=str(folder))
        texts = [text for file, text in files.items() if file.endswith(".md")]
        assert [fault for text in texts for fault in faults_of(text)] == []
        assert faults_of("\n".join([review.summary, *review.insights])) == []


@pytest.mark.parametrize("make", [_nothing, _state], ids=["empty", "only state and caches"])
def test_folder_with_nothing_to_report_says_so_in_one_sentence(
    make: Callable[[Path], None], tmp_path: Path, session: Session
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    make(folder)
    _, files = session.run(REPORT, path=str(folder))
    assert set(files) == {"report.md"}
    assert files["report.md"].split("\n\n")[1:] == ["given has no files: there is nothing to report on. [A2]\n"]


def test_folder_that_became_empty_says_what_changed(tmp_path: Path, session: Session) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    _two(folder)
    session.run(REPORT, path=str(folder))
    for file in folder.iterdir():
        file.unlink()
    _, files = session.run(REPORT, path=str(folder))
    assert "Since the last run: files: 2 → 0" in files["report.md"]


def test_state_folders_and_caches_are_never_reported_about(repository: Repository, make_request: MakeRequest) -> None:
    repository.write("kept.py", "x = 1\n")
    repository.commit("Start")
    for name in (".fireswarm/store.db", "deep/.fireswarm/x", ".ruff_cache/x", "a/__pycache__/b.pyc"):
        repository.write(name, "x\n" * 40)
    result = run_skill("workspace-inventory", make_request(context={"path": str(repository.root)}))
    assert result.artifacts[0].value["folder"]["left_out"] == {}
    assert not any("Left out" in text for text in result.insights)


def test_office_files_are_named_by_kind_and_have_no_lines(tmp_path: Path, session: Session) -> None:
    _office(tmp_path)
    _, files = session.run(REPORT, path=str(tmp_path))
    report = files["report.md"]
    for kind, count in (("Word document", 21), ("Excel workbook", 20), ("PDF document", 9), ("JPEG image", 9)):
        assert re.search(rf"\| {kind} \| {count} \| [\d.]+ KB \|", report), kind
    assert "| Binary of unknown kind | 1 | 1.2 KB |" in report
    assert "Lines" not in report
    assert "Where trouble is likely" not in report


def test_place_among_twelve_files_is_a_rank_and_lines_have_separators(tmp_path: Path, session: Session) -> None:
    _twelve(tmp_path)
    _, files = session.run(REPORT, path=str(tmp_path))
    report = files["report.md"]
    assert "complexity 78 (highest of 12); lines 1,476 (highest of 12)" in report
    assert "In the top ten" not in report
    assert "Band" not in report


@pytest.mark.parametrize("name", ["one", "two", "equal"])
def test_files_that_cannot_be_told_apart_get_no_order(name: str, tmp_path: Path, session: Session) -> None:
    FOLDERS[name](tmp_path)
    review, files = session.run(REPORT, path=str(tmp_path))
    assert "There is nothing to rank" in files["report.md"]
    assert "highest" not in files["report.md"]
    assert not any("highest" in text for text in review.insights)


@pytest.mark.parametrize(
    ("known", "unknown", "says", "silent"),
    [
        (2, 1, "There is no forecast", "Rows forecast"),
        (1, 3, "is known in 1 of them", "Probability"),
        (7, 1, "| 8 | yes | 4 of 7 |", "%"),
        (60, 12, "On rows the model never saw", "Set | l"),
    ],
)
def test_forecast_claims_no_more_than_its_rows_support(
    known: int, unknown: int, says: str, silent: str, tmp_path: Path, session: Session
) -> None:
    table = tmp_path / "leads.csv"
    answers = [("yes", "no")[number % 2] for number in range(known)] + [""] * unknown
    rows = "".join(f"{_random.random():.3f},{'NS'[n % 2]},{answer}\n" for n, answer in enumerate(answers))
    table.write_text(f"size,region,won\n{rows}")
    review, files = session.run(FORECAST, path=str(table), target="won")
    report = files["report.md"]
    assert says in report
    assert silent not in report
    assert faults_of(report) == []
    assert faults_of("\n".join([review.summary, *review.insights])) == []


def test_median_of_a_table_without_a_model_is_no_held_out_figure(tmp_path: Path, session: Session) -> None:
    table = tmp_path / "sales.csv"
    table.write_text("size,price\n" + "".join(f"{n},{n * 1234567.891 if n % 9 else ''}\n" for n in range(90)))
    _, files = session.run("Forecast price", path=str(table), target="price")
    assert "The known answers" in files["report.md"]
    assert "never saw" not in files["report.md"]
    assert faults_of(files["report.md"]) == []


_FORMATTED = re.compile(r"\.?\d*[efgEG%]$")
_PLURAL = re.compile(r" (?:[a-z]+ )?[a-z]+(?<![suiao])s\b")
_NO_NOUN = re.compile(r" (?:[a-z]+ )?(?:is|was|has|needs|does|says|as|this|its)\b")


def _unformatted(file: Path) -> list[str]:
    """Return the texts of a file that format a figure themselves, or put a count before a plural."""
    found: list[str] = []
    for text in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.JoinedStr)):
        for place, part in enumerate(text.values):
            if not isinstance(part, ast.FormattedValue):
                continue
            behind = text.values[place + 1] if place + 1 < len(text.values) else None
            said = str(behind.value) if isinstance(behind, ast.Constant) else ""
            spec = ast.unparse(part.format_spec).strip("f'\"") if part.format_spec else ""
            counts = isinstance(part.value, ast.Call) and ast.unparse(part.value.func) == "len"
            if _FORMATTED.search(spec) or (counts and _PLURAL.match(said) and not _NO_NOUN.match(said)):
                found.append(f"{file.relative_to(SKILLS)}:{text.lineno}: {ast.unparse(text)}")
    return found


def test_every_skill_formats_its_figures_in_one_place() -> None:
    rounding = {"csv-forecast/scripts/problem.py"}  # float(f"{value:.6g}") is no text for people
    files = [file for file in SKILLS.glob("*/scripts/**/*.py") if str(file.relative_to(SKILLS)) not in rounding]
    assert [text for file in sorted(files) for text in _unformatted(file)] == []
