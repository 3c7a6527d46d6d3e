"""No packaged skill shows text of a folder's file whose name says that it holds secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm import is_secret_file
from fireswarm.contracts.skills.skill import SkillRequest, SkillState
from tests.support.packs import NOW, SKILLS, run_skill

ALL = sorted(path.parents[1].name for path in SKILLS.glob("*/scripts/skill.py"))
SECRET = "opensesame"
TEXT = f"""# Lease rule

lease rule: the vault password is {SECRET}. See it today, and tell nobody that the {SECRET} opens it.

- [ ] rotate lease password {SECRET}
"""
KINDS = (
    *("passwords.txt", "deploy.secret.md", "Secrets.md", "my_password.md", "passphrase", "passwd", ".htpasswd"),
    *(".env", ".env.production", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials"),
    *("id_rsa", "id_ed25519.bak", "server.pem", "tls.KEY", "cert.p12", "keys.kdbx", "release.keystore"),
    *("credentials", "credentials.json", "aws-credentials.csv", "service-account.json", "secrets.yaml", "secrets.py"),
)
OPEN = ("notes.md", "passwordless.md", "keyboard.md", "environment.txt", "secretary.md", "monkey.md")
READERS = (
    *("content-summarizer", "keyword-search-extractor", "task-checklist-builder", "workspace-inventory"),
    "node-normalize",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of each kind, here and further below, and one that may be read."""
    place = tmp_path / "work"
    for here in (place, place / "deep" / "er"):
        here.mkdir(parents=True)
        for name in KINDS:
            (here / name).write_text(TEXT, encoding="utf-8")
    (place / "notes.md").write_text("# Notes\n\nThe lease is renewed every day.\n\n- [ ] renew the lease\n")
    return place


def asking(folder: Path, place: Path) -> SkillRequest:
    named = {"path": str(place), "source": str(place), "csv": str(place), "keywords": ["lease", "password"]}
    return SkillRequest(
        task_id="t", session_hash="s", objective='find "lease"', role="scout", workdir=folder.parent / "out", now=NOW,
        context=named,
    )  # fmt: skip


def written(request: SkillRequest) -> str:
    files = [path for path in request.workdir.rglob("*") if path.is_file()]
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


@pytest.mark.parametrize("name", ALL)
def test_skill_on_a_folder_shows_no_file_that_holds_secrets(name: str, folder: Path) -> None:
    request = asking(folder, folder)
    try:
        shown = run_skill(name, request).model_dump_json()
    except Exception as error:
        if name in READERS:
            raise
        shown = repr(error)  # a skill that needs the files of an earlier step
    shown += written(request)
    assert SECRET not in shown
    assert name not in READERS or "notes.md" in shown


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("named", [False, True])
def test_no_list_of_words_has_a_part_of_a_secret_in_an_ordinary_file(name: str, named: bool, tmp_path: Path) -> None:
    place = tmp_path / "work"
    place.mkdir()
    file = place / "README.md"
    file.write_text(
        "# Lease\n\nThe lease password of the day.\n\n- [ ] renew password=Zx81SinclairPw\n\n"
        "DB_PASSWORD=hunter2sword\n\naws_access_key_id = AKIAIOSFODNN7ABCDEFG\n\n"
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz12345678\n"
    )
    (place / "use.py").write_text('# TODO: rotate the lease\nAPI_TOKEN = "Qw7RtyUi9PzxCvb3NmKl"\n')
    request = asking(place, file if named else place)
    shown = (run_skill(name, request).model_dump_json() + written(request)).lower()
    parts = ("zx81", "hunter2", "iosfodnn", "jalrxut", "k7mdeng", "bpxrfi", "qw7rty")
    assert not [part for part in parts if part in shown]


@pytest.mark.parametrize("name", ["content-summarizer", "keyword-search-extractor", "task-checklist-builder"])
def test_summary_counts_the_files_that_hold_secrets(name: str, folder: Path) -> None:
    result = run_skill(name, asking(folder, folder))
    assert result.state is SkillState.COMPLETED
    assert f"{2 * len(KINDS)} likely to hold secrets" in result.summary


def test_inventory_measures_code_named_like_a_secret_and_shows_no_text_of_it(folder: Path) -> None:
    (folder / "secrets.py").write_text(f'# TODO: rotate {SECRET}\nKEY = "{SECRET}" if True else ""\n')
    request = asking(folder, folder)
    run_skill("workspace-inventory", request)
    found = json.loads((request.workdir / "inventory.json").read_text(encoding="utf-8"))
    kinds = {record["path"]: record["kind"] for record in found["files"]}
    assert {kinds[name] for name in KINDS if name != "secrets.py"} == {"sensitive"}
    [record] = [each for each in found["files"] if each["path"] == "secrets.py"]
    assert (record["kind"], record["complexity"]) == ("text", 2)
    assert SECRET not in json.dumps(found)


def test_file_that_the_request_names_is_read(folder: Path) -> None:
    result = run_skill("keyword-search-extractor", asking(folder, folder / "passwords.txt"))
    assert result.summary.startswith("5 hits in 1 of 1 file")


@given(st.sampled_from(KINDS), st.booleans())
def test_name_is_recognized_in_any_case(name: str, upper: bool) -> None:
    assert is_secret_file(name.upper() if upper else name.lower())


@pytest.mark.parametrize("name", OPEN)
def test_name_that_only_sounds_like_a_secret_may_be_read(name: str) -> None:
    assert not is_secret_file(name)
