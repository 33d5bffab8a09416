//===- SvgLegend.cpp - The legend of a picture ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/SvgLegend.h"

#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"
#include "compiler/schedule/timeline/SvgStyle.h"

#include <algorithm>
#include <map>
#include <set>

namespace chimera::schedule::svg {

// Lengths in pixels.
static constexpr double kBoxWidth = 22, kBoxHeight = 14, kLineHeight = 4;
/// Three gaps: between two boxes of an entry, between the last box and the name
/// of an entry, and after the name.
static constexpr double kBoxGap = 2, kNameGap = 6, kEntryGap = 18;
static constexpr double kLine = 20;

namespace {

/// The kinds of boxes and lines that timelines show within the range of an
/// axis. The legend must explain them.
class Content {
public:
  void add(const Timeline &timeline, const Palette &palette, const Axis &axis);

  /// The chunks of each kind and direction (true for up).
  std::map<std::pair<Kind, bool>, std::set<int32_t>> actions;
  bool hasMessages = false, hasBodies = false;
  bool hasAllReduces = false, hasWaits = false, hasUpdates = false;

private:
  void addSyncAndUpdate(const SyncAndUpdate &syncAndUpdate, const Axis &axis);
};

} // namespace

void Content::add(const Timeline &timeline, const Palette &palette,
                  const Axis &axis) {
  for (size_t w = 0; w < timeline.schedule.workers.size(); ++w)
    for (size_t i = 0; i < timeline.schedule.workers[w].size(); ++i) {
      const Action &action = timeline.schedule.workers[w][i];
      bool up = palette.hasDirections() &&
                timeline.problem.pipelines[action.pipeline].up;
      if (axis.shows(timeline.timing.starts[w][i], timeline.timing.ends[w][i]))
        actions[{action.kind, up}].insert(timeline.chunks.numberOf(action));
    }
  if (timeline.occupations)
    for (const std::vector<Occupation> &row : *timeline.occupations)
      for (const Occupation &occupation : row)
        hasMessages |= axis.shows(occupation.begin, occupation.end);
  for (size_t w = 0; w < timeline.schedule.bodies.size(); ++w)
    if (auto [begin, end] = timeline.schedule.bodies[w]; begin < end)
      hasBodies |= axis.shows(timeline.timing.starts[w][begin],
                              timeline.timing.ends[w][end - 1]);
  if (timeline.syncAndUpdate)
    addSyncAndUpdate(*timeline.syncAndUpdate, axis);
}

void Content::addSyncAndUpdate(const SyncAndUpdate &syncAndUpdate,
                               const Axis &axis) {
  for (const SyncAndUpdate::AllReduce &allReduce : syncAndUpdate.allReduces)
    hasAllReduces |= allReduce.end > allReduce.begin &&
                     axis.shows(allReduce.begin, allReduce.end);
  for (const std::vector<SyncAndUpdate::Work> &works : syncAndUpdate.work)
    for (const SyncAndUpdate::Work &work : works)
      if (axis.shows(work.begin, work.end))
        (work.isUpdate() ? hasUpdates : hasWaits) = true;
}

/// "chunk 1", "chunks 0 and 1", "chunks 0 to 3".
static std::string nameOf(const std::set<int32_t> &chunks) {
  std::string first = std::to_string(*chunks.begin());
  if (chunks.size() == 1)
    return "chunk " + first;
  return "chunks " + first + (chunks.size() == 2 ? " and " : " to ") +
         std::to_string(*chunks.rbegin());
}

/// Adds an entry that explains the marks of chunks: 0' and, if there are more
/// than two chunks, 0'2. Adds none if no action has a mark.
static void addMarks(const Content &content, const Palette &palette,
                     std::vector<LegendEntry> &entries) {
  constexpr int32_t kMostMarks = 2;
  for (const auto &[of, chunks] : content.actions) {
    auto [kind, up] = of;
    LegendEntry entry;
    std::set<int32_t> marked;
    for (int32_t chunk : chunks)
      if (chunk > 0 && std::ssize(marked) < kMostMarks) {
        marked.insert(chunk);
        entry.boxes.push_back({palette.classOf(kind, up, chunk),
                               "0" + chunkMark(chunk),
                               palette.shadeOf(kind, up, chunk).hasBlackText});
      }
    if (marked.empty())
      continue;
    entry.name = "micro-batch 0 of " + nameOf(marked);
    entries.push_back(std::move(entry));
    return;
  }
}

std::vector<LegendEntry> legendOf(std::span<const Timeline *const> timelines,
                                  const Palette &palette, const Axis &axis) {
  Content content;
  for (const Timeline *timeline : timelines)
    content.add(*timeline, palette, axis);
  const bool hasChunks = palette.chunks() > 1;
  std::vector<LegendEntry> entries;
  for (const auto &[of, chunks] : content.actions) {
    auto [kind, up] = of;
    LegendEntry &entry = entries.emplace_back();
    entry.name = wordsOf(kind);
    if (palette.hasDirections())
      entry.name += up ? ", up" : ", down";
    if (hasChunks)
      entry.name += ", " + nameOf(chunks);
    for (int32_t chunk : chunks)
      entry.boxes.push_back({palette.classOf(kind, up, chunk),
                             hasChunks ? std::to_string(chunk) : "",
                             palette.shadeOf(kind, up, chunk).hasBlackText});
  }
  addMarks(content, palette, entries);
  auto add = [&](bool isShown, const char *style, const char *name,
                 bool isLine = false) {
    if (isShown)
      entries.push_back({{{.style = style, .isLine = isLine}}, name});
  };
  add(content.hasMessages, "message", "send or receive");
  add(true, "bubble", "bubble");
  add(content.hasBodies, "body", "repeated in each step", true);
  add(content.hasAllReduces, "all-reduce", "all-reduce under way", true);
  add(content.hasWaits, "wait",
      content.hasAllReduces ? "wait for it" : "wait for all-reduce");
  add(content.hasUpdates, "update", "update");
  return entries;
}

Legend::Legend(std::span<const LegendEntry> entries, double width) {
  double x = 0, y = 0;
  // Begins a new line if `length` pixels do not fit into the current line.
  auto fit = [&](double length) {
    if (x == 0 || x + length <= width)
      return;
    x = 0;
    y += kLine;
    ++lines;
  };
  for (const LegendEntry &entry : entries) {
    double name =
        kNoteCharacter * static_cast<double>(characterCount(entry.name));
    fit((kBoxWidth + kBoxGap) * static_cast<double>(entry.boxes.size()) -
        kBoxGap + kNameGap + name);
    // An entry that is wider than a line is broken between boxes.
    for (const LegendBox &box : entry.boxes) {
      fit(kBoxWidth);
      double height = box.isLine ? kLineHeight : kBoxHeight;
      svg += "<rect class=\"" + box.style + "\" x=\"" + svgNumber(x + 0.5) +
             "\" y=\"" + svgNumber(y + (kBoxHeight - height) / 2) +
             "\" width=\"" + svgNumber(kBoxWidth - 1) + "\" height=\"" +
             svgNumber(height) + (box.isLine ? "\"/>\n" : "\" rx=\"2\"/>\n");
      if (!box.label.empty())
        svg += text(box.isTextBlack ? "s p" : "s", x + kBoxWidth / 2,
                    y + kBoxHeight / 2 + 3, box.label);
      x += kBoxWidth + kBoxGap;
    }
    x += kNameGap - kBoxGap;
    fit(name);
    svg += text("note", x, y + 11, entry.name);
    x += name + kEntryGap;
  }
}

double Legend::height() const { return kLine * static_cast<double>(lines); }

std::string Legend::draw(double y) const {
  return "<g class=\"legend\" transform=\"translate(0 " + svgNumber(y) +
         ")\">\n" + svg + "</g>\n";
}

} // namespace chimera::schedule::svg
