package tui

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// saveReport writes the report into a file of its own, in the working directory, and says where.
func (s *screen) saveReport() tea.Cmd {
	d, name := s.document(), "doctor-"+s.clock().Format("20060102-150405")
	return func() tea.Msg {
		path, err := save(d, name)
		if err != nil {
			return hintMsg("not saved: " + err.Error())
		}
		return hintMsg("saved as " + path)
	}
}

// save writes the document as JSON. It never overwrites a file, and what it could not write whole it takes away.
func save(d Document, name string) (path string, err error) {
	var file *os.File
	for n := 1; ; n++ {
		path = name + ".json"
		if n > 1 {
			path = fmt.Sprintf("%s-%d.json", name, n)
		}
		file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	if err := errors.Join(JSON(file, d), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// copyReport hands the report to the terminal for the clipboard, which works over ssh too. Whether the terminal obeys
// cannot be known.
func (s *screen) copyReport() tea.Cmd {
	sequence, out := ansi.SetSystemClipboard(s.document().Text()), s.options.Out
	return func() tea.Msg {
		if _, err := io.WriteString(out, sequence); err != nil {
			return hintMsg("not copied: " + err.Error())
		}
		return hintMsg("report sent to the terminal's clipboard")
	}
}
