package redact

import (
	"regexp"
	"slices"
	"strings"

	"runpodctl-worker/internal/lazy"
)

// form is one way in which secrets are written.
type form struct {
	hints []string // a text with none of them has not the form; in lower case
	sign  string   // each secret of the form stands behind it, or begins with it; in lower case
	find  func() *regexp.Regexp
	with  string
}

// The forms, each compiled when a text first seems to have it: most programs never meet one.
var all = []form{
	// https://user:password@host
	{[]string{"@"}, "://", lazy.Regexp(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/?#@"'<>\\]+@`), "${1}" + Mark + "@"},
	// Authorization: Bearer …, also as JSON or as a Python dict
	{[]string{"authorization"}, "authorization", lazy.Regexp(`(?i)(authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|token)\s+)?[^\s"',;}\[\\]+`), "${1}" + Mark},
	{[]string{"bearer "}, "bearer ", lazy.Regexp(`(?i)(\bbearer\s+)[a-z0-9._~+/=-]{6,}`), "${1}" + Mark},
	// the parameters of signed URLs, and those that carry a key
	{[]string{"?", "&", ";"}, "=", lazy.Regexp(`(?i)([?&;](?:[a-z0-9_-]*[_-])?(?:signature|sig|credential|token|key|apikey|accesskeyid|awsaccesskeyid|secret|password|passwd|pwd)=)[^\s&;#"'<>\\]+`), "${1}" + Mark},
	// the platform's own keys
	{[]string{"rpa_"}, "rpa_", lazy.Regexp(`\brpa_[A-Za-z0-9]{16,}`), Mark},
}

// No form does without one of these.
const marks = "@:=?&;_ "

// forms replaces what has the form of a secret. The marks and the hints make it cheap for all other texts.
func forms(text string) string {
	if !strings.ContainsAny(text, marks) {
		return text
	}
	lower := strings.ToLower(text)
	for _, f := range all {
		if slices.ContainsFunc(f.hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
			text = f.find().ReplaceAllString(text, f.with)
		}
	}
	return text
}
