# gdn: see `make help`.
VERSION = 0.1.0
SOVERSION = 0

BUILD  ?= $(if $(DEBUG),build/debug,build)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
FUZZ_SECONDS ?= 30
CROSS_CC ?= aarch64-linux-gnu-gcc
EMULATOR ?= qemu-aarch64
PYTHON ?= python3
Q        = $(if $(V),,@)
SAY      = @$(if $(V),:,echo)

OPT      = $(if $(DEBUG),-O1,-O2)
OPT_FAST = $(if $(DEBUG),-O1,-O3)
WARN     = -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes \
           $(if $(WERROR),-Werror)
SANFLAGS = $(if $(SAN),-DGDN_SANITIZED -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)

# The numbers are part of the contract: no contraction, nothing of -ffast-math.  All objects are position independent, so
# that one set serves both libraries; without semantic interposition that costs nothing inside the library.
FLAGS  = -std=c11 -D_GNU_SOURCE -g -fPIC -fno-semantic-interposition -ffp-contract=off -fno-math-errno -pthread \
         $(WARN) $(SANFLAGS) $(if $(DEBUG),-DGDN_DEBUG) -Isrc -Iinclude -MMD -MP
LDLIBS = -lm -pthread
# What the engine and the program use; the library libgdn needs none of it.
ENGINE_LIBS = $(if $(STANDIN),,-ljansson -lutf8proc)

# A bare machine gets its compiler while this runs.
MACHINE := $(or $(shell $(CC) -dumpmachine 2>/dev/null),$(shell uname -m))
ISA_DIR := $(if $(filter x86_64%,$(MACHINE)),x86)$(if $(filter aarch64%,$(MACHINE)),arm)
FOREIGN := $(if $(filter x86,$(ISA_DIR)),,%_avx2.o %_avx512.o %_amx.o) $(if $(filter arm,$(ISA_DIR)),,%_neon.o)

# ---- what there is -------------------------------------------------------------------------------------------------

