"""Block model SDKs in the process of a deterministic skill: importing them fails."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator
from types import ModuleType
from typing import cast

MODEL_SDKS = (
    "anthropic", "cohere", "google.genai", "google.generativeai", "groq", "huggingface_hub", "langchain",
    "langchain_core", "litellm", "llama_cpp", "mistralai", "ollama", "openai", "transformers", "vertexai", "vllm",
    "fireswarm.llm",
)  # fmt: skip
"""Packages that call or run a model, including our own."""


def is_model_sdk(module: str) -> bool:
    """Return True if *module* belongs to a model SDK."""
    return any(module == name or module.startswith(f"{name}.") for name in MODEL_SDKS)


@contextlib.contextmanager
def without_model_sdks() -> Generator[None]:
    """Make imports of model SDKs raise ImportError inside the block, even if another skill imported them before."""
    loaded = {name: module for name, module in sys.modules.items() if is_model_sdk(name)}
    hidden = {*loaded, *MODEL_SDKS}
    for name in hidden:
        sys.modules[name] = cast(ModuleType, None)  # None in sys.modules makes the import fail
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
        sys.modules.update(loaded)
