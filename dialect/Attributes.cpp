//===- Attributes.cpp - Attributes of the chimera dialect -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialect/Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.cpp.inc"

namespace chimera {

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t forward, int64_t backward,
                               int64_t inputGradient, int64_t weightGradient,
                               int64_t recompute) {
  if (forward < 1 || backward < 1)
    return emitError() << "expected positive costs, got forward " << forward
                       << " and backward " << backward;
  if (inputGradient < 0 || weightGradient < 0)
    return emitError() << "expected positive costs, got input_gradient "
                       << inputGradient << " and weight_gradient "
                       << weightGradient;
  if (recompute < 0)
    return emitError() << "expected a positive cost, got recompute "
                       << recompute;
  return success();
}

int64_t CostAttr::inputGradientTime() const {
  return getInputGradient() > 0 ? getInputGradient() : (getBackward() + 1) / 2;
}

int64_t CostAttr::weightGradientTime() const {
  return getWeightGradient() > 0 ? getWeightGradient()
                                 : std::max<int64_t>(1, getBackward() / 2);
}

int64_t CostAttr::recomputeTime() const {
  return getRecompute() > 0 ? getRecompute() : getForward();
}

LogicalResult BytesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t weights, int64_t optimizer,
                                int64_t stash, int64_t boundary) {
  if (weights < 1 || optimizer < 1 || stash < 1 || boundary < 1)
    return emitError() << "expected positive sizes, got weights " << weights
                       << ", optimizer " << optimizer << ", stash " << stash
                       << " and boundary " << boundary;
  return success();
}

LogicalResult LinkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t latency, int64_t latencyPerMib,
                               int64_t send, int64_t sendPerMib,
                               int64_t receive, int64_t receivePerMib) {
  const std::pair<StringRef, int64_t> times[] = {
      {"latency", latency}, {"latency_per_mib", latencyPerMib},
      {"send", send},       {"send_per_mib", sendPerMib},
      {"receive", receive}, {"receive_per_mib", receivePerMib}};
  for (auto [name, time] : times)
    if (time < 0)
      return emitError() << "expected times of at least 0, got " << name << " "
                         << time;
  return success();
}

void ChimeraDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Attributes.cpp.inc"
      >();
}

} // namespace chimera
