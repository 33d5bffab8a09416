//===- Kernels.h - chimera's own kernels for the GPU ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches the kernels of Kernels.cu on a stream. Their results are
// bit-identical to those of the host's functions.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DEVICE_CUDA_KERNELS_H
#define CHIMERA_RUNTIME_DEVICE_CUDA_KERNELS_H

#include "runtime/device/Bytes.h"
#include "runtime/device/cuda/Calls.h"

#include <algorithm>
#include <vector>

namespace chimera::runtime::cuda {

class Kernels {
public:
  /// Compiles and loads the kernels for the GPU `ordinal`, which must be the
  /// current one. Throws std::runtime_error, with the compiler's log, if this
  /// fails.
  explicit Kernels(int ordinal);

  /// See Fold.h. Throws std::invalid_argument for more than kMaxSummands
  /// contributions.
  void fold(cudaStream_t stream, ElementType type,
            const std::vector<ConstBytes> &contributions, Bytes sum) const;
  void scale(cudaStream_t stream, ElementType type, Bytes bytes,
             double factor) const;
  static constexpr size_t kMaxSummands = 256;

  /// The kernels, with their names in Kernels.cu without the prefix "chimera".
  struct Loaded {
    cudaKernel_t FoldFloat, FoldDouble, FoldBFloat16, FoldInteger, ScaleFloat,
        ScaleDouble, ScaleBFloat16, AdamWFloat, AdamWDouble, AdamWBFloat16,
        KeepElements, DropFloat, DropDouble, DropBFloat16;
  };
  const Loaded &all() const { return loaded; }

  /// Launches `kernel` for `elements` elements; does nothing for 0. The
  /// arguments must have the types in Kernels.cu.
  template <typename... Arguments>
  void launch(cudaKernel_t kernel, cudaStream_t stream, uint64_t elements,
              Arguments... arguments) const {
    if (elements == 0)
      return;
    auto blocks = static_cast<unsigned>(
        std::min<uint64_t>((elements + kThreads - 1) / kThreads, mostBlocks));
    void *pointers[] = {&arguments...};
    expect(cudaLaunchKernel(reinterpret_cast<const void *>(kernel),
                            dim3(blocks), dim3(kThreads), pointers, 0, stream),
           "cudaLaunchKernel");
  }

private:
  static constexpr unsigned kThreads = 256; ///< threads of a block

  /// Compiles for a compute capability, for example 90 for 9.0, and loads the
  /// result.
  static Loaded load(int capability);

  Loaded loaded;
  unsigned mostBlocks; ///< the largest number of blocks of a launch
};

/// Converts a number of elements to the type that Kernels.cu uses.
template <typename Number> unsigned long long counted(Number number) {
  return static_cast<unsigned long long>(number);
}

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_KERNELS_H
