#include "tests/bench/load/slow_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stowage {
namespace {

sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

bool SendAll(int to, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(to, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

SlowSocket::SlowSocket(const std::string& target, std::chrono::milliseconds delay)
    : target_(target), delay_(delay), listening_(socket(AF_UNIX, SOCK_STREAM, 0)) {
  const sockaddr_un address = SocketAddress(path());
  if (bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listening_, 64) != 0) {
    std::perror(path().c_str());
    std::abort();
  }
  acceptor_ = std::thread([this] { Accept(); });
}

SlowSocket::~SlowSocket() {
  stopped_ = true;
  shutdown(listening_, SHUT_RDWR);
  acceptor_.join();
  for (const int each : sockets_) shutdown(each, SHUT_RDWR);
  for (std::thread& thread : threads_) thread.join();
  for (const int each : sockets_) close(each);
  close(listening_);
}

void SlowSocket::Accept() {
  while (!stopped_) {
    const int client = accept(listening_, nullptr, nullptr);
    if (client < 0) continue;
    const int server = socket(AF_UNIX, SOCK_STREAM, 0);
    const sockaddr_un address = SocketAddress(target_);
    const bool connected =
        connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    std::lock_guard<std::mutex> lock(mutex_);
    sockets_.push_back(client);
    sockets_.push_back(server);
    if (!connected) {
      shutdown(client, SHUT_RDWR);
      continue;
    }
    threads_.emplace_back(
        [this, client, server] { Pass(client, server, std::chrono::milliseconds(0)); });
    threads_.emplace_back([this, client, server] { Pass(server, client, delay_); });
  }
}

void SlowSocket::Pass(int from, int to, std::chrono::milliseconds delay) {
  std::array<char, 1 << 16> bytes;
  for (;;) {
    const ssize_t count = recv(from, bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    std::this_thread::sleep_for(delay);
    if (!SendAll(to, bytes.data(), static_cast<size_t>(count))) break;
  }
  // Whoever is at the other end is told that nothing follows.
  shutdown(to, SHUT_RDWR);
}

}  // namespace stowage
