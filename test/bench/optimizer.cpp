//===- optimizer.cpp - The cost of an update of weights -------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times AdamW on one thread and on several. Compares it with LibTorch's fused
// AdamW, with a copy of as many bytes, and with a loop on one thread that uses
// only the vector instructions of every x86-64. All of these take turns, so
// that other load affects them alike. Prints medians as a Markdown table.
//
//   optimizer [MILLIONS_OF_WEIGHTS] [THREADS] [ROUNDS]
//
//===----------------------------------------------------------------------===//

#include "runtime/model/optimizer/AdamW.h"
#include "runtime/model/tensors/Tensors.h"

#include <ATen/ATen.h>
#include <ATen/ops/_fused_adamw.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

using namespace chimera::runtime;

/// The bytes that the update of one weight reads and writes. It reads the
/// gradient, the weight and two averages, and writes the weight and the
/// averages.
constexpr double kTraffic = 7 * sizeof(float);

constexpr double kRate = 1e-3;

/// AdamW's arithmetic as a plain loop.
void updateInALoop(int64_t count, const float *__restrict gradients,
                   float *__restrict weights, float *__restrict average,
                   float *__restrict squares) {
  for (int64_t i = 0; i < count; ++i) {
    average[i] += 0.1f * (gradients[i] - average[i]);
    squares[i] = 0.999f * squares[i] + 0.001f * gradients[i] * gradients[i];
    weights[i] = 0.99999f * weights[i] -
                 1e-3f * average[i] / (std::sqrt(squares[i]) + 1e-8f);
  }
}

double secondsOf(const std::function<void()> &run) {
  auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

int numberOr(int argc, char **argv, int index, int defaultValue) {
  return argc > index ? std::max(1, std::atoi(argv[index])) : defaultValue;
}

} // namespace

int main(int argc, char **argv) {
  const int64_t count = int64_t{1000000} * numberOr(argc, argv, 1, 50);
  const int most = numberOr(argc, argv, 2, 2);
  const int rounds = numberOr(argc, argv, 3, 9);

  chimera::program::OptimizerT optimizer;
  optimizer.beta1 = 0.9;
  optimizer.beta2 = 0.999;
  optimizer.epsilon = 1e-8;
  optimizer.weight_decay = 0.01;
  at::Tensor gradient = at::full({count}, 0.01), weights = at::ones({count}),
             average = at::zeros({count}), squares = at::zeros({count}),
             number = at::ones({}), more = at::empty({count});
  uint64_t step = 0;

  std::printf("%lld million weights, median of %d rounds\n\n"
              "| threads | AdamW, ms | GB/s | of the bandwidth of a copy "
              "| LibTorch's fused, ms | a loop on one thread, ms "
              "| as fast as that |\n|---|---|---|---|---|---|---|\n",
              static_cast<long long>(count / 1000000), rounds);
  for (int threads = 1; threads <= most; ++threads) {
    setThreads(threads);
    std::vector<double> ours, theirs, copies, loops;
    for (int round = 0; round <= rounds; ++round) {
      // Measure the loop on one thread before the copy. The measurement after
      // it is slower, because the other threads are asleep then, and it should
      // be the copy.
      double loop = secondsOf([&] {
        updateInALoop(count, gradient.data_ptr<float>(),
                      weights.data_ptr<float>(), average.data_ptr<float>(),
                      squares.data_ptr<float>());
      });
      double copy = secondsOf([&] { more.copy_(gradient); });
      double own = secondsOf([&] {
        adamWStep<float>(optimizer, {step++, kRate, 1}, true, count,
                         gradient.data_ptr<float>(), weights.data_ptr<float>(),
                         average.data_ptr<float>(), squares.data_ptr<float>());
      });
      double fused = secondsOf([&] {
        at::_fused_adamw_({weights}, {gradient}, {average}, {squares}, {},
                          {number}, kRate, optimizer.beta1, optimizer.beta2,
                          optimizer.weight_decay, optimizer.epsilon,
                          /*amsgrad=*/false,
                          /*maximize=*/false);
      });
      if (round == 0) // the first access to the memory
        continue;
      ours.push_back(own);
      theirs.push_back(fused);
      copies.push_back(copy);
      loops.push_back(loop);
    }
    double bandwidth = kTraffic * count / median(ours);
    double ofCopy = 2. * sizeof(float) * count / median(copies);
    std::printf("| %d | %.1f | %.1f | %.0f %% | %.1f | %.1f | %.1f x |\n",
                threads, median(ours) * 1e3, bandwidth / 1e9,
                100 * bandwidth / ofCopy, median(theirs) * 1e3,
                median(loops) * 1e3, median(loops) / median(ours));
  }
}
