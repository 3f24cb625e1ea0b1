/*===- StepLibrary.h - What a step library is made of -------------*- C -*-===*\
|*
|* Part of the Baechi project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The C functions behind the shared objects that `baechi-run --emit=so` writes
|* (docs/step-library.md): a session of the runtime, without C++ in sight. Every
|* function that returns int returns 0 or, with a message in
|* baechi_step_error, 1. One thread at a time; steps are independent.
\*===----------------------------------------------------------------------===*/
#ifndef BAECHI_RUNTIME_STEPLIBRARY_H
#define BAECHI_RUNTIME_STEPLIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct baechi_step baechi_step;

/* A function of the compiled program. */
typedef struct {
  const char *name;
  void (*address)(void);
} baechi_symbol;

/* How a step runs. */
typedef struct {
  /* A step in which nothing happens for that long is given up; 0: never. */
  double watchdog_seconds;
  /* Whether each device's thread stays on a core of its own. */
  int pin_threads;
} baechi_step_options;

/* Loads the program of `manifest` (docs/program-format.md) and starts a thread
   for each device. `options`: null for the runtime's own (60 s, pinned). Null
   after an error, whose text is then in `error`, cut to `error_size` bytes with
   its terminator. */
baechi_step *baechi_step_open(const char *manifest,
                              const baechi_symbol *symbols, size_t symbol_count,
                              const baechi_step_options *options, char *error,
                              size_t error_size);

/* Ends the threads and releases the memory; null is ignored. */
void baechi_step_close(baechi_step *step);

/* Copies a value into an argument or out of it; `bytes` is its size. Arguments
   are zero until they are set. */
int baechi_step_set_argument(baechi_step *step, size_t index, const void *data,
                             size_t bytes);
int baechi_step_get_argument(baechi_step *step, size_t index, void *data,
                             size_t bytes);

/* Computes the function `name` of the host program: `places` are those of its
   operands and then of its results, which it writes (docs/host-calls.md). It is
   called on the devices' threads, at the same time on several. 0, or another
   number after an error, whose text it writes to `error`. */
typedef int (*baechi_host_function)(void *user, const char *name,
                                    void *const *places, char *error,
                                    size_t error_size);

/* Who computes the host calls of a step, between steps; a step with one fails
   without. */
int baechi_step_set_host_calls(baechi_step *step, baechi_host_function function,
                               void *user);

/* Runs one step on all devices and waits for its end. */
int baechi_step_run(baechi_step *step);

/* Copies a result of the last step. */
int baechi_step_get_result(baechi_step *step, size_t index, void *data,
                           size_t bytes);

/* A step with all that goes before and after it, in one call: copies in the
   arguments whose place in `arguments` is not null, runs the step, and copies
   out the results whose place in `results` is not null. There are as many
   places as the program has arguments and results, each of as many bytes; no
   step is run when an argument cannot be copied. What lies on the GPU where it
   is copied to is copied by the step itself, after what the GPU's legacy stream
   was told before: other work on it must have ended. Places must not overlap. A
   step that is given up writes to none of them when the call has returned. */
int baechi_step_call(baechi_step *step, const void *const *arguments,
                     void *const *results);

/* The same, but where the program has one device, which is a GPU, and all
   results are to go to that GPU's memory it returns when the GPU has been told
   all of it. `end` is then a CUevent that is reached when the call has ended,
   the caller's to destroy; the GPU's legacy stream waits for it. Until then the
   places that lie on the GPU must stay; those on the host have been read. Null:
   the call has ended. What goes wrong on the GPU after the return is told by
   whoever waits for the event, and by the next call. */
int baechi_step_begin(baechi_step *step, const void *const *arguments,
                      void *const *results, void **end);

/* The same, but a host device reads an argument whose byte in `lent` is not 0
   where the caller has it, without a copy, if the manifest says that it is
   lendable and its place is aligned to 64 bytes; others are copied. Nobody may
   write to what is lent until the call has returned; if baechi_step_usable says
   0 then, it must stay as long as the process. What was read there has no value
   afterwards: a step without it, and baechi_step_get_argument, are refused
   until it is set or given again. */
int baechi_step_call_lending(baechi_step *step, const void *const *arguments,
                             const unsigned char *lent, void *const *results);

/* 0: a step left a device inside a kernel, or a device failed for good, so that
   none can follow: what is left is to close it. Else 1. */
int baechi_step_usable(const baechi_step *step);

/* Who gives calls that overlap, asked on the devices' threads. `next`: the
   places of the call of this number, as in baechi_step_call, which stay until
   it has ended, and 1; -1 where it is not known yet, after some milliseconds at
   most; 0, to every device, where there is none. `ended`: all devices have
   ended their parts of the call. */
typedef struct {
  void *user;
  int (*next)(void *user, int64_t call, const void *const **arguments,
              void *const **results);
  void (*ended)(void *user, int64_t call);
} baechi_step_calls;

/* Runs calls that overlap, of the numbers from `first` on, until there is none:
   a device begins its part of a call when its part of the one before has ended
   and its messages were delivered. Results are those of separate calls, bit for
   bit. After an error `failed` has the number of the call that failed, or -1;
   calls that have not ended are unfinished. */
int baechi_step_overlap(baechi_step *step, int64_t first,
                        const baechi_step_calls *calls, int64_t *failed);

/* The same, but arguments are lent as in baechi_step_call_lending, until their
   call has ended. `lent`, asked after `next` has said 1: a byte for each
   argument, which stay as the call's places do; null: all are copied. */
int baechi_step_overlap_lending(
    baechi_step *step, int64_t first, const baechi_step_calls *calls,
    const unsigned char *(*lent)(void *user, int64_t call), int64_t *failed);

/* Why calls of this step cannot overlap; null: they can. The text stands until
   the next call of this function. */
const char *baechi_step_why_separate(baechi_step *step);

/* Duration of the last step, ns. */
int64_t baechi_step_wall_ns(const baechi_step *step);

/* From the next step on, the times of operators are recorded (1), or not any
   more (0), as they are not when a step is opened. 0, or 1 after an error. */
int baechi_step_record_times(baechi_step *step, int wanted);

/* What each operator of a device took in the last step, ns, in the order of the
   manifest; 0 where that was not recorded. `count`: how many operators the
   device has. 0, or 1 after an error. */
int baechi_step_operator_ns(baechi_step *step, size_t device, int64_t *ns,
                            size_t count);

/* The text of the last error; it stands until the next call. */
const char *baechi_step_error(const baechi_step *step);

#ifdef __cplusplus
}
#endif

#endif /* BAECHI_RUNTIME_STEPLIBRARY_H */
