"""firestore.rules on Google's emulator: operators read their databases, clients write nothing.

``make test-emulator`` installs the npm packages and runs this; without them, or without the emulator, it is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tools.emulator import NotAvailable, emulator

from fireswarm.storage.documents import paths

pytestmark = pytest.mark.node

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RULES = ROOT / "firestore.rules"
RUN_SECONDS = 120

PARENTS = {paths.JOURNAL: paths.RUNS, paths.POCKET: paths.CONTEXTS, paths.ANSWERED: paths.CONTEXTS}
COLLECTIONS = sorted(name for key, name in vars(paths).items() if key.isupper() and isinstance(name, str))
FOREIGN = ["others/x", "agent_tasks/x/others/y", "others/x/agent_tasks/y", "others/x/journal/y", "journal/x"]
"""Paths that no part of fireswarm uses: also with names of its collections in other places."""

READS = ["get", "list"]
WRITES = ["create", "update", "delete"]
DEFAULT, TEAM_A, TEAM_B = DATABASES = ["(default)", "team-a", "team-b"]


class User(NamedTuple):
    """A signed-in user and the token's claims."""

    uid: str
    claims: dict[str, Any]


class Attempt(NamedTuple):
    """One operation of a user (None: not signed in) on one path."""

    database: str
    user: User | None
    operation: str
    path: str


def operator(*databases: str) -> User:
    return User("operator", {"fireswarm_operator": list(databases)})


OPERATORS = [User("operator", {"fireswarm_operator": True}), operator(DEFAULT), operator(TEAM_A, DEFAULT)]
OPERATORS_OF_TEAMS = {TEAM_A: operator(TEAM_A), TEAM_B: operator(TEAM_B), DEFAULT: OPERATORS[0]}
FORGED: list[Any] = [
    False, None, "true", "(default)", 1, {}, {"(default)": True}, {"operator": True}, [], [True], [""], ["(default)x"],
    ["*"], [["(default)"]], "(default),team-a",
]  # fmt: skip
"""Values of the claim that make no operator."""
STRANGERS: list[User | None] = [
    None,
    User("guest", {"firebase": {"sign_in_provider": "anonymous", "identities": {}}}),
    User("somebody", {"email": "operator@example.com", "email_verified": True}),
    User("fireswarm_operator", {}),
    User("other", {"operator": True, "admin": True, "role": "fireswarm_operator"}),
    User("other", {"FIRESWARM_OPERATOR": True, "fireswarm_operator ": True, "fireswarmOperator": True}),
    User("other", {"claims": {"fireswarm_operator": True}}),
    User("other", {"firebase": {"sign_in_provider": "custom", "fireswarm_operator": True}}),
    *(User("other", {"fireswarm_operator": value}) for value in FORGED),
]
WRITERS = [*OPERATORS, *STRANGERS[:4]]
"""Users who try every write. The rules allow none, whatever the claims are."""
MEMBERS = [*OPERATORS_OF_TEAMS.values(), None]


def path_of(collection: str) -> str:
    """Return a document's path in the collection."""
    return f"{PARENTS[collection]}/x/{collection}/y" if collection in PARENTS else f"{collection}/x"


OWN = [path_of(collection) for collection in COLLECTIONS]
ALL = [*OWN, *FOREIGN]


def attempts() -> Iterator[Attempt]:
    """Yield every attempt that the tests look at."""
    for user, operation, path in product([*OPERATORS, *STRANGERS], READS, ALL):
        yield Attempt(DEFAULT, user, operation, path)
    for user, operation, path in product(WRITERS, ["group", *WRITES], ALL):
        yield Attempt(DEFAULT, user, operation, path)
    for database, user, operation, path in product(DATABASES, MEMBERS, [*READS, "group", *WRITES], OWN):
        if database != DEFAULT or user not in WRITERS:
            yield Attempt(database, user, operation, path)


