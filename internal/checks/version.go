package checks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Version is a CUDA version, compared by its numbers: 12.10 is newer than 12.8.
type Version struct{ Major, Minor int }

// ParseVersion reads "12.4"; what follows the minor number ("12.6.3") is left out.
func ParseVersion(s string) (Version, error) {
	major, rest, _ := strings.Cut(strings.TrimSpace(s), ".")
	minor, _, _ := strings.Cut(rest, ".")
	if minor == "" {
		minor = "0"
	}
	v := Version{}
	var err1, err2 error
	v.Major, err1 = strconv.Atoi(major)
	v.Minor, err2 = strconv.Atoi(minor)
	if err1 != nil || err2 != nil || v.Major < 0 || v.Minor < 0 {
		return Version{}, errors.New("want a version such as 12.4")
	}
	return v, nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Less tells whether v is older than w.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// IsZero tells whether there is no version.
func (v Version) IsZero() bool { return v == Version{} }

// MarshalText makes the version "12.4" in JSON.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
