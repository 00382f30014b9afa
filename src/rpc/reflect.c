#include "rpc/reflect.h"

#include <stdio.h>

struct extension {
	struct slu_text type;
	int32_t number;
};
struct request {
	struct slu_text host, filename, symbol, extensions_of, list;
	struct extension extension;
	bool has_filename, has_symbol, has_extension, has_extensions_of, has_list;
};
struct descriptors {
	struct slu_texts file;
};
struct numbers {
	struct slu_text base;
};
struct service {
	struct slu_text name;
};
struct services {
	struct slu_subs service;
};
struct failure {
	int32_t code;
	struct slu_text message;
};
struct response {
	struct slu_text host;
	struct request original;
	struct descriptors file;
	struct numbers numbers;
	struct services list;
	struct failure error;
	bool has_original, has_file, has_numbers, has_list, has_error;
};

#define ONE_OF(T, m) .has = 1 + offsetof(struct T, has_##m), .oneof = true

static const struct slu_msg_field extension_fields[] = {
	{ 1, "containing_type", SLU_MSG_STR, offsetof(struct extension, type) },
	{ 2, "extension_number", SLU_MSG_I32, offsetof(struct extension, number) },
};
static const struct slu_msg extension = SLU_MSG("ExtensionRequest", struct extension,
						extension_fields);
static const struct slu_msg_field request_fields[] = {
	{ 1, "host", SLU_MSG_STR, offsetof(struct request, host) },
	{ 3, "file_by_filename", SLU_MSG_STR, offsetof(struct request, filename),
	  ONE_OF(request, filename) },
	{ 4, "file_containing_symbol", SLU_MSG_STR, offsetof(struct request, symbol),
	  ONE_OF(request, symbol) },
	{ 5, "file_containing_extension", SLU_MSG_SUB, offsetof(struct request, extension),
	  ONE_OF(request, extension), .sub = &extension },
	{ 6, "all_extension_numbers_of_type", SLU_MSG_STR, offsetof(struct request, extensions_of),
	  ONE_OF(request, extensions_of) },
	{ 7, "list_services", SLU_MSG_STR, offsetof(struct request, list), ONE_OF(request, list) },
};
static const struct slu_msg request = { .name = "ServerReflectionRequest",
					.size = sizeof(struct request),
					.n = SLU_LEN(request_fields),
					.f = request_fields,
					.oneof = "message_request" };
static const struct slu_msg_field descriptors_fields[] = {
	{ 1, "file_descriptor_proto", SLU_MSG_BLOBS, offsetof(struct descriptors, file) },
};
static const struct slu_msg descriptors = SLU_MSG("FileDescriptorResponse", struct descriptors,
						  descriptors_fields);
static const struct slu_msg_field numbers_fields[] = {
	{ 1, "base_type_name", SLU_MSG_STR, offsetof(struct numbers, base) },
};
static const struct slu_msg numbers = SLU_MSG("ExtensionNumberResponse", struct numbers,
					      numbers_fields);
static const struct slu_msg_field service_fields[] = {
	{ 1, "name", SLU_MSG_STR, offsetof(struct service, name) },
};
static const struct slu_msg service = SLU_MSG("ServiceResponse", struct service, service_fields);
static const struct slu_msg_field services_fields[] = {
	{ 1, "service", SLU_MSG_SUBS, offsetof(struct services, service), .sub = &service },
};
static const struct slu_msg services = SLU_MSG("ListServiceResponse", struct services,
					       services_fields);
static const struct slu_msg_field failure_fields[] = {
	{ 1, "error_code", SLU_MSG_I32, offsetof(struct failure, code) },
	{ 2, "error_message", SLU_MSG_STR, offsetof(struct failure, message) },
};
static const struct slu_msg failure = SLU_MSG("ErrorResponse", struct failure, failure_fields);
static const struct slu_msg_field response_fields[] = {
	{ 1, "valid_host", SLU_MSG_STR, offsetof(struct response, host) },
	{ 2, "original_request", SLU_MSG_SUB, offsetof(struct response, original),
	  .has = 1 + offsetof(struct response, has_original), .sub = &request },
	{ 4, "file_descriptor_response", SLU_MSG_SUB, offsetof(struct response, file),
	  ONE_OF(response, file), .sub = &descriptors },
	{ 5, "all_extension_numbers_response", SLU_MSG_SUB, offsetof(struct response, numbers),
	  ONE_OF(response, numbers), .sub = &numbers },
	{ 6, "list_services_response", SLU_MSG_SUB, offsetof(struct response, list),
	  ONE_OF(response, list), .sub = &services },
	{ 7, "error_response", SLU_MSG_SUB, offsetof(struct response, error),
	  ONE_OF(response, error), .sub = &failure },
};
static const struct slu_msg response = { .name = "ServerReflectionResponse",
					 .size = sizeof(struct response),
					 .n = SLU_LEN(response_fields),
					 .f = response_fields,
					 .oneof = "message_response" };
