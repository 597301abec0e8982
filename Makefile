# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# For people; the kernel's build reads Kbuild. 'make help' lists the targets.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
N ?= 20
PREFIX ?= /usr/local
DKMS_VERSION = $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
DIR ?= $(CURDIR)
KEY ?= /var/lib/dkms/mok.key
CERT ?= /var/lib/dkms/mok.pub
DEV = $(DESTDIR)$(PREFIX)/share/kdapl

.DEFAULT_GOAL := help
.PHONY: help modules install uninstall not-behind-dkms dkms-install dkms-uninstall man install-man uninstall-man html demo check check-all check-long coverage-spec \
	doc-states doc-tables lint mutate check-debug soak bench bench-record clean clean-cache deb install-src install-dev uninstall-dev install-tools uninstall-tools version sign sign-key matrix dist

help:
	@echo 'kDAPL: the kernel DAT API over the kernel verbs'
	@echo
	@echo '  make demo          two virtual machines exchange data through kdapl.ko, before your eyes'
	@echo '  make check         the tests a change is most likely to break, in virtual machines:'
	@echo '                     1.4 minutes, 7 to 10 the first time'
	@echo '                     (FAST=1: one provider; ONLY=word: any jobs whose name holds it)'
	@echo '  make check-all     these and 6.1, debug kernels, faults, wires, storage, packages:'
	@echo '                     13 minutes, 39 the first time (MINUTES=N: skip what there is no time for)'
	@echo '  make check-long    these and devices that behave like hardware (mlx5, irdma, bnxt,'
	@echo '                     cxgb4, ...: tests/hca/README.md), bounce buffers, an IOMMU, kDAPL'
	@echo '                     as a part of a kernel: two hours (ONLY=hca-: those devices)'
	@echo '  make coverage-spec which requirements are tested, and why others are not'
	@echo '  make doc-states    write Documentation/ep-states.md anew from the table in the code'
	@echo '  make doc-tables    write the tables of locks and quirks in the manual anew from the code'
	@echo '  make lint          static checks; silent when clean'
	@echo '  make mutate        plant bugs in kdapl.ko, one at a time: a test has to catch each (ONLY=word)'
	@echo '  make check-debug   every guest under KASAN and under lockdep, some under KCSAN: hours'
	@echo '  make soak          load, traffic, unplug and unload again and again (N=$(N) times)'
	@echo '  make bench         what kDAPL costs beside the verbs: posts, completions, round trips,'
	@echo '                     streams, registrations, connections (ONLY=word)'
	@echo '  make bench-record  keep what it has found as the record of this version, and write the'
	@echo '                     tables and plots of Documentation/performance.md'
	@echo '  make modules       build kdapl.ko, kdapl_dat12.ko and the examples for kernel KVER=$(KVER)'
	@echo '  make install       install them for that kernel (as root)'
	@echo '  make uninstall     remove what make install has put there'
	@echo '  make dkms-install  register with DKMS: rebuilt for each new kernel (as root)'
	@echo '  make dkms-uninstall  remove the modules of all kernels from DKMS (as root)'
	@echo '  make install-tools kdapl; kdblkctl, units of systemd and rules of udev for kdblk (as root)'
	@echo '  make uninstall-tools  remove them (the configuration in /etc stays)'
	@echo '  make install-dev   headers, a snippet for Kbuild files and an example (as root; PREFIX=$(PREFIX))'
	@echo '  make deb           Debian packages kdapl-dkms, kdapl-dev and kdapl-tools, in build/deb'
	@echo '  make dist          the sources of the last commit, in build/kdapl-VERSION.tar.gz; packaging/ has'
	@echo '                     recipes for RPM and Arch Linux that want it'
	@echo '  make sign-key      a key and a certificate to sign modules with (KEY=, CERT=)'
	@echo '  make sign          sign the modules that were built, for Secure Boot'
	@echo '  make matrix        build for Debian 12, 13 and sid with the compilers of each, for other'
	@echo '                     processors, too; load in virtual machines'
	@echo '  make man           manual pages of all calls, in build/man; make install-man installs them'
	@echo '                     (PREFIX=$(PREFIX), DESTDIR=)'
	@echo '  make html          the manual as HTML, in build/html'
	@echo '  make clean         remove what was built here'
	@echo '  make clean-cache   remove what is not used any more from ~/.cache/kdapl (6 GB after'
	@echo '                     make check-all, up to 15 in all: test kernels, packages, compiled'
	@echo '                     objects); ALL=1: everything'

