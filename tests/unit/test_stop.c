/* sluiced itself, stopped and reloaded under load, against a pretend API server: with questions
 * that it has not answered yet, with requests under way that are never answered, with one reload
 * after the other during a long cycle.  It must end by itself with 0 every time; the build with
 * sanitizers (make asan) checks every pointer on the way. */
#include "kubefake.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>

#define GANGS   300
#define CALLERS 48

struct world {
	struct fake f;
	struct slu_buf pods;
	struct slu_exchange *open[256];
	uint32_t n_open;
	char config[128], socket[100];
	bool secrets;      /* answer requests for Secrets */
	const char *level; /* of the log */
	const char *log;   /* where it goes; NULL: where ours does */
	rlim_t files;      /* it may have open; 0: as many as we */
	pid_t pid;
};

#define LIST "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["

static void make_pods(struct slu_buf *b)
{
	*b = SLU_BUF_INIT(16 << 20);
	slu_buf_puts(b, LIST);
	for (int i = 0; i < GANGS * 4; i++)
		slu_buf_printf(
			b,
			"%s{\"metadata\":{\"name\":\"p%d\",\"namespace\":\"x\",\"uid\":\"u%d\","
			"\"resourceVersion\":\"5\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
			"\"labels\":{\"sluice.sh/group\":\"g%d\",\"sluice.sh/size\":\"4\"}},"
			"\"spec\":{\"schedulerName\":\"sluice\",\"containers\":[{\"name\":\"c\","
			"\"resources\":{\"requests\":{\"cpu\":\"4\"}}}]},"
			"\"status\":{\"phase\":\"Pending\"}}",
			i ? "," : "", i, i, i / 4);
	slu_buf_puts(b, ",7"); /* an object that cannot be decoded */
	slu_buf_puts(b, "]}");
}

static const char nodes[] = LIST
	"{\"metadata\":{\"name\":\"n\",\"uid\":\"n\",\"resourceVersion\":\"3\"},"
	"\"status\":{\"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"110\"},"
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}]}";

static void serve(struct slu_exchange *x, void *arg)
{
	struct world *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *body = LIST "]}";

	if (strstr(q->query, "watch=") || (strstr(q->path, "/secrets") && !w->secrets)) {
		if (w->n_open < SLU_LEN(w->open))
			w->open[w->n_open++] = x;
		else
			slu_http_reply_text(x, 500, "no room");
		return;
	}
	if (strstr(q->path, "/namespaces/kube-system"))
		body = "{\"metadata\":{\"name\":\"kube-system\",\"uid\":\"cluster\"}}";
	else if (!strcmp(q->path, "/api/v1/pods"))
		body = slu_buf_str(&w->pods);
	else if (!strcmp(q->path, "/api/v1/nodes"))
		body = nodes;
	if (q->method != SLU_HTTP_GET)
		body = "{}";
	slu_http_reply(x, 200, "application/json", body, strlen(body));
}

static void turn(struct world *w, int ms)
{
	bool no = false;

	slu_loop_run_until(w->f.loop, &no, ms * SLU_NS_PER_MS);
}

static void configure(struct world *w, int round)
{
	char text[1000], fresh[140];

	snprintf(fresh, sizeof fresh, "%s.new", w->config);
	snprintf(text, sizeof text,
		 "serve: {socket: %s, https: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n"
		 "webhook: {enabled: true, listen: \"127.0.0.1:0\", names: [localhost]}\n"
		 "jobs: {maxSize: %d}\nlog: {level: %s}\n",
		 w->socket, 1000 + round, w->level);
	fake_write(fresh, text);
	rename(fresh, w->config);
}

static void start(struct world *w)
{
	w->pid = fork();
	if (!w->pid) {
		if (w->files)
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){ w->files, w->files });
		if (w->log)
			dup2(open(w->log, O_WRONLY), STDERR_FILENO);
		execl(SLUICED, SLUICED, "-c", w->config, "--kubeconfig", w->f.kubeconfig, "--store",
		      "memory:", (char *)NULL);
		_exit(127);
	}
}

static int caller(struct world *w, const char *request)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", w->socket);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
		close(fd);
		return -1;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* The beginning of an answer, while the pretend server goes on; "" if the connection ends. */
static const char *hear(struct world *w, int fd)
{
	static char text[1000];

	for (int i = 0; i < 2000; i++) {
		ssize_t n = recv(fd, text, sizeof text - 1, 0);

		if (n > 0) {
			text[n] = '\0';
			return text;
		}
		if (!n || errno != EAGAIN)
			return "";
		turn(w, 5);
	}
	return "silence";
}

#define READY "GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n"
#define JOBS  "GET /v1/jobs?all=true HTTP/1.1\r\nHost: h\r\n\r\n"
#define HOLD  "POST /v1/jobs/x/g%d/hold HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"

static bool ready(struct world *w)
{
	for (int i = 0; i < 1500; i++) {
		int fd = caller(w, READY);
		bool yes = fd >= 0 && strstr(hear(w, fd), " 200 ");

		if (fd >= 0)
			close(fd);
		if (yes)
			return true;
		turn(w, 20);
	}
	return false;
}

/* An object that cannot be decoded is reported, and does not keep the daemon from being ready. */
static bool tells_odd_one(struct world *w)
{
	int fd = caller(w, READY);
	bool told = false;

	for (int i = 0; fd >= 0 && i < 4 && !told; i++) {
		const char *said = hear(w, fd);

		told = strstr(said, "\nleft out: Pod ?: Pod is not an object\n");
		if (!*said || !strcmp(said, "silence"))
			break;
	}
	if (fd >= 0)
		close(fd);
	return told;
}

