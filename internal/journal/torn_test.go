package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// step is one thing that happens to a journal, and what is owed after it.
type step struct {
	do   func(*Journal)
	owed []string
}

var life = []step{
	{func(j *Journal) { j.Taken("a") }, nil},
	{func(j *Journal) { j.Taken("b") }, nil},
	{func(j *Journal) { j.Result("a", output(`"first"`)) }, []string{"a"}},
	{func(j *Journal) { j.Crashed("b") }, []string{"a"}},
	{func(j *Journal) { j.Result("b", large("x")) }, []string{"a", "b"}},
	{func(j *Journal) { j.Settled("a") }, []string{"b"}},
	{func(j *Journal) { j.Taken("c") }, []string{"b"}},
	{func(j *Journal) { j.Result("c", output(`"third"`)) }, []string{"b", "c"}},
}

// live writes a journal and returns its directory, with the length of the segment after each step.
func live(t *testing.T) (dir string, ends []int64) {
	t.Helper()
	j := open(t, t.TempDir())
	for _, s := range life {
		s.do(j)
		ends = append(ends, j.size)
	}
	die(t, j)
	return j.dir, ends
}

// copied is a place with a copy of a journal.
func copied(t *testing.T, dir string) (place, segment string) {
	t.Helper()
	place = t.TempDir()
	to := filepath.Join(place, filepath.Base(dir))
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return place, segmentOf(t, to)
}

// A journal that was cut anywhere is what it was after the last record that is whole.
func TestTorn_AtEveryByte(t *testing.T) {
	dir, ends := live(t)
	for length := int64(len(magic)); length <= ends[len(ends)-1]; length++ {
		place, segment := copied(t, dir)
		require.NoError(t, os.Truncate(segment, length))
		var want []string
		for i, end := range ends {
			if length >= end {
				want = life[i].owed
			}
		}
		j := open(t, place)
		jobs, _ := owed(t, j)
		require.Equal(t, want, jobs, "cut after %d bytes", length)
		require.NoFileExists(t, filepath.Join(j.dir, damagedName), "a torn end is no damage")
		j.Result("new", output(`1`)) // and it goes on
		jobs, _ = owed(t, again(t, j))
		require.Equal(t, append(slices.Clone(want), "new"), jobs)
	}
}

// A journal with one wrong bit opens, and has nothing in it that was never owed.
func TestTorn_EveryBit(t *testing.T) {
	dir, ends := live(t)
	seen := map[string]bool{}
	for _, s := range life {
		for _, job := range s.owed {
			seen[job] = true
		}
	}
	for at := range ends[len(ends)-1] {
		place, segment := copied(t, dir)
		require.NoError(t, flip(segment, at, 1<<(at%8)))
		j := open(t, place)
		jobs, results := owed(t, j)
		for _, job := range jobs {
			require.True(t, seen[job], "%q, with byte %d changed", job, at)
		}
		if a, ok := results["a"]; ok {
			require.Equal(t, output(`"first"`), a)
		}
		if b, ok := results["b"]; ok {
			require.Equal(t, large("x"), b)
		}
		require.NoError(t, j.Close())
	}
}

func flip(path string, at int64, bits byte) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	var b [1]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= bits
	_, err = file.WriteAt(b[:], at)
	return err
}

