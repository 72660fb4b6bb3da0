package tui

import (
	"strings"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// keys are the keys of the screen, in the order of the help.
var keys = struct {
	up, down, pageUp, pageDown, first, last, detail, run, all, failed, filter, trouble, copy, save, help, back, quit, stop, keep, drop key.Binding
}{
	up:       bind("↑↓ jk", "move", "up", "k"),
	down:     bind("↓", "move", "down", "j"),
	pageUp:   bind("PgUp PgDn", "a page", "pgup", "ctrl+u"),
	pageDown: bind("PgDn", "a page", "pgdown", "ctrl+d"),
	first:    bind("g G", "to the ends", "g", "home"),
	last:     bind("G", "to the end", "G", "end"),
	detail:   bind("enter", "detail", "enter", " "),
	run:      bind("r", "run again", "r"),
	all:      bind("a", "run all", "a"),
	failed:   bind("f", "run failed", "f"),
	filter:   bind("/", "filter", "/"),
	trouble:  bind("tab", "problems only", "tab"),
	copy:     bind("y", "copy report", "y"),
	save:     bind("s", "save report", "s"),
	help:     bind("?", "help", "?"),
	back:     bind("esc", "back", "esc"),
	quit:     bind("q", "quit", "q"),
	stop:     bind("ctrl+c", "interrupt", "ctrl+c"),
	keep:     bind("enter", "keep the filter", "enter"),
	drop:     bind("esc", "clear it", "esc"),
}

func bind(label, help string, names ...string) key.Binding {
	return key.NewBinding(key.WithKeys(names...), key.WithHelp(label, help))
}

// typed is what came from the keyboard at once: over a slow line, several keys come as one message.
func (s *screen) typed(msg tea.KeyMsg) tea.Cmd {
	if msg.Type != tea.KeyRunes || msg.Paste || len(msg.Runes) == 1 {
		return s.key(msg)
	}
	cmds := make([]tea.Cmd, len(msg.Runes))
	for i, r := range msg.Runes {
		cmds[i] = s.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: msg.Alt})
	}
	return tea.Batch(cmds...)
}

func (s *screen) key(msg tea.KeyMsg) tea.Cmd {
	switch {
	case key.Matches(msg, keys.stop):
		return s.leave(true)
	case s.typing:
		s.typeFilter(msg)
		return nil
	case key.Matches(msg, keys.quit):
		return s.leave(false)
	case s.help:
		s.help = false
		return nil
	}
	switch {
	case key.Matches(msg, keys.back):
		return s.back()
	case key.Matches(msg, keys.help):
		s.help = true
	case key.Matches(msg, keys.detail):
		s.detail, s.offset = !s.detail, 0
	case key.Matches(msg, keys.filter):
		s.typing, s.detail = true, false
	case key.Matches(msg, keys.trouble):
		s.trouble, s.detail = !s.trouble, false
	case key.Matches(msg, keys.run):
		s.runSelected()
	case key.Matches(msg, keys.all):
		s.runAll()
	case key.Matches(msg, keys.failed):
		s.runFailed()
	case key.Matches(msg, keys.copy):
		return s.copyReport()
	case key.Matches(msg, keys.save):
		return s.saveReport()
	default:
		s.move(msg)
	}
	return nil
}

// back takes away what was laid over the list last; then there is nothing left but to leave.
func (s *screen) back() tea.Cmd {
	switch {
	case s.detail:
		s.detail = false
	case s.filter != "" || s.trouble:
		s.filter, s.trouble = "", false
	default:
		return s.leave(false)
	}
	return nil
}

func (s *screen) typeFilter(msg tea.KeyMsg) {
	switch {
	case key.Matches(msg, keys.keep):
		s.typing = false
	case key.Matches(msg, keys.drop):
		s.typing, s.filter = false, ""
	case msg.Type == tea.KeyBackspace:
		if runes := []rune(s.filter); len(runes) > 0 {
			s.filter = string(runes[:len(runes)-1])
		}
	case msg.Type == tea.KeySpace:
		s.filter += " "
	case msg.Type == tea.KeyRunes:
		s.filter += cleanLine(string(msg.Runes))
	}
}

// move moves the selection, or the detail where that stands alone.
func (s *screen) move(msg tea.KeyMsg) {
	page := max(1, s.bodyHeight()-1)
	var by int
	switch {
	case key.Matches(msg, keys.up):
		by = -1
	case key.Matches(msg, keys.down):
		by = 1
	case key.Matches(msg, keys.pageUp):
		by = -page
	case key.Matches(msg, keys.pageDown):
		by = page
	case key.Matches(msg, keys.first):
		by = -farAway
	case key.Matches(msg, keys.last):
		by = farAway
	default:
		return
	}
	if s.detail {
		s.offset += by
		return
	}
	s.moved = true
	s.selectBy(by)
}

// farAway is more lines than anything has.
const farAway = 1 << 20

func (s *screen) runSelected() {
	l := s.board.find(s.selected)
	switch {
	case l == nil, !s.matches(l):
	case s.leaving:
	case l.stage == running:
		s.tell(cleanLine(l.step.Title) + " is running")
	case l.stage == waiting:
		s.tell(cleanLine(l.step.Title) + " waits for its turn")
	default:
		s.wish([]*line{l})
	}
}

func (s *screen) runAll() {
	if s.busy {
		s.tell("the checks are running")
		return
	}
	s.startAll()
}

func (s *screen) runFailed() {
	var failed []*line
	for _, l := range s.board.lines {
		if l.troubled() && l.stage == done {
			failed = append(failed, l)
		}
	}
	switch {
	case s.leaving:
	case len(failed) == 0:
		s.tell("nothing failed")
	default:
		s.wish(failed)
	}
}

// matches tells whether a line passes the filters.
func (s *screen) matches(l *line) bool {
	if s.trouble && !l.troubled() {
		return false
	}
	want := strings.ToLower(strings.TrimSpace(s.filter))
	text := l.step.ID + " " + l.step.Title
	if l.last != nil {
		text += " " + l.last.Result.Summary + " " + l.last.Result.Status.String()
	}
	return strings.Contains(strings.ToLower(text), want)
}
