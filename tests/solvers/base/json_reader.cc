#include "tests/solvers/base/json_reader.h"

#include <cctype>
#include <cstdlib>
#include <utility>

namespace stowage::testing {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  std::optional<Json> ReadAll() {
    std::optional<Json> value = Value();
    SkipSpace();
    return value && at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && std::string(" \t\n\r").find(text_[at_]) != std::string::npos) {
      ++at_;
    }
  }

  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool TakeWord(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  std::optional<Json> Value() {
    SkipSpace();
    Json json;
    if (at_ >= text_.size()) return std::nullopt;
    switch (text_[at_]) {
      case '{':
        return Object();
      case '[':
        return List();
      case '"':
        json.kind = Json::Kind::kText;
        if (!Text(&json.text)) return std::nullopt;
        return json;
      default:
        break;
    }
    if (TakeWord("null")) return json;
    json.kind = Json::Kind::kFlag;
    json.flag = TakeWord("true");
    if (json.flag || TakeWord("false")) return json;
    return Number();
  }

  std::optional<Json> Number() {
    const size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    const size_t whole = at_;
    while (Digit()) ++at_;
    if (at_ == whole || (text_[whole] == '0' && at_ > whole + 1)) return std::nullopt;
    if (at_ < text_.size() && text_[at_] == '.') {
      const size_t fraction = ++at_;
      while (Digit()) ++at_;
      if (at_ == fraction) return std::nullopt;
    }
    Json json;
    json.kind = Json::Kind::kNumber;
    json.text = text_.substr(begin, at_ - begin);
    json.number = std::strtod(json.text.c_str(), nullptr);
    return json;
  }

  bool Digit() const {
    return at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0;
  }

  bool Text(std::string* out) {
    if (!Take('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out->push_back(c);
        continue;
      }
      if (at_ >= text_.size() || !Escape(text_[at_++], out)) return false;
    }
    return at_++ < text_.size();
  }

  bool Escape(char c, std::string* out) {
    static const std::map<char, char> kPlain = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},
                                                {'b', '\b'}, {'f', '\f'},  {'n', '\n'},
                                                {'r', '\r'}, {'t', '\t'}};
    if (kPlain.count(c) > 0) {
      out->push_back(kPlain.at(c));
      return true;
    }
    unsigned unit = 0;
    if (c != 'u' || !Unit(&unit)) return false;
    if (unit >= 0xDC00 && unit < 0xE000) return false;
    if (unit >= 0xD800 && unit < 0xDC00) {
      unsigned low = 0;
      if (!TakeWord("\\u") || !Unit(&low) || low < 0xDC00 || low >= 0xE000) return false;
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(unit, out);
    return true;
  }

  bool Unit(unsigned* unit) {
    if (text_.size() - at_ < 4) return false;
    for (int k = 0; k < 4; ++k) {
      const char c = text_[at_++];
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return false;
      *unit = *unit * 16 + static_cast<unsigned>(std::stoi(std::string(1, c), nullptr, 16));
    }
    return true;
  }

  static void AppendUtf8(unsigned c, std::string* out) {
    if (c < 0x80) {
      out->push_back(static_cast<char>(c));
      return;
    }
    const int after = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
    out->push_back(static_cast<char>(kFirst[after] | c >> (6 * after)));
    for (int k = after - 1; k >= 0; --k) {
      out->push_back(static_cast<char>(0x80 | (c >> (6 * k) & 0x3F)));
    }
  }

  std::optional<Json> List() {
    Json json;
    json.kind = Json::Kind::kList;
    Take('[');
    if (Take(']')) return json;
    do {
      std::optional<Json> value = Value();
      if (!value) return std::nullopt;
      json.list.push_back(*std::move(value));
    } while (Take(','));
    return Take(']') ? std::optional<Json>(std::move(json)) : std::nullopt;
  }

  std::optional<Json> Object() {
    Json json;
    json.kind = Json::Kind::kObject;
    Take('{');
    if (Take('}')) return json;
    do {
      SkipSpace();
      std::string field;
      if (!Text(&field) || !Take(':')) return std::nullopt;
      std::optional<Json> value = Value();
      if (!value || !json.object.emplace(field, *std::move(value)).second) return std::nullopt;
    } while (Take(','));
    return Take('}') ? std::optional<Json>(std::move(json)) : std::nullopt;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

const Json& Json::operator[](const std::string& field) const {
  static const Json* const kNone = new Json;
  const auto found = object.find(field);
  return found == object.end() ? *kNone : found->second;
}

std::optional<Json> ReadJson(const std::string& text) { return Reader(text).ReadAll(); }

}  // namespace stowage::testing
