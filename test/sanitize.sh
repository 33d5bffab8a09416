#!/usr/bin/env bash
# Runs the tests of test/run.sh with sanitizers. Builds with the address and
# undefined-behaviour sanitizers and runs all tests, then builds with the thread sanitizer
# and runs the tests of the runtime. Takes an hour and a half. The last line of each build
# counts the tests.
#
#   test/sanitize.sh asan     only the first build; further arguments go to ctest
#   test/sanitize.sh tsan     only the second build
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(asan tsan)
[ $# = 0 ] || { presets=("$1"); shift; }
tools/setup.sh --full
# Open MPI refuses to run as root without these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Leaks are not detected, because Open MPI and LibTorch never free some memory. User
# poisoning is off because LLVM's libraries, which are not instrumented, use the memory of
# arenas that they share with us without telling the sanitizer.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:allow_user_poisoning=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# The threads of LibTorch and MPI are not instrumented, so the sanitizer does not see how
# they synchronise.
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:ignore_noninstrumented_modules=1:suppressions=$PWD/test/tsan.supp
# The number of random programs to prove, instead of 10,000.
export CHIMERA_RANDOM_PROGRAMS=1000
status=0
for preset in "${presets[@]}"; do
  echo "building $preset (the log is build/$preset.log)"
  {
    cmake --preset "$preset" -DCHIMERA_BUILD_TESTS=ON &&
      cmake --build --preset "$preset"
  } >"build/$preset.log" 2>&1 || {
    grep -E -A 20 'FAILED|error' "build/$preset.log" | head -n 200 >&2
    exit 1
  }
  tests=build/$preset
  [ "$preset" = asan ] || tests+=/test/runtime
  ctest --test-dir "$tests" --no-tests=error --output-on-failure \
    -j "$(nproc)" "$@" || status=$?
done
exit $status
