"""The chain of equal stages that tests of planning are about."""

import stowage

STAGE = {
    "forward_time_ns": 10,
    "backward_time_ns": 20,
    "output_bytes": 100,
    "output_gradient_bytes": 100,
    "saved_bytes": 300,
}


def chain(stages=8, **changes):
    return stowage.Profile.of_chain([{**STAGE, **changes}] * stages, input_bytes=100)
