"""The console as an ASGI application: its routes, the check of each request, and the headers of each response."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from fireswarm.api.console.access import Stranger, Visitor
from fireswarm.api.console.forms import MAX_FORM_BYTES, MAX_TEXT_BYTES, read_form
from fireswarm.api.console.live import LivePage
from fireswarm.api.console.pages import agents, documents, inbox, jump, mail, memory, overview, skills, spend
from fireswarm.api.console.pages.work import files, forks, new, questions, run_list, runs, schedules, task, tasks
from fireswarm.api.console.visit import DONE, PREFIX, Download, Goto, Shown, Visit, WebConsole
from fireswarm.api.middleware import LOOPBACK_HOSTS, Gate
from fireswarm.api.problems import refusal_of
from fireswarm.api.session import attachment
from fireswarm.errors import FireswarmError, InvalidInput, StoreUnavailable

STATIC = {name: Path(__file__).parent / "static" / name for name in ("console.css", "console.js", "icon.svg")}

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""No script, style or address but the console's own, and no frame around it: its pages show what strangers wrote."""

_ENDING = {**HEADERS, "Connection": "close"}
SENDER = "fireswarm.sender"
"""Key of the visitor or stranger in the scope of a request."""

ONLY_LOOK = "You may only look: ask for a link of an operator, or for a place in console.operators."

LARGE_FORMS = 4
"""Forms with files that are read at once: each may be as large as a form may be, and is held in memory."""

PAGE_SECONDS = 8.0
"""Time limit for the reads of a page: a store that is gone would let it wait for a minute."""

Answer = Shown | Goto | Download
PageMaker = Callable[[Visit], Awaitable[Answer]]

PAGES: Mapping[str, PageMaker] = {
    "/": overview.show,
    "/inbox": inbox.show,
    "/tasks": tasks.show,
    "/schedules": schedules.show,
    "/schedules/{name}": schedules.show_one,
    "/new": new.show,
    "/tasks/{task_id}": task.show,
    "/tasks/{task_id}/plan": questions.show_plan,
    "/tasks/{task_id}/fork": forks.show_form,
    "/tasks/{task_id}/conversation": forks.show_conversation,
    "/tasks/{task_id}/files/{number}": files.download,
    "/tasks/{task_id}/files/{number}/shown": files.show,
    "/runs": run_list.show,
    "/runs/{run_id}": runs.show,
    "/agents": agents.show,
    "/agents/{agent_id}": agents.show_one,
    "/skills": skills.show,
    "/mail": mail.show,
    "/memory": memory.show,
    "/memory/{fact_id}": memory.show_fact,
    "/spend": spend.show,
    "/store": documents.show,
    "/store/query": documents.show_query,
    "/store/check": documents.show_check,
    "/store/{collection}": documents.show_collection,
    "/jump": jump.show,
}
ACTIONS: Mapping[str, PageMaker] = {
    "/tasks": new.submit,
    "/schedules": schedules.act,
    "/agents": agents.order,
    "/budget": spend.set_budget,
    "/store/backup": documents.back_up,
    "/memory/{fact_id}/mark": memory.mark,
    "/memory/{fact_id}/correct": memory.correct,
    "/memory/{fact_id}/forget": memory.forget,
    "/tasks/chosen": tasks.act_on_chosen,
    "/tasks/{task_id}/plan": questions.change_plan,
    "/tasks/{task_id}/fork": forks.make,
    "/tasks/{task_id}/{action}": task.act,
}

logger = logging.getLogger(__name__)


class AnyCaller:
    """Lets every request through the gate: the console knows its visitors itself."""

    async def allows(self, authorization: str) -> bool:
        """Return True."""
        return True


