#include <utility>

#include "proto/codec/codec_problem.h"

namespace stowage {
namespace {

void WriteStage(const Stage& stage, v1::Stage* out) {
  out->set_name(stage.name);
  out->set_op_kind(stage.op_kind);
  out->set_forward_time_ns(stage.forward_time.value());
  out->set_backward_time_ns(stage.backward_time.value());
  out->set_output_bytes(stage.output.value());
  out->set_saved_bytes(stage.saved.value());
  out->set_output_gradient_bytes(stage.output_gradient.value());
  out->set_forward_saving_overhead_bytes(stage.forward_saving_overhead.value());
  out->set_forward_overhead_bytes(stage.forward_overhead.value());
  out->set_backward_overhead_bytes(stage.backward_overhead.value());
  out->set_random(stage.random);
  out->set_stateful(stage.stateful);
  out->set_collective(stage.collective);
  out->set_must_keep(stage.must_keep);
  out->set_transient_parameter_bytes(stage.transient_parameters.value());
  for (const Bytes bytes : stage.saved_tensors) out->add_saved_tensor_bytes(bytes.value());
  WriteStoppedRecompute(stage, out);
}

Stage ReadStage(const v1::Stage& message) {
  Stage stage;
  stage.name = message.name();
  stage.op_kind = message.op_kind();
  stage.forward_time = Nanos(message.forward_time_ns());
  stage.backward_time = Nanos(message.backward_time_ns());
  stage.output = Bytes(message.output_bytes());
  stage.saved = Bytes(message.saved_bytes());
  stage.output_gradient = Bytes(message.output_gradient_bytes());
  stage.forward_saving_overhead = Bytes(message.forward_saving_overhead_bytes());
  stage.forward_overhead = Bytes(message.forward_overhead_bytes());
  stage.backward_overhead = Bytes(message.backward_overhead_bytes());
  stage.random = message.random();
  stage.stateful = message.stateful();
  stage.collective = message.collective();
  stage.must_keep = message.must_keep();
  stage.transient_parameters = Bytes(message.transient_parameter_bytes());
  for (const int64_t bytes : message.saved_tensor_bytes()) {
    stage.saved_tensors.push_back(Bytes(bytes));
  }
  ReadStoppedRecompute(message, &stage);
  return stage;
}

}  // namespace

void WriteChain(const Chain& chain, v1::Chain* out) {
  out->set_input_bytes(chain.activation(0).value());
  out->set_input_gradient_bytes(chain.gradient(0).value());
  for (const Stage& stage : chain.spec().stages) WriteStage(stage, out->add_stages());
  v1::Stage loss;
  WriteStage(chain.spec().loss, &loss);
  // An absent loss costs nothing: one that costs nothing is left out.
  if (loss.ByteSizeLong() > 0) *out->mutable_loss() = std::move(loss);
}

ChainSpec ReadChain(const v1::Chain& message, const std::string& name) {
  ChainSpec spec;
  spec.name = name;
  spec.input = Bytes(message.input_bytes());
  spec.input_gradient = Bytes(message.input_gradient_bytes());
  spec.stages.reserve(static_cast<size_t>(message.stages_size()));
  for (const v1::Stage& stage : message.stages()) spec.stages.push_back(ReadStage(stage));
  spec.loss = ReadStage(message.loss());
  return spec;
}

}  // namespace stowage
