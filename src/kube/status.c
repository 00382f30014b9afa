#include "kube/client_internal.h"
#include "wire/json.h"
#include "wire/pb.h"

#include <stdio.h>

const char *slu_kube_outcome_name(enum slu_kube_outcome o)
{
	static const char *const name[] = {
		[SLU_KUBE_OK] = "ok",
		[SLU_KUBE_RETRYABLE] = "retryable",
		[SLU_KUBE_CONFLICT] = "conflict",
		[SLU_KUBE_EXISTS] = "exists",
		[SLU_KUBE_GONE] = "gone",
		[SLU_KUBE_NOT_FOUND] = "not_found",
		[SLU_KUBE_REFUSED] = "refused",
		[SLU_KUBE_INVALID] = "invalid",
		[SLU_KUBE_FAILED] = "failed",
		[SLU_KUBE_CANCELLED] = "cancelled",
	};

	return name[o];
}

enum slu_kube_outcome kube_outcome_of(int status, const char *reason)
{
	if (status >= 200 && status < 300)
		return SLU_KUBE_OK;
	switch (status) {
	case 400:
	case 405:
	case 406:
	case 413:
	case 414:
	case 415:
	case 422:
	case 431:
		return SLU_KUBE_INVALID;
	case 401:
	case 403:
		return SLU_KUBE_REFUSED;
	case 404:
		return SLU_KUBE_NOT_FOUND;
	case 409:
		return strcmp(reason, "AlreadyExists") ? SLU_KUBE_CONFLICT : SLU_KUBE_EXISTS;
	case 410:
		return SLU_KUBE_GONE;
	case 408:
	case 429:
		return SLU_KUBE_RETRYABLE;
	default:
		return status >= 500 ? SLU_KUBE_RETRYABLE : SLU_KUBE_FAILED;
	}
}

/* The next part of a path, unescaped for people; false at the end. */
static bool next_part(const char **s, char *out, size_t size)
{
	size_t n = strcspn(*s, "/?");
	struct slu_buf b = SLU_BUF_INIT(4096);

	if (!n)
		return false;
	if (slu_http_unescape(&b, *s, n) < 0)
		slu_buf_reset(&b);
	snprintf(out, size, "%s", b.n ? b.p : "?");
	slu_buf_done(&b);
	*s += n;
	if (**s == '/')
		(*s)++;
	return true;
}

void kube_describe(enum slu_http_method m, const char *path, char *out, size_t size)
{
	static const char *const verbs[] = {
		[SLU_HTTP_GET] = "get",         [SLU_HTTP_HEAD] = "head",
		[SLU_HTTP_POST] = "create",     [SLU_HTTP_PUT] = "update",
		[SLU_HTTP_PATCH] = "patch",     [SLU_HTTP_DELETE] = "delete",
		[SLU_HTTP_OPTIONS] = "options", [SLU_HTTP_OTHER] = "request",
	};
	const char *verb = verbs[m], *query = strchr(path, '?'), *s = path;
	char skip[256], group[256] = "", ns[256] = "", plural[256] = "", name[256] = "",
			sub[256] = "", quoted[300] = "", in[300] = "";
	bool core = !strncmp(s, "/api/", 5), named = !strncmp(s, "/apis/", 6);

	if (core || named) {
		s += core ? 5 : 6;
		if (named)
			next_part(&s, group, sizeof group);
		next_part(&s, skip, sizeof skip); /* version */
		if (next_part(&s, plural, sizeof plural) && !strcmp(plural, "namespaces")) {
			const char *ahead = s;

			/* ".../namespaces/NS/pods" is about pods, ".../namespaces/NS" about NS. */
			if (next_part(&ahead, ns, sizeof ns) &&
			    next_part(&ahead, plural, sizeof plural) && strcmp(plural, "status") &&
			    strcmp(plural, "finalize")) {
				s = ahead;
			} else {
				snprintf(plural, sizeof plural, "namespaces");
				ns[0] = '\0';
			}
		}
		if (next_part(&s, name, sizeof name))
			next_part(&s, sub, sizeof sub);
	}
	if (!*plural) {
		snprintf(out, size, "%s %.*s", verb, (int)strcspn(path, "?"), path);
		return;
	}
	if (m == SLU_HTTP_GET && query && strstr(query, "watch="))
		verb = "watch";
	else if (m == SLU_HTTP_GET && !*name)
		verb = "list";
	else if (m == SLU_HTTP_DELETE && !*name)
		verb = "deletecollection";
	if (*name)
		snprintf(quoted, sizeof quoted, " \"%s\"", name);
	if (*ns)
		snprintf(in, sizeof in, " in namespace \"%s\"", ns);
	snprintf(out, size, "%s %s%s%s%s%s%s%s", verb, plural, *group ? "." : "", group,
		 *sub ? "/" : "", sub, quoted, in);
}

