"""Start and end of a command: imports without garbage collection, streams that can be written, SIGINT at any moment."""

from __future__ import annotations

import codecs
import contextlib
import errno
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

OWN_MODULE = (sys.executable, "-P", "-m")
"""Words that run a module of ours: not one of the same name in the current folder, which may be a stranger's."""

INTERRUPTED = 130
"""Exit code after SIGINT or SIGTERM, as in shells."""

_has_frozen = False
"""True in a process of our commands. Asking the collector would count all frozen objects."""


@contextlib.contextmanager
def without_collector() -> Generator[None]:
    """Import inside this block without garbage collection.

    New classes are never garbage, and scanning them costs up to 20 % of import time. In a process of our commands,
    which has frozen its loaded objects, the new objects are frozen as well: otherwise later collections, and the last
    one at exit, would scan them again. In other processes nothing is frozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _has_frozen:
            gc.freeze()
        if enabled:
            gc.enable()


NO_THREAD = "can't start new thread"
"""Python's words when the system refuses a thread."""

EXHAUSTED = {
    errno.EAGAIN: "the limit of processes and threads is reached: end some, or raise it (`ulimit -u`, or the pids "
    "limit of the container or service)",
    errno.ENOMEM: "there is no memory left: end some programs, or raise the memory limit of the container or service",
    errno.EMFILE: "the limit of open files is reached: raise it (`ulimit -n`)",
    errno.ENFILE: "this machine has no open file left: end some programs",
}
"""What to do when the system refuses a process, a thread or a descriptor, by the number of the error."""

PROBED_THREADS = 2_000
"""Most threads that are started to find out whether so many are allowed."""

FALL_BACK = "fireswarm-fall-back"
"""Name of the error handler of our streams: a character that the terminal cannot show is printed in another way."""

OUTPUT = "standard output"

PLAIN = {
    "…": "...", "•": "*", "·": "*", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-", "‘": "'", "’": "'", "“": '"',
    "”": '"', "„": '"', "→": "->", "←": "<-", "×": "x", "✓": "ok", "✔": "ok", "✗": "x", "✘": "x", "│": "|", "─": "-",
    "━": "-", "┃": "|", "├": "+", "└": "+", "┌": "+", "┐": "+", "┘": "+", "\u00a0": " ", "\u202f": " ",
}  # fmt: skip
"""What is printed for a character without a place in the encoding; for others, a question mark."""


OUTPUT_OPTION = "fireswarm_output"
"""Option ``-X`` of the interpreter with the encoding of standard output that ``use_utf8`` found."""


def use_utf8() -> None:
    """Start this process again in Python's UTF-8 mode if the locale has another encoding, such as ASCII.

    Otherwise names of files that are not ASCII would be no valid text, which neither a store nor a hash takes. Output
    still has the encoding of the locale.
    """
    if sys.platform == "win32" or sys.getfilesystemencoding() == "utf-8" or sys.flags.utf8_mode:
        return
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    options = ["-X", f"{OUTPUT_OPTION}={encoding}"]
    os.environ["PYTHONUTF8"] = "1"  # for role processes and skills as well
    os.execv(sys.executable, [sys.executable, *options, *sys.orig_argv[1:]])


def prepare_streams() -> None:
    """Make the standard streams usable in any environment.

    The null device is opened for each stream that the caller closed; otherwise a file would get its number. Output is
    never refused for a character that the encoding lacks, and input never for bytes that are no text.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end
    codecs.register_error(FALL_BACK, _fall_back)
    options: dict[str, Any] = vars(sys)["_xoptions"]
    encoding = options.get(OUTPUT_OPTION)
    for stream, handler in ((sys.stdin, "replace"), (sys.stderr, FALL_BACK), (sys.stdout, FALL_BACK)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream is sys.stdin else encoding, errors=handler)
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Output):
        encoding, by_line = stream.encoding, stream.line_buffering
        # A wrapper that nobody holds closes its buffer; the interpreter holds its own one.
        buffer = stream.buffer if stream is sys.__stdout__ else stream.detach()
        sys.stdout = Output(buffer, encoding, FALL_BACK, line_buffering=by_line)


class Output(io.TextIOWrapper):
    """Standard output. An error of it names OUTPUT as its file, so that it can be told from errors of other files."""

    def write(self, text: str, /) -> int:
        """Write *text*. Raises OSError."""
        try:
            return super().write(text)
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from error

    def flush(self) -> None:
        """Write what is buffered. Raises OSError."""
        try:
            super().flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT) from error


def _fall_back(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(char, "?") for char in error.object[error.start : error.end]), error.end


def is_unicode(stream: Any) -> bool:
    """Return True if the stream can show every character."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def end_output() -> str:
    """Write what is left for the standard streams. Returns the error of standard output, or ""."""
    reason = ""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if stream is sys.stdout and isinstance(error, OSError):
                reason = describe_output_error(error)
            _discard(stream)
    return reason


