"""The documents match the code: named things exist, and existing things are documented."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
from fireswarm.swarm.records.policy import HandoffPolicy
from tests.support.pages import DOCS, FENCE, README, ROOT, anchors, console_lines, read, rows, spans

SOURCE = ROOT / "src" / "fireswarm"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [README, ROOT / "CHANGELOG.md", CONTRIBUTING, *ROOT.glob("packages/*/README.md"), *sorted(DOCS.rglob("*.md"))]
CONFIGURATION, OBSERVABILITY = DOCS / "reference" / "configuration.md", DOCS / "reference" / "observability.md"

NO_SYSTEM_PACKAGES, FOLDER_OF_TASKS = "FIRESWARM_NO_SYSTEM_PACKAGES", "FIRESWARM_FOLDER"
"""Variables that set-up and compose.yaml read, not fireswarm itself."""

CALL = re.compile(r"(?<![\w./-])(swarm|agent)(?![\w./-])((?: +--?[\w-]+)*)((?: +[a-z][a-z0-9]*)*)([^|&;#]*)")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")


class Call(NamedTuple):
    """A command line of swarm or agent as a page shows it."""

    page: str
    text: str
    program: str
    before: tuple[str, ...]
    words: tuple[str, ...]
    options: tuple[str, ...]


def calls() -> Iterator[Call]:
    for page in PAGES:
        for text in [*spans(page), *console_lines(page)]:
            for program, before, words, rest in CALL.findall(text):
                options = tuple(OPTION.findall(rest))
                yield Call(page.name, text, program, tuple(before.split()), tuple(words.split()), options)


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
    anywhere |= set(OPTION.findall(read(ROOT / "packages" / "firelite" / "src" / "firelite" / "__main__.py")))
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
    page = CONFIGURATION
    table = {
        bare(row[0]): bare(row[1]) for heading in ("## swarm.yaml", "## agent.yaml") for row in rows(page, heading)
    }
    assert table == {key.name: key.default for key in keys(Settings)}


def test_every_environment_variable_is_documented_with_its_key_and_default() -> None:
    table = {bare(row[0]): (bare(row[1]), bare(row[2])) for row in rows(CONFIGURATION, "## Environment")}
    defaults = {key.name: key.default for key in keys(Settings)}
    named = {name: ".".join(parts) for name, parts in ENVIRONMENT.items()}
    assert table == {name: (key, defaults[key]) for name, key in named.items()}


def test_pages_name_only_known_environment_variables() -> None:
    text = "\n".join(read(page) for page in PAGES)
    outside = {
        NO_SYSTEM_PACKAGES: "tools/setup.sh",
        STORE_TOKEN: "src/fireswarm/settings/trust.py",
        FOLDER_OF_TASKS: "compose.yaml",
        "FIRESWARM_LOG_FORMAT": "src/fireswarm/cli/swarm/main.py",
        "FIRESWARM_NOTIFY_SECRET": "src/fireswarm/settings/swarm.py",
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
    [example] = [code for language, code in FENCE.findall(read(CONFIGURATION)) if language == "yaml"]
    (tmp_path / CONFIG_FILE).write_text(example)
    settings = load_settings(tmp_path, environment={})
    assert (settings.session, settings.leases.lease_seconds, settings.worker.concurrency) == ("nightly", 30, 2)


def test_every_key_of_a_role_card_is_documented() -> None:
    documented = {bare(row[0]): bare(row[1]) for row in rows(CONFIGURATION, "## roles/NAME/ROLE.md")}
    fields = dict(leaves(RoleCard))
    del fields["prompt"]
    assert set(documented) == set(fields)
    assert {key: value for key, value in documented.items() if key.startswith("limits.")} == {
        key: shown(value) for key, value in fields.items() if key.startswith("limits.")
    }


def test_every_key_of_the_policy_is_documented_with_its_default() -> None:
    documented = {bare(row[0]): bare(row[1]) for row in rows(CONFIGURATION, "## mailbox/policy.yaml")}
    assert documented == {key: shown(default) for key, default in leaves(HandoffPolicy)}


# ── states and errors ─────────────────────────────────────────────────────────────────────────────────


def test_every_status_reason_is_documented() -> None:
    text = read(DOCS / "reference" / "documents.md")
    table = text.split("| `status_reason` | meaning |", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(StatusReason)


def error_codes(kind: type[FireswarmError] = FireswarmError) -> set[str]:
    ours = {kind.code} if kind.__module__ == FireswarmError.__module__ else set[str]()
    return ours.union(*(error_codes(below) for below in kind.__subclasses__()))


def test_every_error_code_has_a_remedy() -> None:
    documented = {bare(row[0]) for row in rows(DOCS / "how-to" / "troubleshooting.md", "## Errors")}
    assert documented == error_codes()


def noted_events(files: Mapping[Path, str] | None = None) -> set[str]:
    """Names of the events that the code of every package notes in a journal."""
    texts = files if files is not None else {path: read(path) for path in SOURCE.rglob("*.py")}
    return set(re.findall(r"""journal\.note\(\s*"(\w+)""", "\n".join(texts.values())))


