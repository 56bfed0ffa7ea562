#include "client/rpc/rendezvous.h"

#include <cstddef>

namespace stowage {
namespace {

// FNV-1a.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// The finaliser of splitmix64: each bit of the result depends on all of `x`.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A part of a digest of SHA-256 is as good a hash as any.
uint64_t HashOf(const PlanKey& key) {
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof(hash); ++i) hash = hash << 8 | key.digest.bytes()[i];
  return hash;
}

}  // namespace

uint64_t RendezvousScore(const PlanKey& key, const std::string& address) {
  return Mix(HashOf(key) ^ Mix(HashOf(address)));
}

}  // namespace stowage
