# The command hwprobe with all it takes and does not: status, lines of at most 80 columns, no blanks at their ends.
bad=0
cd /tmp

# t STATUS WORDS...
t() {
    wanted=$1
    shift
    echo "\$ hwprobe $*"
    hwprobe "$@" > out 2>&1
    status=$?
    cat out
    if [ $status != $wanted ]; then echo "status $status, not $wanted"; bad=1; fi
    if grep -E '.{81}|[[:blank:]]$' out > /dev/null; then echo "a line is too long, or ends in blanks"; bad=1; fi
}

t 0
t 0 --per-hart
t 0 --explain
t 0 --explain --per-hart --cpus 1
t 0 --cpus 0,2-5
t 0 --json
t 0 --json --cpus=0
t 0 -h
t 0 --help
t 0 --which IMA_EXT_0=ZBA
t 0 --which ima_ext_0=zba+c --which MISALIGNED_SCALAR_PERF=fast
t 0 --cpus 0 --which 4=0x3
t 0 --cpus 1,9 --which=3=1
t 1 --which IMA_EXT_0=ZKND
t 1 --which TIME_CSR_FREQ=1
t 2 --bad
t 2 word
t 2 --cpus
t 2 --cpus x
t 2 --cpus 1-0
t 2 --cpus 9
t 2 --cpus 9,64 --which 3=1
t 2 --which
t 2 --which 4
t 2 --which foo=1
t 2 --which 4=foo
t 2 --json=1
t 2 --diff a
t 2 --diff nowhere nofile

hwprobe --json > a
hwprobe --json --cpus 1 > b
sed 's/"IMA_EXT_0": "0x[0-9a-f]*"/"IMA_EXT_0": "0x3"/; s/"IMA_EXT_1": .*/"OTHER": "1"/' a > c
echo '{}' > d
t 0 --diff a b
t 1 --diff a c
t 1 --diff=c a
t 2 --diff a d
hwprobe > /dev/full 2>&1
[ $? = 2 ] || bad=1
exit $bad
