package tui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

// ended is a screen on which the scene has been played.
func ended(o Options) *rig {
	o.Steps = planOf(scene())
	r := newRig(o)
	r.resize(80, 24)
	r.playScene(len(scene()))
	return r
}

func TestKeys_Move(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string
	}{
		"the worst at first":       {nil, "early/gpu_memory"},
		"down and up":              {[]string{"down", "j", "up", "k", "j"}, "early/gpu_health"},
		"to the ends":              {[]string{"G", "g"}, "early/memory"},
		"not beyond the first":     {[]string{"g", "up", "k"}, "early/memory"},
		"not beyond the last":      {[]string{"end", "down", "j"}, "start/user.tokenizer"},
		"a page":                   {[]string{"home", "pgdown"}, "start/user.tokenizer"},
		"a page back":              {[]string{"G", "pgup"}, "early/memory"},
		"several in one message":   {[]string{"g", "jjj"}, "early/gpu_memory"},
		"not by what is pasted":    {[]string{"g", "[paste]"}, "early/memory"},
		"the detail moves instead": {[]string{"enter", "j", "j"}, "early/gpu_memory"},
		"the filter keeps it":      {[]string{"/", "g", "p", "u", "enter"}, "early/gpu_memory"},
		"the filter moves it":      {[]string{"/", "t", "o", "k", "e", "n", "enter"}, "start/user.tokenizer"},
		"only among the problems":  {[]string{"tab", "g"}, "early/disk"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ended(Options{})
			for _, k := range tt.keys {
				if k == "[paste]" {
					r.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("jjj"), Paste: true})
					continue
				}
				r.press(k)
			}
			require.Equal(t, tt.want, r.selected)
		})
	}
}

func TestKeys_SelectionStaysWhereItWasPut(t *testing.T) {
	r := newRig(Options{Steps: planOf(scene())})
	r.press("j")
	r.playScene(len(scene()))
	require.Equal(t, "early/disk", r.selected, "the end of a run must not move it")

	row := scene()[0]
	r.play(checks.Found{After: row.Step.Key(), Steps: []checks.Step{{Check: check("user.new", "New", checks.Early, checks.Result{}), In: checks.Early}}})
	require.Equal(t, "early/disk", r.selected, "nor lines that are inserted above")
}

func TestKeys_Esc(t *testing.T) {
	r := ended(Options{})
	r.press("/", "g", "p", "u")
	require.Contains(t, r.View(), "enter keep the filter  esc clear it")
	r.press("enter", "enter", "?", "esc")
	require.False(t, r.help)
	require.True(t, r.detail)
	r.press("esc")
	require.False(t, r.detail)
	require.Equal(t, "gpu", r.filter)
	r.press("esc")
	require.Empty(t, r.filter)
	require.False(t, quits(r.press("tab", "esc")))
	require.False(t, r.trouble)
	require.True(t, quits(r.press("esc")))
}

func TestKeys_Filter(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want []string
	}{
		"by title":             {[]string{"/", "c", "u", "d", "a", " ", "c"}, []string{"cuda_init"}},
		"by id":                {[]string{"/", "g", "p", "u", "_", "h"}, []string{"gpu_health"}},
		"by status":            {[]string{"/", "f", "a", "i", "l"}, []string{"gpu_memory"}},
		"by summary":           {[]string{"/", "n", "v", "m", "l"}, []string{"gpu_health"}},
		"whatever the case":    {[]string{"/", "N", "E", "T", "W"}, []string{"network"}},
		"corrected":            {[]string{"/", "n", "e", "x", "backspace", "t", "w"}, []string{"network"}},
		"q is a letter in it":  {[]string{"/", "q"}, nil},
		"taken back":           {[]string{"/", "q", "esc", "/", "n", "e", "t", "w"}, []string{"network"}},
		"only problems":        {[]string{"tab"}, []string{"disk", "gpu_memory", "gpu_health", "user.tokenizer"}},
		"problems of one kind": {[]string{"tab", "/", "w", "a", "r", "n"}, []string{"disk", "user.tokenizer"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := ended(Options{})
			r.press(tt.keys...)
			var got []string
			for _, l := range r.shown() {
				got = append(got, l.step.ID)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// A line that the filter hides is neither shown as the selected one nor run.
func TestKeys_NothingToShow(t *testing.T) {
	r := ended(Options{})
	r.resize(200, 60)
	r.press("/", "q", "enter")
	require.Contains(t, r.View(), "nothing to show")
	require.Empty(t, r.detailLines(80))
	r.press("r")
	require.False(t, r.busy)
	r.press("esc")
	require.NotEmpty(t, r.detailLines(80))
}

func TestKeys_Leave(t *testing.T) {
	for name, tt := range map[string]struct {
		running     bool
		key         string
		interrupted bool
	}{
		"q":                          {false, "q", false},
		"esc":                        {false, "esc", false},
		"ctrl+c":                     {false, "ctrl+c", true},
		"q while checks run":         {true, "q", true},
		"esc while checks run":       {true, "esc", true},
		"ctrl+c while checks run":    {true, "ctrl+c", true},
		"q within a detail":          {false, "q", false},
		"the context while they run": {true, "context", true},
		"the context":                {false, "context", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(Options{Steps: planOf(scene())})
			if r.playScene(4); !tt.running {
				r = ended(Options{})
			}
			var cmd tea.Cmd
			if tt.key == "context" {
				_, cmd = r.Update(stopMsg{})
			} else {
				cmd = r.press(tt.key)
			}
			if tt.running {
				require.False(t, quits(cmd), "it waits until the checks have been interrupted")
				require.Equal(t, 1, r.cancel)
				require.Contains(t, r.View(), "stopping")
				cmd = r.play(checks.Ended{})
			}
			require.True(t, quits(cmd))
			require.Equal(t, tt.interrupted, r.interrupted)
		})
	}
}

// quits tells whether a command ends the program.
func quits(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		return slices.ContainsFunc(msg, quits)
	}
	return false
}

func TestKeys_SaveAndCopy(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	var copied strings.Builder
	r := ended(Options{Out: &copied})
	for range 2 {
		r.Update(r.saveReport()())
	}
	require.Contains(t, r.hint, "doctor-20260701-120000-2.json")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 2, "a report never overwrites another")

	r.Update(r.copyReport()())
	require.True(t, strings.HasPrefix(copied.String(), "\x1b]52;c;"))
	require.Contains(t, r.hint, "clipboard")
	r.wait(hintTime)
	require.Empty(t, r.hint)

	require.NoError(t, os.RemoveAll(dir))
	r.Update(r.saveReport()())
	require.Contains(t, r.hint, "not saved: open doctor-20260701-120004.json: ")
	r.wait(time.Hour)
}