// PS-01: whatever stands where the journal should, the worker starts, with one warning.
func TestTorn_SomethingElseInItsPlace(t *testing.T) {
	tests := map[string]func(segment string) error{
		"empty":                 func(s string) error { return os.Truncate(s, 0) },
		"less than a beginning": func(s string) error { return os.Truncate(s, 3) },
		"garbage":               func(s string) error { return os.WriteFile(s, []byte("{\"jobs\": []}\n"), 0o600) },
		"another version":       func(s string) error { return flip(s, int64(len(magic)-1), 3) },
		"a folder":              func(s string) error { _ = os.Remove(s); return os.MkdirAll(filepath.Join(s, "x"), 0o700) },
		"a pipe":                func(s string) error { _ = os.Remove(s); return unix.Mkfifo(s, 0o600) },
		"a socket":              func(s string) error { _ = os.Remove(s); return socketAt(s) },
		"a link":                func(s string) error { _ = os.Remove(s); return os.Symlink("/dev/zero", s) },
		"enormous":              func(s string) error { return os.Truncate(s, maxSegment+1) },
	}
	for name, replace := range tests {
		t.Run(name, func(t *testing.T) {
			dir, _ := live(t)
			segment := segmentOf(t, dir)
			require.NoError(t, replace(segment))
			var log lines
			j, err := Open([]string{filepath.Dir(dir)}, worker, log.logger())
			require.NoError(t, err)
			defer j.Close()
			jobs, _ := owed(t, j)
			require.Empty(t, jobs)
			require.Len(t, log.all(), 1)
			require.Contains(t, log.all()[0], segment)
			_, err = os.Lstat(filepath.Join(dir, damagedName))
			require.NoError(t, err, "it is set aside")
			j.Result("new", output(`1`))
			jobs, _ = owed(t, again(t, j))
			require.Equal(t, []string{"new"}, jobs)
		})
	}
}

func TestTorn_TheLastGoodSegmentIsUsed(t *testing.T) {
	dir, _ := live(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "00000000000000ff.log"), []byte("garbage"), 0o600))
	jobs, _ := owed(t, open(t, filepath.Dir(dir)))
	require.Equal(t, []string{"b", "c"}, jobs)
}

// What stands before the damage counts, but for the jobs whose end may have come after it.
func TestTorn_DamageInTheMiddle(t *testing.T) {
	dir, ends := live(t)
	require.NoError(t, flip(segmentOf(t, dir), ends[2]+frameSize, 1))
	j := open(t, filepath.Dir(dir))
	jobs, _ := owed(t, j)
	require.Equal(t, []string{"a"}, jobs)
	require.Empty(t, j.state.doubts, "b ran alone as far as can be read")
}

func TestTorn_LeftoversAreCleared(t *testing.T) {
	dir, _ := live(t)
	foreign := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(foreign, nil, 0o600))
	for _, name := range []string{"0000000000000077.out", "0000000000000078.new", "ffffffffffffffff.out", "0000000000000000.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	j := open(t, filepath.Dir(dir))
	require.Len(t, files(t, dir), 3, "the segment, the large result and what is not ours")
	require.FileExists(t, foreign)
	jobs, _ := owed(t, again(t, j))
	require.Equal(t, []string{"b", "c"}, jobs)
}

func FuzzScan(f *testing.F) {
	f.Add([]byte(magic))
	f.Add([]byte("rpwjrnl\x02"))
	content := []byte(magic)
	for _, r := range []record{
		{kind: kindTaken, job: "a"},
		{kind: kindFile, job: "a", result: result{file: 7, size: 1 << 40, sum: 9}},
		{kind: kindCrashed, job: "", count: 3},
		{kind: kindSuspected, job: "b"},
		{kind: kindSettled, job: "a"},
	} {
		content = append(content, encode(nil, r)...)
	}
	content = append(content, seal(append(begin(nil, kindInline, "c"), "\x01\x00{}"...))...)
	f.Add(content)
	f.Add(content[:len(content)-1])
	f.Fuzz(func(t *testing.T, segment []byte) {
		s := newState()
		good, _ := scan(segment, func(r record) {
			s.apply(r)
			if r.kind == kindInline {
				_, _ = decodeOutcome(segment[r.result.at : r.result.at+r.result.size])
			}
		})
		require.LessOrEqual(t, good, len(segment))
		if good == 0 {
			return
		}
		twin := newState()
		again, err := scan(segment[:good], func(r record) { twin.apply(r) })
		require.NoError(t, err, "what was read is whole")
		require.Equal(t, good, again)
		require.Equal(t, s.jobs, twin.jobs)
	})
}
