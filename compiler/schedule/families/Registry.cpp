//===- Registry.cpp - The list of schemes ---------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Registry.h"

#include "compiler/schedule/families/Families.h"

#include <cctype>

namespace chimera::schedule {

std::span<const Scheme> schemes() {
  static const Scheme all[] = {
      kChimera, kGPipe,     kOneForwardOneBackward, kInterleaved1F1B, kZBV,
      kGems,    kPipeDream, kPipeDream2BW};
  return all;
}

const Scheme *findScheme(std::string_view name) {
  for (const Scheme &scheme : schemes())
    if (name == scheme.name)
      return &scheme;
  return nullptr;
}

std::string schemeNames() {
  std::string names;
  for (const Scheme &scheme : schemes())
    names += (names.empty() ? "" : ", ") + std::string(scheme.name);
  return names;
}

/// "ScheduleInterleaved1F1B" and "interleaved-1f1b" both become
/// "interleaved1f1b".
static std::string plainName(std::string_view name) {
  std::string plain;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kPyTorch = "schedule";
  if (plain.starts_with(kPyTorch))
    plain.erase(0, kPyTorch.size());
  return plain;
}

namespace {

/// A name that papers or other tools use.
struct OtherName {
  std::string_view plain;  ///< as plainName returns it
  std::string_view scheme; ///< the scheme's name; empty if there is none yet
};

} // namespace

static constexpr OtherName kOtherNames[] = {{"dapple", "1f1b"},
                                            {"pipedreamflush", "1f1b"},
                                            {"interleaved", "interleaved-1f1b"},
                                            {"zbvzerobubble", "zb-v"},
                                            {"2bw", "pipedream-2bw"},
                                            {"zbh1", ""},
                                            {"zbh2", ""},
                                            {"zb1p", ""},
                                            {"zb2p", ""},
                                            {"interleavedzerobubble", ""},
                                            {"vhalf", ""},
                                            {"vmin", ""},
                                            {"dualpipe", ""},
                                            {"dualpipev", ""},
                                            {"bfs", ""},
                                            {"loopedbfs", ""},
                                            {"hanayo", ""},
                                            {"mixpipe", ""},
                                            {"bpipe", ""},
                                            {"bitpipe", ""},
                                            {"seq1f1b", ""},
                                            {"slimpipe", ""}};

std::string hintForUnknownScheme(std::string_view name) {
  const std::string plain = plainName(name);
  for (const Scheme &scheme : schemes())
    if (plainName(scheme.name) == plain)
      return ": did you mean " + std::string(scheme.name) + "?";
  for (const OtherName &other : kOtherNames)
    if (other.plain == plain)
      return other.scheme.empty()
                 ? ", which is not supported yet: give its placement and its "
                   "order (chimera.direction, chimera.order)"
                 : ": did you mean " + std::string(other.scheme) + "?";
  return {};
}

std::string schemeHelp() {
  std::string text;
  for (const Scheme &scheme : schemes()) {
    text += std::string(scheme.name) + ": " + scheme.summary + " (" +
            scheme.needs + ")\n";
    Options options(scheme.options);
    for (size_t i = 0; i < scheme.options.size(); ++i) {
      const Option &option = scheme.options[i];
      text += "  " + std::string(option.name) + " = " + options.print(i) +
              ": " + std::string(option.summary) + " (" +
              std::string(option.values) + ", or best)\n";
    }
  }
  return text;
}

} // namespace chimera::schedule
