//===- SourceText.cpp - A step library's header and source in C -------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/StepLibrary.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace baechi;

std::string baechi::cIdentifier(llvm::StringRef name, bool upper) {
  std::string text;
  for (char c : name)
    text += !llvm::isAlnum(c) ? '_' : upper ? llvm::toUpper(c) : c;
  if (text.empty() || llvm::isDigit(text[0]))
    text = "_" + text;
  return text;
}

bool baechi::isReservedInC(llvm::StringRef name) {
  // C23's and C++20's keywords that a file may well be called.
  static constexpr llvm::StringLiteral words[] = {
      "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case",
      "catch", "char", "class", "concept", "const", "continue", "default",
      "delete", "do", "double", "else", "enum", "explicit", "export", "extern",
      "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
      "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator",
      "or", "private", "protected", "public", "register", "requires",
      "restrict", "return", "short", "signed", "sizeof", "static", "struct",
      "switch", "template", "this", "throw", "true", "try", "typedef", "typeid",
      "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
      "while", "xor", "constexpr", "decltype", "typeof",
      // What the header itself includes or the library defines.
      "size_t", "stddef", "stdint", "baechi_step"};
  return llvm::is_contained(words, name);
}

namespace {
/// Replaces `@` by the prefix and `$` by it in capitals.
std::string expand(llvm::StringRef text, llvm::StringRef prefix) {
  std::string result, capitals = cIdentifier(prefix, /*upper=*/true);
  for (char c : text)
    result += c == '@' ? prefix.str() : c == '$' ? capitals : std::string(1, c);
  return result;
}

/// A name in a comment: it cannot end the comment.
std::string inComment(llvm::StringRef name) {
  std::string text;
  for (char c : name)
    text += llvm::isPrint(c) && c != '*' && c != '\\' ? c : '_';
  return text;
}

/// An enumeration of positions: "STEP_ARGUMENT_PARAMS_W = 3, /* f32[4, 4] */".
template <typename Infos>
void writeEnum(llvm::raw_ostream &os, const std::string &begin,
               const Infos &infos, llvm::StringRef last) {
  llvm::StringSet<> taken;
  os << "enum {\n";
  for (auto [i, info] : llvm::enumerate(infos)) {
    std::string name = begin + cIdentifier(info.name, /*upper=*/true);
    if (!taken.insert(name).second)
      taken.insert(name += "_" + std::to_string(i));
    os << "  " << name << " = " << i << ", /* " << inComment(info.name) << ": "
       << runtime::elementName(info.type) << '[';
    llvm::interleaveComma(info.shape, os);
    os << "], " << info.bytes << " bytes */\n";
  }
  os << "  " << last << " = " << infos.size() << "\n};\n\n";
}

/// A string literal in lines of at most 100 bytes.
void writeLiteral(llvm::raw_ostream &os, llvm::StringRef text) {
  while (!text.empty()) {
    os << "    \"";
    for (char c : text.take_front(100))
      if (llvm::isPrint(c) && c != '"' && c != '\\' && c != '?')
        os << c;
      else
        // Octal ends after three digits, whatever follows.
        os << llvm::format("\\%03o", static_cast<unsigned char>(c));
    os << "\"\n";
    text = text.drop_front(std::min<size_t>(text.size(), 100));
  }
}

const char *const declarations = R"(typedef struct @ @;

/* How steps run. */
typedef struct {
  /* A step in which nothing happens for that long is given up with an error that
     tells what each device does; 0: never. */
  double watchdog_seconds;
  /* Whether each device's thread stays on a core of its own; switch it off where
     several steps, or other work, share the cores. */
  int pin_threads;
} @_options;

/* Loads the program and starts a thread for each of its devices, which are pinned
   and have a watchdog of 60 s. Null after an error, whose text is then in
   `error`, cut to `error_size` bytes.
   The file's hash is not looked at: its code is mapped by then. To check the file
   before, compare `head -c -80 FILE | sha256sum` with `tail -c 65 FILE`. */
@ *@_open(char *error, size_t error_size);
/* The same with other options. */
@ *@_open_with(const @_options *options, char *error, size_t error_size);
/* Ends the threads and releases the memory. */
void @_close(@ *step);

/* Copies a value into an argument or out of it; `bytes` must be its size.
   Arguments are zero until they are set; those that the step updates hold their
   next value after it. 0, or 1 after an error. */
int @_set_argument(@ *step, size_t argument, const void *data, size_t bytes);
int @_get_argument(@ *step, size_t argument, void *data, size_t bytes);
/* Computes the function `name` that the program only declares: `places` are those
   of its operands and then of its results, which it writes. It is called on the
   devices' threads, at the same time on several. 0, or another number after an
   error, whose text it writes to `error`. */
typedef int (*@_host_function)(void *user, const char *name, void *const *places,
                               char *error, size_t error_size);
/* Who computes such functions, between steps; a step that needs one fails
   without. 0, or 1 after an error. */
int @_set_host_calls(@ *step, @_host_function function, void *user);
/* Runs one step on all devices and waits for its end. 0, or 1 after an error. */
int @_run(@ *step);
/* Copies a result of the last step. 0, or 1 after an error. */
int @_get_result(@ *step, size_t result, void *data, size_t bytes);
/* A step with all that goes before and after it: copies in the arguments whose
   place in `arguments` is not null, runs the step, and copies out the results
   whose place in `results` is not null. There are as many places as the step has
   arguments and results, each of as many bytes. 0, or 1 after an error. */
int @_call(@ *step, const void *const *arguments, void *const *results);
/* The same, but where the step has one device, which is a GPU, and all results are
   to go to that GPU's memory it returns when the GPU has been told all of it. `end`
   is then a CUevent that is reached when the call has ended, the caller's to
   destroy; the GPU's legacy stream waits for it. Until then the places that lie on
   the GPU must stay. Null: the call has ended. What goes wrong on the GPU after the
   return is told by whoever waits for the event, and by the next call. 0, or 1 after
   an error. */
int @_begin(@ *step, const void *const *arguments, void *const *results, void **end);
/* The same, but a host device reads an argument whose byte in `lent` is not 0
   where the caller has it, without a copy, if @_program says that it is
   "lendable" and its place is aligned to 64 bytes. Nobody may write to what is
   lent until the call has returned; if @_usable says 0 then, it must stay as long
   as the process. What was read there has no value afterwards: a step without it,
   and @_get_argument, are refused until it is set or given again. */
int @_call_lending(@ *step, const void *const *arguments, const unsigned char *lent,
                   void *const *results);
/* 0: a step left a device inside a kernel, or a device failed for good, so that
   none can follow: what is left is to close it. Else 1. */
int @_usable(const @ *step);

/* Who gives calls that overlap, asked on the devices' threads. `next`: the places
   of the call of this number, as for @_call, which stay until it has ended, and 1;
   -1 where it is not known yet, after some milliseconds at most; 0, to every
   device, where there is none. `ended`: all devices have ended the call. */
typedef struct {
  void *user;
  int (*next)(void *user, int64_t call, const void *const **arguments,
              void *const **results);
  void (*ended)(void *user, int64_t call);
} @_calls;
/* Runs calls that overlap, of the numbers from `first` on, until there is none: a
   device begins its part of a call when its part of the one before has ended and
   its messages were delivered. The results are the same, bit for bit. 0, or 1
   after an error; `failed` then has the number of the call that failed, or -1. */
int @_overlap(@ *step, int64_t first, const @_calls *calls, int64_t *failed);
/* The same, but arguments are lent as to @_call_lending, until their call has ended.
   `lent`, asked after `next` has said 1: a byte for each argument, which stay as the
   call's places do; null: all are copied. */
int @_overlap_lending(@ *step, int64_t first, const @_calls *calls,
                      const unsigned char *(*lent)(void *user, int64_t call),
                      int64_t *failed);
/* Why calls of this step cannot overlap; null: they can. */
const char *@_why_separate(@ *step);

/* Duration of the last step, ns. */
int64_t @_wall_ns(const @ *step);
/* From the next step on, the times of operators are recorded (1), or not any
   more (0), as they are not when a step is opened. 0, or 1 after an error. */
int @_record_times(@ *step, int wanted);
/* What each operator of a device took in the last step, ns, in the program's
   order; 0 where that was not recorded. `count`: the device's operators. 0, or 1
   after an error. */
int @_operator_ns(@ *step, size_t device, int64_t *ns, size_t count);
/* The text of the last error; it stands until the next call. */
const char *@_error(const @ *step);
/* What the program is: devices, operators, planned times, arguments and results,
   as JSON (docs/program-format.md). */
const char *@_program(void);
)";

