package journal

import (
	"bufio"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPlaces(t *testing.T) {
	t.Setenv("TMPDIR", "tmp")
	require.Equal(t, []string{"/var/lib/runpodctl-worker"}, Places(""), "none below the working directory")
	t.Setenv("TMPDIR", "/t")
	places := Places("/home/me/state")
	require.Equal(t, []string{"/home/me/state/runpodctl-worker", "/var/lib/runpodctl-worker"}, places[:2])
	require.Contains(t, places[2], "/t/runpodctl-state-")
}

func TestOpen_NobodyElseCanReadIt(t *testing.T) {
	place := filepath.Join(t.TempDir(), "a", "b")
	j := open(t, place)
	j.Result("a", large("x"))
	for _, dir := range []string{place, j.dir} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	for _, name := range append(files(t, j.dir), lockName) {
		info, err := os.Stat(filepath.Join(j.dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestOpen_APlaceThatCannotBeUsed(t *testing.T) {
	tests := map[string]struct {
		prepare func(place string) error
		want    string
	}{
		"a file":            {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "not a directory"},
		"a link to nowhere": {func(p string) error { return os.Symlink("/nowhere/x", p) }, "file exists"},
		"open to others":    {func(p string) error { _ = os.Mkdir(p, 0o700); return os.Chmod(p, 0o777) }, "other users can write to it"},
		"a pipe":            {func(p string) error { return unix.Mkfifo(p, 0o600) }, "not a directory"},
		"a socket":          {socketAt, "not a directory"},
		"its own name is a pipe": {func(p string) error {
			_ = os.Mkdir(p, 0o700)
			return unix.Mkfifo(filepath.Join(p, dirName(worker)), 0o600)
		}, "is not a directory of this user"},
		"the lock is a socket": {func(p string) error {
			dir := filepath.Join(p, dirName(worker))
			_ = os.MkdirAll(dir, 0o700)
			return socketAt(filepath.Join(dir, lockName))
		}, "no such device"},
		"its own name is taken": {func(p string) error {
			_ = os.Mkdir(p, 0o700)
			return os.WriteFile(filepath.Join(p, dirName(worker)), nil, 0o600)
		}, "is not a directory of this user"},
		"its own name is a link": {func(p string) error {
			_ = os.Mkdir(p, 0o700)
			return os.Symlink(os.TempDir(), filepath.Join(p, dirName(worker)))
		}, "is not a directory of this user"},
		"the lock is a link": {func(p string) error {
			dir := filepath.Join(p, dirName(worker))
			_ = os.MkdirAll(dir, 0o700)
			return os.Symlink(filepath.Join(p, "elsewhere"), filepath.Join(dir, lockName))
		}, "symbolic links"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bad, good := filepath.Join(t.TempDir(), "p"), t.TempDir()
			require.NoError(t, tt.prepare(bad))
			_, err := Open([]string{bad}, worker, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, tt.want)
			j, err := Open([]string{bad, good}, worker, slog.New(slog.DiscardHandler))
			require.NoError(t, err, "the next one is taken")
			require.Equal(t, good, filepath.Dir(j.dir))
			require.NoError(t, j.Close())
		})
	}
}

// A disk without room for a single byte, and one that cannot be written, are no places for a journal.
func TestOpen_NoRoom(t *testing.T) {
	tests := map[string]struct {
		flags uintptr
		want  error
	}{
		"full":      {0, unix.ENOSPC},
		"read-only": {unix.MS_RDONLY, unix.EROFS},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			place := t.TempDir()
			if err := unix.Mount("none", place, "tmpfs", 0, "size=16k,mode=700"); err != nil {
				t.Skipf("this user cannot mount: %v", err)
			}
			t.Cleanup(func() { require.NoError(t, unix.Unmount(place, 0)) })
			j := open(t, place)
			j.Result("a", output(`1`))
			segment := j.segment.Name()
			die(t, j)
			require.NoError(t, os.Truncate(segment, j.size+frameSize-1), "as after a write that was interrupted")
			if err := os.WriteFile(filepath.Join(place, "fill"), make([]byte, 16<<10), 0o600); err != nil {
				require.ErrorIs(t, err, unix.ENOSPC)
			}
			require.NoError(t, unix.Mount("none", place, "tmpfs", unix.MS_REMOUNT|tt.flags, "size=16k"))
			_, err := Open([]string{place}, "w2", slog.New(slog.DiscardHandler))
			require.ErrorIs(t, err, tt.want)
			var log lines
			j, err = Open([]string{place}, worker, log.logger())
			if tt.flags != 0 {
				require.ErrorIs(t, err, tt.want)
				return
			}
			require.NoError(t, err, "what is there can be read")
			jobs, _ := owed(t, j)
			require.Equal(t, []string{"a"}, jobs)
			require.Len(t, log.all(), 1)
			require.NoError(t, os.Remove(filepath.Join(place, "fill")))
			j.Result("b", output(`2`))
			jobs, _ = owed(t, again(t, j))
			require.Equal(t, []string{"a", "b"}, jobs, "there is room again")
		})
	}
}

func TestOpen_AStickyPlaceOfTheSystem(t *testing.T) {
	place := filepath.Join(t.TempDir(), "tmp")
	require.NoError(t, os.Mkdir(place, 0o700))
	require.NoError(t, os.Chmod(place, os.ModeSticky|0o777))
	require.NoError(t, open(t, place).Close())
}

func TestOpen_NoPlace(t *testing.T) {
	_, err := Open([]string{"/proc/journal"}, worker, slog.New(slog.DiscardHandler))
	require.Error(t, err)
}

func TestOpen_WhoseJournal(t *testing.T) {
	place := t.TempDir()
	j := open(t, place)
	j.Result("a", output(`1`))
	die(t, j)
	other, err := Open([]string{place}, "../w2\x00", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Equal(t, place, filepath.Dir(other.dir), "an id is no path")
	jobs, _ := owed(t, other)
	require.Empty(t, jobs)
	require.NoError(t, other.Close())
	jobs, _ = owed(t, open(t, place))
	require.Equal(t, []string{"a"}, jobs)
}

func TestOpen_SweepsWhatNobodyAsksFor(t *testing.T) {
	place := t.TempDir()
	make := func(name string, age time.Duration) string {
		dir := filepath.Join(place, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), nil, 0o600))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(dir, at, at))
		return dir
	}
	old := make(dirPrefix+"1"+bootSuffix(), maxAge+time.Hour)
	otherBoot := make(dirPrefix+"2-other", time.Minute)
	foreign := make("something", 2*maxAge)
	halfGone := make(dirPrefix+"4-other", 2*maxAge)
	require.NoError(t, os.Remove(filepath.Join(halfGone, lockName)))
	inUse := make(dirPrefix+"3-other", 2*maxAge)
	lock, err := os.Open(filepath.Join(inUse, lockName))
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, hold(lock))
	for i := range maxOthers {
		make(dirPrefix+"new"+strings.Repeat("i", i)+bootSuffix(), time.Duration(i+1)*time.Hour)
	}
	tooMany := make(dirPrefix+"5"+bootSuffix(), 20*time.Hour)

	j := open(t, place)
	require.NoDirExists(t, old)
	require.NoDirExists(t, otherBoot)
	require.NoDirExists(t, tooMany)
	require.NoDirExists(t, halfGone)
	require.DirExists(t, foreign)
	require.DirExists(t, inUse)
	entries, err := os.ReadDir(place)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(entries), maxOthers)
	require.DirExists(t, j.dir)
}

