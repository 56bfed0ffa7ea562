#include "solvers/viz/graph_drawing.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/model/field_error.h"
#include "solvers/model/index.h"
#include "solvers/viz/markup.h"

namespace stowage {
namespace {

void StyleSegments(const CheckpointSet& set, const Segmentation& segments, GraphStyle* style) {
  const std::vector<Bytes>& bytes = segments.segment_bytes;
  const auto largest = std::max_element(bytes.begin(), bytes.end()) - bytes.begin();
  for (size_t v = 0; v < style->vertices.size(); ++v) {
    VertexStyle& vertex = style->vertices[v];
    const int segment = segments.segment_of[v];
    if (segment == Segmentation::kCheckpoint) {
      vertex.fill = "#2b3a55";
      vertex.text = "#ffffff";
    } else {
      vertex.fill = PaleColour(static_cast<size_t>(segment));
      vertex.in_largest_segment = segment == largest;
    }
  }
  style->subtitle =
      absl::StrCat(ToString(set.objective()), " = ", set.checkpoints.size(), " checkpoints of ",
                   ToString(set.checkpoint_bytes), " + the largest of ", bytes.size(),
                   bytes.size() == 1 ? " segment, " : " segments, ", ToString(set.segment_bytes));
}

}  // namespace

absl::StatusOr<GraphStyle> StyleOf(const CheckpointGraph& graph, const GraphDrawing& drawing) {
  GraphStyle style;
  for (int v = 0; v < graph.size(); ++v) {
    const size_t i = static_cast<size_t>(v);
    style.vertices.push_back({i < drawing.labels.size() ? drawing.labels[i] : absl::StrCat(v),
                              ToString(graph.bytes(v)), "#ffffff", "#1a1a1a"});
  }
  style.subtitle = absl::StrCat(graph.size(), " vertices, ", graph.edge_count(), " edges, ",
                                ToString(graph.total()));
  if (drawing.checkpoints.empty()) return style;
  Segmentation segments;
  const absl::StatusOr<CheckpointSet> set =
      ValidateCheckpoints(graph, drawing.checkpoints, drawing.rule, &segments);
  if (!set.ok()) return set.status();
  StyleSegments(*set, segments, &style);
  return style;
}

namespace {

constexpr int kMaxVertices = 5000;
constexpr size_t kMaxPlaces = 200000;
constexpr int kOrderingSweeps = 8;
constexpr int kAlignmentSweeps = 12;

// A vertex, or where an edge passes a layer. Places know their neighbours one layer up and down.
struct Place {
  int layer = 0;
  double x = 0;
  std::vector<int> above;
  std::vector<int> below;
};

class Places {
 public:
  explicit Places(const CheckpointGraph& graph) : graph_(graph) {}

  absl::Status Make() {
    places_.resize(Index(graph_.size()));
    for (int v = 0; v < graph_.size(); ++v) {
      for (const int u : graph_.inputs(v)) {
        places_[Index(v)].layer = std::max(places_[Index(v)].layer, places_[Index(u)].layer + 1);
      }
    }
    for (int v = 0; v < graph_.size(); ++v) {
      for (const int u : graph_.inputs(v)) {
        if (!Route(u, v)) {
          return FieldError("graph", absl::StrCat(graph_.size(), " vertices"),
                            absl::StrCat("must have edges that pass at most ", kMaxPlaces,
                                         " layers in all to be drawn"));
        }
      }
    }
    for (size_t p = 0; p < places_.size(); ++p) {
      const size_t layer = Index(places_[p].layer);
      if (layers_.size() <= layer) layers_.resize(layer + 1);
      layers_[layer].push_back(static_cast<int>(p));
    }
    return absl::OkStatus();
  }

  void Arrange() {
    for (std::vector<int>& layer : layers_) Spread(layer);
    for (int sweep = 0; sweep < kOrderingSweeps; ++sweep) Sweep(sweep % 2 == 0, true);
    for (int sweep = 0; sweep < kAlignmentSweeps; ++sweep) Sweep(sweep % 2 == 0, false);
  }

