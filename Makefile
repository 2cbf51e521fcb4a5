# Brass: cc and make. `make help` lists the targets.
#
#   make                     ./brass and libbrass.a
#   make test                every test of this build; T=name runs some
#   make SAN=address,undefined [test]     likewise SAN=thread
#
# Objects live in build/$(CONF), one folder per configuration, so sanitizer
# builds and the plain one do not disturb each other.
CC      ?= cc
SAN     ?=
CONF    := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),release)
comma   := ,
B       := build/$(if $(SAN),$(subst $(comma),-,$(SAN)),release)
PREFIX  ?= /usr/local
DESTDIR ?=

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
        -Wmissing-prototypes -Wundef -Wvla -Wwrite-strings -Wcast-qual \
        -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wformat=2 \
        -Wimplicit-fallthrough -Wnull-dereference -fno-common
CFLAGS ?= -O2 -g
BR_CFLAGS := -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-strict-aliasing \
        -Isrc -Iinclude $(WARN) $(if $(CI),-Werror)
BR_LIBS := -lm -lpthread
ifneq ($(SAN),)
BR_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer
LDFLAGS   += -fsanitize=$(SAN)
endif

LIB_SRC  := $(sort $(wildcard src/base/*.c src/mega/*.c src/api/*.c))
CLI_SRC  := $(sort $(wildcard src/cli/*.c))
TEST_SRC := $(sort $(wildcard tests/unit/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(B)/%.o)
TEST_OBJ := $(TEST_SRC:%.c=$(B)/%.o)

all: brass

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BR_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libbrass.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/brass: $(CLI_OBJ) $(B)/libbrass.a
	$(CC) $(LDFLAGS) $^ $(BR_LIBS) -o $@

brass: $(B)/brass
	cp $< $@

clean:
	rm -rf build brass

.PHONY: all clean
-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_OBJ:.o=.d)
