//===- TokenSamples.h - Samples made of a sequence of tokens ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a language model is given of a text: a window of it, whose labels are
// the same one token later; or, as BERT is trained (Devlin et al., NAACL'19,
// section 3.1 and appendix A), some tokens masked, in one window or in a pair
// of sentences.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_STAGE_TORCH_TOKENSAMPLES_H
#define CHIMERA_RUNTIME_STAGE_TORCH_TOKENSAMPLES_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace chimera::runtime {

/// A label that does not count, as PyTorch's losses have it.
inline constexpr int64_t kIgnored = -100;

/// Of each sample's tokens those that are chosen, each with probability `rate`,
/// are to be predicted. In their place stands `token`, in one of ten another
/// token of the sample, in one of ten they stay. All other labels are kIgnored.
struct Masking {
  int64_t token;
  double rate;
};

/// Two sentences, [CLS] A [SEP] B [SEP] [PAD] …: in half of the samples B is
/// what follows A, in the others it is from elsewhere. One in ten is shorter
/// than the context, of any length. The three tokens are never masked.
struct Pairing {
  int64_t classification, separator, padding;
};

struct SampleForm {
  std::optional<Masking> masking = std::nullopt;
  std::optional<Pairing> pairing = std::nullopt;
  /// Ends a document: no sentence of a pair goes beyond it, nor beyond an end
  /// that the files say.
  std::optional<int64_t> documentEnd = std::nullopt;
};

/// The names are those of the fields (runtime/program/Fields.h). `attention` is
/// 0 where a token is padding, `segments` 1 in the second sentence.
struct Sample {
  std::vector<int64_t> tokens, labels, segments, attention;
  int64_t nextSentence = 0; ///< 0 where the second follows the first, else 1
};

/// A part of a sequence of tokens.
struct TokenRange {
  uint64_t first, count;
};

class TokenSamples {
public:
  /// Fills the span with the tokens from a number on.
  using Read = std::function<void(uint64_t, std::span<int64_t>)>;
  /// How many tokens come before the end of the document that has a token.
  using DocumentEnd = std::function<uint64_t(uint64_t)>;

  /// Throws std::invalid_argument where pairs are asked for and the context has
  /// no room for two tokens, or no masking comes with them.
  TokenSamples(Read read, DocumentEnd documentEnd, int64_t context,
               const SampleForm &form, uint64_t seed);

  /// The sample of `part`, of more than context tokens, that begins at token
  /// `first`, which has context more behind it there. What is drawn for it is a
  /// function of the seed, the step and its number.
  Sample at(uint64_t first, TokenRange part, uint64_t step,
            uint64_t number) const;

private:
  Sample window(uint64_t first) const;
  Sample pair(uint64_t first, TokenRange part, uint64_t key) const;
  void mask(Sample &sample, uint64_t key) const;

  Read read;
  DocumentEnd documentEnd;
  size_t context;
  SampleForm form;
  uint64_t seed;
};

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_STAGE_TORCH_TOKENSAMPLES_H