  const std::vector<Place>& places() const { return places_; }
  const std::vector<std::vector<int>>& layers() const { return layers_; }
  // The places that an edge passes, its ends included, in the order of (reader, input).
  const std::vector<std::vector<int>>& routes() const { return routes_; }

 private:
  // False if there are too many places.
  bool Route(int from, int to) {
    std::vector<int> route = {from};
    for (int layer = places_[Index(from)].layer + 1; layer < places_[Index(to)].layer; ++layer) {
      if (places_.size() == kMaxPlaces) return false;
      route.push_back(static_cast<int>(places_.size()));
      places_.emplace_back().layer = layer;
    }
    route.push_back(to);
    for (size_t i = 1; i < route.size(); ++i) {
      places_[Index(route[i - 1])].below.push_back(route[i]);
      places_[Index(route[i])].above.push_back(route[i - 1]);
    }
    routes_.push_back(std::move(route));
    return true;
  }

  void Spread(const std::vector<int>& layer) {
    const double middle = static_cast<double>(layer.size() - 1) / 2;
    for (size_t i = 0; i < layer.size(); ++i) {
      places_[Index(layer[i])].x = static_cast<double>(i) - middle;
    }
  }

  double Wish(int place, bool down) const {
    const std::vector<int>& near = down ? places_[Index(place)].above : places_[Index(place)].below;
    if (near.empty()) return places_[Index(place)].x;
    double sum = 0;
    for (const int n : near) sum += places_[Index(n)].x;
    return sum / static_cast<double>(near.size());
  }

  // Moves every layer towards the neighbours that were placed before it.
  void Sweep(bool down, bool reorder) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      std::vector<int>& layer = layers_[down ? i : layers_.size() - 1 - i];
      std::vector<std::pair<double, int>> wishes;
      for (const int place : layer) wishes.push_back({Wish(place, down), place});
      if (reorder) {
        std::stable_sort(wishes.begin(), wishes.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t k = 0; k < layer.size(); ++k) layer[k] = wishes[k].second;
        Spread(layer);
      } else {
        KeepApart(wishes);
      }
    }
  }

  // As near to the wishes as the order and a distance of 1 allow: from the left, then as a whole
  // back by what that pushed it to the right on average.
  void KeepApart(const std::vector<std::pair<double, int>>& wishes) {
    double last = -1e18, pushed = 0;
    for (const auto& [wish, place] : wishes) {
      last = std::max(wish, last + 1);
      places_[Index(place)].x = last;
      pushed += last - wish;
    }
    const double back = pushed / static_cast<double>(wishes.size());
    for (const auto& [wish, place] : wishes) places_[Index(place)].x -= back;
  }

  const CheckpointGraph& graph_;
  std::vector<Place> places_;  // vertices first
  std::vector<std::vector<int>> layers_;
  std::vector<std::vector<int>> routes_;
};

// Which column each layer is in: a layer of one vertex may end a column that is long enough. That
// vertex is the last one there.
std::vector<int> Columns(const std::vector<std::vector<int>>& layers, int vertices,
                         int column_layers) {
  std::vector<int> column(layers.size(), 0);
  int current = 0, length = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    column[i] = current;
    ++length;
    const bool single = layers[i].size() == 1 && layers[i].front() < vertices;
    if (single && length >= column_layers && i + 1 < layers.size()) {
      ++current;
      length = 0;
    }
  }
  return column;
}

// Puts the columns side by side.
class Page {
 public:
  Page(const Places& places, std::vector<int> column)
      : places_(places), column_(std::move(column)) {
    const size_t columns = Index(column_.back()) + 1;
    first_layer_.assign(columns, 0);
    left_.assign(columns, 1e18);
    right_.assign(columns, -1e18);
    for (size_t i = column_.size(); i-- > 0;) first_layer_[Index(column_[i])] = i;
    for (const Place& place : places_.places()) {
      const size_t c = Index(column_[Index(place.layer)]);
      left_[c] = std::min(left_[c], place.x);
      right_[c] = std::max(right_[c], place.x);
    }
    for (size_t c = 0; c < columns; ++c) {
      start_.push_back(width_);
      width_ += right_[c] - left_[c] + 1.5;
    }
  }

