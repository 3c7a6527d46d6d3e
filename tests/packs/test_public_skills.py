"""Anthropic's public skills, used by a scripted model in a run: their scripts, files and pages work as they say.

They are not part of this repository. `FIRESWARM_PUBLIC_SKILLS` names the folder `skills` of a copy of the repository
`anthropics/skills`; `FIRESWARM_PUBLIC_SKILLS_PYTHON` a Python that has the packages which the skills use (pypdf,
pdfplumber, openpyxl, python-docx, python-pptx, lxml, defusedxml). Without the first all tests are skipped, without the
second those that run scripts.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.swarm.event import EventType
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.skills.packs.catalog import load_catalog
from tests.support.experts import Expert, bash, calls
from tests.support.minds import Bench, Ran

FOLDER = Path(os.environ.get("FIRESWARM_PUBLIC_SKILLS") or "/nonexistent")
PYTHON = os.environ.get("FIRESWARM_PUBLIC_SKILLS_PYTHON") or ""

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="FIRESWARM_PUBLIC_SKILLS names no folder of public skills"),
]
runs_scripts = pytest.mark.skipif(not PYTHON, reason="FIRESWARM_PUBLIC_SKILLS_PYTHON names no Python for their scripts")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    readable = [str(Path(PYTHON).parents[1])] if PYTHON else []
    made = Bench(tmp_path).set(skills__prefilter_min_score=1, runtime__max_turns=30, runtime__readable=readable)
    shutil.copytree(FOLDER, made.skills, dirs_exist_ok=True)
    if PYTHON:
        made.environment = {**made.environment, "PATH": f"{Path(PYTHON).parent}:/usr/bin:/bin"}
    return made


def use(skill: str) -> dict[str, Any]:
    return calls(("use_skill", {"name": skill}))


def script(path: str, *arguments: str) -> tuple[str, dict[str, Any]]:
    return bash(f'python3 "$SKILL_DIR/{path}" {" ".join(map(shlex.quote, arguments))}')


async def run(bench: Bench, task: str, *answers: Any) -> tuple[Ran, list[str]]:
    """Run the answers of an expert; returns the run and what each call returned."""
    expert = Expert(*answers, "Done.")
    ran = await bench.run(ScriptedModel(expert, tools=True), task=task, tools=workspace_tools(bench.cwd))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done."), ran.conclusion
    assert not [output.text for output in expert.outputs if output.failed]
    return ran, expert.told


def python(code: str, folder: Path) -> str:
    """Run code with the packages of the skills."""
    return subprocess.run([PYTHON, "-c", code], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_all_public_skills_are_loaded() -> None:
    catalog = load_catalog([FOLDER])
    assert not catalog.left_out
    assert {"pdf", "docx", "xlsx", "pptx", "theme-factory"} <= set(catalog.skills)


@pytest.mark.parametrize(
    ("task", "skill"),
    [
        ("Fill in the form application.pdf", "pdf"),
        ("Put the minutes into a Word document with a table of contents", "docx"),
        ("Add a column with the margin to budget.xlsx", "xlsx"),
        ("Make slides for the board meeting", "pptx"),
        ("Style this page with a theme of colors and fonts", "theme-factory"),
    ],
)
async def test_task_in_a_persons_words_finds_the_skill(task: str, skill: str, bench: Bench) -> None:
    ran, _ = await run(bench, task)
    [shown] = ran.of(EventType.SKILL_PREFILTER_COMPLETED)
    assert skill in [candidate["skill_name"] for candidate in shown["candidates"]]


@pytest.mark.parametrize("skill", ["pdf", "docx", "xlsx", "pptx", "theme-factory", "claude-api"])
async def test_whole_instructions_are_given_and_every_text_file_can_be_read(skill: str, bench: Bench) -> None:
    folder = bench.skills / skill
    _, [told] = await run(bench, "work", calls(("use_skill", {"name": skill.upper()})))
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    assert str(folder) in told or "read on with read_output" in told
    assert text.splitlines()[-1].strip() in told or "read on with read_output" in told
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in (".md", ".py", ".xsd"))
    reads = [("read_skill_file", {"skill": skill, "path": path.relative_to(folder).as_posix()}) for path in files]
    _, read = await run(bench, "work", calls(*reads[:20]), calls(*reads[20:40]) if reads[20:] else "Done.")
    assert len(read) == min(40, len(files))


@runs_scripts
async def test_pdf_is_read_and_checked_by_the_skills_scripts(bench: Bench) -> None:
    shutil.copy(FOLDER / "theme-factory" / "theme-showcase.pdf", bench.cwd / "showcase.pdf")
    extract = "python3 -c \"import pypdf; print(len(pypdf.PdfReader('showcase.pdf').pages), 'pages')\""
    _, told = await run(
        bench,
        "What is in showcase.pdf, and has it a form?",
        use("pdf"),
        calls(("read_skill_file", {"skill": "pdf", "path": "FORMS.md"})),
        calls(bash(extract), script("scripts/check_fillable_fields.py", "showcase.pdf")),
        calls(("read_file", {"path": "showcase.pdf"})),
    )
    assert int(told[2].removesuffix(" pages\n[exit code 0]").split()[0]) > 1
    assert "fillable" in told[3]


@runs_scripts
async def test_word_document_is_unpacked_edited_and_packed_again(bench: Bench) -> None:
    make = "import docx; d = docx.Document(); d.add_paragraph('The price is ten euros.'); d.save('offer.docx')"
    python(make, bench.cwd)
    _, told = await run(
        bench,
        "In offer.docx, change ten to 12",
        use("docx"),
        calls(script("scripts/office/unpack.py", "offer.docx", "unpacked/")),
        calls(("search_files", {"pattern": "ten euros", "path": "unpacked"})),
        calls(("edit_file", {"path": "unpacked/word/document.xml", "old_text": "ten euros", "new_text": "12 euros"})),
        calls(script("scripts/office/pack.py", "unpacked/", "new.docx", "--original", "offer.docx")),
    )
    assert "document.xml" in told[2]
    read = "import docx; print(' '.join(p.text for p in docx.Document('new.docx').paragraphs))"
    assert "The price is 12 euros." in python(read, bench.cwd), told


@runs_scripts
async def test_workbook_gets_a_formula_and_missing_programs_are_information(bench: Bench) -> None:
    make = (
        "import openpyxl; w = openpyxl.Workbook(); s = w.active; s.append(['net', 'gross']); s.append([10, None]);"
        "w.save('b.xlsx')"
    )
    python(make, bench.cwd)
    edit = "import openpyxl\nw = openpyxl.load_workbook('b.xlsx')\nw.active['B2'] = '=A2*1.19'\nw.save('b.xlsx')\n"
    ran, told = await run(
        bench,
        "Add a formula for the gross price to b.xlsx",
        use("xlsx"),
        calls(("write_file", {"path": "edit.py", "content": edit}), bash("python3 edit.py")),
        calls(script("scripts/recalc.py", "b.xlsx", "20")),
    )
    assert (
        python("import openpyxl; print(openpyxl.load_workbook('b.xlsx').active['B2'].value)", bench.cwd) == "=A2*1.19\n"
    )
    if shutil.which("soffice") is None:
        assert "exit code" in told[-1] or "error" in told[-1].lower(), "LibreOffice is missing, and the run goes on"
    assert ran.conclusion.status is ConclusionStatus.FINISHED


@runs_scripts
async def test_slides_are_unpacked_cleaned_and_packed(bench: Bench) -> None:
    make = (
        "import pptx; p = pptx.Presentation(); s = p.slides.add_slide(p.slide_layouts[5]);"
        "s.shapes.title.text = 'Old title'; p.save('deck.pptx')"
    )
    python(make, bench.cwd)
    _, told = await run(
        bench,
        "Change the title in deck.pptx",
        use("pptx"),
        calls(script("scripts/office/unpack.py", "deck.pptx", "deck/")),
        calls(("edit_file", {"path": "deck/ppt/slides/slide1.xml", "old_text": "Old title", "new_text": "New title"})),
        calls(script("scripts/clean.py", "deck/")),
        calls(script("scripts/office/pack.py", "deck/", "out.pptx", "--original", "deck.pptx")),
    )
    with zipfile.ZipFile(bench.cwd / "out.pptx") as deck:
        assert b"New title" in deck.read("ppt/slides/slide1.xml"), told


async def test_theme_is_chosen_from_the_skills_files_and_shown_as_pages(bench: Bench) -> None:
    _, told = await run(
        bench,
        "Style page.html with the theme of the sea",
        use("theme-factory"),
        calls(("read_skill_file", {"skill": "theme-factory", "path": "themes/ocean-depths.md"})),
        calls(bash('cp "$SKILL_DIR/theme-showcase.pdf" . && ls')),
        calls(("read_file", {"path": "theme-showcase.pdf"}), ("write_file", {"path": "page.html", "content": "<p>"})),
    )
    assert "#" in told[1] and "theme-showcase.pdf" in told[2]
