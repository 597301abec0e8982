# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# In a kernel tree, Kconfig decides what is built. Out of tree everything is a module, even if the
# configuration of the kernel has a kDAPL of its own.
ifneq ($(KBUILD_EXTMOD),)
CONFIG_KDAPL := m
CONFIG_KDAPL_DAT12 := m
CONFIG_KDAPL_KDPING := m
CONFIG_KDAPL_KDRPC := m
CONFIG_KDAPL_KDPERF := m
CONFIG_KDAPL_KDBLK := m
# libiscsi is a part of kernels with one of its users.
CONFIG_KDAPL_ISER := $(if $(CONFIG_ISCSI_TCP)$(CONFIG_INFINIBAND_ISER),m)
CONFIG_KDAPL_NFSRDMA := m
CONFIG_KDAPL_KUNIT_TEST := $(if $(filter 1,$(KDAPL_KUNIT)),y)
endif
