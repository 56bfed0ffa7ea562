// Fields as bytes and back. What is stored names its fields once, in a function that takes either
// class: written and read cannot differ.
//
//   template <class Code, class T> void CodeFields(Code* code, T* thing) {
//     code->Field(&thing->count);
//   }
//
// A boolean is a byte, 0 or 1. Integers are varints of their zigzag form (solvers/schedule/varint.h), a
// size first where there are several. Hashes and doubles are 8 bytes, low ones first. A value has
// one encoding. Not thread-safe.
#ifndef STOWAGE_SERVER_ENTRIES_FIELD_CODE_H_
#define STOWAGE_SERVER_ENTRIES_FIELD_CODE_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/schedule/varint.h"

namespace stowage {

class FieldWriter {
 public:
  void Field(const bool* value) { out_.push_back(*value ? 1 : 0); }
  void Field(const int64_t* value) { AppendVarint(ZigZag(*value), &out_); }
  void Field(const double* value) {
    uint64_t bits = 0;
    std::memcpy(&bits, value, sizeof bits);
    Hash(&bits);
  }
  void Field(const std::string* value) {
    AppendVarint(value->size(), &out_);
    out_ += *value;
  }
  template <class Tag>
  void Field(const Quantity<Tag>* value) {
    AppendVarint(ZigZag(value->value()), &out_);
  }
  void Hash(const uint64_t* value) {
    for (int shift = 0; shift < 64; shift += 8) out_.push_back(static_cast<char>(*value >> shift));
  }
  // Whose values are 0..last.
  template <class Enum>
  void Choice(const Enum* value, Enum /*last*/) {
    out_.push_back(static_cast<char>(*value));
  }
  template <class T, class CodeItem>
  void Optional(const std::optional<T>* value, CodeItem code_item) {
    const bool there = value->has_value();
    Field(&there);
    if (there) code_item(&**value);
  }
  template <class T, class CodeItem>
  void List(const std::vector<T>* values, CodeItem code_item) {
    AppendVarint(values->size(), &out_);
    for (const T& value : *values) code_item(&value);
  }

  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

// Once a field is not there, or none that FieldWriter writes, nothing more is read: values stay as
// they are, and ok() says so. Takes memory only for what was read.
class FieldReader {
 public:
  // `bytes` must outlive it.
  explicit FieldReader(const std::string& bytes)
      : in_(bytes), most_(static_cast<int64_t>(bytes.size())) {}

  bool ok() const { return ok_; }
  // Everything was read, and nothing is left.
  bool done() const { return ok_ && in_.done(); }
  void Fail() { ok_ = false; }

  void Field(bool* value) {
    uint8_t byte = 0;
    if (Keep(ok_ && in_.Byte(&byte) && byte <= 1)) *value = byte != 0;
  }
  void Field(int64_t* value) {
    uint64_t read = 0;
    if (Keep(ok_ && in_.Varint(&read))) *value = UnZigZag(read);
  }
  // A number: neither infinite nor none.
  void Field(double* value) {
    uint64_t bits = 0;
    Hash(&bits);
    double read = 0;
    std::memcpy(&read, &bits, sizeof read);
    if (Keep(ok_ && std::isfinite(read))) *value = read;
  }
  void Field(std::string* value) {
    int64_t size = 0;
    Keep(ok_ && in_.Count(most_, &size) && in_.String(size, value));
  }
  template <class Tag>
  void Field(Quantity<Tag>* value) {
    int64_t read = 0;
    Field(&read);
    if (ok_) *value = Quantity<Tag>(read);
  }
  void Hash(uint64_t* value) {
    uint64_t read = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      uint8_t byte = 0;
      if (!Keep(ok_ && in_.Byte(&byte))) return;
      read |= static_cast<uint64_t>(byte) << shift;
    }
    *value = read;
  }
  template <class Enum>
  void Choice(Enum* value, Enum last) {
    uint8_t byte = 0;
    if (Keep(ok_ && in_.Byte(&byte) && byte <= static_cast<uint8_t>(last))) {
      *value = static_cast<Enum>(byte);
    }
  }
  template <class T, class CodeItem>
  void Optional(std::optional<T>* value, CodeItem code_item) {
    bool there = false;
    Field(&there);
    if (there) code_item(&value->emplace());
  }
  template <class T, class CodeItem>
  void List(std::vector<T>* values, CodeItem code_item) {
    int64_t count = 0;
    Keep(ok_ && in_.Count(most_, &count));
    // Not reserved: a count is only a claim.
    for (int64_t i = 0; i < count && ok_; ++i) {
      values->emplace_back();
      code_item(&values->back());
    }
  }

 private:
  bool Keep(bool read) { return ok_ = read; }

  VarintReader in_;
  const int64_t most_;  // of anything: each takes a byte or more
  bool ok_ = true;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_FIELD_CODE_H_
