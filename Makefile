# The front door. Meson does the work; this file gives it names.
#   make           build everything into build/
#   make check     the tests that need no cluster            (about two minutes)
#   make test      everything, with a real API server        (the first run builds one)
#   make cluster   a Kubernetes of its own to try things on; cluster-down ends it   (docs/cluster.md)
#   make demo      the same gangs through the default scheduler and through Sluice, on a cluster of its own (REAL=1: then an MPI program on real nodes)
#   make demo-sim  the simulator in a second; no cluster
#   make soak      half an hour of churn, kills and restarts (SECONDS=180 for less)
#   make torture   sluiced killed at every write, 2 000 times on both stores (POINTS=100 for less)
#   make world     the daemon in a simulated cluster, millions of events a minute, every fault (SECONDS=60 SEED=7)
#   make world-honest  what a client sees of its model of Kubernetes and of a real API server, compared
#   make crash     the daemon with crash points (base/crash.h), for make torture
#   make operators MPIJob, JobSet and LeaderWorkerSet with their published controllers, CronJob: each a gang
#   make versions  gangs on Kubernetes 1.34, 1.35, 1.36 and 1.37 (compiles three of them: 10 minutes each; K8S=1.35.0 for one)
#   make real      gangs of real containers on real kubelets, LAMMPS over MPI among them (root, cgroup v1)
#   make churn     ten minutes of held work coming, changing and going (SECONDS=60 for less)
#   make asan      the tests of make check under the address and undefined-behaviour sanitizers
#   make bench     the tables of figures
#   make wheel     the Python package, into build/wheel
#   make rpc-go    the gRPC services with the Go library, grpcurl and h2spec (the first run builds them)
#   make fuzz      every parser on random input, ten minutes each (SECONDS=20 TARGETS="json yaml" for less)
#   make install   programs, library, manual pages, completions, units (prefix=/usr DESTDIR=/tmp/root)
#   make image     the container image, without a container engine: dist/*.oci.tar, and what is in it (docs/install.md)
#   make rootfs    its files alone, as a folder, for packaging/image/Dockerfile
#   make image-test  that it runs, what is in it, and that a second build gives the same digest
#   make release   the programs as they go into the image, into build-release/
#   make deb       packages of Debian, looked over by lintian, into dist/
#   make deb-test  installs, upgrades, removes and purges them in a Debian of their own (needs root)
#   make chart-test  the chart: installed, upgraded, rolled back, uninstalled; its roles against what the daemon asks
#   make install-test  docs/install.md as typed: the chart on real nodes, the packages on a Debian with systemd, the sources (root)
#   make heavy     all suites of these: image-, deb-, chart- and install-test, operators, real, rpc-go, versions (MINUTES=30: as many as fit)
#   make format    clang-format over everything; format-check only looks
#   make lint      layers, clang-tidy
#   make clean     remove the build directories
BUILD ?= build
ASAN  ?= build-asan
CRASH ?= build-crash
RELEASE ?= build-release
DIST ?= dist
export SLUICE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluice
MESON_FLAGS ?=
# The world meets other seeds with every commit, and the same ones whenever a commit is tested again.
export WORLD_COMMIT := $(shell git rev-parse HEAD 2>/dev/null)

.PHONY: all setup check asan test cluster cluster-down cluster-test demo soak churn torture real operators versions world world-honest crash demo-sim bench wheel rpc-go fuzz install format format-check lint clean help release image rootfs image-test deb deb-test chart-test install-test heavy

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

SETUP ?= all
setup:
	@tools/setup $(SETUP)

$(BUILD)/build.ninja: | setup
	meson setup $(BUILD) $(MESON_FLAGS) >/dev/null

$(ASAN)/build.ninja: | setup
	meson setup $(ASAN) -Db_sanitize=address,undefined -Db_lundef=false $(MESON_FLAGS) >/dev/null

$(CRASH)/build.ninja: | setup
	meson setup $(CRASH) -Dcrash_points=true $(MESON_FLAGS) >/dev/null

# As tested (-O2), without debug information and the paths of this machine, so that the same sources give the same programs.
$(RELEASE)/build.ninja: | setup
	meson setup $(RELEASE) -Doptimization=2 -Ddebug=false -Dwerror=false -Dc_args=-ffile-prefix-map=$(CURDIR)=. $(MESON_FLAGS) >/dev/null

crash: $(CRASH)/build.ninja
	@ninja -C $(CRASH) sluiced sluice

check: all
	@meson test -C $(BUILD) -t 4 --no-suite slow --print-errorlogs

asan: $(ASAN)/build.ninja
	@ninja -C $(ASAN)
	@meson test -C $(ASAN) -t 4 --no-suite slow --print-errorlogs

test: format-check check asan cluster-test

