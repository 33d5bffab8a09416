//===- MissingOptions.h - Options of other trainers -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options that other training programs have and chimera-run does not. If a user
// gives such an option, the error message names the alternative, or says that
// there is none yet.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_MISSINGOPTIONS_H
#define CHIMERA_TOOLS_MISSINGOPTIONS_H

#include <algorithm>
#include <string>
#include <string_view>

namespace chimera {

/// The text for the error message about the unknown option `name`. Empty if
/// `name` matches no entry of the list.
inline std::string adviceFor(std::string_view name) {
  constexpr const char *kWarmup = "give a number of steps to --warmup";
  constexpr const char *kNoTensorParallelism =
      "tensor parallelism is not supported yet: a stage is on one worker";
  constexpr const char *kNoExpertParallelism =
      "expert parallelism is not supported yet: a stage is on one worker";
  constexpr const char *kNoZero = "ZeRO is not supported yet: a stage is on "
                                  "one worker, with all of its state";
  constexpr struct {
    std::string_view part; ///< a substring of the option's name
    const char *advice;
    bool isWhole = false; ///< whether `part` is the whole name
  } kAdvice[] = {
      // The first match is used: --lr-warmup matches "warmup" before "lr-".
      {"warmup-ratio", kWarmup},
      {"warmup-fraction", kWarmup},
      {"warmup", "did you mean '--warmup'?"},
      {"warm-up", "did you mean '--warmup'?"},
      {"wsd-decay", "did you mean '--decay-steps'?"},
      {"lr-decay-style", "did you mean '--lr-schedule'?"},
      {"lr-decay", "did you mean '--lr-steps'?"},
      {"scheduler", "did you mean '--lr-schedule'?"},
      {"clip", "did you mean '--clip-norm'?"},
      {"grad-norm", "did you mean '--clip-norm'?"},
      {"nan", "did you mean '--skip-nonfinite'?"},
      {"resume", "chimera-run --resume FOLDER continues from a checkpoint"},
      {"checkpoint", "chimera-run --checkpoint FOLDER writes checkpoints, with "
                     "--checkpoint-every and --keep"},
      {"early-stop", "early stopping is not supported yet: SIGUSR1 stops a run "
                     "after its step, with its results"},
      {"max-steps", "did you mean '--steps'?"},
      {"iters", "did you mean '--steps'?"},
      {"log-every", "--log FILE has every step"},
      {"logging-steps", "--log FILE has every step"},
      {"wandb", "Weights & Biases is not supported: --tensorboard FOLDER and "
                "--log FILE write the curves"},
      {"save-best",
       "--log FILE has the held-out loss after each checkpoint, if "
       "--evaluate-every is equal to --checkpoint-every"},
      {"epoch", "set the length of a run with --steps or --epochs"},
      {"lr", "did you mean '--learning-rate'?", true},
      {"random-seed", "did you mean '--seed'?"},
      {"nesterov", "set nesterov of chimera.training"},
      {"batch-size", "set micro_batch_size(…), micro_batches(…) and "
                     "data_parallel(…) of chimera.pipeline, whose product is "
                     "the batch size"},
      {"dtype", "set weight_type(…) and activation_type(…) of "
                "chimera.pipeline"},
      {"bf16", "set activation_type(bf16) of chimera.pipeline"},
      {"fp16", "float16 is not supported yet: set weight_type(…) and "
               "activation_type(…) of chimera.pipeline to another type"},
      {"tp", kNoTensorParallelism, true},
      {"tensor-parallel", kNoTensorParallelism},
      {"tensor-model-parallel", kNoTensorParallelism},
      {"sequence-parallel",
       "sequence parallelism is not supported yet: a stage "
       "is on one worker"},
      {"context-parallel", "context parallelism is not supported yet: a stage "
                           "is on one worker"},
      {"expert-parallel", kNoExpertParallelism},
      {"expert-model-parallel", kNoExpertParallelism},
      {"zero", kNoZero},
      {"fsdp", kNoZero},
      {"distributed-optimizer", kNoZero},
      {"optimizer",
       "set optimizer(…) of chimera.training to adamw, muon or sgd"},
  };
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  for (const auto &[part, advice, isWhole] : kAdvice)
    if (isWhole ? name == part : name.find(part) != name.npos)
      return advice;
  return {};
}

} // namespace chimera

#endif // CHIMERA_TOOLS_MISSINGOPTIONS_H
