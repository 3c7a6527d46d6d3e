"""The child process of `child_pool`: run the calls that arrive on standard input, one after another."""

from __future__ import annotations

import pickle
from typing import IO

from fireswarm.processes.confinement.container import hide_if_parent_does
from fireswarm.processes.messages import read_message, take_pipes, write_message


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer calls until the parent closes the pipe."""
    while True:
        try:
            message = read_message(requests)
        except EOFError:
            return
        write_message(answers, _answer(message))


def _answer(message: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(message)
        answer: tuple[bool, object] = (True, function(*arguments))
        return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
    except BaseException as error:  # errors of any kind are sent to the parent
        try:
            return pickle.dumps((False, error), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception:  # an error that cannot be pickled is sent as text
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def main() -> None:
    """Serve the parent's pipes."""
    hide_if_parent_does()
    serve(*take_pipes())


if __name__ == "__main__":
    main()