def test_every_event_type_and_journal_event_is_documented() -> None:
    text = read(OBSERVABILITY)
    assert set(EVENTS) == set(EventType)
    assert all(about.when and about.payload for about in EVENTS.values())
    assert [bare(row[0]) for row in rows(OBSERVABILITY, "## Events")] == list(EventType)
    for kind in {STEP_STARTED, STEP_FINISHED, STEP_FAILED, STEP_REPLAYED, STEP_REDONE, STEP_SKIPPED, *noted_events()}:
        assert f"| `{kind}` |" in text, kind


def test_classes_that_the_glossary_names_exist() -> None:
    named = {span for span in spans(DOCS / "reference" / "glossary.md") if re.fullmatch(r"(?:[A-Z][a-z]+)+", span)}
    defined = {name for path in SOURCE.rglob("*.py") for name in re.findall(r"^class (\w+)", read(path), re.M)}
    assert {"Swarm", "Grant", "Snooze"} <= named
    assert named - defined == set()


# ── links ─────────────────────────────────────────────────────────────────────────────────────────────


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


def test_readme_and_the_index_of_a_kind_link_to_every_page() -> None:
    for kind in ("tutorials", "how-to", "reference", "explanation"):
        pages = {page.name for page in (DOCS / kind).glob("*.md")}
        from_readme = re.findall(rf"\]\(docs/{kind}/([^)#\s/]+)\)", read(README))
        from_index = re.findall(r"^\| \[[^]]+\]\(([^)#\s/]+)\)", read(DOCS / kind / "index.md"), re.M)
        assert pages == set(from_readme)
        assert pages - {"index.md"} == set(from_index)
        assert f"]({kind}/index.md)" in read(DOCS / "index.md")


def test_each_page_is_of_one_kind() -> None:
    assert {page.name for page in DOCS.glob("*.md")} == {"index.md"}
    assert {page.name for page in DOCS.iterdir() if page.is_dir()} == {
        "adr", "explanation", "how-to", "pictures", "reference", "screens", "start", "tutorials",
    }  # fmt: skip


def test_pages_show_no_local_machine_paths() -> None:
    found = [
        (page.name, path)
        for page in PAGES
        for path in re.findall(r"(?<![\w.~])/(?:work|tmp|home|root|Users)/\S*", read(page))
    ]
    assert found == []


def test_testing_page_names_every_folder_of_tests() -> None:
    page = read(DOCS / "how-to" / "testing.md")
    folders = {f"{path.parent.name}/{path.name}/" for path in (ROOT / "tests").iterdir() if any(path.glob("*.py"))}
    assert {folder for folder in folders if f"`{folder}`" not in page} == set()


# ── releases ──────────────────────────────────────────────────────────────────────────────────────────


def test_changelog_begins_with_the_version_and_upgrading_has_it() -> None:
    changelog = read(ROOT / "CHANGELOG.md")
    [first, *_] = [name for name in re.findall(r"^## (\S+)", changelog, re.M) if name != "Unreleased"]
    assert first == tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["version"]
    minor = first.rpartition(".")[0]
    assert re.search(rf"^## From \S+ to {re.escape(minor)}$", read(DOCS / "how-to" / "upgrading.md"), re.M)


def test_notes_of_the_version_are_read_in_two_minutes() -> None:
    notes = read(ROOT / "CHANGELOG.md").split("### In two minutes", 1)[1].split("\n### ", 1)[0]
    assert 100 < len(notes.split()) < 2 * 200  # 200 words a minute


def test_version_is_written_once() -> None:
    version = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["version"]
    sources = {path: read(path) for path in SOURCE.rglob("*.py")}
    assert [path.name for path, text in sources.items() if f'"{version}"' in text] == []
