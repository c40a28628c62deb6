#!/bin/sh
# What check-release.sh does in a fresh system, as its root: the archive, then the package from its installation to its end.
# Usage: inside.sh booted|plain      `booted`: systemd runs; `plain`: it does not, and what it would do is done here
set -eu

mode=$1
echo started
# shellcheck disable=SC2154 # code is assigned in the trap
trap 'code=$?; [ $code -eq 0 ] || { echo "FAILED with $code"; journalctl --unit hearth --no-pager -n 20 2>/dev/null || true; }' EXIT
export DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
document='http://127.0.0.1:8080/v1/projects/demo/databases/(default)/documents/cities/LA'
location='http://127.0.0.1:8080/scores.json?ns=demo'

fail() {
    echo "FAILED: $*"
    exit 1
}
write() {
    curl -sSf -X PATCH "$document" -H 'Authorization: Bearer owner' -H 'Content-Type: application/json' \
        -d '{"fields": {"name": {"stringValue": "'"$1"'"}}}' >/dev/null
    curl -sSf -X PUT -d "{\"ann\": \"$1\"}" "$location" >/dev/null
}
expect() {
    curl -sSf "$document" | grep -q "\"stringValue\": *\"$1\"" || fail "the document is not $1"
    [ "$(curl -sSf "$location")" = "{\"ann\":\"$1\"}" ] || fail "the location is not $1"
}
# Waits until a command succeeds, for 20 seconds at most.
wait_for() {
    attempts=0
    until "$@" >/dev/null 2>&1; do
        attempts=$((attempts + 1))
        [ $attempts -lt 200 ] || fail "waited in vain for: $*; $(tail -n 3 /check/serve.log 2>/dev/null)"
        sleep 0.1
    done
}

. /etc/os-release
echo "system: $PRETTY_NAME, $(getconf GNU_LIBC_VERSION), $mode"
for tool in swift clang gcc cc; do
    if command -v $tool >/dev/null; then fail "there is a $tool"; fi
done
# The loopback interface of a network of its own.
[ "$mode" = booted ] || perl -e '
    socket(my $s, 2, 2, 0) or die; my $r = pack("a16 s x22", "lo", 1 | 64); ioctl($s, 0x8914, $r) or die "lo: $!"'

# The archive. The libraries are those that docs/guide/installing.md names.
mkdir /check/archive
tar -xzf /check/hearth.tar.gz -C /check/archive --strip-components 1
cd /check/archive
echo "archive: libraries that are absent in this system: $(ldd ./hearth | sed -n 's/^\t*\(.*\) => not found/\1/p' | sort -u | paste -sd' ')"
apt-get install -qq --yes --no-install-recommends libssl3 libcurl4 libnghttp2-14 libsqlite3-0 libstdc++6 zlib1g >/dev/null 2>&1 ||
    apt-get install -qq --yes --no-install-recommends libssl3t64 libcurl4t64 libnghttp2-14 libsqlite3-0 libstdc++6 zlib1g >/dev/null 2>&1
if ldd ./hearth | grep -q 'not found'; then fail "$(ldd ./hearth | grep 'not found')"; fi
LD_BIND_NOW=1 ./hearth --version
mkdir /check/data
./hearth serve --data /check/data >/check/serve.log 2>&1 &
server=$!
wait_for ./hearth health
write first
kill -KILL $server
wait $server 2>/dev/null || true
./hearth serve --data /check/data >/check/serve.log 2>&1 &
server=$!
wait_for ./hearth health
expect first
kill $server
wait $server || fail "the server ended with $?"
./hearth check --data /check/data >/dev/null
echo "archive: served, wrote, was killed, started again, read; hearth check finds nothing"
cd /

# The package. Without systemd the user of the unit starts the program as the unit says.
serve() {
    if [ "$mode" = booted ]; then
        wait_for systemctl is-active --quiet hearth
    else
        # shellcheck disable=SC2016 # expanded by that shell
        setpriv --reuid hearth --regid hearth --init-groups sh -c 'cd /etc/hearth && exec hearth serve' >/check/serve.log 2>&1 &
        server=$!
    fi
    wait_for sh -c 'cd /etc/hearth && hearth health'
}
stop() {
    [ "$mode" = plain ] || return 0
    kill $server
    wait $server || true
}
apt-get install -qq --yes /check/hearth.deb >/check/apt.log 2>&1 || fail "$(tail -n 5 /check/apt.log)"
echo "package: installed $(dpkg-query --show hearth | tr '\t' ' '), $(hearth --version)"
serve
write second
expect second
if [ "$mode" = booted ]; then
    process=$(systemctl show --property MainPID --value hearth)
    echo "package: the service is $(systemctl is-enabled hearth) and $(systemctl is-active hearth), its process belongs to $(stat -c %U "/proc/$process")"
    grep -qE '^CapEff:[[:space:]]*0+$' "/proc/$process/status" || fail "the process has capabilities"
    grep -qE '^Seccomp:[[:space:]]*2$' "/proc/$process/status" || fail "no filter of system calls is in force"
    echo "package: it has no capabilities, and a filter of system calls;$(systemd-analyze security --no-pager hearth | tail -n 1 | grep -o ' exposure.*')"
