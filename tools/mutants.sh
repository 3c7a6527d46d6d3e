#!/bin/sh
# Install the mutation testing tool into .tools/mutants. The Makefile calls it only when its requirements changed.
set -eu
cd "$(dirname "$0")/.."
. tools/find.sh

find_or_install_uv
"$uv" venv --quiet --clear --python "$python" .tools/mutants
"$uv" pip install --quiet --python .tools/mutants/bin/python --require-hashes --requirement tools/mutants.txt
touch .tools/mutants/.ready
