# The only makefile. GNU make, no recursion; every list of sources is a wildcard, so that adding a file
# needs no change here. `make help` lists the targets.
#
# Variables a caller may set:
#   CC, CFLAGS, CPPFLAGS, LDFLAGS   as usual; CC=clang works too
#   V=1          show the commands          WERROR=1    warnings are errors
#   BUILD=DIR    where everything is built  FILTER=PAT  run only test programs whose path contains PAT
#   T=SECONDS    length of a fuzz run       PREFIX, DESTDIR  where to install
#
# Four variants of the same sources are built side by side:
#   $(BUILD)       the product
#   $(BUILD)/san   with AddressSanitizer and UndefinedBehaviorSanitizer
#   $(BUILD)/cov   with coverage counters (gcc, whose data gcovr reads)
#   $(BUILD)/fuzz  with libFuzzer and the sanitizers (clang)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

VERSION := $(shell cat VERSION)
BUILD   := build
CFLAGS  ?= -O2 -g
T       ?= 60

# ---- tools and flags ------------------------------------------------------------------------------

PKG_CONFIG ?= pkg-config
INSTALL    ?= install
FUZZ_CC    ?= clang
COV_CC     ?= gcc

PACKAGES   := yaml-0.1 libpcre2-8
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)
# For tui/curses.c alone.
TERM_CFLAGS := $(shell $(PKG_CONFIG) --cflags ncursesw 2>/dev/null)
TERM_LIBS  := $(shell $(PKG_CONFIG) --libs ncursesw 2>/dev/null)
FUZZ_LIBS  := $(shell $(PKG_CONFIG) --libs jansson 2>/dev/null)
TEST_LIBS  := $(shell $(PKG_CONFIG) --libs cmocka 2>/dev/null)

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wformat=2 -Wundef -Wwrite-strings $(if $(filter 1,$(WERROR)),-Werror)

# What every compilation sees, and what clang-tidy is told.
ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L -DVP_VERSION='"$(VERSION)"' -I. \
             $(PKG_CFLAGS) $(CPPFLAGS) $(WARNINGS) $(CFLAGS)
ALL_LIBS   = $(PKG_LIBS) -lm $(LDLIBS)

SAN_FLAGS  := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
COV_FLAGS  := -O0 --coverage
FUZZ_FLAGS := $(SAN_FLAGS) -fsanitize=fuzzer-no-link

# A sanitizer report must not look like one of the program's own exit codes (0 to 4).
SAN_ENV := ASAN_OPTIONS=exitcode=99:detect_leaks=1 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1

# $(call quiet,WHAT,PATH) prints "WHAT PATH" in front of a command, or lets V=1 show the command.
ifeq ($(V),1)
quiet =
else
quiet = @echo "$1 $2";
endif

# $(call stamp,TEXT) as a recipe: the target holds TEXT and is written only when that changes. What
# depends on the target is then rebuilt after a change of flags, or of the list of sources.
define stamp
@mkdir -p $(@D)
@echo $1 >$@.new; if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
endef

# ---- sources --------------------------------------------------------------------------------------