def describe_output_error(error: OSError) -> str:
    """Return why standard output lost a part, or "" if its reader wants no more, as ``head`` does when it ends."""
    return "" if isinstance(error, BrokenPipeError) else f"{OUTPUT} cannot be written: {error.strerror}"


def _discard(stream: Any) -> None:
    """Send the rest of a broken stream to the null device: the interpreter writes it at its end, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def stop_on_interrupt() -> None:
    """From now on, SIGINT ends this process without a traceback, with exit code INTERRUPTED.

    During an import the process ends at once: an exception would be raised at any place of foreign code, some of which
    ignores it. Elsewhere it is KeyboardInterrupt. A caller's choice to ignore the signal is respected.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) in (
        signal.default_int_handler,
        _end_now,
    ):
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _end_if_interrupted


def end_on_interrupt() -> None:
    """From now on, SIGINT ends this process at once: nothing is left to do but to end."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) in (
        signal.default_int_handler,
        _interrupt,
    ):
        signal.signal(signal.SIGINT, _end_now)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end_now()
        frame = frame.f_back
    raise KeyboardInterrupt


def _end_now(*_: object) -> NoReturn:
    with contextlib.suppress(Exception):  # the signal may have come during a write
        sys.stdout.flush()
    os._exit(INTERRUPTED)


def _end_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """End the process if an interrupt came where exceptions are lost, such as in ``__del__``."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end_now()
    sys.__unraisablehook__(unraisable)


def why_exhausted(error: BaseException) -> str:
    """Return what to do if the system refused a process, a thread or a descriptor, or ""."""
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return EXHAUSTED[errno.EAGAIN]
    if isinstance(error, MemoryError):
        return EXHAUSTED[errno.ENOMEM]
    return EXHAUSTED.get(error.errno or 0, "") if isinstance(error, OSError) else ""


def require_threads(number: int) -> None:
    """Raise BlockingIOError unless the system allows *number* more threads, which it counts as processes.

    gRPC ends the process if it cannot start its threads, so they are tried first. A thousand take 50 ms.
    """
    over = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(min(number, PROBED_THREADS)):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise BlockingIOError(errno.EAGAIN, f"{number:,} more processes and threads are needed") from error
    finally:
        over.set()
        for thread in started:
            thread.join()


def run_loop[T](call: Callable[..., Awaitable[T]], *args: Any, options: dict[str, Any] | None = None) -> T:
    """Run an async function. SIGINT cancels it, for which asyncio needs to find Python's own handler."""
    import anyio

    ours = signal.getsignal(signal.SIGINT) is _interrupt
    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return anyio.run(call, *args, backend_options=options)
    finally:
        if ours:
            signal.signal(signal.SIGINT, _interrupt)


def freeze() -> None:
    """Exclude all current objects from garbage collection.

    Called when a command is loaded and when it ends: with a provider's SDK, the interpreter's last collection at exit
    would take a quarter of a second, for memory that is freed anyway.
    """
    global _has_frozen
    _has_frozen = True
    gc.freeze()


def loop_options() -> dict[str, Any]:
    """Return options for ``anyio.run``: uvloop if installed, which saves a tenth of a worker's time.

    uvloop starts processes by fork and exec. gRPC's fork support would interrupt it for each fork, without
    need: the child processes never use gRPC.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    return {"use_uvloop": sys.platform != "win32" and find_spec("uvloop") is not None}
