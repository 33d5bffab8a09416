//===- Place.h - Where a stage's tensors are --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_PLACE_H
#define CHIMERA_RUNTIME_STAGE_TORCH_PLACE_H

#include "runtime/stage/StageKernels.h"

namespace chimera::runtime {

/// On the host or, if `isCuda`, on the GPU that is current on the thread that
/// calls the stage. All bytes that the stage is given are there. On a GPU its
/// calls, but for `initialize`, put kernels on LibTorch's current stream and
/// return: they never wait for the GPU.
struct Place {
  bool isCuda = false;
  /// Those of the device, which a GPU needs; none are the host's functions.
  StageKernels *kernels = nullptr;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_PLACE_H
