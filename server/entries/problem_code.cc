#include "server/entries/problem_code.h"

#include <utility>

namespace stowage {
namespace {

// Of a stage or a vertex, in problems where one has it.
template <class Code, class S>
void CodeStoppedRecompute(Code* code, S* step) {
  const auto field = [code](auto* value) { code->Field(value); };
  code->Optional(&step->recompute_saving_time, field);
  code->Optional(&step->recompute_saving_overhead, field);
}

template <class Code, class S>
void CodeStage(Code* code, bool stops, S* stage) {
  code->Field(&stage->forward_time);
  code->Field(&stage->backward_time);
  code->Field(&stage->output);
  code->Field(&stage->saved);
  code->Field(&stage->output_gradient);
  code->Field(&stage->forward_saving_overhead);
  code->Field(&stage->forward_overhead);
  code->Field(&stage->backward_overhead);
  code->Field(&stage->random);
  code->Field(&stage->stateful);
  code->Field(&stage->collective);
  code->Field(&stage->must_keep);
  code->Field(&stage->transient_parameters);
  code->List(&stage->saved_tensors, [code](auto* bytes) { code->Field(bytes); });
  code->Field(&stage->name);
  code->Field(&stage->op_kind);
  if (stops) CodeStoppedRecompute(code, stage);
}

template <class Code, class C>
void CodeChain(Code* code, bool stops, C* chain) {
  code->Field(&chain->name);
  code->Field(&chain->input);
  code->Field(&chain->input_gradient);
  code->List(&chain->stages, [=](auto* stage) { CodeStage(code, stops, stage); });
  CodeStage(code, stops, &chain->loss);
}

template <class Code, class V>
void CodeVertex(Code* code, bool stops, V* vertex) {
  code->Field(&vertex->id);
  code->Field(&vertex->name);
  code->Field(&vertex->op_kind);
  code->Field(&vertex->program_order);
  code->List(&vertex->inputs, [code](auto* input) {
    code->Field(&input->vertex);
    code->Field(&input->backward_needs);
  });
  code->Field(&vertex->output);
  code->Field(&vertex->output_gradient);
  code->Field(&vertex->extra_saved);
  code->Field(&vertex->backward_needs_output);
  code->Field(&vertex->forward_time);
  code->Field(&vertex->backward_time);
  code->Field(&vertex->forward_saving_overhead);
  code->Field(&vertex->forward_overhead);
  code->Field(&vertex->backward_overhead);
  code->Choice(&vertex->alias, AliasKind::kInPlace);
  code->Field(&vertex->linear_multi_input);
  code->Field(&vertex->random);
  code->Field(&vertex->stateful);
  code->Field(&vertex->collective);
  code->Field(&vertex->must_keep);
  code->Field(&vertex->transient_parameters);
  if (stops) CodeStoppedRecompute(code, vertex);
}

template <class Code, class G>
void CodeGraph(Code* code, bool stops, G* graph) {
  code->Field(&graph->name);
  code->List(&graph->vertices, [=](auto* vertex) { CodeVertex(code, stops, vertex); });
}

template <class Code, class V>
void CodeNode(Code* code, V* node) {
  code->Field(&node->id);
  code->Field(&node->name);
  code->Field(&node->op_kind);
  code->Field(&node->program_order);
  code->List(&node->inputs, [code](auto* input) { code->Field(&input->vertex); });
  code->Field(&node->output);
  code->Field(&node->forward_time);
  code->Field(&node->forward_overhead);
  code->Field(&node->result);
  code->Choice(&node->alias, AliasKind::kInPlace);
  code->Field(&node->random);
  code->Field(&node->stateful);
  code->Field(&node->collective);
  code->Field(&node->must_keep);
  code->Field(&node->transient_parameters);
}

template <class Code, class G>
void CodeDag(Code* code, G* dag) {
  code->Field(&dag->name);
  code->List(&dag->vertices, [code](auto* node) { CodeNode(code, node); });
}

template <class Code, class C>
void CodeCopyCost(Code* code, C* cost) {
  code->Field(&cost->bytes_per_second);
  code->Field(&cost->latency);
}

template <class Code, class T>
void CodeTransfers(Code* code, T* transfers) {
  code->Optional(transfers, [code](auto* link) {
    CodeCopyCost(code, &link->to_host);
    CodeCopyCost(code, &link->to_device);
    code->Field(&link->full_duplex);
    code->Field(&link->host_memory);
  });
}

bool IsInProgramOrder(const GraphSpec& spec) {
  for (size_t i = 1; i < spec.vertices.size(); ++i) {
    if (spec.vertices[i].program_order <= spec.vertices[i - 1].program_order) return false;
  }
  return true;
}

// The first byte: what the problem is, and whether a recompute in it stops early. Others are stored without a word of that.
enum class StoredKind { kChain, kGraph, kDag, kChainStops, kGraphStops };

StoredKind StoredKindOf(const Instance& instance) {
  if (instance.kind() == ProblemKind::kDag) return StoredKind::kDag;
  if (instance.is_graph()) {
    return instance.graph().stops() ? StoredKind::kGraphStops : StoredKind::kGraph;
  }
  return instance.chain().stops() ? StoredKind::kChainStops : StoredKind::kChain;
}

std::optional<Problem> ReadGraph(StoredKind kind, FieldReader* in) {
  const bool stops = kind == StoredKind::kGraphStops;
  GraphSpec spec;
  spec.has_backwards = kind != StoredKind::kDag;
  spec.has_backwards ? CodeGraph(in, stops, &spec) : CodeDag(in, &spec);
  if (!in->ok() || !IsInProgramOrder(spec)) return std::nullopt;
  absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
  if (!graph.ok() || graph->stops() != stops) return std::nullopt;
  return *std::move(graph);
}

std::optional<Problem> ReadChain(StoredKind kind, FieldReader* in) {
  const bool stops = kind == StoredKind::kChainStops;
  ChainSpec spec;
  CodeChain(in, stops, &spec);
  if (!in->ok()) return std::nullopt;
  absl::StatusOr<Chain> chain = Chain::Create(std::move(spec));
  if (!chain.ok() || chain->stops() != stops) return std::nullopt;
  return *std::move(chain);
}

}  // namespace

void WriteProblem(const Instance& instance, FieldWriter* out) {
  const StoredKind kind = StoredKindOf(instance);
  out->Choice(&kind, StoredKind::kGraphStops);
  if (instance.is_graph()) {
    const GraphSpec spec = instance.graph().spec();
    spec.has_backwards ? CodeGraph(out, instance.graph().stops(), &spec) : CodeDag(out, &spec);
  } else {
    CodeChain(out, instance.chain().stops(), &instance.chain().spec());
  }
  CodeTransfers(out, &instance.link());
}

std::shared_ptr<const Instance> ReadProblem(FieldReader* in) {
  StoredKind kind = StoredKind::kChain;
  in->Choice(&kind, StoredKind::kGraphStops);
  const bool is_chain = kind == StoredKind::kChain || kind == StoredKind::kChainStops;
  std::optional<Problem> problem = is_chain ? ReadChain(kind, in) : ReadGraph(kind, in);
  std::optional<TransferModel> transfers;
  CodeTransfers(in, &transfers);
  if (!problem || !in->ok() || (transfers && !ValidateTransferModel(*transfers).ok())) {
    in->Fail();
    return nullptr;
  }
  return std::make_shared<const Instance>(*std::move(problem), transfers);
}

int64_t SizeOf(const Problem& problem) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) return graph->size();
  return std::get<Chain>(problem).length() + 1;
}

}  // namespace stowage
