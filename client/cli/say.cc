#include "client/cli/say.h"

#include <iostream>

namespace stowage {

void Say(const std::string& what) { std::cerr << "stowage: " << what << std::endl; }

}  // namespace stowage
