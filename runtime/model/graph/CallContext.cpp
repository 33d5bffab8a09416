//===- CallContext.cpp - The surroundings of a call -----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/graph/CallContext.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

using namespace chimera::runtime;
using at::Tensor;

Tensor chimera::runtime::checkedIndices(const Tensor &indices, int64_t count,
                                        const CallContext &context,
                                        std::optional<int64_t> ignored) {
  if (indices.numel() == 0)
    return indices;
  if (!context.wrongIndex.defined()) {
    const Tensor counted =
        ignored ? indices.masked_fill(indices.eq(*ignored), 0) : indices;
    for (const Tensor &index : {counted.min(), counted.max()})
      if (const auto number = index.item<int64_t>();
          number < 0 || number >= count)
        throw std::invalid_argument(
            (ignored ? "expected a label of 0 to "
                     : "expected an index of 0 to ") +
            std::to_string(count - 1) +
            (ignored ? ", or " + std::to_string(*ignored) + " for none" : "") +
            ", got " + std::to_string(number));
    return indices;
  }
  Tensor isWrong = indices.lt(0).logical_or_(indices.ge(count));
  if (ignored)
    isWrong.logical_and_(indices.ne(*ignored));
  const Tensor code =
      isWrong.any().to(at::kInt).mul_(static_cast<int64_t>(context.layer) + 1);
  Tensor flag = context.wrongIndex;
  at::maximum_out(flag, flag, code);
  return indices.masked_fill(isWrong, ignored.value_or(0));
}