# The library is all but the command line: the planner, the renderers, the public API.
LIB_SRC    := $(sort $(wildcard planner/*/*.c) $(wildcard reports/*.c) $(wildcard api/*.c))
CLI_SRC    := $(sort $(wildcard cli/*.c))
# The terminal interface; what draws and thinks is linked to its tests too, the terminal itself not.
TUI_SRC    := $(sort $(filter-out tui/curses.c,$(wildcard tui/*.c)))
TERM_SRC   := $(wildcard tui/curses.c)
# The probe is a program of its own; all but its main is a library too, for the tests.
PROBE_SRC  := $(sort $(filter-out probe/probe_main.c,$(wildcard probe/*.c probe/kernels/generated/*.c)))
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c))
# Helpers shared by the unit tests: linked into each of them.
HELP_SRC   := $(filter-out $(UNIT_SRC),$(sort $(wildcard tests/unit/*.c)))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC  := $(sort $(wildcard bench/*.c))

CLI_TESTS := $(sort $(wildcard tests/cli/*.t))
ACC_TESTS := $(sort $(wildcard tests/accuracy/*.t))

# Folders that hold C, for the layer check and the formatter.
C_DIRS  := $(wildcard planner reports api cli tui probe include tests bench)
C_FILES  = $(shell find $(C_DIRS) -name '*.[ch]' | LC_ALL=C sort)

# The binary stands at the top of the tree, except in a build that goes elsewhere (BUILD=...).
BIN     := $(if $(filter build,$(BUILD)),vramplan,$(BUILD)/vramplan)
SAN_BIN := $(BUILD)/san/vramplan-asan
COV_BIN := $(BUILD)/cov/vramplan

# Beside the program, which finds it there.
probe_of   = $(if $(filter vramplan,$1),,$(dir $1))vramplan-probe
PROBE_BIN := $(call probe_of,$(BIN))
SAN_PROBE := $(call probe_of,$(SAN_BIN))
COV_PROBE := $(call probe_of,$(COV_BIN))

UNIT_BIN     := $(UNIT_SRC:%.c=$(BUILD)/%)
SAN_UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/san/%)
COV_UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/cov/%)
FUZZ_BIN     := $(FUZZ_SRC:%.c=$(BUILD)/fuzz/%)
# Tests that do more when LONG is set.
LONG_TESTS    = $(shell grep -l '\<LONG\>' $(CLI_TESTS) $(ACC_TESTS))
LONG_UNIT_BIN = $(patsubst %.c,$(BUILD)/%,$(shell grep -l '"LONG"' $(UNIT_SRC)) tests/unit/test_deploy.c)
BENCH_BIN    := $(BENCH_SRC:%.c=$(BUILD)/%)

# ---- rules ----------------------------------------------------------------------------------------

all: $(BUILD)/libvramplan.a $(BIN) $(PROBE_BIN) ## Build the library and the programs (the default)

# $(call variant,FOLDER,COMPILER,FLAGS,BINARY): the rules of one variant. `$$` is what make sees as `$`
# when it reads the expanded text.
define variant
$1/%.o: %.c $1/flags
	@mkdir -p $$(@D)
	$$(call quiet,CC,$$<)$2 $$(ALL_CFLAGS) $3 -MMD -MP -c -o $$@ $$<

$1/flags: FORCE need-libraries
	$$(call stamp,$2 $$(ALL_CFLAGS) $3 $$(LDFLAGS) $$(ALL_LIBS))

$1/sources: FORCE
	$$(call stamp,$$(LIB_SRC) $$(CLI_SRC) $$(TUI_SRC) $$(TERM_SRC) $$(PROBE_SRC) $$(HELP_SRC))

$1/libvramplan.a: $$(LIB_SRC:%.c=$1/%.o) $1/sources
	$$(call quiet,AR,$$@)rm -f $$@ && $$(AR) rcs $$@ $$(filter %.o,$$^)

$1/libtui.a: $$(TUI_SRC:%.c=$1/%.o) $1/sources
	$$(call quiet,AR,$$@)rm -f $$@ && $$(AR) rcs $$@ $$(filter %.o,$$^)

$4: $$(CLI_SRC:%.c=$1/%.o) $$(TERM_SRC:%.c=$1/%.o) $1/libtui.a $1/libvramplan.a
	$$(call quiet,LD,$$@)$2 $$(CFLAGS) $3 $$(LDFLAGS) -o $$@ $$^ $$(TERM_LIBS) $$(ALL_LIBS)

$1/tui/curses.o: PKG_CFLAGS += $$(TERM_CFLAGS)

# The processor's kernels: OpenMP where the compiler has it, and products joined with their sums.
$1/openmp: $1/flags
	@echo '#include <omp.h>' | $2 $$(CFLAGS) $3 -fopenmp -x c -c -o /dev/null - 2>/dev/null && \
	  echo 'int main(void) { return 0; }' | $2 $$(CFLAGS) $3 -fopenmp -x c -o /dev/null - 2>/dev/null && \
	  echo -fopenmp >$$@ || : >$$@

$1/probe/cpu_%.o: probe/cpu_%.c $1/flags $1/openmp
	@mkdir -p $$(@D)
	$$(call quiet,CC,$$<)$2 $$(ALL_CFLAGS) $3 -ffp-contract=fast $$$$(cat $1/openmp) -MMD -MP -c -o $$@ $$<

$1/libprobe.a: $$(PROBE_SRC:%.c=$1/%.o) $1/sources
	$$(call quiet,AR,$$@)rm -f $$@ && $$(AR) rcs $$@ $$(filter %.o,$$^)

$(call probe_of,$4): $1/probe/probe_main.o $1/libprobe.a $1/libvramplan.a
	$$(call quiet,LD,$$@)$2 $$(CFLAGS) $3 $$(LDFLAGS) -o $$@ $$^ $$$$(cat $1/openmp) -lm -ldl $$(LDLIBS)

$$(UNIT_SRC:%.c=$1/%.o) $$(HELP_SRC:%.c=$1/%.o): | need-cmocka

$$(UNIT_SRC:%.c=$1/%): %: %.o $$(HELP_SRC:%.c=$1/%.o) $1/libprobe.a $1/libtui.a $1/libvramplan.a
	$$(call quiet,LD,$$@)$2 $$(CFLAGS) $3 $$(LDFLAGS) -o $$@ $$^ $$$$(cat $1/openmp) $$(TEST_LIBS) $$(ALL_LIBS) -ldl

-include $$(patsubst %.c,$1/%.d,$$(LIB_SRC) $$(CLI_SRC) $$(TUI_SRC) $$(TERM_SRC) $$(PROBE_SRC) probe/probe_main.c $$(UNIT_SRC) $$(HELP_SRC))
endef

$(eval $(call variant,$(BUILD),$$(CC),,$(BIN)))
$(eval $(call variant,$(BUILD)/san,$$(CC),$$(SAN_FLAGS),$(SAN_BIN)))
$(eval $(call variant,$(BUILD)/cov,$$(COV_CC),$$(COV_FLAGS),$(COV_BIN)))
$(eval $(call variant,$(BUILD)/fuzz,$$(FUZZ_CC),$$(FUZZ_FLAGS),$(BUILD)/fuzz/vramplan))

$(FUZZ_BIN): %: %.o $(BUILD)/fuzz/libvramplan.a
	$(call quiet,LD,$@)$(FUZZ_CC) $(CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(FUZZ_LIBS) $(ALL_LIBS)

$(BENCH_BIN): %: %.o $(BUILD)/libvramplan.a
	$(call quiet,LD,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LIBS)

-include $(FUZZ_BIN:%=%.d) $(BENCH_BIN:%=%.d)

# A missing library is said here, in words, and not by the compiler.
need-libraries:
	@command -v $(PKG_CONFIG) >/dev/null || { \
	  echo "error: $(PKG_CONFIG) not found; Debian: pkg-config (./bootstrap deps installs it)" >&2; exit 1; }
	@$(PKG_CONFIG) --exists $(PACKAGES) ncursesw || { \
	  echo "error: pkg-config does not find all of: $(PACKAGES) ncursesw" >&2; \
	  echo "       Debian: libyaml-dev libpcre2-dev libncurses-dev (./bootstrap deps installs them)" >&2; exit 1; }

need-cmocka:
	@$(PKG_CONFIG) --exists cmocka || { \
	  echo "error: the unit tests need cmocka; Debian: libcmocka-dev (./bootstrap deps installs it)" >&2; \
	  exit 1; }

FORCE:

# ---- tests ----------------------------------------------------------------------------------------

# Stand-ins for the libraries of GPUs, built once for all tests. Not with the sanitizers, which a
# library must not bring along.
FAKES     := $(BUILD)/fakes
FAKES_SRC := tests/fakes/build $(wildcard tests/fakes/*.[ch] probe/kernels/*.h) probe/fp8.c probe/fp8.h \
             probe/kernel_entries.def

$(FAKES)/built: $(FAKES_SRC)
	$(call quiet,CC,$(FAKES))CC='$(CC)' tests/fakes/build '$(FAKES)' && touch $@

RUN_TESTS = VRAMPLAN_FAKES='$(abspath $(FAKES))' tests/run $(if $(FILTER),--filter '$(FILTER)')

check: all layers $(UNIT_BIN) $(FAKES)/built ## Build, then run the layer check and all unit, command-line and accuracy tests
	@VRAMPLAN='$(abspath $(BIN))' $(RUN_TESTS) $(UNIT_BIN) $(CLI_TESTS) $(ACC_TESTS)

check-san: $(SAN_BIN) $(SAN_PROBE) $(SAN_UNIT_BIN) $(FAKES)/built ## The same tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(SAN_ENV) VRAMPLAN='$(abspath $(SAN_BIN))' $(RUN_TESTS) $(SAN_UNIT_BIN) $(CLI_TESTS) $(ACC_TESTS)

check-long: T := 30
check-long: COV_GATE := --fail-under-branch 90
check-long: memcheck find-long tests-long fuzz coverage ## valgrind, fit against enumeration, the long halves of tests, 30 s of each fuzz target, 90 % branch coverage of the memory path

tests-long: all $(LONG_UNIT_BIN) $(FAKES)/built ## The tests that have a long half, with it: GPU kernels, queueing theory to 1 %, pages in a browser, a local Slurm, ...
	@LONG=1 TEST_TIMEOUT=900 VP_DEPLOY_ROUNDS=10 VRAMPLAN='$(abspath $(BIN))' $(RUN_TESTS) $(LONG_UNIT_BIN) $(LONG_TESTS)

check-kernels: all ## The compiled GPU kernels against their source, byte by byte
	@LONG=1 VRAMPLAN='$(abspath $(BIN))' $(RUN_TESTS) tests/cli/kernels.t

find-long: $(BUILD)/tests/unit/test_find ## fit against enumeration on 200 random scenarios
	@VP_FIND_ROUNDS=200 $<

# Exit codes 0, 1 and 3 are verdicts of the plan; 99 is valgrind's.
VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full
PLAN     := examples.yaml

memcheck: all $(UNIT_BIN) ## valgrind on the unit tests and on one plan (PLAN=examples.yaml)
	@TEST_WRAP='$(VALGRIND)' TEST_TIMEOUT=600 $(RUN_TESTS) $(UNIT_BIN)
	@echo "valgrind $(BIN) plan $(PLAN)"; $(VALGRIND) $(abspath $(BIN)) plan $(PLAN) >/dev/null; \
	case $$? in 0|1|3) ;; *) echo "error: the plan ended with $$?" >&2; exit 1;; esac

layers: ## Check the includes, the file names and "planner/ does not print" against docs/layers.txt
	@awk -f tests/layers.awk docs/layers.txt \
	  $$(find $(C_DIRS) -name '*.[ch]' -o -name '*.def' | LC_ALL=C sort)

kernels: ## Compile the probe's GPU kernels anew (clang 19 and 22 with lld); the result is kept in the tree
	probe/kernels/generate probe/kernels/generated

docs: all ## Renew the pages that the program prints: formulas, diagnostics, manual, completion
	@mkdir -p docs/man
	./$(BIN) help --formulas -o docs/FORMULAS.md
	./$(BIN) help --diagnostics -o docs/DIAGNOSTICS.md
	./$(BIN) help --man -o docs/man/vramplan.1
	./$(BIN) help --completion -o packaging/vramplan.bash

golden: all $(FAKES)/built ## Run the command-line tests so that they rewrite their expected output; review the diff
	@GOLDEN_UPDATE=1 VRAMPLAN='$(abspath $(BIN))' $(RUN_TESTS) $(CLI_TESTS)

# libFuzzer writes what it finds into the first folder and only reads the second, the kept corpus.
fuzz: $(FUZZ_BIN) ## Fuzz each target for T seconds (T=60) from its kept corpus; T=0 only replays the corpus
	@failed=; for target in $(FUZZ_BIN); do \
	  name=$${target##*/fuzz_}; found=$(BUILD)/fuzz/found/$$name; kept=tests/fuzz/corpus/$$name; \
	  mkdir -p $$found; [ -d $$kept ] || kept=; \
	  if [ $(T) = 0 ]; then limit=-runs=0; found=; else limit=-max_total_time=$(T); fi; \
	  if $$target $$limit -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/fuzz/$$name- $$found $$kept >$$target.log 2>&1; \
	  then echo "ok    $$target $$(awk '/number_of_executed_units/ { print "(" $$2 " inputs)" }' $$target.log)"; \
	  else failed="$$failed $$name"; cat $$target.log; echo "FAIL  $$target"; fi; \
	done; \
	if [ -n "$$failed" ]; then echo "error: fuzzing failed:$$failed" >&2; exit 1; fi

# An assert states what cannot happen, so its other branch is not counted.
coverage: $(COV_BIN) $(COV_PROBE) $(COV_UNIT_BIN) $(FAKES)/built ## Branch coverage of planner/memory and planner/ops by the unit and command-line tests
	@find $(BUILD)/cov -name '*.gcda' -exec rm {} +
	@VRAMPLAN='$(abspath $(COV_BIN))' $(RUN_TESTS) $(COV_UNIT_BIN) $(CLI_TESTS)
	@gcovr --root . --branches --exclude-branches-by-pattern '.*\bassert\(.*' $(COV_GATE) \
	  --filter planner/memory/ --filter planner/ops/ $(BUILD)/cov

bench: all $(BENCH_BIN) ## Build the benchmarks and run them (bench/run where it exists)
	@if [ -x bench/run ]; then VRAMPLAN='$(abspath $(BIN))' BENCH_DIR='$(abspath $(BUILD))/bench' bench/run; \
	else for program in $(BENCH_BIN); do echo "$$program"; $$program || exit 1; done; fi

# ---- install --------------------------------------------------------------------------------------

PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
COMPDIR    ?= $(DATADIR)/bash-completion/completions

# These two are generated and may not be there.
MANPAGE    := $(wildcard docs/man/vramplan.1)
COMPLETION := $(wildcard packaging/vramplan.bash)

install: all ## Install under $(DESTDIR)$(PREFIX), by default /usr/local
	$(INSTALL) -D -m 755 $(BIN) '$(DESTDIR)$(BINDIR)/vramplan'
	$(INSTALL) -D -m 755 $(PROBE_BIN) '$(DESTDIR)$(BINDIR)/vramplan-probe'
	$(INSTALL) -D -m 644 $(BUILD)/libvramplan.a '$(DESTDIR)$(LIBDIR)/libvramplan.a'
	$(INSTALL) -D -m 644 include/vramplan.h '$(DESTDIR)$(INCLUDEDIR)/vramplan.h'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	  -e 's|@DATADIR@|$(DATADIR)|' -e 's|@VERSION@|$(VERSION)|' \
	  packaging/vramplan.pc.in >$(BUILD)/vramplan.pc
	$(INSTALL) -D -m 644 $(BUILD)/vramplan.pc '$(DESTDIR)$(LIBDIR)/pkgconfig/vramplan.pc'
	find profiles -type f -exec \
	  sh -c 'for f; do $(INSTALL) -D -m 644 "$$f" "$(DESTDIR)$(DATADIR)/vramplan/$$f" || exit 1; done' sh {} +
	$(if $(MANPAGE),$(INSTALL) -D -m 644 $(MANPAGE) '$(DESTDIR)$(MANDIR)/man1/vramplan.1')
	$(if $(COMPLETION),$(INSTALL) -D -m 644 $(COMPLETION) '$(DESTDIR)$(COMPDIR)/vramplan')

uninstall: ## Remove what install put there
	rm -f '$(DESTDIR)$(BINDIR)/vramplan' '$(DESTDIR)$(BINDIR)/vramplan-probe' \
	  '$(DESTDIR)$(LIBDIR)/libvramplan.a' \
	  '$(DESTDIR)$(INCLUDEDIR)/vramplan.h' '$(DESTDIR)$(LIBDIR)/pkgconfig/vramplan.pc' \
	  '$(DESTDIR)$(MANDIR)/man1/vramplan.1' '$(DESTDIR)$(COMPDIR)/vramplan'
	rm -rf '$(DESTDIR)$(DATADIR)/vramplan'

dist: ## Pack the committed tree as build/vramplan-VERSION.tar.gz
	@mkdir -p $(BUILD)
	git archive --format=tar.gz --prefix=vramplan-$(VERSION)/ \
	  --output=$(BUILD)/vramplan-$(VERSION).tar.gz HEAD

# ---- housekeeping ---------------------------------------------------------------------------------

format: ## Lay out all C files with clang-format
	clang-format -i $(C_FILES)

tidy: need-libraries ## Run clang-tidy (settings in .clang-tidy) on the product's C files
	clang-tidy --quiet $(LIB_SRC) $(CLI_SRC) $(TUI_SRC) $(TERM_SRC) $(filter-out probe/kernels/%,$(PROBE_SRC)) -- $(ALL_CFLAGS)

clean: ## Remove everything that was built
	rm -rf $(BUILD) $(BIN) $(PROBE_BIN)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' Makefile

.PHONY: all docs kernels check check-kernels check-san check-long memcheck find-long tests-long layers golden fuzz coverage bench install uninstall \
        dist format tidy clean help need-libraries need-cmocka FORCE
