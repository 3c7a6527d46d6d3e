"""Every error that fireswarm raises on purpose.

The tree::

    FireswarmError            code, message that says what to do, retryable or not
    ├── ConfigError           settings, role cards, policies: fix the file and start again
    ├── InvalidInput          a task, envelope, answer or plan that breaks its contract
    │   ├── NewerDocument     a newer version wrote the document; this one leaves it alone
    │   ├── GraphInvalid      a task graph with a cycle, an unknown role, or too many tasks
    │   ├── PolicyRefused     a handoff that mailbox/ does not allow
    │   ├── StaleAnswer       an answer to a question that is not open: answered, withdrawn or never asked
    │   ├── HostRefused       an address inside a network, which only the operator can open
    │   └── ResumeRefused     cannot resume: no stored state, or a stale or unknown token
    │       └── ContextEnded  its last turn ended it for good
    ├── NotFound              no such task, run, message, role or skill
    ├── Conflict              the document changed since it was read (or exists already)
    │   ├── LeaseLost         the caller's epoch is stale: it may commit nothing to this task
    │   ├── WorkEdited        the task asks for other work than the turn has done
    │   └── VersionConflict   the conversation went on since it was read
    ├── DuplicateMessage      a message was handled before; the error carries the answer it got
    ├── QueueFull             too many tasks wait for the role; nothing was submitted
    ├── TerminalTask          done and canceled tasks never change again
    ├── StepUncertain         a step was started, not journaled as finished, and may not be repeated
    ├── SkillFailed           a skill raised or returned something that is not a result
    ├── ToolFailed            a tool failed although its input was valid: no answer, a time limit
    │   └── SandboxRefused    no working sandbox on this machine; code not executed
    │       └── PlaceRefused  a place that the code would see is gone or a link; code not executed
    ├── GitFailed             git is missing, failed, or would read files of another folder
    ├── GateFailed            a pipeline step's output or request failed its gate
    ├── NotDone               a task that a program waited for did not end as done
    ├── NoProgress            a run of the mind repeats itself
    ├── ThoughtFailed         a run of the mind ended without a result
    ├── BudgetExceeded        tokens or money of a task, session or day are used up; no call was made
    ├── ModelError            a model could not be asked, or its answer could not be used
    │   ├── MissingApiKey     the provider's key is not in the environment; no call was made
    │   ├── ModelUnavailable  rate limit, overload, network: the same request may succeed later
    │   │   └── ModelPaused   the provider asks for a longer pause than a run waits for
    │   ├── ModelRejected     the provider will never take this request as it is
    │   └── DecisionInvalid   no decision could be decoded, repair included
    └── StoreError            the document store refused or could not be reached
        ├── StoreUnavailable  retry later: not reachable, overloaded, or lock wait exceeded
        ├── StoreFull         no room on the disk or quota exhausted
        ├── StoreRejected     what was sent can never be stored as it is
        └── IndexMissing      the query is not covered by firestore.indexes.json
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar


class FireswarmError(Exception):
    """Base of all errors here: ``code`` is stable, ``str(error)`` says what failed and how to fix it.

    ``redo_steps`` names journaled steps whose results caused the error: a retry by the operator runs them again.
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    redo_steps: tuple[str, ...] = ()


class ConfigError(FireswarmError):
    """A settings file, role card or policy is invalid; the message names file, key and fix."""

    code = "config_error"


class InvalidInput(FireswarmError):
    """The caller's input is invalid; nothing was written."""

    code = "invalid_input"


class GraphInvalid(InvalidInput):
    """A task graph has a cycle, an unknown role or dependency, or too many tasks; nothing was written."""

    code = "graph_invalid"


class NewerDocument(InvalidInput):
    """A document of a newer version, or a value that this version does not know; it is left as it is.

    ``version`` is its schema version, if that is newer. A task that needs the document is left to other agents, for
    ``retry_after`` seconds at first.
    """

    code = "newer_document"
    retry_after = 30.0

    def __init__(self, message: str, *, version: int | None = None) -> None:
        super().__init__(message)
        self.version = version


class PolicyRefused(InvalidInput):
    """The handoff policy in ``mailbox/`` does not allow this message; nothing was sent."""

    code = "policy_refused"


class StaleAnswer(InvalidInput):
    """The question of an answer is no longer open; the answer is valid for no other question. Nothing was written."""

    code = "stale_answer"


class HostRefused(InvalidInput):
    """A host's address is not on the public internet, and the operator has not allowed it; nothing was sent."""

    code = "host_refused"


class ResumeRefused(InvalidInput):
    """A conversation cannot be resumed: it has no state, or the token is stale or was never issued."""

    code = "resume_refused"


class ContextEnded(ResumeRefused):
    """The conversation ended; a new one needs another context id."""

    code = "context_ended"


class NotFound(FireswarmError):
    """The named document, role or skill does not exist."""

    code = "not_found"


class NotDone(FireswarmError):
    """A task that a program waited for was not done; ``task_id`` names it."""

    code = "not_done"

    def __init__(self, message: str, task_id: str = "") -> None:
        super().__init__(message)
        self.task_id = task_id


