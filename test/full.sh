#!/usr/bin/env bash
# Runs the long forms of the tests of test/run.sh, which must have built them: more
# random programs, more sizes compared with one device and PyTorch, killed ranks, several
# hosts, the hostile test bed, mutants, fuzzers, plans compared with measured times. Also
# runs all tests of run.sh three times in a row beside eight busy loops. Each part prints
# its counts. The first failure ends the script. Takes several hours on two cores.
#
#   test/full.sh                  all parts, one after another
#   test/full.sh mutants hosts    only these parts
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/build/release/bin
python=$PWD/build/venv/bin/python
torchrun=$PWD/build/venv/bin/torchrun
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Open MPI refuses to run as root without these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# OpenMP's threads sleep while they wait, also in tests that link LibTorch themselves.
export OMP_WAIT_POLICY=passive

proof() {
  CHIMERA_RANDOM_PROGRAMS=100000 $bin/proof_tests --gtest_filter='*RandomPrograms'
}

numerics() {
  local of=(python3 test/e2e/numerics.py --tools $bin --data LICENSE)
  for size in "2 1" "4 2" "8 2"; do
    read -r stages width <<<"$size"
    "${of[@]}" --stages "$stages" --width "$width" --torch-python $python \
      --mpirun mpirun
  done
  for size in "2 1" "4 2"; do
    read -r stages width <<<"$size"
    "${of[@]}" --stages "$stages" --width "$width" --gpus --full
  done
  "${of[@]}" --stages 2 --width 2 --tied --gpus --full
  "${of[@]}" --stages 3 --width 2 --variants --gpus --full
  "${of[@]}" --stages 4 --width 1 --variants --gpus --full
  "${of[@]}" --stages 8 --width 1 --variants
  test/e2e/memory.py --tools $bin --data LICENSE --mpirun mpirun --full
  test/e2e/schedules.py --tools $bin --full
  CHIMERA_STAND_IN_GPUS=1 $bin/software-gpu/gpu_attention_tests --gtest_brief=1
}

exported() {
  test/e2e/exported.py --tools $bin --full --mpirun mpirun --gpus
  test/e2e/native.py --tools $bin --full --mpirun mpirun
  test/e2e/curves.py --tools $bin --full --gpus
  test/e2e/compute_types.py --tools $bin --full
  test/e2e/exporter.py modules --full
  test/e2e/learning.py --tools $bin --full
  test/e2e/full_size.py --tools $bin --full
  test/e2e/huggingface.py --tools $bin --full
  test/e2e/families.py --full
}

mutants() {
  local names groups
  names=$(PYTHONPATH=tools/export:test/e2e $python -c \
    'import operators; print(*operators.GROUPS)')
  read -ra groups <<<"$names"
  for group in "${groups[@]}"; do
    $python tools/export/chimera-export test/e2e/operators.py "group=$group" \
      -o "$folder/$group"
  done
  # One process per core.
  {
    echo "graph-mutants $(echo test/runtime/model/graph/Inputs/*.json) --mutants 200000"
    printf 'graph-mutants %s/model.json --mutants 20000\n' "${groups[@]/#/$folder/}"
    printf '%s-mutants --mutants 200000\n' weights names tokens arrays
    echo 'checkpoint-mutants --mutants 100000'
  } | xargs -P "$(nproc)" -I{} sh -c "text=\$($bin/{}) && echo \"{}: \$text\""
}

kills() {
  $bin/write-sample "$folder/sleeping" --bidirectional
  python3 test/e2e/kill.py $bin/chimera-run "$folder/sleeping" --kills 100
  $bin/chimera-compile test/e2e/Inputs/kill.mlir -o "$folder/training"
  python3 test/e2e/kill.py $bin/chimera-run "$folder/training" --kills 100 \
    --data LICENSE
}

resume() {
  test/e2e/resume.py --tools $bin --mpirun mpirun --gpus
  test/e2e/resume_signals.py --tools $bin --mpirun mpirun
  test/e2e/resume_kills.py --tools $bin --mpirun mpirun --torchrun $torchrun \
    --kills 100 --every-call 1
}

hosts() {
  test/e2e/hosts.py --tools $bin --torchrun $torchrun --mpirun --rounds 2
  test/e2e/slurm.py --tools $bin --torchrun $torchrun --mpirun --rounds 2
  test/e2e/calibrate_hosts.py --tools $bin
}

orders() {
  test/e2e/streams.py --tools $bin
  test/e2e/orderings.py --tools $bin --programs 100
  test/e2e/order_text.py --tools $bin --full
  test/e2e/mutation.py --tools $bin --full
}

fuzz() {
  test/e2e/fuzz.py --tools $bin --fuzzers build/fuzz/bin --work build/fuzz/work \
    --seconds 600 --coverage 90
}

# Installs the package as a user does, without the project's build.
python() {
  "$python" -m venv "$folder/package"
  "$folder/package/bin/pip" install --quiet ./tools/python
  "$folder/package/bin/python" test/tools/python/schedules.py $bin/chimera-show \
    test/compiler/schedule/formats/Inputs/torch-2.15
  PYTHONPATH=build/release/python "$python" test/tools/python/fuzz.py 100000
}

browser() {
  tools/setup.sh --browser
  "$python" test/tools/html.py --tools $bin
}

hostile() {
  # One seed for each of the three modes. With the default of six it takes hours.
  test/e2e/hostile.py --tools $bin --full --seeds 3
}

soak() {
  test/e2e/soak.py --tools $bin --data LICENSE --mpirun mpirun
}

plans() {
  test/e2e/calibrate.py --tools $bin --mpirun mpirun --over threads mpi tcp
  test/bench/plans.py --limit --attempts 3
}

torch() {
  test/torch.sh
}

busy() {
  # Each loop ends when this script has ended, however it ended.
  local loop='import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1000000):
        pass'
  local loops=()
  for _ in {1..8}; do
    python3 -c "$loop" $$ &
    loops+=($!)
  done
  # So many tests at a time get most of the cores: each of the long tests counts as two,
  # and computes less than half of the time. With three times as many, the longest tests
  # exceed their time limits.
  for round in 1 2 3; do
    echo "== busy: round $round of 3"
    ctest --test-dir build/release --no-tests=error --output-on-failure \
      -j "$((8 * $(nproc)))"
  done
  kill "${loops[@]}"
  wait "${loops[@]}" || true
}

parts=(proof numerics exported mutants kills resume hosts orders fuzz python browser hostile
  soak plans torch busy)
[ $# -gt 0 ] || set -- "${parts[@]}"
for part; do
  [[ " ${parts[*]} " == *" $part "* ]] || {
    echo "test/full.sh: expected a part of ${parts[*]}, got $part" >&2
    exit 2
  }
done
for part; do
  begin=$SECONDS
  echo "== $part"
  "$part"
  echo "== $part: $((SECONDS - begin)) s"
done
