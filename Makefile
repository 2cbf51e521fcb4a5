# Brass: cc and make. `make help` lists the targets.
#
# Objects live in build/$(CONF), one folder per configuration, so sanitizer
# builds and the plain one do not disturb each other. Rooms are found by
# wildcard: a new src/ROOM/*.c or src/ROOM/PART/*.c needs no edit here.
ifeq ($(origin CC),default)
CC := cc
endif
SAN     ?=
PREFIX  ?= /usr/local
DESTDIR ?=
J       ?= 2
comma   := ,
# release, address-undefined, thread; clang-release, ...
CONF := $(if $(filter-out cc gcc,$(CC)),$(notdir $(CC))-)$(if $(SAN),$(subst $(comma),-,$(SAN)),release)
B    := build/$(CONF)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
        -Wmissing-prototypes -Wundef -Wvla -Wwrite-strings -Wcast-qual \
        -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wformat=2 \
        -Wimplicit-fallthrough -Wnull-dereference -fno-common
CFLAGS ?= -O2 -g
BR_CFLAGS := -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-strict-aliasing \
        -fPIC -fvisibility=hidden -ffile-prefix-map=$(CURDIR)/= \
        -Isrc -Iinclude $(WARN) $(if $(CI),-Werror)
BR_LIBS := -lm -lpthread
ifneq ($(SAN),)
SAN_FLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all \
        -fno-omit-frame-pointer
endif
# Say what is made, not how; V=1 shows the commands
say  = $(if $(V),,@printf '  %-4s %s\n' '$(1)' '$@'; )
LINK = $(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS)

srcs     = $(sort $(wildcard $(1:%=src/%/*.c) $(1:%=src/%/*/*.c)))
ROOMS    := $(filter-out cli,$(patsubst src/%/,%,$(sort $(wildcard src/*/))))
LIB_OBJ  := $(patsubst %.c,$(B)/%.o,$(call srcs,$(ROOMS)))
CLI_OBJ  := $(patsubst %.c,$(B)/%.o,$(call srcs,cli))
TEST_OBJ := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/unit/*.c)))
T_OBJ    := $(patsubst %.c,$(B)/%.o,$(wildcard tests/*.c))

all: brass

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BR_CFLAGS) $(SAN_FLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libbrass.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR)$(AR) rcsD $@ $^

$(B)/brass: $(CLI_OBJ) $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(BR_LIBS) -o $@

# version.o alone knows the commit, and is made again when that changes.
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
$(B)/src/cli/version.o: BR_CFLAGS += -DBR_COMMIT='"$(or $(COMMIT),unknown)"'
$(B)/src/cli/version.o: $(B)/commit
$(B)/commit: .FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@

brass: $(B)/brass
	@cp $< $@

# ---- tests --------------------------------------------------------------
# make test [K=pattern] [J=parallel]; K is part of a test's file:name
CHECK_CFLAGS = $(shell pkg-config --cflags check) -Itests \
        -Wno-gnu-zero-variadic-macro-arguments
CHECK_LIBS   = $(shell pkg-config --libs check || echo check.is.missing)
$(T_OBJ) $(TEST_OBJ) $(B)/tests/faults/faults.o: BR_CFLAGS += $(CHECK_CFLAGS)

# The tests call br_cli_main themselves.
$(B)/brass-test: $(TEST_OBJ) $(T_OBJ) $(filter-out %/cli/main.o,$(CLI_OBJ)) \
                 $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(CHECK_LIBS) $(BR_LIBS) -o $@

$(B)/brass-faults: $(B)/tests/faults/faults.o $(T_OBJ) $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(CHECK_LIBS) $(BR_LIBS) -o $@

test: $(B)/brass-test $(B)/brass-faults $(B)/brass
	@$(B)/brass-test -j $(J) $(if $(K),-k '$(K)')

golden-update: $(B)/brass-test $(B)/brass-faults $(B)/brass
	T_GOLDEN_UPDATE=1 $(B)/brass-test -j $(J) $(if $(K),-k '$(K)')
	git status --short tests/golden

clean:
	rm -rf build brass

.PHONY: .FORCE all test golden-update clean
-include $(shell find $(B) -name '*.d' 2>/dev/null)
