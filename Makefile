# Everything that a person or the CI does with this repository. Each target installs what it lacks and says so.
#
#   make serve ARGS="--port 9090"     build for speed and serve
#   make test                         all tests
#   make fuzz TARGET=json SECONDS=600   look for inputs that break a promise (docs/reference/abuse.md)
#   make traffic SECONDS=3600         random traffic with a model that knows each answer; traffic-sanitized for a debug build
#   make sanitize                     the Swift tests under ThreadSanitizer and AddressSanitizer
#   make test-deep                    ThreadSanitizer on the store and the server, each fuzz target for a moment
#   make test-threads test-fuzz       the same in a short form, as CI runs it
#   make bench ARGS="get --runs 5"    measure
#   make check-package                build and run a package that depends on this one by its URL
#   make format                       format the sources in place
#   make lint                         what CI checks of the sources' form
#   make docs                         the API's documentation, three sites in dist/docs
#   make release                      for others, in dist/: the programs, and an archive of what is installed
#   make deb                          the Debian package, in dist/
#   make check-release                try both in fresh Debian and Ubuntu systems; needs root and debootstrap
#   make setup                        only install what is missing

# Arguments for the program that a target runs.
ARGS ?=
# Arguments for every call of SwiftPM, for example --scratch-path.
SWIFT_FLAGS ?=
export SWIFT_FLAGS
# How many requests `make test` compares with Google's emulator, where that is installed.
DIFFERENTIAL_REQUESTS ?= 3000

# How long `make test-fuzz` gives each fuzz target; how it builds them: `debug` takes a third of the time of `release`, and is
# slower at what it does; and what it says to libFuzzer besides.
FUZZ_SECONDS ?= 8
FUZZ_CONFIGURATION ?= release
FUZZ_FLAGS ?=
# Whose seams are looked at by ThreadSanitizer in `make test-deep`.
THREAD_TARGETS ?= HearthConcurrencyTests HearthEngineTests HearthDocumentsTests HearthSQLiteTests HearthHostTests HearthFirestoreServerTests
# Those of their suites that are about threads, without the long ones, for `make test-threads`. Seeded interleavings run a
# thread at a time and order all of them, so that ThreadSanitizer has nothing to see there.
THREAD_SUITES ?= $(CONCURRENCY_SUITES)|$(STORAGE_SUITES)|$(SERVER_SUITES)
CONCURRENCY_SUITES := WorkerThreadTests|WorkerGroupTests|MailboxTests|MemoryBudgetTests
STORAGE_SUITES := ChangeHubTests|ClockTests|DeferredStoreTests|FairCommitTests|FairnessTests|LongReadsTests|$\
	SerializabilityTests|StoreFailureTests|TransactionTests|$\
	CheckpointerTests|LogResetTests|PageCacheTests|ReaderPoolTests|StoreHealthTests
SERVER_SUITES := AdminDatabaseTests|ListenBoundaryTests|ListenResumeTests|ListenResumeQueueTests|LogWriterTests|$\
	MessageStreamTests|RegistryTests|SessionTableTests|StreamRequestTests|WorkingMemoryTests

