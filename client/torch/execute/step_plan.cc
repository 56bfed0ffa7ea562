#include "client/torch/execute/step_plan.h"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "client/torch/execute/chain_tensors.h"
#include "client/torch/execute/graph_tensors.h"
#include "client/torch/offload/host_copies.h"

namespace stowage {
namespace {

// What the instructions say, of a plan that has its problem, model and schedule.
void FindUses(StepPlan* plan) {
  const auto size = static_cast<size_t>(plan->model->size());
  plan->moves_extras.resize(size + 1);  // a chain's loss that is the caller's, too
  plan->moves_parts.resize(size + 1);
  plan->moves_source.resize(size + 1);
  plan->backward_at.assign(size + 1, plan->schedule.size());
  plan->never_drops.assign(size + 1, true);
  plan->runs_once.assign(size + 1, true);
  std::vector<bool> has_run(size + 1, false);
  for (size_t i = 0; i < plan->schedule.size(); ++i) {
    const Instruction& instruction = plan->schedule[i];
    const auto v = static_cast<size_t>(plan->NodeOf(instruction));
    if (instruction.op == Op::kOffloadStart) {
      const bool saved = instruction.tensor == TensorKind::kSaved;
      (saved ? plan->moves_extras : plan->moves_source)[v] = true;
      if (instruction.part > 0) plan->moves_parts[v] = true;
      if (saved) plan->never_drops[v] = false;
    } else if (instruction.op == Op::kBackward) {
      plan->backward_at[v] = i;
    } else if (IsForward(instruction.op)) {
      if (has_run[v] || instruction.op != Op::kForwardSave) plan->never_drops[v] = false;
      if (has_run[v]) plan->runs_once[v] = false;
      has_run[v] = true;
    } else if (instruction.tensor == TensorKind::kSaved) {
      plan->never_drops[v] = false;
    }
  }
  plan->last_reader = plan->model->ForEachOutput<int>(-1);
  const std::vector<bool> trains = plan->model->NeedGradients();
  for (int v = 0; v < plan->model->size(); ++v) {
    for (const NodeOutput input : plan->model->node(v).inputs) {
      if (trains[static_cast<size_t>(v)]) plan->last_reader[input] = v;
    }
  }
}

// As the evaluator has it: of a graph, the output of such a recompute is dropped unread.
void FindStops(StepPlan* plan) {
  const Schedule& schedule = plan->schedule;
  plan->stops.assign(schedule.size(), false);
  std::vector<bool> has_run(static_cast<size_t>(plan->model->size()) + 1, false);
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsForward(schedule[i].op)) continue;
    const int node = plan->NodeOf(schedule[i]);
    const auto v = static_cast<size_t>(node);
    if (schedule[i].op == Op::kForwardSave && has_run[v] && plan->MayStop(node)) {
      const AfterSaving follows = WhatFollows(schedule, i);
      plan->stops[i] = follows == AfterSaving::kDropAndBackward ||
                       (follows == AfterSaving::kBackward && plan->chain);
    }
    has_run[v] = true;
  }
}

void FindParameters(StepPlan* plan) {
  std::unordered_map<const c10::TensorImpl*, size_t> numbers;
  for (const at::Tensor& parameter : plan->model->parameters()) {
    numbers.emplace(parameter.unsafeGetTensorImpl(), numbers.size());
  }
  plan->parameters.resize(static_cast<size_t>(plan->model->size()));
  for (int v = 0; v < plan->model->size(); ++v) {
    for (const at::Tensor& parameter : plan->model->node(v).parameters) {
      plan->parameters[static_cast<size_t>(v)].push_back(
          numbers.at(parameter.unsafeGetTensorImpl()));
    }
  }
}

