# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# kernel/locking/qspinlock.c: the CPUs of a guest are threads, and most guests have two on one CPU
# of the host. The waiter at the head of a queue gets the lock only when the host lets it run, so a
# lock that both want changes hands once per time slice. Without the queue the one that runs takes
# it. Guests of x86 do the same if their hypervisor has nothing better, in virt_spin_lock().
s/^\tif (virt_spin_lock(lock))$/\twhile (IS_ENABLED(CONFIG_UML) \&\& !queued_spin_trylock(lock))\
\t\tcpu_relax();\
\tif (IS_ENABLED(CONFIG_UML) || virt_spin_lock(lock))/
