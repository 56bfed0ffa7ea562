// A service whose methods all take and give bytes (wire_message.h).
#ifndef STOWAGE_SERVER_RPC_RAW_METHODS_H_
#define STOWAGE_SERVER_RPC_RAW_METHODS_H_

namespace stowage {

// `Methods` are the WithRawCallbackMethod_* of the generated class, each named once.
template <class Service, template <class> class... Methods>
struct RawMethods {
  using Type = Service;
};

template <class Service, template <class> class First, template <class> class... Rest>
struct RawMethods<Service, First, Rest...> {
  using Type = First<typename RawMethods<Service, Rest...>::Type>;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_RAW_METHODS_H_
