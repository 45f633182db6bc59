#!/usr/bin/env bash
# Copyright (c) The bettercompute authors
# SPDX-License-Identifier: MPL-2.0
#
# The quickstart, then the volumes and the clouds example, each from init to destroy,
# against the emulators. `make demo` runs it with
#
#   CLI                 an OpenTofu or a Terraform binary
#   PROVIDER            the provider's binary, which holds the emulator
#   TF_CLI_CONFIG_FILE  a CLI configuration that installs the provider from
#                       its mirror
#
# It works in a temporary folder, reaches nothing but loopback addresses, and
# ends with a status other than 0 if a step doesn't show what it should.
set -euo pipefail

if [[ -z ${CLI:-} || -z ${PROVIDER:-} || -z ${TF_CLI_CONFIG_FILE:-} ]]; then
  echo "demo: start it by: make demo" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
emulator=

stop_emulator() {
  [[ -n $emulator ]] || return 0
  kill "$emulator" 2>/dev/null || true
  wait "$emulator" 2>/dev/null || true
  emulator=
}

finish() {
  status=$?
  trap - EXIT
  stop_emulator
  if [[ $status -ne 0 && -f $scratch/log ]]; then
    echo "demo: failed; the last command printed:" >&2
    cat "$scratch/log" >&2
  fi
  rm -rf "$scratch"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n==> %s\n' "$*"; }
fail() {
  echo "demo: $*" >&2
  exit 1
}

# cli EXPECTED COMMAND ARGUMENTS... runs the CLI and insists on its exit status.
cli() {
  local expected=$1 command=$2 status=0
  shift 2
  "$CLI" "$command" -no-color -input=false "$@" >"$scratch/log" 2>&1 || status=$?
  [[ $status -eq $expected ]] || fail "$(basename "$CLI") $command ended with status $status, not $expected"
}

# shows PATTERN prints the lines of the last command that match; none is a failure.
shows() { grep -E "$1" "$scratch/log" || fail "the last command printed no line like: $1"; }

# http METHOD HOST:PORT PATH prints an answer's body and fails unless its status
# is 2xx. Bash's own sockets: curl may not be there.
http() {
  local line code
  exec 3<>"/dev/tcp/${2%:*}/${2##*:}"
  printf '%s %s HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n' \
    "$1" "$3" "$2" any-token >&3
  read -r _ code _ <&3
  while IFS= read -r line <&3 && [[ $line != $'\r' ]]; do :; done
  cat <&3
  exec 3>&-
  [[ $code == 2* ]] || fail "$1 $3 was answered with $code"
}

# objects SERVICE KIND prints what exists in an emulated cloud, an object a line.
objects() {
  http GET "$control" "/objects?service=$1" | sed -e "s/.*\"$2\":\[//" -e 's/\].*//' -e 's/},{/}\n{/g'
}

# expect SERVICE KIND NAME=STATE... insists on exactly these objects, by name.
expect() {
  local service=$1 kind=$2 found
  shift 2
  found=$(objects "$service" "$kind" | sed -n 's/.*"name":"\([^"]*\)","state":"\([^"]*\)".*/\1=\2/p' | sort | tr '\n' ' ')
  found=${found% }
  echo "At $service, $kind: ${found:-none}"
  [[ $found == "$*" ]] || fail "expected at $service, $kind: ${*:-none}"
}
expect_machines() { expect hetzner machines "$@"; }

say "Start the emulated Hetzner Cloud, DigitalOcean and Proxmox VE"
"$PROVIDER" emulate -hetzner 127.0.0.1:0 -digitalocean 127.0.0.1:0 -proxmox 127.0.0.1:0 -control 127.0.0.1:0 -boot 1s >"$scratch/emulator" 2>&1 &
emulator=$!
for ((i = 0; i < 100; i++)); do
  grep -q 'Ctrl-C' "$scratch/emulator" && break
  kill -0 "$emulator" 2>/dev/null || break
  sleep 0.1
done
address() { sed -n "s|^$1 at https\{0,1\}://\([0-9.]*:[0-9]*\).*|\1|p" "$scratch/emulator"; }
control=$(address 'Control API')
hetzner=$(address 'Hetzner Cloud')
digitalocean=$(address DigitalOcean)
proxmox=$(address 'Proxmox VE')
fingerprint=$(sed -n 's/.*tls_fingerprint = "\([^"]*\)".*/\1/p' "$scratch/emulator")
if [[ -z $control || -z $hetzner || -z $digitalocean || -z $proxmox || -z $fingerprint ]]; then
  cat "$scratch/emulator" >&2
  fail "the emulator did not start"
fi
echo "They listen on $hetzner, $digitalocean and $proxmox."

# The emulators take any token. The provider's own waits are shortened, and what
# the caller's shell sets for other configurations must not reach this one.
unset "${!TF_VAR_@}" "${!TF_CLI_ARGS@}"
export HCLOUD_TOKEN=any-token DIGITALOCEAN_TOKEN=any-token PROXMOX_TOKEN='root@pam!demo=any-token'
export BETTERCOMPUTE_TIME_SCALE=0.1
export TF_VAR_endpoint="http://$hetzner/v1"

# work_on EXAMPLE goes to a folder of its own with that example in it.
work_on() {
  mkdir "$scratch/$1"
  cp "$here/$1"/*.tf "$scratch/$1/"
  cd "$scratch/$1"
}

work_on quickstart
say "init: install the provider from the mirror"
cli 0 init
shows 'Installed better-compute/bettercompute'

say "plan: an account, a pool and two machines, checked against the catalog"
cli 0 plan -out=first.tfplan
shows '^Plan: 4 to add, 0 to change, 0 to destroy'
expect_machines

say "apply"
cli 0 apply first.tfplan
shows '^Apply complete! Resources: 4 added, 0 changed, 0 destroyed'
expect_machines web-0=running web-1=running

say "plan again: nothing to do"
cli 0 plan -detailed-exitcode
shows '^No changes'

say "Stop web-1 behind the provider's back, through Hetzner's API"
id=$(objects hetzner machines | sed -n 's/.*"id":"\([0-9]*\)","name":"web-1".*/\1/p')
[[ -n $id ]] || fail "no machine web-1"
http POST "$hetzner" "/v1/servers/$id/actions/poweroff" >/dev/null
for ((i = 0; i < 100; i++)); do
  objects hetzner machines | grep -q '"name":"web-1","state":"off"' && break
  sleep 0.1
done
expect_machines web-0=running web-1=off

say "plan: the stop shows"
cli 2 plan -detailed-exitcode -out=mend.tfplan
shows '~ power|^Plan: 0 to add, 1 to change, 0 to destroy'

say "apply: it is mended, in place"
cli 0 apply mend.tfplan
shows '^Apply complete! Resources: 0 added, 1 changed, 0 destroyed'
expect_machines web-0=running web-1=running
[[ $(objects hetzner machines | grep -c "\"id\":\"$id\"") -eq 1 ]] || fail "web-1 is another machine now"

say "destroy"
cli 0 destroy -auto-approve
shows '^Destroy complete! Resources: 4 destroyed'
expect_machines

work_on volumes
unset TF_VAR_endpoint
export TF_VAR_hetzner="http://$hetzner/v1" TF_VAR_digitalocean="http://$digitalocean"

say "Volumes: in each cloud a machine and a volume that hangs on it, by the same blocks"
cli 0 init
cli 0 apply -auto-approve
shows '^Apply complete! Resources: 8 added, 0 changed, 0 destroyed|/dev/disk/by-id/'
expect hetzner volumes data=available
expect digitalocean volumes data=attached

say "plan again: nothing to do"
cli 0 plan -detailed-exitcode
shows '^No changes'

say "Grow both volumes in place, attached as they are, and take a snapshot at DigitalOcean"
cli 0 apply -auto-approve -var size_gib=20 -var 'snapshots=["before-upgrade"]'
shows 'size_gib  |^Apply complete! Resources: 1 added, 2 changed, 0 destroyed'
expect digitalocean snapshots before-upgrade=available

say "Detach both, without a reboot"
cli 0 apply -auto-approve -var size_gib=20 -var 'snapshots=["before-upgrade"]' -var attach=false
shows '^Apply complete! Resources: 0 added, 2 changed, 0 destroyed'
expect digitalocean volumes data=available

say "destroy"
cli 0 destroy -auto-approve -var size_gib=20 -var 'snapshots=["before-upgrade"]' -var attach=false
shows '^Destroy complete! Resources: 9 destroyed'
for service in hetzner digitalocean; do
  for kind in machines volumes snapshots; do expect "$service" "$kind"; done
done

work_on clouds
export TF_VAR_proxmox="{url=\"https://$proxmox\",tls_fingerprint=\"$fingerprint\"}"

say "Three clouds from one configuration, two machines in each"
cli 0 init
cli 0 apply -auto-approve
shows '^Apply complete! Resources: 12 added, 0 changed, 0 destroyed'
expect hetzner machines hetzner-0=running hetzner-1=running
expect digitalocean machines digitalocean-0=active digitalocean-1=active
expect proxmox machines proxmox-0=running proxmox-1=running

say "plan again: nothing to do"
cli 0 plan -detailed-exitcode
shows '^No changes'

say "destroy"
cli 0 destroy -auto-approve
shows '^Destroy complete! Resources: 12 destroyed'
for service in hetzner digitalocean proxmox; do expect "$service" machines; done

stop_emulator
version=$("$CLI" version)
say "Done: from init to destroy under ${version%%$'\n'*}; nothing is left running."
