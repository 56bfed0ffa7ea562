// A library that is not where a loader looks, and what calls it: what a command meets whose LibTorch is gone, or another.
extern "C" int StowageTestGone();
#ifdef STOWAGE_TEST_GONE
extern "C" int StowageTestGone() { return 0; }
#else
extern "C" int StowageTorchMain(int, char**) { return StowageTestGone(); }
#endif
