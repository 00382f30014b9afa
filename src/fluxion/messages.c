#include "fluxion/messages.h"

#define AT(T, m) offsetof(struct T, m)

/* ---- shared ---- */

static const struct slu_msg_field podspec_fields[] = {
	{ 1, "id", SLU_MSG_STR, AT(slu_flux_podspec, id) },
	{ 2, "container", SLU_MSG_STR, AT(slu_flux_podspec, container) },
	{ 3, "cpu", SLU_MSG_I32, AT(slu_flux_podspec, cpu) },
	{ 4, "memory", SLU_MSG_I64, AT(slu_flux_podspec, memory) },
	{ 5, "gpu", SLU_MSG_I64, AT(slu_flux_podspec, gpu) },
	{ 6, "storage", SLU_MSG_I64, AT(slu_flux_podspec, storage) },
	{ 7, "labels", SLU_MSG_STRS, AT(slu_flux_podspec, labels) },
};
static const struct slu_msg podspec = SLU_MSG("PodSpec", struct slu_flux_podspec, podspec_fields);
static const struct slu_msg_field node_fields[] = {
	{ 1, "nodeID", SLU_MSG_STR, AT(slu_flux_node, name) },
	{ 2, "tasks", SLU_MSG_I32, AT(slu_flux_node, tasks) },
};
static const struct slu_msg node = SLU_MSG("NodeAlloc", struct slu_flux_node, node_fields);

/* ---- fluxcli ---- */

static const struct slu_msg_field cli_match_fields[] = {
	{ 1, "ps", SLU_MSG_SUB, AT(slu_cli_match, ps), .sub = &podspec },
	{ 2, "request", SLU_MSG_STR, AT(slu_cli_match, request) },
	{ 3, "count", SLU_MSG_I32, AT(slu_cli_match, count) },
};
const struct slu_msg slu_cli_match = SLU_MSG("MatchRequest", struct slu_cli_match,
					     cli_match_fields);
static const struct slu_msg_field cli_matched_fields[] = {
	{ 1, "podID", SLU_MSG_STR, AT(slu_cli_matched, pod) },
	{ 2, "nodelist", SLU_MSG_SUBS, AT(slu_cli_matched, nodes), .sub = &node },
	{ 3, "jobID", SLU_MSG_I64, AT(slu_cli_matched, job) },
};
const struct slu_msg slu_cli_matched = SLU_MSG("MatchResponse", struct slu_cli_matched,
					       cli_matched_fields);
static const struct slu_msg_field cli_cancel_fields[] = {
	{ 2, "jobID", SLU_MSG_I64, AT(slu_cli_cancel, job) },
};
const struct slu_msg slu_cli_cancel = SLU_MSG("CancelRequest", struct slu_cli_cancel,
					      cli_cancel_fields);
static const struct slu_msg_field cli_cancelled_fields[] = {
	{ 1, "jobID", SLU_MSG_I64, AT(slu_cli_cancelled, job) },
	{ 2, "error", SLU_MSG_I32, AT(slu_cli_cancelled, error) },
};
const struct slu_msg slu_cli_cancelled = SLU_MSG("CancelResponse", struct slu_cli_cancelled,
						 cli_cancelled_fields);

/* ---- service ---- */

const struct slu_msg slu_ext_nothing = { .name = "ResourceRequest",
					 .size = sizeof(struct slu_ext_nothing) };
static const struct slu_msg_field ext_resources_fields[] = {
	{ 1, "graph", SLU_MSG_RAW, AT(slu_ext_resources, graph) },
};
const struct slu_msg slu_ext_resources = SLU_MSG("ResourceResponse", struct slu_ext_resources,
						 ext_resources_fields);
static const struct slu_msg_field ext_ask_fields[] = {
	{ 1, "group", SLU_MSG_STR, AT(slu_ext_ask, group) },
};
const struct slu_msg slu_ext_ask = SLU_MSG("GroupRequest", struct slu_ext_ask, ext_ask_fields);
static const struct slu_msg_field ext_group_fields[] = {
	{ 1, "name", SLU_MSG_STR, AT(slu_ext_group, name) },
	{ 2, "size", SLU_MSG_I64, AT(slu_ext_group, size) },
};
const struct slu_msg slu_ext_group = SLU_MSG("GroupResponse", struct slu_ext_group,
					     ext_group_fields);

/* ---- dialect N ---- */