/* ---- Status ---- */

static void json_status(const char *body, size_t n, char *message, size_t message_size,
			char *reason, size_t reason_size)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_limits lim = { .max_bytes = 8 << 20, .max_depth = 64 };
	const struct slu_json *root;

	if (slu_json_parse(body, n, &lim, &doc, NULL) < 0)
		return;
	root = slu_json_root(doc);
	snprintf(message, message_size, "%s", slu_json_str_or(slu_json_get(root, "message"), ""));
	snprintf(reason, reason_size, "%s", slu_json_str_or(slu_json_get(root, "reason"), ""));
}

/* The last field `want` of a message; false if absent or broken. */
static bool last_field(const uint8_t *p, size_t n, uint32_t want, struct slu_pb_field *out)
{
	struct slu_pb r = slu_pb(p, n);
	struct slu_pb_field f;
	bool found = false;
	int rc;

	while ((rc = slu_pb_next(&r, &f)) > 0) {
		if (f.num == want && f.wire == SLU_PB_BYTES) {
			*out = f;
			found = true;
		}
	}
	return !rc && found;
}

static void copy_text(char *out, size_t size, const uint8_t *p, size_t n)
{
	n = SLU_MIN(n, size - 1);
	memcpy(out, p, n);
	out[n] = '\0';
}

/* "k8s\0" + Unknown{2 raw}; raw = Status{3 message, 4 reason}. */
static void pb_status(const uint8_t *p, size_t n, char *message, size_t message_size, char *reason,
		      size_t reason_size)
{
	struct slu_pb_field raw, f;

	if (n < 4 || memcmp(p, "k8s\0", 4) || !last_field(p + 4, n - 4, 2, &raw))
		return;
	if (last_field(raw.p, raw.n, 3, &f))
		copy_text(message, message_size, f.p, f.n);
	if (last_field(raw.p, raw.n, 4, &f))
		copy_text(reason, reason_size, f.p, f.n);
}

void kube_status_read(const char *content_type, const char *body, size_t n, char *message,
		      size_t message_size, char *reason, size_t reason_size)
{
	message[0] = reason[0] = '\0';
	if (!strncmp(content_type, "application/vnd.kubernetes.protobuf", 35))
		pb_status((const uint8_t *)body, n, message, message_size, reason, reason_size);
	else if (!strncmp(content_type, "application/json", 16))
		json_status(body, n, message, message_size, reason, reason_size);
	if (!*message && n && !strncmp(content_type, "text/plain", 10))
		copy_text(message, message_size, (const uint8_t *)body,
			  strcspn(body, "\r\n") < n ? strcspn(body, "\r\n") : n);
}

int slu_kube_path(struct slu_buf *b, const char *group, const char *version, const char *ns,
		  const char *plural, const char *name, const char *sub)
{
	bool core = !group || !*group;

	slu_buf_puts(b, core ? "/api/" : "/apis/");
	if (!core) {
		slu_http_escape(b, group, strlen(group));
		slu_buf_putc(b, '/');
	}
	slu_http_escape(b, version, strlen(version));
	if (ns && *ns) {
		slu_buf_puts(b, "/namespaces/");
		slu_http_escape(b, ns, strlen(ns));
	}
	slu_buf_putc(b, '/');
	slu_http_escape(b, plural, strlen(plural));
	if (name && *name) {
		slu_buf_putc(b, '/');
		slu_http_escape(b, name, strlen(name));
	}
	if (sub && *sub) {
		slu_buf_putc(b, '/');
		slu_http_escape(b, sub, strlen(sub));
	}
	return b->error;
}
