package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"runpodctl-worker/test/proctree"

	"runpodctl-worker/test/child"
)

// settle is how long a worker is left alone before its memory is read.
const settle = 3 * time.Second

// memory is what an idle worker holds, all its processes together.
func (b *bench) memory() ([]comparison, error) {
	rss := comparison{what: "idle, all processes: RSS", unit: "MiB", rival: "SDK", bound: atMost(0.5)}
	pss := comparison{what: "idle, all processes: PSS", unit: "MiB", rival: "SDK", bound: atMost(0.5)}
	for _, side := range []struct {
		start    launch
		rss, pss *samples
	}{{b.ours, &rss.ours, &pss.ours}, {b.sdk, &rss.theirs, &pss.theirs}} {
		// One job is done first, so that nothing is left to be loaded.
		r := newReferee(`{}`, 1, 0)
		err := b.with(r, side.start, "noop.py", 1, func(p *child.Process) error {
			time.Sleep(settle)
			m, err := proctree.Measure(p.Pid())
			if err != nil {
				return err
			}
			*side.rss = append(*side.rss, float64(m.RSS)/(1<<20))
			*side.pss = append(*side.pss, float64(m.PSS)/(1<<20))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return []comparison{rss, pss}, nil
}

// help is the wall time of --help beside that of a program that has only the flag library.
func (b *bench) help() ([]comparison, error) {
	empty, err := b.build("emptycli")
	if err != nil {
		return nil, err
	}
	ratio := comparison{what: "--help", unit: "ms", rival: "empty program, same flag library", bound: atMost(1.5)}
	for range 15 * b.reps {
		for _, side := range []struct {
			path string
			into *samples
		}{{b.bin, &ratio.ours}, {empty, &ratio.theirs}} {
			began := time.Now()
			if err := exec.Command(side.path, "--help").Run(); err != nil {
				return nil, err
			}
			*side.into = append(*side.into, time.Since(began).Seconds()*1e3)
		}
	}
	wall := ratio
	wall.bound, wall.judged = atMost(30), byOurs
	return []comparison{ratio, wall}, nil
}

// size is the released binary, with both GPU helpers inside.
func (b *bench) size() ([]comparison, error) {
	empty, err := b.build("emptycli")
	if err != nil {
		return nil, err
	}
	released := filepath.Join(b.dir, "released")
	if out, err := exec.Command("make", "release-build", "BIN="+released).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make release-build: %w: %s", err, out)
	}
	c := comparison{what: "released binary, GPU helpers inside", unit: "MB", rival: "empty program, same flag library", bound: atMost(30), judged: byOurs}
	for _, side := range []struct {
		path string
		into *samples
	}{{released, &c.ours}, {empty, &c.theirs}} {
		info, err := os.Stat(side.path)
		if err != nil {
			return nil, err
		}
		*side.into = append(*side.into, float64(info.Size())/1e6)
	}
	return []comparison{c}, nil
}

// build makes one of the programs under testdata that we compare with.
func (b *bench) build(name string) (string, error) {
	path := filepath.Join(b.dir, name)
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "./test/bench/testdata/"+name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return path, nil
}
