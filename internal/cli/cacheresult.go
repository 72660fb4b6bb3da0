package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/tui"
	"runpodctl-worker/internal/volume"
)

// cacheSchema is the version of the JSON document. It rises when a reader of the old form would misread the new one.
const cacheSchema = 1

// cacheResult is what came of an action.
type cacheResult struct {
	action, mirror string
	dirs           int // how many were named
	dryRun, repair bool

	available bool
	warning   error
	report    any      // of the engine
	lines     []string // for people
	failed    bool
}

// act has the engine do it. Without a volume nothing is done, which is no failure.
func (r *cacheResult) act(ctx context.Context, cache *volume.Cache) error {
	err := r.do(ctx, cache)
	if errors.Is(err, volume.ErrNoVolume) {
		r.report, r.lines = nil, []string{err.Error()}
		return nil
	}
	r.available = true
	if err == nil {
		r.warning = cache.Available() // it answers, but may be a folder of this machine
	}
	return err
}

func (r *cacheResult) do(ctx context.Context, cache *volume.Cache) error {
	switch r.action {
	case actionHydrate:
		report, err := cache.Hydrate(ctx)
		r.report, r.lines = report, append([]string{hydrated(report, r.mirror)}, skips(report.Skipped, report.SkippedTotal)...)
		return err
	case actionSync:
		report, err := cache.Sync(ctx)
		r.report, r.lines = report, append([]string{synced(report, r.mirror)}, skips(report.Skipped, report.SkippedTotal)...)
		return err
	case actionStatus:
		status, err := cache.Status(ctx)
		r.report, r.lines = status, statusLines(status, r.dirs)
		return err
	case actionVerify:
		found, err := cache.Verify(ctx, r.repair)
		r.report, r.lines, r.failed = found, findingLines(found, r.mirror), found.ProblemsTotal > 0
		return err
	default:
		pruned, err := cache.Prune(ctx, r.dryRun)
		r.report, r.lines = pruned, prunedLines(pruned, r.mirror, r.dryRun)
		return err
	}
}

// printCacheResult prints it on stdout.
func (s *session) printCacheResult(c *cli.Context, r *cacheResult) error {
	if c.Bool(flagJSON) {
		enc := json.NewEncoder(s.Stdout)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(struct {
			Schema    int    `json:"schema"`
			Action    string `json:"action"`
			Mirror    string `json:"mirror"`
			Available bool   `json:"available"`
			DryRun    bool   `json:"dry_run,omitempty"`
			Report    any    `json:"report,omitempty"`
		}{cacheSchema, r.action, r.mirror, r.available, r.dryRun, r.report}); err != nil {
			return fmt.Errorf("cannot print the result: %w", err)
		}
	} else if _, err := fmt.Fprintln(s.Stdout, strings.Join(r.lines, "\n")); err != nil {
		return fmt.Errorf("cannot print the result: %w", err)
	}
	if r.failed {
		return silent(exitFailed)
	}
	return nil
}

// hydrated and synced begin as the SDK's lines do.
func hydrated(r volume.Report, mirror string) string {
	return fmt.Sprintf("hydrated %d file(s) from %s%s", r.Files, mirror, amount(r))
}

func synced(r volume.Report, mirror string) string {
	return fmt.Sprintf("synced %d file(s) to %s%s", r.Files, mirror, amount(r))
}

func amount(r volume.Report) string {
	text := fmt.Sprintf(": %s in %s, %d unchanged", tui.Size(r.Bytes), inSeconds(r.Seconds), r.Unchanged)
	if r.Links > 0 {
		text += fmt.Sprintf(", %d link(s)", r.Links)
	}
	if r.SkippedTotal > 0 {
		text += fmt.Sprintf(", %d left out", r.SkippedTotal)
	}
	return text
}

func skips(list []volume.Skip, total int) []string {
	var lines []string
	for _, skip := range list {
		lines = append(lines, "left out "+shownPath(skip.Path)+": "+visible(skip.Reason))
	}
	return more(lines, total)
}

// more says that a list goes on.
func more(lines []string, total int) []string {
	if rest := total - len(lines); rest > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", rest))
	}
	return lines
}

func statusLines(s volume.Status, dirs int) []string {
	count := func(c volume.Count) string { return fmt.Sprintf("%d file(s), %s", c.Files, tui.Size(c.Bytes)) }
	lines := []string{"mirror      " + s.Mirror}
	if s.Present {
		lines = append(lines,
			"written     "+s.Written.UTC().Format(time.DateTime)+" UTC",
			"small       "+count(s.Small),
			"big         "+count(s.Big),
			"links       "+strconv.Itoa(s.Links))
	} else {
		lines = append(lines, "written     never")
	}
	if dirs > 0 { // without any, nobody has looked
		lines = append(lines, "to hydrate  "+count(s.ToHydrate), "to sync     "+count(s.ToSync))
	}
	if w := s.Writer; w != nil {
		lines = append(lines, fmt.Sprintf("writer      process %d on %s, seen %s ago", w.PID, shownPath(w.Host), inSeconds(w.Age)))
	}
	return append(lines, skips(s.Skipped, 0)...)
}

func findingLines(f volume.Findings, mirror string) []string {
	var lines []string
	for _, p := range f.Problems {
		lines = append(lines, shownPath(p.Path)+": "+p.What)
	}
	lines = more(lines, f.ProblemsTotal)
	for _, name := range f.Removed {
		lines = append(lines, "removed "+shownPath(name)+"; the next sync brings it again")
	}
	text := fmt.Sprintf("%s: %d file(s), %s read in %s, %d problem(s)", mirror, f.Files, tui.Size(f.Bytes), inSeconds(f.Seconds), f.ProblemsTotal)
	if f.Unhashed > 0 {
		text += fmt.Sprintf("; of %d the manifest has no checksum, only the size", f.Unhashed)
	}
	return append(lines, text)
}

func prunedLines(p volume.Pruned, mirror string, dryRun bool) []string {
	removed := "removed"
	if dryRun {
		removed = "would remove"
	}
	var lines []string
	for _, path := range p.Files {
		lines = append(lines, removed+" "+shownPath(path))
	}
	return append(lines, fmt.Sprintf("%s %d file(s), %s, from %s", removed, len(p.Files), tui.Size(p.Bytes), mirror))
}

func inSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// shownPath quotes a name that a terminal would obey instead of show: what lies on a volume may be anybody's.
func shownPath(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
