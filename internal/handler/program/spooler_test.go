package program

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// memory is a disk of files that count.
type memory struct {
	open, made int
	full       func(size int) error // asked before a file gets so large
}

func newMemory(full func(size int) error) *memory { return &memory{full: full} }

func (m *memory) spool() (protocol.Spool, error) {
	if err := m.full(0); err != nil {
		return nil, err
	}
	m.open++
	m.made++
	return &memoryFile{disk: m}, nil
}

type memoryFile struct {
	disk   *memory
	data   []byte
	closed bool
}

// Write writes what there is room for.
func (f *memoryFile) Write(b []byte) (int, error) {
	for n := range b {
		if err := f.disk.full(len(f.data) + 1); err != nil {
			return n, err
		}
		f.data = append(f.data, b[n])
	}
	return len(b), nil
}

func (f *memoryFile) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(f.data).ReadAt(b, at)
}
func (f *memoryFile) Size() int64 { return int64(len(f.data)) }

func (f *memoryFile) Close() error {
	if !f.closed {
		f.closed = true
		f.disk.open--
	}
	return nil
}

// What the disk does not take is kept in memory, whole, with one warning.
func TestSpooler_FullDisk(t *testing.T) {
	errFull := errors.New("no space left on device")
	output := `"` + strings.Repeat("0123456789", 30_000) + `"`
	head := "\x04\x00\x00\x00\x02no"
	for _, tt := range []struct {
		name string
		room int
	}{
		{"no file at all", -1},
		{"not a byte", 0},
		{"a part of the first write", 1000},
		{"one write", copySize},
		{"more than one write", copySize + 1},
		{"all but the last byte", len(output) - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			disk := newMemory(func(size int) error {
				if size > tt.room {
					return errFull
				}
				return nil
			})
			s := &spooler{create: disk.spool, from: 1000, log: slog.New(slog.NewTextHandler(&log, nil))}
			frame := raw(kindDone, 1, uint32(len(head)+len(output)), head+output)
			r := bufio.NewReader(strings.NewReader(frame + frame))
			for range 2 {
				f, err := readFrame(r, s)
				require.NoError(t, err)
				out, _, err := parseDone(f)
				require.NoError(t, err)
				require.Nil(t, out.Spool)
				require.Equal(t, "no", out.Error)
				require.Equal(t, output, string(out.Output))
				require.Equal(t, out.Output, s.outcome(out).Output, "nor does what came another way")
			}
			require.Zero(t, disk.open)
			require.Equal(t, 1, strings.Count(log.String(), errFull.Error()))
		})
	}
}

func TestSpooler_AStreamThatEnds(t *testing.T) {
	disk := newMemory(func(int) error { return nil })
	s := &spooler{create: disk.spool, from: 10, log: slog.New(slog.DiscardHandler)}
	whole := raw(kindDone, 1, 30, "\x04\x00\x00\x00\x00"+strings.Repeat("1", 25))
	for length := range len(whole) {
		_, err := readFrame(bufio.NewReader(strings.NewReader(whole[:length])), s)
		require.Error(t, err)
		require.Equal(t, length == 0, errors.Is(err, io.EOF))
	}
	require.Positive(t, disk.made)
	require.Zero(t, disk.open)
}

// A frame that claims to be large, or to have a large error, does not get a file for it.
func TestSpooler_OnlyOutputs(t *testing.T) {
	for _, tt := range []struct {
		name, payload string
		file          bool
	}{
		{"a large output", "\x04\x00\x00\x00\x000123456789", true},
		{"a small output", "\x04\x00\x00\x00\x00012345678", false},
		{"a large error", "\x04\x00\x00\x00\x0a01234567890", false},
		{"a large error and a large output", "\x04\x00\x00\x00\x0a01234567890123456789", true},
		{"an error that is longer than all", "\x04\x00\x00\x00\xff0123456789", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := newMemory(func(int) error { return nil })
			s := &spooler{create: disk.spool, from: 10, log: slog.New(slog.DiscardHandler)}
			f, err := readFrame(bufio.NewReader(strings.NewReader(raw(kindDone, 1, uint32(len(tt.payload)), tt.payload))), s)
			require.NoError(t, err)
			require.Equal(t, tt.file, f.spool != nil)
		})
	}
}