static const struct slu_msg_method methods[] = {
	{ "ServerReflectionInfo", &request, &response, .client_streams = true,
	  .server_streams = true },
};
static const struct slu_msg_service reflection = { "ServerReflection", methods, 1 };
static const struct slu_msg_file own[] = {
	{ .name = "grpc/reflection/v1/reflection.proto",
	  .package = "grpc.reflection.v1",
	  .service = &reflection },
	{ .name = "grpc/reflection/v1alpha/reflection.proto",
	  .package = "grpc.reflection.v1alpha",
	  .service = &reflection },
};

#define MAX_FILES 16

struct slu_reflect {
	const struct slu_msg_file *file[MAX_FILES];
	uint32_t n;
	struct slu_grpc_method method[SLU_LEN(own)];
};

struct slu_reflect *slu_reflect_new(const struct slu_msg_file *const *files)
{
	struct slu_reflect *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	for (; *files && r->n < MAX_FILES - SLU_LEN(own); files++)
		r->file[r->n++] = *files;
	for (uint32_t i = 0; i < SLU_LEN(own); i++)
		r->file[r->n++] = &own[i];
	return r;
}

static void list_services(struct slu_reflect *r, struct slu_arena *a, struct response *out)
{
	struct service *s = slu_arena_zalloc(a, r->n * sizeof *s);

	if (!s)
		return;
	for (uint32_t i = 0; i < r->n; i++) {
		char name[256];
		char *kept;

		snprintf(name, sizeof name, "%s.%s", r->file[i]->package,
			 r->file[i]->service->name);
		kept = slu_arena_strndup(a, name, strlen(name));
		s[i].name = slu_text(kept);
	}
	out->has_list = true;
	out->list.service = (struct slu_subs){ s, r->n };
}

static bool is_text(struct slu_text t, const char *s)
{
	return t.n == strlen(s) && !memcmp(t.p, s, t.n);
}

static const struct slu_msg_file *find_file(const struct slu_reflect *r, const struct request *q)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (q->has_filename ? is_text(q->filename, r->file[i]->name)
				    : slu_msg_declares(r->file[i], q->symbol))
			return r->file[i];
	return NULL;
}

static void answer_not_found(struct response *out, const char *why)
{
	out->has_error = true;
	out->error = (struct failure){ SLU_GRPC_NOT_FOUND, slu_text(why) };
}

static void answer_reflection(struct slu_reflect *r, const struct request *q, struct slu_arena *a,
			      struct slu_text *blob, struct slu_buf *text, struct response *out)
{
	const struct slu_msg_file *f;

	if (q->has_list) {
		list_services(r, a, out);
	} else if (q->has_filename || q->has_symbol) {
		f = find_file(r, q);
		if (!f) {
			answer_not_found(out, q->has_filename ? "there is no such file"
							      : "there is no such symbol");
			return;
		}
		slu_msg_describe(f, text);
		*blob = (struct slu_text){ text->p, text->n };
		out->has_file = true;
		out->file.file = (struct slu_texts){ blob, 1 };
	} else {
		answer_not_found(out, "the services have no extensions");
	}
}

static void on_message(void *arg, struct slu_grpc_call *c)
{
	struct slu_reflect *r = arg;
	struct slu_arena a = { 0 };
	struct slu_error err = { 0 };
	struct slu_buf text = SLU_BUF_INIT(1 << 20), b = SLU_BUF_INIT(2 << 20);
	struct slu_text blob;
	struct response out = { .has_original = true };
	size_t n;
	const void *p = slu_grpc_message(c, &n);
	int rc = slu_msg_read(&request, p, n, &out.original, &a, &err);

	if (rc < 0) {
		slu_grpc_fail(c, SLU_GRPC_INVALID_ARGUMENT, "%s", err.text);
	} else {
		out.host = out.original.host;
		answer_reflection(r, &out.original, &a, &blob, &text, &out);
		slu_msg_write(&response, &out, &b);
		rc = slu_grpc_send(c, &b);
		if (rc < 0 && rc != -EPIPE)
			slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED, "the answer does not fit");
	}
	slu_buf_done(&text);
	slu_arena_done(&a);
}

static void on_end(void *arg, struct slu_grpc_call *c)
{
	(void)arg;
	slu_grpc_end(c);
}

int slu_reflect_serve(struct slu_reflect *r, struct slu_grpc *g)
{
	static const char *const paths[] = {
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
	};

	for (uint32_t i = 0; i < SLU_LEN(paths); i++)
		r->method[i] = (struct slu_grpc_method){ .path = paths[i],
							 .streams = true,
							 .message = on_message,
							 .end = on_end,
							 .arg = r };
	return slu_grpc_serve(g, r->method, SLU_LEN(r->method));
}

void slu_reflect_free(struct slu_reflect *r)
{
	slu_free(r);
}
