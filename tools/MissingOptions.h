//===- MissingOptions.h - Options of other trainers -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options of other trainers that chimera-run does not have. If a user gives
// one, the error names the alternative, or says that there is none yet.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_MISSINGOPTIONS_H
#define CHIMERA_TOOLS_MISSINGOPTIONS_H

#include <algorithm>
#include <string>
#include <string_view>

namespace chimera {

/// The answer to the unknown option `name`. Empty if it is not a known option
/// of other trainers.
inline std::string answerTo(std::string_view name) {
  constexpr struct {
    std::string_view part; ///< a substring of the option's name
    const char *answer;
  } kAnswers[] = {
      // The first match is used: --lr-warmup matches "warmup".
      {"warmup", "a learning rate that warms up is not supported yet: it is "
                 "that of chimera.training in every step"},
      {"warm-up", "a learning rate that warms up is not supported yet: it is "
                  "that of chimera.training in every step"},
      {"lr-", "a schedule of the learning rate is not supported yet: it is "
              "that of chimera.training in every step"},
      {"clip", "clipping gradients is not supported yet"},
      {"grad-norm", "clipping gradients is not supported yet"},
      {"resume", "going on with a run is not supported yet: --load begins with "
                 "saved weights, and with new optimizer state"},
      {"checkpoint", "checkpoints are not supported yet: --save writes the "
                     "weights at the end, and --load begins with them"},
      {"early-stop", "stopping by a loss is not supported yet: SIGUSR1 stops a "
                     "run with its results"},
      {"epoch", "the length of a run is that of --steps"},
      {"learning-rate", "it is learning_rate(…) of chimera.training"},
      {"lr", "it is learning_rate(…) of chimera.training"},
      {"weight-decay", "it is weight_decay(…) of chimera.training"},
      {"batch-size", "it is micro_batch_size(…) of chimera.pipeline, times "
                     "micro_batches and data_parallel"},
      {"dtype", "types are weight_type(…) and activation_type(…) of "
                "chimera.pipeline"},
      {"bf16", "types are weight_type(…) and activation_type(…) of "
               "chimera.pipeline"},
      {"fp16", "types are weight_type(…) and activation_type(…) of "
               "chimera.pipeline, and float16 is not supported yet"},
  };
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  for (const auto &[part, answer] : kAnswers)
    if (part == "lr" ? name == part : name.find(part) != name.npos)
      return answer;
  return {};
}

} // namespace chimera

#endif // CHIMERA_TOOLS_MISSINGOPTIONS_H