modules: need-headers
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

# Where 'make install' puts the modules, whatever the kernel's own default is.
INSTALL_MOD_DIR ?= updates
MODULES = $(INSTALL_MOD_PATH)/lib/modules/$(KVER)

install: not-behind-dkms modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_DIR=$(INSTALL_MOD_DIR) modules_install
	install -D -m 644 Module.symvers "$(MODULES)/updates/kdapl.symvers"
	depmod $(if $(INSTALL_MOD_PATH),-b "$(INSTALL_MOD_PATH)") $(KVER)

# Of two modules with one name depmod may take that of DKMS.
not-behind-dkms:
	@for f in "$(MODULES)"/updates/dkms/kdapl.ko* "$(MODULES)"/extra/kdapl.ko* \
			"$(MODULES)"/extra/kdapl/kdapl.ko*; do \
		[ ! -e "$$f" ] || { echo "make: $$f is of DKMS or a package, and kernel $(KVER)" \
			"would still load it: 'make dkms-uninstall', or remove the package, first" >&2; \
			exit 2; }; \
	done

uninstall:
	rm -rf "$(MODULES)/$(INSTALL_MOD_DIR)/kdapl" "$(MODULES)/$(INSTALL_MOD_DIR)/ulp_example"
	rm -f "$(MODULES)/updates/kdapl.symvers"
	depmod $(if $(INSTALL_MOD_PATH),-b "$(INSTALL_MOD_PATH)") $(KVER)

dkms-install:
	@KVER='$(KVER)' tools/dkms install

dkms-uninstall:
	@tools/dkms uninstall

# What it takes to build the modules, in SRC; nothing of what was built here.
install-src:
	mkdir -p $(SRC)
	tar -c --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' \
		--exclude='.*.cmd' --exclude=modules.order --exclude='*.probe' --exclude=have.h \
		--exclude=kdapl/tests --exclude='*.pml' \
		Kbuild Kconfig LICENSES dkms.conf dkms.post-build include kdapl ulp_example | \
		tar -x --no-same-owner -C $(SRC)

# For administrators: kdapl; kdblkctl, its units, and the rules of udev.
SBINDIR ?= /usr/sbin

install-tools:
	install -D -m 755 tools/kdapl "$(DESTDIR)$(SBINDIR)/kdapl"
	install -D -m 755 ulp_example/kdblk/tools/kdblkctl "$(DESTDIR)$(SBINDIR)/kdblkctl"
	install -d "$(DESTDIR)/lib/systemd/system" "$(DESTDIR)/lib/udev/rules.d"
	install -m 644 ulp_example/kdblk/tools/*.service "$(DESTDIR)/lib/systemd/system/"
	install -m 644 ulp_example/kdblk/tools/*.rules "$(DESTDIR)/lib/udev/rules.d/"
	for f in kdblk multipath; do \
		install -D -m 644 ulp_example/kdblk/tools/$$f.conf.example \
			"$(DESTDIR)/usr/share/doc/kdapl-tools/examples/$$f.conf" || exit; \
	done

uninstall-tools:
	rm -f "$(DESTDIR)$(SBINDIR)/kdapl" "$(DESTDIR)$(SBINDIR)/kdblkctl"
	for f in ulp_example/kdblk/tools/*.service; do \
		rm -f "$(DESTDIR)/lib/systemd/system/$${f##*/}"; \
	done
	for f in ulp_example/kdblk/tools/*.rules; do \
		rm -f "$(DESTDIR)/lib/udev/rules.d/$${f##*/}"; \
	done
	rm -rf "$(DESTDIR)/usr/share/doc/kdapl-tools/examples"

