#!/bin/sh
# Everything that this repository stores as measured, on the GPU of this machine, in one go:
#     benchmarks/measure_gpu.sh FOLDER
# Leaves the results, the executed notebooks and the logs of every step in FOLDER. Each step runs
# whatever became of the one before; the exit status is the number of steps that failed.
cd "$(dirname "$0")/.." || exit 2
out=${1:?usage: benchmarks/measure_gpu.sh FOLDER}
python=${PYTHON:-python3}
mkdir -p "$out"
failed=0
step() {
    name=$1; shift
    start=$(date +%s)
    "$@" >"$out/$name.log" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=$((failed + 1))
    echo "$name: exit status $status, $(($(date +%s) - start)) s"
}
step doctor "$python" -m utils.cli doctor
step features tests/features/run_on_gpu.sh
step run "$python" -m utils.cli run --solutions --save
step edit_to_verdict "$python" benchmarks/edit_to_verdict.py --json "$out/edit_to_verdict.json"
step sanitizers "$python" benchmarks/sanitize_faults.py results/sanitizers --logs "$out/sanitizers"
step profiles "$python" benchmarks/profile_beside_ncu.py --count results/profiles --logs "$out/profiles"
tar czf "$out/stored.tgz" results solutions/*.ipynb build/*.html build/plots 2>/dev/null
exit $failed
