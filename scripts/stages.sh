# Sourced by the other scripts: where the checkout is, and how a stage announces itself.
# Everything that these scripts say goes to stderr; stdout is for answers and test results.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Object files of another checkout of the same sources are as good as this one's.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

stage_started=
# stage "2/4" "what happens now": also says how long the stage before it took.
stage() {
  stage_done
  printf '\n== %s  %s\n' "$1" "$2" >&2
  stage_started=$SECONDS
}

stage_done() {
  if [ -n "$stage_started" ]; then
    printf '   (%d s)\n' $((SECONDS - stage_started)) >&2
  fi
  stage_started=
}

die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit 1
}

# Prints the comment block at the head of the script, which is its help.
usage() {
  sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
}
