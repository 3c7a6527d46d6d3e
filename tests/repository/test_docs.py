"""The documents match the code: named things exist, existing things are documented, and the examples run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from pydantic import BaseModel
from tools.events import EVENTS
from typer.main import get_command

from fireswarm.cli.agent.main import app as agent_app
from fireswarm.cli.swarm.api import TOKEN_VARIABLE
from fireswarm.cli.swarm.main import app as swarm_app
from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.errors import FireswarmError
from fireswarm.llm.providers.scripted import load_script
from fireswarm.runs.steps import (
    STEP_FAILED,
    STEP_FINISHED,
    STEP_REDONE,
    STEP_REPLAYED,
    STEP_SKIPPED,
    STEP_STARTED,
)
from fireswarm.settings import CONFIG_FILE, ENVIRONMENT, STORE_TOKEN, Settings, load_settings
from fireswarm.settings.sample import keys
from fireswarm.settings.trust import VARIABLE
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.records.policy import HandoffPolicy
from fireswarm.swarm.roles.card import load_roles

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "fireswarm"
PAGES = [README, ROOT / "CHANGELOG.md", *ROOT.glob("packages/*/README.md"), *sorted(DOCS.rglob("*.md"))]

NO_SYSTEM_PACKAGES, FOLDER_OF_TASKS = "FIRESWARM_NO_SYSTEM_PACKAGES", "FIRESWARM_FOLDER"
"""Variables that set-up and compose.yaml read, not fireswarm itself."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
CALL = re.compile(r"(?<![\w./-])(swarm|agent)(?![\w./-])((?: +--?[\w-]+)*)((?: +[a-z]+)*)([^|&;#]*)")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")
NAMED_FILE = re.compile(r"^`((?:roles|skills)/[^`]+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)


class Call(NamedTuple):
    """A command line of swarm or agent as a page shows it."""

    page: str
    text: str
    program: str
    before: tuple[str, ...]
    words: tuple[str, ...]
    options: tuple[str, ...]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def spans(page: Path) -> list[str]:
    return [" ".join(span.split()) for span in SPAN.findall(FENCE.sub("", read(page)))]


def console_lines(page: Path) -> list[str]:
    shown = [code for language, code in FENCE.findall(read(page)) if language == "console"]
    return [line.split(" # ")[0] for code in shown for line in code.splitlines()]


def calls() -> Iterator[Call]:
    for page in PAGES:
        for text in [*spans(page), *console_lines(page)]:
            for program, before, words, rest in CALL.findall(text):
                options = tuple(OPTION.findall(rest))
                yield Call(page.name, text, program, tuple(before.split()), tuple(words.split()), options)


def rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the first table below *heading*, without its two header lines."""
    text = read(page)
    assert f"\n{heading}\n" in text, f"{page.name} has no heading {heading!r}"
    lines = text.split(f"\n{heading}\n", 1)[1].splitlines()
    table: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif table:
            break
    return table[2:]


def bare(cell: str) -> str:
    return cell.strip().strip("`")


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of a settings model with their defaults."""
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field.get_default(call_default_factory=True)


def shown(default: Any) -> str:
    if isinstance(default, dict):
        plain: dict[str, tuple[str, ...]] = default
        return str({key: list(value) for key, value in plain.items()})
    return "null" if default is None else str(default)


# ── commands and options ──────────────────────────────────────────────────────────────────────────────


def option_names(command: Any) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts} | {"--help"}


PROGRAMS: dict[str, Any] = {"swarm": get_command(swarm_app), "agent": get_command(agent_app)}


def commands() -> dict[str, Any]:
    """Return every command by its words: ``swarm submit``, ``swarm store serve``, ``agent run``."""
    found: dict[str, Any] = {}
    for program, group in PROGRAMS.items():
        found[program] = group
        for name, command in group.commands.items():
            found[f"{program} {name}"] = command
            for below, inner in getattr(command, "commands", {}).items():
                found[f"{program} {name} {below}"] = inner
    return found


def named(call: Call, known: dict[str, Any]) -> str:
    words = [call.program, *(word for word in call.words if word)]
    for length in (3, 2):
        if " ".join(words[:length]) in known:
            return " ".join(words[:length])
    return " ".join(words[:2])


def test_every_command_and_option_in_the_documents_exists() -> None:
    known = commands()
    faults: list[str] = []
    for call in calls():
        name = named(call, known)
        if name not in known:
            faults.append(f"{call.page}: `{call.text}`: there is no command {name!r}")
            continue
        having, group = option_names(known[name]), PROGRAMS[call.program]
        faults += [
            f"{call.page}: `{call.text}`: {option} is no option" for option in call.options if option not in having
        ]
        faults += [
            f"{call.page}: `{call.text}`: {option} is no option"
            for option in call.before
            if option not in option_names(group)
        ]
    assert not faults, "\n".join(faults)