VENV := .venv
TIMED := Tools/scripts/timed.sh
TEST_TARGETS := $(filter Hearth%Tests,$(notdir $(wildcard Tests/*))) HearthEndToEndTests
SOURCES := $(wildcard Core Server Rules Bundler Client Tools Tests Package.swift)
# Access to class properties is checked in debug builds; here it would cost a query 3 % of its time. The folder is another one
# than that of the tests, so that both can be built at a time. Tests and releases have the same program.
RELEASE := env $$(Tools/scripts/static-re2.sh) swift build --scratch-path .build/speed $(SWIFT_FLAGS) --configuration release \
	--static-swift-stdlib -Xswiftc -enforce-exclusivity=unchecked --product hearth
# The bench drives servers that it starts from the program beside it.
RELEASE_BENCH := $(RELEASE)-bench
# Packaging compiles nothing. HEARTH_COMMIT is for sources without a repository.
PACKAGE := Tools/scripts/package.sh
HEARTH_COMMIT ?=
export HEARTH_COMMIT

.PHONY: setup setup-build serve test test-builds test-swift test-python test-deep deep-builds test-threads test-fuzz fuzz traffic traffic-sanitized sanitize bench check-package format lint docs release deb check-release clean

setup:
	@Tools/scripts/setup.sh all

setup-build:
	@Tools/scripts/setup.sh build

serve: setup-build
	$(RELEASE)
	exec "$$($(RELEASE) --show-bin-path)/hearth" serve $(ARGS)

bench: setup-build
	$(RELEASE)
	$(RELEASE_BENCH)
	exec "$$($(RELEASE) --show-bin-path)/hearth-bench" $(ARGS)

test: setup test-builds test-swift test-python
	@$(TIMED) --summary

# Both of the large builds at once: each keeps only one core busy for long.
test-builds: setup-build
	@rm -f .build/suite-seconds .build/skipped-tests
	@TIMED_MINUTES=60 $(TIMED) "build of the Swift tests" swift build $(SWIFT_FLAGS) --build-tests & tests=$$!; \
	TIMED_MINUTES=60 $(TIMED) "build for speed" $(RELEASE); speed=$$?; \
	wait $$tests && exit $$speed

test-swift: setup-build
	@TIMED_MINUTES=60 $(TIMED) "build of the Swift tests" swift build $(SWIFT_FLAGS) --build-tests
	@# One target after the other: some compute for long, and others measure the latency of a socket.
	@for target in $(TEST_TARGETS); do \
		$(TIMED) "$$target" Tools/scripts/test-swift.sh "$$target" $(SWIFT_FLAGS) || exit 1; \
	done

# The judges from outside, against the program as users run it: Google's own Python client end to end, then the same
# requests to Google's emulator.
test-python: setup
	@TIMED_MINUTES=60 $(TIMED) "build for speed" $(RELEASE)
	@TIMED_MINUTES=60 $(TIMED) "build of the bench" $(RELEASE_BENCH)
	@TIMED_MINUTES=60 $(TIMED) "build of an example" $(subst --product hearth,--product hearth-change-copy,$(RELEASE))
	@HEARTH_BINARY="$$($(RELEASE) --show-bin-path)/hearth" \
		Tools/scripts/test-python.sh "$(VENV)" "$(DIFFERENTIAL_REQUESTS)"

# The order of threads and the form of input are left to chance by all other tests.
test-deep: setup-build
	@$(TIMED) "ThreadSanitizer" Tools/scripts/sanitize.sh thread $(THREAD_TARGETS) HearthServerTests
	@$(MAKE) --no-print-directory test-fuzz

# What the next two build, at once.
deep-builds: setup-build
	@FUZZ_CONFIGURATION=$(FUZZ_CONFIGURATION) $(TIMED) "build for fuzzing" Tools/scripts/fuzz.sh --build & fuzz=$$!; \
	$(TIMED) "build for ThreadSanitizer" Tools/scripts/sanitize.sh --build thread $(THREAD_TARGETS); threads=$$?; \
	wait $$fuzz && exit $$threads

test-threads: setup-build
	@SUITES='$(THREAD_SUITES)' $(TIMED) "ThreadSanitizer" Tools/scripts/sanitize.sh thread $(THREAD_TARGETS)
	@$(TIMED) --summary

test-fuzz: setup-build
	@FUZZ_CONFIGURATION=$(FUZZ_CONFIGURATION) $(TIMED) "build for fuzzing" Tools/scripts/fuzz.sh --build
	@# As many at a time as there are cores: each computes on one, and measures nothing.
	@export FUZZ_BUILT=yes FUZZ_CONFIGURATION=$(FUZZ_CONFIGURATION); \
	printf '%s\n' $(patsubst Tests/Fuzz/%/seeds,%,$(wildcard Tests/Fuzz/*/seeds)) | \
	xargs -P "$$(nproc)" -I '{}' Tools/scripts/fuzz-briefly.sh '{}' "$(FUZZ_SECONDS)" $(FUZZ_FLAGS)
	@$(TIMED) --summary

TARGET ?= protobuf
SECONDS ?= 600
# The seed of random traffic; by chance if it is empty.
TRAFFIC_SEED ?=
export TRAFFIC_SEED

fuzz: setup-build
	@Tools/scripts/fuzz.sh "$(TARGET)" "$(SECONDS)"

traffic: setup
	$(RELEASE)
	$(subst --product hearth,--product hearth-traffic,$(RELEASE))
	@TIMED_MINUTES=$$(($(SECONDS) / 60 + 30)) $(TIMED) "random traffic" Tools/scripts/traffic.sh "$$($(RELEASE) --show-bin-path)" "$(SECONDS)" "$(VENV)"

traffic-sanitized: setup
	@Tools/scripts/traffic.sh --sanitized "$(SECONDS)" "$(VENV)"

sanitize: setup-build
	@Tools/scripts/sanitize.sh

# What is committed, as a package outside of this repository sees it.
check-package: setup-build
	$(RELEASE)
	@Tools/scripts/check-package.sh "$$($(RELEASE) --show-bin-path)/hearth"

format:
	swift format --in-place --recursive --parallel $(SOURCES)

lint:
	swift format lint --strict --recursive --parallel $(SOURCES)
	@Tools/scripts/check-docs.sh
	@Tools/scripts/check-links
	@Tools/scripts/check-words.sh
	@Tools/scripts/check-docstrings --self-test
	@Tools/scripts/check-docstrings
	@Tools/scripts/check-docstrings --package Bundler
	@if ! command -v shellcheck >/dev/null; then echo "shellcheck is not installed: the scripts are not checked"; \
	else shellcheck --severity=warning .ci/run Tools/scripts/*.sh packaging/debian/p*; fi

docs: setup-build
	@Tools/scripts/docs.sh

release: setup-build
	$(RELEASE)
	$(RELEASE_BENCH)
	mkdir -p dist
	$(PACKAGE) program "$$($(RELEASE) --show-bin-path)/hearth" dist/hearth
	$(PACKAGE) program "$$($(RELEASE) --show-bin-path)/hearth-bench" dist/hearth-bench
	$(PACKAGE) tarball "$$($(RELEASE) --show-bin-path)/hearth"

deb: setup-build
	$(RELEASE)
	$(PACKAGE) deb "$$($(RELEASE) --show-bin-path)/hearth"

# Of what `make release deb` has made.
check-release:
	Tools/scripts/check-release.sh dist/*.tar.gz dist/*.deb

clean:
	rm -rf .build dist $(VENV)
