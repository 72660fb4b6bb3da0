package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// rig is a screen without a terminal, whose clock stands still and whose runs only the test plays.
type rig struct {
	*screen
	now    time.Time
	began  [][]checks.Step
	cancel int
}

func newRig(o Options) *rig {
	r := &rig{now: noon}
	if o.Document.Title == "" {
		o.Document = Document{Title: "runpodctl-worker doctor", Version: "1.2.3", Host: []checks.Fact{
			{Name: "host", Value: "gpu-7"},
			{Name: "os", Value: "Linux 6.8.0"},
			{Name: "gpus", Value: 2, Text: "2 × NVIDIA H200"},
			{Name: "driver", Value: "570.86.15", Text: "driver 570.86.15"},
		}}
	}
	r.screen = newScreen(o, func(s []checks.Step) { r.began = append(r.began, s) }, func() { r.cancel++ })
	r.clock = func() time.Time { return r.now }
	r.Init()
	return r
}

func (r *rig) play(events ...checks.Event) tea.Cmd {
	var cmd tea.Cmd
	for _, e := range events {
		_, cmd = r.Update(eventMsg{e})
	}
	return cmd
}

func (r *rig) press(keys ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, k := range keys {
		_, cmd = r.Update(keyMsg(k))
	}
	return cmd
}

func (r *rig) resize(w, h int) { r.Update(tea.WindowSizeMsg{Width: w, Height: h}) }

func (r *rig) wait(d time.Duration) {
	r.now = r.now.Add(d)
	r.Update(tickMsg{})
}

func keyMsg(name string) tea.KeyMsg {
	types := map[string]tea.KeyType{
		"up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome,
		"end": tea.KeyEnd, "enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "ctrl+c": tea.KeyCtrlC,
		"backspace": tea.KeyBackspace,
	}
	if kind, ok := types[name]; ok {
		return tea.KeyMsg{Type: kind}
	}
	if name == " " {
		return tea.KeyMsg{Type: tea.KeySpace, Runes: []rune(" ")}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

func planOf(rows []checks.Row) []checks.Step {
	var plan []checks.Step
	for _, row := range rows {
		plan = append(plan, row.Step)
	}
	return plan
}

// playScene plays a whole run, or as much of it as has the first n results and one more step running.
func (r *rig) playScene(n int) {
	rows := scene()
	for i, row := range rows {
		r.play(checks.Started{Step: row.Step, At: r.now})
		if i == n {
			r.wait(1300 * time.Millisecond)
			return
		}
		r.play(checks.Finished{Row: row})
	}
	r.play(checks.Ended{Report: checks.Report{Began: noon, Took: 80 * time.Second, Rows: rows}})
}

func TestView_Golden(t *testing.T) {
	for _, size := range [][2]int{{40, 15}, {80, 24}, {200, 60}} {
		for name, prepare := range map[string]func(*rig){
			"running": func(r *rig) { r.playScene(4) },
			"ended":   func(r *rig) { r.playScene(len(scene())) },
			"detail":  func(r *rig) { r.playScene(len(scene())); r.press("enter") },
			"help":    func(r *rig) { r.playScene(len(scene())); r.press("?") },
		} {
			name = fmt.Sprintf("%s %dx%d", name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				r := newRig(Options{Steps: planOf(scene())})
				r.resize(size[0], size[1])
				prepare(r)
				requireGolden(t, name, trimRight(r.View()))
			})
		}
	}
	t.Run("colour", func(t *testing.T) {
		r := newRig(Options{Steps: planOf(scene()), Color: true})
		r.resize(80, 24)
		r.playScene(len(scene()))
		requireGolden(t, "colour 80x24", strings.ReplaceAll(r.View(), "\x1b", "␛"))
	})
}

// trimRight takes away what only pads: editors do so too.
func trimRight(view string) string {
	lines := strings.Split(view, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// hostileRows are forty checks of a user with no mercy.
func hostileRows() []checks.Row {
	names := []string{
		"plain", "模型权重检查模型权重检查模型权重检查", "👩‍💻🏳️‍🌈🤖", "", "\x1b[31mred\x1b[2J", "a\nb\tc\rd",
		strings.Repeat("long", 60), "e\u0301\u0301\u0301", "\u202egnp", "한국어 이름",
	}
	var rows []checks.Row
	for i := range 40 {
		name := names[i%len(names)]
		rows = append(rows, rowOf(fmt.Sprintf("user.%d", i), name, checks.Phase(1+i/20), time.Duration(i)*time.Minute, checks.Result{
			Status: checks.Status(i % 5), Summary: name + " summary " + name, Remedy: strings.Repeat(name+" ", 9),
			Threshold: &checks.Threshold{Text: name, Origin: name},
			Facts:     []checks.Fact{{Name: name, Value: name}, {Name: "many", Value: strings.Repeat(name, 50)}},
			Output:    strings.Repeat(name+"\n", 99),
		}))
	}
	return rows
}

func TestView_FitsAnyWindow(t *testing.T) {
	sizes := [][2]int{
		{0, 0},
		{0, 5},
		{5, 0},
		{1, 1},
		{2, 2},
		{3, 9},
		{10, 5},
		{9, 30},
		{20, 10},
		{20, 24},
		{33, 7},
		{64, 13},
		{80, 24},
		{109, 19},
		{110, 20},
		{111, 8},
		{300, 3},
		{300, 100},
	}
	states := map[string][]string{
		"list": nil, "last": {"G"}, "detail": {"enter"}, "end of the detail": {"enter", "G"}, "help": {"?"},
		"filter": {"/", "l", "o", "n", "g"}, "no match": {"/", "z", "z", "z", "enter"}, "problems": {"tab"},
	}
	for name, keys := range states {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ended %t", name, ended), func(t *testing.T) {
				rows := hostileRows()
				r := newRig(Options{
					Steps: planOf(rows), Watch: time.Hour, Color: true,
					Document: Document{Title: rows[6].Step.Title, Host: rows[1].Result.Facts},
				})
				for _, row := range rows {
					r.play(checks.Started{Step: row.Step, At: noon}, checks.Finished{Row: row})
				}
				if ended {
					r.play(checks.Ended{Report: checks.Report{Rows: rows}})
				}
				r.press(keys...)
				for _, size := range sizes {
					r.resize(size[0], size[1])
					r.press("down", "up")
					requireFits(t, r)
				}
			})
		}
	}
}

