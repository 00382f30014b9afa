/* Crash points of every request that writes (base/crash.h), named after what it writes:
 *
 *	api create pods/binding: before      not a byte of it has left
 *	                         sent        on the wire, no answer yet
 *	                         answered    the answer has come, the caller does not know
 *	                         told        who asked has been told
 */
#include "base/crash.h"
#include "kube/client_internal.h"

#ifdef SLU_CRASH_POINTS
#include <stdio.h>

static const char *skip(const char *s, unsigned parts)
{
	while (parts-- && *s) {
		s += strcspn(s, "/?");
		s += *s == '/';
	}
	return s;
}

static int part_len(const char *s)
{
	return (int)strcspn(s, "/?");
}

/* "pods/binding" of /api/v1/namespaces/x/pods/y/binding */
static void resource(const char *path, char *out, size_t size)
{
	const char *s = skip(path + 1, !strncmp(path, "/apis/", 6) ? 3 : 2), *sub;

	if (!strncmp(s, "namespaces/", 11) && *skip(s, 2))
		s = skip(s, 2);
	sub = skip(s, 2);
	snprintf(out, size, "%.*s%s%.*s", part_len(s), s, *sub ? "/" : "", part_len(sub), sub);
}

void kube_crash_point(const struct slu_kube_call *q, const char *when)
{
	static const char *const verb[] = { [SLU_HTTP_POST] = "create",
					    [SLU_HTTP_PUT] = "update",
					    [SLU_HTTP_PATCH] = "patch",
					    [SLU_HTTP_DELETE] = "delete" };
	char what[80], name[110];

	if ((size_t)q->method >= SLU_LEN(verb) || !verb[q->method])
		return;
	resource(q->path + strlen(q->lane->c->cfg->addr.prefix), what, sizeof what);
	snprintf(name, sizeof name, "api %s %s: %s", verb[q->method], what, when);
	slu_crash_point(name);
}

static void on_sent(void *arg)
{
	kube_crash_point(arg, "sent");
}

void kube_crash_sent(struct slu_kube_call *q)
{
	/* The bytes are sent at the end of this round. */
	slu_timer_start(&q->crash, q->lane->c->loop, 0, on_sent, q);
}
#endif