const char *const types = R"(
typedef struct baechi_step baechi_step;
typedef struct { const char *name; void (*address)(void); } baechi_symbol;
typedef @_options baechi_step_options;
typedef @_calls baechi_step_calls;
)";

const char *const definitions = R"(
baechi_step *baechi_step_open(const char *, const baechi_symbol *, size_t,
                              const baechi_step_options *, char *, size_t);
void baechi_step_close(baechi_step *);
int baechi_step_set_argument(baechi_step *, size_t, const void *, size_t);
int baechi_step_get_argument(baechi_step *, size_t, void *, size_t);
int baechi_step_set_host_calls(baechi_step *, @_host_function, void *);
int baechi_step_run(baechi_step *);
int baechi_step_get_result(baechi_step *, size_t, void *, size_t);
int baechi_step_call(baechi_step *, const void *const *, void *const *);
int baechi_step_begin(baechi_step *, const void *const *, void *const *, void **);
int baechi_step_call_lending(baechi_step *, const void *const *, const unsigned char *,
                             void *const *);
int baechi_step_usable(const baechi_step *);
int baechi_step_overlap(baechi_step *, int64_t, const baechi_step_calls *, int64_t *);
int baechi_step_overlap_lending(baechi_step *, int64_t, const baechi_step_calls *,
                                const unsigned char *(*)(void *, int64_t), int64_t *);
