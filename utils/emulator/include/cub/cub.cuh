// CUB's reductions and scans of blocks and warps.
#pragma once

#include "block/block_reduce.cuh"
#include "block/block_scan.cuh"
#include "warp/warp_reduce.cuh"
#include "warp/warp_scan.cuh"
