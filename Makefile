# Brass: cc and make, nothing to configure. `make help` lists the targets.
#
# Objects live in build/$(CONF), one folder per configuration, so sanitizer
# builds and the plain one do not disturb each other. Rooms are found by
# wildcard: a new src/ROOM/*.c or src/ROOM/PART/*.c needs no edit here.
# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := all
ifeq ($(origin CC),default)
CC := cc
endif
FUZZ_CC ?= clang
PREFIX  ?= /usr/local
DESTDIR ?=
J       ?= 2
comma   := ,
# release debug address-undefined thread, clang-release ..., fuzz, cov
CONF := $(if $(filter-out cc gcc,$(CC)),$(notdir $(CC))-)$(if $(SAN),$(subst $(comma),-,$(SAN)),$(if $(DEBUG),debug,release))
B    := build/$(CONF)

# CC=aarch64-linux-gnu-gcc makes a program for another machine: with none of
# this one's libraries.
MACHINE := $(shell $(CC) -dumpmachine)
ARCH    := $(firstword $(subst -, ,$(MACHINE)))
CROSS   := $(if $(filter-out $(ARCH),$(shell uname -m)),$(MACHINE)-)
PKG     := $(CROSS)pkg-config
ifneq ($(CROSS),)
AR := $(CROSS)ar
endif

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
        -Wmissing-prototypes -Wundef -Wvla -Wwrite-strings -Wcast-qual \
        -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wformat=2 \
        -Wimplicit-fallthrough -Wnull-dereference -fno-common
# clang's version of this one also wants a cast where a float is passed as a
# double, which loses nothing.
WARN += $(if $(findstring clang,$(CC)),-Wno-double-promotion)
CFLAGS ?= $(if $(DEBUG),-O0,$(if $(SAN),-O1,-O2)) -g$(if $(SAN),1)
BR_CFLAGS := -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-strict-aliasing \
        -fPIC -fvisibility=hidden -ffile-prefix-map=$(CURDIR)=. \
        -Isrc -Iinclude $(WARN) $(if $(CI),-Werror)
