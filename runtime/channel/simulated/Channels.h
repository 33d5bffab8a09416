//===- Channels.h - Channels between simulated devices ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CHIMERA_RUNTIME_CHANNEL_SIMULATED_CHANNELS_H
#define CHIMERA_RUNTIME_CHANNEL_SIMULATED_CHANNELS_H

#include "runtime/channel/Channels.h"
#include "runtime/device/simulated/Simulation.h"

namespace chimera::runtime {

/// Makes the channels of all ranks of a simulation, in rank order. They
/// guarantee exactly what the message model promises and nothing more. Before
/// `prepare`, the model is rendezvous.
/// - An operation can begin after its event. Under a model with streams, it can
///   begin only after all earlier operations of its stream have ended. All
///   operations of a group can begin at the same time.
/// - The bytes move at some time after both ends (or all members) have begun.
///   Each end completes at some time after that. Under the buffered model, a
///   send completes without its receive.
/// - The destination of a receive contains garbage from the beginning of the
///   receive until the bytes move.
///
/// The channels may be destroyed in any order, before the simulation.
std::vector<std::unique_ptr<Channels>>
makeSimulatedChannels(simulated::Simulation &simulation, uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_SIMULATED_CHANNELS_H
