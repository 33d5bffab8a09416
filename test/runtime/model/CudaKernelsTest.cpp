//===- CudaKernelsTest.cpp - Kernels give the same bits as the host -------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Device.h"
#include "runtime/model/cuda/StageKernels.h"
#include "runtime/model/optimizer/AdamW.h"
#include "runtime/model/tensors/Dropout.h"
#include "runtime/random/Philox.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <tuple>

using namespace chimera;
using namespace chimera::runtime;

namespace {
constexpr std::chrono::seconds kTimeout(30);

/// Values in the memory of a GPU.
template <typename T> class OnGpu {
public:
  OnGpu(Device &device, Queue &queue, const std::vector<T> &values)
      : device(device), queue(queue), count(values.size()),
        block(device.allocate(count * sizeof(T))) {
    queue.loadFromHost(bytes(), [&](Bytes host) {
      std::memcpy(host.data(), values.data(), host.size());
    });
  }
  Bytes bytes() { return {block.get(), count * sizeof(T)}; }
  T *data() { return reinterpret_cast<T *>(block.get()); }
  std::vector<T> get() {
    HostBytes host = device.readBack(bytes(), queue.record(), kTimeout);
    std::vector<T> values(count);
    std::memcpy(values.data(), host.get().data(), host.get().size());
    return values;
  }

private:
  Device &device;
  Queue &queue;
  size_t count;
  Block block;
};

template <typename T> void expectAdamWOfTheHost() {
  cuda::CudaDevice device({});
  const auto queue = device.makeQueue("q");
  program::OptimizerT optimizer;
  optimizer.beta1 = 0.9;
  optimizer.beta2 = 0.95;
  optimizer.epsilon = 1e-8;
  optimizer.weight_decay = 0.1;
  std::mt19937 random(3);
  std::normal_distribution<Arithmetic<T>> normal;
  auto draw = [&](size_t count, bool squared) {
    std::vector<T> values(count);
    for (T &value : values) {
      const Arithmetic<T> drawn = normal(random);
      value = T(squared ? drawn * drawn : drawn);
    }
    return values;
  };
  for (size_t count : {1, 5, 1000, 100003}) {
    auto gradient = draw(count, false), weights = draw(count, false);
    auto average = draw(count, false), squares = draw(count, true);
    OnGpu<T> g(device, *queue, gradient), w(device, *queue, weights);
    OnGpu<T> a(device, *queue, average), s(device, *queue, squares);
    for (size_t runCount : {1, 3, 1000}) {
      const uint64_t step = runCount;
      std::vector<DecayRange> ranges;
      for (size_t k = 1; k <= runCount; ++k) {
        const size_t before =
            ranges.empty() ? 0 : static_cast<size_t>(ranges.back().end);
        const size_t end = count * k / runCount;
        if (end > before)
          ranges.push_back({static_cast<int64_t>(end), k % 3 != 1});
      }
      size_t begin = 0;
      for (const DecayRange &range : ranges) {
        adamWStep<T>(optimizer, {step, 2e-3, 0.125}, range.decays,
                     range.end - static_cast<int64_t>(begin), &gradient[begin],
                     &weights[begin], &average[begin], &squares[begin]);
        begin = static_cast<size_t>(range.end);
      }
      queue->launch({reads(g.bytes()), updates(w.bytes()), updates(a.bytes()),
                     updates(s.bytes())},
                    [&](const AddressMap &) {
                      cudaStageKernels().adamW(
                          adamWFactors<Arithmetic<T>>(
                              optimizer, {step, 2e-3, 0.125}, true),
                          ranges, g.data(), w.data(), a.data(), s.data());
                    });
    }
    EXPECT_EQ(w.get(), weights) << count;
    EXPECT_EQ(a.get(), average) << count;
    EXPECT_EQ(s.get(), squares) << count;
  }
}

TEST(CudaKernels, AdamWIsThatOfTheHost) {
  expectAdamWOfTheHost<float>();
  expectAdamWOfTheHost<double>();
  expectAdamWOfTheHost<BFloat16>();
}

TEST(CudaKernels, AHaltedAdamWChangesNothing) {
  cuda::CudaDevice device({});
  const auto queue = device.makeQueue("q");
  program::OptimizerT optimizer;
  const std::vector<float> ones(1000, 1);
  OnGpu<float> g(device, *queue, ones), w(device, *queue, ones);
  OnGpu<float> a(device, *queue, ones), s(device, *queue, ones);
  const DecayRange all[] = {{1000, false}};
  for (int32_t isHalted : {1, 0}) {
    OnGpu<int32_t> halted(device, *queue, {isHalted});
    queue->launch({reads(g.bytes()), updates(w.bytes()), updates(a.bytes()),
                   updates(s.bytes()), reads(halted.bytes())},
                  [&](const AddressMap &) {
                    cudaStageKernels().adamW(
                        adamWFactors<float>(optimizer, {0, 0.5, 2}, true), all,
                        g.data(), w.data(), a.data(), s.data(), halted.data());
                  });
    EXPECT_EQ(w.get() == ones, isHalted == 1);
    EXPECT_EQ(s.get() == ones, isHalted == 1);
  }
}

/// A scale on the device replaces the factor `scale`.
TEST(CudaKernels, AdamWWithAScaleOnTheDeviceIsThatOfTheHost) {
  cuda::CudaDevice device({});
  const auto queue = device.makeQueue("q");
  program::OptimizerT optimizer;
  const std::vector<float> ones(1000, 1);
  const DecayRange all[] = {{1000, false}};
  auto updated = [&](double factor, std::optional<double> scale) {
    OnGpu<float> g(device, *queue, ones), w(device, *queue, ones);
    OnGpu<float> a(device, *queue, ones), s(device, *queue, ones);
    OnGpu<double> onDevice(device, *queue, {scale.value_or(0)});
    queue->launch({reads(g.bytes()), updates(w.bytes()), updates(a.bytes()),
                   updates(s.bytes()), reads(onDevice.bytes())},
                  [&](const AddressMap &) {
                    cudaStageKernels().adamW(
                        adamWFactors<float>(optimizer, {0, 0.5, factor}, true),
                        all, g.data(), w.data(), a.data(), s.data(),
                        /*stops=*/nullptr, scale ? onDevice.data() : nullptr);
                  });
    return std::tuple(w.get(), a.get(), s.get());
  };
  EXPECT_EQ(updated(2, 0.375), updated(0.375, {}));
  EXPECT_NE(updated(2, 0.375), updated(2, {}));
}

TEST(CudaKernels, DropoutKeepsWhatItKeepsOnTheHost) {
  cuda::CudaDevice device({});
  const auto queue = device.makeQueue("q");
  for (double dropped : {0.0, 0.3, 0.9, 1.0})
    for (size_t count : {1, 4, 7, 9001})
      for (uint64_t first : {uint64_t(0), (uint64_t(5) << 33) + 3}) {
        OnGpu<uint8_t> kept(device, *queue, std::vector<uint8_t>(count, 7));
        queue->launch({writes(kept.bytes())}, [&](const AddressMap &) {
          cudaStageKernels().computeDropoutMask(
              dropped, {0x123456789abcdef0}, first, static_cast<int64_t>(count),
              reinterpret_cast<bool *>(kept.data()));
        });
        const std::unique_ptr<bool[]> expected(new bool[count]);
        computeDropoutMask(dropped, 0x123456789abcdef0, first,
                           static_cast<int64_t>(count), expected.get());
        const std::vector<uint8_t> got = kept.get();
        EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.get()));
      }
}

