# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# In a kernel tree, Kconfig decides what is built. Out of tree everything is a module, even if the
# configuration of the kernel has a kDAPL of its own.
ifneq ($(KBUILD_EXTMOD),)
CONFIG_KDAPL := m
CONFIG_KDAPL_DAT12 := m
CONFIG_KDAPL_KDPING := m
CONFIG_KDAPL_KDPERF := m
CONFIG_KDAPL_KDBLK := m
CONFIG_KDAPL_KUNIT_TEST := $(if $(filter 1,$(KDAPL_KUNIT)),y)
endif
