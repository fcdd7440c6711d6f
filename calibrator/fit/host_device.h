// SPDX-License-Identifier: Apache-2.0
// Marks what is compiled for the host and, by nvcc, for a GPU too.
#pragma once

#ifdef __CUDACC__
#define ELDR_HOST_DEVICE __host__ __device__
#else
#define ELDR_HOST_DEVICE
#endif
