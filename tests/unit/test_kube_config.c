/* Kubeconfig: merging, contexts, in-cluster, and what is said about broken ones. */
#include "base/base64.h"
#include "tap.h"

#include "kube/config_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const char *put(const char *name, const char *text)
{
	static char path[8][128];
	static int turn;
	char *p = path[turn++ % 8];
	FILE *fp;

	snprintf(p, sizeof path[0], "%s/%s", dir, name);
	fp = fopen(p, "w");
	fputs(text, fp);
	fclose(fp);
	return p;
}

static int load(const struct slu_kube_config_options *o, struct slu_kube_config **c,
		struct slu_error *err)
{
	*c = NULL;
	memset(err, 0, sizeof *err);
	return slu_kube_config_load(o, c, err);
}

#define HEAD "apiVersion: v1\nkind: Config\n"
#define CTX \
	"current-context: x\ncontexts:\n- {name: x, context: {cluster: c, user: u, namespace: ns}}\n"
#define CLU "clusters:\n- {name: c, cluster: {server: 'https://h:1'}}\n"
#define USR "users:\n- {name: u, user: {token: t}}\n"

/* ---- what is wrong, and where ---- */

static const struct {
	const char *text;
	const char *say; /* in the message, besides the file's name */
} bad[] = {
	{ "a: [", "line " },
	{ "just text", "is not a kubeconfig" },
	{ HEAD, "current-context is not set" },
	{ HEAD "current-context: other\n" CLU USR,
	  "current-context names context \"other\", which does not exist" },
	{ HEAD CTX USR, "contexts[\"x\"].context.cluster names \"c\", which is not in clusters" },
	{ HEAD CTX CLU, "contexts[\"x\"].context.user names \"u\", which is not in users" },
	{ HEAD CTX "clusters: {}\n" USR, "clusters is not a list" },
	{ HEAD CTX "clusters: [{cluster: {}}]\n" USR, "an entry of clusters has no name" },
	{ HEAD CTX "clusters: [{name: c, cluster: 5}]\n" USR,
	  "clusters[\"c\"].cluster is not an object" },
	{ HEAD CTX "clusters: [{name: c}, {name: c}]\n" USR, "clusters has \"c\" twice" },
	{ HEAD CTX "clusters: [{name: c, cluster: {}}]\n" USR,
	  "clusters[\"c\"].cluster.server is missing" },
	{ HEAD CTX "clusters: [{name: c, cluster: {server: 7}}]\n" USR,
	  "clusters[\"c\"].cluster.server (line 6) is not a string" },
	{ HEAD CTX "clusters: [{name: c, cluster: {server: 'h:1'}}]\n" USR, "https:// or http://" },
	{ HEAD CTX "clusters: [{name: c, cluster: {server: 'https://h:x'}}]\n" USR,
	  "the port is not a number" },
	{ HEAD CTX
	  "clusters: [{name: c, cluster: {server: 'https://h', proxy-url: 'http://p'}}]\n" USR,
	  "cluster.proxy-url (line 6) asks for a proxy" },
	{ HEAD CTX
	  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: nofile}}]\n" USR,
	  "clusters[\"c\"].cluster.certificate-authority: cannot read " },
	{ HEAD CTX
	  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: '@@'}}]\n" USR,
	  "certificate-authority-data (line 6) is not base64" },
	{ HEAD CTX
	  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: YWE=, insecure-skip-tls-verify: true}}]\n" USR,
	  "contradicts certificate-authority" },
	{ HEAD CTX
	  "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: maybe}}]\n" USR,
	  "neither true nor false" },
	{ HEAD CTX CLU "users: [{name: u, user: {client-certificate-data: YWE=}}]\n",
	  "users[\"u\"].user.client-key is missing beside client-certificate" },
	{ HEAD CTX CLU "users: [{name: u, user: {client-key-data: YWE=}}]\n",
	  "client-certificate is missing" },
	{ HEAD CTX CLU "users: [{name: u, user: {token: 'a\n\n  b'}}]\n",
	  "token (line 8) has a line break" },
	{ HEAD CTX CLU "users: [{name: u, user: {tokenFile: nofile}}]\n",
	  "user.tokenFile: cannot read " },
	{ HEAD CTX CLU "users: [{name: u, user: {token: t, username: me}}]\n",
	  "contradicts the token" },
	{ HEAD CTX CLU "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n",
	  "use exec instead" },
	{ HEAD CTX CLU "users: [{name: u, user: {as-groups: g}}]\n",
	  "as-groups (line 8) is not a list" },
	{ HEAD CTX CLU "users: [{name: u, user: {exec: {}}}]\n", "user.exec.command is missing" },
	{ HEAD CTX CLU "users: [{name: u, user: {exec: {command: x}}}]\n",
	  "user.exec.apiVersion is neither" },
	{ HEAD CTX CLU
	  "users: [{name: u, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}}]\n",
	  "exec.interactiveMode is missing" },
	{ HEAD CTX CLU
	  "users: [{name: u, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, env: [{name: A}]}}}]\n",
	  "exec.env (line 8) has an entry without name or value" },
};

