//===- DeviceSpeed.h - What computing reaches -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_CALIBRATE_DEVICESPEED_H
#define CHIMERA_RUNTIME_CALIBRATE_DEVICESPEED_H

#include "runtime/control/Control.h"
#include "runtime/device/Device.h"
#include "runtime/stage/Stage.h"

namespace chimera::runtime {

/// What one rank reaches while all ranks do the same, each second.
struct DeviceSpeed {
  double flops; ///< of layers, forwards and backwards, as Layers.h counts them
  double bytes; ///< of updates, as the compiler's partition counts them
};

/// Of a GPT-2, and of a micro-batch.
struct BlockSizes {
  uint32_t width, heads, context, samples;
};
inline constexpr BlockSizes kSizesOnHosts{512, 8, 128, 2};
/// The first keeps a GPU busy for much longer than it takes to launch; the
/// others are for little memory.
inline constexpr BlockSizes kSizesOnDevices[] = {
    {2048, 16, 1024, 4}, {1024, 16, 512, 2}, kSizesOnHosts};

/// A program of a GPT-2 of so many blocks, with weights in float32 by AdamW,
/// the blocks being its stage 1: what layers do most of their time, and weights
/// that fit into no cache. It has no workers and is not to be run.
program::ProgramT
programToMeasure(uint32_t blocks, const BlockSizes &sizes = kSizesOnHosts,
                 program::DataType activations = program::DataType::Float32);

/// What a rank needs to measure that, about.
uint64_t bytesToMeasure(uint32_t blocks,
                        const BlockSizes &sizes = kSizesOnHosts);

/// Has `stage`, stage 1 of `program`, compute on `device` for about `window`
/// with one and then the other, from a moment at which all ranks begin, as in a
/// run: the host is ahead of devices that execute later. Every rank calls it,
/// with how many nanoseconds its clock shows more than rank 0's. Throws what
/// the stage and the device throw, and what waits throw.
DeviceSpeed measureSpeed(Control &control, Device &device,
                         const program::ProgramT &program, Stage &stage,
                         std::chrono::milliseconds window, int64_t ahead,
                         std::chrono::milliseconds timeout);

/// How many times as long as in float32 a block of the model, made smaller if
/// it is large, takes with the program's type of activations on the host: by
/// this thread and those that it computes with, in some tenths of a second.
/// Throws what the stages throw.
double slownessOfType(const program::ProgramT &program,
                      const StageFactory &stages);

/// A note about that slowness; empty if the type is not much slower.
std::string noteOfSlowType(program::DataType type, double slowness);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_DEVICESPEED_H
