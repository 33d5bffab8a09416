//===- Help.h - What --help shows -------------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_HELP_H
#define CHIMERA_TOOLS_HELP_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

namespace chimera {

/// Leaves the options that LLVM and MLIR register to --help-hidden: hundreds,
/// most of code generators. Call it once they are registered. What belongs to
/// `ours` stays, and so does --help itself. `pass` is the name of a pass if
/// there is a list of them, which is one option with as many names.
inline void hideLibraryOptions(llvm::cl::OptionCategory *ours = nullptr,
                               llvm::StringRef pass = {}) {
  llvm::StringMap<llvm::cl::Option *> &all = llvm::cl::getRegisteredOptions();
  const llvm::cl::Option *list = all.lookup(pass);
  for (auto &entry : all) {
    llvm::cl::Option &option = *entry.second;
    bool isGeneric = option.Categories.front()->getName() == "Generic Options";
    if (&option == list || isGeneric ||
        llvm::is_contained(option.Categories, ours) ||
        option.getOptionHiddenFlag() != llvm::cl::NotHidden)
      continue;
    option.setHiddenFlag(llvm::cl::Hidden);
  }
}

} // namespace chimera

#endif // CHIMERA_TOOLS_HELP_H
