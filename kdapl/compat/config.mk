# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# In a kernel tree, Kconfig says what is built and how. Out of tree there is none: everything
# is a module, whatever the configuration of a kernel that has a kDAPL of its own says.
ifneq ($(KBUILD_EXTMOD),)
CONFIG_KDAPL := m
CONFIG_KDAPL_DAT12 := m
CONFIG_KDAPL_KDPING := m
CONFIG_KDAPL_KDPERF := m
CONFIG_KDAPL_KDBLK := m
CONFIG_KDAPL_KUNIT_TEST := $(if $(filter 1,$(KDAPL_KUNIT)),y)
endif