/// Compares the kernel with the dropout of tensors on the host. The step is in
/// the key, or in memory of the GPU.
template <typename T>
void expectDropoutOfTheHost(ElementType type, at::ScalarType ofTensors) {
  cuda::CudaDevice device({});
  const auto queue = device.makeQueue("q");
  const auto one = [&](double dropped, int64_t count, uint64_t index) {
    const Dropout dropout(dropped, /*seed=*/3, /*layer=*/5,
                          MicroBatch{.step = 1, .index = index},
                          /*kernels=*/nullptr);
    const at::Tensor input = at::randn({count}, at::kFloat).to(ofTensors);
    const at::Tensor expected = dropout.apply(DropoutSite(7), input);
    const auto bytesOfTensor = [&](const at::Tensor &tensor) {
      std::vector<T> values(static_cast<size_t>(count));
      std::memcpy(values.data(), tensor.data_ptr(), values.size() * sizeof(T));
      return values;
    };
    OnGpu<T> from(device, *queue, bytesOfTensor(input));
    OnGpu<T> to(device, *queue, std::vector<T>(static_cast<size_t>(count)));
    OnGpu<uint64_t> step(device, *queue, {1});
    const Dropout::Draw draw = dropout.drawOf(DropoutSite(7), count);
    for (const DropoutKey key :
         {DropoutKey{draw.key},
          DropoutKey{mix({3, kDropout, 5, 7}), step.data()}}) {
      queue->launch(
          {reads(from.bytes()), reads(step.bytes()), writes(to.bytes())},
          [&](const AddressMap &) {
            cudaStageKernels().drop(type, dropped, key, draw.first, count,
                                    from.data(), dropout.scale(), to.data());
          });
      const std::vector<T> got = to.get(), wanted = bytesOfTensor(expected);
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(T)),
                0)
          << at::toString(ofTensors) << ", " << dropped << " of " << count;
    }
  };
  for (double dropped : {0.1, 0.3, 0.9})
    for (int64_t count : {1, 4, 7, 9001})
      for (uint64_t index : {0, 3})
        one(dropped, count, index);
}

TEST(CudaKernels, DropoutHasTheBitsOfTheHost) {
  expectDropoutOfTheHost<float>(ElementType::Float32, at::kFloat);
  expectDropoutOfTheHost<double>(ElementType::Float64, at::kDouble);
  expectDropoutOfTheHost<uint16_t>(ElementType::BFloat16, at::kBFloat16);
}

TEST(CudaKernels, AreForTheWorkOfAQueue) {
  EXPECT_THROW(cudaStageKernels().computeDropoutMask(0.5, {1}, 0, 1, nullptr),
               std::logic_error);
}
} // namespace
