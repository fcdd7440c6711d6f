// SPDX-License-Identifier: Apache-2.0
// A CUDA backend of another version: nothing but its interface may be called.
#include <cstdlib>

extern "C" const char* eldr_calibrate_cuda_interface() { return "0.0.9-0123456789ab"; }

extern "C" void* eldr_calibrate_cuda_open(void*) { std::abort(); }
