/* hwloc.h — a machine's topology as hwloc's XML (version 1 or 2) describes it, brought into the
 * shape libhwloc 2 would show: memory and I/O apart from the processor tree, levels that add no
 * structure removed, logical indexes counted. */
#pragma once
#include "graph/graph.h"

enum slu_hwloc_kind {
	SLU_HWLOC_MACHINE,
	SLU_HWLOC_GROUP,
	SLU_HWLOC_PACKAGE,
	SLU_HWLOC_L3,
	SLU_HWLOC_L2,
	SLU_HWLOC_L1,
	SLU_HWLOC_CORE,
	SLU_HWLOC_PU,
	SLU_HWLOC_NUMANODE,
	SLU_HWLOC_OSDEV,
	SLU_HWLOC_OTHER,    /* in the processor tree: other caches, dies */
	SLU_HWLOC_OTHER_IO, /* bridges and PCI devices */
	SLU_HWLOC_KINDS,
};

enum { SLU_OSDEV_BLOCK, SLU_OSDEV_GPU, SLU_OSDEV_DMA = 4, SLU_OSDEV_COPROC = 5 };

struct slu_hwloc_obj {
	enum slu_hwloc_kind kind;
	bool icache;
	bool no_memory;       /* a NUMA node that is not to be used: its nodeset is empty */
	int osdev;            /* SLU_OSDEV_..., -1 = none */
	uint32_t logical;     /* among its kind */
	uint64_t cache_size;  /* bytes */
	const char *name;     /* "" = none */
	const char *cpuset;   /* as written; "" = none */
	const char *host;     /* info HostName; NULL = none */
	const char *size;     /* info Size */
	const char *device;   /* info LinuxDeviceID */
	uint32_t first, last; /* children in the processor tree */
	uint32_t mem_first, mem_last;
	uint32_t io_first, io_last;
	uint32_t next; /* in its list; SLU_NONE ends */
};

/* Zero-initialise. */
struct slu_hwloc {
	struct slu_arena text;
	SLU_VEC(struct slu_hwloc_obj) o;
	uint32_t root; /* SLU_NONE = none */
};

/* 0, -EINVAL (no topology), -EFBIG, -ENOMEM. */
int slu_hwloc_parse(struct slu_hwloc *h, const char *text, size_t n);
void slu_hwloc_done(struct slu_hwloc *h);
