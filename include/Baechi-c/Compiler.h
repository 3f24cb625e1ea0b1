/*===- Compiler.h - Compiling steps from C --------------------*- C -*-===*\
|*                                                                        *|
|* Part of the Baechi project, under the Apache License v2.0 with LLVM    *|
|* Exceptions. See LICENSE for license information.                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                *|
|*                                                                        *|
\*===----------------------------------------------------------------------===*/
/* What `baechi-run --emit=so` does, within a process: a model as text becomes a
   step library (docs/step-library.md); and what baechi-opt and baechi-translate
   do. unittests/CAPI/compile.c is the whole
   way. Calls on several threads are independent, but what is measured while
   others compute is measured wrong. */
#ifndef BAECHI_C_COMPILER_H
#define BAECHI_C_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  BaechiNote,
  BaechiRemark,
  BaechiWarning,
  BaechiError
} BaechiSeverity;

/** Who is told what a compilation does, and may stop it. Null functions are not
    called. Strings live for the call. */
typedef struct {
  void *user; /* the first argument of each */
  /** A phase begins (total is 0), or a part of it is done. */
  void (*phase)(void *user, const char *what, size_t done, size_t total);
  /** One message: its place in the model or in what the model was made of
      (file:line:column or a name; empty where there is none), and the
      message. Notes belong to the message before them. */
  void (*said)(void *user, BaechiSeverity severity, const char *place,
               const char *message);
  /** The same messages as baechi-run writes them, with lines of source. */
  void (*wrote)(void *user, const char *text);
  /** Asked often, on any thread; once it is true, the call ends soon. */
  bool (*stopped)(void *user);
} BaechiCompileListener;

typedef enum { BaechiCompiled, BaechiFailed, BaechiStopped } BaechiCompileEnd;

/** Compiles a model, MLIR of `size` bytes, text or MLIR's bytecode, that
   messages call `name`, and writes the shared object `file`, NAME.so, with
   NAME.h beside it. `options` are `numOptions` of baechi-run's that are for
   compiling (docs/tools.md), each as NAME=VALUE: "machine=host:2"; "pin" may be
   there often. One more is "first-values=[{kind = ...}, ...]", the
   `baechi.init` of each argument of @step (docs/import.md), for models that do
   not say them. After a failure the last message of severity BaechiError says
   why. */
BaechiCompileEnd baechiCompileStep(const char *model, size_t size,
                                   const char *name, const char *const *options,
                                   size_t numOptions, const char *file,
                                   const BaechiCompileListener *listener);

/** Runs passes of this project over a module and gives it in a form of
    baechi-translate's. `model` to `name` as above; `pipeline` as
   --pass-pipeline of baechi-opt takes it; `form`: "mlir" (with locations), or
   what follows
    --baechi-to- ("graph", "machine", ...). `gave` is called once, unless the
    call fails, with `user` and the text, which lives for the call. `stopped` is
    asked before the passes run. */
BaechiCompileEnd
baechiTransform(const char *model, size_t size, const char *name,
                const char *pipeline, const char *form,
                void (*gave)(void *user, const char *text, size_t size),
                void *user, const BaechiCompileListener *listener);

/** What was kept in a store of compiled code (docs/kernel-store.md) by `key`,
    `keySize` bytes, by this compiler: `gave` is called with `user` and the
    bytes, which live for the call; false: nothing was. `listener` is told what
    is wrong with the store, as a warning. */
bool baechiTakeKept(const char *folder, const char *key, size_t keySize,
                    void (*gave)(void *user, const char *bytes, size_t size),
                    void *user, const BaechiCompileListener *listener);
/** Keeps bytes so. */
void baechiKeep(const char *folder, const char *key, size_t keySize,
                const char *bytes, size_t size,
                const BaechiCompileListener *listener);

#ifdef __cplusplus
}
#endif

#endif /* BAECHI_C_COMPILER_H */
