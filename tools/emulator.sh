#!/bin/sh
# Run a command with Google's Firestore emulator beside it: sh tools/emulator.sh COMMAND [ARGUMENT...]
# firebase-tools sets FIRESTORE_EMULATOR_HOST for the command and downloads the emulator when it is first used.
set -eu

JAVA_NEEDED=21
say() { printf '%s\n' "$*" >&2; }

java_version() { # the major version: 21 for "21.0.4", 8 for "1.8.0_402", nothing when it cannot be told
    java -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

if [ $# -eq 0 ]; then
    say "usage: sh tools/emulator.sh COMMAND [ARGUMENT...]"
    exit 2
fi

missing=0
if ! command -v java >/dev/null 2>&1; then
    say "Google's Firestore emulator needs Java $JAVA_NEEDED or newer, and java is not installed (Debian: apt-get install openjdk-$JAVA_NEEDED-jre-headless)."
    missing=1
else
    version=$(java_version)
    if [ -z "$version" ]; then
        say "Google's Firestore emulator needs Java $JAVA_NEEDED or newer, and \`java -version\` does not say its version: does java start?"
        missing=1
    elif [ "$version" -lt "$JAVA_NEEDED" ]; then
        say "Google's Firestore emulator needs Java $JAVA_NEEDED or newer, and this is Java $version: install a newer one and put it first in PATH."
        missing=1
    fi
fi
for tool in node npx; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        say "Google's Firestore emulator is started by firebase-tools, which needs Node.js, and $tool is not installed."
        missing=1
    fi
done
if [ "$missing" -ne 0 ]; then
    say "Without it: \`swarm store serve --memory\` serves firelite, and FIRESTORE_EMULATOR_HOST points the tests at it."
    exit 1
fi

# emulators:exec takes one string and gives it to a shell: quote every argument for that shell.
script=
for argument in "$@"; do
    script="$script '$(printf '%s' "$argument" | sed "s/'/'\\\\''/g")'"
done

cd "$(dirname "$0")/.."
exec npx --yes firebase-tools emulators:exec --only firestore --project fireswarm-local "$script"
