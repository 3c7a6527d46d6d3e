"""Draw docs/pictures/: the whole, a task's life, a handoff, a team, a port.

Names of states, outcomes, steps and roles are the code's.

``make generate`` writes them, and ``make check`` fails if they differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, get_args

from fireswarm.client import Swarm
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.envelope import Trace
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.outcome import Done, Failed, Handoff, Outcome, Released, Retry, Snooze, Waiting
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, WAITS_FOR_TIME, StatusReason, Task, TaskStatus
from fireswarm.mind import gate
from fireswarm.pipelines.loading import read_pipeline
from fireswarm.storage.documents import paths
from fireswarm.swarm.board import claim, dependents, settle, submit, sweep
from fireswarm.swarm.board.claim import Claimer
from fireswarm.swarm.board.operator import actions
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.roles.card import load_roles

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
WIDTH = 800

Draw = Callable[[], str]


class Move(NamedTuple):
    """One move of a task: from a status to another, and the function or the outcomes that make it."""

    source: TaskStatus | None
    target: TaskStatus
    by: str
    who: str


def frame(height: int, title: str, *parts: str) -> str:
    """Return a picture of its parts on a ground of its own, so that it is legible on a light and on a dark page."""
    body = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">
<title>{escape(title)}</title>
<style>
{STYLE}</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L10 5 L0 10 z"/></marker></defs>
<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>
{body}
</svg>
"""


