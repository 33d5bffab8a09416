//===- LearningRate.h - The learning rate of a step -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The learning rate of every step. The rates are equal, to the last bit of a
// float64, to those of the schedulers in the table, which are in transformers
// (src/transformers/optimization.py) and compute with PyTorch's LambdaLR.
// test/e2e/schedules.py compares them.
//
// s is the step, from 0. The other letters are fields of the program's
// Optimizer: b the learning_rate, w the warmup, m the min_lr, d the
// decay_steps, T the lr_steps, r = m / b. The rate is b f(s). While s < w, f =
// s / w. Then:
//
//   Constant           f = 1
//                      get_constant_schedule_with_warmup
//   Linear, m = 0      f = (T-s) / (T-w)
//                      get_linear_schedule_with_warmup
//   Linear, m > 0      f = ((b-m) (1 - (s-w) / (T-w)) + m) / b
//                      get_polynomial_decay_schedule_with_warmup(lr_end=m,
//                      power=1)
//   Cosine             f = (1-r) c((s-w) / (T-w)) + r
//                      get_cosine_with_min_lr_schedule_with_warmup(min_lr=m)
//   WarmupStableDecay  f = (1-r) s/w + r  while s < w;
//                      f = 1              while s < T - d;
//                      f = (1-r) c((s-T+d) / d) + r
//                      get_wsd_schedule(min_lr_ratio=r)
//
// c(x) = (1 + cos(pi x)) / 2, which falls from 1 to 0. All schedulers are
// called with num_warmup_steps=w and num_training_steps=T.
//
// From step T on, f = r, except in a Constant schedule, which has no end. (A
// cosine of transformers would rise again.) If T is less than w, or less than
// w + d, the schedule is cut: the run ends while the rate rises, or the rate
// falls at once after the warm-up, as if it had begun to fall before.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_LEARNINGRATE_H
#define CHIMERA_RUNTIME_MODEL_LEARNINGRATE_H

#include "runtime/program/Program.h"

namespace chimera::runtime {

/// The learning rate of `step`, which counts from 0, in a run of `steps` steps.
/// Requires numbers that verifyProgram accepts. The result depends on `steps`
/// only if optimizer.lr_steps is 0. It is then T.
double learningRateAt(const program::OptimizerT &optimizer, uint64_t steps,
                      uint64_t step);

/// If a run of `steps` steps is too short for its learning rate to reach the
/// peak, a sentence about that, else an empty text. Also empty if lr_steps says
/// that the run is only a part of the schedule.
std::string noteOfShortSchedule(const program::OptimizerT &optimizer,
                                uint64_t steps);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_LEARNINGRATE_H