  DrawnPoint At(int place) const {
    const Place& p = places_.places()[Index(place)];
    const size_t c = Index(column_[Index(p.layer)]);
    return {start_[c] + p.x - left_[c], static_cast<double>(Index(p.layer) - first_layer_[c])};
  }

  // An edge to the next column goes up between the two.
  std::vector<DrawnPoint> Line(const std::vector<int>& route) const {
    std::vector<DrawnPoint> line;
    for (size_t i = 0; i < route.size(); ++i) {
      const DrawnPoint here = At(route[i]);
      const size_t c = Index(column_[Index(places_.places()[Index(route[i])].layer)]);
      if (i > 0 && here.y <= line.back().y) {
        const double between = start_[c] - 0.75;
        line.push_back({between, line.back().y + 0.5});
        line.push_back({between, here.y - 0.5});
      }
      line.push_back(here);
    }
    return line;
  }

  double width() const { return width_ - 0.5; }
  double height() const {
    size_t most = 0;
    for (size_t i = 0; i < column_.size(); ++i) {
      most = std::max(most, i - first_layer_[Index(column_[i])] + 1);
    }
    return static_cast<double>(most);
  }

 private:
  const Places& places_;
  const std::vector<int> column_;  // by layer
  std::vector<size_t> first_layer_;
  std::vector<double> left_, right_, start_;
  double width_ = 0;
};

}  // namespace

absl::StatusOr<LayeredLayout> LayOut(const CheckpointGraph& graph, const LayoutOptions& options) {
  if (options.column_layers < 1) {
    return FieldError("column_layers", options.column_layers, "must be >= 1");
  }
  if (graph.size() > kMaxVertices) {
    return FieldError("graph", absl::StrCat(graph.size(), " vertices"),
                      absl::StrCat("must have at most ", kMaxVertices, " to be drawn"));
  }
  Places places(graph);
  const absl::Status status = places.Make();
  if (!status.ok()) return status;
  places.Arrange();
  const Page page(places, Columns(places.layers(), graph.size(), options.column_layers));
  LayeredLayout layout;
  for (int v = 0; v < graph.size(); ++v) layout.vertices.push_back(page.At(v));
  for (const std::vector<int>& route : places.routes()) {
    layout.edges.push_back({route.front(), route.back(), page.Line(route)});
  }
  layout.width = page.width();
  layout.height = page.height();
  return layout;
}

absl::StatusOr<std::string> DrawDot(const CheckpointGraph& graph, const GraphDrawing& drawing) {
  const absl::StatusOr<GraphStyle> style = StyleOf(graph, drawing);
  if (!style.ok()) return style.status();
  std::string dot = absl::StrCat(
      "digraph {\n  label=\"", DotEscaped(drawing.title), "\\n", DotEscaped(style->subtitle),
      "\";\n  labelloc=t;\n  node [shape=box, style=filled, fontname=Helvetica];\n");
  for (int v = 0; v < graph.size(); ++v) {
    const VertexStyle& vertex = style->vertices[static_cast<size_t>(v)];
    absl::StrAppend(&dot, "  ", v, " [label=\"", DotEscaped(vertex.label), "\\n", vertex.bytes,
                    "\", fillcolor=\"", vertex.fill, "\", fontcolor=\"", vertex.text, "\"",
                    vertex.in_largest_segment ? ", color=\"#c62828\", penwidth=2" : "", "];\n");
  }
  for (int v = 0; v < graph.size(); ++v) {
    for (const int u : graph.inputs(v)) absl::StrAppend(&dot, "  ", u, " -> ", v, ";\n");
  }
  return dot + "}\n";
}

