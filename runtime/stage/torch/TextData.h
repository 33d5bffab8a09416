//===- TextData.h - Windows of a sequence of tokens -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens as training data. The last part of them is held out of training; there
// a model's loss is compared with that of a unigram model.
//
// A sample is what TokenSamples makes; of it the model takes the fields that it
// has (runtime/program/Fields.h): input_ids, token_type_ids and attention_mask
// into the first layer, labels and next_sentence_label into the loss. One field
// alone may have any name.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H

#include "runtime/program/Fields.h"
#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/TokenSamples.h"
#include "runtime/stage/torch/Tokens.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chimera::runtime {

class TextData : public DataSource {
public:
  /// The last floor(count * holdOut) tokens are held out. Throws
  /// std::runtime_error if the program's model has fields that tokens do not
  /// give, its vocabulary is below that of a text's bytes, or the training
  /// part, or a held-out part that is asked for (holdOut > 0), is too short for
  /// one window of context + 1 tokens; std::invalid_argument unless holdOut is
  /// in [0, 1), or where the program has no model, or as TokenSamples does.
  TextData(std::unique_ptr<Tokens> tokens, const program::ProgramT &program,
           double holdOut, const SampleForm &form = {});
  /// The text at `path`.
  TextData(const std::string &path, const program::ProgramT &program,
           double holdOut = 0.1, uint64_t mostBytes = kMostTextBytes);

  /// Looks at all tokens of the `part`-th of `parts` equal parts, by `threads`
  /// threads. Returns what is wrong with the first that the model does not
  /// have, and where it is; empty if there is none. Throws std::runtime_error
  /// if they cannot be read.
  std::string check(uint32_t threads, uint32_t part = 0,
                    uint32_t parts = 1) const;

  /// Row r of a micro-batch is the sample that begins with the training part's
  /// token mix(seed, 3, step, sample) mod (training tokens - context) (see
  /// Random.h). Throws std::runtime_error where tokens cannot be read, or one
  /// is not in the model's vocabulary.
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

  /// Of the tokens, and of how much of them is for training.
  uint64_t digest() const;

  /// Whether it is a text, whose tokens are bytes.
  bool isOfBytes() const { return tokens->bound() == 256; }
  int64_t trainingTokens() const { return training; }
  int64_t heldOutTokens() const {
    return static_cast<int64_t>(tokens->count()) - training;
  }

  /// Held-out window `window` of `windows`. Windows are evenly spaced over the
  /// held-out part, the first at its begin, the last at its end; they overlap
  /// where there are more than fit. Requires a held-out part and window <
  /// windows.
  Sample heldOutSample(uint64_t window, uint64_t windows) const;

  /// Micro-batches of `windows` held-out windows: sample `row` of micro-batch
  /// `index` of step `pass` is window ((pass · N·W + index) · samples + row).
  /// Refers to this.
  std::unique_ptr<DataSource> heldOut(uint64_t windows) const;

  /// Whether labels are tokens alone, which a unigram model predicts too.
  bool predictsTokensAlone() const;

  /// Mean cross-entropy in nats of the labels that count in those windows,
  /// under the frequencies of tokens in the training part, one added to each
  /// that a byte or, of other tokens, the model's vocabulary has.
  double unigramLoss(uint64_t windows) const;

private:
  class HeldOut;

  void read(uint64_t first, std::span<int64_t> into) const;
  Sample trainingSample(uint64_t step, uint64_t number) const;
  /// Fills the rows of `output`. `sampleOf` gives a sample by its number in all
  /// copies' micro-batches of a step.
  template <typename SampleOf>
  void fill(program::ValueKind kind, MicroBatch microBatch, Bytes output,
            const SampleOf &sampleOf) const;

  std::unique_ptr<Tokens> tokens;
  std::vector<program::Field> inputs, labels;
  std::unique_ptr<TokenSamples> samples;
  int64_t training; ///< tokens before the held-out part
  int64_t context;
  uint64_t vocabulary;   ///< 0 where the model does not say
  uint64_t microBatches; ///< of a step, of all copies
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H