/* The exit code of the daemon; 1000 and more: a signal ended it, or it hangs. */
static int ended(struct world *w)
{
	int st = 0;

	for (int i = 0; i < 3000; i++) {
		if (waitpid(w->pid, &st, WNOHANG) == w->pid)
			return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
		turn(w, 10);
	}
	kill(w->pid, SIGKILL);
	waitpid(w->pid, &st, 0);
	return 2000;
}

static void one_life(struct world *w, int round)
{
	int fd[CALLERS], answered = 0, silent = 0, rc;

	w->secrets = round % 2;
	configure(w, round);
	start(w);
	ok(ready(w), "life %d: the daemon begins", round);
	ok(tells_odd_one(w), "life %d: says what it cannot read", round);
	for (int i = 0; i < 8; i++) { /* reload after reload, faster than a cycle */
		configure(w, round * 10 + i);
		kill(w->pid, SIGHUP);
		turn(w, i % 3);
	}
	for (int i = 0; i < CALLERS; i++) {
		char text[200];

		snprintf(text, sizeof text, HOLD, i);
		fd[i] = caller(w, i % 2 ? text : JOBS);
	}
	turn(w, round); /* each life is stopped a moment later than the one before */
	kill(w->pid, SIGHUP);
	kill(w->pid, SIGTERM);
	for (int i = 0; i < CALLERS; i++) {
		const char *said = fd[i] < 0 ? "" : hear(w, fd[i]);

		answered += !strncmp(said, "HTTP/1.1 ", 9);
		silent += !strcmp(said, "silence");
		if (fd[i] >= 0)
			close(fd[i]);
	}
	rc = ended(w);
	ok(rc == 0, "life %d: stopped with %d callers, it ends with 0 (%d)", round, CALLERS, rc);
	ok(!silent, "life %d: no caller waits for ever (%d of %d have an answer)", round, answered,
	   CALLERS);
	for (uint32_t i = 0; i < w->n_open; i++)
		slu_http_reply_text(w->open[i], 500, "over");
	w->n_open = 0;
	turn(w, 20);
}

/* The API server forgets what it still had to answer. */
static void forget(struct world *w)
{
	for (uint32_t i = 0; i < w->n_open; i++)
		slu_http_reply_text(w->open[i], 500, "over");
	w->n_open = 0;
	turn(w, 20);
}

/* The disk of the log is full: every line is lost, and nothing else. */
static void full_disk(struct world *w)
{
	int rc;

	w->log = "/dev/full";
	w->level = "debug";
	configure(w, 50);
	start(w);
	ok(ready(w), "with a full disk for its log the daemon begins");
	kill(w->pid, SIGHUP);
	turn(w, 50);
	ok(ready(w), "with a full disk for its log the daemon goes on");
	kill(w->pid, SIGTERM);
	rc = ended(w);
	ok(rc == 0, "the daemon ends with 0 (%d)", rc);
	forget(w);
	w->log = NULL;
	w->level = "error";
}

/* Processor time it has taken, in clock ticks. */
static long ticks(pid_t pid)
{
	char path[40], text[1000] = "";
	long user = 0, system = 0;
	FILE *fp;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fp = fopen(path, "r");
	if (fp && fgets(text, sizeof text, fp) && strrchr(text, ')'))
		sscanf(strrchr(text, ')') + 1,
		       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
	if (fp)
		fclose(fp);
	return user + system;
}

/* Callers take every descriptor it may have; when they go it answers again, and in between it neither
 * ends nor spins. */
static void no_descriptors(struct world *w)
{
	int fd[200], n = 0, rc;
	bool alive;
	long spent;

	w->files = 100;
	configure(w, 60);
	start(w);
	ok(ready(w), "with 100 descriptors the daemon begins");
	for (int i = 0; i < 200; i++) {
		fd[i] = caller(w, "GET /readyz HTTP/1.1\r\n"); /* never says the rest */
		n += fd[i] >= 0;
	}
	turn(w, 300);
	kill(w->pid, SIGHUP); /* it cannot even read its file */
	turn(w, 300);
	spent = ticks(w->pid);
	turn(w, 1000);
	spent = ticks(w->pid) - spent;
	ok(spent * 2 < sysconf(_SC_CLK_TCK),
	   "the daemon without descriptors does not spin (%ld ticks in a second)", spent);
	alive = waitpid(w->pid, &rc, WNOHANG) == 0;
	ok(n > 100 && alive, "the daemon lives on although %d callers want a descriptor each", n);
	for (int i = 0; i < 200; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	ok(ready(w), "the daemon answers once the callers have gone");
	kill(w->pid, SIGTERM);
	rc = ended(w);
	ok(rc == 0, "the daemon ends with 0 (%d)", rc);
	forget(w);
	w->files = 0;
}

int main(void)
{
	struct world w = { .level = "error" };
	struct slu_kube_config *c;

	signal(SIGPIPE, SIG_IGN);
	fake_begin(&w.f);
	make_pods(&w.pods);
	fake_serve(&w.f, serve, &w, NULL, 0);
	c = fake_config(&w.f, "http", "", "");
	slu_kube_config_unref(c);
	snprintf(w.config, sizeof w.config, "%s/sluiced.yaml", w.f.dir);
	snprintf(w.socket, sizeof w.socket, "%s/s", w.f.dir);
	for (int i = 0; i < 6; i++)
		one_life(&w, i);
	full_disk(&w);
	no_descriptors(&w);
	slu_buf_done(&w.pods);
	unlink(w.config);
	unlink(w.socket);
	fake_end(&w.f);
	return tap_done();
}
