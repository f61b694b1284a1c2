#!/bin/sh
# Fifty lines of ordinary shell: the output must be the same bytes on every kernel.
set -e
cd /tmp
fib() {
    if [ "$1" -lt 2 ]; then echo "$1"; return; fi
    echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2)))))
}
echo "fib: $(fib 7)"
i=0
while [ "$i" -lt 20 ]; do
    mkdir -p "tree/d$((i % 4))"
    echo "file $i" > "tree/d$((i % 4))/f$i"
    i=$((i + 1))
done
find tree -type f | xargs sha256sum | sort
find tree -type f | sort | xargs cat | wc
cat <<EOF | tr a-z A-Z | sed 's/^/> /'
here $((1 + 2)) and $(echo nested)
second line
EOF
cat > list <<'EOF'
pear 3
apple 1
fig 2
EOF
sort list | awk '{ s += $2; print NR, $1 } END { print "sum", s }'
sort -k2n list | cut -d' ' -f1 | tr '\n' ' '; echo
for n in 3 1 2; do
    (sleep "0.$n"; echo "job $n" > "job$n") &
done
wait
cat job1 job2 job3
true | false && echo no || echo "pipe status $?"
sh -c 'exit 3' || echo "status $?"
sh -c 'kill -TERM $$' || echo "killed $?"
(trap 'echo trapped; exit 4' USR1; kill -USR1 "$(sh -c 'echo $PPID')"; sleep 1) || echo "subshell $?"
case "$(uname -sm)" in Linux*riscv64) echo "on riscv64" ;; *) echo other ;; esac
ln -s list link; ln list hard; mv job1 moved; rm job2
ls -1; readlink link; cmp list hard && echo equal
test -x /bin/sh && test ! -e nothing && echo tests
dd if=/dev/zero bs=4096 count=32 2> /dev/null | md5sum
seq 1 2000 | gzip -c | gzip -dc | tail -n 2
printf '%s\n' one two three | while read -r word; do echo "${#word} $word"; done
echo appended >> list; head -c 12 list; wc -l < list
exec 3> third; echo through >&3; exec 3>&-; cat third
set -- a 'b c' d; echo "$# $2"; shift; echo "$*"
(ulimit -n 64; ulimit -n); umask 077; touch private; stat -c '%a %s' private
yes | head -n 3000 | wc -c; env -i A=1 sh -c 'echo "$A"'
rm -r tree; [ -d tree ] || echo gone
