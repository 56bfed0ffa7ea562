#include "server/cache/problem_code.h"

#include <utility>

namespace stowage {
namespace {

template <class Code, class S>
void CodeStage(Code* code, S* stage) {
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
}

template <class Code, class C>
void CodeChain(Code* code, C* chain) {
  code->Field(&chain->name);
  code->Field(&chain->input);
  code->Field(&chain->input_gradient);
  code->List(&chain->stages, [code](auto* stage) { CodeStage(code, stage); });
  CodeStage(code, &chain->loss);
}

template <class Code, class V>
void CodeVertex(Code* code, V* vertex) {
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
}

template <class Code, class G>
void CodeGraph(Code* code, G* graph) {
  code->Field(&graph->name);
  code->List(&graph->vertices, [code](auto* vertex) { CodeVertex(code, vertex); });
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

std::optional<Problem> ReadGraph(bool has_backwards, FieldReader* in) {
  GraphSpec spec;
  spec.has_backwards = has_backwards;
  has_backwards ? CodeGraph(in, &spec) : CodeDag(in, &spec);
  if (!in->ok() || !IsInProgramOrder(spec)) return std::nullopt;
  absl::StatusOr<Graph> graph = Graph::Create(std::move(spec));
  if (!graph.ok()) return std::nullopt;
  return *std::move(graph);
}

std::optional<Problem> ReadChain(FieldReader* in) {
  ChainSpec spec;
  CodeChain(in, &spec);
  if (!in->ok()) return std::nullopt;
  absl::StatusOr<Chain> chain = Chain::Create(std::move(spec));
  if (!chain.ok()) return std::nullopt;
  return *std::move(chain);
}

}  // namespace

void WriteProblem(const Instance& instance, FieldWriter* out) {
  const ProblemKind kind = instance.kind();
  out->Choice(&kind, ProblemKind::kDag);
  if (instance.is_graph()) {
    const GraphSpec spec = instance.graph().spec();
    spec.has_backwards ? CodeGraph(out, &spec) : CodeDag(out, &spec);
  } else {
    CodeChain(out, &instance.chain().spec());
  }
  CodeTransfers(out, &instance.link());
}

std::shared_ptr<const Instance> ReadProblem(FieldReader* in) {
  ProblemKind kind = ProblemKind::kChain;
  in->Choice(&kind, ProblemKind::kDag);
  std::optional<Problem> problem =
      kind == ProblemKind::kChain ? ReadChain(in) : ReadGraph(kind == ProblemKind::kGraph, in);
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
