# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# arch/x86/um/os-Linux/registers.c: on processors with a large register file
# (AMX) UML 6.1 can read the extended state into its buffer but not write it
# back, and dies with the first process. Use it only where both work.
s/if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0)$/if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, \&iov) == 0 \&\&\n	    ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, \&iov) == 0)/