def make_console(console: WebConsole, hosts: Collection[str] | None = LOOPBACK_HOSTS) -> ASGIApp:
    """Return the application, behind the gate that checks the host and size of requests."""
    routes = [
        Route(f"{PREFIX}/enter", _enter, methods=["GET"]),
        Route(f"{PREFIX}/static/{{name}}", _static, methods=["GET"]),
        Route(f"{PREFIX}/events", _events, methods=["GET"]),
        *(Route(PREFIX + path, _endpoint(make, "GET"), methods=["GET"]) for path, make in PAGES.items()),
        *(Route(PREFIX + path, _endpoint(make, "POST"), methods=["POST"]) for path, make in ACTIONS.items()),
        Route(PREFIX, _to_overview, methods=["GET"]),
        Route("/", _to_overview, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _show_http_error, Exception: _show_fault})
    app.router.redirect_slashes = False
    app.state.console = console
    small, large = (Gate(app, AnyCaller(), console.redactor, hosts, size) for size in (MAX_TEXT_BYTES, MAX_FORM_BYTES))
    at_once = anyio.CapacityLimiter(LARGE_FORMS)

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == f"{PREFIX}/tasks":
            async with at_once:
                await large(scope, receive, send)
        else:
            await small(scope, receive, send)

    return _known_first(gate, console)


def _known_first(app: ASGIApp, console: WebConsole) -> ASGIApp:
    """Return the application that finds out who sends a request, and refuses a body of a stranger before it is read."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            sends = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
            response: Response | None = None
            sender: Visitor | Stranger = Stranger()
            try:
                sender = await console.find_visitor(request)
                if (sends or request.method == "POST") and not isinstance(sender, Visitor):
                    response = Response("open the link of the console first", 401, _ENDING)
                elif request.method == "POST" and isinstance(sender, Visitor) and not sender.acts:
                    response = Response(ONLY_LOOK, 403, _ENDING)
            except StoreUnavailable as error:
                logger.warning("no visitor of the console can be known: %s", error)
                response = Response("Google's keys cannot be fetched: try again in a minute", 503, _ENDING)
            if response is not None:
                await response(scope, receive, send)
                return
            scope = {**scope, SENDER: sender}
        await app(scope, receive, send)

    return check


def _visitor_of(request: Request) -> Visitor | None:
    """Return the visitor that sends a request, or None for a stranger."""
    sender = request.scope.get(SENDER)
    return sender if isinstance(sender, Visitor) else None


def _enter_page(request: Request) -> Shown:
    """Return the page for a stranger, with the address of one whom Google names."""
    sender = request.scope.get(SENDER)
    email = sender.email if isinstance(sender, Stranger) else ""
    return Shown("enter.html", {"email": email}, 403 if email else 401)


def beside_api(api: ASGIApp, console: ASGIApp) -> ASGIApp:
    """Return one application: the console below its prefix, the API elsewhere."""

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        mine = path == PREFIX or path.startswith(f"{PREFIX}/")
        await (console if mine else api)(scope, receive, send)

    return choose


def _endpoint(make: PageMaker, method: str) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a page or an action: it knows the browser, and reports errors as pages."""

    async def endpoint(request: Request) -> Response:
        console: WebConsole = request.app.state.console
        visitor = _visitor_of(request)
        if visitor is None:
            return await _render(console, None, _enter_page(request), request)
        path = {name: str(value) for name, value in request.path_params.items()}
        try:
            form, uploads = await read_form(request)
        except InvalidInput as error:
            return await _respond(console, visitor, _problem(422, "invalid input", str(error)), request)
        if method == "POST" and (reason := _reason_to_refuse(request, visitor, form)):
            return await _respond(console, visitor, _problem(403, "not allowed", reason), request)
        visit = Visit(console, visitor, path, dict(request.query_params), form, uploads)
        answer: Answer = _problem(503, "store away", "The store does not answer. Load the page again in a moment.")
        usage = console.swarm.parts.store.usage
        before = usage.reads
        try:
            with anyio.move_on_after(PAGE_SECONDS) as limit:
                answer = await make(visit)
            console.feed.report_store(away=limit.cancelled_caught)
        except FireswarmError as error:
            refusal = refusal_of(error, console.redactor)
            answer = _problem(refusal.status, refusal.code.replace("_", " "), refusal.detail)
            console.feed.report_store(away=isinstance(error, StoreUnavailable))
        if method == "POST":
            console.feed.forget()
        response = await _respond(console, visitor, answer, request)
        console.feed.reads += usage.reads - before
        return response

    return endpoint