# What it takes to build modules that use them.
install-dev:
	install -d "$(DEV)/include/dat" "$(DEV)/include/dat2" \
		"$(DESTDIR)$(PREFIX)/share/doc/kdapl-dev/examples/hello" \
		"$(DESTDIR)$(PREFIX)/share/doc/kdapl-dev/examples/calls"
	install -m 644 include/dat/*.h "$(DEV)/include/dat/"
	install -m 644 include/dat2/*.h "$(DEV)/include/dat2/"
	install -m 644 include/kdapl.mk "$(DEV)/include/"
	install -D -m 644 include/uapi/linux/kdapl.h "$(DEV)/include/uapi/linux/kdapl.h"
	install -D -m 644 Documentation/netlink/specs/kdapl.yaml "$(DEV)/netlink/kdapl.yaml"
	install -m 644 Documentation/examples/hello/Kbuild Documentation/examples/hello/hello.c \
		"$(DESTDIR)$(PREFIX)/share/doc/kdapl-dev/examples/hello/"
	install -m 644 Documentation/examples/calls/Kbuild Documentation/examples/calls/calls.c \
		"$(DESTDIR)$(PREFIX)/share/doc/kdapl-dev/examples/calls/"

uninstall-dev:
	rm -rf "$(DEV)" "$(DESTDIR)$(PREFIX)/share/doc/kdapl-dev"

version:
	@echo $(DKMS_VERSION)

deb:
	@tools/deb

# The same bytes for the same commit, whoever makes it and when.
dist:
	@git rev-parse -q --verify HEAD >/dev/null || \
		{ echo 'make dist: it takes the last commit of a git repository' >&2; exit 1; }
	@git diff --quiet HEAD -- dkms.conf || \
		{ echo 'make dist: dkms.conf, which has the version, differs from the last commit' >&2; exit 1; }
	@mkdir -p build
	@git archive --format=tar --prefix=kdapl-$(DKMS_VERSION)/ -o build/kdapl-$(DKMS_VERSION).tar HEAD
	@gzip -9nf build/kdapl-$(DKMS_VERSION).tar
	@echo build/kdapl-$(DKMS_VERSION).tar.gz

# The key of Debian's DKMS, if there is one; Documentation/install.md has the rest.
sign-key:
	@KEY='$(KEY)' CERT='$(CERT)' tools/sign key

sign:
	@KEY='$(KEY)' CERT='$(CERT)' tools/sign modules $(KDIR) $(DIR)

matrix:
	@tools/matrix

.PHONY: need-headers
need-headers:
	@[ -e $(KDIR)/Makefile ] || { \
		echo "make: no kernel headers in $(KDIR): apt-get install linux-headers-$(KVER)," \
		     "or give KDIR=" >&2; exit 2; }

man:
	@[ -x /usr/bin/python3 ] || { echo "make: no /usr/bin/python3: apt-get install python3" >&2; exit 2; }
	@/usr/bin/python3 tools/man

install-man: man
	for d in build/man/man?; do \
		install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/man/$${d##*/}" "$$d"/* || exit; \
	done

uninstall-man: man
	for d in build/man/man?; do for f in "$$d"/*; do \
		rm -f "$(DESTDIR)$(PREFIX)/share/man/$${d##*/}/$${f##*/}"; \
	done; done

html:
	@command -v pandoc >/dev/null && command -v mandoc >/dev/null || tools/setup manual
	@/usr/bin/python3 tools/html

demo:
	@tools/demo

check:
	@tools/setup check
	@tests/run $(if $(filter-out 0,$(FAST)),--fast) $(if $(ONLY),--only $(ONLY))

check-all:
	@tools/setup check
	@tests/run --all $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

check-long:
	@tools/setup check
	@tests/run --long $(if $(ONLY),--only $(ONLY))

check-debug:
	@tools/setup check
	@tests/run --debug $(if $(ONLY),--only $(ONLY))

soak:
	@tools/setup check
	@tests/run --soak $(N)

bench:
	@tools/setup check
	@tests/run --bench $(if $(ONLY),--only $(ONLY))

bench-record:
	@tools/bench-report --record

coverage-spec:
	@tools/coverage-spec

doc-states:
	@tools/ep-states

doc-tables:
	@tools/doc-tables

lint:
	@tools/lint

mutate:
	@tools/setup check
	@tools/mutate $(if $(ONLY),--only $(ONLY))

clean-cache:
	@tools/clean-cache $(if $(filter-out 0,$(ALL)),--all)

clean:
	rm -rf build
	find . -path ./.git -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name modules.order -o -name '*.symvers' -o -name '*.probe' \
		-o -name have.h \) -exec rm -f {} +
