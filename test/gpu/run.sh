#!/usr/bin/env bash
# Runs the checks that need one or more GPUs. Prints the output and the result of
# each part, then the number of failed parts. The status is 1 if a part failed.
#
#   test/gpu/run.sh                  build, then run all parts
#   test/gpu/run.sh PART…            run these parts: device attention numbers
#                                    channels schemes kill calibrate plans table
#                                    sanitizer
#   test/gpu/run.sh build            build only the runtime, without MPI, in
#                                    build/gpu; if chimera-compile is built, also
#                                    compile the programs
#   test/gpu/run.sh pack FOLDER      copy everything to FOLDER for a machine without
#                                    a compiler: run `FOLDER/run.sh PART…` there
#
# If LibTorch is not in build/venv, set CHIMERA_TORCH_DIR to its folder (with
# include/ and lib/), also for a packed folder. CUDA's libraries are found beside it.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
parts=(device attention numbers channels schemes kill calibrate plans table sanitizer)

if [ -e "$here/packed" ]; then
  root=$here bin=$here/bin programs=$here/programs
else
  root=$(cd "$here/../.." && pwd)
  bin=$root/build/gpu/bin programs=$root/build/gpu/programs
fi
gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU') || gpus=0

build() {
  cd "$root" || return 1
  [ -n "${CHIMERA_TORCH_DIR:-}" ] || tools/setup.sh --runtime --cuda || return 1
  cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCHIMERA_BUILD_COMPILER=OFF -DCHIMERA_BUILD_TESTS=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON &&
    cmake --build build/gpu --target chimera-run chimera_cuda gpu_device_tests \
      gpu_attention_tests gpu_channel_tests gpu_copy_tests stage_times || return 1
  local tools=build/release/bin
  if [ -x $tools/chimera-compile ]; then
    test/gpu/programs.py --tools $tools --to "$programs"
  else
    echo "no programs: $tools/chimera-compile is missing (test/run.sh builds it)"
  fi
}