def _reason_to_refuse(request: Request, visitor: Visitor, form: Mapping[str, str]) -> str:
    """Return why an action is refused, or "": only a page of this console, shown to this browser, can ask for one."""
    origin = request.headers.get("origin", "")
    if origin and origin != f"{_scheme_of(request)}://{request.headers.get('host', '')}".lower():
        return "The form is not of this console."
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return "The form is not of this console."
    if not hmac.compare_digest(form.get("token", "").encode(), visitor.form_token.encode()):
        return "The form is too old: load the page again."
    if not visitor.acts:
        return ONLY_LOOK
    return ""


def _scheme_of(request: Request) -> str:
    """Return the scheme of the address in the browser. A proxy tells it; no page of another site can."""
    told = request.headers.get("x-forwarded-proto", "").strip().lower()
    return told if told in ("http", "https") else request.url.scheme


async def _respond(console: WebConsole, visitor: Visitor, answer: Answer, request: Request) -> Response:
    if isinstance(answer, Goto):
        mark = "&" if "?" in answer.path else "?"
        query = f"{mark}{urlencode({'done': visitor.seal(answer.done)})}" if answer.done else ""
        return RedirectResponse(f"{PREFIX}{answer.path}{query}", 303, HEADERS)
    if isinstance(answer, Download):
        return attachment(answer.content, HEADERS)
    waiting = ""
    if not console.feed.away:
        try:
            with anyio.move_on_after(PAGE_SECONDS):
                waiting = (await inbox.find_waiting(console)).count
        except FireswarmError as error:
            logger.warning("the inbox cannot be read: %s", error)
    return await _render(console, visitor, answer, request, waiting)


async def _render(
    console: WebConsole, visitor: Visitor | None, page: Shown, request: Request, waiting: str = ""
) -> Response:
    """Return the response with a page, which a thread makes: other requests go on meanwhile."""
    values: dict[str, Any] = {
        "prefix": PREFIX,
        "visitor": visitor,
        "waiting": waiting,
        "here": request.url.path.removeprefix(PREFIX),
        "done": DONE.get(visitor.unseal(request.query_params.get("done", "")), "") if visitor else "",
        "away": console.feed.away,
        "sent": request.method == "POST",
        "settles": f"{console.feed.settle_seconds:g}",
        **page.values,
    }
    template = console.environment.get_template(page.template)
    text = await to_thread.run_sync(template.render, values)
    return Response(text, page.status, HEADERS, "text/html; charset=utf-8")


def _problem(status: int, title: str, detail: str) -> Shown:
    return Shown("problem.html", {"title": title, "detail": detail}, status)


async def _enter(request: Request) -> Response:
    """Exchange the secret of a link for a cookie. The address without the secret is what the browser keeps."""
    console: WebConsole = request.app.state.console
    entrance = console.entrance
    if request.method == "HEAD":  # of a program that previews links: the link is for a browser
        return Response(headers=HEADERS)
    value = entrance.enter(request.query_params.get("key", ""))
    if value is None and _visitor_of(request) is None:
        return await _render(console, None, _enter_page(request), request)
    response = RedirectResponse(f"{PREFIX}/", 303, HEADERS)
    if value is not None:
        secure = _scheme_of(request) == "https"
        response.set_cookie(entrance.cookie, value, path=PREFIX, httponly=True, samesite="strict", secure=secure)
    return response


async def _static(request: Request) -> Response:
    path = STATIC.get(request.path_params["name"])
    if path is None:
        raise HTTPException(404)
    return FileResponse(path, headers={**HEADERS, "Cache-Control": "no-cache"})


async def _events(request: Request) -> Response:
    console: WebConsole = request.app.state.console
    visitor = _visitor_of(request)
    if visitor is None:
        return Response(status_code=401)
    return LivePage(console.feed, visitor.form_token, console.stopping)


async def _to_overview(request: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", 303, HEADERS)


async def _show_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    title = HTTPStatus(status).phrase
    console: WebConsole = request.app.state.console
    visitor = _visitor_of(request)
    return await _render(console, visitor, _problem(status, title, "There is no such page."), request)


async def _show_fault(request: Request, error: Exception) -> Response:
    logger.error("a page of the console cannot be made", exc_info=error)
    detail = "The console could not make this page: see the log of the process that serves it."
    return await _render(request.app.state.console, None, _problem(500, "internal error", detail), request)
