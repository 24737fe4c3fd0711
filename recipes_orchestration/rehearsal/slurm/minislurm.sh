#!/usr/bin/env bash
# minislurm.sh up|down|status|env DIR: a real Slurm of one node on loopback, from Debian's packages, as root.
# It needs no systemd and no cgroups, and leaves the machine's own /etc/slurm alone. DIR holds all of it; other
# users must be able to enter DIR. `up` starts what is not running, so it also mends a site after a kill.
#   CTLPORT, DPORT          ports of slurmctld and slurmd
#   DBD=1 DBDPORT, SQLPORT  also slurmdbd with MariaDB, so that `sacct` works
#   CPUS, MEM (MB), MINJOBAGE (s), ENFORCE (AccountingStorageEnforce), EXTRA_CONF, EXTRA_PART (lines of slurm.conf)
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C
fail() { echo "minislurm: $*" >&2; exit 1; }
[ $# = 2 ] || fail "usage: minislurm.sh up|down|status|env DIR"
CMD=$1 D=$(realpath -m "$2")
CPUS=${CPUS:-2} MEM=${MEM:-4000} MINJOBAGE=${MINJOBAGE:-300}
CTLPORT=${CTLPORT:-16817} DPORT=${DPORT:-16818}
DBD=${DBD:-0} DBDPORT=${DBDPORT:-16819} SQLPORT=${SQLPORT:-16820}
export SLURM_CONF=$D/slurm.conf
MARK=RECIPES_SLURM_SITE=$D # in the daemons' environment, never in a person's: how `down` knows its own

alive() { # alive NAME: its process id, when the process of that pid file is still that daemon
  local pid
  pid=$(cat "$D/run/$1.pid" 2>/dev/null) && [ -n "$pid" ] &&
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && ! grep -q '^State:.[ZX]' "/proc/$pid/status" && echo "$pid"
}
ours() { # processes that carry the mark, jobs of this site, and the slurmstepd above them
  local file pid parent
  for file in $(grep -lzxF "$MARK" /proc/[0-9]*/environ 2>/dev/null) \
    $(grep -lzxF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ 2>/dev/null |
      xargs -r grep -lz '^SLURM_JOB_ID=' 2>/dev/null); do
    pid=${file#/proc/} pid=${pid%/environ}
    [ "$pid" = $$ ] || echo "$pid"
    parent=$pid
    while parent=$(sed -n 's/^PPid:\t//p' "/proc/$parent/status" 2>/dev/null) && [ "${parent:-0}" -gt 1 ]; do
      [ "$(cat "/proc/$parent/comm" 2>/dev/null)" != slurmstepd ] || echo "$parent"
    done
  done | sort -u
}
last_words() { # the last lines of a log that say what is wrong
  grep -aE 'fatal|error|Error|ERROR' "$1" 2>/dev/null | tail -n 2 | tr '\n' ' '
}
need() { # need PACKAGES PROGRAM...
  local packages=$1 program missing=()
  shift
  for program; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} = 0 ] ||
    fail "not installed: ${missing[*]}. Run: apt-get install -y --no-install-recommends $packages"
}

case $CMD in
env) echo "export SLURM_CONF=$D/slurm.conf"; exit ;;
status)
  up=0
  for p in munged slurmctld slurmd slurmdbd mariadbd; do
    case $p in slurmdbd | mariadbd) [ -f "$D/slurmdbd.conf" ] || continue ;; esac
    if pid=$(alive $p); then echo "$p $pid"; else echo "$p -"; up=1; fi
  done
  exit $up ;;
down)
  if [ -f "$D/slurm.conf" ] && alive slurmctld >/dev/null; then # else they would run again after `up`
    timeout 5 squeue -h -o %A 2>/dev/null | sort -u | timeout 5 xargs -r scancel --quiet >/dev/null 2>&1 || true
  fi
  for p in slurmd slurmctld slurmdbd mariadbd munged; do
    if pid=$(alive $p); then
      kill "$pid" 2>/dev/null || true
      for _ in $(seq 60); do alive $p >/dev/null || break; sleep .05; done
      pid=$(alive $p) && kill -9 "$pid" 2>/dev/null || true
    fi
    rm -f "$D/run/$p.pid"
  done
  for _ in $(seq 40); do
    left=$(ours)
    [ -n "$left" ] || exit 0
    # shellcheck disable=SC2086
    kill -9 $left 2>/dev/null || true
    sleep .05
  done
  fail "could not end the processes" $left ;;