static const struct slu_msg_field n_match_fields[] = {
	{ 1, "podspec", SLU_MSG_SUB, AT(slu_n_match, ps), .sub = &podspec },
	{ 3, "count", SLU_MSG_I32, AT(slu_n_match, count) },
	{ 4, "reserve", SLU_MSG_BOOL, AT(slu_n_match, reserve) },
	{ 5, "jobName", SLU_MSG_STR, AT(slu_n_match, job_name) },
};
const struct slu_msg slu_n_match = SLU_MSG("MatchRequest", struct slu_n_match, n_match_fields);
static const struct slu_msg_field n_matched_fields[] = {
	{ 1, "fluxID", SLU_MSG_U64, AT(slu_n_matched, job) },
	{ 2, "nodelist", SLU_MSG_SUBS, AT(slu_n_matched, nodes), .sub = &node },
	{ 3, "reserved", SLU_MSG_BOOL, AT(slu_n_matched, reserved) },
	{ 4, "reserved_at", SLU_MSG_I64, AT(slu_n_matched, reserved_at) },
	{ 5, "allocated", SLU_MSG_BOOL, AT(slu_n_matched, allocated) },
};
const struct slu_msg slu_n_matched = SLU_MSG("MatchResponse", struct slu_n_matched,
					     n_matched_fields);
static const struct slu_msg_field n_cancel_fields[] = {
	{ 1, "fluxID", SLU_MSG_U64, AT(slu_n_cancel, job) },
	{ 2, "NoExistOK", SLU_MSG_BOOL, AT(slu_n_cancel, no_exist_ok) },
};
const struct slu_msg slu_n_cancel = SLU_MSG("CancelRequest", struct slu_n_cancel, n_cancel_fields);
static const struct slu_msg_field n_cancelled_fields[] = {
	{ 1, "fluxID", SLU_MSG_U64, AT(slu_n_cancelled, job) },
	{ 2, "error", SLU_MSG_I32, AT(slu_n_cancelled, error) },
};
const struct slu_msg slu_n_cancelled = SLU_MSG("CancelResponse", struct slu_n_cancelled,
					       n_cancelled_fields);

/* ---- dialect F ---- */

