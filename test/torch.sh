#!/usr/bin/env bash
# Tests the exporter and the runtime with another version of torch than the pinned
# one. Builds the runtime with that LibTorch, and runs the exporter in that Python. The
# compiler does not use LibTorch, so it is that of test/run.sh. Fetches some 5 GB once,
# into build/torch-VERSION.
#
#   test/torch.sh [VERSION]      by default the newest version that is tested
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-2.15.0}
folder=build/torch-$version
python=$folder/venv/bin/python
bin=$folder/build/bin
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HF_HUB_OFFLINE=1

tools/setup.sh --export --torch "$version" --venv "$folder/venv"
libtorch=$(echo "$PWD/$folder"/venv/lib/python3*/site-packages/torch)
cmake -S . -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCHIMERA_BUILD_COMPILER=OFF -DCHIMERA_BUILD_TESTS=ON \
  -DCHIMERA_TORCH_DIR="$libtorch" >"$folder/configure.log" 2>&1 || {
  cat "$folder/configure.log" >&2
  exit 1
}
echo "building (the log is $folder/build.log)"
cmake --build "$folder/build" >"$folder/build.log" 2>&1 || {
  grep -E -A 20 'FAILED|error' "$folder/build.log" | head -n 200 >&2
  exit 1
}
for tool in build/release/bin/chimera-{compile,opt,plan,show,translate}; do
  ln -sf "$PWD/$tool" "$bin"
done

ctest --test-dir "$folder/build" --no-tests=error --output-on-failure \
  -j "$(nproc)" -E '^e2e_'
for part in modules losses refused; do
  test/e2e/exporter.py "$part" --python "$python"
done
test/e2e/initial_values.py --python "$python"
test/e2e/exported.py --python "$python" --tools "$bin" --mpirun mpirun
test/e2e/native.py --python "$python" --tools "$bin" --mpirun mpirun
test/e2e/twins.py --python "$python" --tools "$bin"
test/e2e/torch_schedules.py --python "$python" --tools "$bin"
test/e2e/huggingface.py --python "$python" --tools "$bin"
