/*
 * init of the emulated machine that tests the Linux kernel's SCTP: loads modules, configures interfaces and runs peers.
 *
 * Lines come from a virtio serial port, and the log goes there. Those that begin with "!" are for init, all others
 * for the peer that runs:
 *   !run ARGUMENT...                  start /peer, with the port as its standard output
 *   !end                              end it
 *   !link DEVICE up|down
 *   !address add|delete DEVICE ADDRESS
 * Each is answered by `NANOSECONDS init did=COMMAND` or `... failed=COMMAND error=TEXT`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/ipv6.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int port = -1;
static pid_t peer = -1;
static FILE *peer_input;

static void say(const char *key, const char *text, int error)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t now = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    int fd = port < 0 ? STDOUT_FILENO : port;
    if (error == 0)
        dprintf(fd, "%" PRIu64 " init %s=%s\n", now, key, text);
    else
        dprintf(fd, "%" PRIu64 " init %s=%s error=%s\n", now, key, text, strerror(error));
}

/* Without init the kernel panics, and qemu, told not to reboot, ends. */
static void give_up(const char *what)
{
    say("fatal", what, errno);
    reboot(RB_AUTOBOOT);
    exit(1);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        give_up(path);
    close(fd);
}

static void load_modules(void)
{
    char name[64], path[96];
    FILE *list = fopen("/modules", "r");
    if (list == NULL)
        give_up("/modules");
    while (fscanf(list, "%63s", name) == 1) {
        snprintf(path, sizeof path, "/%s.ko", name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
            give_up(path);
        close(fd);
    }
    fclose(list);
}

/* Devices appear some time after their driver was loaded. */
static void open_port(void)
{
    for (int i = 0; i < 1000 && port < 0; i++) {
        port = open("/dev/vport0p1", O_RDWR | O_CLOEXEC);
        if (port < 0)
            usleep(10000);
    }
    if (port < 0)
        give_up("/dev/vport0p1");
}

static int set_link(const char *device, const char *state)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    int result = ioctl(fd, SIOCGIFFLAGS, &request);
    if (strcmp(state, "up") == 0)
        request.ifr_flags |= IFF_UP;
    else
        request.ifr_flags &= (short)~IFF_UP;
    if (result == 0)
        result = ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
    return result;
}

static int set_address(const char *verb, const char *device, const char *text)
{
    struct ifreq name = {0};
    struct in6_ifreq request = {.ifr6_prefixlen = 64};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(name.ifr_name, sizeof name.ifr_name, "%s", device);
    int result = ioctl(fd, SIOCGIFINDEX, &name);
    request.ifr6_ifindex = name.ifr_ifindex;
    if (inet_pton(AF_INET6, text, &request.ifr6_addr) != 1)
        errno = EINVAL, result = -1;
    if (result == 0)
        result = ioctl(fd, strcmp(verb, "add") == 0 ? SIOCSIFADDR : SIOCDIFADDR, &request);
    close(fd);
    return result;
}

static int end_peer(void)
{
    if (peer < 0)
        return 0;
    kill(peer, SIGKILL);
    waitpid(peer, NULL, 0);
    fclose(peer_input);
    peer = -1;
    return 0;
}

static int run_peer(char *arguments)
{
    char *vector[64] = {"peer"};
    int count = 1, ends[2];
    for (char *word; count < 63 && (word = strsep(&arguments, " ")) != NULL;)
        vector[count++] = word;
    end_peer();
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    peer = fork();
    if (peer == 0) {
        dup2(ends[0], STDIN_FILENO);
        dup2(port, STDOUT_FILENO);
        dup2(port, STDERR_FILENO);
        execv("/peer", vector);
        _exit(127);
    }
    close(ends[0]);
    peer_input = fdopen(ends[1], "w");
    return peer < 0 ? -1 : 0;
}

static void command(char *line)
{
    char verb[16] = "", first[32] = "", second[32] = "", third[64] = "";
    int result = -1;
    sscanf(line, "%15s %31s %31s %63s", verb, first, second, third);
    errno = EINVAL;
    if (strcmp(verb, "run") == 0)
        result = run_peer(line + strlen("run "));
    else if (strcmp(verb, "end") == 0)
        result = end_peer();
    else if (strcmp(verb, "link") == 0)
        result = set_link(first, second);
    else if (strcmp(verb, "address") == 0)
        result = set_address(first, second, third);
    say(result == 0 ? "did" : "failed", verb, result == 0 ? 0 : errno);
}

int main(void)
{
    char line[1024];
    signal(SIGPIPE, SIG_IGN);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sysfs", "/sys", "sysfs", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    load_modules();
    open_port();
    write_file("/proc/sys/net/ipv6/conf/all/accept_dad", "0");
    write_file("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
    write_file("/proc/sys/net/ipv6/conf/eth0/accept_dad", "0");
    write_file("/proc/sys/net/ipv6/conf/eth1/accept_dad", "0");
    FILE *input = fdopen(dup(port), "r");
    say("did", "boot", 0);
    while (fgets(line, sizeof line, input) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '!') {
            command(line + 1);
        } else if (peer > 0) {
            fprintf(peer_input, "%s\n", line);
            fflush(peer_input);
        }
    }
    give_up("end of input");
    return 1;
}
