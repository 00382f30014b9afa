#include "control/config/flags.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	LEADER,
	LEADER_OLD,
	PROBE,
	PROBE_OLD,
	METRICS,
	DURATION,
	QPS,
	BURST,
	VERBOSE,
	ZAP_LEVEL,
	ZAP_ENCODER,
	PORT,
	HOST,
	EXTERNAL,
};

const struct slu_flag slu_flags[] = {
	[LEADER] = { "leader-elect", "BOOL", true, "leader.elect", "" },
	[LEADER_OLD] = { "enableLeaderElection", "BOOL", true, "leader.elect", "" },
	[PROBE] = { "health-probe-bind-address", "ADDR", false, "serve.health", "" },
	[PROBE_OLD] = { "probeAddr", "ADDR", false, "serve.health", "" },
	[METRICS] = { "metrics-bind-address", "ADDR", false, "serve.https", "0: none" },
	[DURATION] = { "duration", "SECONDS", false, "jobs.defaultDuration", "" },
	[QPS] = { "qps", "N", false, "kube.qps", "" },
	[BURST] = { "burst", "N", false, "kube.burst", "" },
	[VERBOSE] = { "v", "N", false, "log.level", "4 and more: debug" },
	[ZAP_LEVEL] = { "zap-log-level", "LEVEL", false, "log.level", "" },
	[ZAP_ENCODER] = { "zap-encoder", "NAME", false, "log.format", "json; console is text" },
	[PORT] = { "port", "PORT", false, "grpc.port", "" },
	[HOST] = { "host", "ADDR", false, "grpc.host", "" },
	[EXTERNAL] = { "external-service", "BOOL", true, "grpc.external", "" },
	{ "metricsAddr", "ADDR", false, NULL, "serve.health answers /metrics" },
	{ "metrics-secure", "BOOL", true, NULL, "the HTTPS port always asks for a token" },
	{ "enable-http2", "BOOL", true, NULL, "HTTP/2 is always offered" },
	{ "workers", "N", false, NULL, "place.parallel bounds the writes" },
};
const uint32_t slu_n_flags = SLU_LEN(slu_flags);

static int is_true(const char *v, bool *out)
{
	if (!v || !strcmp(v, "true") || !strcmp(v, "1"))
		*out = true;
	else if (!strcmp(v, "false") || !strcmp(v, "0"))
		*out = false;
	else
		return -EINVAL;
	return 0;
}

static int is_number(const char *v, double least, double most, double *out)
{
	char *end;

	*out = strtod(v, &end);
	return end != v && !*end && *out >= least && *out <= most ? 0 : -EINVAL;
}

/* "=9", as -v=9 gives it, is 9. */
static int level_of(const char *v, const char **out)
{
	double n;

	if (is_number(v + (*v == '='), 0, 100, &n) < 0)
		return -EINVAL;
	*out = n >= 4 ? "debug" : "info";
	return 0;
}

static int translate_word(const char *v, const char *const from[], const char *const to[],
			  const char **out)
{
	for (size_t i = 0; from[i]; i++)
		if (!strcmp(v, from[i])) {
			*out = to[i];
			return 0;
		}
	return -EINVAL;
}

static int apply_flag(uint32_t i, const char *v, struct slu_config *c)
{
	static const char *const levels[] = { "debug", "info", "error", "panic", NULL };
	static const char *const our_levels[] = { "debug", "info", "error", "error" };
	static const char *const encoders[] = { "json", "console", NULL };
	static const char *const formats[] = { "json", "text" };
	double n;
	int rc = 0;

	switch (i) {
	case LEADER:
	case LEADER_OLD:
		return is_true(v, &c->leader.elect);
	case PROBE:
	case PROBE_OLD:
		c->serve.health = strcmp(v, "0") ? v : "";
		return 0;
	case METRICS:
		c->serve.https = strcmp(v, "0") ? v : "";
		return 0;
	case DURATION:
		return slu_config_seconds(v, &c->jobs.default_duration_s);
	case QPS:
		rc = is_number(v, 1, 100000, &n);
		c->kube.qps = rc ? c->kube.qps : n;
		return rc;
	case BURST:
		rc = is_number(v, 1, 100000, &n);
		c->kube.burst = rc ? c->kube.burst : (uint32_t)n;
		return rc;
	case VERBOSE:
		return level_of(v, &c->log.level);
	case ZAP_LEVEL:
		return translate_word(v, levels, our_levels, &c->log.level);
	case ZAP_ENCODER:
		return translate_word(v, encoders, formats, &c->log.format);
	case PORT: /* ":4242" is their own way of saying it */
		rc = is_number(v + (*v == ':'), 1, 65535, &n);
		c->grpc.port = rc ? c->grpc.port : (uint32_t)n;
		return rc;
	case HOST:
		c->grpc.host = v;
		return 0;
	case EXTERNAL:
		return is_true(v, &c->grpc.external);
	default:
		return 0;
	}
}

int slu_flag_apply(uint32_t i, const char *value, struct slu_config *c, struct slu_error *err)
{
	if (apply_flag(i, value, c) < 0)
		return slu_fail(err, -EINVAL, "--%s: \"%.60s\" is not a valid %s",
				slu_flags[i].name, value ? value : "", slu_flags[i].word);
	return 0;
}

void slu_flag_environment(struct slu_config *c)
{
	const char *url = getenv("DATABASE_URL"), *host = getenv("PGHOST");
	const char *hooks = getenv("ENABLE_WEBHOOKS");

	if (url && *url)
		c->store.url = url;
	else if (host && *host)
		c->store.url = "postgres://"; /* libpq takes the rest from PGPORT, PGDATABASE ... */
	if (hooks && !strcmp(hooks, "false"))
		c->webhook.enabled = false;
}
