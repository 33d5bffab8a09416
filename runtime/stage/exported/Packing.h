//===- Packing.h - Tensors one behind another -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the tensors of a boundary, of inputs or of labels lie in one buffer.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_EXPORTED_PACKING_H
#define CHIMERA_RUNTIME_STAGE_EXPORTED_PACKING_H

#include "runtime/device/Bytes.h"
#include "runtime/program/Package.h"
#include "runtime/stage/torch/Place.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace chimera::runtime {

using Shapes = std::vector<std::unique_ptr<program::TensorShapeT>>;

/// Copies of the tensors in `bytes`, which the caller may reuse: kernels see
/// memory of one alignment. Requires as many bytes as the shapes have.
std::vector<at::Tensor> unpack(ConstBytes bytes, const Shapes &shapes,
                               const Place &place);

/// Writes the tensors to `bytes`, zeros for one that is undefined. Throws
/// std::runtime_error where one has another type or shape. Requires as many
/// bytes as the shapes have.
void pack(const std::vector<at::Tensor> &tensors, const Shapes &shapes,
          Bytes bytes, const Place &place);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_EXPORTED_PACKING_H
