// Messages in which every field holds a value of its own: what gets lost or swapped shows.
#ifndef STOWAGE_TESTS_PROTO_SAMPLES_H_
#define STOWAGE_TESTS_PROTO_SAMPLES_H_

#include "stowage/v1/plan.pb.h"
#include "stowage/v1/profile.pb.h"

namespace stowage {

// Three stages and a loss.
v1::Profile SampleChainProfile();

// Five vertices in program order: 10 and 40 are inputs, 30 reads 10, 20 reads 30 and 40, 50 is a
// view of 20. The numbers of the program order have gaps, 10 and 40 are independent, and so are 40
// and 30.
// The same with saved tensors in every stage and in the loss.
v1::Profile SampleChainProfileWithSavedTensors();
v1::Profile SampleGraphProfile();

// Five nodes in program order, of which the list has the last one first: 10 is an input, 40 and 30 read it, 20 reads
// 40 and 30, 50 is a view of 20. 20 and 50 are results.
v1::Profile SampleDagProfile();

// A plan that was found, with every op, tensor and stream in its schedule and the digest that
// belongs to it.
v1::Plan SamplePlan();

}  // namespace stowage

#endif  // STOWAGE_TESTS_PROTO_SAMPLES_H_
