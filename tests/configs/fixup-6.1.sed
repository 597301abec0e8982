# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# arch/x86/um/user-offsets.c: UML 6.1 keeps the extended registers of its
# processes in a buffer too small for processors with AMX, can then not write
# them back, and dies with the first process. 11008 bytes is all of AMX.
s/DEFINE_LONGS(HOST_FP_SIZE, 2696);/DEFINE_LONGS(HOST_FP_SIZE, 11008);/
# arch/um/os-Linux/skas/process.c: UML 6.1 traces the processes of its guest. If it is killed they
# are let go, and what they do next they do on the host.
s/(void \*) *PTRACE_O_TRACESYSGOOD)/(void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))/
