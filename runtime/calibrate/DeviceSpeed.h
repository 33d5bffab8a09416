//===- DeviceSpeed.h - Speed of computation ---------------------*- C++ -*-===//
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

/// The speed of one rank while all ranks compute, per second.
struct DeviceSpeed {
  double flops; ///< of layers, forward and backward, as Layers.h counts them
  double bytes; ///< of updates, as the compiler's partition counts them
};

/// The sizes of a GPT-2 and of its micro-batch.
struct BlockSizes {
  uint32_t width, heads, context, samples;
};
inline constexpr BlockSizes kSizesOnHosts{512, 8, 128, 2};
/// The first model keeps a GPU busy for much longer than its kernels take to
/// launch. The others are for GPUs with little memory.
inline constexpr BlockSizes kSizesOnDevices[] = {
    {2048, 16, 1024, 4}, {1024, 16, 512, 2}, kSizesOnHosts};

/// The program of a GPT-2 with `blocks` blocks, which are its stage 1, and
/// float32 weights updated by AdamW. The blocks represent most of the work of a
/// model, and their weights are larger than any cache. The program has no
/// workers and cannot be run.
program::ProgramT
programToMeasure(uint32_t blocks, const BlockSizes &sizes = kSizesOnHosts,
                 program::DataType activations = program::DataType::Float32);

/// The approximate memory in bytes that a rank needs to measure that program.
uint64_t bytesToMeasure(uint32_t blocks,
                        const BlockSizes &sizes = kSizesOnHosts);

/// Measures the speed of layers and then of updates with `stage`, which is
/// stage 1 of `program`, on `device`, for about `window` each. All ranks begin
/// at the same time. As in a run, the host is ahead of a device that executes
/// later. A collective call. `clockAhead` is how many nanoseconds this rank's
/// clock is ahead of rank 0's. Throws what the stage, the device and waits
/// throw.
DeviceSpeed measureSpeed(Control &control, Device &device,
                         const program::ProgramT &program, Stage &stage,
                         std::chrono::milliseconds window, int64_t clockAhead,
                         std::chrono::milliseconds timeout);

/// The duration of a block of the model on the host in the program's activation
/// type, relative to float32. A large block is made smaller first. Uses this
/// thread and its compute threads for some tenths of a second. Throws what the
/// stages throw.
double relativeTimeOfType(const program::ProgramT &program,
                          const StageFactory &stages);

/// A note for the user about that slowness. Empty if the type is not much
/// slower.
std::string noteOfSlowType(program::DataType type, double slowness);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_DEVICESPEED_H
