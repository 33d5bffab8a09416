//===- Kernels.h - What runs on the GPU besides the libraries ---*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches the kernels of Kernels.cu on a stream. They give the bits that the
// host's functions give.
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
  /// Those of the GPU `ordinal`, which is the current one, compiled and loaded
  /// now. Throws std::runtime_error where they cannot be, with the compiler's
  /// log.
  explicit Kernels(int ordinal);

  /// As Fold.h says, for at most kMostSummands contributions; throws
  /// std::invalid_argument for more.
  void fold(cudaStream_t stream, ElementType type,
            const std::vector<ConstBytes> &contributions, Bytes sum) const;
  void scale(cudaStream_t stream, ElementType type, Bytes bytes,
             double factor) const;
  static constexpr size_t kMostSummands = 256;

  /// The others, by their names in Kernels.cu without what they begin with.
  struct Loaded {
    cudaKernel_t FoldFloat, FoldDouble, FoldInteger, ScaleFloat, ScaleDouble,
        AdamWFloat, AdamWDouble, KeepElements;
  };
  const Loaded &all() const { return loaded; }

  /// Has `kernel` work on so many elements; none are no launch. The arguments
  /// have the types that Kernels.cu says.
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
  static constexpr unsigned kThreads = 256; ///< of a block

  /// Compiles for a compute capability, 90 for 9.0, and loads.
  static Loaded load(int capability);

  Loaded loaded;
  unsigned mostBlocks; ///< of one launch
};

/// A number of elements, as Kernels.cu has it.
template <typename Number> unsigned long long counted(Number number) {
  return static_cast<unsigned long long>(number);
}

} // namespace chimera::runtime::cuda

#endif // CHIMERA_RUNTIME_DEVICE_CUDA_KERNELS_H
