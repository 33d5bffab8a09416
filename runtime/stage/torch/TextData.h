//===- TextData.h - Byte-level tokens from a text file ----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text file as training data: a token is a byte. The last part of the file is
// held out of training; there a model's loss is compared with that of a
// byte-unigram model.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H

#include "runtime/stage/Stage.h"

#include <string>
#include <vector>

namespace chimera::runtime {

class TextData : public DataSource {
public:
  /// Reads the file or pipe at `path` whole. The last floor(size * holdOut)
  /// bytes are held out. Throws std::runtime_error if it cannot be read, is of
  /// another kind, like a device, or has more than `mostBytes`, the program's
  /// vocabulary is below 256, or the training part, or a held-out
  /// part that is asked for (holdOut > 0), is too short for one window of
  /// context + 1 bytes; std::invalid_argument unless holdOut is in [0, 1).
  TextData(const std::string &path, const program::ProgramT &program,
           double holdOut = 0.1, uint64_t mostBytes = kMostBytes);

  /// Every rank has the whole text in memory: 4 GiB.
  static constexpr uint64_t kMostBytes = uint64_t(1) << 32;

  /// Row r of a micro-batch is the `context` bytes of the training part from
  /// mix(seed, 3, step, index, r) mod (training bytes - context) on (see
  /// Random.h); labels are the same one byte later.
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

  /// Of the text, and of how much of it is for training.
  uint64_t digest() const;

  int64_t trainingBytes() const { return training; }
  int64_t heldOutBytes() const {
    return static_cast<int64_t>(text.size()) - training;
  }

  /// The context + 1 bytes of held-out window `window` of `windows`. Windows
  /// are evenly spaced over the held-out part, the first at its begin, the last
  /// at its end; they overlap where there are more than fit. Requires a
  /// held-out part and window < windows.
  std::span<const uint8_t> heldOutWindow(uint64_t window,
                                         uint64_t windows) const;

  /// Mean cross-entropy in nats of the labels of those windows under the
  /// frequencies of bytes in the training part, one added to each of the 256.
  double unigramLoss(uint64_t windows) const;

private:
  std::vector<uint8_t> text;
  int64_t training; ///< bytes of `text` before the held-out part
  int64_t context;
  uint64_t seed;
};

/// The mean loss in nats of `windows` held-out windows, in micro-batches of
/// `samples`. `lossOf` gives the mean loss of such a micro-batch, of its tokens
/// and labels; the last one may have fewer samples. Throws std::invalid_argument
/// without held-out text or windows.
double
meanHeldOutLoss(const TextData &data, uint64_t windows, uint64_t samples,
                const std::function<double(std::span<const int64_t> tokens,
                                           std::span<const int64_t> labels)>
                    &lossOf);

/// The same of a model of the runtime's own, without dropout, in micro-batches
/// of the program's size. `weights` are the whole model's in layer order. Throws
/// std::invalid_argument where the program has no model that Layout.h accepts or
/// `weights` has not its size.
double heldOutLoss(const program::ProgramT &program, ConstBytes weights,
                   const TextData &data, uint64_t windows);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TEXTDATA_H
