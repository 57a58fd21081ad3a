#include "cli/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

/* A handler also writes to this pipe, so that a wait that is about to begin ends at once, whichever thread got the signal. */
static int                   bell[2] = {-1, -1};
static volatile sig_atomic_t interrupted, redrawn;

static void on_signal(int number)
{
    const int error = errno;
    if (number == SIGINT) interrupted = 1;
    else redrawn = 1;
    if (write(bell[1], "", 1) < 0) errno = error; /* full: it rings anyway */
    errno = error;
}

void gdn_signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGWINCH, SIGCONT};
    if (pipe2(bell, O_CLOEXEC | O_NONBLOCK)) bell[0] = bell[1] = -1;
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
}

bool gdn_interrupted(void) { return interrupted; }
void gdn_interrupt_clear(void) { interrupted = 0; }

void gdn_signals_wait(int fd, bool *redraw)
{
    char          rings[64];
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = bell[0], .events = POLLIN}};
    while (poll(both, 2, -1) < 0 && errno == EINTR) {}
    while (read(bell[0], rings, sizeof rings) > 0) {}
    *redraw = redrawn;
    redrawn = 0;
}
