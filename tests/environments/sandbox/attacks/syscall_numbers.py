"""System call numbers that attacks use: (x86_64, aarch64); None where a machine does not have the call."""

import os

# fmt: off
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "io_setup": (206, 0), "shmget": (29, 194), "getpid": (39, 172), "sendfile": (40, 71), "execve": (59, 221),
    "kill": (62, 129), "semget": (64, 190), "msgget": (68, 186), "chdir": (80, 49), "ptrace": (101, 117),
    "syslog": (103, 116), "personality": (135, 92), "setpriority": (141, 140), "mlock": (149, 228),
    "modify_ldt": (154, None), "prctl": (157, 167), "arch_prctl": (158, None), "adjtimex": (159, 171),
    "setrlimit": (160, 164), "chroot": (161, 51), "mount": (165, 40), "umount2": (166, 39), "iopl": (172, None),
    "tkill": (200, 130), "sched_setaffinity": (203, 122), "remap_file_pages": (216, 234), "timer_create": (222, 107),
    "clock_settime": (227, 112), "tgkill": (234, 131), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "mq_open": (240, 180), "add_key": (248, 217), "keyctl": (250, 219), "ioprio_set": (251, 30), "unshare": (272, 97),
    "vmsplice": (278, 75), "timerfd_create": (283, 85), "signalfd4": (289, 74), "eventfd2": (290, 19),
    "epoll_create1": (291, 20), "pipe2": (293, 59), "inotify_init1": (294, 26), "rt_tgsigqueueinfo": (297, 240),
    "perf_event_open": (298, 241), "fanotify_init": (300, 262), "prlimit64": (302, 261),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "setns": (308, 268),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "seccomp": (317, 277),
    "memfd_create": (319, 279), "bpf": (321, 280), "userfaultfd": (323, 282), "pkey_alloc": (330, 289),
    "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "clone3": (435, 435), "pidfd_open": (434, 434), "openat2": (437, 437),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "landlock_create_ruleset": (444, 444),
    "memfd_secret": (447, 447), "futex_waitv": (449, 449), "statmount": (457, 457), "sethostname": (170, 161),
    "rt_sigaction": (13, 134), "socket": (41, 198), "clone": (56, 220), "fork": (57, None), "vfork": (58, None),
    "dup": (32, 23), "ioctl": (16, 29), "fcntl": (72, 25), "mremap": (25, 216), "mprotect": (10, 226),
    "pkey_mprotect": (329, 288), "shmat": (30, 196), "newfstatat": (262, 79), "openat": (257, 56),
    "faccessat2": (439, 439), "statx": (332, 291), "close": (3, 57), "writev": (20, 66), "pwrite64": (18, 68),
    "sendto": (44, 206), "sendmsg": (46, 211), "getdents64": (217, 61), "execveat": (322, 281), "nanosleep": (35, 101),
    "membarrier": (324, 283), "rt_sigprocmask": (14, 135), "sched_setscheduler": (144, 119), "setsid": (112, 157),
    "setitimer": (38, 103), "sched_setattr": (314, 274), "acct": (163, 89), "swapon": (167, 224),
    "init_module": (175, 105), "kexec_load": (246, 104), "quotactl": (179, 60), "lookup_dcookie": (212, 18),
    "set_robust_list": (273, 99), "move_pages": (279, 239), "rt_sigtimedwait": (128, 137), "capset": (126, 91),
}
# fmt: on


def numbers() -> dict[str, int]:
    """The calls of this machine."""
    column = 0 if os.uname().machine == "x86_64" else 1
    return {name: both[column] for name, both in _NUMBERS.items() if both[column] is not None}
