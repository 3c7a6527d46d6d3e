"""The output of a call as the model sees it. A long one is kept and shown in pages, never cut in the middle."""

from __future__ import annotations

from dataclasses import dataclass, field

from fireswarm.contracts.llm.decision import ActionStep, ActionType, StepExecutionResult, StepStatus
from fireswarm.contracts.text_page import split_pages
from fireswarm.errors import InvalidInput


@dataclass(slots=True)
class Outputs:
    """The long outputs of a run by the names of their steps. A page has at most ``page_chars`` characters."""

    page_chars: int
    _pages: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The steps whose outputs have several pages, the newest last."""
        return list(self._pages)

    def show(self, step: str, text: str) -> str:
        """Return *text*, or its first page and how to read on."""
        pages = split_pages(text, self.page_chars)
        if len(pages) == 1:
            return text
        self._pages[step] = pages
        return self.page(step, 1)

    def page(self, step: str, number: int) -> str:
        """Return a page of an output. Raises InvalidInput if there is none."""
        pages = self._pages.get(step)
        if pages is None:
            known = ", ".join(self._pages) or "none"
            raise InvalidInput(f"unknown output {step!r}; those of several pages: {known}")
        if not 1 <= number <= len(pages):
            raise InvalidInput(f"output {step} has the pages 1 to {len(pages)}")
        more = f"; read on with read_output, output {step}, page {number + 1}" if number < len(pages) else ""
        return f"{pages[number - 1]}\n[page {number} of {len(pages)} of output {step}{more}]"


def text_of(action: ActionStep, result: StepExecutionResult) -> str:
    """Return the result of a step as text: its output, its errors, and the exit code of a command."""
    if result.status is StepStatus.REFUSED:
        return f"refused: {result.stderr_summary}"
    parts = [result.stdout_summary.rstrip("\n")] if result.stdout_summary else []
    if result.stderr_summary:
        command = action.type is ActionType.RUN_COMMAND
        parts.append(f"[stderr]\n{result.stderr_summary.rstrip()}" if command else result.stderr_summary)
    if action.type is ActionType.RUN_COMMAND and (result.exit_code or not parts):
        parts.append(f"[exit code {result.exit_code}]")
    return "\n".join(parts)
