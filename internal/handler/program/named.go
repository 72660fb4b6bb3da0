package program

import "encoding/json"

// Named is a line that comes from the Python package.
type Named struct {
	Job     string // empty: none
	Level   string // empty: it was printed, not logged
	Message string
}

// ParseNamed reads such a line. Any other, which came past the package or was printed outside of jobs, is none.
func ParseNamed(text []byte) (Named, bool) {
	var record map[string]*string
	if json.Unmarshal(text, &record) != nil || len(record) != 3 || record["message"] == nil {
		return Named{}, false
	}
	job, hasJob := record["requestId"]
	level, hasLevel := record["level"]
	if !hasJob || !hasLevel {
		return Named{}, false
	}
	named := Named{Message: *record["message"]}
	if job != nil {
		named.Job = *job
	}
	if level != nil {
		named.Level = *level
	}
	return named, true
}
