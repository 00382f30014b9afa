/* jsonl.h — our own trace: one JSON object a line, in any order; times are seconds.
 *
 *   {"kind":"node","name":"n","count":16,"cores":8,"memory":"32Gi","gpus":2,"rack":"r0",
 *    "block":"b0","zone":"z0","properties":["big"]}
 *	count > 1 makes name0, name1, ...; "per_rack":4 puts every 4 of them in a rack of their own
 *   {"kind":"queue","name":"q","policy":"easy","backfill":"shortest","priority":1,
 *    "queue_depth":32,"reservation_depth":8,"property":"big","default_duration":600,
 *    "max_duration":0,"max_slots":0,"max_running":0,"max_waiting":0,"max_running_user":0,
 *    "max_waiting_user":0}
 *   {"kind":"job","id":1,"name":"a","user":"u","queue":"q","submit":0,"run":50,"limit":60,
 *    "priority":0,"slots":4,"max_slots":8,"cores":1,"memory":"1Gi","gpus":0,"property":"big",
 *    "spread":true,"exclusive":false,"within":"rack","prefer":false,"begin":0,"deadline":0,
 *    "after":[2],"after_ok":[3],"after_notok":[4],"after_start":[5],"reservation":"r",
 *    "held":false,"grow":false,"fails":false}
 *	instead of slots .. spread: "roles":[{"slots":1,"cores":2},{"slots":4,"cores":1}]
 *	cores may be a quantity ("500m"); ids are numbers from 1, given or counted
 *   {"kind":"down","at":100,"node":"n3"}	also "up"
 *   {"kind":"cancel","at":100,"job":1}		also "hold", "release"
 *   {"kind":"priority","at":100,"job":1,"value":5}	also "resize" (slots of the 1st role)
 *   {"kind":"drain","at":0,"name":"d","from":10,"to":20,"nodes":["n1"],"count":0}
 *   {"kind":"reserve","at":0,"name":"r","from":10,"to":20,"nodes":["n1"],"users":["u"]}
 *	with "cores", "memory", "gpus": only so much of each node
 *   {"kind":"lift","at":15,"name":"d"}		takes a drain or reservation away
 *
 * Unknown keys are errors: a misspelt "limit" must not become a default.  Empty lines and lines
 * that begin with # are skipped. */
#pragma once
#include "sim/trace.h"

/* Zero-initialise but for the trace. */
struct slu_jsonl {
	struct slu_trace *trace;
	uint64_t line;
	struct slu_map id;   /* of jobs -> place in the file + 1 */
	struct slu_map span; /* interned name -> index + 1 */
	struct slu_map node; /* interned name -> index + 1 */
};

/* Read one line.  0, -EINVAL with "line 3: …", -EFBIG, -ENOMEM. */
int slu_jsonl_line(struct slu_jsonl *r, const char *p, size_t n, struct slu_error *err);
/* After the last line: settles what refers to jobs by id, sorts.  Cyclic dependencies and unknown
 * jobs or nodes are errors here. */
int slu_jsonl_finish(struct slu_jsonl *r, struct slu_error *err);
void slu_jsonl_done(struct slu_jsonl *r);
