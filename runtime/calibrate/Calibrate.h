//===- Calibrate.h - Measures a machine -------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler needs numbers that no data sheet has: the speed of layers, the
// times of a message (at its sender, in flight, and at its receiver), and the
// duration of an all-reduce. Here the ranks of a run measure these numbers,
// with the channels, stages and threads that the run would have.
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
  StageFactory stages; ///< makes stages of transformers
  HostOfRank host;     ///< of this rank; calibrate adds its device
  std::chrono::milliseconds timeout; ///< of waits for other ranks
  /// Scales the duration of the measurement. If it is less than 1, the
  /// measurement is shorter and less accurate.
  double effort = 1;
  /// Called with the reason, from any thread, if a wait that has no timeout
  /// takes too long. The function must end the waits or the process.
  std::function<void(const std::string &)> fail;
  Device *device = nullptr; ///< the rank's device; null: the host
};

/// The results of a calibration.
struct Calibration {
  uint32_t ranks;
  Hosts hosts; ///< the hosts of all ranks
  /// Messages between neighbours, and all-reduces over all ranks. If there are
  /// separate links within hosts (Hosts::haveNodeLinks), messages within a host
  /// are left out.
  LinkTimes links;
  /// Messages within a host, and all-reduces over the ranks of each host, on
  /// all hosts at the same time. Empty if there are no separate links within
  /// hosts.
  std::optional<LinkTimes> hostLinks;
  uint64_t largestMessage, largestSum; ///< the largest sizes measured
  /// The part of an all-reduce over all ranks that overlaps with a computation,
  /// from 0 to 1. Empty if ranks compute on devices whose queues run
  /// concurrently.
  std::optional<double> hiddenSum;
  /// The mean, minimum and maximum of the speeds of the ranks, while all ranks
  /// compute. If ranks share cores, each of them has only a part of the cores.
  DeviceSpeed mean, least, most;
  BlockSizes sizes = kSizesOnHosts; ///< of the model that was measured
  /// The largest error, in nanoseconds, in comparing the clocks of several
  /// hosts. 0 on one host.
  int64_t clockError;
  double seconds; ///< the duration of the calibration
};

/// Runs the calibration, which takes about 15 s. At rank 0, returns the
/// results. At other ranks, the result is incomplete. This is a collective
/// call. Requires at least two ranks, and channels for the device's memory.
/// Throws the exceptions of waits, stages and the device.
Calibration calibrate(Control &control, Channels &channels,
                      const CalibrationOptions &options);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_CALIBRATE_H
