/* Opens a step library with options: test/Tools/emit-library.test. */
#include "my_mlp.h"
#include <stdio.h>

int main(void) {
  char message[256];
  my_mlp_options options = {-1, 0};
  if (my_mlp_open_with(&options, message, sizeof(message)))
    return 1;
  printf("refused: %s\n", message);
  options.watchdog_seconds = 0;
  my_mlp *step = my_mlp_open_with(&options, message, sizeof(message));
  float loss;
  if (!step || my_mlp_run(step) ||
      my_mlp_get_result(step, MY_MLP_RESULT_LOSS, &loss, sizeof(loss)))
    return 1;
  printf("loss of a step without a watchdog: %f\n", loss);
  my_mlp_close(step);
  return 0;
}
