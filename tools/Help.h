//===- Help.h - What --help and --version show ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_HELP_H
#define CHIMERA_TOOLS_HELP_H

#include "tools/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace chimera {

/// Hides the options of LLVM and MLIR from --help; --help-hidden shows them.
/// There are hundreds, most of them options of code generators. Call this after
/// all options have been registered. The options of the category `ownCategory`
/// and --help itself stay visible. The list of passes stays visible too: it is
/// one option, registered under the name of each pass. `passName` is any of
/// these names; leave it empty if the tool has no list.
inline void hideLibraryOptions(llvm::cl::OptionCategory *ownCategory = nullptr,
                               llvm::StringRef passName = {}) {
  llvm::StringMap<llvm::cl::Option *> &all = llvm::cl::getRegisteredOptions();
  const llvm::cl::Option *list = all.lookup(passName);
  for (auto &entry : all) {
    llvm::cl::Option &option = *entry.second;
    bool isGeneric = option.Categories.front()->getName() == "Generic Options";
    if (&option == list || isGeneric ||
        llvm::is_contained(option.Categories, ownCategory) ||
        option.getOptionHiddenFlag() != llvm::cl::NotHidden)
      continue;
    option.setHiddenFlag(llvm::cl::Hidden);
  }
}

/// Makes --version print the name of the tool and kVersion, and not the version
/// of LLVM.
inline void setVersion(llvm::StringRef tool) {
  llvm::cl::SetVersionPrinter([tool = tool.str()](llvm::raw_ostream &os) {
    os << tool << " " << kVersion << "\n";
  });
}

} // namespace chimera

#endif // CHIMERA_TOOLS_HELP_H
