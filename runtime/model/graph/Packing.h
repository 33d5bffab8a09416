//===- Packing.h - Several tensors in one buffer ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several tensors in one buffer, one after another. The buffer has the tensors
// that one stage sends to the next, or the fields of the inputs or labels.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_GRAPH_PACKING_H
#define CHIMERA_RUNTIME_MODEL_GRAPH_PACKING_H

#include "runtime/device/Bytes.h"
#include "runtime/model/tensors/DevicePlacement.h"
#include "runtime/program/Package.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace chimera::runtime {

using Shapes = std::vector<std::unique_ptr<program::TensorShapeT>>;

/// Copies the tensors of `samples` samples out of `bytes`. So the caller may
/// reuse the buffer, and kernels always get memory of the same alignment.
/// Requires exactly as many bytes as the shapes need.
std::vector<at::Tensor> unpack(ConstBytes bytes, const Shapes &shapes,
                               uint32_t samples,
                               const DevicePlacement &placement);

/// Writes the tensors of `samples` samples to `bytes`; an undefined tensor is
/// written as zeros. Throws std::runtime_error if a tensor has another type or
/// shape. Requires exactly as many bytes as the shapes need.
void pack(const std::vector<at::Tensor> &tensors, const Shapes &shapes,
          uint32_t samples, Bytes bytes, const DevicePlacement &placement);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_GRAPH_PACKING_H
