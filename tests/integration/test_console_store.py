"""The console's store, memory and mail: queries with their plan, backups that restore, facts that are marked wrong."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.api.console.pages.work.files import sort_rows
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Delete, Merge
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef
from fireswarm.settings import Settings
from fireswarm.storage.documents.paths import MEMORY, task_path
from fireswarm.swarm.opening.archive import MAX_BACKUPS, restore
from tests.support.console import Browser, open_browser
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def learn(swarm: SwarmRig, value: str, task_id: str = "", source: str = "") -> None:
    fact = Fact(bucket="office", key="door", value=value, evidence=("plan.pdf, page 3",), source=source)
    await swarm.store.commit(await swarm.core.memory.learn("s1", task_id, [fact]))


async def address_of_fact(browser: Browser) -> str:
    [address] = re.findall(r'href="/ui(/memory/[^"]+)"', await browser.page("/memory"))
    return address


async def test_query_shows_its_documents_its_index_and_its_reads(browser: Browser) -> None:
    for number in range(3):
        await browser.swarm.submit(f"task {number}")
    await browser.swarm.claim_one()
    asked = "/store/query?collection=agent_tasks&field=status&operator=%3D%3D&value=queued&order=-updated_at"
    page = await browser.page(asked)
    assert "<strong>2</strong> documents, 2 reads" in page
    assert "<code>Collection (status ASC, updated_at DESC, __name__ DESC)</code>" in page
    times = "collection=agent_tasks&field=updated_at&operator=%3E%3D"
    assert "<strong>3</strong>" in await browser.page(f"/store/query?{times}&value=2020-01-01T00:00Z")
    assert "<strong>0</strong>" in await browser.page(f"/store/query?{times}&value=2126-01-01T00:00Z")
    listed = "collection=agent_tasks&field=status&operator=in&value=%5B%22queued%22%5D"
    assert "<strong>2</strong>" in await browser.page(f"/store/query?{listed}")


@pytest.mark.parametrize(
    "asked",
    [
        "collection=secrets",
        "collection=agent_tasks&field=a..b&operator=%3D%3D",
        "collection=agent_tasks&field=status&operator=like&value=x",
        "collection=agent_tasks&field=status&operator=in&value=x",
        "collection=agent_tasks&order=a/b",
        "collection=agent_runs&field=error&operator=%3D%3D&value=x",
        f"collection=agent_runs&field=role&operator=in&value={quote(json.dumps([*range(99)]))}",
        "collection=agent_runs&field=role&operator=not-in&value=%5B%5D",
    ],
)
async def test_what_is_no_query_is_said_on_a_page(browser: Browser, asked: str) -> None:
    page = await browser.page(f"/store/query?{asked}", 422)
    assert 'role="alert"' in page and "<label>Collection" in page


async def test_any_value_of_a_query_is_a_value_and_not_a_fault(browser: Browser) -> None:
    for value in ("1" + "0" * 400, "NaN", '{"__a": 1}', "[" * 5_000, "\ud800", "\x00", "9999-99-99T99:99Z"):
        asked = {"collection": "agent_tasks", "field": "status", "operator": "==", "value": value}
        shown = await browser.client.get("/ui/store/query", params={**asked, "value": value.encode("utf-8", "replace")})
        assert shown.status_code in (200, 422), value


async def test_viewer_runs_no_query_and_writes_no_backup(browser: Browser) -> None:
    async with open_browser(browser.swarm, ConsoleRole.VIEWER) as viewer:
        assert "may only look" in await viewer.page("/store/query?collection=agent_tasks", 422)
        assert (await viewer.send("/store/backup")).status_code == 403


async def test_fact_has_a_history_and_is_marked_as_wrong_and_right(browser: Browser) -> None:
    swarm = browser.swarm
    await learn(swarm, "green <b>")
    await swarm.clock.advance(60)
    await learn(swarm, "red")
    [address] = re.findall(r'href="/ui(/memory/[^"]+)"', await browser.page("/memory"))
    page = await browser.page(address)
    assert "red" in page and "green &lt;b&gt;" in page and "plan.pdf, page 3" in page
    assert page.count("plan.pdf, page 3") == 2  # of the earlier value too
    sent = await browser.send(f"{address}/mark", mark="wrong", reason="it was painted")
    assert sent.headers["location"].startswith(f"/ui{address}?done=fact_wrong.")
    assert "It is marked as wrong: no agent is told it. Reason: it was painted" in await browser.page(address)
    assert "wrong</span>" in await browser.page("/memory")
    assert await swarm.client.recall("office door") == []
    await browser.send(f"{address}/mark", mark="right")
    assert [fact.value for fact in await swarm.client.recall("office door")] == ["red"]
    assert (await browser.send(f"{address}/mark", mark="odd")).status_code == 422
    sent = await browser.send(f"{address}/correct", value="blue\r\nand white")
    assert sent.headers["location"].startswith(f"/ui{address}?done=fact_corrected.")
    assert [fact.value for fact in await swarm.client.recall("office door")] == ["blue\nand white"]
    assert "a person, who corrected it" in await browser.page(address)
    assert (await browser.send(f"{address}/correct", value=" ")).status_code == 422
    await swarm.client.correct_fact(address.rpartition("/")[2], {"colour": "blue"})
    assert "not JSON" not in (page := await browser.page(address)) and "as JSON" in page
    assert (await browser.send(f"{address}/correct", value="{blue}")).status_code == 422
    await browser.send(f"{address}/correct", value='{"colour": ["red"]}')
    assert (await swarm.client.fact_history(address.rpartition("/")[2]))[0].value == {"colour": ["red"]}
    assert "{&#34;colour&#34;: [&#34;red&#34;]}" in await browser.page("/memory")
    assert "{&#34;colour&#34;: &#34;blue&#34;}" in await browser.page(address)
    sent = await browser.send(f"{address}/forget")
    assert sent.headers["location"].startswith("/ui/memory?done=fact_forgotten.")
    assert await browser.page(address, 404)
    assert await browser.page("/memory/nothing", 404)


@pytest.mark.parametrize(
    ("source", "shown", "listed"),
    [
        ("", "", "<td>task <a href="),
        ("scout, task {}", "", "<td>scout, task <a href="),
        ("{}", "", "<td><a href="),
        ("plan <1>", "plan &lt;1&gt;; ", "<td>plan &lt;1&gt;</td>"),
    ],
)
async def test_fact_names_the_role_and_the_task_that_wrote_it(
    browser: Browser, source: str, shown: str, listed: str
) -> None:
    task = await browser.swarm.submit("look at <doors>")
    await learn(browser.swarm, "red", task.task_id, source.format(task.task_id))
    link = f'<a href="/ui/tasks/{task.task_id}">'
    page = await browser.page(await address_of_fact(browser))
    assert f"<dd>{shown}scout in {link}look at &lt;doors&gt;</a></dd>" in page
    facts = await browser.page("/memory")
    assert listed in facts and facts.count(link) == listed.count("<a ")


@pytest.mark.parametrize("earlier_version", [False, True])
async def test_corrected_value_is_of_a_person_and_the_task_belongs_to_the_wrong_one(
    browser: Browser, *, earlier_version: bool
) -> None:
    swarm = browser.swarm
    task = await swarm.submit("look at doors")
    await learn(swarm, "red", task.task_id)
    await swarm.clock.advance(60)
    address = await address_of_fact(browser)
    fact_id = address.rpartition("/")[2]
    await swarm.client.correct_fact(fact_id, "blue")
    stored = (await swarm.store.get(f"{MEMORY}/{fact_id}")).data or {}
    assert not stored["source_task_id"]
    if earlier_version:
        await swarm.store.commit([Merge(f"{MEMORY}/{fact_id}", {"source_task_id": task.task_id})])
    now, _, before = (await browser.page(address)).partition("<h2>Earlier values</h2>")
    assert "<dd>a person, who corrected it</dd>" in now and task.task_id not in now
    assert f'By scout in <a href="/ui/tasks/{task.task_id}">' in before


async def test_fact_of_a_task_that_was_deleted_keeps_its_source(browser: Browser) -> None:
    task = await browser.swarm.submit()
    await learn(browser.swarm, "red", task.task_id)
    await browser.swarm.store.commit([Delete(task_path(task.task_id))])
    assert f"<dd>task {task.task_id}</dd>" in await browser.page(await address_of_fact(browser))


async def test_mail_of_one_task_is_shown_alone(browser: Browser) -> None:
    swarm = browser.swarm
    for task in (first := await swarm.submit("first"), await swarm.submit("second")):
        envelope = Envelope(
            envelope_id=f"about-{task.objective}",
            task=TaskRef(task_id=task.task_id, assigned_to="scout"),
            session_hash="s1",
            notes=f"look at the {task.objective}",
            trace=task.trace,
        )
        await swarm.core.mailbox.send(envelope, "architect", "scout", sender_role="architect")
    both, alone = await browser.page("/mail"), await browser.page(f"/mail?task={first.task_id}")
    assert "look at the first" in both and "look at the second" in both
    assert "look at the first" in alone and "look at the second" not in alone


async def test_table_is_sorted_by_a_column(browser: Browser) -> None:
    table = Artifact(type="data", name="t.csv", mime="text/csv", value="name,size\nb,10\nc,9\na,x\n")
    task = await browser.swarm.submit("makes a table")
    await browser.swarm.settle(await browser.swarm.claim_one(), done(artifacts=(table,)))
    for sort, names in (("", "bca"), ("0", "abc"), ("1", "cba"), ("-1", "abc"), ("99", "bca"), ("١", "bca")):
        page = await browser.page(f"/tasks/{task.task_id}/files/0/shown?sort={sort}")
        assert "".join(re.findall(r"<tr><td>(\w)</td>", page)) == names, sort
    assert sort_rows([["2"], [], ["1"]], "0") == [["1"], ["2"], []]


async def test_backup_is_written_beside_the_store_and_restores(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    async with Swarm.open(settings=settings) as swarm:
        submitted = await swarm.submit("keep me", role="scout")
        rig = SwarmRig(swarm.parts, swarm.parts.clock, None)  # type: ignore[arg-type]
        async with open_browser(rig) as browser:
            assert "There is no backup of this console yet" in await browser.page("/store")
            sent = await browser.send("/store/backup")
            assert sent.headers["location"].startswith("/ui/store?done=backed_up.")
            page = await browser.page("/store")
            [name] = re.findall(r"<code>([^<]+\.tar\.gz)</code>", page)
            assert re.search(r"[1-9][\d,]* documents have [1-9][\d,]* bytes", page)
    folder = Path(name).parent
    assert (await anyio.Path(name).stat()).st_mode & 0o077 == 0
    for number in range(MAX_BACKUPS + 3):
        (folder / f"2020-01-01T00-00-{number:02}-000000.tar.gz").write_bytes(b"old")
    (folder / "mine.tar.gz").write_bytes(b"not of the console")
    async with Swarm.open(settings=settings) as swarm:
        await swarm.cancel(submitted)
        async with open_browser(SwarmRig(swarm.parts, swarm.parts.clock, None)) as browser:  # type: ignore[arg-type]
            await browser.send("/store/backup")
    kept = sorted(path.name for path in folder.glob("[!.]*"))
    assert len(kept) == MAX_BACKUPS + 1 and "mine.tar.gz" in kept and Path(name).name in kept
    restore(Path(name), settings.path(settings.store.data), None, overwrite=True)
    async with Swarm.open(settings=settings) as swarm:
        assert (await swarm.get(submitted)).status.value == "queued"
