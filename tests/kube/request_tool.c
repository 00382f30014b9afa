/* request_tool — the API client for tests in Python: sends what the command line says, prints one
 * JSON line per answer and the counters at the end.
 *
 *	request_tool [--kubeconfig FILE] [--context NAME] [--body TEXT] [--type TYPE]
 *		     [--accept TYPE] [--timeout S] [--repeatable] [--once] [--count N] [--inflight M] [--qps Q]
 *		     [--stream S] [--print] METHOD PATH
 *
 * "%d" in path and body becomes the number of the request.  --stream S reads a stream for S
 * seconds.  --print adds bodies. */
#include "kube/client.h"
#include "wire/jsonw.h"

#include <getopt.h>
#include <stdio.h>

struct run {
	struct slu_kube_client *client;
	struct slu_kube_request q;
	const char *path, *body;
	long count, next, inflight, max_inflight;
	double stream_s;
	bool print, done;
};

struct one {
	struct run *r;
	long i;
	struct slu_kube_call *call;
	struct slu_timer stop;
	uint64_t bytes, lines;
};

static void start(struct run *r);

static void put(struct slu_buf *b)
{
	slu_buf_putc(b, '\n');
	fwrite(b->p, 1, b->n, stdout);
	fflush(stdout);
	slu_buf_done(b);
}

static void answered(void *arg, const struct slu_kube_reply *a)
{
	struct one *o = arg;
	struct run *r = o->r;
	struct slu_buf b = SLU_BUF_INIT(256 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_SPACED);

	slu_jsonw_obj(&w);
	slu_jsonw_ki64(&w, "i", o->i);
	slu_jsonw_kstr(&w, "outcome", slu_kube_outcome_name(a->outcome));
	slu_jsonw_ki64(&w, "status", a->status);
	slu_jsonw_kstr(&w, "reason", a->reason);
	slu_jsonw_kstr(&w, "error", a->error);
	slu_jsonw_ki64(&w, "tries", a->tries);
	slu_jsonw_kbool(&w, "uncertain", a->uncertain);
	slu_jsonw_ki64(&w, "took_us", a->took_ns / 1000);
	slu_jsonw_kstr(&w, "content_type", a->content_type);
	slu_jsonw_ki64(&w, "bytes", (int64_t)(o->bytes ? o->bytes : a->body_len));
	if (r->stream_s > 0)
		slu_jsonw_ki64(&w, "lines", (int64_t)o->lines);
	if (r->print && a->body_len)
		slu_jsonw_kstr(&w, "body", a->body);
	slu_jsonw_end_obj(&w);
	put(&b);
	slu_timer_stop(&o->stop);
	slu_free(o);
	r->inflight--;
	start(r);
}

static void piece(void *arg, const void *p, size_t n)
{
	struct one *o = arg;

	o->bytes += n;
	for (size_t i = 0; i < n; i++)
		o->lines += ((const char *)p)[i] == '\n';
	if (o->r->print) {
		fwrite(p, 1, n, stdout);
		fflush(stdout);
	}
}

static void enough(void *arg)
{
	slu_kube_cancel(((struct one *)arg)->call);
}

/* Put the number in the place of %d. */
static char *numbered(const char *s, long i)
{
	struct slu_buf b = SLU_BUF_INIT(64 << 20);

	for (; *s; s++) {
		if (s[0] == '%' && s[1] == 'd') {
			slu_buf_i64(&b, i);
			s++;
		} else {
			slu_buf_putc(&b, *s);
		}
	}
	return slu_buf_take(&b);
}

static void start(struct run *r)
{
	while (r->next < r->count && r->inflight < r->max_inflight) {
		struct one *o = slu_calloc(1, sizeof *o);
		slu_cleanup(slu_freep) char *path = numbered(r->path, r->next);
		slu_cleanup(slu_freep) char *body = r->body ? numbered(r->body, r->next) : NULL;
		struct slu_kube_request q = r->q;
		char *query = strchr(path, '?');

		if (query)
			*query++ = '\0';
		o->r = r;
		o->i = r->next++;
		q.path = path;
		q.query = query;
		q.body = body;
		q.body_len = body ? strlen(body) : 0;
		q.done = answered;
		q.data = r->stream_s > 0 ? piece : NULL;
		q.arg = o;
		if (slu_kube_send(r->client, &q, &o->call) < 0) {
			fprintf(stderr, "request_tool: cannot queue\n");
			exit(1);
		}
		if (r->stream_s > 0)
			slu_timer_start(&o->stop, slu_kube_client_loop(r->client),
					(int64_t)(r->stream_s * 1e9), enough, o);
		r->inflight++;
	}
	r->done = !r->inflight;
}

