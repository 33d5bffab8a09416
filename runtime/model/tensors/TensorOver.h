//===- TensorOver.h - Tensors over the caller's memory ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_TENSORS_TENSOROVER_H
#define CHIMERA_RUNTIME_MODEL_TENSORS_TENSOROVER_H

#include "runtime/model/tensors/DevicePlacement.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace chimera::runtime {

inline at::Device deviceOf(const DevicePlacement &placement) {
  return placement.isCuda ? c10::impl::VirtualGuardImpl(at::kCUDA).getDevice()
                          : at::Device(at::kCPU);
}

inline at::Tensor tensorOver(const std::byte *bytes, at::IntArrayRef shape,
                             at::ScalarType type,
                             const DevicePlacement &placement) {
  const at::Device device = deviceOf(placement);
  return at::for_blob(const_cast<std::byte *>(bytes), shape)
      .options(at::dtype(type).device(device))
      .target_device(device)
      .make_tensor();
}

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_TENSORS_TENSOROVER_H
