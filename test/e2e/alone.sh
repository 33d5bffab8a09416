#!/usr/bin/env bash
# Builds each side of chimera alone: builds the runtime where neither MLIR nor a
# CUDA toolkit is found, and configures the compiler where neither LibTorch nor
# MPI is found. Neither build may name the other side's libraries.
#
#   alone.sh runtime|compiler SOURCE BUILD [CMAKE ARGUMENTS]
set -euo pipefail
side=$1 source=$2 build=$3
shift 3

configure() {
  cmake -S "$source" -B "$build" -G Ninja -DCHIMERA_BUILD_TESTS=OFF "$@"
}
refuse() {
  if grep -n -i -E -m 3 "$1" "$build/build.ninja"; then
    echo "expected a build that does not name $1" >&2
    exit 1
  fi
}

if [ "$side" = runtime ]; then
  configure -DCHIMERA_BUILD_COMPILER=OFF \
    -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON "$@"
  refuse 'libMLIR|libLLVM|llvm-[0-9]+/include'
  cmake --build "$build" --target chimera-run
  "$build/bin/chimera-run" --help | grep PROGRAM
else
  configure -DCHIMERA_BUILD_RUNTIME=OFF -DCHIMERA_TORCH_DIR=/nonexistent \
    -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON "$@"
  refuse 'libtorch|libmpi|libcuda'
fi
