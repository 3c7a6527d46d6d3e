#!/bin/sh
# Install the mutation testing tool into .tools/mutants. The Makefile calls it only when its requirements changed.
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
"$uv" venv --quiet --clear --python "$python" .tools/mutants
"$uv" pip install --quiet --python .tools/mutants/bin/python --require-hashes --requirement tools/mutants.txt
touch .tools/mutants/.ready
