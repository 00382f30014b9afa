/* Admission reviews: whatever comes in, the answer is an AdmissionReview with the same uid, and its
 * patch a list of additions.  The first byte chooses the rules. */
#include "base/base64.h"
#include "control/rules/group.h"
#include "fuzz.h"
#include "serve/admit.h"
#include "wire/json.h"

static bool bound(void *arg, const char *ns, const char *claim)
{
	return *claim == 'b';
}

static void check_patch(const char *text, size_t n)
{
	struct slu_buf b = SLU_BUF_INIT(32u << 20);
	struct slu_json_doc *doc = NULL;

	must(slu_base64_decode(text, n, &b) == 0);
	must(slu_json_parse(b.p, b.n, NULL, &doc, NULL) == 0);
	must(slu_json_is_arr(slu_json_root(doc)) && slu_json_count(slu_json_root(doc)) > 0);
	slu_json_each (slu_json_root(doc), it) {
		const char *op = slu_json_str(slu_json_get(it.val, "op"));
		const char *path = slu_json_str(slu_json_get(it.val, "path"));

		must(op && !strcmp(op, "add"));
		must(path && *path == '/' && slu_json_get(it.val, "value"));
	}
	slu_json_free(doc);
	slu_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "sluice", "fluence" };
	struct slu_admit_rules rules = { .scheduler = names,
					 .n_scheduler = 2,
					 .claim_bound = bound,
					 .check = slu_group_check_pair,
					 .max_size = 100000,
					 .known = slu_key_check };
	struct slu_buf out = SLU_BUF_INIT(32u << 20);
	struct slu_error err = { 0 };
	struct slu_json_doc *doc = NULL;
	const struct slu_json *response, *patch;
	char space[64];
	int rc;

	if (!size)
		return 0;
	rules.hold = data[0] & 1;
	rules.held_scheduler = data[0] & 2 ? "FluxionScheduler" : NULL;
	rc = slu_admit_namespace((const char *)data + 1, size - 1, space, sizeof space, &err);
	must(rc == 0 || rc == -EINVAL || rc == -ENOMEM);
	rc = slu_admit((const char *)data + 1, size - 1, &rules, 1, &out, &err);
	must(rc == 0 || rc == -EINVAL || rc == -ENOMEM);
	must(rc != -EINVAL || (out.n == 0 && *err.text));
	if (rc == 0) {
		must(slu_json_parse(out.p, out.n, NULL, &doc, &err) == 0);
		response = slu_json_get(slu_json_root(doc), "response");
		patch = slu_json_get(response, "patch");
		must(slu_json_str(slu_json_get(response, "uid")));
		if (patch)
			check_patch(slu_json_str(patch), slu_json_count(patch));
		slu_json_free(doc);
	}
	slu_buf_done(&out);
	return 0;
}
