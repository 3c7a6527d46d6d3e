#!/bin/sh
# Put a small embedding model (16 MB, without its package) into .tools/vectors, for benchmarks/recall_bench.py.
set -eu
cd "$(dirname "$0")/.."
. tools/find.sh

python=$(find_python)
uv=$(find_uv)
if [ -z "$uv" ]; then
    install_uv "$(find_pip "$python")" >&2
    uv=$PINNED_UV
fi
prepare_uv
rm -rf .tools/vectors
"$uv" pip install --quiet --python .venv/bin/python --target .tools/vectors --no-deps --require-hashes --requirement tools/vectors.txt
touch .tools/vectors/.ready
