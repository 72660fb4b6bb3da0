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

// What the forms do not see of a secret at the end of a text that may be cut there: the rest of it makes the form.
var torn = []form{
	// https://user:pass… ; a number would be a port
	{[]string{"://"}, "", lazy.Regexp(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/?#@"'<>\\\[:]*:[^\s/?#@"'<>\\]*[^\s/?#@"'<>\\0-9][^\s/?#@"'<>\\]*$`), "${1}" + Mark},
	{[]string{"rpa_"}, "", lazy.Regexp(`\brpa_[A-Za-z0-9]+$`), Mark},
	{[]string{"bearer "}, "", lazy.Regexp(`(?i)(\bbearer\s+)[a-z0-9._~+/=-]+$`), "${1}" + Mark},
}

// No form does without one of these.
const marks = "@:=?&;_ "

// forms replaces what has the form of a secret. The marks and the hints make it cheap for all other texts.
func forms(text string) string {
	if !strings.ContainsAny(text, marks) {
		return text
	}
	return apply(all, text)
}

func apply(forms []form, text string) string {
	lower := strings.ToLower(text)
	for _, f := range forms {
		if f.hinted(lower) {
			text = f.find().ReplaceAllString(text, f.with)
		}
	}
	return text
}

// hinted tells whether a text, in lower case, may have the form.
func (f form) hinted(lower string) bool {
	return slices.ContainsFunc(f.hints, func(hint string) bool { return strings.Contains(lower, hint) })
}
