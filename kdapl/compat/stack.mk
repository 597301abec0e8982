# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Which RDMA stack will be loaded: the kernel's own, or a vendor's (MLNX_OFED, DOCA and the
# like) whose ib_core.ko has replaced it? The module has to be built with the headers and the
# symbol versions of that stack. A vendor's stack has them in a tree of its own, ofa_kernel, with
# include/ and Module.symvers. The topmost Kbuild includes this file before anything is compiled.
#
#	KDAPL_OFA=DIR		that tree, if it is elsewhere; 'no': the kernel's own stack
#	KDAPL_SYSROOT=DIR	look below DIR for the tree and for installed modules

ifeq ($(filter %/Makefile.clean,$(MAKEFILE_LIST)),)

# 'default' is a link to the tree of one kernel, or a tree for any.
kdapl-ofa-root := $(KDAPL_SYSROOT)/usr/src/ofa_kernel
kdapl-ofa := $(or $(KDAPL_OFA),$(firstword \
	$(wildcard $(kdapl-ofa-root)/*/$(KERNELRELEASE) $(kdapl-ofa-root)/$(KERNELRELEASE)) \
	$(filter %/$(KERNELRELEASE) %/default,$(realpath $(kdapl-ofa-root)/default))))

# Where a vendor's stack is installed. The kernel's own modules are below kernel/.
kdapl-foreign := $(firstword $(shell find $(wildcard $(addprefix \
	$(KDAPL_SYSROOT)/lib/modules/$(KERNELRELEASE)/,updates extra weak-updates)) /dev/null \
	-name 'ib_core.ko*' 2>/dev/null))

ifeq ($(kdapl-ofa),no)
  kdapl-ofa :=
  ifneq ($(kdapl-foreign),)
    $(error kdapl: KDAPL_OFA=no, but kernel $(KERNELRELEASE) loads the RDMA stack of \
	$(kdapl-foreign), which would refuse this module: leave KDAPL_OFA out or remove that stack)
  endif
endif

ifneq ($(kdapl-ofa),)
  ifeq ($(and $(wildcard $(kdapl-ofa)/include/rdma/ib_verbs.h),$(shell \
	grep -sw ib_register_client $(kdapl-ofa)/Module.symvers)),)
    $(error kdapl: $(kdapl-ofa) is no RDMA stack to build with, since include/rdma/ib_verbs.h or \
	the versions of ib_core in Module.symvers are missing: install the development package of \
	that stack for kernel $(KERNELRELEASE), or say KDAPL_OFA=no for the stack of the kernel)
  endif
  # A tree that was found, and not asked for, must belong to the stack that will be loaded.
  ifeq ($(KDAPL_OFA)$(kdapl-foreign),)
    $(error kdapl: $(kdapl-ofa) is for an RDMA stack that kernel $(KERNELRELEASE) does not have, \
	since there is no ib_core.ko of it below updates, extra or weak-updates: install that stack, \
	or say KDAPL_OFA=no for the one of the kernel, or KDAPL_OFA=$(kdapl-ofa) to build for it \
	all the same)
  endif
  $(info kdapl: for the RDMA stack of $(kdapl-ofa), not the one of kernel $(KERNELRELEASE))
  LINUXINCLUDE := $(addprefix -I,$(wildcard $(addprefix $(kdapl-ofa)/,include include/uapi))) \
	$(LINUXINCLUDE) $(addprefix -include ,$(wildcard $(kdapl-ofa)/include/linux/compat-2.6.h))
  # Its modules may have the names of the kernel's own; modpost would take them for the same.
  $(shell awk -F '\t' -v OFS='\t' '{ $$3 = "ofa_kernel/" $$3; print }' \
	$(kdapl-ofa)/Module.symvers >$(obj)/ofa_kernel.symvers)
  KBUILD_EXTRA_SYMBOLS += $(obj)/ofa_kernel.symvers
else ifneq ($(kdapl-foreign),)
  $(error kdapl: kernel $(KERNELRELEASE) loads the RDMA stack of $(kdapl-foreign), but no tree to \
	build with is in $(kdapl-ofa-root): install the development package of that stack, or give \
	KDAPL_OFA=)
endif

endif