static void test_bad(void)
{
	for (size_t i = 0; i < SLU_LEN(bad); i++) {
		struct slu_kube_config *c;
		struct slu_error err;
		struct slu_kube_config_options o = { .path = put("config", bad[i].text) };
		int rc = load(&o, &c, &err);

		ok(rc == -EINVAL && strstr(err.text, bad[i].say) && strstr(err.text, "/config"),
		   "a wrong file is refused with its place: %s", err.text);
	}
}

static void test_places(void)
{
	struct slu_kube_config *c;
	struct slu_error err;
	struct slu_kube_config_options o = { .path = "/no/such/file" };
	char list[512], home[96];
	int rc = load(&o, &c, &err);

	ok(rc == -ENOENT && strstr(err.text, "/no/such/file"),
	   "a missing --kubeconfig is named: %s", err.text);
	unsetenv("KUBECONFIG");
	unsetenv("KUBERNETES_SERVICE_HOST");
	snprintf(home, sizeof home, "%s/home", dir);
	mkdir(home, 0700);
	setenv("HOME", home, 1);
	o.path = NULL;
	rc = load(&o, &c, &err);
	ok(rc == -ENOENT && strstr(err.text, "this is not a pod"),
	   "no configuration at all is told: %s", err.text);
	setenv("KUBECONFIG", "/no/a:/no/b", 1);
	rc = load(&o, &c, &err);
	ok(rc == -ENOENT && strstr(err.text, "/no/a:/no/b"),
	   "a KUBECONFIG whose files are missing is named: %s", err.text);

	/* The first file that has a name wins as a whole; missing files and empty parts are
	 * skipped. */
	put("one", HEAD
	    "current-context: x\n"
	    "clusters:\n- {name: c, cluster: {server: 'https://first:1', tls-server-name: sni}}\n");
	put("two", HEAD "current-context: other\n"
			"contexts:\n- {name: x, context: {cluster: c, user: u, namespace: ns}}\n"
			"clusters:\n- {name: c, cluster: {server: 'https://second:2'}}\n"
			"- {name: d, cluster: {server: 'https://third:3'}}\n" USR);
	snprintf(list, sizeof list, "/no/file::%s/one:%s/two", dir, dir);
	setenv("KUBECONFIG", list, 1);
	rc = load(&o, &c, &err);
	ok(rc == 0 && !strcmp(slu_kube_config_server(c), "https://first:1") &&
		   !strcmp(c->tls_server_name, "sni") &&
		   !strcmp(slu_kube_config_namespace(c), "ns") &&
		   !strcmp(slu_kube_config_user(c), "u"),
	   "files of KUBECONFIG are merged, the first wins %s", err.text);
	slu_kube_config_unref(c);
	o.cluster = "d";
	o.namespace_ = "mine";
	rc = load(&o, &c, &err);
	ok(rc == 0 && !strcmp(slu_kube_config_server(c), "https://third:3") &&
		   !strcmp(slu_kube_config_namespace(c), "mine"),
	   "options win over the context %s", err.text);
	slu_kube_config_unref(c);
	o = (struct slu_kube_config_options){ .context = "nope" };
	rc = load(&o, &c, &err);
	ok(rc == -EINVAL && strstr(err.text, "--context names context \"nope\""),
	   "an unknown context is refused: %s", err.text);
	unsetenv("KUBECONFIG");
}

static void test_fields(void)
{
	struct slu_kube_config *c;
	struct slu_error err;
	struct slu_kube_config_options o = { 0 };
	int rc;

	put("ca.pem", "CA");
	put("token", "x");
	/* JSON is YAML: what kubectl config view -o json prints works too. */
	o.path = put(
		"config",
		"{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}],"
		"\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"https://[::1]:6443/proxy/\",\"certificate-authority\":\"ca.pem\"}}],"
		"\"users\":[{\"name\":\"u\",\"user\":{\"tokenFile\":\"token\",\"token\":\"old\",\"as\":\"boss\",\"as-groups\":[\"g1\",\"g2\"],"
		"\"as-user-extra\":{\"a b\":[\"1\",\"2\"]},\"client-certificate-data\":\"Y2Vy\\ndA==\",\"client-key-data\":\"a2V5\"}}]}");
	rc = load(&o, &c, &err);
	ok(rc == 0, "a JSON file %s", err.text);
	ok(!strcmp(c->addr.host, "::1") && c->addr.port == 6443 && c->addr.tls &&
		   !strcmp(c->addr.prefix, "/proxy"),
	   "a server with a path prefix is read");
	ok(c->ca.file && strstr(c->ca.file, dir) && strstr(c->ca.file, "/ca.pem"),
	   "relative paths start at the file: %s", c->ca.file);
	ok(c->token.file && c->token.data, "both forms of the token are known");
	ok(!strcmp(c->as_user, "boss") && !strcmp(c->as_groups[1], "g2") && !c->as_groups[2] &&
		   c->n_as_extra == 2 && !strcmp(c->as_extra[1].name, "impersonate-extra-a%20b"),
	   "impersonation is read");
	ok(c->cert.n == 4 && !memcmp(c->cert.data, "cert", 4) && !memcmp(c->key.data, "key", 3),
	   "inline data is decoded");
	ok(!strcmp(slu_kube_config_namespace(c), "default"), "no namespace means default");
	slu_kube_config_unref(c);
	o.path = put(
		"config", HEAD CTX CLU
		"users: [{name: u, user: {exec: {command: bin/x, args: [a], "
		"apiVersion: client.authentication.k8s.io/v1beta1, env: [{name: A, value: b}]}}}]\n");
	rc = load(&o, &c, &err);
	ok(rc == 0 && strstr(c->exec.command, dir) && !strcmp(c->exec.args[0], "a") &&
		   c->exec.n_env == 1,
	   "a plug-in with a relative path %s", err.text);
	slu_kube_config_unref(c);
}

