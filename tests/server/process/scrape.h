// What a stowaged says to Prometheus.
#ifndef STOWAGE_TESTS_SERVER_PROCESS_SCRAPE_H_
#define STOWAGE_TESTS_SERVER_PROCESS_SCRAPE_H_

#include <string>

namespace stowage::testing {

// All metrics of the endpoint at HOST:PORT, an address of IPv4; nothing where it does not answer.
std::string Scrape(const std::string& address);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_PROCESS_SCRAPE_H_
