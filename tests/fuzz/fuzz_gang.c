/* Any sequence of calls on a small machine: bytes become operations.  After each one no matched
 * work may overbook a node that nothing else overbooks, and a copy must agree with the original. */
#include "fuzz.h"
#include "gang/gang.h"

struct input {
	const uint8_t *p;
	size_t n;
};

static uint32_t byte(struct input *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->p++;
}

static void add_node(struct slu_machine *m, struct input *in)
{
	struct slu_amount total[2] = { { 1, byte(in) % 8 }, { 2, byte(in) % 8 } };
	uint32_t k = byte(in);
	char name[8];
	const char *domain[] = { k & 1 ? "left" : "right" };
	struct slu_node_spec s = { .name = name,
				   .rank = k >> 4,
				   .total = total,
				   .n_total = 2,
				   .domain = domain,
				   .n_domain = 1,
				   .down = k & 2 };

	snprintf(name, sizeof name, "n%u", byte(in) % 12);
	slu_machine_node_add(m, &s, NULL, NULL);
}

/* Shares of one machine as one number. */
static uint64_t sum_up(const struct slu_machine *m)
{
	struct slu_machine_stats st;
	uint64_t h;

	slu_machine_stats(m, &st);
	h = st.shares * 31 + st.jobs;
	for (uint32_t i = 0; i < slu_machine_node_slots(m); i++) {
		slu_node v = slu_machine_node_at(m, i);

		for (uint32_t k = 1; v != SLU_NODE_NONE && k < 3; k++)
			h = h * 31 + (uint64_t)slu_machine_node_free(m, v, k);
	}
	return h;
}

static bool overbooked(const struct slu_machine *m)
{
	for (uint32_t i = 0; i < slu_machine_node_slots(m); i++) {
		slu_node v = slu_machine_node_at(m, i);

		for (uint32_t k = 1; v != SLU_NODE_NONE && k < 3; k++) {
			if (slu_machine_node_free_during(m, v, k, INT64_MIN, SLU_FOREVER) < 0)
				return true;
		}
	}
	return false;
}

static void one(struct slu_machine *m, struct input *in, int64_t *now, bool *odd,
		struct slu_nodeset *set)
{
	struct slu_amount need[2][2] = { { { 1, byte(in) % 4 }, { 2, byte(in) % 4 } },
					 { { 1, byte(in) % 4 }, { 2, byte(in) % 4 } } };
	struct slu_gang_role role[2] = {
		{ .min = 1 + byte(in) % 6, .need = need[0], .n_need = 2, .flags = byte(in) % 4 },
		{ .min = 1 + byte(in) % 3, .need = need[1], .n_need = 2, .flags = byte(in) % 4 },
	};
	uint32_t k = byte(in);
	uint64_t id = byte(in) % 16;
	slu_node v = slu_machine_node_at(m, byte(in) % 12);
	struct slu_gang_req q = { .role = role,
				  .n_role = k & 1 ? 2 : 1,
				  .level = k & 2 ? 0 : -1,
				  .flags = (k & 4 && k & 2 ? SLU_GANG_CLOSE_REQUIRED : 0) |
					   (k & 8 ? SLU_GANG_TIME_FIT : 0),
				  .policy = (enum slu_gang_policy)((k >> 4) % SLU_GANG_POLICIES),
				  .duration_s = byte(in) % 16 };
	struct slu_gang_part part = { v, 0, 1 + k % 3 };
	struct slu_gang_booking b = { .job = id,
				      .start_s = *now + (int64_t)(k % 8) - 3,
				      .end_s = *now + 10,
				      .role = role,
				      .n_role = 1,
				      .part = &part,
				      .n_part = 1,
				      .flags = k >> 6 & 3 };
	struct slu_gang_block block = {
		.id = id, .from_s = *now + k % 8, .to_s = *now + 8 + k % 8, .nodes = set
	};
	struct slu_gang_why why;
	struct slu_machine *c;

	switch (byte(in) % 16) {
	case 0:
	case 1:
		add_node(m, in);
		break;
	case 2:
		*odd |= slu_gang_register(m, *now, &b, NULL) == 0;
		break;
	case 3:
		*odd |= slu_gang_block_add(m, *now, &block, NULL) == 0;
		break;
	case 4:
		slu_gang_cancel(m, id);
		break;
	case 5:
		*odd |= slu_gang_start(m, *now, id) == 0;
		break;
	case 6:
		*odd |= slu_gang_set_end(m, id, *now + k) == 0;
		break;
	case 7:
		if (v != SLU_NODE_NONE)
			slu_gang_release(m, id, k & 1, v, 1 + k % 2);
		break;
	case 8:
		must(slu_gang_grow(m, *now, id, &q, NULL, NULL) != -ENOMEM);
		break;
	case 9:
		slu_gang_shrink(m, id, k & 1, 1 + k % 3, NULL);
		break;
	case 10:
		slu_machine_node_remove(m, v);
		break;
	case 11:
		slu_machine_node_set_down(m, v, k & 1);
		break;
	case 12:
		*now += k % 4;
		slu_machine_advance(m, *now);
		break;
	case 13:
		must(slu_gang_explain(m, *now, &q, &why, NULL) == 0);
		break;
	case 14:
		c = slu_machine_clone(m);
		must(c && sum_up(c) == sum_up(m));
		slu_machine_free(c);
		break;
	default: {
		enum slu_gang_op op = (enum slu_gang_op)(k % 5);
		int rc = slu_gang_match(m, op, *now, id, &q, NULL, NULL);

		must(rc >= 0 || rc == -EEXIST);
	}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct slu_machine *m = slu_machine_new();
	struct slu_nodeset *set = slu_nodeset_new(4);
	struct input in = { data, n < 4096 ? n : 4096 };
	int64_t now = 10;
	bool odd = false;

	slu_machine_resource(m, "cpu");
	slu_machine_resource(m, "memory");
	slu_machine_level(m, "side");
	slu_nodeset_add(set, 1);
	slu_nodeset_add(set, 3);
	slu_machine_advance(m, now);
	for (int i = 0; i < 6; i++)
		add_node(m, &in);
	while (in.n) {
		one(m, &in, &now, &odd, set);
		/* An overrun makes a reservation that is due lie over it: let nothing end late. */
		for (uint32_t i = 0; i < slu_machine_node_slots(m) && !odd; i++) {
			slu_node v = slu_machine_node_at(m, i);
			struct slu_node_share s;

			for (uint32_t k = 0;
			     v != SLU_NODE_NONE && k < slu_machine_node_shares(m, v); k++) {
				slu_machine_node_share(m, v, k, &s);
				odd |= s.end_s <= now;
			}
		}
		must(odd || !overbooked(m));
	}
	slu_nodeset_unref(set);
	slu_machine_free(m);
	return 0;
}