BR_LIBS := -lm -lpthread -ldl
# Optional libraries; `make PCRE2= SQLITE= PQ= OPENSSL= NGHTTP2= HWLOC=` leaves
# out what is there.
PCRE2 := $(shell $(PKG) --exists libpcre2-8 2>/dev/null && echo libpcre2-8)
BR_CFLAGS += $(if $(PCRE2),-DBR_HAVE_PCRE2 $(shell $(PKG) --cflags $(PCRE2)))
BR_LIBS += $(if $(PCRE2),$(shell $(PKG) --libs $(PCRE2)))
SQLITE := $(shell $(PKG) --exists sqlite3 2>/dev/null && echo sqlite3)
BR_CFLAGS += $(if $(SQLITE),-DBR_HAVE_SQLITE $(shell $(PKG) --cflags $(SQLITE)))
BR_LIBS += $(if $(SQLITE),$(shell $(PKG) --libs $(SQLITE)))
PQ := $(shell $(PKG) --exists libpq 2>/dev/null && echo libpq)
BR_CFLAGS += $(if $(PQ),-DBR_HAVE_PQ $(shell $(PKG) --cflags $(PQ)))
BR_LIBS += $(if $(PQ),$(shell $(PKG) --libs $(PQ)))
OPENSSL := $(shell $(PKG) --exists openssl 2>/dev/null && echo openssl)
BR_CFLAGS += $(if $(OPENSSL),-DBR_HAVE_OPENSSL)
BR_LIBS += $(if $(OPENSSL),$(shell $(PKG) --libs $(OPENSSL)))
NGHTTP2 := $(shell $(PKG) --exists libnghttp2 2>/dev/null && echo libnghttp2)
BR_CFLAGS += $(if $(NGHTTP2),-DBR_HAVE_NGHTTP2)
BR_LIBS += $(if $(NGHTTP2),$(shell $(PKG) --libs $(NGHTTP2)))
HWLOC := $(shell $(PKG) --exists 'hwloc >= 2.0' 2>/dev/null && echo hwloc)
BR_LIBS += $(if $(HWLOC),$(shell $(PKG) --libs $(HWLOC)))
# Packed fat binaries of nvcc: LZ4 and zstd where they are.
FATBIN := $(foreach l,liblz4 libzstd,$(shell $(PKG) --exists $l 2>/dev/null && echo $l))
BR_CFLAGS += $(patsubst lib%,-DBR_HAVE_%,$(subst lz4,LZ4,$(subst zstd,ZSTD,$(FATBIN))))
BR_LIBS += $(if $(FATBIN),$(shell $(PKG) --libs $(FATBIN)))
ifneq ($(SAN),)
SAN_FLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
# Kernels once, not for each format and instruction set: mat_int.h.
BR_CFLAGS += -D$(if $(findstring thread,$(SAN)),BR_ONE_TILE,BR_ONE_COPY)
else ifeq ($(DEBUG),)
BR_CFLAGS += -DNDEBUG # br_assert is for debug and sanitizer builds
endif
# Below -O2 gcc does not know ranges well enough for this warning.
NO_RANGES := $(if $(findstring clang,$(CC)),,-Wno-format-truncation)
BR_CFLAGS += $(if $(SAN)$(DEBUG),$(NO_RANGES))
# Say what is made, not how; V=1 shows the commands, make -s says nothing.
SILENT := $(findstring s,$(firstword -$(MAKEFLAGS)))
say  = $(if $(V),,@$(if $(SILENT),,printf '  %-4s %s\n' '$(1)' '$@'; ))
# Optional libraries, for the program alone: what is not found is left out.
has  = $(shell $(PKG) --exists $(1) 2>/dev/null && echo yes)
ifneq ($(call has,libedit),)
CLI_LIBS += $(shell $(PKG) --libs libedit)
$(B)/src/cli/%.o: BR_CFLAGS += -DBR_HAVE_LIBEDIT
endif
ifneq ($(call has,libcurl),)
CLI_LIBS += $(shell $(PKG) --libs libcurl)
$(B)/src/cli/%.o: BR_CFLAGS += -DBR_HAVE_CURL
endif
# What a sanitizer builds is linked where it will lie: 312,000 relocations less
# (gcc -shared does not mind).
LINK = $(CC) $(CFLAGS) $(SAN_FLAGS) $(if $(SAN),-no-pie) $(LDFLAGS)

# gcc's -O2 makes vector code of few loops.
$(addprefix $(B)/src/drv/sim/sim_,lane.o lane_avx2.o lane_avx512.o valu.o mem.o order.o): BR_CFLAGS += \
        $(if $(findstring clang,$(CC))$(findstring address,$(SAN)),,-ftree-vectorize -fvect-cost-model=dynamic -funswitch-loops)
# Kernels by instruction set: chosen at run time, so compiled everywhere.
ifeq ($(ARCH),x86_64)
$(B)/src/drv/cpu/mat_avx2.o $(B)/src/drv/cpu/mat_avx2_many.o: BR_CFLAGS += -mavx2 -mfma -mf16c
$(B)/src/drv/sim/sim_lane_avx2.o: BR_CFLAGS += -mavx2 -mfma
$(B)/src/model/encode_lanes_avx2.o: BR_CFLAGS += -mavx2 -funroll-loops
$(B)/src/model/encode_lanes_avx512.o: BR_CFLAGS += -mavx512f -mavx512dq -mavx512vl -funroll-loops
$(B)/src/drv/sim/sim_lane_avx512.o $(B)/src/drv/sim/sim_wide_avx512.o: BR_CFLAGS += -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
$(addprefix $(B)/src/drv/cpu/mat_,avx512.o avx512_act.o amx.o): BR_CFLAGS += -mavx2 -mfma -mf16c -mavx512f \
        -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16
else ifeq ($(ARCH),aarch64)
$(B)/src/drv/cpu/mat_neon.o: BR_CFLAGS += -march=armv8.2-a+dotprod
endif