fi
verified=$(systemd-analyze verify --man=no hearth.service 2>&1) || fail "$verified"
[ -z "$verified" ] || fail "$verified"
echo "package: systemd-analyze verify has no findings"
if [ "$mode" = booted ]; then
    perl /check/faults.pl 20
    systemctl stop hearth
    setpriv --reuid hearth --regid hearth --init-groups hearth check --data /var/lib/hearth >/check/found.log 2>&1 ||
        fail "$(tail -n 5 /check/found.log)"
    echo "faults: hearth check finds nothing"
    systemctl start hearth
    serve
fi
[ "$(stat -c '%U %a' /var/lib/hearth)" = "hearth 700" ] || fail "/var/lib/hearth is $(stat -c '%U %a' /var/lib/hearth)"
[ "$(stat -c '%U %G %a' /etc/hearth)" = "root hearth 750" ] || fail "/etc/hearth is $(stat -c '%U %G %a' /etc/hearth)"
stop

# An upgrade keeps data and edits.
sed -i 's/8080,/8080, "project": "edited",/' /etc/hearth/hearth.json
dpkg --force-confdef --force-confold --install /check/next.deb >/check/apt.log 2>&1 || fail "$(tail -n 5 /check/apt.log)"
serve
expect second
grep -q edited /etc/hearth/hearth.json || fail "the edit of hearth.json is lost"
echo "package: upgraded to $(dpkg-query --show --showformat '${Version}' hearth), data and edits were kept"
if [ "$mode" = booted ]; then
    journalctl --unit hearth --no-pager -o cat | grep -q '"\?edited\|project *edited' || fail "the service was not restarted"
    echo "package: the upgrade restarted the service with the edited file"
fi
stop
if [ "$mode" = booted ]; then
    # The drop-in of docs/reference/operations.md.
    install -d -o hearth -g hearth -m 700 /srv/backups
    mkdir -p /etc/systemd/system/hearth.service.d
    printf '[Service]\n%s\n' ReadWritePaths=/srv/backups PrivateUsers=no CapabilityBoundingSet=CAP_NET_BIND_SERVICE \
        AmbientCapabilities=CAP_NET_BIND_SERVICE >/etc/systemd/system/hearth.service.d/override.conf
    cp -p /etc/hearth/hearth.json /check/hearth.json
    sed -i 's|8080,|443, "backups": {"folder": "/srv/backups", "every": "1h", "keep": 2},|' /etc/hearth/hearth.json
    systemctl daemon-reload
    systemctl restart hearth
    wait_for hearth health --address 127.0.0.1:443
    wait_for sh -c 'ls -A /srv/backups | grep -q .'
    echo "package: with a drop-in it serves at port 443 and has made $(ls -A /srv/backups | wc -l) backup in /srv/backups"
    rm -r /etc/systemd/system/hearth.service.d
    cp -p /check/hearth.json /etc/hearth/hearth.json
    systemctl daemon-reload
    systemctl restart hearth
fi

# What is removed is the program.
apt-get remove -qq --yes hearth >/check/apt.log 2>&1 || fail "$(tail -n 5 /check/apt.log)"
[ ! -e /usr/bin/hearth ] || fail "the program is still there"
if curl -sf http://127.0.0.1:8080/ >/dev/null; then fail "a server still runs"; fi
files=$(find /var/lib/hearth -type f | wc -l)
[ "$files" -gt 0 ] || fail "the data is gone"
[ -e /etc/hearth/hearth.json ] || fail "the configuration is gone"
apt-get purge -qq --yes hearth >/check/apt.log 2>&1 || fail "$(tail -n 5 /check/apt.log)"
[ "$(find /var/lib/hearth -type f | wc -l)" -eq "$files" ] || fail "the data is gone"
[ ! -e /etc/hearth/hearth.json ] || fail "the configuration is still there"
echo "package: removed and purged, $files files of data are still there"
apt-get install -qq --yes /check/hearth.deb >/check/apt.log 2>&1 || fail "$(tail -n 5 /check/apt.log)"
serve
expect second
stop
echo "package: installed again, the data was read"
echo "all of it passed"
