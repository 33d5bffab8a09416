//===- Source.cpp - Checks of a text before MLIR parses it ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Source.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/stat.h>

using llvm::errs;
using llvm::StringRef;

namespace chimera {

namespace {

// The parser crashes at some thousands of open brackets. Our modules open about
// ten.
constexpr size_t kMostOpen = 500;
// The parser takes seconds for ten thousand digits. A number of 64 bits has at
// most 20.
constexpr size_t kMostDigits = 500;

/// Checks a text character by character.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  std::string run() {
    while (at < text.size()) {
      const size_t begin = at;
      if (std::string error = step(); !error.empty())
        return positionPrefix(begin) + error;
    }
    return "";
  }

private:
  std::string positionPrefix(size_t position) const {
    StringRef before = text.take_front(position);
    return std::to_string(before.count('\n') + 1) + ":" +
           std::to_string(position - (before.rfind('\n') + 1) + 1) +
           ": error: ";
  }

  std::string step() {
    const char c = text[at];
    StringRef next = text.substr(at, 2);
    if (next == "//")
      return comment();
    if (c == '"')
      return string();
    if (llvm::isDigit(c))
      return number();
    if (next == "->") { // its '>' closes no bracket
      at += 2;
      return "";
    }
    ++at;
    if (StringRef("([{<").contains(c) && ++open > kMostOpen)
      return "expected at most " + std::to_string(kMostOpen) +
             " open brackets, got more";
    if (StringRef(")]}>").contains(c) && open > 0)
      --open;
    return controlError(at - 1, at);
  }

  std::string comment() {
    const size_t begin = at;
    at = std::min(text.find('\n', at), text.size());
    return controlError(begin, at);
  }

  std::string string() {
    const size_t begin = at++;
    while (at < text.size() && text[at] != '"' && text[at] != '\n')
      at += text[at] == '\\' ? 2 : 1;
    at = std::min(at + 1, text.size());
    return controlError(begin, at);
  }

  std::string number() {
    const size_t begin = at;
    while (at < text.size() && llvm::isAlnum(text[at]))
      ++at;
    if (at - begin <= kMostDigits)
      return "";
    return "expected a number of at most " + std::to_string(kMostDigits) +
           " digits, got one of " + std::to_string(at - begin);
  }

  std::string controlError(size_t begin, size_t end) const {
    for (char c : text.slice(begin, end))
      if ((static_cast<unsigned char>(c) < 0x20 && !llvm::isSpace(c)) ||
          c == 0x7f)
        return "expected no control characters, got \\x" +
               llvm::toHex(StringRef(&c, 1), /*LowerCase=*/true);
    return "";
  }

  StringRef text;
  size_t at = 0, open = 0;
};

} // namespace

/// An error message if the text begins with a byte order mark, else empty. Some
/// editors write this mark, and MLIR's parser reports it as an unknown
/// character.
static std::string errorOfMark(StringRef text) {
  if (text.starts_with("\xef\xbb\xbf"))
    return "expected no byte order mark, got that of UTF-8: save the file "
           "without one (sed -i '1s/^\\xef\\xbb\\xbf//' FILE)";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return "expected UTF-8, got the byte order mark of UTF-16: convert the "
           "file (iconv -f UTF-16 -t UTF-8)";
  return "";
}

static bool isBytecode(StringRef text) { return text.starts_with("ML\xefR"); }

std::string sourceError(StringRef text) {
  if (std::string error = errorOfMark(text); !error.empty())
    return "1:1: error: " + error;
  return isBytecode(text) ? "" : Scanner(text).run();
}

namespace {

/// A kind of file that is no description.
struct OtherForm {
  const char *pattern; ///< of its first line
  const char *error;
};

} // namespace

static constexpr OtherForm kOtherForms[] = {
    {"^(import |from .* import |def |class |\"\"\")",
     "expected a description, got Python: chimera-export makes a package of a "
     "PyTorch model, and chimera.model @NAME exported(\"PACKAGE\") names it"},
    {"^[{[]([{\"]|$)",
     "expected a description, got JSON: to name a package, write chimera.model "
     "@NAME exported(\"FOLDER\") into a description"},
    {"^(P[0-9]+ *:|[0-9]*[FBIWR][0-9]+([ ,.-]|$))",
     "expected a description, got the orders of workers: chimera-show draws "
     "them; to compile them, write each line as a chimera.order of a "
     "chimera.pipeline"},
};

/// The op of a description that `line` begins with, without "chimera.", such as
/// "model" in "model @m gpt2". Empty if it begins with none.
static StringRef opWithoutDialect(StringRef line) {
  StringRef op = line.take_while(llvm::isAlpha);
  StringRef after = line.drop_front(op.size());
  StringRef next = after.ltrim(' ');
  if (next.empty() || next.size() == after.size())
    return "";
  const bool isOp =
      next.front() == '@'
          ? llvm::is_contained({"model", "training", "machine", "pipeline"}, op)
          : llvm::isDigit(next.front()) &&
                llvm::is_contained({"stage", "direction", "order"}, op);
  return isOp ? op : "";
}

/// The error about the first line of a file that is no description. Empty if it
/// may be one.
static std::string errorOfForm(StringRef line) {
  for (const OtherForm &form : kOtherForms)
    if (llvm::Regex(form.pattern).match(line))
      return form.error;
  return "";
}

std::string descriptionError(StringRef text) {
  if (isBytecode(text))
    return "";
  bool isFirst = true;
  for (size_t number = 1; !text.empty(); ++number) {
    auto [whole, rest] = text.split('\n');
    text = rest;
    StringRef line = whole.trim();
    if (line.empty() || line.starts_with("#") || line.starts_with("//"))
      continue;
    std::string error = isFirst ? errorOfForm(line) : "";
    isFirst = false;
    if (StringRef op = opWithoutDialect(line); !op.empty())
      error = ("expected chimera." + op + ", got " + op).str();
    if (!error.empty())
      return std::to_string(number) + ":" +
             std::to_string(line.begin() - whole.begin() + 1) +
             ": error: " + error;
  }
  return "";
}

/// Prints `error` after the name of the file, unless it is empty. Returns
/// whether it has printed.
static bool report(StringRef path, const std::string &error) {
  if (!error.empty())
    errs() << (path == "-" ? "<stdin>" : path) << ":" << error << "\n";
  return !error.empty();
}

bool reportBadDescription(StringRef path, StringRef text) {
  return report(path, sourceError(text)) ||
         report(path, descriptionError(text));
}

bool isDevice(StringRef path) {
  struct stat file;
  return stat(path.str().c_str(), &file) == 0 &&
         (S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)) &&
         !path.starts_with("/dev/std") && path != "/dev/null";
}

bool reportBadSources(llvm::ArrayRef<char *> arguments) {
  StringRef tool = llvm::sys::path::filename(arguments.front());
  StringRef before;
  for (StringRef argument : arguments.drop_front()) {
    bool isOutput = before == "-o" || before == "--o";
    before = argument;
    struct stat file;
    if (argument.starts_with("-") || isOutput ||
        stat(argument.str().c_str(), &file) != 0)
      continue;
    if (S_ISREG(file.st_mode)) {
      if (auto text = llvm::MemoryBuffer::getFile(argument);
          text && report(argument, sourceError((*text)->getBuffer())))
        return true;
    } else if (isDevice(argument)) {
      errs() << tool << ": " << argument
             << ": expected a file or a pipe, got a device\n";
      return true;
    }
  }
  return false;
}

} // namespace chimera
