//===- Packing.cpp - Several tensors in one buffer ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/stage/exported/Packing.h"

#include "runtime/stage/exported/Operators.h"
#include "runtime/stage/torch/TensorOver.h"

#include <ATen/ATen.h>

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

static Tensor bytesAt(const void *begin, int64_t size,
                      const DevicePlacement &placement) {
  return tensorOver(static_cast<const std::byte *>(begin), {size}, at::kByte,
                    placement);
}

static int64_t sizeOf(const program::TensorShapeT &shape) {
  return program::elementsOf(shape.shape) * program::bytesOf(shape.type);
}

std::vector<Tensor> chimera::runtime::unpack(ConstBytes bytes,
                                             const Shapes &shapes,
                                             const DevicePlacement &placement) {
  std::vector<Tensor> tensors;
  const std::byte *next = bytes.data();
  for (const auto &shape : shapes) {
    const int64_t size = sizeOf(*shape);
    Tensor tensor = at::empty(
        shape->shape,
        at::dtype(torchTypeOf(shape->type)).device(deviceOf(placement)));
    bytesAt(tensor.data_ptr(), size, placement)
        .copy_(bytesAt(next, size, placement));
    tensors.push_back(std::move(tensor));
    next += size;
  }
  return tensors;
}

void chimera::runtime::pack(const std::vector<Tensor> &tensors,
                            const Shapes &shapes, Bytes bytes,
                            const DevicePlacement &placement) {
  const std::byte *next = bytes.data();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t size = sizeOf(*shapes[i]);
    Tensor to = bytesAt(next, size, placement);
    next += size;
    const Tensor &tensor = tensors[i];
    if (!tensor.defined()) {
      to.zero_();
      continue;
    }
    if (tensor.sizes() != at::IntArrayRef(shapes[i]->shape) ||
        tensor.scalar_type() != torchTypeOf(shapes[i]->type))
      throw std::runtime_error("expected a layer that makes tensors of the "
                               "types and shapes that its package says");
    const Tensor contiguous = tensor.contiguous();
    to.copy_(bytesAt(contiguous.const_data_ptr(), size, placement));
  }
}
