//===- ReceiveWindows.h - Receives that are posted late ---------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIMULATE_RECEIVEWINDOWS_H
#define CHIMERA_COMPILER_SCHEDULE_SIMULATE_RECEIVEWINDOWS_H

#include <cstdint>
#include <vector>

namespace chimera::schedule {

/// The channel of each message, its number on that channel, and the window of
/// each channel: how many receives may be outstanding (Windows.h). A message is
/// found by the id of the action that produces it.
struct ReceiveWindows {
  std::vector<int32_t> channel; ///< -1 for an action without a message
  std::vector<int32_t> number;  ///< of the message on its channel
  std::vector<int32_t> sizes;   ///< of each channel
};

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIMULATE_RECEIVEWINDOWS_H