bool IsInEngineOrder(const StepPlan& plan) {
  const std::vector<bool> trains = plan.model->NeedGradients();
  std::vector<bool> has_run(trains.size(), false);
  size_t last = trains.size();
  size_t first = 0;
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    const Instruction& instruction = plan.schedule[i];
    const auto v = static_cast<size_t>(plan.NodeOf(instruction));
    if (IsForward(instruction.op)) {
      if (trains[v] && !has_run[v]) {
        if (v < first || i > plan.first_backward) return false;
        first = v;
      }
      has_run[v] = true;
    } else if (instruction.op == Op::kBackward && trains[v]) {
      if (v > last) return false;
      last = v;
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<HeldTensors> StepPlan::HoldNothing() const {
  if (chain) return std::make_unique<ChainTensors>(chain.get(), &moves_parts, device);
  return std::make_unique<GraphTensors>(model.get(), graph.get(), device);
}

std::optional<Bytes> StepPlan::SourceBytes(NodeOutput input) const {
  if (!chain) return graph->vertex(input.node).output;
  if (input.index > 0) return std::nullopt;
  return chain->activation(0);
}

std::string StepPlan::NameOfSource(NodeOutput input) const {
  if (!chain || input.index == 0) return NameOf(input.node);
  return "the side input " + side_inputs[static_cast<size_t>(input.index) - 1];
}

std::shared_ptr<const StepPlan> MakeGraphPlan(const GraphModel* model, Graph graph,
                                              Schedule schedule, ExecutionDevice* device) {
  auto plan = std::make_shared<StepPlan>();
  plan->graph = std::make_shared<const Graph>(std::move(graph));
  plan->model = std::shared_ptr<const GraphModel>(std::shared_ptr<void>(), model);  // not owned
  plan->schedule = std::move(schedule);
  plan->device = device;
  plan->names.emplace_back();  // the first vertex has number 1
  for (int v = 0; v < model->size(); ++v) {
    plan->names.push_back(model->Describe(v));
    const Vertex& vertex = plan->graph->vertex(v);
    plan->saves_nothing.push_back(vertex.extra_saved == Bytes(0));
    plan->owns_memory.push_back(plan->graph->storage(v) == v);
    plan->recomputable.push_back(!vertex.collective && !vertex.must_keep);
  }
  FindUses(plan.get());
  FindStops(plan.get());
  FindParameters(plan.get());
  plan->first_backward = *std::min_element(plan->backward_at.begin(), plan->backward_at.end());
  plan->in_engine_order = IsInEngineOrder(*plan);
  return plan;
}

std::shared_ptr<const StepPlan> MakeChainPlan(const ChainModel& model, Chain chain,
                                              Schedule schedule, ExecutionDevice* device,
                                              int callers_loss) {
  auto plan = std::make_shared<StepPlan>();
  plan->chain = std::make_shared<const Chain>(std::move(chain));
  plan->model = std::make_shared<const GraphModel>(model.InLine(/*with_loss=*/callers_loss < 0));
  plan->schedule = std::move(schedule);
  plan->device = device;
  plan->side_inputs = model.side_inputs();
  plan->saves_nothing = {true};
  plan->recomputable = {true};
  for (int l = 0; l <= model.length() + 1; ++l) {
    plan->names.push_back(model.Describe(l));
    plan->owns_memory.push_back(true);
    if (l == 0) continue;
    const Stage& stage = plan->chain->stage(l);
    plan->saves_nothing.push_back(stage.saved == stage.output);
    plan->recomputable.push_back(stage.recomputable());
  }
  FindUses(plan.get());
  FindStops(plan.get());
  FindParameters(plan.get());
  plan->first_backward = *std::min_element(plan->backward_at.begin(), plan->backward_at.end());
  if (callers_loss >= 0) plan->first_backward = static_cast<size_t>(callers_loss);
  return plan;
}

at::Tensor SourceFor(const StepPlan& plan, NodeOutput from, at::Tensor input,
                     const std::vector<at::Tensor>& targets, bool lent) {
  const bool is_target = std::any_of(targets.begin(), targets.end(), [&](const at::Tensor& target) {
    return StoragePtrOf(input) == StoragePtrOf(target);
  });
  const bool lends = CanLend(input, *plan.device) && (lent ? !is_target : IsSoleHolder(input));
  at::Tensor source = input.variable_data();
  const bool may_move = !plan.chain || from.index == 0;
  const bool moves = may_move && plan.moves_source[static_cast<size_t>(from.node)];
  if (moves && !lends) return source.clone();
  // Who writes over the one changes the version of both.
  torch::autograd::impl::set_version_counter(source, torch::autograd::impl::version_counter(input));
  return source;
}

}  // namespace stowage
