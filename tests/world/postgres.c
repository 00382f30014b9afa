/* The store of another life in PostgreSQL: rows carried there and back as `sluice store export` and
 * `import` do, each time into a database of its own. */
#include <libpq-fe.h>
#include <stdio.h>

#include "postgres.h"
#include "store/dump.h"

static void command(const char *url, const char *fmt, uint64_t number)
{
	PGconn *c = PQconnectdb(url);
	char text[100];
	PGresult *r;

	snprintf(text, sizeof text, fmt, number);
	r = PQexec(c, text);
	if (PQresultStatus(r) != PGRES_COMMAND_OK) {
		fprintf(stderr, "%s: %s", text, PQerrorMessage(c));
		abort();
	}
	PQclear(r);
	PQfinish(c);
}

static int put_line(void *arg, const char *line, size_t n)
{
	return slu_import_line(arg, line, n, NULL);
}

void postgres_carry(const char *from, const char *to)
{
	slu_cleanup(slu_store_closep) struct slu_store *a = NULL, *b = NULL;
	slu_cleanup(slu_import_freep) struct slu_import *im = NULL;
	struct slu_error err = { 0 };
	uint64_t rows;

	if (slu_store_open(from, SLU_STORE_MIGRATE, &a, &err) < 0 ||
	    slu_store_open(to, SLU_STORE_MIGRATE, &b, &err) < 0 ||
	    slu_import_new(b, &im, &err) < 0 || slu_dump_export(a, put_line, im, &rows, &err) < 0 ||
	    slu_import_commit(im, &rows, &err) < 0) {
		fprintf(stderr, "store not carried from %s to %s: %s\n", from, to, err.text);
		abort();
	}
}

void postgres_make(const char *server, uint64_t number, char *url, size_t size)
{
	const char *host = strchr(server, '?');

	/* postgresql://USER@/DATABASE?host=FOLDER, as with-postgres says it */
	if (!host || !strstr(server, "@/"))
		abort();
	command(server, "CREATE DATABASE life%" PRIu64, number);
	snprintf(url, size, "%.*slife%" PRIu64 "%s", (int)(strstr(server, "@/") + 2 - server),
		 server, number, host);
}

void postgres_drop(const char *server, uint64_t number)
{
	command(server, "DROP DATABASE life%" PRIu64 " WITH (FORCE)", number);
}
