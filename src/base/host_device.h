// The one spelling for functions that compile for the host and, under nvcc, for the device.
#pragma once

#ifdef __CUDACC__
#define GODWIT_HOST_DEVICE __host__ __device__
#else
#define GODWIT_HOST_DEVICE
#endif
