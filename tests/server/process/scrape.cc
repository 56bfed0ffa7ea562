#include "tests/server/process/scrape.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace stowage::testing {

std::string Scrape(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  std::string text;
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  if (connect(client, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
      send(client, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    std::array<char, 4096> block;
    ssize_t size = 0;
    while ((size = recv(client, block.data(), block.size(), 0)) > 0) {
      text.append(block.data(), static_cast<size_t>(size));
    }
  }
  close(client);
  return text;
}

}  // namespace stowage::testing