def words(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    """Return one line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, lines: list[tuple[str, str]], kind: str = "") -> str:
    """Return a box with centered lines of text and kind."""
    step = 20
    first = y + height / 2 - (len(lines) - 1) * step / 2 + 5
    texts = [words(x + width / 2, first + row * step, text, kind) for row, (text, kind) in enumerate(lines)]
    rect = f'<rect class="box {kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
    return "\n".join([rect, *texts])


def arrow(*points: tuple[float, float], reads: bool = False) -> str:
    """Return an arrow along the points."""
    path = " L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path class="arrow{" reads" if reads else ""}" d="M{path}"/>'


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────


def whole() -> str:
    """Draw people and faces, the client, the store, the roles, and what they use."""
    roles = list(load_roles(ROOT / "roles"))
    methods = [Swarm.submit, Swarm.answer, Swarm.approve, Swarm.retry, Swarm.cancel]
    commits = [method.__name__ for method in (Claimer.claim, claim.renew, settle.settle, sweep.sweep)]
    collections = [paths.TASKS, paths.RUNS, paths.MAILBOX, paths.MEMORY]
    faces = [("swarm", "command line"), ("swarm api", "HTTP API"), ("import fireswarm", "programs")]
    empty = [("", "")] * 2
    parts = [words(28, 40, "People and programs", "title", "start")]
    for number, (name, about) in enumerate(faces):
        parts.append(box(28 + number * 172, 54, 160, 56, [(name, "code"), (about, "small")]))
        parts.append(arrow((108 + number * 172, 110), (108 + number * 172, 146)))
    parts.append(box(584, 54, 188, 56, [("Firebase console", ""), ("documents by hand", "small")]))
    parts += [
        box(28, 148, 504, 50, [("client.py", "code title"), (", ".join(m.__name__ for m in methods), "small")]),
        arrow((180, 198), (180, 258)),
        words(190, 233, "writes tasks", "small", "start"),
        arrow((380, 258), (380, 200), reads=True),
        words(390, 233, "reads tasks and runs", "small", "start"),
        arrow((678, 110), (678, 258)),
        words(688, 190, "writes", "small", "start"),
        words(688, 208, "and reads", "small", "start"),
        box(28, 260, 744, 92, [("Store: Firestore, or firelite on your machine", "title"), *empty], "marked"),
    ]
    for number, name in enumerate(collections):
        parts.append(box(48 + number * 180, 306, 164, 32, [(name, "code")]))
    parts += [
        arrow((180, 420), (180, 354)),
        words(190, 382, f"writes: {', '.join(commits)};", "small", "start"),
        words(190, 400, "runs, messages, facts, heartbeats", "small", "start"),
        arrow((560, 354), (560, 420), reads=True),
        words(570, 393, "reads tasks and messages", "small", "start"),
        box(28, 422, 744, 100, [("Role processes: one worker each, any number of each role", "title"), *empty]),
    ]
    width = (704 + 12) / len(roles)
    for number, name in enumerate(roles):
        parts.append(box(48 + number * width, 470, width - 12, 34, [(name, "")]))
    parts += [
        arrow((150, 522), (150, 572)),
        arrow((400, 522), (400, 572)),
        arrow((650, 522), (650, 572)),
        words(410, 552, f"if {gate.__name__.split('.')[-1]}.{gate.decide.__name__} allows it", "small", "start"),
        box(28, 574, 236, 60, [("Skills", "title"), ("code, in a confined process", "small")]),
        box(282, 574, 236, 60, [("Tools", "title"), ("files, commands, web, MCP", "small")]),
        box(536, 574, 236, 60, [("Model", "title"), ("Claude, Gemini and others", "small")]),
        words(28, 664, "solid: writes or calls", "small", "start"),
        words(188, 664, "dashed: reads", "small", "start"),
        words(772, 664, "The command agent runs the same mind on one task, without a store.", "small", "end"),
    ]
    return frame(684, "fireswarm as a whole: who reads and writes what", *parts)


# ── a task's life ─────────────────────────────────────────────────────────────────────────────────────


def outcomes() -> dict[str, tuple[TaskStatus, StatusReason | None]]:
    """Return the state that the board gives a task after each outcome of a turn."""
    now = datetime(2027, 1, 1, tzinfo=UTC)
    task = Task(
        task_id="t", session_hash="s", objective="o", assigned_to="scout", status=TaskStatus.IN_PROGRESS,
        idempotency_key="k", trace=Trace(chain_id="t"), created_at=now, updated_at=now,
    )  # fmt: skip
    planned = PlannedTask(key="a", assigned_to="scout", objective="o")
    examples: list[Outcome] = [
        Done(), Handoff((planned,)), Waiting(StatusReason.INPUT_REQUIRED, "s"), Snooze(1.0), Retry("e"), Failed("e"),
        Released(),
    ]  # fmt: skip
    kinds = {type(example) for example in examples}
    if kinds != set(get_args(Outcome)):
        raise ValueError("each outcome of a turn needs an example here")
    store: Any = None
    board = BoardContext(store, VirtualClock(now), ("scout",), rng=random.Random(0))
    held = HeldLease(task, "agent", 1, now, now + timedelta(seconds=60), None)
    after = {type(example).__name__: settle.transition_of(board, held, example) for example in examples}
    return {name: (transition.status, transition.reason) for name, transition in after.items()}


def moves() -> list[Move]:
    """Return every move of a task. Those of a turn are the board's; the others name the function that makes them."""
    queued, working, blocked = TaskStatus.QUEUED, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED
    settled = [
        Move(working, target, ", ".join(name for name, (status, _) in outcomes().items() if status is target), "worker")
        for target in TaskStatus
    ]
    person, peer = "person", "any worker of the role"
    return [
        Move(None, queued, submit.submit.__name__, person),
        Move(None, blocked, submit.submit.__name__, person),
        Move(queued, working, Claimer.claim.__name__, "worker"),
        *(move for move in settled if move.by),
        Move(working, queued, sweep.sweep.__name__, peer),
        Move(working, blocked, sweep.sweep.__name__, peer),
        Move(queued, blocked, sweep.sweep.__name__, peer),
        Move(blocked, queued, sweep.sweep.__name__, peer),
        Move(blocked, queued, dependents.commit_with_dependents.__name__, "worker"),
        Move(blocked, queued, actions.answer.__name__, person),
        Move(blocked, queued, actions.retry.__name__, person),
        *(Move(status, TaskStatus.CANCELED, actions.cancel.__name__, person) for status in (queued, working, blocked)),
    ]


def waits() -> list[tuple[str, list[StatusReason]]]:
    """Return the reasons of a block by what continues the task."""
    timed = WAITS_FOR_OTHERS | WAITS_FOR_TIME
    return [
        ("another task ends", [reason for reason in StatusReason if reason in WAITS_FOR_OTHERS]),
        ("time passes", [reason for reason in StatusReason if reason in WAITS_FOR_TIME]),
        ("a person acts", [reason for reason in StatusReason if reason not in timed]),
    ]


def by(source: TaskStatus, target: TaskStatus, who: str) -> str:
    """Return what moves a task from one status to another, for one who does."""
    return ", ".join(move.by for move in moves() if (move.source, move.target, move.who) == (source, target, who))


def reasons_of_a_block(x: float, y: float) -> list[str]:
    """Draw the box of blocked tasks, with the reasons by what continues the task."""
    parts = [
        box(x, y, 560, 166, [], "marked"),
        words(x + 16, y + 26, TaskStatus.BLOCKED.value, "code title", "start"),
        words(x + 96, y + 26, "continues when", "small", "start"),
    ]
    row = y + 52
    for about, reasons in waits():
        parts.append(words(x + 16, row, about, "small", "start"))
        for start in range(0, len(reasons), 3):
            line = ", ".join(reason.value for reason in reasons[start : start + 3])
            parts.append(words(x + 142, row, line, "code", "start"))
            row += 20
        row += 6
    return parts


def life() -> str:
    """Draw the statuses of a task, who moves it, and the reasons of a block."""
    queued, working, blocked, done, canceled = (
        TaskStatus.QUEUED, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED, TaskStatus.DONE, TaskStatus.CANCELED,
    )  # fmt: skip
    if set(TaskStatus) != {queued, working, blocked, done, canceled}:
        raise ValueError("a status of a task is missing in the picture")
    peer = "any worker of the role"

    def state(x: float, y: float, status: TaskStatus, about: str, width: float = 150) -> str:
        return box(x, y, width, 58, [(status.value, "code title"), (about, "small")], "marked")

    parts = [
        words(28, 36, f"{submit.submit.__name__}: a person, a program, or a role with a plan", "small", "start"),
        arrow((108, 44), (108, 86)),
        words(118, 70, f"({blocked.value} if it depends on open tasks)", "small", "start"),
        state(28, 88, queued, "waits for a worker", 160),
        state(330, 88, working, "a worker has its lease", 160),
        state(622, 88, done, "has a result"),
        state(622, 320, canceled, "by a person"),
        arrow((188, 104), (328, 104)),
        words(258, 96, f"{Claimer.claim.__name__}: worker", "small"),
        arrow((330, 130), (190, 130)),
        words(258, 148, f"{by(working, queued, 'worker')}: worker", "small"),
        words(258, 165, f"{by(working, queued, peer)}: lease over", "small"),
        arrow((490, 117), (620, 117)),
        words(555, 109, f"{by(working, done, 'worker')}: worker", "small"),
        arrow((430, 146), (430, 240)),
        words(440, 184, f"{by(working, blocked, 'worker')}:", "small", "start"),
        words(440, 201, "worker", "small", "start"),
        words(440, 222, f"{by(working, blocked, peer)}: no attempt is left", "small", "start"),
        arrow((124, 240), (124, 148)),
        words(134, 192, f"{by(blocked, queued, peer)}: a pause is over", "small", "start"),
        words(134, 209, f"{settle.settle.__name__} of the last awaited task", "small", "start"),
        words(134, 226, f"{by(blocked, queued, 'person')}: person", "small", "start"),
        arrow((44, 146), (44, 240)),
        words(50, 192, f"{by(queued, blocked, peer)}:", "small", "start"),
        words(50, 209, "deadline", "small", "start"),
    ]
    parts += [
        *reasons_of_a_block(28, 242),
        arrow((588, 349), (620, 349)),
        words(697, 290, f"{actions.cancel.__name__}: person,", "small"),
        words(697, 307, "from each open status", "small"),
        words(28, 432, f"{done.value} and {canceled.value} are final. Each move is one commit.", "small", "start"),
        words(
            28, 451, "A sweep is done by any worker of the role, also when a deadline passes. There is no coordinator.",
            "small", "start",
        ),
        words(28, 470, "A worker can settle only while its epoch is that of the lease.", "small", "start"),
    ]  # fmt: skip
    return frame(488, "A task's life: statuses, who moves it, reasons of a block", *parts)


# ── a handoff ─────────────────────────────────────────────────────────────────────────────────────────


def handoff() -> str:
    """Draw one objective that a role hands on: the commits of two roles, from top to bottom."""
    queued, working, blocked, done = (
        TaskStatus.QUEUED.value, TaskStatus.IN_PROGRESS.value, TaskStatus.BLOCKED.value, TaskStatus.DONE.value,
    )  # fmt: skip
    status, reason = outcomes()["Handoff"]
    if status.value != blocked or reason is None:
        raise ValueError("a task that hands work on is expected to be blocked")
    why = reason.value
    lanes = {"operator": 90, "architect": 300, "executor": 510, "store": 710}
    height = 500
    parts: list[str] = []
    for name, x in lanes.items():
        parts.append(box(x - 62, 20, 124, 36, [(name, "title")]))
        parts.append(f'<path class="life" d="M{x} 56 L{x} {height - 20}"/>')
    steps = [
        ("operator", [f"{submit.submit.__name__}: create task T, {queued}"]),
        ("architect", [f"{Claimer.claim.__name__}: T is {working}, epoch 1"]),
        ("architect", [f"{settle.settle.__name__}: T is {blocked} ({why}),", "create C and its envelope, end run T.1"]),
        ("executor", [f"{Claimer.claim.__name__} C,", "open its envelope"]),
        ("executor", [f"{settle.settle.__name__}: C is {done},", f"T is {queued}, end run C.1"]),
        ("architect", [f"{Claimer.claim.__name__}: T, epoch 2, with the result of C"]),
        ("architect", [f"{settle.settle.__name__}: T is {done}, end run T.2"]),
    ]  # fmt: skip
    y = 84
    for who, lines in steps:
        x = lanes[who]
        for line in lines:
            parts.append(f'<text x="{x + 12}" y="{y}" class="small halo" text-anchor="start">{escape(line)}</text>')
            y += 18
        parts.append(arrow((x, y - 6), (lanes["store"] - 2, y - 6)))
        y += 34
    return frame(height, "A handoff: each arrow is one commit", *parts)


# ── a team ────────────────────────────────────────────────────────────────────────────────────────────


def team() -> str:
    """Draw an objective that a team works on: a plan, a review, work that is sent back, and the files between them."""
    parts = [
        box(300, 20, 200, 52, [("architect", "title"), ("plans, is woken, judges", "small")], "marked"),
        box(28, 140, 150, 52, [("scout", "title"), ("task a", "small")]),
        box(198, 140, 150, 52, [("scout", "title"), ("task b", "small")]),
        box(398, 140, 180, 52, [("executor", "title"), ("task c, after a and b", "small")]),
        box(628, 140, 150, 52, [("predictor", "title"), ("task d, reviews c", "small")]),
        arrow((330, 72), (110, 138)),
        arrow((360, 72), (275, 138)),
        arrow((410, 72), (470, 138)),
        arrow((470, 72), (690, 138)),
        words(608, 88, "1. a plan: four tasks", "small", "start"),
        arrow((103, 192), (103, 240)),
        arrow((273, 192), (273, 240)),
        arrow((488, 192), (488, 240)),
        box(28, 242, 550, 44, [("files and answers, in the blob store", "small")], "marked"),
        arrow((430, 242), (430, 194)),
        words(422, 222, "inputs/a, inputs/b", "small", "end"),
        arrow((578, 264), (690, 194)),
        words(650, 250, "inputs/c", "small", "start"),
        box(398, 340, 180, 52, [("executor", "title"), ("task c~2", "small")]),
        words(388, 360, "2. sent back: the conversation and", "small", "end"),
        words(388, 378, "the files of c, and what is wanted", "small", "end"),
        arrow((488, 286), (488, 338)),
        words(
            28, 430, "3. The architect finishes: the files of c~2 are the result of the objective.", "small", "start"
        ),
        words(28, 450, "A task that fails wakes the architect at once, while the others go on.", "small", "start"),
    ]
    return frame(470, "A team: what each task gives is an input of those that depend on it", *parts)


# ── a port ────────────────────────────────────────────────────────────────────────────────────────────


def port() -> str:
    """Draw how a published node becomes a Python node: source, recording, schema, node, tests, report."""
    steps = read_pipeline(ROOT / "pipelines" / "node.yaml").pipeline.by_id
    names = ("source-ingest", "schema-infer", "node-scaffold", "test-generate", "code-validate")
    ingest, infer, scaffold, tests, validate = (steps[name].id for name in names)

    def step(x: float, y: float, name: str, about: str) -> str:
        return box(x, y, 224, 56, [(name, "code title"), (about, "small")])

    parts = [
        box(28, 28, 200, 56, [("published node", "title"), ("its description and its code", "small")]),
        arrow((228, 56), (286, 56)),
        step(288, 28, ingest, "runs it with a recorder"),
        words(400, 102, "confined, without network", "small"),
        arrow((512, 56), (570, 56)),
        box(572, 28, 200, 56, [("recording", "title"), ("inputs, requests, items", "small")], "marked"),
        arrow((600, 84), (600, 118), (135, 118), (135, 158)),
        arrow((640, 84), (640, 132), (400, 132), (400, 158)),
        arrow((680, 84), (680, 158)),
        step(28, 160, infer, "method, address, places"),
        step(288, 160, scaffold, "code by templates"),
        step(548, 160, tests, "each input is a test"),
        *(arrow((x, 216), (x, 258)) for x in (140, 400, 660)),
        box(28, 260, 224, 56, [("schema", "title"), ("with the lines that prove it", "small")], "marked"),
        box(288, 260, 224, 56, [("Python node", "title"), ("client, transport, package", "small")], "marked"),
        box(548, 260, 224, 56, [("expectations", "title"), ("requests and items", "small")], "marked"),
        arrow((252, 288), (286, 288)),
        arrow((400, 316), (400, 366)),
        arrow((660, 316), (660, 394), (514, 394)),
        words(588, 384, "compared outside", "small"),
        step(288, 368, validate, "replays, then changes the code"),
        arrow((288, 396), (254, 396)),
        box(28, 368, 224, 56, [("report", "title"), ("what is proven, or why not", "small")], "marked"),
        words(28, 460, "An advisor writes what no template explains; the same replay judges it.", "small", "start"),
    ]
    return frame(480, "A port: what the original sent is what the Python node has to send", *parts)


def pictures() -> Iterator[tuple[Path, str]]:
    """Yield each picture with its path."""
    yield PICTURES / "whole.svg", whole()
    yield PICTURES / "task.svg", life()
    yield PICTURES / "handoff.svg", handoff()
    yield PICTURES / "team.svg", team()
    yield PICTURES / "port.svg", port()
