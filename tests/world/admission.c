/* The webhook as the API server calls it: the real admission code, its patch carried out here.  It
 * fails open: nobody is asked while no daemon lives, or while the call is lost. */
#include "serve/admit.h"

#include "base/base64.h"
#include "control/rules/group.h"
#include "wire/json.h"
#include "world.h"

static const char *const ours[] = { "sluice" };
bool admit_binds;

static struct tmpl *template_of(struct obj *o)
{
	return o->kind == SLU_KIND_POD   ? &o->pod.t
	       : o->kind == SLU_KIND_JOB ? &o->job.t
					 : &o->set.t;
}

/* What follows the prefix, as a key; NULL: the path is another one. */
static const char *key_behind(const char *path, const char *prefix, char key[64])
{
	size_t n = strlen(prefix), k = 0;

	if (strncmp(path, prefix, n) || path[n] != '/')
		return NULL;
	for (const char *p = path + n + 1; *p && k < 63; p++) {
		if (p[0] == '~' && (p[1] == '0' || p[1] == '1'))
			key[k++] = *++p == '1' ? '/' : '~';
		else
			key[k++] = *p;
	}
	key[k] = 0;
	return key;
}

static void patch(struct obj *o, const char *path, const struct slu_json *value)
{
	const struct {
		const char *prefix;
		struct pairs *into;
	} map[] = { { "/metadata/annotations", &o->note },
		    { "/metadata/labels", &o->label },
		    { "/spec/template/metadata/annotations", &template_of(o)->note },
		    { "/spec/template/metadata/labels", &template_of(o)->label } };
	char key[64];

	for (size_t i = 0; i < SLU_LEN(map); i++)
		if (key_behind(path, map[i].prefix, key))
			pairs_set(map[i].into, key, slu_json_str_or(value, ""));
	if (strstr(path, "/schedulingGates"))
		template_of(o)->gates |= GATE_OURS;
	else if (strstr(path, "/schedulerName"))
		snprintf(template_of(o)->scheduler, sizeof template_of(o)->scheduler, "%s",
			 slu_json_str_or(value, ""));
	else if (!strcmp(path, "/spec/suspend"))
		o->job.suspend = slu_json_bool_or(value, false);
}

static bool carry_out(struct obj *o, const char *answer, size_t n)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL, *ops = NULL;
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(1 << 20);
	const struct slu_json *r;
	const char *text;

	if (slu_json_parse(answer, n, NULL, &doc, NULL) < 0)
		return true;
	r = slu_json_get(slu_json_root(doc), "response");
	if (!slu_json_bool_or(slu_json_get(r, "allowed"), true))
		return false;
	text = slu_json_str(slu_json_get(r, "patch"));
	if (!text || slu_base64_decode(text, strlen(text), &b) < 0 ||
	    slu_json_parse(slu_buf_str(&b), b.n, NULL, &ops, NULL) < 0)
		return true;
	slu_json_each (slu_json_root(ops), it)
		patch(o, slu_json_str_or(slu_json_get(it.val, "path"), ""),
		      slu_json_get(it.val, "value"));
	return true;
}

static bool is_asked_about(const struct obj *o)
{
	return o->kind == SLU_KIND_POD || o->kind == SLU_KIND_JOB ||
	       o->kind == SLU_KIND_REPLICASET || o->kind == SLU_KIND_STATEFULSET ||
	       o->kind == SLU_KIND_DEPLOYMENT;
}

bool admit(struct world *w, struct obj *o)
{
	const struct obj *space = kube_find(w, SLU_KIND_NAMESPACE, "", o->ns);
	struct slu_admit_rules rules = { .scheduler = ours,
					 .n_scheduler = 1,
					 .hold = space && space->space.held,
					 .binds = admit_binds,
					 .check = slu_group_check_pair,
					 .max_size = 100000,
					 .known = slu_key_check };
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(1 << 20);
	slu_cleanup(slu_buf_done) struct slu_buf answer = SLU_BUF_INIT(1 << 20);

	if (!rules.hold || !is_asked_about(o))
		return true;
	if (w->fault.miss_until_us > w->now_us ||
	    (!w->hooked && !daemon_alive(w, 0) && !daemon_alive(w, 1))) {
		o->missed = true;
		world_say(w, "nobody is asked about %s %s", slu_kkind_info(o->kind)->kind, o->name);
		return true;
	}
	slu_buf_printf(&b,
		       "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
		       "\"request\":{\"uid\":\"r\",\"operation\":\"CREATE\",\"namespace\":\"%s\","
		       "\"kind\":{\"kind\":\"%s\"},\"userInfo\":{\"username\":\"%s\"},\"object\":",
		       o->ns, slu_kkind_info(o->kind)->kind,
		       o->owner ? "system:serviceaccount:kube-system:job-controller" : "ann");
	kube_text(o, &b);
	slu_buf_puts(&b, "}}");
	if (slu_admit(slu_buf_str(&b), b.n, &rules, w->now_us, &answer, NULL) < 0)
		return true;
	return carry_out(o, slu_buf_str(&answer), answer.n);
}
