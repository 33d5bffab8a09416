//===- PassOptions.cpp - Options of passes --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/PassOptions.h"

#include "dialect/Spelling.h"

#include "llvm/ADT/StringExtras.h"

using llvm::SmallVector;
using llvm::StringRef;

namespace chimera {

llvm::cl::ValuesClass messageModels() {
  using program::MessageModel;
  auto value = [](MessageModel model, const char *meaning) {
    return llvm::cl::OptionEnumValue{program::nameOf(model), int(model),
                                     meaning};
  };
  return llvm::cl::values(
      value(MessageModel::Rendezvous, "a send may wait for its receive"),
      value(MessageModel::Buffered, "a send waits for nothing"),
      value(MessageModel::StreamPerDirection,
            "as NCCL, with a communicator for each channel"),
      value(MessageModel::StreamPerPair,
            "as NCCL, with a communicator for each pair of workers"),
      value(MessageModel::StreamPerDevice,
            "as NCCL, with one order on each device for all communicators"));
}

/// The names in "{NAME=VALUE NAME=VALUE}". Requires that no default value
/// contains a blank.
static SmallVector<StringRef> namesIn(StringRef options) {
  SmallVector<StringRef> names;
  options.consume_front("{");
  options.consume_back("}");
  for (; !options.empty(); options = options.split(' ').second)
    names.push_back(options.take_until([](char c) { return c == '='; }));
  return names;
}

std::string optionError(StringRef name, StringRef known, StringRef given,
                        StringRef message) {
  constexpr StringRef kUnknown = "no such option ";
  const size_t at = message.find(kUnknown);
  if (at == StringRef::npos)
    return (name + ": cannot take the options '" + given + "'" +
            (message.trim().empty() ? "" : ": ") + message.trim())
        .str();
  StringRef option = message.substr(at + kUnknown.size()).trim();
  SmallVector<StringRef> names = namesIn(known);
  std::string text = (name + ": expected ").str();
  if (names.empty())
    text += "no options";
  else
    text += "one of the options " + llvm::join(names, ", ");
  text += (", got \"" + option + "\"").str();
  if (StringRef nearest = mostSimilarWord(names, option); !nearest.empty())
    text += (": did you mean " + nearest + "?").str();
  return text;
}

} // namespace chimera
