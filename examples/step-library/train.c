/* Part of the Baechi project, under the Apache License v2.0 with LLVM
   Exceptions. See LICENSE for license information. SPDX-License-Identifier:
   Apache-2.0 WITH LLVM-exception

   Trains the MLP of test/fixtures on two host devices, from C, without MLIR:

     baechi-run test/fixtures/mlp_tiny.mlir --machine=host:2 --emit=so
   --output=libmlp.so cc -I. examples/step-library/train.c -L. -lmlp
   -Wl,-rpath,. -o train
     ./train 20 */
#include "mlp.h"
#include <stdio.h>
#include <stdlib.h>

static float weights[32 * 32];

/* Small numbers that are the same everywhere. */
static const float *random_weights(int count) {
  static uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    weights[i] = (float)(state >> 8) / (1 << 24) * 0.5f - 0.25f;
  }
  return weights;
}

static mlp *step;

static void check(int failed) {
  if (!failed)
    return;
  fprintf(stderr, "train: %s\n", mlp_error(step));
  exit(1);
}

static void set_random(size_t argument, int count) {
  check(mlp_set_argument(step, argument, random_weights(count),
                         count * sizeof(float)));
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 20;
  char message[256];
  step = mlp_open(message, sizeof(message));
  if (!step) {
    fprintf(stderr, "train: %s\n", message);
    return 1;
  }
  set_random(MLP_ARGUMENT_PARAMS_0_W, 16 * 32);
  set_random(MLP_ARGUMENT_PARAMS_1_W, 32 * 32);
  set_random(MLP_ARGUMENT_PARAMS_2_W, 32 * 10);
  set_random(MLP_ARGUMENT_BATCH_X, 8 * 16);
  int32_t targets[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  check(mlp_set_argument(step, MLP_ARGUMENT_BATCH_TARGETS, targets,
                         sizeof(targets)));
  /* Adam's powers of its betas begin with the betas. */
  float beta1 = 0.9f, beta2 = 0.999f;
  check(mlp_set_argument(step, MLP_ARGUMENT_OPTIMIZER_BETA1_POWER, &beta1,
                         sizeof(beta1)));
  check(mlp_set_argument(step, MLP_ARGUMENT_OPTIMIZER_BETA2_POWER, &beta2,
                         sizeof(beta2)));

  float first = 0, loss = 0;
  for (int i = 0; i < steps; ++i) {
    check(mlp_run(step));
    check(mlp_get_result(step, MLP_RESULT_LOSS, &loss, sizeof(loss)));
    if (i == 0)
      first = loss;
  }
  printf("loss %.4f at step 1, %.4f at step %d: %s\n", first, loss, steps,
         loss < first ? "it learns" : "it does not learn");
  mlp_close(step);
  return 0;
}