namespace {

// Pixels.
constexpr double kCellWidth = 138;
constexpr double kCellHeight = 40;
constexpr double kBoxWidth = 124;
constexpr double kBoxHeight = 28;
constexpr double kMargin = 16;
constexpr double kTitle = 44;
constexpr size_t kLabel = 20;  // characters that fit into a box

DrawnPoint Pixel(const DrawnPoint& p) {
  return {kMargin + (p.x + 0.5) * kCellWidth, kTitle + kMargin + (p.y + 0.5) * kCellHeight};
}

// From the bottom of one box to the top of the other, smoothly past the places between.
std::string EdgePath(const DrawnEdge& edge) {
  std::string path;
  DrawnPoint last;
  for (size_t i = 0; i < edge.points.size(); ++i) {
    DrawnPoint p = Pixel(edge.points[i]);
    if (i == 0) p.y += kBoxHeight / 2;
    if (i + 1 == edge.points.size()) p.y -= kBoxHeight / 2;
    if (i == 0) {
      absl::StrAppendFormat(&path, "M%.1f %.1f", p.x, p.y);
    } else {
      const double middle = (last.y + p.y) / 2;
      absl::StrAppendFormat(&path, "C%.1f %.1f %.1f %.1f %.1f %.1f", last.x, middle, p.x, middle,
                            p.x, p.y);
    }
    last = p;
  }
  return path;
}

void AppendVertex(const DrawnPoint& at, const VertexStyle& vertex, std::string* svg) {
  const DrawnPoint p = Pixel(at);
  absl::StrAppendFormat(
      svg,
      "<g><title>%s, %s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\" "
      "fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\"/>",
      XmlEscaped(vertex.label), vertex.bytes, p.x - kBoxWidth / 2, p.y - kBoxHeight / 2, kBoxWidth,
      kBoxHeight, vertex.fill, vertex.in_largest_segment ? "#c62828" : "#5b6470",
      vertex.in_largest_segment ? "2" : "1");
  absl::StrAppendFormat(svg,
                        "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>"
                        "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\" font-size=\"9\">%s</text></g>\n",
                        p.x, p.y - 2, vertex.text, XmlEscaped(Shortened(vertex.label, kLabel)), p.x,
                        p.y + 9, vertex.text, vertex.bytes);
}

}  // namespace

std::vector<std::string> LabelsOf(const Graph& graph, const CheckpointProblem& problem) {
  std::vector<std::string> labels;
  for (const std::vector<int>& members : problem.members) {
    if (members.empty()) {
      labels.push_back(labels.empty() ? "inputs" : "outputs");
      continue;
    }
    const Vertex& first = graph.vertex(members.front());
    labels.push_back(first.name.empty() ? absl::StrCat(first.op_kind, " ", first.id) : first.name);
  }
  return labels;
}

absl::StatusOr<std::string> DrawSvg(const CheckpointGraph& graph, const GraphDrawing& drawing) {
  const absl::StatusOr<GraphStyle> style = StyleOf(graph, drawing);
  if (!style.ok()) return style.status();
  const absl::StatusOr<LayeredLayout> layout = LayOut(graph, LayoutOptions());
  if (!layout.ok()) return layout.status();

  const double width = std::max(640.0, 2 * kMargin + layout->width * kCellWidth);
  const double height = kTitle + 2 * kMargin + layout->height * kCellHeight;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\" "
      "text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
      "<g text-anchor=\"start\"><text x=\"%.0f\" y=\"26\" font-size=\"16\">%s</text>"
      "<text x=\"%.0f\" y=\"44\" fill=\"#5b6470\">%s</text></g>\n",
      width, height, width, height, kMargin, XmlEscaped(drawing.title), kMargin,
      XmlEscaped(style->subtitle));
  absl::StrAppend(&svg, "<g fill=\"none\" stroke=\"#8a93a0\">\n");
  for (const DrawnEdge& edge : layout->edges) {
    absl::StrAppend(&svg, "<path d=\"", EdgePath(edge), "\"/>\n");
  }
  absl::StrAppend(&svg, "</g>\n");
  for (int v = 0; v < graph.size(); ++v) {
    const size_t i = static_cast<size_t>(v);
    AppendVertex(layout->vertices[i], style->vertices[i], &svg);
  }
  return svg + "</svg>\n";
}

}  // namespace stowage
