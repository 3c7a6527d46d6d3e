"""A deterministic skill reaches for no model: inside its process the SDKs of models cannot be imported."""

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
"""Packages that ask or run a model, our own among them."""


def is_model_sdk(module: str) -> bool:
    """Whether importing *module* reaches for a model."""
    return any(module == name or module.startswith(f"{name}.") for name in MODEL_SDKS)


@contextlib.contextmanager
def without_model_sdks() -> Generator[None]:
    """Inside the block, importing one of them raises ImportError, also where another skill had imported it before."""
    loaded = {name: module for name, module in sys.modules.items() if is_model_sdk(name)}
    hidden = {*loaded, *MODEL_SDKS}
    for name in hidden:
        sys.modules[name] = cast(ModuleType, None)  # None in there is how the import system is told no
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
        sys.modules.update(loaded)