// A lock whose file was removed meanwhile, by a sweep, locks nobody out.
func TestHold_AFileThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), lockName)
	lock, err := os.Create(path)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, hold(lock), errBusy)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorIs(t, hold(lock), errBusy)
}

func TestLocal(t *testing.T) {
	require.NoError(t, local(t.TempDir()))
	require.Error(t, local("/nowhere"))
}

// A file system that never answers costs a moment, not the start.
func TestAnswering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		defer close(gone)
		began := time.Now()
		err := answering("/mnt/gone", func(string) error { <-gone; return nil })
		require.ErrorIs(t, err, errSilent)
		require.ErrorContains(t, err, "/mnt/gone")
		require.Equal(t, answerTime, time.Since(began))
		require.NoError(t, answering("/", func(string) error { return nil }))
		require.ErrorIs(t, answering("/", func(string) error { return errRemote }), errRemote)
	})
}

func TestJudge(t *testing.T) {
	tests := map[string]struct {
		magic uint32
		mount string
		local bool
	}{
		"ext4":                 {unix.EXT4_SUPER_MAGIC, "ext4", true},
		"overlay":              {unix.OVERLAYFS_SUPER_MAGIC, "overlay", true},
		"tmpfs":                {unix.TMPFS_MAGIC, "tmpfs", true},
		"NFS":                  {unix.NFS_SUPER_MAGIC, "nfs4", false},
		"a Windows share":      {unix.SMB2_SUPER_MAGIC, "cifs", false},
		"Lustre":               {0x0BD00BD0, "lustre", false},
		"a network volume":     {unix.FUSE_SUPER_MAGIC, "fuse.mfs", false},
		"FUSE of some kind":    {unix.FUSE_SUPER_MAGIC, "", false},
		"a rootless container": {unix.FUSE_SUPER_MAGIC, "fuse.fuse-overlayfs", true},
		"a disk behind FUSE":   {unix.FUSE_SUPER_MAGIC, "fuseblk", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := judge(tt.magic, func() string { return tt.mount })
			if tt.local {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errRemote)
			}
		})
	}
}

func TestKindOf(t *testing.T) {
	table := "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\nbad\n40 35 0:52 / /v rw - fuse.mfs mfs rw\n41 35 0:53 / / rw - fuse.fuse-overlayfs x rw\n"
	for device, want := range map[string]string{"98:0": "ext3", "0:52": "fuse.mfs", "0:53": "fuse.fuse-overlayfs", "0:5": ""} {
		require.Equal(t, want, kindOf(bufio.NewScanner(strings.NewReader(table)), device))
	}
}