#define WORDS(var, ...)                                                          \
	static const struct slu_msg_word var##_words[] = { __VA_ARGS__, { 0 } }; \
	static const struct slu_msg_enum var = { "ResultType", var##_words }

WORDS(init_result, { "INIT_SUCCESS", 0 }, { "INIT_ERROR", 1 }, { "INIT_DENIED", 2 });
WORDS(match_result, { "MATCH_SUCCESS", 0 }, { "MATCH_ERROR", 1 }, { "MATCH_DENIED", 2 });
WORDS(cancel_result, { "CANCEL_SUCCESS", 0 }, { "CANCEL_REQUEST_ERROR", 1 }, { "CANCEL_ERROR", 2 },
      { "CANCEL_DENIED", 3 });
WORDS(grow_result, { "GROW_SUCCESS", 0 }, { "GROW_ERROR", 1 });
WORDS(shrink_result, { "SHRINK_SUCCESS", 0 }, { "SHRINK_ERROR", 1 });

static const struct slu_msg_field f_init_fields[] = {
	{ 1, "policy", SLU_MSG_STR, AT(slu_f_init, policy) },
	{ 2, "jgf", SLU_MSG_RAW, AT(slu_f_init, jgf) },
};
const struct slu_msg slu_f_init = SLU_MSG("InitRequest", struct slu_f_init, f_init_fields);
static const struct slu_msg_field f_match_fields[] = {
	{ 1, "jobspec", SLU_MSG_RAW, AT(slu_f_match, jobspec) },
	{ 2, "request", SLU_MSG_STR, AT(slu_f_match, request) },
	{ 3, "reservation", SLU_MSG_BOOL, AT(slu_f_match, reservation) },
};
const struct slu_msg slu_f_match = SLU_MSG("MatchRequest", struct slu_f_match, f_match_fields);
static const struct slu_msg_field f_matched_fields[] = {
	{ 1, "allocation", SLU_MSG_RAW, AT(slu_f_matched, allocation) },
	{ 2, "jobid", SLU_MSG_I64, AT(slu_f_matched, job) },
	{ 3, "reserved", SLU_MSG_BOOL, AT(slu_f_matched, reserved) },
	{ 4, "at", SLU_MSG_I64, AT(slu_f_matched, at) },
	{ 5, "overhead", SLU_MSG_FLOAT, AT(slu_f_matched, overhead) },
	{ 6, "status", SLU_MSG_ENUM, AT(slu_f_matched, status), .words = &match_result },
};
const struct slu_msg slu_f_matched = SLU_MSG("MatchResponse", struct slu_f_matched,
					     f_matched_fields);
static const struct slu_msg_field f_cancel_fields[] = {
	{ 2, "jobID", SLU_MSG_I64, AT(slu_f_cancel, job) },
};
const struct slu_msg slu_f_cancel = SLU_MSG("CancelRequest", struct slu_f_cancel, f_cancel_fields);
static const struct slu_msg_field f_cancelled_fields[] = {
	{ 1, "jobID", SLU_MSG_I64, AT(slu_f_cancelled, job) },
	{ 2, "error", SLU_MSG_I32, AT(slu_f_cancelled, error) },
	{ 3, "status", SLU_MSG_ENUM, AT(slu_f_cancelled, status), .words = &cancel_result },
};
const struct slu_msg slu_f_cancelled = SLU_MSG("CancelResponse", struct slu_f_cancelled,
					       f_cancelled_fields);
static const struct slu_msg_field f_grow_fields[] = {
	{ 1, "jgf", SLU_MSG_RAW, AT(slu_f_grow, jgf) },
};
const struct slu_msg slu_f_grow = SLU_MSG("GrowRequest", struct slu_f_grow, f_grow_fields);
static const struct slu_msg_field f_shrink_fields[] = {
	{ 1, "nodepaths", SLU_MSG_STRS, AT(slu_f_shrink, paths) },
};
const struct slu_msg slu_f_shrink = SLU_MSG("ShrinkRequest", struct slu_f_shrink, f_shrink_fields);

#define STATUS(var, text, result)                                                         \
	static const struct slu_msg_field var##_fields[] = {                              \
		{ 1, "status", SLU_MSG_ENUM, AT(slu_f_status, status), .words = &result } \
	};                                                                                \
	const struct slu_msg var = SLU_MSG(text, struct slu_f_status, var##_fields)

STATUS(slu_f_initialized, "InitResponse", init_result);
STATUS(slu_f_grown, "GrowResponse", grow_result);
STATUS(slu_f_shrunk, "ShrinkResponse", shrink_result);

/* ---- which dialect ---- */

/* Whether the bytes are fields of a PodSpec with the right wire types, and nothing else.  A jobspec never is:
 * its first letters, read as tags, are fields that a PodSpec does not have. */
static bool is_podspec(const struct slu_pb_field *f)
{
	static const uint8_t wires[] = { SLU_PB_BYTES,  SLU_PB_BYTES,  SLU_PB_VARINT, SLU_PB_VARINT,
					 SLU_PB_VARINT, SLU_PB_VARINT, SLU_PB_BYTES };
	struct slu_pb r = slu_pb_sub(f);
	struct slu_pb_field v;
	int rc;

	while ((rc = slu_pb_next(&r, &v)) > 0)
		if (v.num > SLU_LEN(wires) || v.wire != wires[v.num - 1])
			return false;
	return rc == 0;
}

enum slu_flux_dialect slu_flux_match_dialect(const void *p, size_t n)
{
	struct slu_pb r = slu_pb(p, n);
	struct slu_pb_field f;
	bool pods = false;
	int rc;

	while ((rc = slu_pb_next(&r, &f)) > 0) {
		if (f.num == 2)
			return SLU_DIALECT_F;
		if (f.num == 4 || f.num == 5)
			return SLU_DIALECT_N;
		if (f.num == 1 && f.wire == SLU_PB_BYTES)
			pods = is_podspec(&f);
	}
	return rc == 0 && pods ? SLU_DIALECT_N : SLU_DIALECT_F;
}

enum slu_flux_dialect slu_flux_cancel_dialect(const void *p, size_t n)
{
	struct slu_pb r = slu_pb(p, n);
	struct slu_pb_field f;

	while (slu_pb_next(&r, &f) > 0)
		if (f.num == 1)
			return SLU_DIALECT_N;
	return SLU_DIALECT_F;
}

/* ---- files ---- */

static const struct slu_msg_method cli_methods[] = {
	{ "Match", &slu_cli_match, &slu_cli_matched },
	{ "Cancel", &slu_cli_cancel, &slu_cli_cancelled },
};
static const struct slu_msg_service cli_service = { "FluxcliService", cli_methods,
						    SLU_LEN(cli_methods) };
const struct slu_msg_file slu_flux_cli_file = { .name = "fluxcli.proto",
						.package = "fluxcli",
						.service = &cli_service };
static const struct slu_msg_method ext_methods[] = {
	{ "GetResources", &slu_ext_nothing, &slu_ext_resources },
	{ "ListGroups", &slu_ext_ask, &slu_ext_group },
	{ "GetGroup", &slu_ext_ask, &slu_ext_group },
};
static const struct slu_msg_service ext_service = { "ExternalPluginService", ext_methods,
						    SLU_LEN(ext_methods) };
const struct slu_msg_file slu_flux_ext_file = { .name = "service.proto",
						.package = "service",
						.service = &ext_service };
static const struct slu_msg_method f_methods[] = {
	{ "Init", &slu_f_init, &slu_f_initialized },   { "Match", &slu_f_match, &slu_f_matched },
	{ "Cancel", &slu_f_cancel, &slu_f_cancelled }, { "Grow", &slu_f_grow, &slu_f_grown },
	{ "Shrink", &slu_f_shrink, &slu_f_shrunk },
};
static const struct slu_msg_service f_service = { "FluxionService", f_methods, SLU_LEN(f_methods) };
const struct slu_msg_file slu_flux_f_file = { .name = "fluxion.proto",
					      .package = "fluxion",
					      .service = &f_service };