static void print_stats(const struct slu_kube_client *c)
{
	struct slu_kube_stats st;
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_SPACED);

	slu_kube_client_stats(c, &st);
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "stats");
	slu_jsonw_obj(&w);
	slu_jsonw_ki64(&w, "retries", (int64_t)st.retries);
	slu_jsonw_ki64(&w, "throttled", (int64_t)st.throttled);
	slu_jsonw_ki64(&w, "connects", (int64_t)st.connects);
	slu_jsonw_ki64(&w, "connect_failures", (int64_t)st.connect_failures);
	slu_jsonw_ki64(&w, "goaways", (int64_t)st.goaways);
	slu_jsonw_ki64(&w, "resets", (int64_t)st.resets);
	slu_jsonw_ki64(&w, "timeouts", (int64_t)st.timeouts);
	slu_jsonw_ki64(&w, "bytes_in", (int64_t)st.bytes_in);
	slu_jsonw_ki64(&w, "bytes_out", (int64_t)st.bytes_out);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	put(&b);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "kubeconfig", 1, NULL, 'k' }, { "context", 1, NULL, 'c' },
		{ "body", 1, NULL, 'b' },       { "type", 1, NULL, 't' },
		{ "accept", 1, NULL, 'a' },     { "timeout", 1, NULL, 'T' },
		{ "repeatable", 0, NULL, 'r' }, { "once", 0, NULL, 'o' },
		{ "count", 1, NULL, 'n' },      { "inflight", 1, NULL, 'i' },
		{ "qps", 1, NULL, 'q' },        { "stream", 1, NULL, 's' },
		{ "print", 0, NULL, 'p' },      { 0 },
	};
	struct slu_kube_config_options co = { 0 };
	struct slu_kube_client_options o = { 0 };
	struct run r = { .count = 1, .max_inflight = 1 };
	struct slu_kube_config *cfg = NULL;
	struct slu_error err = { 0 };
	struct slu_loop *loop;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 'k':
			co.path = optarg;
			break;
		case 'c':
			co.context = optarg;
			break;
		case 'b':
			r.body = optarg;
			break;
		case 't':
			r.q.content_type = optarg;
			break;
		case 'a':
			r.q.accept = optarg;
			break;
		case 'T':
			r.q.timeout_ns = (int64_t)(atof(optarg) * 1e9);
			break;
		case 'r':
			r.q.repeatable = true;
			break;
		case 'o':
			r.q.once = true;
			break;
		case 'n':
			r.count = atol(optarg);
			break;
		case 'i':
			r.max_inflight = atol(optarg);
			break;
		case 'q':
			o.qps = atof(optarg);
			break;
		case 's':
			r.stream_s = atof(optarg);
			break;
		case 'p':
			r.print = true;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: request_tool [options] METHOD PATH\n");
		return 2;
	}
	r.q.method = slu_http_method_parse(argv[optind], strlen(argv[optind]));
	r.path = argv[optind + 1];
	loop = slu_loop_new();
	if (slu_kube_config_load(&co, &cfg, &err) < 0 ||
	    slu_kube_client_new(loop, cfg, &o, &r.client, &err) < 0) {
		printf("{\"outcome\": \"config\", \"error\": ");
		struct slu_buf b = SLU_BUF_INIT(4096);

		slu_json_quote(&b, err.text, strlen(err.text));
		printf("%s}\n", slu_buf_str(&b));
		slu_buf_done(&b);
		slu_kube_config_unref(cfg);
		slu_loop_free(loop);
		return 1;
	}
	start(&r);
	slu_loop_run_until(loop, &r.done, -1);
	print_stats(r.client);
	slu_kube_client_free(r.client);
	slu_kube_config_unref(cfg);
	slu_loop_free(loop);
	return 0;
}
