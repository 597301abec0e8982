# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# What does the kernel have that this is built for? A Kbuild file with
#
#	compat-for := KDAPL
#	include $(src)/compat/probe.mk
#	$(addprefix $(obj)/,$(kdapl-y)): $(compat-have)
#
# gets compat/have.h, which defines KDAPL_HAVE_NAME for each compat/name.c that compiles. The
# compiler, the flags and the headers are those of the module itself, so the result is right for
# kernels with backports or removals, too. compat/works.c must compile, otherwise the result of
# the others means nothing.

compat-probes := $(sort $(patsubst $(src)/compat/%.c,$(obj)/compat/%.probe,\
	$(wildcard $(src)/compat/*.c)))
compat-have := $(obj)/compat/have.h
# A call without a prototype, or with another one, counts as missing; warnings do not matter.
compat-strict := -Wno-error -Werror=implicit-function-declaration \
	-Werror=incompatible-pointer-types -Werror=int-conversion

ccflags-y += -I$(obj)/compat
targets += $(patsubst $(obj)/%,%,$(compat-probes) $(compat-have))

# If it does not compile, the result still depends on the headers it has read.
quiet_cmd_probe = PROBE   $@
      cmd_probe = \
	if $(CC) $(c_flags) $(compat-strict) -fsyntax-only $< \
			2>$(if $(filter works,$(*F)),&2,/dev/null); then \
		echo y >$@; \
	elif [ $(*F) = works ]; then \
		exit 1; \
	else \
		$(CC) $(c_flags) -E -o /dev/null $< 2>/dev/null || echo '$@: $<' >$(depfile); \
		echo n >$@; \
	fi

quiet_cmd_have = GEN     $@
      cmd_have = { \
	echo '/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */'; \
	grep -l y $(filter %.probe,$^) | sed -n -e '/works.probe$$/d' \
		-e 's,.*/\(.*\)\.probe$$,\1,' -e 'y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/' \
		-e 's/.*/$(pound)define $(compat-for)_HAVE_& 1/p'; \
	} >$@

$(compat-probes): private part-of-module := y
$(compat-probes): $(obj)/compat/%.probe: $(src)/compat/%.c FORCE
	$(call if_changed_dep,probe)

$(compat-have): $(compat-probes) FORCE
	$(call if_changed,have)
