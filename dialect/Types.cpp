//===- Types.cpp - Types of the chimera dialect ---------------------------===//
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

#include "dialect/TypeInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/Types.cpp.inc"

namespace chimera {

static LogicalResult verifyBytes(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t bytes) {
  if (bytes < 1)
    return emitError() << "expected a positive number of bytes, got " << bytes;
  return success();
}

#define CHIMERA_VERIFY_SIZED(TYPE)                                             \
  LogicalResult TYPE::verify(function_ref<InFlightDiagnostic()> emitError,     \
                             int64_t bytes) {                                  \
    return verifyBytes(emitError, bytes);                                      \
  }
CHIMERA_VERIFY_SIZED(TokensType)
CHIMERA_VERIFY_SIZED(LabelsType)
CHIMERA_VERIFY_SIZED(ActivationType)
CHIMERA_VERIFY_SIZED(GradientType)
CHIMERA_VERIFY_SIZED(StashType)
CHIMERA_VERIFY_SIZED(WeightStashType)
CHIMERA_VERIFY_SIZED(LossType)
CHIMERA_VERIFY_SIZED(WeightsType)
CHIMERA_VERIFY_SIZED(WeightGradientType)
CHIMERA_VERIFY_SIZED(SquaredNormType)
#undef CHIMERA_VERIFY_SIZED

// 0 bytes are allowed: SGD keeps no state.
LogicalResult
OptimizerStateType::verify(function_ref<InFlightDiagnostic()> emitError,
                           int64_t bytes) {
  if (bytes < 0)
    return emitError() << "expected no negative number of bytes, got " << bytes;
  return success();
}

LogicalResult ArrivingType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Type value) {
  if (!mlir::isa<SizedType>(value))
    return emitError() << "expected a type with a size to arrive, got "
                       << value;
  return success();
}

void ChimeraDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/Types.cpp.inc"
      >();
}

} // namespace chimera
