//===- CallContext.h - The surroundings of a call ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_CALLCONTEXT_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_CALLCONTEXT_H

#include "runtime/data/DataSource.h"
#include "runtime/model/StageKernels.h"

#include <ATen/core/Tensor.h>

#include <optional>

namespace chimera::runtime {

/// The place, the step and the device of a call. The results of a call depend
/// on these and on its arguments.
struct CallContext {
  uint64_t seed = 0;
  uint32_t layer = 0;
  /// The micro-batch whose dropout masks are applied. If there is none,
  /// nothing is dropped.
  std::optional<MicroBatch> dropped = std::nullopt;
  StageKernels *kernels = nullptr; ///< null on the host
  const uint64_t *step = nullptr;  ///< see DropoutKey (StageKernels.h)
  /// An int32 on a GPU, or undefined. If it is defined, a call with a wrong
  /// index sets it to layer + 1 or more. If it is undefined, the call throws
  /// instead. On a GPU it then has to wait.
  at::Tensor wrongIndex = {};
};

/// Checks that each element of `indices` is at least 0 and less than `count`,
/// or equal to `ignored` if that is given. If CallContext::wrongIndex is
/// undefined, returns `indices`, or throws std::invalid_argument with a wrong
/// index. Otherwise returns the indices with each wrong one replaced by an
/// allowed one.
at::Tensor checkedIndices(const at::Tensor &indices, int64_t count,
                          const CallContext &context,
                          std::optional<int64_t> ignored = std::nullopt);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_CALLCONTEXT_H
