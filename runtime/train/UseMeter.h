//===- UseMeter.h - Measures memory and waiting -----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_TRAIN_USEMETER_H
#define CHIMERA_RUNTIME_TRAIN_USEMETER_H

#include "runtime/device/Device.h"
#include "runtime/interpreter/StepUse.h"

#include <optional>

namespace chimera::runtime {

/// The resident memory of this process in bytes. 0 if it is not known.
uint64_t residentBytes();

/// Measures what this rank uses, at the end of each of its steps.
class UseMeter {
public:
  /// `device` may be null. It must outlive this object.
  explicit UseMeter(Device *device = nullptr) : device(device) {}

  /// The use in a step that has just ended. `waiting` is the share of the step
  /// in which the rank waited, if it is known. Measures memory at most ten
  /// times a second, since that takes some microseconds.
  StepUse measure(std::optional<double> waiting = std::nullopt);

private:
  Device *device;
  StepUse last;
  std::optional<int64_t> measuredAt; ///< by steadyNanoseconds
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_TRAIN_USEMETER_H
