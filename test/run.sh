#!/usr/bin/env bash
# Installs missing packages, builds everything and runs all tests. The last line counts
# them.
#
#   test/run.sh               all tests
#   test/run.sh -R PATTERN    arguments go to ctest
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build
tools/setup.sh --full
cmake --preset release -DCHIMERA_BUILD_TESTS=ON >build/configure.log 2>&1 || {
  cat build/configure.log >&2
  exit 1
}
echo "building (the log is build/build.log)"
{
  cmake --build --preset release &&
    cmake --preset fuzz &&
    cmake --build --preset fuzz
} >build/build.log 2>&1 || {
  grep -E -A 20 'FAILED|error' build/build.log | head -n 200 >&2
  exit 1
}

# Open MPI refuses to run as root without these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# OpenMP's threads sleep while they wait, also in tests that link LibTorch themselves.
export OMP_WAIT_POLICY=passive
status=0
# Many tests mostly wait: for sleeping stages, timeouts, launchers. Tests that need all
# cores declare two processors, and two of them at a time keep the cores busy.
ctest --test-dir build/release --no-tests=error --output-on-failure \
  -j "$((2 * $(nproc)))" "$@" |
  tee build/test.log || status=$?

# The ends of what failed tests printed, again: thousands of lines may have followed.
awk '/^ *[0-9]+\/[0-9]+ Test +#/ { failed = /\*\*\*(Failed|Timeout|Exception|Not Run)/ }
     /^ +Start +[0-9]+: / { failed = 0 }
     failed { print }' build/test.log | tail -n 200

# One line instead of ctest's two lines with percentages.
awk '/tests passed, / { failed = $4; total = $NF }
     /\*\*\*Skipped|\(Skipped\)/ { skipped[$0] = 1 }
     END { n = 0; for (s in skipped) if (s ~ /\*\*\*Skipped/) n++
           printf "%d passed, %d failed, %d skipped\n",
                  total - failed - n, failed, n }' build/test.log
exit $status
