#!/bin/sh
# Tries README's two commands where nothing is installed: in a Debian 12 made anew, with Python 3.11.2, git and make, and
# with no C compiler (or with gcc: --with-gcc). As root, on Debian, with debootstrap:
#   tools/bare_debian.sh [--with-gcc] FOLDER      # about 3 GB; remove it afterwards
# What is tried is the last commit. Packages come from the mirror that this machine uses, or from $MIRROR.
set -eu
packages=python3,git,make,ca-certificates
if [ "${1:-}" = --with-gcc ]; then packages=$packages,gcc,libc6-dev; shift; fi
root=${1:?a folder that is not there yet}
source=$(cd "$(dirname "$0")/.." && pwd)
mirror=${MIRROR:-$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' \
  /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -1)}

debootstrap --variant=minbase --include=$packages bookworm "$root" "$mirror" >/dev/null
# How this machine reaches the network: certificates of a proxy, and where packages of Python are.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  if [ -e $file ]; then mkdir -p "$root$(dirname $file)"; cp -L $file "$root$file"; fi
done
mkdir -p "$root/dev/shm" "$root/dev/pts"
trap 'umount "$root/proc" "$root/dev/shm" "$root/dev/pts" 2>/dev/null || true' EXIT
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -sf pts/ptmx "$root/dev/ptmx"
git clone --quiet --no-local "$source" "$root/root/satview"

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    chroot "$root" sh -c "cd /root/satview && $1"
}
inside 'python3 --version; if command -v cc gcc; then :; else echo "no C compiler"; fi; git log --oneline -1'
inside 'make run && ls -l out/satview.png && du -sh .venv && .venv/bin/satview --version --verbose'
inside 'test "$(du -sm .venv | cut -f1)" -lt 450 || { echo "make run installed more than 450 MB"; exit 1; }'
inside 'make test'