const char *baechi_step_why_separate(baechi_step *);
int64_t baechi_step_wall_ns(const baechi_step *);
int baechi_step_record_times(baechi_step *, int);
int baechi_step_operator_ns(baechi_step *, size_t, int64_t *, size_t);
const char *baechi_step_error(const baechi_step *);

#define INNER ((baechi_step *)step)
@ *@_open_with(const @_options *options, char *error, size_t size) {
  PREPARE;
  return (@ *)baechi_step_open(manifest, symbols, sizeof(symbols) / sizeof(*symbols), options,
                               error, size);
}
@ *@_open(char *error, size_t size) { return @_open_with(0, error, size); }
void @_close(@ *step) { baechi_step_close(INNER); }
int @_set_argument(@ *step, size_t i, const void *data, size_t bytes) {
  return baechi_step_set_argument(INNER, i, data, bytes);
}
int @_get_argument(@ *step, size_t i, void *data, size_t bytes) {
  return baechi_step_get_argument(INNER, i, data, bytes);
}
int @_set_host_calls(@ *step, @_host_function function, void *user) {
  return baechi_step_set_host_calls(INNER, function, user);
}
int @_run(@ *step) { return baechi_step_run(INNER); }
int @_get_result(@ *step, size_t i, void *data, size_t bytes) {
  return baechi_step_get_result(INNER, i, data, bytes);
}
int @_call(@ *step, const void *const *arguments, void *const *results) {
  return baechi_step_call(INNER, arguments, results);
}
int @_begin(@ *step, const void *const *arguments, void *const *results, void **end) {
  return baechi_step_begin(INNER, arguments, results, end);
}
int @_call_lending(@ *step, const void *const *arguments, const unsigned char *lent,
                   void *const *results) {
  return baechi_step_call_lending(INNER, arguments, lent, results);
}
int @_usable(const @ *step) { return baechi_step_usable(INNER); }
int @_overlap(@ *step, int64_t first, const @_calls *calls, int64_t *failed) {
  return baechi_step_overlap(INNER, first, calls, failed);
}
int @_overlap_lending(@ *step, int64_t first, const @_calls *calls,
                      const unsigned char *(*lent)(void *user, int64_t call),
                      int64_t *failed) {
  return baechi_step_overlap_lending(INNER, first, calls, lent, failed);
}
const char *@_why_separate(@ *step) { return baechi_step_why_separate(INNER); }
int64_t @_wall_ns(const @ *step) { return baechi_step_wall_ns(INNER); }
int @_record_times(@ *step, int wanted) { return baechi_step_record_times(INNER, wanted); }
int @_operator_ns(@ *step, size_t device, int64_t *ns, size_t count) {
  return baechi_step_operator_ns(INNER, device, ns, count);
}
const char *@_program(void) { return manifest; }
const char *@_error(const @ *step) { return baechi_step_error(INNER); }
)";
} // namespace

std::string baechi::stepLibraryHeader(llvm::StringRef prefix,
                                      const runtime::Program &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << expand("/* @.h - ", prefix) << inComment(program.function) << " on";
  for (const runtime::DeviceInfo &device : program.devices)
    os << ' ' << inComment(device.name);
  os << expand(R"(, as a library. Generated.

   One thread at a time for each open step. */
#ifndef $_H
#define $_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

)",
               prefix);
  std::string capitals = cIdentifier(prefix, /*upper=*/true);
  os << "/* Arguments, by position. */\n";
  writeEnum(os, capitals + "_ARGUMENT_", program.arguments,
            capitals + "_ARGUMENTS");
  os << "/* Results, by position. */\n";
  writeEnum(os, capitals + "_RESULT_", program.results, capitals + "_RESULTS");
  os << expand(declarations, prefix);
  os << expand(R"(
#ifdef __cplusplus
}
#endif

#endif /* $_H */
)",
               prefix);
  return text;
}

std::string baechi::stepLibrarySource(llvm::StringRef prefix,
                                      llvm::StringRef manifest,
                                      const runtime::Program &program,
                                      bool blas) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << expand("#include \"@.h\"\n\n", prefix);
  for (const runtime::DeviceInfo &device : program.devices)
    os << "void " << device.entry << "(void);\n";
  os << "\nstatic const char manifest[] =\n";
  writeLiteral(os, manifest);
  os << ";\n"
     << expand(types, prefix) << "static const baechi_symbol symbols[] = {\n";
  for (const runtime::DeviceInfo &device : program.devices)
    os << "    {\"" << device.entry << "\", " << device.entry << "},\n";
  os << "};\n";
  // The devices are the parallelism, and each has a thread.
  os << (blas ? "void openblas_set_num_threads(int);\n"
                "#define PREPARE openblas_set_num_threads(1)\n"
              : "#define PREPARE (void)0\n");
  os << expand(definitions, prefix);
  return text;
}
