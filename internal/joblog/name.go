package joblog

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

const (
	suffix = ".jsonl"
	// longestName is the longest id, as it is written in the name of a file, that stays whole: file systems take names of 255 bytes.
	longestName = 128
)

// fileName is the name of a job's file: the id as in a URL, so that none leads out of the directory.
func fileName(job string) string {
	name := url.PathEscape(job)
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(job))
		name = name[:longestName] + "-" + hex.EncodeToString(sum[:])
	}
	return name + suffix
}
