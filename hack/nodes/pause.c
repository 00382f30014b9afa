/* pause — holds the namespaces of a pod, and reaps what its containers leave behind. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int sig)
{
	(void)sig;
	_exit(0);
}

static void reap(int sig)
{
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(void)
{
	signal(SIGINT, leave);
	signal(SIGTERM, leave);
	signal(SIGCHLD, reap);
	for (;;)
		pause();
}
