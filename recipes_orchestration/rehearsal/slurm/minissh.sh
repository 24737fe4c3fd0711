#!/usr/bin/env bash
# minissh.sh up|down|drop|status DIR: an sshd on 127.0.0.1 for the Slurm of minislurm.sh in DIR, and how to log in there:
#   ssh -F DIR/ssh/config mini
# `drop` ends every open connection, as a lost network does; sshd goes on listening.
#   PORT      where it listens
#   LOGIN     who may log in, with the key DIR/ssh/id; root unless another is given
#   SECOND=1  asks for the key and then for a password, as a cluster with a second factor does. For this a throw-away
#             account is made, which `down` removes. It has root's id, so that it may read whatever root may; its
#             password is random and in DIR/ssh/password, and DIR/ssh/askpass gives it to ssh (SSH_ASKPASS).
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
fail() { echo "minissh: $*" >&2; exit 1; }
[ $# = 2 ] || fail "usage: minissh.sh up|down|drop|status DIR"
CMD=$1 SITE=$(realpath -m "$2") D=$(realpath -m "$2")/ssh
PORT=${PORT:-16822} LOGIN=${LOGIN:-root} SECOND=${SECOND:-0}

alive() {
  local pid
  pid=$(cat "$D/sshd.pid" 2>/dev/null) && [ -n "$pid" ] &&
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = sshd ] && ! grep -q '^State:.[ZX]' "/proc/$pid/status" && echo "$pid"
}
below() { # all processes below one, the farthest first
  local child
  for child in $(grep -lx "PPid:	$1" /proc/[0-9]*/status 2>/dev/null); do
    child=${child#/proc/} child=${child%/status}
    below "$child"
    echo "$child"
  done
}
patiently() { # the account files are locked while another site writes them
  for _ in $(seq 50); do "$@" >/dev/null 2>&1 && return; sleep .2; done
  "$@"
}

case $CMD in
status) if pid=$(alive); then echo "sshd $pid"; else echo "sshd -"; exit 1; fi; exit ;;
drop)
  # shellcheck disable=SC2046
  if pid=$(alive); then kill -9 $(below "$pid") 2>/dev/null || true; fi
  exit 0 ;;
down)
  if pid=$(alive); then
    # shellcheck disable=SC2046
    kill -9 "$pid" $(below "$pid") 2>/dev/null || true
    for _ in $(seq 60); do kill -0 "$pid" 2>/dev/null || break; sleep .05; done
  fi
  rm -f "$D/sshd.pid" "$D/cm"
  if [ -s "$D/account" ]; then
    # -f: it shares root's id, under which something always runs. Its folder stays: no -r.
    ! getent passwd "$(cat "$D/account")" >/dev/null || patiently userdel -f "$(cat "$D/account")"
    rm -f "$D/account" "$D/password"
  fi
  exit 0 ;;
up) ;;
*) fail "usage: minissh.sh up|down|drop|status DIR" ;;
esac

[ "$(id -u)" = 0 ] || fail "an sshd for another's login can only be started by root"
missing=()
for program in sshd ssh ssh-keygen rsync; do command -v $program >/dev/null || missing+=($program); done
[ ${#missing[@]} = 0 ] ||
  fail "not installed: ${missing[*]}. Run: apt-get install -y --no-install-recommends openssh-server openssh-client rsync"
install -d -m 755 "$SITE" "$D" "$D/home" /run/sshd
[ -f "$D/hostkey" ] || ssh-keygen -q -t ed25519 -N '' -C minissh -f "$D/hostkey"
[ -f "$D/id" ] || ssh-keygen -q -t ed25519 -N '' -C minissh -f "$D/id"
install -m 644 "$D/id.pub" "$D/authorized_keys"
WAY=publickey
if [ "$SECOND" != 0 ]; then
  WAY=publickey,password LOGIN=rehearse-$PORT
  echo "$LOGIN" >"$D/account"
  (umask 077; [ -s "$D/password" ] || head -c 18 /dev/urandom | base64 | tr -d '+/=\n' >"$D/password")
  getent passwd "$LOGIN" >/dev/null ||
    patiently useradd --non-unique --uid 0 --gid 0 --no-create-home --home-dir "$D/home" --shell /bin/bash \
      --comment "rehearsal of a second factor" "$LOGIN"
  for _ in $(seq 50); do # -c: without PAM, which has its own mind about passwords
    printf '%s:%s\n' "$LOGIN" "$(cat "$D/password")" | chpasswd -c SHA512 2>/dev/null && break
    sleep .2
  done
  (umask 077; printf '#!/bin/sh\ncat "%s"\n' "$D/password" >"$D/askpass"; chmod 700 "$D/askpass")
fi
case $(getent shadow "$LOGIN" | cut -d: -f2) in
'!'*) fail "the account $LOGIN is locked, so that sshd lets nobody in. Run: usermod -p '*' $LOGIN" ;;
esac
cat >"$D/sshd_config" <<CONF
ListenAddress 127.0.0.1:$PORT
HostKey $D/hostkey
PidFile $D/sshd.pid
AuthorizedKeysFile $D/authorized_keys
StrictModes no
AuthenticationMethods $WAY
PubkeyAuthentication yes
PasswordAuthentication $([ "$SECOND" = 0 ] && echo no || echo yes)
KbdInteractiveAuthentication no
PermitRootLogin $([ "$SECOND" = 0 ] && echo prohibit-password || echo yes)
UsePAM no
UseDNS no
AllowUsers $LOGIN
MaxStartups 100
MaxSessions 100
PermitUserEnvironment no
SetEnv SLURM_CONF=$SITE/slurm.conf HOME=$D/home
Subsystem sftp internal-sftp
CONF
if ! alive >/dev/null; then
  /usr/sbin/sshd -f "$D/sshd_config" -E "$D/sshd.log" >"$D/sshd.out" 2>&1 </dev/null ||
    fail "sshd did not start: $(tail -n 2 "$D/sshd.out" "$D/sshd.log" | tr '\n' ' ')"
fi
printf '[127.0.0.1]:%s %s\n' "$PORT" "$(cut -d' ' -f1,2 "$D/hostkey.pub")" >"$D/known_hosts"
cat >"$D/config" <<CONF
Host mini
  HostName 127.0.0.1
  Port $PORT
  User $LOGIN
  IdentityFile $D/id
  IdentitiesOnly yes
  PreferredAuthentications $WAY
  NumberOfPasswordPrompts 1
  UserKnownHostsFile $D/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  ControlMaster auto
  ControlPath $D/cm
  ControlPersist 10m
CONF
for _ in $(seq 100); do
  if alive >/dev/null && (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then exit 0; fi
  sleep .05
done
fail "sshd does not listen on port $PORT: $(tail -n 2 "$D/sshd.log" | tr '\n' ' ')"
