//===- TokenSamples.h - Samples from a sequence of tokens -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Samples for a language model. A sample is a window of the text. Its labels
// are the tokens of the same window, moved by one token: the label of each
// token is the next token. Alternatively, some tokens are masked, as in the
// training of BERT (Devlin et al., NAACL'19, section 3.1 and appendix A). The
// sample is then one window or a pair of sentences.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_TOKENSAMPLES_H
#define CHIMERA_RUNTIME_DATA_TOKENSAMPLES_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace chimera::runtime {

/// The label that PyTorch's losses ignore.
inline constexpr int64_t kIgnored = -100;

/// How tokens are masked. Each token of a sample is chosen with probability
/// `rate`, and the model must predict it. Of the chosen tokens, 80 % are
/// replaced by `token`, 10 % are replaced by a random token of the sample, and
/// 10 % are not replaced. The labels of all tokens that were not chosen are
/// kIgnored.
struct Masking {
  int64_t token;
  double rate;
};

/// The special tokens of a pair of sentences A and B: [CLS] A [SEP] B [SEP]
/// [PAD] …. They are never masked. In half of the samples, B follows A in the
/// text. In the other half, B is from a random place. One pair in ten gets a
/// random length, which may be shorter than the context.
struct Pairing {
  int64_t classification, separator, padding;
};

struct TokenSampleOptions {
  std::optional<Masking> masking = std::nullopt;
  std::optional<Pairing> pairing = std::nullopt;
  /// The token that ends a document, beside the document ends that the files
  /// state. A sentence of a pair never continues after a document end.
  std::optional<int64_t> documentEnd = std::nullopt;
  /// Whether each sample is a window of one document (DocumentWindows.h). Not
  /// for pairs.
  bool withinDocuments = false;
  /// Whether a window may have several documents that the model keeps apart by
  /// their positions. If so, positions begin at 0 in each document, and the
  /// label of a document's last token is kIgnored. Not for pairs.
  bool separatesDocuments = false;
};

/// One sample. The members are named after the fields
/// (runtime/program/Fields.h). `attention` is 0 for padding and 1 elsewhere.
/// `segments` is 1 in the second sentence and 0 elsewhere. `positions` are the
/// numbers of the tokens in the window, or in their document.
struct Sample {
  std::vector<int64_t> tokens, labels, segments, attention, positions;
  int64_t nextSentence = 0; ///< 0 if the second sentence is next, else 1
};

/// A contiguous range of a sequence of tokens.
struct TokenRange {
  uint64_t first, count;
};

class TokenSamples {
public:
  /// A function that fills the span with the tokens from the given token number
  /// on.
  using Read = std::function<void(uint64_t, std::span<int64_t>)>;
  /// A function whose argument is the number of a token. Returns the number of
  /// tokens before the end of the document that contains this token.
  using DocumentEnd = std::function<uint64_t(uint64_t)>;

  /// Throws std::invalid_argument if pairs are requested and the context is
  /// shorter than 5 tokens.
  TokenSamples(Read read, DocumentEnd documentEnd, int64_t context,
               const TokenSampleOptions &form, uint64_t seed);

  /// The sample that starts at token number `first` of the whole sequence. All
  /// tokens of the sample are from `part`. Requires that at least `context`
  /// tokens of `part` follow the first token. Random choices depend only on the
  /// seed, the step and the sample's number.
  Sample sampleAt(uint64_t first, TokenRange part, uint64_t step,
                  uint64_t number) const;

private:
  Sample window(uint64_t first) const;
  Sample pair(uint64_t first, TokenRange part, uint64_t key) const;
  void separateDocuments(Sample &sample, uint64_t first) const;
  void mask(Sample &sample, uint64_t key) const;

  Read read;
  DocumentEnd documentEnd;
  size_t context;
  TokenSampleOptions form;
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_TOKENSAMPLES_H
