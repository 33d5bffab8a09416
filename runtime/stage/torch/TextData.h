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
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H

#include "runtime/stage/Stage.h"
#include "runtime/stage/torch/Tokens.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::runtime {

/// Masked tokens, as BERT is trained (Devlin et al., NAACL'19, section 3.1): of
/// each sample's tokens those that are chosen, each with probability `rate`,
/// are to be predicted. In their place stands `token`, in one of ten another
/// token of the sample, in one of ten they stay. All other labels are kIgnored.
struct Masking {
  int64_t token;
  double rate;
};

/// A label that does not count, as PyTorch's losses have it.
inline constexpr int64_t kIgnored = -100;

class TextData : public DataSource {
public:
  /// The last floor(count * holdOut) tokens are held out. Throws
  /// std::runtime_error if the program's samples are no tokens, its vocabulary
  /// is below that of a text's bytes, or the training part, or a held-out part
  /// that is asked for (holdOut > 0), is too short for one window of context +
  /// 1 tokens; std::invalid_argument unless holdOut is in [0, 1), or where the
  /// program has no model.
  TextData(std::unique_ptr<Tokens> tokens, const program::ProgramT &program,
           double holdOut, std::optional<Masking> masking = std::nullopt);
  /// The text at `path`.
  TextData(const std::string &path, const program::ProgramT &program,
           double holdOut = 0.1, uint64_t mostBytes = kMostBytes);

  /// Every rank has the whole of a text in memory: 4 GiB.
  static constexpr uint64_t kMostBytes = uint64_t(1) << 32;

  /// Row r of a micro-batch is the `context` tokens of the training part from
  /// mix(seed, 3, step, sample) mod (training tokens - context) on (see
  /// Random.h); labels are the same one token later or, where tokens are
  /// masked, those that were. Throws std::runtime_error where they cannot be
  /// read, or one is not in the model's vocabulary.
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

  /// The tokens and labels of a sample.
  struct Sample {
    std::vector<int64_t> tokens, labels;
  };

  /// Held-out window `window` of `windows`. Windows are evenly spaced over the
  /// held-out part, the first at its begin, the last at its end; they overlap
  /// where there are more than fit. Requires a held-out part and window <
  /// windows.
  Sample heldOutSample(uint64_t window, uint64_t windows) const;

  /// Mean cross-entropy in nats of the labels that count in those windows,
  /// under the frequencies of tokens in the training part, one added to each
  /// that a byte or, of other tokens, the model's vocabulary has.
  double unigramLoss(uint64_t windows) const;

private:
  void read(uint64_t first, std::span<int64_t> into) const;
  /// The window that begins with token `first`; `key` says what is masked.
  Sample sampleAt(uint64_t first, uint64_t key) const;

  std::unique_ptr<Tokens> tokens;
  std::optional<Masking> masking;
  int64_t training; ///< tokens before the held-out part
  int64_t context;
  uint64_t vocabulary; ///< 0 where the model does not say
  uint64_t seed;
};

/// A sum of losses, and what it weighs.
struct WeighedLoss {
  double sum, weight;
};

/// The mean loss in nats of `windows` held-out windows, in micro-batches of
/// `samples`. `lossOf` gives the loss of such a micro-batch, of its tokens and
/// labels; the last one may have fewer samples. Throws std::invalid_argument
/// without held-out text or windows.
double meanHeldOutLoss(
    const TextData &data, uint64_t windows, uint64_t samples,
    const std::function<WeighedLoss(std::span<const int64_t> tokens,
                                    std::span<const int64_t> labels)> &lossOf);

/// The same of a model of the runtime's own, without dropout, in micro-batches
/// of the program's size. `weights` are the whole model's in layer order.
/// Throws std::invalid_argument where the program has no model that Layout.h
/// accepts or `weights` has not its size.
double heldOutLoss(const program::ProgramT &program, ConstBytes weights,
                   const TextData &data, uint64_t windows);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H
