//===- Packing.cpp - Several tensors in one buffer ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/Packing.h"

#include "runtime/model/graph/Operators.h"
#include "runtime/model/tensors/TensorOver.h"

#include <ATen/ATen.h>

#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using at::Tensor;

static std::string textOf(at::ScalarType type, at::IntArrayRef shape) {
  return c10::str(type, " ", shape);
}

static Tensor bytesAt(const void *begin, int64_t size,
                      const DevicePlacement &placement) {
  return tensorOver(static_cast<const std::byte *>(begin), {size}, at::kByte,
                    placement);
}

std::vector<Tensor> chimera::runtime::unpack(ConstBytes bytes,
                                             const Shapes &shapes,
                                             uint32_t samples,
                                             const DevicePlacement &placement) {
  std::vector<Tensor> tensors;
  const std::byte *next = bytes.data();
  for (const auto &shape : shapes) {
    const int64_t size = program::bytesOf(*shape, samples);
    Tensor tensor = at::empty(
        program::shapeFor(*shape, samples),
        at::dtype(torchTypeOf(shape->type)).device(deviceOf(placement)));
    bytesAt(tensor.data_ptr(), size, placement)
        .copy_(bytesAt(next, size, placement));
    tensors.push_back(std::move(tensor));
    next += size;
  }
  return tensors;
}

void chimera::runtime::pack(const std::vector<Tensor> &tensors,
                            const Shapes &shapes, uint32_t samples, Bytes bytes,
                            const DevicePlacement &placement) {
  const std::byte *next = bytes.data();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t size = program::bytesOf(*shapes[i], samples);
    Tensor to = bytesAt(next, size, placement);
    next += size;
    const Tensor &tensor = tensors[i];
    if (!tensor.defined()) {
      to.zero_();
      continue;
    }
    if (tensor.sizes() !=
            at::IntArrayRef(program::shapeFor(*shapes[i], samples)) ||
        tensor.scalar_type() != torchTypeOf(shapes[i]->type))
      throw std::runtime_error("expected a layer whose tensor " +
                               std::to_string(i) + " is " +
                               textOf(torchTypeOf(shapes[i]->type),
                                      program::shapeFor(*shapes[i], samples)) +
                               ", as its package says, got " +
                               textOf(tensor.scalar_type(), tensor.sizes()));
    const Tensor contiguous = tensor.contiguous();
    to.copy_(bytesAt(contiguous.const_data_ptr(), size, placement));
  }
}
