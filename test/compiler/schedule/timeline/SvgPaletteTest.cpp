//===- SvgPaletteTest.cpp - Colours of actions in pictures ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgPalette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace chimera::schedule::svg {
namespace {

using Colour = std::array<double, 3>; ///< linear red, green and blue, 0 to 1

Colour colourOf(const std::string &hex) {
  Colour colour;
  for (size_t i = 0; i < 3; ++i) {
    double part = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    colour[i] =
        part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  }
  return colour;
}

/// The contrast of two colours as WCAG 2.2 defines it, from 1 to 21.
double contrast(const Colour &a, const Colour &b) {
  auto luminance = [](const Colour &c) {
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] + 0.05;
  };
  double ratio = luminance(a) / luminance(b);
  return std::max(ratio, 1 / ratio);
}

/// The palette for one worker with `chunks` stages per pipeline. If `areTwo`,
/// there are two pipelines, one in each direction.
Palette paletteOf(int32_t chunks, bool areTwo) {
  Problem problem;
  problem.workers = 1;
  Pipeline pipeline;
  pipeline.workers.assign(static_cast<size_t>(chunks), 0);
  problem.pipelines.push_back(pipeline);
  pipeline.up = true;
  if (areTwo)
    problem.pipelines.push_back(pipeline);
  return Palette(problem);
}

std::string fillOf(const Palette &palette, Kind kind, bool up, int32_t chunk) {
  std::string rules = palette.rules();
  std::string rule = "." + palette.classOf(kind, up, chunk) + "{fill:";
  rule[rule.find(' ')] = '.';
  size_t at = rules.find(rule);
  EXPECT_NE(at, std::string::npos) << rule;
  return rules.substr(at + rule.size(), 7);
}

constexpr Kind kKinds[] = {Kind::Forward, Kind::Backward, Kind::InputGradient,
                           Kind::WeightGradient, Kind::Recompute};

/// Each kind, direction and chunk has a colour of its own, and the text on it
/// is readable.
TEST(SvgPalette, HasReadableText) {
  for (int32_t chunks : {1, 2, 3, 4, 8, 16, 32})
    for (bool areTwo : {false, true}) {
      SCOPED_TRACE(std::to_string(chunks) + (areTwo ? " two" : " one"));
      Palette palette = paletteOf(chunks, areTwo);
      std::set<std::string> fills;
      for (Kind kind : kKinds)
        for (bool up : {false, true})
          for (int32_t chunk = 0; chunk < chunks && (areTwo || !up); ++chunk) {
            std::string fill = fillOf(palette, kind, up, chunk);
            fills.insert(fill);
            Colour text = colourOf(palette.shadeOf(kind, up, chunk).hasBlackText
                                       ? "#000000"
                                       : "#ffffff");
            EXPECT_GE(contrast(colourOf(fill), text), 4.5) << fill;
          }
      EXPECT_EQ(fills.size(), 5u * (areTwo ? 2 : 1) * chunks);
    }
}

/// The colour in the Oklab space. Distances in this space are the differences
/// that people see.
Colour oklab(const Colour &c) {
  double l = std::cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] +
                       0.0514459929 * c[2]);
  double m = std::cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] +
                       0.1073969566 * c[2]);
  double s = std::cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] +
                       0.6299787005 * c[2]);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

/// Readers without red or green cones in their eyes (8 % of men) can tell the
/// kinds of actions apart. The matrices simulate how they see: Machado et al.
/// 2009, severity 1.
TEST(SvgPalette, IsForColourBlindReaders) {
  struct Eyes {
    const char *name;
    std::array<Colour, 3> seen;
  };
  const Eyes all[] = {{"all cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
                      {"no red cones",
                       {{{0.152286, 1.052583, -0.204868},
                         {0.114503, 0.786281, 0.099216},
                         {-0.003882, -0.048116, 1.051998}}}},
                      {"no green cones",
                       {{{0.367322, 0.860646, -0.227968},
                         {0.280085, 0.672501, 0.047413},
                         {-0.011820, 0.042940, 0.968881}}}}};
  for (const Eyes &eyes : all) {
    auto see = [&](const std::string &fill) {
      Colour colour = colourOf(fill), seen{};
      for (size_t i = 0; i < 3; ++i) {
        for (size_t j = 0; j < 3; ++j)
          seen[i] += eyes.seen[i][j] * colour[j];
        seen[i] = std::clamp(seen[i], 0.0, 1.0);
      }
      return oklab(seen);
    };
    Palette palette = paletteOf(2, false);
    for (Kind kind : kKinds)
      for (Kind other : kKinds)
        for (int32_t chunk : {0, 1}) {
          Colour a = see(fillOf(palette, kind, false, chunk));
          Colour b = see(fillOf(palette, other, false, chunk));
          double distance = std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
          if (kind != other) {
            EXPECT_GE(distance, 0.06)
                << eyes.name << ": " << wordsOf(kind) << " and "
                << wordsOf(other) << ", chunk " << chunk;
          }
        }
  }
}

} // namespace
} // namespace chimera::schedule::svg
