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
#include "runtime/model/Stage.h"

namespace chimera::runtime {

/// The speed of a rank while all ranks compute.
struct DeviceSpeed {
  /// Of layers, forward and backward, as Layers.h counts them.
  double flopsPerSecond;
  /// Of updates, as the compiler's partition counts them.
  double bytesPerSecond;
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

/// Makes the program of a GPT-2 whose stage 1 has `blocks` transformer blocks.
/// The weights are float32, and AdamW updates them. Only stage 1 is measured:
/// blocks do most of the work of a model, and their weights are larger than any
/// cache. The program has no workers and cannot be run.
program::ProgramT
programToMeasure(uint32_t blocks, const BlockSizes &sizes = kSizesOnHosts,
                 program::DataType activations = program::DataType::Float32);

/// The approximate memory in bytes that a rank needs to measure stage 1 of this
/// program.
uint64_t bytesToMeasure(uint32_t blocks,
                        const BlockSizes &sizes = kSizesOnHosts);

/// Measures the speed of layers and then of updates on `device`, for about
/// `window` each. `stage` must be stage 1 of `program`. All ranks begin at the
/// same time. If the device executes later, the host enqueues ahead of it, as
/// in a run. This is a collective call. `clockAhead` is the number of
/// nanoseconds by which this rank's clock is ahead of rank 0's clock. Throws
/// the exceptions of the stage, the device and waits.
DeviceSpeed measureSpeed(Control &control, Device &device,
                         const program::ProgramT &program, Stage &stage,
                         std::chrono::milliseconds window, int64_t clockAhead,
                         std::chrono::milliseconds timeout);

/// The sizes of a transformer block that stands for the model's layers: if the
/// first layer makes a sequence of vectors [samples, number, width], their
/// number (at most 128) and width (at most 256), otherwise these limits.
BlockSizes blockLike(const program::PackageT &model);

/// The time of such a block on the host with the program's activation type,
/// divided by its time with float32. Uses this thread and its compute threads
/// for some tenths of a second. Throws the exceptions of the stages.
double relativeTimeOfType(const program::ProgramT &program,
                          const StageFactory &stages);

/// A note for the user if activations of `type` take `slowness` times as long
/// as float32 (relativeTimeOfType). Empty if `slowness` is at most 2.
std::string noteOfSlowType(program::DataType type, double slowness);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_CALIBRATE_DEVICESPEED_H
