package volume

import "strings"

// unfinished are the ends of names that belong to locks, downloads that were interrupted, and files that are being written.
var unfinished = []string{".lock", ".incomplete", ".part", ".tmp", ".crdownload"}

// unwanted are folders of which nothing is kept: the hub's notes of what does not exist, and of downloads to a plain folder.
var unwanted = []string{"/.no_exist/", "/.cache/huggingface/download/"}

// refsFolder has the hub's names of revisions. The Python class leaves it out.
const refsFolder = "/refs/"

// excluded tells whether a file is left out, in both directions.
func excluded(path string) bool {
	for _, end := range unfinished {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	for _, folder := range unwanted {
		if strings.Contains(path, folder) {
			return true
		}
	}
	return false
}
