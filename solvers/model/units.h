// Strong types for the two quantities that everything here is made of.
//
// A Bytes is never a Nanos, and neither is a bare number: construction and value() are explicit.
// Arithmetic is plain 64-bit arithmetic; validation at the boundary (chain.h, graph.h) bounds every
// sum by kMaxTotal, so that no sum of validated quantities overflows.
#ifndef STOWAGE_SOLVERS_MODEL_UNITS_H_
#define STOWAGE_SOLVERS_MODEL_UNITS_H_

#include <cstdint>
#include <string>

namespace stowage {

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t value) : value_(value) {}

  constexpr int64_t value() const { return value_; }

  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Quantity a, Quantity b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.value_ < b.value_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.value_ <= b.value_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.value_ > b.value_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.value_ >= b.value_; }

 private:
  int64_t value_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Nanos = Quantity<struct NanosTag>;

inline constexpr int64_t kNanosPerSecond = 1000000000;

// No validated sum of sizes reaches this.
inline constexpr int64_t kMaxTotal = int64_t{1} << 62;
// Nor does any validated sum of times, multiplied by stages + 2 (more than any persistent schedule
// repeats), reach this.
inline constexpr int64_t kMaxTimeTotal = int64_t{1} << 61;

// "3.25 GiB", "512 B"; "1.234 s", "87.5 ms": for people, rounded.
std::string ToString(Bytes bytes);
std::string ToString(Nanos nanos);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_UNITS_H_
