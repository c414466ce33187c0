/*
 * lawfs: a FUSE file system whose files answer by a known law, so that it is known what a measurement must find.
 *
 * A file has N servers and one queue in front of them (first come, first served). Each read or write takes a server for
 * the service time S, which is constant or exponentially distributed; a share of them takes longer by a factor. Hence
 * X(QD) = min(QD, N) / S for constant times. Nothing is stored: reads return noise, writes are dropped.
 *
 * Usage: lawfs MOUNT_POINT LAWS SEED. It prints "ready", and reads LAWS again on SIGHUP. Each line of LAWS is
 *   NAME BYTES SERVERS SERVICE_US const|exp SLOW_SHARE SLOW_FACTOR
 * and every time the same names come in the same order. The protocol is that of include/uapi/linux/fuse.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 64, MOST_SERVERS = 1024, LARGEST = 1 << 20, BATCH = 64, FIRST_NODE = 2 };

struct law {
	char name[64];
	uint64_t bytes;
	int servers;
	double service_s;
	int is_exponential;
	double slow_share, slow_factor;
	double free_at_s[MOST_SERVERS];
};

/* A request that is answered when its service is over. */
struct answer {
	double due_s;
	uint64_t unique;
	uint32_t bytes;
	int is_write;
};

static struct law laws[MOST_FILES];
static int files;
static struct answer *waiting; /* a binary heap, the next one due first */
static int count, room;
static int channel;
static uint64_t noise[LARGEST / 8], random_state = 88172645463325252ull;
static volatile sig_atomic_t is_changed;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t next_random(void) /* xorshift64 (Marsaglia 2003) */
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static double uniform(void)
{
	return ((double)(next_random() >> 11) + 0.5) / 9007199254740992.0;
}

static void read_laws(const char *path)
{
	FILE *file = fopen(path, "r");
	char word[8];
	struct law law = {0};
	files = 0;
	while (file && files < MOST_FILES &&
	       fscanf(file, "%63s %lu %d %lf %7s %lf %lf", law.name, &law.bytes, &law.servers, &law.service_s, word,
		      &law.slow_share, &law.slow_factor) == 7) {
		struct law *here = &laws[files++];
		law.service_s *= 1e-6;
		law.is_exponential = !strcmp(word, "exp");
		memcpy(law.free_at_s, here->free_at_s, sizeof law.free_at_s);
		*here = law;
	}
	if (file)
		fclose(file);
}

static void note_change(int signal_number)
{
	(void)signal_number;
	is_changed = 1;
}

static void push(struct answer answer)
{
	if (count == room)
		waiting = realloc(waiting, (size_t)(room = room ? 2 * room : 1024) * sizeof *waiting);
	int at = count++;
	for (; at && waiting[(at - 1) / 2].due_s > answer.due_s; at = (at - 1) / 2)
		waiting[at] = waiting[(at - 1) / 2];
	waiting[at] = answer;
}

static struct answer pop(void)
{
	struct answer first = waiting[0], last = waiting[--count];
	int at = 0;
	for (int child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && waiting[child + 1].due_s < waiting[child].due_s)
			child++;
		if (waiting[child].due_s >= last.due_s)
			break;
		waiting[at] = waiting[child];
	}
	waiting[at] = last;
	return first;
}

/* When a request that arrives now is done: it waits for the server that is free first. */
static double due_s(struct law *law, double arrived_s)
{
	int server = 0;
	for (int each = 1; each < law->servers; each++)
		if (law->free_at_s[each] < law->free_at_s[server])
			server = each;
	double service_s = law->service_s * (law->is_exponential ? -log(uniform()) : 1.0);
	if (law->slow_share > 0 && uniform() < law->slow_share)
		service_s *= law->slow_factor;
	return law->free_at_s[server] = fmax(law->free_at_s[server], arrived_s) + service_s;
}

static void reply(uint64_t unique, int error, const void *body, size_t bytes)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof header + bytes), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof header}, {(void *)body, bytes}};
	if (writev(channel, parts, bytes ? 2 : 1) < 0 && errno != ENOENT) /* ENOENT: the request was given up */
		perror("lawfs: reply");
}

static void give(struct answer answer)
{
	struct fuse_write_out written = {.size = answer.bytes};
	if (answer.is_write)
		reply(answer.unique, 0, &written, sizeof written);
	else
		reply(answer.unique, 0, noise, answer.bytes);
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr attr = {.ino = node, .mode = S_IFDIR | 0755, .nlink = 2, .blksize = 4096};
	if (node != FUSE_ROOT_ID) {
		attr.mode = S_IFREG | 0644;
		attr.nlink = 1;
		attr.size = laws[node - FIRST_NODE].bytes;
		attr.blocks = attr.size / 512;
	}
	return attr;
}

