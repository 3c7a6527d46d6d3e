"""Mutation testing: change the code of important rooms in small ways, and see which changes no test notices.

    make mutants [ROOM=gate] [SAMPLE=40] [SEED=1]

It works on a copy of the repository in a temporary folder. Of each room's mutations, a sample is tried, chosen by the
printed seed; SAMPLE=0 tries all. A survivor that makes no difference is listed in tools/mutants.toml with the reason.
Any other survivor fails the command.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / ".tools" / "mutants" / "bin"
ACCEPTED = ROOT / "tools" / "mutants.toml"
TIMEOUT_SECONDS = 300.0
"""A mutant whose tests take longer counts as noticed: most of these wait for ever."""

NO_BEHAVIOUR = (
    *("core/ReplaceBinaryOperator_BitOr_%", "core/ReplaceBinaryOperator_Div_%", "core/RemoveDecorator"),
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in ("Is_Eq", "Eq_Is", "IsNot_NotEq", "NotEq_IsNot")),
)
"""Mutations of annotations, of paths and of dataclasses: they change no decision, or no module loads with them.

Nor does the difference between identity and equality: members of enums, and literals, are compared by either.
"""


@dataclass(frozen=True, slots=True)
class Room:
    """Files to mutate, and the tests that have to notice."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


BOARD = "src/fireswarm/swarm/board"
ROOMS: dict[str, Room] = {
    "gate": Room(
        ("src/fireswarm/mind/gate.py",), ("tests/unit/mind/test_gate.py", "tests/unit/mind/test_approvals.py")
    ),
    "board": Room(
        (f"{BOARD}/claim.py", f"{BOARD}/settle.py", f"{BOARD}/sweep.py", f"{BOARD}/dependents.py"),
        (
            "tests/fundamentals",
            "tests/unit/swarm",
            "tests/integration/test_plan_rounds.py",
            "tests/integration/test_provider_pauses.py",
        ),
    ),
    "worker": Room(
        ("src/fireswarm/swarm/worker/loop.py", "src/fireswarm/swarm/worker/upkeep.py"),
        (
            "tests/integration/test_worker.py",
            "tests/integration/test_worker_faults.py",
            "tests/integration/test_upkeep.py",
            "tests/integration/test_time.py",
            "tests/integration/test_work_by_mail.py",
        ),
    ),
    "processes": Room(("src/fireswarm/processes/run.py",), ("tests/unit/processes",)),
    "storage-commit": Room(
        (
            "packages/firelite/src/firelite/storage/commit.py",
            "packages/firelite/src/firelite/storage/group_commit.py",
        ),
        (
            "packages/firelite/tests/unit/test_commit.py",
            *(
                f"packages/firelite/tests/conformance/test_{name}.py"
                for name in ("transforms", "write_rules", "documents")
            ),
            "packages/firelite/tests/unit",
        ),
    ),
}


def copy_repository(folder: Path) -> Path:
    """Copy the files under git, and new ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def choose(session: Path, sample: int, chance: random.Random) -> int:
    """Leave *sample* mutations in a session, or all for 0; returns how many there are."""
    with closing(sqlite3.connect(session)) as database:
        for operator in NO_BEHAVIOUR:
            _delete(database, "operator_name LIKE ?", operator)
        for job, module, row in database.execute(
            "SELECT job_id, module_path, start_pos_row FROM mutation_specs"
        ).fetchall():
            if _line(session.parent / module, row).startswith("@"):  # slots and frozen of a dataclass
                _delete(database, "job_id = ?", job)
        known = sorted(row[0] for row in database.execute("SELECT job_id FROM mutation_specs ORDER BY rowid"))
        by_place = [row[0] for row in database.execute(f"SELECT job_id FROM mutation_specs ORDER BY {PLACE}")]
        kept = set(chance.sample(by_place, min(sample, len(by_place))) if sample else by_place)
        for job in known:
            if job not in kept:
                _delete(database, "job_id = ?", job)
        database.commit()
    return len(by_place)


PLACE = "module_path, start_pos_row, start_pos_col, operator_name, occurrence"


def _line(file: Path, row: int) -> str:
    return linecache.getline(str(file), row).strip()


def _delete(database: sqlite3.Connection, where: str, value: str) -> None:
    database.execute(
        f"DELETE FROM work_items WHERE job_id IN (SELECT job_id FROM mutation_specs WHERE {where})", (value,)
    )
    database.execute(f"DELETE FROM mutation_specs WHERE {where}", (value,))


def survivors(session: Path) -> Iterator[tuple[str, str]]:
    """Yield the file and the changed lines of each mutation that no test noticed."""
    with closing(sqlite3.connect(session)) as database:
        rows = database.execute(
            "SELECT module_path, diff FROM work_results JOIN mutation_specs USING (job_id)"
            " WHERE test_outcome = 'SURVIVED' ORDER BY module_path, start_pos_row"
        )
        for path, diff in rows:
            lines = [line for line in str(diff).splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
            yield path, "\n".join(lines)


def measure(name: str, room: Room, folder: Path, sample: int, seed: int) -> list[str]:
    """Print the score of a room, and return the survivors that no reason is known for."""
    session, config = folder / f"{name}.sqlite", folder / f"{name}.toml"
    command = [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *room.tests]
    config.write_text(
        "[cosmic-ray]\n"
        f"module-path = {json.dumps(list(room.files))}\n"
        f"timeout = {TIMEOUT_SECONDS}\n"
        "excluded-modules = []\n"
        f"test-command = {json.dumps(' '.join(command))}\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
    )
    paths = os.pathsep.join(str(folder / path) for path in ("src", "packages/firelite/src"))
    environment = {**os.environ, "PYTHONPATH": paths, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}

    def run(*arguments: str | Path) -> None:
        subprocess.run([TOOL / "cosmic-ray", *arguments], cwd=folder, env=environment, check=True)

    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)  # they pass unchanged
    run("init", config, session)
    total = choose(session, sample, random.Random(seed))
    run("exec", config, session)
    tried = min(sample, total) if sample else total
    alive = list(survivors(session))
    accepted = {
        (item["file"], item["change"].strip()) for item in tomllib.loads(ACCEPTED.read_text()).get("survivor", [])
    }
    unexplained = [f"{path}\n{change}" for path, change in alive if (path, change.strip()) not in accepted]
    noticed = tried - len(alive)
    print(
        f"{name}: {noticed} of {tried} noticed ({noticed / max(1, tried):.0%}), "
        f"{len(alive) - len(unexplained)} survivors with a reason, {len(unexplained)} without; "
        f"{total} mutations in all",
        flush=True,
    )
    return unexplained


def main() -> int:
    """Try the rooms, and return 1 if a survivor has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], default=[])
    parser.add_argument("--sample", type=int, default=40, help="mutations for each room; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.sample or 'all'} mutations for each room", flush=True)
    left: list[str] = []
    for name in given.rooms or ROOMS:
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            folder = copy_repository(Path(scratch))
            left += measure(name, ROOMS[name], folder, given.sample, given.seed)
    for survivor in left:
        print(f"\nno test noticed: {survivor}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