def test_option_named_alone_in_the_documents_exists() -> None:
    anywhere = {name for command in commands().values() for name in option_names(command)}
    bare_options = {
        option
        for page in PAGES
        for span in spans(page)
        for option in OPTION.findall(span)[:1]
        if span.startswith(option)
    }
    assert bare_options
    assert bare_options - anywhere == set()


def test_every_command_is_documented() -> None:
    known = commands()
    mentioned = {named(call, known) for call in calls()}
    leaves = {name for name, command in known.items() if not hasattr(command, "commands")}
    assert leaves - mentioned == set()


# ── settings, roles, policy ───────────────────────────────────────────────────────────────────────────


def test_every_key_of_swarm_yaml_is_documented_with_its_default() -> None:
    page = DOCS / "configuration.md"
    table = {
        bare(row[0]): bare(row[1]) for heading in ("## swarm.yaml", "## agent.yaml") for row in rows(page, heading)
    }
    assert table == {key.name: key.default for key in keys(Settings)}


def test_every_environment_variable_is_documented_with_its_key_and_default() -> None:
    table = {bare(row[0]): (bare(row[1]), bare(row[2])) for row in rows(DOCS / "configuration.md", "## Environment")}
    defaults = {key.name: key.default for key in keys(Settings)}
    named = {name: ".".join(parts) for name, parts in ENVIRONMENT.items()}
    assert table == {name: (key, defaults[key]) for name, key in named.items()}


def test_pages_name_only_known_environment_variables() -> None:
    text = "\n".join(read(page) for page in PAGES)
    outside = {
        NO_SYSTEM_PACKAGES: "tools/setup.sh",
        STORE_TOKEN: "src/fireswarm/settings/swarm.py",
        FOLDER_OF_TASKS: "compose.yaml",
        VARIABLE: "src/fireswarm/settings/trust.py",
        "FIRESWARM_PUBLIC_SKILLS": "tests/packs/test_public_skills.py",
        "FIRESWARM_PUBLIC_SKILLS_PYTHON": "tests/packs/test_public_skills.py",
    }
    assert all(name in read(ROOT / file) for name, file in outside.items())
    assert set(re.findall(r"\bFIRESWARM_[A-Z_]+", text)) <= {*ENVIRONMENT, TOKEN_VARIABLE, *outside}


def test_emulator_variable_selects_the_documented_store(tmp_path: Path) -> None:
    host = {"FIRESTORE_EMULATOR_HOST": "127.0.0.1:8080"}
    assert load_settings(tmp_path, environment=host).store.uri == "firelite://127.0.0.1:8080"
    assert load_settings(tmp_path, environment=host | {"FIRESWARM_STORE": "memory"}).store.uri == "memory"
    assert load_settings(tmp_path, environment={"GOOGLE_CLOUD_PROJECT": "p"}).store.uri == "embedded"


def test_example_of_swarm_yaml_can_be_loaded(tmp_path: Path) -> None:
    [example] = [code for language, code in FENCE.findall(read(DOCS / "configuration.md")) if language == "yaml"]
    (tmp_path / CONFIG_FILE).write_text(example)
    settings = load_settings(tmp_path, environment={})
    assert (settings.session, settings.leases.lease_seconds, settings.worker.concurrency) == ("nightly", 30, 2)


def test_every_key_of_a_role_card_is_documented() -> None:
    documented = {bare(row[0]): bare(row[1]) for row in rows(DOCS / "configuration.md", "## roles/NAME/ROLE.md")}
    fields = dict(leaves(RoleCard))
    del fields["prompt"]
    assert set(documented) == set(fields)
    assert {key: value for key, value in documented.items() if key.startswith("limits.")} == {
        key: shown(value) for key, value in fields.items() if key.startswith("limits.")
    }


def test_every_key_of_the_policy_is_documented_with_its_default() -> None:
    documented = {bare(row[0]): bare(row[1]) for row in rows(DOCS / "configuration.md", "## mailbox/policy.yaml")}
    assert documented == {key: shown(default) for key, default in leaves(HandoffPolicy)}


# ── states and errors ─────────────────────────────────────────────────────────────────────────────────


