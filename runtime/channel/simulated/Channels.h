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

/// The channels of all ranks of a simulation, in rank order. They do what the
/// model says for which they are prepared, rendezvous before that, and not a
/// bit more:
/// - An operation begins after its event. Under a model of streams it begins
///   after all earlier ones of its stream have ended too, those of a group
///   together.
/// - Bytes move at any time after both ends, or all members, have begun; each
///   ends at any time after that. Where messages are buffered a send ends
///   without its receive.
/// - What is received or summed into holds garbage until then.
///
/// They share what they need, and may be destroyed in any order before the
/// simulation.
std::vector<std::unique_ptr<Channels>>
makeSimulatedChannels(simulated::Simulation &simulation, uint32_t ranks);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CHANNEL_SIMULATED_CHANNELS_H
