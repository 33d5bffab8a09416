//===- LinkTimes.h - What passes over one kind of link ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks of one host are joined by other links than ranks of two hosts. What
// messages and all-reduces take is described for each kind of link alone.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_LINKTIMES_H
#define CHIMERA_RUNTIME_CALIBRATE_LINKTIMES_H

#include "runtime/calibrate/Fit.h"
#include "runtime/calibrate/MessageTimes.h"
#include "runtime/calibrate/SumTimes.h"

namespace chimera::runtime {

/// Lines of what one message takes.
struct LinkTimes {
  /// The parts of a message, whose residuals are relative to the whole message.
  Line send, way, receive;
  double residual = 0; ///< of the whole message
  SumLine sum;
};

/// What messages of several sizes cost.
class MessagesBySize {
public:
  void add(uint64_t bytes, const MessageCost &cost);
  size_t sizes() const { return whole.size(); }
  /// The lines, but for the one of sums.
  LinkTimes fit() const;

private:
  std::vector<Sized> send, way, receive, whole;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_LINKTIMES_H
