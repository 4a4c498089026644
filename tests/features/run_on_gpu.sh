#!/bin/sh
# Compiles every feature program with nvcc for the card of this machine, runs it, and counts.
#     tests/features/run_on_gpu.sh [name ...]      NVCC=... names another nvcc
# Exit status: 0 if all pass.
cd "$(dirname "$0")" || exit 2
NVCC=${NVCC:-nvcc}
ARCH=${ARCH:-native}
command -v "$NVCC" >/dev/null || { echo "no nvcc; put it on the PATH or name it: NVCC=..."; exit 2; }
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- *.cu

# All are compiled first, as many at a time as there are processors.
for file; do echo "${file%.cu}"; done |
    xargs -P "$(nproc)" -I {} sh -c '"$1" -std=c++17 -arch="$2" -o "$3/{}" "{}.cu" >"$3/{}.log" 2>&1' \
        sh "$NVCC" "$ARCH" "$out"

passed=0 failed=""
for file; do
    name=${file%.cu}
    if [ ! -x "$out/$name" ]; then
        echo "FAIL $name: does not compile"; cat "$out/$name.log"; failed="$failed $name"; continue
    fi
    timeout 60 "$out/$name" >"$out/text" 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        passed=$((passed + 1)); echo "ok   $name: $(tail -n 1 "$out/text")"
    else
        failed="$failed $name"; echo "FAIL $name: exit status $status"; head -n 20 "$out/text"
    fi
done
echo "$passed of $# passed${failed:+; failed:$failed}"
[ -z "$failed" ]
