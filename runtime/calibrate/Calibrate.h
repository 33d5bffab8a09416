//===- Calibrate.h - What a machine's parts take, measured ------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler asks for numbers that no data sheet has: what layers reach, what
// a message costs its sender, its way and its receiver, what a sum takes. Here
// the ranks of a run measure them, with the channels, stages and threads that a
// run would have.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_CALIBRATE_H
#define CHIMERA_RUNTIME_CALIBRATE_CALIBRATE_H

#include "runtime/calibrate/DeviceSpeed.h"
#include "runtime/calibrate/Hosts.h"
#include "runtime/calibrate/LinkTimes.h"
#include "runtime/channel/Channels.h"
#include "runtime/control/Control.h"

#include <optional>

namespace chimera::runtime {

struct CalibrationOptions {
  StageFactory stages;               ///< of transformers
  HostOfRank host;                   ///< this rank's, as it is without device
  std::chrono::milliseconds timeout; ///< of waits for other ranks
  /// Less than 1 measures for so much less time, and less well.
  double effort = 1;
  /// Called with the reason, from any thread, where waits have no timeout of
  /// their own. Must end the waits, or the process.
  std::function<void(const std::string &)> fail;
  Device *device = nullptr; ///< on which the rank computes; none: on the host
};

/// What was found.
struct Calibration {
  uint32_t ranks;
  Hosts hosts; ///< with the memory that each rank has
  /// Messages between neighbours and all-reduces over all ranks. Where hosts
  /// have links of their own (Hosts::haveOwnLinks) only messages between hosts.
  LinkTimes links;
  /// Messages within a host, and all-reduces over all ranks of a host, with the
  /// same on all hosts at once; nothing where hosts have no links of their own.
  std::optional<LinkTimes> hostLinks;
  uint64_t mostBytes, mostSumBytes; ///< of those that were measured
  /// Of an all-reduce over all ranks, the part that computation hides; nothing
  /// where ranks compute on devices whose queues run beside each other.
  std::optional<double> hiddenSum;
  /// Over all ranks, while all of them compute: where ranks share cores, each
  /// has its part of them.
  DeviceSpeed mean, least, most;
  BlockSizes sizes = kSizesOnHosts; ///< of what has that speed
  /// How many nanoseconds clocks of several hosts may have been off; 0 on one.
  int64_t clockError;
  double seconds; ///< that it took
};

/// Measures, and returns what was found at rank 0; elsewhere nothing that is
/// meant to be read. Every rank calls it, at the same time; there must be at
/// least two. The channels are of memory of the device. Takes some 15 s. Throws
/// what waits, stages and the device throw.
Calibration calibrate(Control &control, Channels &channels,
                      const CalibrationOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_CALIBRATE_H
