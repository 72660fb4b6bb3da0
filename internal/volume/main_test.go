package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// childVariable holds what a test's own program is to do as a worker that may be killed: JSON of a childJob.
const childVariable = "VOLUME_TEST_CHILD"

const nobody = 65534

type childJob struct {
	Volume string
	Dirs   []string
	Limit  uint64 // of the size of its files
	Open   uint64 // how many it may have open
	Once   bool
	Nobody bool // who has no rights but those that all have, if whoever runs the tests may become that
}

func TestMain(m *testing.M) {
	if job := os.Getenv(childVariable); job != "" {
		child(job)
		return
	}
	code := m.Run()
	if err := official.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// child syncs, again and again if it is to, and says so on standard output.
func child(text string) {
	var job childJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		panic(err)
	}
	limitFiles(job.Limit)
	limitOpen(job.Open)
	if job.Nobody && os.Geteuid() == 0 {
		for _, err := range []error{unix.Setgroups(nil), unix.Setgid(nobody), unix.Setuid(nobody)} {
			if err != nil {
				panic(err)
			}
		}
	}
	for {
		cache, err := New(Options{Volume: job.Volume, Namespace: namespace, Dirs: job.Dirs})
		if err != nil {
			panic(err)
		}
		fmt.Println("begin")
		report, err := cache.Sync(context.Background())
		if job.Once {
			fmt.Println(report.Files, err)
			return
		}
		if err != nil {
			panic(err)
		}
		for _, dir := range job.Dirs { // else there is nothing to do
			if err := refresh(dir); err != nil {
				panic(err)
			}
		}
	}
}