up) ;;
*) fail "usage: minislurm.sh up|down|status|env DIR" ;;
esac

[ "$(id -u)" = 0 ] || fail "a Slurm can only be started by root"
need "slurmctld slurmd slurm-client munge" slurmctld slurmd sbatch squeue scancel sinfo munged runuser
[ "$DBD" = 0 ] || need "slurmdbd mariadb-server" slurmdbd sacct sacctmgr mariadbd mariadb mariadb-install-db
[ ${#D} -le 80 ] || fail "$D is too long a name: sockets in it must stay under 108 characters"
install -d -m 0755 "$D" "$D/run" "$D/log" "$D/state" "$D/spool" "$D/munge"
chown munge: "$D/munge"
runuser -u munge -- test -x "$D/munge" ||
  fail "the user munge cannot enter $D. Take a folder that all users may enter, such as /var/lib/recipes-slurm"
if [ ! -s "$D/munge/key" ]; then
  (umask 077; head -c 128 /dev/urandom >"$D/munge/key")
  chown munge: "$D/munge/key"
  chmod 400 "$D/munge/key"
fi
HOST=$(hostname -s)
# A controller that was killed has forgotten its last ids, and a node that is given one of them again drains itself.
# An array of 1000 has as many ids, of which the log may name the first alone.
FIRST=$(sed -n 's/^FirstJobId=//p' "$D/slurm.conf" 2>/dev/null || true)
if ! alive slurmctld >/dev/null; then
  LAST=$({ grep -aohE 'JobId=[0-9]+' "$D/log/slurmctld.log" 2>/dev/null || true; } | cut -d= -f2 | sort -n | tail -n 1)
  FIRST=${LAST:+$((LAST + 2000))}
fi
ACCT=AccountingStorageType=accounting_storage/none
[ "$DBD" = 0 ] || ACCT="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass=$D/munge/sock
AccountingStoragePort=$DBDPORT
AccountingStoreFlags=job_comment
${ENFORCE:+AccountingStorageEnforce=$ENFORCE}"
cat >"$D/slurm.conf.new" <<CONF
ClusterName=mini
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$CTLPORT
SlurmdPort=$DPORT
SlurmUser=root
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket=$D/munge/sock
CredType=cred/munge
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool
SlurmctldPidFile=$D/run/slurmctld.pid
SlurmdPidFile=$D/run/slurmd.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
$ACCT
JobCompType=jobcomp/filetxt
JobCompLoc=$D/log/jobcomp.txt
MinJobAge=$MINJOBAGE
MaxArraySize=1001
MaxJobCount=5000
FirstJobId=${FIRST:-1}
KillWait=2
InactiveLimit=0
SlurmctldTimeout=30
SlurmdTimeout=30
SlurmctldDebug=info
SlurmdDebug=info
${EXTRA_CONF:-}
NodeName=$HOST NodeAddr=127.0.0.1 CPUs=$CPUS Boards=1 SocketsPerBoard=1 CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=$MEM State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=01:00:00 DefaultTime=00:10:00 State=UP OverTimeLimit=0
${EXTRA_PART:-}
CONF
mv "$D/slurm.conf.new" "$D/slurm.conf" # whole at every moment: clients may be reading it

if ! alive munged >/dev/null; then
  rm -f "$D/munge/pid"
  env "$MARK" runuser -u munge -- /usr/sbin/munged --key-file="$D/munge/key" --socket="$D/munge/sock" \
    --pid-file="$D/munge/pid" --log-file="$D/munge/log" --seed-file="$D/munge/seed" --num-threads=2 --force \
    >"$D/log/munged.out" 2>&1 </dev/null || fail "munged did not start: $(last_words "$D/munge/log")"
  cp "$D/munge/pid" "$D/run/munged.pid"
fi
if [ "$DBD" != 0 ]; then
  if [ ! -d "$D/sql/mysql" ]; then
    install -d -o mysql "$D/sql"
    mariadb-install-db --no-defaults --user=mysql --datadir="$D/sql" --auth-root-authentication-method=socket \
      --skip-test-db >"$D/log/sql-install.log" 2>&1 || fail "MariaDB: $(last_words "$D/log/sql-install.log")"
  fi
  if ! alive mariadbd >/dev/null; then
    rm -f "$D/sql/pid"
    env "$MARK" setsid mariadbd --no-defaults --user=mysql --datadir="$D/sql" --socket="$D/sql/sock" \
      --bind-address=127.0.0.1 --port="$SQLPORT" --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0 \
      --pid-file="$D/sql/pid" >>"$D/log/sql.log" 2>&1 </dev/null &
    for _ in $(seq 300); do
      mariadb-admin --no-defaults -S "$D/sql/sock" ping >/dev/null 2>&1 && break
      kill -0 $! 2>/dev/null || fail "MariaDB did not start: $(last_words "$D/log/sql.log")"
      sleep .1
    done
    cp "$D/sql/pid" "$D/run/mariadbd.pid"
    mariadb --no-defaults -S "$D/sql/sock" -e "create database if not exists slurm_acct;
      create user if not exists slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm_acct.* to slurm@'127.0.0.1';
      create user if not exists slurm@localhost identified by 'slurm'; grant all on slurm_acct.* to slurm@localhost"
  fi
  (umask 077; cat >"$D/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$D/munge/sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$DBDPORT
CommunicationParameters=NoInAddrAny
SlurmUser=root
LogFile=$D/log/slurmdbd.log
PidFile=$D/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$SQLPORT
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
CONF
  )
  # slurmdbd finds slurmdbd.conf beside $SLURM_CONF.
  alive slurmdbd >/dev/null || env "$MARK" slurmdbd >"$D/log/slurmdbd.out" 2>&1 </dev/null
  for _ in $(seq 200); do
    timeout 5 sacctmgr -n list cluster >/dev/null 2>&1 && break
    alive slurmdbd >/dev/null || { sleep .5; alive slurmdbd >/dev/null; } ||
      fail "slurmdbd did not start: $(last_words "$D/log/slurmdbd.log")"
    sleep .1
  done
  [ -n "$(sacctmgr -n list cluster mini)" ] || sacctmgr -n -i add cluster mini >/dev/null
fi
alive slurmctld >/dev/null ||
  env "$MARK" slurmctld -f "$SLURM_CONF" >"$D/log/slurmctld.out" 2>&1 </dev/null ||
  fail "slurmctld did not start: $(last_words "$D/log/slurmctld.log") $(last_words "$D/log/slurmctld.out")"
alive slurmd >/dev/null ||
  env "$MARK" slurmd -f "$SLURM_CONF" -N "$HOST" >"$D/log/slurmd.out" 2>&1 </dev/null ||
  fail "slurmd did not start: $(last_words "$D/log/slurmd.log") $(last_words "$D/log/slurmd.out")"
state=unknown
for turn in $(seq 300); do
  state=$(timeout 5 sinfo -h -N -o %T 2>/dev/null | head -n 1) || state=unknown
  case $state in
  idle | mixed | allocated | completing) exit 0 ;;
  drain*) timeout 5 scontrol update NodeName="$HOST" State=RESUME >/dev/null 2>&1 || true ;;
  esac
  if [ "$turn" -gt 5 ]; then # until then they may not have written their pid files
    for p in slurmctld slurmd; do
      alive $p >/dev/null || fail "$p ended: $(last_words "$D/log/$p.log") See $D/log"
    done
  fi
  sleep .1
done
fail "the node is ${state:-unknown} after 30 s. See $D/log"