class Access:
    """Results of the attempts."""

    def __init__(self, results: list[tuple[Attempt, str]]) -> None:
        self._results = results

    def select(
        self, users: Iterable[User | None], operations: list[str], documents: list[str], database: str = DEFAULT
    ) -> dict[str, list[Attempt]]:
        """Return the attempts by result."""
        users = list(users)
        selected: dict[str, list[Attempt]] = {}
        for attempt, result in self._results:
            described = attempt.user in users and attempt.operation in operations and attempt.path in documents
            if described and attempt.database == database:
                selected.setdefault(result, []).append(attempt)
        return selected


@pytest.fixture(scope="module")
def access() -> Access:
    """Run all attempts in one Node process, beside an emulator."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node on the PATH")
    if not (HERE / "node_modules" / "@firebase" / "rules-unit-testing" / "package.json").exists():
        pytest.skip("needs the npm packages: `make test-emulator` installs them, as `npm ci --prefix tests/rules` does")
    return Access(run(node, list(attempts())))


def run(node: str, plan: list[Attempt]) -> list[tuple[Attempt, str]]:
    message = {
        "rules": RULES.read_text(encoding="utf-8"),
        "databases": DATABASES,
        "documents": [{"database": database, "path": path} for database, path in product(DATABASES, ALL)],
        "attempts": [attempt._asdict() | {"user": attempt.user and attempt.user._asdict()} for attempt in plan],
    }
    try:
        with emulator(str(RULES)) as address:
            finished = subprocess.run(
                [node, str(HERE / "access.mjs")],
                input=json.dumps(message),
                env=os.environ | {"FIRESTORE_EMULATOR_HOST": address},
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS,
                check=False,
            )
    except NotAvailable as reason:
        pytest.skip(str(reason))
    assert finished.returncode == 0, finished.stderr
    results: list[str] = json.loads(finished.stdout)
    return list(zip(plan, results, strict=True))


def test_subcollections_of_the_code_have_a_known_parent() -> None:
    assert set(PARENTS) <= set(COLLECTIONS)
    assert len(COLLECTIONS) == len(set(COLLECTIONS)) > len(PARENTS)


def test_operator_gets_and_lists_every_collection_of_the_code(access: Access) -> None:
    results = access.select(OPERATORS, READS, OWN)
    assert list(results) == ["allowed"]
    assert len(results["allowed"]) == len(OPERATORS) * len(READS) * len(OWN)


def test_operator_reads_no_collection_that_the_code_does_not_use(access: Access) -> None:
    assert list(access.select(OPERATORS, READS, FOREIGN)) == ["denied"]


def test_collection_group_query_is_denied_to_every_client(access: Access) -> None:
    assert list(access.select(WRITERS, ["group"], ALL)) == ["denied"]


def test_client_without_a_valid_claim_reads_nothing(access: Access) -> None:
    results = access.select(STRANGERS, READS, ALL)
    assert list(results) == ["denied"]
    assert len(results["denied"]) == len(STRANGERS) * len(READS) * len(ALL)


def test_client_writes_nothing_with_or_without_a_claim(access: Access) -> None:
    results = access.select(WRITERS, WRITES, ALL)
    assert list(results) == ["denied"]
    assert len(results["denied"]) == len(WRITERS) * len(WRITES) * len(ALL)


@pytest.mark.parametrize("database", DATABASES)
def test_operator_of_one_database_reads_no_other_one(access: Access, database: str) -> None:
    insider = OPERATORS_OF_TEAMS[database]
    outsiders = [user for user in MEMBERS if user is not insider]
    assert list(access.select([insider], READS, OWN, database)) == ["allowed"]
    assert list(access.select(outsiders, READS, OWN, database)) == ["denied"]


@pytest.mark.parametrize("database", DATABASES)
def test_operator_of_a_database_writes_to_none(access: Access, database: str) -> None:
    assert list(access.select(MEMBERS, ["group", *WRITES], OWN, database)) == ["denied"]