# STANDIN=1 builds libgdn and its tests with no library but C's: tests/standin for cmocka, and without the tests of the rest.
BEYOND  := $(shell grep -lE 'include "(format|text|model|engine|gdn/gdn\.h|unit/tokenizer_json|law/(batch|engine|model|persist|reuse|spec)|golden/)' $(wildcard tests/*/*.c))
sources = $(filter-out $(if $(STANDIN),$(BEYOND)),$(wildcard $(1)))
objects = $(filter-out $(FOREIGN),$(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1))))
program = $(patsubst %.c,$(BUILD)/%,$(call sources,$(1)))

HEADERS  := $(wildcard include/gdn/*.h)
LIB_API  := include/gdn/delta.h include/gdn/status.h
ENG_API  := include/gdn/gdn.h
LIB_OBJ  := $(call objects,src/base/*.c src/kernel/*.c src/kernel/ref/*.c $(if $(ISA_DIR),src/kernel/$(ISA_DIR)/*.c) \
                           src/device/*.c src/state/*.c src/model/delta_layer.c)
ENG_OBJ  := $(filter-out $(LIB_OBJ),$(call objects,src/format/*.c src/text/*.c src/model/*.c src/engine/*.c))
CLI_OBJ  := $(call objects,src/cli/*.c)
LIB      := $(BUILD)/libgdn.a
ENGINE   := $(if $(STANDIN),,$(BUILD)/libgdn-engine.a)
SHARED   := $(BUILD)/libgdn.so $(if $(STANDIN),,$(BUILD)/libgdn-engine.so)
CLI      := $(if $(CLI_OBJ),$(BUILD)/gdn)
EXAMPLES := $(call program,examples/*.c)

# A test_*.c is a cmocka program; tests/kernel is one program; each fuzz target is replayed over its corpus; what tests/diff/*.c
# make answers the scripts there.
FAULTS     := $(call program,tests/fault/test_*.c)
GOLDENS    := $(call program,tests/golden/test_*.c)
CMOCKAS    := $(call program,tests/unit/test_*.c) $(GOLDENS) $(call program,tests/law/test_*.c) $(FAULTS)
KERNEL_OBJ := $(call objects,tests/kernel/*.c)
KERNELS    := $(if $(KERNEL_OBJ),$(BUILD)/tests/check_kernels)
FUZZ       := $(patsubst tests/fuzz/fuzz_%.c,%,$(call sources,tests/fuzz/fuzz_*.c))
REPLAYS    := $(FUZZ:%=$(BUILD)/tests/fuzz/replay_%)
FUZZERS    := $(FUZZ:%=$(BUILD)/tests/fuzz/fuzz_%)
DIFFS      := $(call program,tests/diff/*.c)
SCRIPTS    := $(wildcard tests/cli/*.sh)
HELP_OBJ   := $(call objects,tests/support/*.c tests/oracle/*.c $(if $(STANDIN),tests/standin/*.c))
CMOCKA     := $(if $(STANDIN),,-lcmocka)
TEST_LIB   := $(if $(HELP_OBJ),$(BUILD)/tests/libtests.a)

.PHONY: all lib needs tests test run-tests check bench run install clean help asan ubsan tsan msan run-msan fuzz run-fuzz FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: lib $(ENGINE) $(SHARED) $(CLI) $(EXAMPLES)
lib: $(LIB) $(BUILD)/libgdn.so
tests: $(CMOCKAS) $(KERNELS) $(REPLAYS) $(DIFFS)

# ---- compile -------------------------------------------------------------------------------------------------------

# The folder and the name of a file say how it is compiled; nothing else does.
AVX2   = -mavx2 -mfma -mf16c
AVX512 = $(AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512
AMX    = $(AVX512) -mamx-tile -mamx-bf16
$(BUILD)/src/kernel/% $(BUILD)/src/device/%: private OPT = $(OPT_FAST)
$(BUILD)/%/avx2.o $(BUILD)/%_avx2.o: private ISA = $(AVX2)
$(BUILD)/%/avx512.o $(BUILD)/%_avx512.o: private ISA = $(AVX512)
$(BUILD)/%/amx.o $(BUILD)/%_amx.o: private ISA = $(AMX)
$(BUILD)/tests/%: private ISA = -Itests $(if $(STANDIN),-Itests/standin)

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) "compile $<"
	$(Q)$(CC) $(FLAGS) $(OPT) $(ISA) $(CFLAGS) -c $< -o $@

# Who the program is, and where `make install` puts the model that it takes when none is named.
COMMIT   := $(if $(wildcard .git),$(shell git describe --always --dirty --exclude='*' 2>/dev/null))
DEMO_DIR := $(PREFIX)/share/gdn/demo
$(BUILD)/src/cli/main.o $(BUILD)/src/cli/find_model.o: $(BUILD)/origin
$(BUILD)/src/cli/main.o: private ISA = $(if $(COMMIT),-DGDN_COMMIT='"$(COMMIT)"')
$(BUILD)/src/cli/find_model.o: private ISA = -DGDN_DEMO_DIR='"$(DEMO_DIR)"'

# Other flags, other objects: these files change when what they hold does.
$(BUILD)/flags: private HOLDS = $(CC) $(FLAGS) $(OPT) $(OPT_FAST) $(CFLAGS) $(LDFLAGS)
$(BUILD)/origin: private HOLDS = $(COMMIT) $(DEMO_DIR)
$(BUILD)/flags $(BUILD)/origin: FORCE
	@mkdir -p $(@D)
	@echo '$(HOLDS)' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# A plain `make` first installs what is missing.
needs:
	@sh tools/install_deps.sh run
$(BUILD)/flags: $(if $(filter-out all,$(MAKECMDGOALS)),,needs)

# ---- link ----------------------------------------------------------------------------------------------------------

LINK = $(Q)mkdir -p $(@D) && echo "link $@" && $(CC) $(SANFLAGS) $(LDFLAGS)

$(LIB): $(LIB_OBJ)
$(ENGINE): $(ENG_OBJ)
$(BUILD)/tests/libtests.a: $(HELP_OBJ)
$(LIB) $(ENGINE) $(BUILD)/tests/libtests.a:
	$(SAY) "archive $@"
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcs $@ $^

# A shared library exports what its public headers declare, and no more; that of the engine has the heart inside.
$(BUILD)/libgdn.map: $(LIB_API)
$(BUILD)/libgdn-engine.map: $(ENG_API)
$(BUILD)/%.map: tools/exports.sh
	@mkdir -p $(@D)
	$(Q)sh tools/exports.sh --map $(filter %.h,$^) >$@
$(BUILD)/libgdn.so.$(VERSION): $(LIB_OBJ) $(BUILD)/libgdn.map
$(BUILD)/libgdn-engine.so.$(VERSION): private LDLIBS := $(ENGINE_LIBS) $(LDLIBS)
$(BUILD)/libgdn-engine.so.$(VERSION): $(ENG_OBJ) $(LIB_OBJ) $(BUILD)/libgdn-engine.map
$(BUILD)/%.so.$(VERSION):
	$(LINK) -shared -Wl,-soname,$*.so.$(SOVERSION) -Wl,--version-script=$(BUILD)/$*.map $(if $(SAN),,-Wl,-z,defs) \
	  -o $@ $(filter %.o,$^) $(LDLIBS)
$(BUILD)/%.so: $(BUILD)/%.so.$(VERSION)
	@ln -sf $(notdir $<) $(BUILD)/$*.so.$(SOVERSION) && ln -sf $*.so.$(SOVERSION) $@

$(BUILD)/gdn: $(CLI_OBJ) $(ENGINE) $(LIB)
	$(LINK) -o $@ $^ $(ENGINE_LIBS) -ledit $(LDLIBS)
$(EXAMPLES): $(BUILD)/%: $(BUILD)/%.o $(ENGINE) $(LIB)
	$(LINK) -o $@ $^ $(ENGINE_LIBS) $(LDLIBS)

# A test in tests/fault defines __wrap_malloc and the rest, and so decides which allocation fails.
WRAPPED = malloc calloc realloc strdup aligned_alloc posix_memalign free pthread_create
$(FAULTS): private LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%)
$(CMOCKAS): $(BUILD)/%: $(BUILD)/%.o $(TEST_LIB) $(ENGINE) $(LIB)
	$(LINK) -o $@ $^ $(CMOCKA) $(ENGINE_LIBS) $(LDLIBS)
$(BUILD)/tests/check_kernels: $(KERNEL_OBJ) $(TEST_LIB) $(LIB)
	$(LINK) -o $@ $^ $(LDLIBS)
$(DIFFS): $(BUILD)/%: $(BUILD)/%.o $(ENGINE) $(LIB)
	$(LINK) -o $@ $^ $(ENGINE_LIBS) $(LDLIBS)
$(REPLAYS): $(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(TEST_LIB) $(ENGINE) $(LIB)
	$(LINK) -o $@ $^ $(ENGINE_LIBS) $(LDLIBS)
$(FUZZERS): %: %.o $(TEST_LIB) $(ENGINE) $(LIB)
	$(LINK) -fsanitize=fuzzer -o $@ $^ $(ENGINE_LIBS) $(LDLIBS)

# ---- test ----------------------------------------------------------------------------------------------------------

# The other architecture, under user-mode emulation: the kernels and the recorded outputs of the heart.
CROSS       := $(BUILD)/aarch64
CROSS_PROGS := $(patsubst $(BUILD)/%,$(CROSS)/%,$(KERNELS) $(filter-out $(BEYOND:%.c=$(BUILD)/%),$(GOLDENS)))
CROSS_TOOLS := $(and $(shell command -v $(CROSS_CC) 2>/dev/null),$(shell command -v $(EMULATOR) 2>/dev/null))
CROSS_TESTS := $(if $(CROSS_TOOLS),$(CROSS_PROGS:%="$(EMULATOR) %"),\
                 "skip aarch64: $(CROSS_CC) or $(EMULATOR) is not installed")
ifneq ($(filter no,$(AARCH64))$(filter arm,$(ISA_DIR)),)
CROSS_TESTS :=
endif

# Against the Python packages tokenizers and jinja2; without them each script counts as a skip.
DIFF_TESTS := $(if $(shell command -v $(PYTHON) 2>/dev/null),\
  "$(PYTHON) tests/diff/tokenizer.py $(BUILD)/tests/diff/tokenize --strings 20000" \
  "$(PYTHON) tests/diff/template.py $(BUILD)/tests/diff/render -n 4000",\
  "skip tests/diff: $(PYTHON) is not installed")

REPLAY_TESTS = $(foreach f,$(FUZZ),"$(BUILD)/tests/fuzz/replay_$(f) tests/fuzz/corpus/$(f)")
# Under a sanitizer, too, an allocation that is too large returns NULL.
SAN_ENV = $(foreach s,ASAN MSAN TSAN,$(s)_OPTIONS=allocator_may_return_null=1)
RUN = $(if $(SAN),$(SAN_ENV)) BUILD='$(BUILD)' CC='$(CC)' SAN='$(SAN)' SANFLAGS='$(SANFLAGS)' DEBUG='$(DEBUG)' sh tools/run_tests.sh

test:
	@sh tools/install_deps.sh test
	@+$(MAKE) --no-print-directory run-tests
run-tests: all tests
	@+$(if $(and $(CROSS_TOOLS),$(CROSS_TESTS)),$(MAKE) --no-print-directory BUILD=$(CROSS) CC=$(CROSS_CC) \
	  AR=$(CROSS_CC:gcc=ar) LDFLAGS=-static STANDIN=1 $(CROSS_PROGS))
	@$(RUN) $(CMOCKAS) $(KERNELS) $(REPLAY_TESTS) $(DIFF_TESTS) $(CROSS_TESTS) $(SCRIPTS:%="sh %")

# The poisoning of debug builds is on under the sanitizers.
asan:
	@+$(MAKE) test BUILD=build/asan SAN=address DEBUG=1 AARCH64=no
ubsan:
	@+$(MAKE) test BUILD=build/ubsan SAN=undefined DEBUG=1 AARCH64=no
tsan:
	@+$(MAKE) test BUILD=build/tsan SAN=thread DEBUG=1 AARCH64=no
# MemorySanitizer (clang has it, gcc does not) takes what an uninstrumented library wrote for uninitialised: hence the
# stand-in for cmocka, and only the heart.
msan:
	@sh tools/install_deps.sh fuzz
	@+$(MAKE) run-msan BUILD=build/msan SAN=memory DEBUG=1 CC=clang STANDIN=1
run-msan: tests
	@$(RUN) $(CMOCKAS) $(KERNELS) $(REPLAY_TESTS) "skip the engine: its libraries are not built for MemorySanitizer"

# libFuzzer keeps what it finds in build/fuzz/corpus; a failing input belongs in tests/fuzz/corpus once it is fixed.
fuzz:
	@sh tools/install_deps.sh fuzz
	@+$(MAKE) run-fuzz BUILD=build/fuzz SAN=address,undefined DEBUG=1 CC=clang CFLAGS=-fsanitize=fuzzer-no-link
run-fuzz: $(FUZZERS)
	@set -e; for f in $(FUZZ); do mkdir -p $(BUILD)/corpus/$$f; \
	  $(BUILD)/tests/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/crash-$$f- $(BUILD)/corpus/$$f tests/fuzz/corpus/$$f; done

check:
	@sh tools/install_deps.sh check
	@+$(MAKE) --no-print-directory lib $(ENGINE) $(SHARED)
	@BUILD='$(BUILD)' CC='$(CC)' sh tools/check.sh

# ---- use -----------------------------------------------------------------------------------------------------------

bench: all
	$(BUILD)/gdn bench --ops
run:
	@sh tools/install_deps.sh run
	@+$(MAKE) --no-print-directory $(BUILD)/gdn
	$(BUILD)/gdn run --chat -p 'What is 12 + 30?'

install: $(LIB) $(ENGINE) $(SHARED) $(CLI)
	install -d $(DESTDIR)$(PREFIX)/include/gdn $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/gdn
	install -m 644 $(LIB) $(ENGINE) $(DESTDIR)$(LIBDIR)
	set -e; for name in $(basename $(notdir $(SHARED))); do \
	  install -m 755 $(BUILD)/$$name.so.$(VERSION) $(DESTDIR)$(LIBDIR); \
	  ln -sf $$name.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$$name.so.$(SOVERSION); \
	  ln -sf $$name.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/$$name.so; done
	set -e; for name in gdn $(if $(ENGINE),gdn-engine); do \
	  sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' $$name.pc.in \
	    >$(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc; done
	$(if $(CLI),install -m 755 $(CLI) $(DESTDIR)$(PREFIX)/bin)
	install -d $(DESTDIR)$(DEMO_DIR)
	install -m 644 $(wildcard models/demo/*) $(DESTDIR)$(DEMO_DIR)

clean:
	rm -rf $(BUILD)

define HELP
make            the libraries, the program gdn and the examples, in $(BUILD) (installs a compiler, jansson, utf8proc
                and libedit if they are missing; `make lib` needs the compiler alone)
make run        build, and answer a prompt with the model that ships (installs what is missing)
make test       build and run all tests (installs cmocka, the aarch64 tools, tokenizers and jinja2 if they are missing)
make check      format, layers, symbols, sizes, headers and the static analysers
make bench      time every operation at every CPU level
make install    headers, both libraries with their .pc, gdn and the demo model below DESTDIR and PREFIX ($(PREFIX))
make asan | ubsan | tsan | msan      the tests under a sanitizer
make fuzz       libFuzzer on every target, FUZZ_SECONDS ($(FUZZ_SECONDS)) each
make clean

BUILD=dir   where to build              CC=clang    gcc >= 12 or clang >= 14
WERROR=1    warnings are errors         DEBUG=1     -O1 and -DGDN_DEBUG, in build/debug
AARCH64=no  test without emulation          V=1         show the commands
endef
help:
	$(info $(HELP))@:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
