// Arbitrary bytes as what a Redis answers, whole and as the values of a well-formed answer to the
// reading of a plan: refused, or an entry that is of its key; and never more names listed than it
// sent.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/entries/field_code.h"
#include "server/entries/sealed_bytes.h"
#include "server/store/redis_plan_store.h"
#include "server/store/redis_pool.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

// Says the same to whoever connects, and hangs up. Lives as long as the process.
class Parrot {
 public:
  Parrot() : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    path_ = absl::StrCat("/tmp/stowage-fuzz-", getpid());
    unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    Require(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                listen(socket_, 16) == 0,
            "there is a socket");
    std::atexit([] { unlink(TheOne()->path().c_str()); });
    std::thread([this] { Serve(); }).detach();
  }

  static Parrot* TheOne() {
    static auto* const kParrot = new Parrot();
    return kParrot;
  }

  void Learn(const std::string& words) {
    std::lock_guard<std::mutex> lock(mutex_);
    words_ = words;
  }
  const std::string& path() const { return path_; }

 private:
  void Serve() {
    while (true) {
      const int peer = accept(socket_, nullptr, nullptr);
      std::string words;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        words = words_;
      }
      send(peer, words.data(), words.size(), MSG_NOSIGNAL);
      shutdown(peer, SHUT_WR);
      char heard[4096];
      while (recv(peer, heard, sizeof heard, 0) > 0) continue;
      close(peer);
    }
  }

  const int socket_;
  std::string path_;
  std::mutex mutex_;
  std::string words_;
};

std::string Bulk(const std::string& text) {
  return absl::StrCat("$", text.size(), "\r\n", text, "\r\n");
}

void Ask(const std::string& answer, const PlanKey& key) {
  Parrot::TheOne()->Learn(answer);
  RedisOptions options;
  options.address.host_or_path = Parrot::TheOne()->path();
  options.timeout = std::chrono::seconds(5);
  options.connections = 1;
  options.largest_reply = 1 << 16;
  NoMetrics metrics;
  RedisStoreOptions of_store;
  of_store.list_time = std::chrono::milliseconds(2);
  RedisPlanStore store(of_store, std::make_shared<RedisPool>(options), &metrics);
  const PlanAnswer found = store.Look(key, Access::kLookup);
  if (found.entry) {
    Require(Sha256(found.entry->canonical) == key.digest, "an entry is of its key");
  }
  const auto keys = store.List(std::nullopt, 10);
  const size_t listed = keys.ok() ? keys->size() : 0;
  Require(listed <= 10 && listed <= answer.size() / 64, "names that it sent");
  store.stats();
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::string canonical;
  FieldReader(bytes).Field(&canonical);
  const PlanKey key{kEncodingVersion, Sha256(canonical)};
  Ask(bytes, key);
  Ask(absl::StrCat("*3\r\n", Bulk("0"), Bulk(Seal(1, bytes)), Bulk(""), ":-1\r\n"), key);
  return 0;
}
