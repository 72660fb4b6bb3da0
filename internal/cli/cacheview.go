package cli

import (
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/tui"
	"runpodctl-worker/internal/volume"
)

// cacheView is what somebody at a terminal sees while an action goes on. Elsewhere there is only the log.
type cacheView struct {
	bar  *tui.Bar // nil: nobody looks
	log  *slog.Logger
	what string
}

func (s *session) newCacheView(c *cli.Context, action string) (*cacheView, error) {
	v := &cacheView{what: action}
	out := s.Stderr
	kind, _ := s.Lookup("TERM")
	if file, ok := s.Stderr.(*os.File); ok && isTerminal(file) && kind != "dumb" && !c.Bool(flagJSON) {
		v.bar = tui.NewBar(file, func() int { return width(file) }, s.lively(c, file))
		out = io.Writer(v.bar)
	}
	var err error
	v.log, err = s.logger(c, out, s.localLookup, s.lively(c, s.Stderr))
	return v, err
}

func (v *cacheView) progress(p volume.Progress) {
	if v.bar != nil {
		v.bar.Show(tui.Share{What: v.what, Files: p.Files, FilesTotal: p.FilesTotal, Bytes: p.Bytes, BytesTotal: p.BytesTotal})
	}
}

func (v *cacheView) close() {
	if v.bar != nil {
		v.bar.Close()
	}
}

// volumeLog has engines write into a log, each thing once.
func volumeLog(log *slog.Logger) func(level, text string) {
	var said sync.Map
	return func(level, text string) {
		if _, again := said.LoadOrStore(text, true); again {
			return
		}
		if level == "warn" {
			log.Warn("VolumeCache: " + text)
			return
		}
		log.Info("VolumeCache: " + text)
	}
}
