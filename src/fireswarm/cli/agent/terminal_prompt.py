"""The prompt of a chat on a terminal: line editing, history, pastes of several lines. It imports prompt_toolkit."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output


def _keys(stopped: type[Exception]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: get_app().current_buffer.document.text_before_cursor.endswith("\\")))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor()
        event.current_buffer.insert_text("\n")

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\t")

    @keys.add(Keys.Vt100MouseEvent)
    def _(event: KeyPressEvent) -> None:
        pass  # a sequence for a color that is pasted looks like one, and would raise ValueError

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.text = "^C"  # as shells show it
        event.app.exit(exception=stopped())

    return keys


async def read_at_terminal(prompt: str, draft: str, history: Sequence[str], stopped: type[Exception]) -> str | None:
    """Return what the person types after *prompt*, or None for Ctrl+D. Raises *stopped* for Ctrl+C."""
    output = create_output(always_prefer_tty=True)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False  # an answer that comes late would be read as typed by the person
    session: PromptSession[str] = PromptSession(
        output=output,
        input=create_input(),
        history=InMemoryHistory(history),
        key_bindings=_keys(stopped),
        enable_suspend=True,
        input_processors=[TabsProcessor(char1=" ", char2=" ")],
        prompt_continuation=lambda width, number, wraps: "" if wraps else "… ",
    )
    try:
        text = await session.prompt_async(prompt, default=draft, set_exception_handler=False, handle_sigint=False)
    except EOFError:
        return None
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def take_typeahead(*, unfinished: bool) -> str:
    """Return the lines behind a message that came with it; *unfinished*: the last one also if it has no end yet."""
    source = create_input()
    keys = get_typeahead(source)
    ends = [number for number, key in enumerate(keys, 1) if key.key in (Keys.Enter, Keys.ControlJ)]
    complete = len(keys) if unfinished else max(ends, default=0)
    store_typeahead(source, keys[complete:])
    return "".join("\n" if key.key is Keys.Enter else key.data for key in keys[:complete])
