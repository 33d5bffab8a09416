//===- TextData.h - Training samples from tokens ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The data source for training on tokens. In each epoch, the training part of
// the tokens is cut into windows of `context` tokens, one for each sample. So
// an epoch has each token once, except for less than two windows at the ends.
// The label of a window's last token is the next window's first token. The
// first window begins at another one of the first `context` tokens in each
// epoch, so a token is not always at the same place in its window. SampleOrder
// says which step trains on which window.
//
// If windows are to be within documents, each document is cut into windows of
// its own instead (DocumentWindows.h).
//
// The last part of the tokens is held out of training. On that part, the
// model's loss can be compared with the loss of a unigram model.
//
// TokenSamples makes the samples. A sample has several fields
// (runtime/program/Fields.h), and a model uses some of them: input_ids,
// token_type_ids, attention_mask and position_ids for the first layer, labels
// and next_sentence_label for the loss. If the first layer has only one input,
// or the loss only one label, it may have any name.
//
// If the model has position_ids but no attention_mask, and the documents are
// known, the positions keep the documents of a window apart (TokenSamples.h).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_TEXTDATA_H
#define CHIMERA_RUNTIME_DATA_TEXTDATA_H

#include "runtime/data/Dataset.h"
#include "runtime/data/DocumentWindows.h"
#include "runtime/data/TokenSamples.h"
#include "runtime/data/Tokens.h"
#include "runtime/program/Fields.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace chimera::runtime {

/// Throws std::runtime_error if the model has an input or a label that samples
/// of tokens do not have.
void expectTokenFields(const program::PackageT &model);

class TextData : public Dataset {
public:
  /// The last floor(count * holdOut) tokens are held out. If holdOut is 1,
  /// there is no training part. Throws std::runtime_error if the model has
  /// fields that a sample does not have, if its vocabulary is smaller than 256
  /// for text as bytes, if the training part is shorter than one window of
  /// context + 1 tokens, if the documents that `form` needs are not known
  /// (findDocumentEnds), if documents end in a window of a model whose loss has
  /// no weight, or if the constructor of SampleOrder throws it. Throws
  /// std::invalid_argument if holdOut is not in [0, 1], if the program has no
  /// model, or if the constructor of TokenSamples throws it.
  TextData(std::unique_ptr<Tokens> tokens, const program::ProgramT &program,
           double holdOut, const TokenSampleOptions &form = {},
           LastBatch last = LastBatch::Drop);
  /// Uses the bytes of the text at `path` as tokens.
  TextData(const std::string &path, const program::ProgramT &program,
           double holdOut = 0.1, uint64_t mostBytes = kMaxTextBytes,
           LastBatch last = LastBatch::Drop);

  /// The error message has the place of the first token outside the vocabulary.
  std::string check(uint32_t threads, uint32_t part = 0,
                    uint32_t parts = 1) const override;

  /// Loads a micro-batch. Throws std::runtime_error if tokens cannot be read or
  /// are not in the model's vocabulary.
  void load(program::ValueKind kind, MicroBatch microBatch,
            Bytes output) override;

  uint64_t digest() const override;

  /// Whether the data is a text, whose tokens are bytes.
  bool isOfBytes() const { return tokens->tokenBound() == 256; }
  const SampleOrder &sampleOrder() const override { return order.value(); }
  int64_t trainingTokens() const { return training; }
  int64_t heldOutTokens() const {
    return static_cast<int64_t>(tokens->count()) - training;
  }

  /// The sample at window number `window` of `windows` held-out windows. The
  /// windows are evenly spaced: the first one is at the begin of the held-out
  /// part, the last one at its end. They overlap if there are many. Windows
  /// within documents do not overlap; if there are fewer than `windows`, each
  /// is used about equally often. Requires a held-out part of one window or
  /// more (see heldOut), and window < windows.
  Sample heldOutSample(uint64_t window, uint64_t windows) const;

  /// Counts windows that do not overlap.
  uint64_t heldOutCount() const override;
  /// Samples are held-out windows (see heldOutSample). Throws
  /// std::runtime_error if the held-out part is shorter than one window of
  /// context + 1 tokens.
  std::unique_ptr<DataSource> heldOut(uint64_t windows) const override;

  /// Whether tokens are the only labels. In that case a unigram model can
  /// predict the labels too.
  bool predictsTokensAlone() const;

  /// The mean cross-entropy, in nats, of a unigram model on the labels of
  /// `windows` held-out windows of `heldOut`, without labels that are kIgnored.
  /// `heldOut` may be this object or another one for the same model. The
  /// frequency of a token in the unigram model is the number of its occurrences
  /// in the training part, plus one. Of more than 2^28 training tokens, evenly
  /// spaced blocks are counted. The unigram model knows all byte values or
  /// the model's whole vocabulary. Requires a held-out part of one window or
  /// more.
  double unigramLoss(const TextData &heldOut, uint64_t windows) const;

private:
  class HeldOut;

  /// Throws std::runtime_error if a part of `count` tokens is shorter than one
  /// window, or if it is cut into `windows` and there are none. The message
  /// ends with `advice`.
  void expectWindow(const char *part, int64_t count,
                    const std::optional<DocumentWindows> &windows,
                    const char *advice) const;
  void cutIntoDocuments(const TokenSampleOptions &form);
  void read(uint64_t first, std::span<int64_t> into) const;
  Sample trainingSample(uint64_t step, uint64_t number) const;
  /// Fills the rows of `output`. `sampleOf` makes a sample from its number
  /// within all micro-batches (of all copies) in a step.
  template <typename SampleOf>
  void fill(program::ValueKind kind, MicroBatch microBatch, Bytes output,
            const SampleOf &sampleOf) const;

  std::unique_ptr<Tokens> tokens;
  std::vector<program::Field> inputs, labels;
  std::unique_ptr<TokenSamples> samples;
  std::optional<SampleOrder> order;
  /// The windows of both parts if they are within documents.
  std::optional<DocumentWindows> trainingWindows, heldOutWindows;
  int64_t training; ///< tokens before the held-out part
  int64_t context;
  uint64_t firstWindows; ///< number of places where the first window may begin
  uint64_t vocabulary;   ///< 0 if the model does not state it
  uint64_t microBatches; ///< in a step, of all copies
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_TEXTDATA_H