def test_every_status_reason_is_documented() -> None:
    text = read(DOCS / "architecture.md")
    table = text.split("| `status_reason` | meaning |", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(StatusReason)


def error_codes(kind: type[FireswarmError] = FireswarmError) -> set[str]:
    ours = {kind.code} if kind.__module__ == FireswarmError.__module__ else set[str]()
    return ours.union(*(error_codes(below) for below in kind.__subclasses__()))


def test_every_error_code_has_a_remedy() -> None:
    documented = {bare(row[0]) for row in rows(DOCS / "troubleshooting.md", "## Errors")}
    assert documented == error_codes()


def noted_events(files: Mapping[Path, str] | None = None) -> set[str]:
    """Names of the events that the code of every package notes in a journal."""
    texts = files if files is not None else {path: read(path) for path in SOURCE.rglob("*.py")}
    return set(re.findall(r"""journal\.note\(\s*"(\w+)""", "\n".join(texts.values())))


def test_every_event_type_and_journal_event_is_documented() -> None:
    text = read(DOCS / "observability.md")
    assert set(EVENTS) == set(EventType)
    assert all(about.when and about.payload for about in EVENTS.values())
    assert [bare(row[0]) for row in rows(DOCS / "observability.md", "## Events")] == list(EventType)
    for kind in {STEP_STARTED, STEP_FINISHED, STEP_FAILED, STEP_REPLAYED, STEP_REDONE, STEP_SKIPPED, *noted_events()}:
        assert f"| `{kind}` |" in text, kind


# ── links ─────────────────────────────────────────────────────────────────────────────────────────────


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", read(page)), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_relative_link_has_a_target() -> None:
    faults: list[str] = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", read(page))):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists() or not path.is_relative_to(ROOT):
                faults.append(f"{page.name}: {target} does not exist")
            elif anchor and anchor not in anchors(path):
                faults.append(f"{page.name}: {path.name} has no heading for #{anchor}")
    assert not faults, "\n".join(faults)


def test_the_readme_links_to_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#\s]+)", read(README)))
    assert {f"docs/{page.name}" for page in DOCS.glob("*.md")} <= linked


def test_pages_show_no_local_machine_paths() -> None:
    found = [
        (page.name, path)
        for page in PAGES
        for path in re.findall(r"(?<![\w.~])/(?:work|tmp|home|root|Users)/\S*", read(page))
    ]
    assert found == []


# ── the example ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the role and the skill of the README to a new folder and make it the current one."""
    files = NAMED_FILE.findall(read(README))
    for name, content in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
    assert len(files) == 3
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python_block(page: Path, containing: str) -> dict[str, Any]:
    """Execute the one Python block of a page that holds *containing*; returns its names."""
    [code] = [code for language, code in FENCE.findall(read(page)) if language == "python" and containing in code]
    names: dict[str, Any] = {"Path": Path}
    exec(compile(textwrap.dedent(code), f"{page.name}: {containing}", "exec", dont_inherit=True), names)
    return names


def test_role_and_skill_of_the_readme_can_be_loaded(example: Path) -> None:
    catalog = load_catalog([example / "skills"])
    roles = load_roles(example / "roles")
    assert (list(catalog.skills), catalog.left_out) == (["count-words"], ())
    assert (list(roles), roles["librarian"].skills) == (["librarian"], ("count-words",))
    assert catalog.get("count-words").entry == Path("scripts/skill.py")


def test_skill_test_of_the_testing_page_passes(example: Path) -> None:
    names = python_block(DOCS / "testing.md", "def test_it_counts")
    test: Callable[[Path], None] = names["test_it_counts"]
    test(example)
    assert (example / "words.txt").read_text() == "3\n"


def test_worker_example_of_the_testing_page_runs(example: Path) -> None:
    note = example / "note.txt"
    note.write_text("one two three four five\n")
    work = python_block(DOCS / "testing.md", "async def work")["work"]
    assert anyio.run(work, example, note) == "note.txt has 5 words"


# ── the scripted model of the testing page ────────────────────────────────────────────────────────────


def named_file(page: Path, name: str, folder: Path) -> Path:
    """Write the file that a page shows under its name."""
    [content] = re.findall(rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```$", read(page), re.M | re.S)
    (folder / name).write_text(content)
    return folder / name


def test_scripted_role_example_of_the_testing_page_runs(example: Path) -> None:
    note = example / "note.txt"
    note.write_text("one two three\n")
    named_file(DOCS / "testing.md", "answers.py", example)
    work = python_block(DOCS / "testing.md", "async def think_and_work")["think_and_work"]
    assert anyio.run(work, example, note) == "Counted: note.txt has 3 words"


def test_agent_example_of_the_testing_page_runs(example: Path) -> None:
    note = example / "note.txt"
    note.write_text("one two\n")
    script = load_script(f"{named_file(DOCS / 'testing.md', 'answers.py', example).name}:answer", example)
    run = python_block(DOCS / "testing.md", "async def run_the_skill")["run_the_skill"]
    assert anyio.run(run, example, note, script) == ("Counted: note.txt has 2 words", ["ok"])


def test_testing_page_names_every_folder_of_tests() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    folders = {f"{path.parent.name}/{path.name}/" for path in (ROOT / "tests").iterdir() if any(path.glob("*.py"))}
    assert {folder for folder in folders if f"`{folder}`" not in page} == set()
