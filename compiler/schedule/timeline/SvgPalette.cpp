//===- SvgPalette.cpp - Colours of actions in pictures --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgPalette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace chimera::schedule::svg {

namespace {

using Colour = std::array<int, 3>; ///< red, green and blue, 0 to 255

/// The ends of the colours of a kind of actions.
struct Hue {
  Colour dark, pale;
};

constexpr Colour rgb(int red, int green, int blue) {
  return {red, green, blue};
}

/// Indexed by `Kind`.
constexpr Hue kHues[] = {
#define ACTION_KIND(kind, name, letter, cost, result, gradient, dark, pale)    \
  {rgb dark, rgb pale},
#include "compiler/schedule/model/ActionKinds.def"
};

/// If there are two directions, each has this part of the range of shades from
/// dark to pale.
constexpr double kOneDirection = 0.4;

const Hue &hueOf(Kind kind) { return kHues[static_cast<size_t>(kind)]; }

Colour between(const Hue &hue, double paleness) {
  Colour colour;
  for (size_t i = 0; i < colour.size(); ++i)
    colour[i] = static_cast<int>(
        std::lround(hue.dark[i] + paleness * (hue.pale[i] - hue.dark[i])));
  return colour;
}

/// The relative luminance of WCAG 2.2, from 0 for black to 1 for white.
double luminance(const Colour &colour) {
  auto linear = [](int value) {
    double part = value / 255.0;
    return part <= 0.04045 ? part / 12.92
                           : std::pow((part + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) +
         0.0722 * linear(colour[2]);
}

std::string hex(const Colour &colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour[0], colour[1],
                colour[2]);
  return text;
}

int32_t mostChunks(const Problem &problem) {
  int32_t most = 1;
  for (const Pipeline &pipeline : problem.pipelines) {
    std::vector<int32_t> counts(static_cast<size_t>(problem.workers));
    for (int32_t worker : pipeline.workers)
      most = std::max(most, ++counts[static_cast<size_t>(worker)]);
  }
  return most;
}

} // namespace

Palette::Palette(const Problem &problem)
    : areTwo(std::ranges::any_of(problem.pipelines, &Pipeline::up) &&
             !std::ranges::all_of(problem.pipelines, &Pipeline::up)),
      count(mostChunks(problem)) {}

double Palette::paleness(bool up, int32_t chunk) const {
  double part = count > 1 ? static_cast<double>(chunk) / (count - 1) : 0;
  if (!areTwo)
    return part;
  return up ? 1 - kOneDirection * part : kOneDirection * part;
}

std::string Palette::classOf(Kind kind, bool up, int32_t chunk) const {
  std::string name = "k" + std::to_string(static_cast<int>(kind));
  name += !areTwo ? " c" : up ? " u" : " d";
  if (count > 1)
    name += std::to_string(chunk) + "of" + std::to_string(count);
  return name;
}

Palette::Shade Palette::shadeOf(Kind kind, bool up, int32_t chunk) const {
  const double pale = paleness(up, chunk);
  const Colour box = between(hueOf(kind), pale);
  // White text if its contrast is at least 4.5, otherwise black text. The two
  // contrasts multiply to 21, so the contrast of black text is then more than
  // 4.66.
  return {hex(box), pale >= 0.5 ? hex(hueOf(kind).dark) : "",
          (1 + 0.05) / (luminance(box) + 0.05) < 4.5};
}

std::string Palette::rules() const {
  std::string css;
  for (size_t k = 0; k < std::size(kHues); ++k)
    for (bool up : {false, true})
      for (int32_t chunk = 0; chunk < count && (areTwo || !up); ++chunk) {
        std::string name = "." + classOf(static_cast<Kind>(k), up, chunk);
        std::ranges::replace(name, ' ', '.');
        const Shade shade = shadeOf(static_cast<Kind>(k), up, chunk);
        css += name + "{fill:" + shade.fill;
        if (!shade.edge.empty())
          css += ";stroke:" + shade.edge + ";stroke-width:.8";
        css += "}\n";
      }
  return css;
}

} // namespace chimera::schedule::svg