pack() {
  local to=$1
  [ -x "$bin/gpu_device_tests" ] || { echo "expected $bin/gpu_device_tests: run build first" >&2; return 1; }
  mkdir -p "$to/bin" && cp -r "$programs" "$to/" &&
    cp "$here"/*.py "$here/../e2e/job.py" "$here/run.sh" "$to/" &&
    for file in chimera-run chimera_torch.so chimera_cuda.so gpu_device_tests \
      gpu_attention_tests gpu_channel_tests gpu_copy_tests stage_times; do
      strip -o "$to/bin/$file" "$bin/$file" || return 1
    done
  touch "$to/packed"
  du -sh "$to"
}

device() { "$bin/gpu_device_tests" --gtest_brief=1; }

attention() { "$bin/gpu_attention_tests" --gtest_brief=1; }

# Threads share one GPU, and so do two processes. With more GPUs, threads also use one
# each.
channels() {
  "$bin/gpu_copy_tests" --gtest_brief=1 || return 1
  if [ "$gpus" -ge 2 ]; then
    "$bin/gpu_channel_tests" --gtest_brief=1 || return 1
  fi
  "$here/launch.py" 2 "$bin/gpu_channel_tests" --gtest_brief=1
}

# Ranks are threads that share one GPU. With more GPUs, also one GPU each.
as_threads() {
  local one=${CUDA_VISIBLE_DEVICES:-0}
  CUDA_VISIBLE_DEVICES=${one%%,*} "$@" || return 1
  [ "$gpus" = 1 ] || "$@"
}

# Processes that share a GPU are slow (a message takes milliseconds), so they run only
# one program in seven, which includes some of each kind.
schemes() {
  local each=("$here/schemes.py" --run "$bin/chimera-run" --programs "$programs")
  as_threads "${each[@]}" && "${each[@]}" --processes --every 7
}

numbers() {
  local compare=("$here/host_numbers.py" --run "$bin/chimera-run"
    --programs "$programs")
  as_threads "${compare[@]}" && as_threads "${compare[@]}" --graphs &&
    "${compare[@]}" --processes && "${compare[@]}" --processes --graphs
}

kill() { "$here/kill.py" --run "$bin/chimera-run" --programs "$programs"; }

# Prints the machine as measured by threads and by processes, and saves the latter as
# machine.mlir beside the programs.
calibrate() {
  local file=$(dirname "$programs")/machine.mlir
  local measure=("$bin/chimera-run" --calibrate "$file" --device cuda --timeout 60)
  as_threads "${measure[@]}" --ranks 2 && cat "$file" &&
    "$here/launch.py" 2 "${measure[@]}" && cat "$file"
}

# Saves the measurements as plans.json beside the programs. If there is a compiler,
# predicts them, too; otherwise run `test/gpu/plans.py --tools … --to plans.json`
# elsewhere.
plans() {
  local tools=$root/build/release/bin
  [ -x "$tools/chimera-opt" ] || tools=
  "$here/plans.py" --run "$bin/chimera-run" --programs "$programs" \
    --to "$(dirname "$programs")/plans.json" ${tools:+--tools "$tools"}
}

# Uses build/venv's Python, which has torch, if it exists. Saves the table as table.json
# beside the programs. MODELS (for example "GPT-2 124M") selects models by the start of
# their names, if all take too long.
table() {
  local python=python3
  [ ! -x "$root/build/venv/bin/python" ] || python=$root/build/venv/bin/python
  "$here/table.py" --bin "$bin" --programs "$programs" --python "$python" \
    --to "$programs/../table.json" ${MODELS:+--models "$MODELS"}
}

# Checks kernels, queues and copies, then a model that trains, also with captured
# graphs.
sanitizer() {
  local tool
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  [ -n "$tool" ] || { echo "skipped: compute-sanitizer was not found"; return 0; }
  local train=("$bin/chimera-run" "$programs/gpt2-0.chimera" --device cuda --quiet
    --data "$programs/text" --steps 2 --evaluate-samples 0 --timeout 120)
  sanitized "$bin/gpu_device_tests" --gtest_brief=1 && sanitized "${train[@]}" &&
    sanitized "${train[@]}" --cuda-graphs
}

sanitized() {
  local log
  log=$("$tool" --error-exitcode 99 "$@" 2>&1)
  local status=$?
  # Virtual machines may not allow it to debug.
  if grep -q -i 'not permitted\|not supported\|Unable to' <<<"$log"; then
    echo "skipped: $(grep -i -m1 'not permitted\|not supported\|Unable to' <<<"$log")"
    return 0
  fi
  if [ $status != 0 ] || ! grep 'ERROR SUMMARY: 0 errors' <<<"$log"; then
    echo "$log"
    return 1
  fi
}

case "${1:-}" in
-h | --help) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 0 ;;
build) build; exit $? ;;
pack) pack "${2:?expected a folder}"; exit $? ;;
esac

if [ "$gpus" = 0 ]; then
  echo "expected a GPU, but nvidia-smi lists none" >&2
  exit 1
fi
if [ -n "${CHIMERA_TORCH_DIR:-}" ]; then
  libraries=$CHIMERA_TORCH_DIR/lib
  for folder in "$CHIMERA_TORCH_DIR"/../nvidia/*/lib; do
    libraries=$libraries:$folder
  done
  export LD_LIBRARY_PATH=$libraries:${LD_LIBRARY_PATH:-}
fi
wanted=("$@")
if [ $# = 0 ]; then
  [ -e "$here/packed" ] || build || exit 1
  wanted=("${parts[@]}")
fi
failed=0
export PYTHONUNBUFFERED=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for part in "${wanted[@]}"; do
  case " ${parts[*]} " in
  *" $part "*) ;;
  *) echo "unknown part '$part': expected ${parts[*]}" >&2; exit 2 ;;
  esac
  begin=$SECONDS
  echo "== $part"
  "$part" 2>&1 | tee "$log" # immediately, because a time limit may end this script
  status=${PIPESTATUS[0]}
  [ $status = 0 ] || failed=$((failed + 1))
  result=passed
  [ $status = 0 ] || result=FAILED
  grep -q '^skipped: ' "$log" && result=skipped
  echo "== $part: $result, $((SECONDS - begin)) s"
done
echo "$failed of ${#wanted[@]} parts failed"
[ $failed = 0 ]
