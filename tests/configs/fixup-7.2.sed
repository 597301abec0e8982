# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# arch/um/drivers/vector_kern.c: vector_poll() completes NAPI even when it has used up its budget.
# NAPI still owns it then, and may run it on two CPUs at once. The card of a guest that is late,
# and so finds many packets, receives nothing any more.
s/if (work_done <= budget)/if (work_done < budget)/