static void initialise(uint64_t unique, const struct fuse_init_in *offered)
{
	struct fuse_init_out taken = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.flags = offered->flags & (FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_BIG_WRITES | FUSE_MAX_PAGES),
		.max_background = 4096,
		.congestion_threshold = 3072,
		.max_write = LARGEST,
		.max_pages = LARGEST / 4096,
		.time_gran = 1,
	};
	reply(unique, 0, &taken, sizeof taken);
}

static void look_up(uint64_t unique, const char *name)
{
	for (int each = 0; each < files; each++)
		if (!strcmp(laws[each].name, name)) {
			uint64_t node = (uint64_t)each + FIRST_NODE;
			struct fuse_entry_out entry = {
				.nodeid = node, .entry_valid = 3600, .attr_valid = 3600, .attr = attributes(node)};
			return reply(unique, 0, &entry, sizeof entry);
		}
	reply(unique, ENOENT, NULL, 0);
}

static void take_io(const struct fuse_in_header *header, uint32_t bytes, uint64_t offset, int is_write)
{
	struct law *law = &laws[header->nodeid - FIRST_NODE];
	uint64_t left = offset < law->bytes ? law->bytes - offset : 0;
	push((struct answer){due_s(law, now_s()), header->unique, (uint32_t)(bytes < left ? bytes : left), is_write});
}

static void take(const struct fuse_in_header *header, const void *body)
{
	const struct fuse_read_in *io = body; /* laid out as fuse_write_in, as far as offset and size go */
	struct fuse_attr_out attr = {.attr_valid = 3600};
	struct fuse_open_out opened = {.fh = header->nodeid};
	struct fuse_statfs_out space = {.st = {.blocks = 1 << 24, .bfree = 1 << 23, .bavail = 1 << 23, .bsize = 4096,
					       .frsize = 4096, .namelen = 63}};
	switch (header->opcode) {
	case FUSE_INIT:
		return initialise(header->unique, body);
	case FUSE_LOOKUP:
		return look_up(header->unique, body);
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		attr.attr = attributes(header->nodeid);
		return reply(header->unique, 0, &attr, sizeof attr);
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return reply(header->unique, 0, &opened, sizeof opened);
	case FUSE_READ:
	case FUSE_WRITE:
		return take_io(header, io->size, io->offset, header->opcode == FUSE_WRITE);
	case FUSE_STATFS:
		return reply(header->unique, 0, &space, sizeof space);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* no reply is expected */
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_READDIR:
	case FUSE_FSYNC:
	case FUSE_FALLOCATE:
		return reply(header->unique, 0, NULL, 0);
	default:
		reply(header->unique, ENOSYS, NULL, 0);
	}
}

static int take_all(void) /* returns whether it is still mounted */
{
	static char request[LARGEST + 65536];
	for (int each = 0; each < BATCH; each++) {
		if (read(channel, request, sizeof request) < 0)
			return errno != ENODEV;
		take((struct fuse_in_header *)request, request + sizeof(struct fuse_in_header));
	}
	return 1;
}

static void wait_for(int timer)
{
	struct pollfd ends[] = {{channel, POLLIN, 0}, {timer, POLLIN, 0}};
	struct itimerspec at = {0};
	if (count) {
		at.it_value.tv_sec = (time_t)waiting[0].due_s;
		at.it_value.tv_nsec = (long)((waiting[0].due_s - floor(waiting[0].due_s)) * 1e9);
	}
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
	poll(ends, 2, -1);
}

int main(int arguments, char **argument)
{
	if (arguments != 4)
		return fprintf(stderr, "usage: lawfs MOUNT_POINT LAWS SEED\n"), 2;
	read_laws(argument[2]);
	random_state ^= strtoull(argument[3], NULL, 10) * 2654435761u;
	for (size_t each = 0; each < LARGEST / 8; each++)
		noise[each] = next_random();
	signal(SIGHUP, note_change);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_TIMERSLACK, 1000);
	/* On a busy host, so that the law holds; without the permission it holds less well. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	channel = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	char options[128];
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", channel);
	if (channel < 0 || mount("lawfs", argument[1], "fuse", MS_NOSUID | MS_NODEV, options))
		return perror("lawfs: mount"), 1;
	puts("ready");
	fflush(stdout);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	do {
		if (is_changed) {
			is_changed = 0;
			read_laws(argument[2]);
		}
		while (count && waiting[0].due_s <= now_s())
			give(pop());
		wait_for(timer);
	} while (take_all());
	return 0;
}
