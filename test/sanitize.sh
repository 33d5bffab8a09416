#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers and runs all tests,
# then with the thread sanitizer and runs the runtime's: what test/run.sh runs
# without them. Takes an hour and a half. Each build ends with a line that counts.
#
#   test/sanitize.sh asan     the first alone; arguments after it go to ctest
#   test/sanitize.sh tsan     the second alone
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(asan tsan)
[ $# = 0 ] || { presets=("$1"); shift; }
tools/setup.sh --full
# As root, Open MPI wants to be told that it may run. What it and LibTorch never
# free is not ours to mend.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# LLVM's libraries are not instrumented, so what they share with us of an arena they
# take without a word to the sanitizer.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:allow_user_poisoning=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Nor is how LibTorch's and MPI's own threads meet, which are not instrumented.
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:ignore_noninstrumented_modules=1:suppressions=$PWD/test/tsan.supp
# Random programs to prove, of 10,000 without.
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