# NAME=... several at once; NODES=file.yaml their nodes; GANG=1 native gang scheduling on; REAL=n real nodes beside them (root);
# K8S=1.35.0 another Kubernetes
NAME ?= dev
cluster: | setup
	@$(if $(K8S),SLUICE_K8S=$(K8S)) hack/cluster/python -m cluster up --name $(NAME) $(if $(NODES),--nodes $(NODES)) $(if $(GANG),--gang) $(if $(REAL),--real $(REAL))

cluster-down:
	@hack/cluster/python -m cluster down --name $(NAME)

cluster-test: all crash
	@hack/cluster/build >/dev/null
	@hack/cluster/python -m pytest -q -n 2 --dist loadfile tests/cluster tests/kube tests/e2e tests/torture

chart-test: all
	@hack/cluster/build >/dev/null
	@hack/helm/build >/dev/null
	@hack/cluster/python -m pytest -q -s tests/chart

install-test: release
	@hack/cluster/build >/dev/null
	@hack/nodes/build >/dev/null
	@hack/helm/build >/dev/null
	@hack/cluster/python -m pytest -q -s tests/install

# What .ci/run runs behind `make test`.
heavy:
	@tools/heavy $(if $(MINUTES),--minutes $(MINUTES))

soak: all
	@hack/cluster/build >/dev/null
	@hack/cluster/python -m e2e.soak --seconds $(or $(SECONDS),1800) $(if $(SEED),--seed $(SEED))

torture: crash
	@hack/cluster/build >/dev/null
	@hack/cluster/python -m torture --points $(or $(POINTS),1000)

world: all
	@$(BUILD)/tests/world/world $(if $(SEED),--seed $(SEED),--reach tests/world/reach.txt --seconds $(or $(SECONDS),600)) $(if $(AGE),--age $(AGE))

# The same scripts against the model and a real API server.
world-honest: all
	@hack/cluster/build >/dev/null
	@hack/cluster/python -m pytest -q -s tests/world/test_honest.py

real: image
	@hack/cluster/build >/dev/null
	@hack/nodes/build mpi >/dev/null
	@hack/operators/build >/dev/null
	@DIST=$(DIST) hack/cluster/python -m pytest -q tests/real

operators: all
	@hack/cluster/build >/dev/null
	@hack/operators/build >/dev/null
	@hack/cluster/python -m pytest -q tests/operators

VERSIONS = 1.34.4 1.35.0 1.36.3 1.37.0
versions: all
	@for v in $(or $(K8S),$(VERSIONS)); do \
		echo "Kubernetes $$v"; SLUICE_K8S=$$v hack/cluster/build >/dev/null && \
		SLUICE_K8S=$$v hack/cluster/python -m pytest -q tests/versions || exit 1; \
	done

churn: all
	@hack/cluster/build >/dev/null
	@SLUICE_CHURN=$(or $(SECONDS),600) hack/cluster/python -m pytest -q -s tests/e2e/test_held_many.py -k churn

demo:
	@BUILD=$(BUILD) REAL=$(REAL) tools/demo

# The simulator alone: no cluster, a few seconds, ends with a page to look at.
demo-sim: all
	@tools/demo-sim

bench: all
	@bench/run

# For the tests of Python and Go clients, see docs/fluxion-clients.md.
wheel:
	@python/make-wheel $(BUILD)/wheel
	@ls $(BUILD)/wheel

rpc-go: all
	@SLUICE_RPC_TOOLS=$$(tests/rpc/tools) hack/cluster/python -m pytest -q tests/rpc/go_clients.py

fuzz: | setup
	@tools/fuzz $(SECONDS) $(TARGETS)

# DESTDIR=... below another root; prefix=/usr for a system of its own (default /usr/local)
install: all
	$(if $(prefix),meson configure $(BUILD) -Dprefix=$(prefix))
	meson install -C $(BUILD)

release: $(RELEASE)/build.ninja
	@ninja -C $(RELEASE) sluiced sluice

image: release
	@packaging/image/build $(RELEASE) $(DIST)

# The files of the image as a folder, for packaging/image/Dockerfile.
rootfs: release
	@packaging/image/build --rootfs $(RELEASE) $(DIST)

image-test: image
	@tests/install/image.py $(CURDIR) $(DIST)

deb:
	@tools/setup deb
	@packaging/deb $(DIST)

deb-test: deb
	@tests/install/deb $(DIST)

format: | setup
	@git ls-files '*.c' '*.h' | xargs -r clang-format-19 -i

format-check: | setup
	@git ls-files '*.c' '*.h' | xargs -r clang-format-19 --dry-run -Werror

lint: all
	@tools/layers
	@git ls-files 'src/*.c' | xargs -r -n 4 -P $(shell nproc) clang-tidy-19 -quiet -p $(BUILD) 2>/dev/null

clean:
	rm -rf $(BUILD) $(ASAN) $(CRASH) $(RELEASE) $(DIST) build-fuzz

help:
	@sed -n 's/^#   //p' Makefile
