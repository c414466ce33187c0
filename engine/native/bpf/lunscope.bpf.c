/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Exact queue, service and busy time of block devices, counted where the I/Os pass. */
#include "bios.h"
#include "requests.h"
#include "splits.h"
#include "tag_wait.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
