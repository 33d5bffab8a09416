//===- DocumentWindows.cpp - Windows within documents ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DocumentWindows.h"

#include "runtime/program/File.h"
#include "runtime/random/Random.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;

std::vector<uint64_t>
chimera::runtime::findDocumentEnds(const Tokens &tokens,
                                   std::optional<int64_t> mark) {
  if (!mark && !tokens.statesDocuments())
    throw std::runtime_error(
        "expected files that state where their documents end, got " +
        tokens.fileNames() +
        ": write them with tools/export/chimera-tokens --index, or give "
        "--document-end TOKEN");
  std::vector<uint64_t> stated = tokens.documentEnds();
  if (stated.empty())
    stated.push_back(tokens.count());
  if (!mark)
    return stated;
  std::vector<uint64_t> marked;
  std::vector<int64_t> block(size_t{1} << 16);
  for (uint64_t first = 0; first < tokens.count(); first += block.size()) {
    block.resize(std::min<uint64_t>(block.size(), tokens.count() - first));
    tokens.read(first, block);
    for (size_t i = 0; i < block.size(); ++i)
      if (block[i] == *mark)
        marked.push_back(first + i + 1);
  }
  std::vector<uint64_t> ends;
  std::ranges::set_union(stated, marked, std::back_inserter(ends));
  return ends;
}

DocumentWindows::DocumentWindows(std::span<const uint64_t> ends,
                                 TokenRange part, uint64_t context)
    : context(context) {
  uint64_t begin = part.first;
  const uint64_t partEnd = part.first + part.count;
  for (auto next = std::ranges::upper_bound(ends, part.first);
       next != ends.end() && begin < partEnd; ++next) {
    const uint64_t size = std::min(*next, partEnd) - begin;
    const uint64_t windows = (size - 1) / context;
    if (windows > 0)
      documents.push_back({total, begin, size - windows * context});
    total += windows;
    begin += size;
  }
}

const DocumentWindows::Document &
DocumentWindows::documentOf(uint64_t window) const {
  return *std::prev(
      std::ranges::upper_bound(documents, window, {}, &Document::firstWindow));
}

uint64_t DocumentWindows::startOf(uint64_t window) const {
  const Document &document = documentOf(window);
  return document.first + (window - document.firstWindow) * context;
}

uint64_t DocumentWindows::startOf(uint64_t window, uint64_t seed,
                                  uint64_t epoch) const {
  const Document &document = documentOf(window);
  return startOf(window) +
         mix({seed, kFirstWindow, epoch, document.first}) % document.places;
}

uint64_t DocumentWindows::digest() const {
  return program::checksum(std::as_bytes(std::span(documents)));
}