func requireFits(t *testing.T, r *rig) {
	t.Helper()
	w, h := r.size()
	view := r.View()
	if h == 0 {
		require.Empty(t, view)
		return
	}
	lines := strings.Split(view, "\n")
	require.Len(t, lines, h, "%d×%d", w, h)
	for _, line := range lines {
		require.LessOrEqual(t, ansi.StringWidth(line), w, "%d×%d: %q", w, h, line)
	}
}

func TestView_EveryLineIsReachable(t *testing.T) {
	rows := hostileRows()
	for i := range rows {
		rows[i].Step.Title = fmt.Sprintf("check %02d", i)
	}
	for _, size := range [][2]int{{20, 10}, {20, 1}, {80, 24}, {120, 30}, {300, 100}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			r := newRig(Options{Steps: planOf(rows)})
			r.resize(size[0], size[1])
			r.press("g")
			for _, row := range rows {
				require.Equal(t, row.Step.Key(), r.selected)
				require.Contains(t, r.View(), row.Step.Title)
				r.press("j")
			}
			r.press("g")
			require.Contains(t, r.View(), "check 00")
			r.press("G")
			require.Contains(t, r.View(), "check 39")
		})
	}
}

func TestView_HeadingComesWithTheFirstOfItsPhase(t *testing.T) {
	rows := hostileRows()
	r := newRig(Options{Steps: planOf(rows)})
	r.resize(20, 10)
	for r.press("G"); r.selected != rows[20].Step.Key(); {
		r.press("k")
	}
	require.Contains(t, r.View(), "Start checks")
}

func TestView_NothingOfACheckReachesTheTerminal(t *testing.T) {
	rows := hostileRows()
	r := newRig(Options{Steps: planOf(rows)})
	for _, row := range rows {
		r.play(checks.Finished{Row: row})
	}
	for range rows {
		for range 2 {
			require.NotContains(t, r.View(), "\x1b", "without colour there is nothing to escape")
			require.NotContains(t, r.View(), "\r")
			require.NotContains(t, r.View(), "\u202e")
			r.press("enter")
		}
		r.press("j")
	}
}
