#include "solvers/base/text_escape.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

// How many bytes follow the first one of a character; -1 if no character begins with it.
int BytesAfter(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  if (first >= 0xF0 && first < 0xF5) return 3;
  return -1;
}

// Takes the character that begins at `at`, which moves behind it.
uint32_t TakeCharacter(const std::string& text, size_t* at) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte((*at)++);
  const int after = BytesAfter(first);
  if (after < 0 || static_cast<size_t>(after) > text.size() - *at) return kReplacement;
  uint32_t character = after == 0 ? first : first & (0x3Fu >> after);
  for (int k = 0; k < after; ++k) {
    const unsigned char next = byte(*at + static_cast<size_t>(k));
    if ((next & 0xC0) != 0x80) return kReplacement;
    character = character << 6 | (next & 0x3Fu);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  if (character < kLeast[after] || character > 0x10FFFF || surrogate) return kReplacement;
  *at += static_cast<size_t>(after);
  return character;
}

bool IsPlain(uint32_t c) { return c >= 0x20 && c < 0x7F; }

void AppendUnit(uint32_t unit, std::string* out) {
  absl::StrAppend(out, "\\u", absl::Hex(unit, absl::kZeroPad4));
}

}  // namespace

std::string JsonString(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = TakeCharacter(text, &at);
    if (c == '"' || c == '\\') out.push_back('\\');
    // What could begin a tag, or end a script.
    const bool markup = c == '<' || c == '>' || c == '&';
    if (IsPlain(c) && !markup) {
      out.push_back(static_cast<char>(c));
    } else if (c < 0x10000) {
      AppendUnit(c, &out);
    } else {
      AppendUnit(0xD800 + ((c - 0x10000) >> 10), &out);
      AppendUnit(0xDC00 + ((c - 0x10000) & 0x3FF), &out);
    }
  }
  out.push_back('"');
  return out;
}

std::string JsonStringUtf8(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    const uint32_t c = TakeCharacter(text, &at);
    if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
      AppendUnit(c, &out);
      continue;
    }
    if (c == '"' || c == '\\') out.push_back('\\');
    if (c == kReplacement) {
      out.append("\xEF\xBF\xBD");
    } else {
      out.append(text, from, at - from);
    }
  }
  out.push_back('"');
  return out;
}

std::string HtmlEscaped(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = TakeCharacter(text, &at);
    const bool special = c == '"' || c == '\'' || c == '<' || c == '>' || c == '&';
    if (IsPlain(c) && !special) {
      out.push_back(static_cast<char>(c));
    } else {
      const bool allowed = c >= 0xA0 || special;  // controls are not
      absl::StrAppend(&out, "&#", allowed ? c : kReplacement, ";");
    }
  }
  return out;
}

}  // namespace stowage