static void test_in_cluster(void)
{
	struct slu_kube_config *c;
	struct slu_error err;
	struct slu_kube_config_options o = { .in_cluster_dir = dir };
	int rc;

	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	unlink(put("token", ""));
	rc = load(&o, &c, &err);
	ok(rc == -EINVAL && strstr(err.text, "automountServiceAccountToken"),
	   "a pod without a token is told why: %s", err.text);
	put("token", "t");
	put("ca.crt", "x");
	put("namespace", "sluice-system\n");
	rc = load(&o, &c, &err);
	ok(rc == 0 && !strcmp(slu_kube_config_server(c), "https://[fd00::1]:443") &&
		   !strcmp(slu_kube_config_namespace(c), "sluice-system") &&
		   !strcmp(slu_kube_config_source(c), "in-cluster"),
	   "a pod finds its server %s", err.text);
	slu_kube_config_unref(c);
	put("home/.kube-config", "");
	unsetenv("KUBERNETES_SERVICE_HOST");
}

static void test_base64(void)
{
	static const struct {
		const char *in, *out;
		int rc;
	} b64[] = {
		{ "", "", 0 },
		{ "YQ==", "a", 0 },
		{ "YWI=", "ab", 0 },
		{ "YW Jj\n", "abc", 0 },
		{ "YWJj=", "", -EINVAL },
		{ "Y===", "", -EINVAL },
		{ "YQ==YQ==", "", -EINVAL },
		{ "Y", "", -EINVAL },
		{ "Y*==", "", -EINVAL },
	};
	for (size_t i = 0; i < SLU_LEN(b64); i++) {
		struct slu_buf b = SLU_BUF_INIT(100), back = SLU_BUF_INIT(100);
		int rc = slu_base64_decode(b64[i].in, strlen(b64[i].in), &b);

		ok(rc == b64[i].rc && (rc || !strcmp(slu_buf_str(&b), b64[i].out)),
		   "the base64 text \"%s\" is read as it should be", b64[i].in);
		if (!rc) {
			struct slu_buf again = SLU_BUF_INIT(100);

			slu_base64_encode(slu_buf_str(&b), b.n, &back);
			slu_base64_decode(slu_buf_str(&back), back.n, &again);
			ok(again.n == b.n, "base64 of decoded bytes gives the text again");
			slu_buf_done(&again);
		}
		slu_buf_done(&b);
		slu_buf_done(&back);
	}
}

static void test_faults(void)
{
	struct slu_kube_config_options o = {
		.path = put(
			"config", HEAD CTX CLU
			"users: [{name: u, user: {token: t, as-groups: [a, b], as-user-extra: {k: [v]}, exec: {command: ./x, "
			"args: [a], env: [{name: A, value: b}], apiVersion: client.authentication.k8s.io/v1beta1}}}]\n")
	};
	long k;

	for (k = 0; k < 5000; k++) {
		struct slu_kube_config *c = NULL;
		int rc;

		slu_fault_arm(k);
		rc = slu_kube_config_load(&o, &c, NULL);
		slu_kube_config_unref(c);
		if (!slu_fault_disarm()) {
			ok(rc == 0, "clean after %ld faults", k);
			break;
		}
		if (rc != -ENOMEM) {
			ok(false, "allocation %ld: %d", k, rc);
			break;
		}
	}
	ok(k > 10 && k < 5000, "%ld allocations failed in turn", k);
}

int main(void)
{
	static const char *const left[] = { "config", "one",   "two",       "ca.pem",
					    "ca.crt", "token", "namespace", "home/.kube-config" };
	char path[128];

	snprintf(dir, sizeof dir, "/tmp/sluice-config-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	test_bad();
	test_places();
	test_fields();
	test_in_cluster();
	test_base64();
	test_faults();
	for (size_t i = 0; i < SLU_LEN(left); i++) {
		snprintf(path, sizeof path, "%s/%s", dir, left[i]);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/home", dir);
	rmdir(path);
	rmdir(dir);
	return tap_done();
}