class Conflict(FireswarmError):
    """A precondition failed: the document changed since it was read, or exists already.

    ``ambiguous`` is true if an earlier attempt of the same commit may have been applied (the connection broke before
    the response): the caller must read the document before deciding.
    """

    code = "conflict"

    def __init__(self, message: str, *, ambiguous: bool = False, exists: bool = False) -> None:
        super().__init__(message)
        self.ambiguous = ambiguous
        self.exists = exists


class LeaseLost(Conflict):
    """The lease passed to another holder or was canceled; the old epoch can commit nothing."""

    code = "lease_lost"


class WorkEdited(Conflict):
    """A person edited the objective or context of a task during its turn: the result is of other work.

    Nothing was written.
    """

    code = "work_edited"


class VersionConflict(Conflict):
    """The conversation changed since it was read; nothing was written. Load it again, or give up."""

    code = "version_conflict"


class DuplicateMessage(FireswarmError):
    """The message was already handled; nothing was written.

    ``response`` is the response to the first message, or None if it was too large to store.
    """

    code = "duplicate_message"

    def __init__(self, message: str, response: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.response = response


class QueueFull(FireswarmError):
    """Too many tasks wait for the role; nothing was written."""

    code = "queue_full"


class TerminalTask(FireswarmError):
    """The task is done or canceled, and a terminal task never changes again."""

    code = "terminal_task"


class StepUncertain(FireswarmError):
    """A step started before a crash, was never journaled as finished, and is not declared idempotent.

    ``step`` is the name for the operator's decision.
    """

    code = "step_uncertain"

    def __init__(self, message: str, step: str = "") -> None:
        super().__init__(message)
        self.step = step


class SkillFailed(FireswarmError):
    """A skill raised an error, or returned something other than a SkillResult."""

    code = "skill_failed"


class SkillRefused(SkillFailed):
    """A skill was not run: its requirements are not met here, or its inputs are invalid. The model gets the reason."""

    code = "skill_refused"


class ToolFailed(FireswarmError):
    """A tool failed although its input was valid; the model gets the reason."""

    code = "tool_failed"


class SandboxRefused(ToolFailed):
    """The sandbox does not work on this machine, so the code was not run; the message says what is missing."""

    code = "sandbox_refused"


class PlaceRefused(SandboxRefused):
    """A place that the code would see cannot be opened, or a link has replaced it, so the code was not run."""


class GitFailed(FireswarmError):
    """git is missing, failed or took too long; the message contains git's own words."""

    code = "git_failed"


class GateFailed(FireswarmError):
    """The output of a pipeline step failed its gate and was discarded. The message lists every fault."""

    code = "gate_failed"


class StoreError(FireswarmError):
    """The document store rejected the request; the message contains the store's error text.

    ``ambiguous`` is true if a commit may have been applied all the same: the caller must read before deciding.
    """

    code = "store_error"
    ambiguous: bool = False


class StoreUnavailable(StoreError):
    """The store cannot be reached or is overloaded; the same request may succeed later."""

    code = "store_unavailable"
    retryable = True


class StoreFull(StoreError):
    """The disk is full or a quota is exhausted; nothing of the commit was written, and it can be sent again."""

    code = "store_full"
    retryable = True


class StoreRejected(StoreError):
    """The store can never accept the input: a document too large, or an unsupported value."""

    code = "store_rejected"


class IndexMissing(StoreError):
    """The query needs a composite index that ``firestore.indexes.json`` does not list."""

    code = "index_missing"


class NoProgress(FireswarmError):
    """A run of the mind repeats itself: the same action with the same result, or empty answers."""

    code = "no_progress"


class ThoughtFailed(FireswarmError):
    """A run of the mind ended without a result; ``reason`` is a stable code."""

    code = "thought_failed"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class BudgetExceeded(FireswarmError):
    """A budget in tokens or USD would be exceeded; raised before the call."""

    code = "budget_exceeded"


class ModelError(FireswarmError):
    """A model call failed, or its answer was unusable."""

    code = "model_error"


class MissingApiKey(ModelError):
    """The environment has no key for the provider; no call was made."""

    code = "missing_provider_api_key"


class ModelUnavailable(ModelError):
    """A transient fault: 408, 409, 429, 5xx, 529 or the network.

    ``status`` is the HTTP status (0: no response); ``retry_after`` is the pause in seconds that the provider requested.
    """

    code = "model_unavailable"
    retryable = True

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ModelPaused(ModelUnavailable):
    """The requested pause, ``retry_after``, is longer than ``runtime.retry_max_delay_seconds``."""

    code = "model_paused"

    def __init__(self, message: str, until: datetime, *, retry_after: float, status: int = 0) -> None:
        text = f"{message}; it requests a pause until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(text, status=status, retry_after=retry_after)


class ModelRejected(ModelError):
    """The provider rejected the request permanently: wrong key, model, or parameter. ``status`` is the HTTP status."""

    code = "model_rejected"

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class PromptTooLong(ModelRejected):
    """The provider rejected the request, since its prompt is longer than the model's context or a limit of bytes."""

    code = "prompt_too_long"


class DecisionInvalid(ModelError):
    """The model's answer is not a valid decision, even after the JSON fallback and one repair."""

    code = "decision_invalid"
