# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# All that the Kbuild of a module on kDAPL needs:
#
#	obj-m := hello.o
#	include /usr/share/kdapl/include/kdapl.mk
#
# gives it <dat2/kdat.h> or <dat/kdat.h>, and the versions of the symbols of the kdapl.ko and
# kdapl_dat12.ko that are installed for the kernel it is built for. (In the sources of kdapl: of the one that was built there.)
#
#	KDAPL_SYMVERS=FILE	take those of this Module.symvers instead
#	KDAPL_SYSROOT=DIR	look for what is installed below DIR

kdapl-include := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
kdapl-symvers := $(or $(KDAPL_SYMVERS),$(firstword $(wildcard \
	$(kdapl-include)/../Module.symvers \
	$(KDAPL_SYSROOT)/var/lib/dkms/kdapl/kernel-$(KERNELRELEASE)-*/Module.symvers \
	$(KDAPL_SYSROOT)/lib/modules/$(KERNELRELEASE)/updates/kdapl.symvers)))

ccflags-y += -I$(kdapl-include)
ifneq ($(kdapl-symvers),)
KBUILD_EXTRA_SYMBOLS += $(kdapl-symvers)
else ifeq ($(filter %/Makefile.clean,$(MAKEFILE_LIST)),)
$(error kdapl is not installed for kernel $(KERNELRELEASE): install kdapl-dkms or run 'make install' \
	in its sources, or give KDAPL_SYMVERS=)
endif
