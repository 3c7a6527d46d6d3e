#!/bin/sh
# Resolve the dependencies into requirements.lock (everything) and requirements-run.lock (the demo and a role's
# container). firelite is of this repository: its dependencies are locked, itself is not. Versions stay as they are unless pyproject.toml rules them out; arguments such as `--upgrade` go to uv.
# The format depends on uv's version, so this uses the pinned one.
set -eu
cd "$(dirname "$0")/.."
. tools/find.sh

python=$(find_python)
if ! have_pinned_uv; then
    pip=$(find_pip "$python")
    say "installing uv $(uv_version) into .tools/"
    install_uv "$pip" >&2
fi
prepare_uv

lock() { "$PINNED_UV" pip compile --quiet --universal --generate-hashes --no-header --no-emit-package firelite --python "$python" --python-version 3.12 "$@" pyproject.toml; }

lock "$@" --extra predict --extra report --extra mcp --extra a2a --extra pipeline --extra openai --extra bedrock --extra otel --group dev -o requirements.lock
lock --extra report --extra pipeline --group build --constraint requirements.lock -o requirements-run.lock
