//===- LinkTimes.h - Times of one kind of link ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Links within a host differ from links between hosts. The times of messages
// and all-reduces are described for each kind of link separately.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_LINKTIMES_H
#define CHIMERA_RUNTIME_CALIBRATE_LINKTIMES_H

#include "runtime/calibrate/Fit.h"
#include "runtime/calibrate/MessageTimes.h"
#include "runtime/calibrate/SumTimes.h"

namespace chimera::runtime {

/// The times of a message and of an all-reduce, as lines over their size.
struct LinkTimes {
  /// The parts of a message. Their residuals are relative to the time of the
  /// whole message.
  Line send, transit, receive;
  double residual = 0; ///< of the whole message
  SumLine sum;
};

/// Collects the costs of messages of several sizes, and fits lines to them.
class MessagesBySize {
public:
  void add(uint64_t bytes, const MessageCost &cost);
  size_t sizeCount() const { return whole.size(); }
  /// Fits the lines of messages. The line of sums stays empty.
  LinkTimes fit() const;

private:
  std::vector<TimedSize> send, transit, receive, whole;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_LINKTIMES_H
