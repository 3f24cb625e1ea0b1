/*===- compile.c - A step compiled and run from C -------------*- C -*-===*\
|*                                                                        *|
|* Part of the Baechi project, under the Apache License v2.0 with LLVM    *|
|* Exceptions. See LICENSE for license information.                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                *|
|*                                                                        *|
\*===----------------------------------------------------------------------===*/

#include "Baechi-c/Compiler.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void require(bool holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "FAILED: %s\n", what);
  exit(1);
}

/* What a compilation told. */
typedef struct {
  int phases, errors;
  char place[200], error[200], text[2000];
  int polls, stopAfter; /* 0: never */
} Told;

static void onPhase(void *user, const char *what, size_t done, size_t total) {
  ((Told *)user)->phases += *what && done <= total;
}

static void onSaid(void *user, BaechiSeverity severity, const char *place,
                   const char *message) {
  Told *told = user;
  if (severity != BaechiError)
    return;
  ++told->errors;
  snprintf(told->place, sizeof(told->place), "%s", place);
  snprintf(told->error, sizeof(told->error), "%s", message);
}

static void onWrote(void *user, const char *text) {
  Told *told = user;
  strncat(told->text, text, sizeof(told->text) - strlen(told->text) - 1);
}

static bool isStopped(void *user) {
  Told *told = user;
  return told->stopAfter &&
         __atomic_add_fetch(&told->polls, 1, __ATOMIC_RELAXED) >=
             told->stopAfter;
}

static BaechiCompileEnd compile(const char *model, const char *machine,
                                const char *placer, const char *file,
                                Told *told) {
  BaechiCompileListener listener = {told, onPhase, onSaid, onWrote, isStopped};
  const char *options[] = {machine, placer, "costs=roofline"};
  return baechiCompileStep(model, strlen(model), "twice.mlir", options, 3, file,
                           &listener);
}

static const char *twice =
    "func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = arith.addf %x, %x : tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n"
    "}\n";

static void onGave(void *user, const char *text, size_t size) {
  Told *told = user;
  snprintf(told->text, sizeof(told->text), "%.*s", (int)size, text);
}

static BaechiCompileEnd transform(const char *pipeline, const char *form,
                                  Told *told) {
  BaechiCompileListener listener = {told, onPhase, onSaid, NULL, isStopped};
  return baechiTransform(twice, strlen(twice), "twice.mlir", pipeline, form,
                         onGave, told, &listener);
}

static void transformAll(void) {
  Told graph = {0};
  require(transform("builtin.module(baechi-form-kernels,baechi-annotate-costs)",
                    "graph", &graph) == BaechiCompiled,
          graph.error);
  require(strstr(graph.text, "\"format\":\"baechi-graph\"") != NULL,
          graph.text);
  Told module = {0};
  require(transform("builtin.module()", "mlir", &module) == BaechiCompiled,
          module.error);
  require(strstr(module.text, "arith.addf") != NULL, module.text);
  Told wrong = {0};
  require(transform("builtin.module(oops)", "mlir", &wrong) == BaechiFailed,
          "an unknown pass fails");
  require(strstr(wrong.error, "'oops' does not refer") != NULL, wrong.error);
  Told early = {0};
  require(transform("builtin.module()", "machine", &early) == BaechiFailed,
          "a module without a machine has no machine file");
  require(early.errors == 1 && !*early.text, early.error);
  Told stopped = {0};
  stopped.stopAfter = 1;
  require(transform("builtin.module()", "mlir", &stopped) == BaechiStopped,
          "passes can be stopped");
}

static void *function(void *library, const char *name) {
  void *address = dlsym(library, name);
  require(address != NULL, name);
  return address;
}

static void run(const char *file) {
  void *library = dlopen(file, RTLD_NOW);
  require(library != NULL, "the library opens");
  void *(*open)(char *, size_t) = function(library, "twice_open");
  int (*set)(void *, size_t, const void *, size_t) =
      function(library, "twice_set_argument");
  int (*step)(void *) = function(library, "twice_run");
  int (*get)(void *, size_t, void *, size_t) =
      function(library, "twice_get_result");
  void (*close)(void *) = function(library, "twice_close");
  char error[200] = "";
  void *opened = open(error, sizeof(error));
  require(opened != NULL, error);
  float x[4] = {1, 2, 3, -4}, y[4];
  require(set(opened, 0, x, sizeof(x)) == 0, "x is set");
  require(step(opened) == 0, "the step runs");
  require(get(opened, 0, y, sizeof(y)) == 0, "the result is there");
  for (int i = 0; i < 4; ++i)
    require(y[i] == 2 * x[i], "the result is right");
  close(opened);
}

int main(void) {
  char folder[] = "/tmp/capi-compile-XXXXXX";
  require(mkdtemp(folder) != NULL, "a folder is made");
  char file[100], header[100];
  snprintf(file, sizeof(file), "%s/twice.so", folder);
  snprintf(header, sizeof(header), "%s/twice.h", folder);

  const char *one = "machine=host:1", *msct = "placer=msct";
  Told good = {0};
  require(compile(twice, one, msct, file, &good) == BaechiCompiled, good.error);
  require(good.phases >= 3 && good.errors == 0, "phases are told");
  run(file);

  Told wrong = {0};
  require(compile("func.func @step() {\n  oops\n}\n", one, msct, file,
                  &wrong) == BaechiFailed,
          "what is no module fails");
  require(wrong.errors == 1, "one error is said");
  require(!strcmp(wrong.place, "twice.mlir:2:3"), wrong.place);
  require(strstr(wrong.text, "twice.mlir:2:3: error: ") != NULL, wrong.text);

  Told refused = {0};
  require(compile(twice, one, "placer=fastest", file, &refused) == BaechiFailed,
          "an unknown placer fails");
  require(strstr(refused.error, "unknown placer 'fastest'") != NULL,
          refused.error);
  require(!strncmp(refused.text, "baechi-run: error: ", 19), refused.text);

  Told strange = {0};
  require(compile(twice, one, "place=msct", file, &strange) == BaechiFailed,
          "an unknown option fails");
  require(strstr(strange.error, "unknown option 'place'; known: machine, ") !=
              NULL,
          strange.error);

  Told begun = {0};
  require(compile(twice, one,
                  "first-values=[{kind = \"constant\", value = 1.0 : f32}]",
                  file, &begun) == BaechiCompiled,
          begun.error);
  Told unequal = {0};
  require(compile(twice, one, "first-values=[]", file, &unequal) ==
              BaechiFailed,
          "first values of other arguments fail");
  require(strstr(unequal.error, "number of function arguments"), unequal.error);
  Told unknown = {0};
  require(compile(twice, one, "first-values=[{kind = \"none\"}]", file,
                  &unknown) == BaechiFailed,
          "first values of no kind fail");
  require(strstr(unknown.error, "'baechi.init'"), unknown.error);

  Told empty = {0};
  require(compile(twice, "machine=host:0", msct, file, &empty) == BaechiFailed,
          "a machine without devices fails");

  Told stopped = {0};
  stopped.stopAfter = 1;
  require(compile(twice, one, msct, file, &stopped) == BaechiStopped,
          "a compilation can be stopped");

  transformAll();

  unlink(file);
  unlink(header);
  rmdir(folder);
  puts("compiled and ran");
  return 0;
}