objs     = $(patsubst %.c,$(B)/%.o,$(sort $(wildcard $(1))))
# What is not the same text in a sanitizer's build: warnings of copies.
kernels: $(call objs,src/drv/cpu/*.c src/drv/sim/sim_lane*.c src/drv/sim/sim_decode.c)
ROOMS    := $(filter-out cli,$(patsubst src/%/,%,$(sort $(wildcard src/*/))))
LIB_OBJ  := $(filter-out %/cuda_13.o,$(call objs,$(ROOMS:%=src/%/*.c) $(ROOMS:%=src/%/*/*.c)))
CLI_OBJ  := $(call objs,src/cli/*.c)
T_OBJ    := $(call objs,tests/*.c)
UNIT_OBJ := $(call objs,tests/unit/*.c)
TEST_OBJ := $(UNIT_OBJ) $(filter-out %/main.o,$(CLI_OBJ)) $(T_OBJ)

# For what no test waits for, less of an optimiser: tests -O1 (60 s for 90), and
# under a sanitizer -O0, for the rooms that talk too (a third of the time).
COLD := $(T_OBJ) $(UNIT_OBJ)$(if $(SAN), $(call objs,src/cli/*.c src/api/*.c src/http/*.c src/cuda/*.c src/drv/cuda/*.c))
$(COLD): CFLAGS := $(patsubst -O%,$(if $(SAN),-O0,-O1),$(CFLAGS))
$(COLD): BR_CFLAGS += $(NO_RANGES)

CUDA_LIB := $(B)/libbrasscuda.so
all: $(if $(CROSS),$(B)/brass,brass brasscc)
# make BINARY_SHIM=1: the names by which programs that nvcc linked ask for CUDA. In a
# folder of their own, and not by itself: they would hide a real driver.
SHIM := $(if $(BINARY_SHIM),libcuda.so.1 libcuda.so libcudart.so.12 libcudart.so.13 libcudart.so)
lib: $(SHIM:%=$(B)/cuda-shim/%)
$(B)/cuda-shim/%: | $(CUDA_LIB) ; @mkdir -p $(@D); ln -sf ../libbrasscuda.so $@

$(B)/%.o: %.c Makefile $(B)/libs
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BR_CFLAGS) $(SAN_FLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libbrass.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR)$(AR) rcsD $@ $^

$(B)/brass: $(CLI_OBJ) $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(CLI_LIBS) $(BR_LIBS) -o $@

brass: $(B)/brass
	@rm -f $@; cp $< $@ # which may be at work

# It alone includes hwloc's header.
$(B)/src/drv/cpu/cpu_nodes.o: BR_CFLAGS += $(if $(HWLOC),-DBR_HAVE_HWLOC $(shell $(PKG) --cflags $(HWLOC)))

$(B)/src/cli/catalogue.o: models/catalogue.json

# The commit is compiled into one object, made anew when it changes.
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
$(shell mkdir -p $(B); echo '$(COMMIT)' | cmp -s - $(B)/commit || echo '$(COMMIT)' >$(B)/commit)
$(B)/src/cli/version.o: BR_CFLAGS += -DBR_COMMIT='"$(COMMIT)"' \
        -DBR_DATE='"$(shell git show -s --format=%cs 2>/dev/null || echo unknown)"'
$(B)/src/cli/version.o: $(B)/commit

# A library that was installed, or removed, since is used, or not, by all objects.
LIBS_HERE := $(strip $(PCRE2) $(SQLITE) $(PQ) $(OPENSSL) $(NGHTTP2) $(HWLOC) $(FATBIN) \
        $(foreach l,libedit libcurl,$(if $(call has,$l),$l)))
$(shell echo '$(LIBS_HERE)' | cmp -s - $(B)/libs || echo '$(LIBS_HERE)' >$(B)/libs)

# Code that the kernel compiler leaves in files is for the same compiler.
# The folders too: a file may have gone.
CG_SRC := $(sort $(wildcard src/cg/*.* src/cg/ptx/* src/cg/x86/*)) src/base/base.h
$(B)/cg_id: $(CG_SRC) src/cg src/cg/ptx src/cg/x86
	@mkdir -p $(@D); cat $(CG_SRC) | sha1sum | cut -c1-16 >$@
$(B)/src/cg/x86/x86_pack.o: BR_CFLAGS += -DBR_CG_ID='"$(shell cat $(B)/cg_id 2>/dev/null)"'
$(B)/src/cg/x86/x86_pack.o: $(B)/cg_id

# ---- the C library ---------------------------------------------------------
ver     = $(shell sed -n 's/^.define BRASS_VERSION_$(1)  *//p' include/brass/brass.h)
VERSION := $(call ver,MAJOR).$(call ver,MINOR).$(call ver,PATCH)
SONAME  := libbrass.so.$(call ver,MAJOR)
SYMS    := include/brass/symbols.txt

$(B)/libbrass.map: $(SYMS)
	@{ echo 'BRASS_$(call ver,MAJOR) { global:'; sed -n 's/^br_.*/    &;/p' $<; \
	   echo '    local: *; };'; } >$@

$(B)/$(SONAME): $(LIB_OBJ) $(B)/libbrass.map
	$(call say,LD)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,-z,defs \
	    -Wl,--version-script=$(B)/libbrass.map $(LIB_OBJ) $(BR_LIBS) -o $@

lib: $(B)/libbrass.a $(B)/$(SONAME) $(CUDA_LIB)

# CUDA programs: brasscc compiles them, this library runs them.
$(CUDA_LIB): $(call objs,$(foreach r,base cg cuda drv/sim drv/amd,src/$r/*.c src/$r/*/*.c)) src/cuda/exports.map
	$(call say,LD)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,--as-needed \
	    -Wl,--version-script=src/cuda/exports.map,-z,nodelete $(filter %.o,$^) $(BR_LIBS) -o $@
brasscc: tools/brasscc $(CUDA_LIB)
	@rm -f $@; cp $< $@

CUDA_H = $(shell cd include/cuda && find . -type f)
INST = install -D -m
DEST = $(DESTDIR)$(PREFIX)
MAN  = $(DEST)/share/man/man1
man: brass ; tools/install-man $(B)/brass build/man
install: brass lib brasscc
	$(INST) 755 $(B)/brass $(DEST)/bin/brass
	$(INST) 644 $(B)/libbrass.a $(DEST)/lib/libbrass.a
	$(INST) 755 $(B)/$(SONAME) $(DEST)/lib/libbrass.so.$(VERSION)
	ln -sf libbrass.so.$(VERSION) $(DEST)/lib/$(SONAME)
	ln -sf $(SONAME) $(DEST)/lib/libbrass.so
	$(INST) 644 include/brass/brass.h $(DEST)/include/brass/brass.h
	for h in $(wildcard include/amk/*.h); do $(INST) 644 $$h $(DEST)/$$h; done
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(BR_LIBS)|' \
	    tools/brass.pc.in >$(B)/brass.pc
	$(INST) 644 $(B)/brass.pc $(DEST)/lib/pkgconfig/brass.pc
	$(INST) 755 tools/brasscc $(DEST)/bin/brasscc
	$(INST) 755 $(CUDA_LIB) $(DEST)/lib/$(notdir $(CUDA_LIB))
	for n in $(SHIM); do install -d $(DEST)/lib/cuda-shim && ln -sf ../libbrasscuda.so $(DEST)/lib/cuda-shim/$$n; done
	$(if $(V),,@)for h in $(CUDA_H); do $(INST) 644 include/cuda/$$h $(DEST)/include/brass/cuda/$$h; done
	tools/install-man $(B)/brass $(MAN)
	$(B)/brass completion bash >$(B)/brass.bash
	$(INST) 644 $(B)/brass.bash $(DEST)/share/bash-completion/completions/brass

uninstall:
	rm -f $(DEST)/bin/brass $(DEST)/bin/brasscc $(DEST)/lib/libbrass.* $(DEST)/lib/libbrasscuda.* $(DEST)/lib/pkgconfig/brass.pc \
	    $(MAN)/brass.1 $(MAN)/brass-*.1 $(DEST)/share/bash-completion/completions/brass
	rm -rf $(DEST)/include/brass $(DEST)/include/amk $(DEST)/lib/cuda-shim

# ---- tests: make test [K=part of file:name] [J=parallel] --------------------
CHECK_CFLAGS = $(shell $(PKG) --cflags check) -Itests
CHECK_LIBS   = $(shell $(PKG) --libs check || echo install-the-package-check)
$(T_OBJ) $(UNIT_OBJ) $(call objs,tests/faults/*.c): BR_CFLAGS += $(CHECK_CFLAGS)
# Sanitizers want their part of the address space free of random mappings.
FIXED_MAP    = $(if $(SAN),$(shell setarch -R true 2>/dev/null && echo setarch -R))
# Stacks of threads that glibc keeps are more bytes than before a test: for them
# alone LSan would search.
NO_STACKS    = $(if $(findstring address,$(SAN)),env GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0)
# So many MB that were freed are watched, not 256: a fifth of the faults of pages.
QUARANTINE   = $(if $(findstring address,$(SAN)),env ASAN_OPTIONS=quarantine_size_mb=16:$$ASAN_OPTIONS)
# clang's reports name lines by a program that comes with LLVM, not with clang.
NAMES        = $(if $(SAN),$(addprefix env ASAN_SYMBOLIZER_PATH=,$(firstword $(shell command -v llvm-symbolizer llvm-symbolizer-19))))
RUN_TESTS    = $(FIXED_MAP) $(NO_STACKS) $(QUARANTINE) $(NAMES) $(B)/brass-test -j $(J) $(if $(K),-k '$(K)')

# The runner sees who starts a thread; what TSan sees it has to see first.
COUNTS := $(if $(SAN),,-Wl,--wrap=pthread_create)
$(B)/tests/runner.o: BR_CFLAGS += $(if $(COUNTS),-DT_COUNTS_THREADS)
$(addprefix $(B)/brass-,test faults test-avx512): LDFLAGS += $(COUNTS)
$(B)/brass-test: $(TEST_OBJ) $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(CHECK_LIBS) $(CLI_LIBS) $(BR_LIBS) -o $@

$(B)/brass-faults: $(B)/tests/faults/faults.o $(T_OBJ) $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(CHECK_LIBS) $(BR_LIBS) -o $@

# A CUDA device made of fibers: the kernels' own text, without a GPU. Needs g++.
EMU := $(if $(SAN),,$(if $(shell command -v g++),$(B)/emu/libcuda.so.1 $(B)/bench_cuda_decode))
$(B)/emu/libcuda.so.1: $(wildcard tests/emu/* kernels/cuda/*.cu kernels/cuda/*.cuh kernels/cuda/*.h)
	@mkdir -p $(@D)
	$(call say,CXX)$(CC) -O2 -fPIC -c tests/emu/emu_core.c -o $(@D)/emu_core.o && \
	$(CC) -O2 -fPIC -c tests/emu/emu_graph.c -o $(@D)/emu_graph.o && \
	g++ -O2 -fPIC -std=c++17 -fvisibility=hidden -w -include tests/emu/emu.h \
	    -fsanitize=alignment -fsanitize-undefined-trap-on-error \
	    -c tests/emu/emu_kernels.cc -o $(@D)/emu_kernels.o && \
	g++ -shared -Wl,-soname,libcuda.so.1 $(@D)/emu_core.o $(@D)/emu_graph.o $(@D)/emu_kernels.o -ldl -pthread -o $@

test: $(B)/brass-test $(B)/brass-faults $(B)/brass $(EMU) $(if $(SAN),,$(B)/$(SONAME) brasscc)
	@$(RUN_TESTS)

golden-update: $(B)/brass-test $(B)/brass
	T_GOLDEN_UPDATE=1 $(RUN_TESTS)
	git status --short tests/golden

test-install: ; tests/install.sh

# The AVX-512 kernels where the processor has none: every intrinsic as C by
# SIMDe (libsimde-dev). A minute and more to compile, so no part of ./test.
SIMDE     := $(B)/simde
SIMDE_OBJ := $(addprefix $(SIMDE)/,mat_avx512.o mat_avx512_act.o cpu_ops_avx512.o cpu_mat.o)
$(SIMDE)/drv/cpu/%: src/drv/cpu/% tools/simde.sed
	@mkdir -p $(@D)
	@sed -f tools/simde.sed $< >$@
$(SIMDE_OBJ): $(SIMDE)/%.o: $(SIMDE)/drv/cpu/%.c tests/simde_more.h \
        $(patsubst src/%,$(SIMDE)/%,$(wildcard src/drv/cpu/*.h))
	$(call say,CC)$(CC) -I$(SIMDE) -Itests $(BR_CFLAGS) -w -O1 -mavx2 -mfma -mf16c \
	    -DBR_AVX512VNNI__ -DBR_AVX512BF16__ -DMAT_BY_FUNCTIONS -c $< -o $@
$(B)/brass-test-avx512: $(TEST_OBJ) $(SIMDE_OBJ) $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(CHECK_LIBS) $(CLI_LIBS) $(BR_LIBS) -o $@
test-avx512: $(B)/brass-test-avx512
	@$< -j $(J) -t 200 -k $(or $(K),test_cpu)

# ---- fuzz: make fuzz [T=seconds] [F=name] -----------------------------------
T     ?= 600
FUZZ  := $(if $(F),$(F),$(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c))))
AGAIN  = @+$(MAKE) --no-print-directory

# Watched are the parsers and what they stand on; the rest of the library is the
# unit tests', which saves compiling it twice more: 400 of 560 s, 80 of 130.
WATCHED := $(call objs,$(shell sed 's/\#.*//' tests/fuzz/parsers.txt | grep -o 'src/[^ ]*') src/base/*.c)
$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(FUZZ_MAIN) $(WATCHED) $(REST)
	$(call say,LD)$(LINK) $^ $(BR_LIBS) -o $@
fuzzers: $(FUZZ:%=$(B)/fuzz_%) ; @:

FUZZ_REST := build/$(notdir $(FUZZ_CC))-address-undefined/libbrass.a
fuzz:
	$(AGAIN) $(FUZZ_REST) CC=$(FUZZ_CC) SAN=address,undefined
	$(AGAIN) fuzzers CONF=fuzz CC=$(FUZZ_CC) SAN=address,undefined,fuzzer-no-link \
	    LDFLAGS=-fsanitize=fuzzer REST=$(FUZZ_REST)
	@tools/fuzz $(T) $(FUZZ)
fuzz-quick: ; $(AGAIN) fuzz T=4

# Which lines of its parser a fuzzer's seeds reach; below 85 % fails.
fuzz-cov:
	$(AGAIN) build/release/libbrass.a CC=gcc
	$(AGAIN) fuzzers CONF=cov CC=gcc CFLAGS='-O0 -g1 -w --coverage -DBR_ONE_COPY' \
	    FUZZ_MAIN=build/cov/tests/fuzz/replay.o REST=build/release/libbrass.a
	@tools/fuzz-cov $(FUZZ)

# ---- CUDA kernels: PTX by clang, no toolkit --------------------------------
$(B)/src/http/ui.o: web/index.html
PTX_OUT ?= kernels/cuda/ptx
HOST_PTX ?= kernels/host/host.ptx
PTX_CC  := clang-19 -x cuda -std=c++17 --cuda-device-only -nocudainc \
        -nocudalib --cuda-gpu-arch=sm_90a --cuda-feature=+ptx80 -O2 -S \
        -Wno-unknown-cuda-version -Wno-pass-failed
PORTABLE_CC = $(subst sm_90a,sm_70,$(PTX_CC)) -ffp-contract=off
$(B)/src/drv/cuda/embed_ptx.o: $(wildcard kernels/cuda/ptx/*.ptx)
$(B)/src/drv/nodes/embed_nodes.o: $(wildcard kernels/cuda/ptx/*nodes*.ptx)
$(B)/src/cg/gcn/gcn_lib.o: kernels/host/host.ptx
$(B)/src/drv/nodes/amd_hand.o: $(wildcard kernels/gcn/*.s)
# make NVCC=nvcc: the decode kernel as the toolkit makes it too.
ifneq ($(NVCC),)
$(B)/mega_decode.cubin: $(wildcard kernels/cuda/*.cu kernels/cuda/*.cuh kernels/cuda/*.h)
	$(call say,NVCC)$(NVCC) -gencode=arch=compute_90a,code=sm_90a -O3 -std=c++17 -w -cubin -o $@ kernels/cuda/mega_decode.cu
$(B)/src/drv/cuda/embed_ptx.o: $(B)/mega_decode.cubin
$(B)/src/drv/cuda/embed_ptx.o: BR_CFLAGS += -DBR_CUBIN='"$(B)/mega_decode.cubin"'
endif
# make PTXAS=ptxas: all PTX of sm_90a as machine code as well, so that no driver
# compiles it while a model is opened.
ifneq ($(PTXAS),)
CUBINS := $(patsubst %,$(B)/cubin/%.cubin,mega_decode setup pick nodes prog experts)
$(B)/cubin/%.cubin: kernels/cuda/ptx/%.ptx
	@mkdir -p $(@D)
	$(call say,PTXAS)$(PTXAS) -arch=sm_90a -o $@ $<
$(B)/src/drv/cuda/embed_ptx.o: $(CUBINS)
$(B)/src/drv/cuda/embed_ptx.o: BR_CFLAGS += -DBR_CUBINS='"$(B)/cubin"'
endif
ptx:
	@for k in mega_decode setup pick nodes prog experts stay; do \
	    case $$k in nodes|prog|experts) own=-ffp-contract=off;; *) own=;; esac; \
	    [ $$k != nodes ] || own="$$own --cuda-feature=+ptx81"; \
	    $(PTX_CC) $$own -o $(PTX_OUT)/$$k.ptx kernels/cuda/$$k.cu || exit 1; done
	@$(PORTABLE_CC) -DBR_PORTABLE -o $(PTX_OUT)/nodes_portable.ptx kernels/cuda/nodes.cu
	@$(PORTABLE_CC) -o $(PTX_OUT)/mega_nodes.ptx kernels/cuda/mega_nodes.cu
	@$(PTX_CC) -o $(HOST_PTX) kernels/host/host.cu
ptx-gcn: ; @$(PTX_CC) -o tests/data/gcn/kernels.ptx tests/data/gcn/kernels.cu

# ---- benchmarks and examples ------------------------------------------------
$(B)/bench/bench_serve.o: BR_CFLAGS += -DBR_COMMIT='"$(COMMIT)"'
$(B)/bench/bench_serve.o: $(B)/commit
$(B)/bench_serve $(B)/bench_soak: $(B)/bench/serve_load.o
$(B)/bench_gcn: $(B)/tests/gcn_corpus.o
$(B)/bench_cuda_decode: $(B)/bench/cuda_decode_times.o
$(B)/bench_%: $(B)/bench/bench_%.o $(B)/bench/kit.o $(B)/libbrass.a
	$(call say,LD)$(LINK) $(filter %.o,$^) $(filter %.a,$^) $(BR_LIBS) -o $@
bench-%: $(B)/bench_% ; @$<
# All of them, so that what they use does not change behind their backs.
benches: $(patsubst bench/%.c,$(B)/%,$(wildcard bench/bench_*.c))
bench: brass ; @tools/bench
bench-gaps: $(B)/bench_serve ; @tools/gaps $(RUNS)
# What the simulated GPU's checks miss: each wait, barrier, fence and scope of 52
# kernels weakened in turn. bench_gcn: their instructions and the speed.
mutants: $(B)/brass-test
	BRASS_TEST_LONG=1 $< -v -t 600 -k '*:sim_checks_catch_mutants'
bench-kernels: brass brasscc ; @bench/kernels/run.sh $(B)/kernels
bench-pocl: brass brasscc ; @bench/kernels/pocl.sh $(B)/kernels
soak: $(B)/bench_soak brass ; @$< $(T) && tests/kill.sh $$(($(T) / 10))

$(B)/example-%: $(B)/examples/%.o $(B)/libbrass.a
	$(call say,LD)$(LINK) $^ $(BR_LIBS) -o $@
examples: $(patsubst examples/%.c,$(B)/example-%,$(wildcard examples/*.c))

# ---- care -------------------------------------------------------------------
C_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h')
lint: ; @tools/lint
format: ; @tools/format
format-check: ; @clang-format --dry-run -Werror $(C_FILES)
wc: ; @tools/wc
config: ; @tools/config '$(CC)' '$(CFLAGS)' '$(CONF)' '$(ROOMS) cli'
compdb:
	@$(MAKE) -Bn V=1 all $(TEST_OBJ) | awk -v dir='$(CURDIR)' -f tools/compdb.awk >compile_commands.json
help: ; @cat tools/make-help.txt
clean: ; rm -rf build brass compile_commands.json

.SECONDARY:
.PHONY: kernels ptx ptx-gcn mutants bench benches bench-gaps all lib man soak install uninstall test golden-update test-install test-avx512 fuzz fuzz-quick \
        fuzz-cov fuzzers examples lint format format-check wc config compdb help clean
-include $(shell find $(B) -name '*.d' 2>/dev/null)
