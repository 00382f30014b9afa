/* messages.h — the messages of the services of Fluence, Fluxnetes and Fluxion: a struct and a table for each,
 * with the published field numbers.
 *
 * fluxion.FluxionService exists in two dialects with the same paths: N (Fluxnetes' sidecar) and F
 * (Fluxion's own service, which Fluxqueue uses).  slu_flux_match_dialect() and
 * slu_flux_cancel_dialect() tell them apart by the bytes. */
#pragma once
#include "wire/message.h"

/* ---- shared by fluxcli and dialect N ---- */

struct slu_flux_podspec {
	struct slu_text id, container;
	int32_t cpu;
	int64_t memory, gpu, storage; /* bytes, devices, bytes */
	struct slu_texts labels;
};
struct slu_flux_node {
	struct slu_text name;
	int32_t tasks;
};

/* ---- fluxcli.FluxcliService ---- */

struct slu_cli_match {
	struct slu_flux_podspec ps;
	struct slu_text request;
	int32_t count;
};
struct slu_cli_matched {
	struct slu_text pod;
	struct slu_subs nodes; /* struct slu_flux_node */
	int64_t job;
};
struct slu_cli_cancel {
	int64_t job;
};
struct slu_cli_cancelled {
	int64_t job;
	int32_t error;
};
extern const struct slu_msg slu_cli_match, slu_cli_matched, slu_cli_cancel, slu_cli_cancelled;

/* ---- service.ExternalPluginService ---- */

struct slu_ext_nothing {
	char unused;
};
struct slu_ext_resources {
	struct slu_text graph;
};
struct slu_ext_ask {
	struct slu_text group;
};
struct slu_ext_group {
	struct slu_text name;
	int64_t size;
};
extern const struct slu_msg slu_ext_nothing, slu_ext_resources, slu_ext_ask, slu_ext_group;

/* ---- fluxion.FluxionService, dialect N ---- */

struct slu_n_match {
	struct slu_flux_podspec ps;
	int32_t count;
	bool reserve;
	struct slu_text job_name;
};
struct slu_n_matched {
	uint64_t job;
	struct slu_subs nodes; /* struct slu_flux_node */
	bool reserved;
	int64_t reserved_at;
	bool allocated;
};
struct slu_n_cancel {
	uint64_t job;
	bool no_exist_ok;
};
struct slu_n_cancelled {
	uint64_t job;
	int32_t error;
};
extern const struct slu_msg slu_n_match, slu_n_matched, slu_n_cancel, slu_n_cancelled;

/* ---- fluxion.FluxionService, dialect F ---- */

enum { SLU_F_SUCCESS, SLU_F_ERROR };

struct slu_f_init {
	struct slu_text policy, jgf;
};
struct slu_f_match {
	struct slu_text jobspec, request;
	bool reservation;
};
struct slu_f_matched {
	struct slu_text allocation;
	int64_t job;
	bool reserved;
	int64_t at;
	float overhead;
	int32_t status;
};
struct slu_f_cancel {
	int64_t job;
};
struct slu_f_cancelled {
	int64_t job;
	int32_t error, status;
};
struct slu_f_grow {
	struct slu_text jgf;
};
struct slu_f_shrink {
	struct slu_texts paths;
};
/* Of Init, Grow and Shrink. */
struct slu_f_status {
	int32_t status;
};
extern const struct slu_msg slu_f_init, slu_f_initialized, slu_f_match, slu_f_matched, slu_f_cancel,
	slu_f_cancelled, slu_f_grow, slu_f_grown, slu_f_shrink, slu_f_shrunk;

enum slu_flux_dialect { SLU_DIALECT_F, SLU_DIALECT_N };

/* The dialect of a MatchRequest: field 2 means F, field 4 or 5 means N.  Without any of these field 1 decides: a text
 * that parses as a PodSpec means N.  Broken bytes are F. */
enum slu_flux_dialect slu_flux_match_dialect(const void *p, size_t n);
/* The dialect of a CancelRequest: only N has field 1. */
enum slu_flux_dialect slu_flux_cancel_dialect(const void *p, size_t n);

/* The .proto files, for reflection; fluxion.proto is described in dialect F. */
extern const struct slu_msg_file slu_flux_cli_file, slu_flux_ext_file, slu_flux_f_file;
