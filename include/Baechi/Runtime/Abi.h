/*===- Abi.h - The C interface that compiled programs call --------*- C -*-===*\
|*
|* Part of the Baechi project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* A device's lowered step is one function
|*
|*     int32_t step(baechi_context *context, char *arena);
|*
|* which calls kernels by address and, for everything else, only the functions
|* below. A queue is a FIFO of one directed pair of devices; `queue` is its
|* position in the program's manifest and `seq` the message's position in it.
|* No function allocates. send and recv never block; only the awaits do.
|* Return values: 0 to go on, nonzero when the step was aborted: the program
|* then returns that value at once.
\*===----------------------------------------------------------------------===*/
#ifndef BAECHI_RUNTIME_ABI_H
#define BAECHI_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct baechi_context baechi_context;

/* Offers message `seq` of `queue`; `source` must stay unchanged until
   baechi_await_send of the same message has returned. */
int32_t baechi_send(baechi_context *context, int32_t queue, int32_t seq,
                    const void *source);

/* Offers the buffer that message `seq` of `queue` is to be written to. It must
   not be touched until baechi_await_recv has returned. */
int32_t baechi_recv(baechi_context *context, int32_t queue, int32_t seq,
                    void *destination);

/* Waits until the message has been copied out of its source. */
int32_t baechi_await_send(baechi_context *context, int32_t queue, int32_t seq);

/* Waits until the message has been copied into its destination. */
int32_t baechi_await_recv(baechi_context *context, int32_t queue, int32_t seq);

/* For a message that is lent, in place of baechi_recv and baechi_await_recv:
   waits until it was offered, and writes to `source` where it lies. It may be
   read, not written, until it is given back, once in the step;
   baechi_await_send of the message waits for that. */
int32_t baechi_borrow(baechi_context *context, int32_t queue, int32_t seq,
                      const void **source);
int32_t baechi_give_back(baechi_context *context, int32_t queue, int32_t seq);

/* Where argument `argument` (its position in the manifest), which is lendable,
   lies in this step: at `place`, its place in the arena, or where the caller
   has it. It may be read, not written. */
const void *baechi_argument(baechi_context *context, int32_t argument,
                            const void *place);

/* Brackets operator `op` (its position in the device's manifest entry). */
void baechi_operator_begin(baechi_context *context, int32_t op);
void baechi_operator_end(baechi_context *context, int32_t op);

/* Asks the host program for its function `name` (docs/host-calls.md): `places`
   are those of the operands and then of the results, which it writes. It may
   block. */
int32_t baechi_host_call(baechi_context *context, const char *name,
                         void *const *places);

/* Copies within the file that is the calling device's memory: addresses there
   are places of the file. */
int32_t baechi_disk_copy(baechi_context *context, void *target,
                         const void *source, int64_t bytes);

/* Aborts the step: `reason` (a static string) becomes its error. */
int32_t baechi_fail(baechi_context *context, const char *reason);

/* Called by a kernel that would divide an integer by zero, on its device's
   thread: aborts the step in the operator that runs. The kernel goes on, with
   any quotient. */
void baechi_divided_by_zero(void);

#ifdef __cplusplus
}
#endif

#endif /* BAECHI_RUNTIME_ABI_H */
