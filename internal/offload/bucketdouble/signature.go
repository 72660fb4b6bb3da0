package bucketdouble

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
)

// claim is what a request says of its signature.
type claim struct {
	credential, signed, signature, at, payload, query string
}

// checkHeader checks a request that is signed by its Authorization header.
func checkHeader(r *http.Request) error {
	fields, ok := strings.CutPrefix(r.Header.Get("Authorization"), algorithm+" ")
	if !ok {
		return errors.New("no signature")
	}
	c := claim{at: r.Header.Get("X-Amz-Date"), payload: r.Header.Get("X-Amz-Content-Sha256"), query: canonicalQuery(r.URL.Query())}
	for field := range strings.SplitSeq(fields, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(field), "="); name {
		case "Credential":
			c.credential = value
		case "SignedHeaders":
			c.signed = value
		case "Signature":
			c.signature = value
		}
	}
	if at, err := time.Parse(timeFormat, c.at); err != nil || time.Since(at).Abs() > 15*time.Minute {
		return fmt.Errorf("signed at %q", c.at)
	}
	if !slices.Contains(strings.Split(c.signed, ";"), "x-amz-content-sha256") {
		return errors.New("the payload is not signed")
	}
	return c.check(r)
}

// checkQuery checks a signed URL.
func checkQuery(r *http.Request) error {
	q := r.URL.Query()
	c := claim{credential: q.Get("X-Amz-Credential"), signed: q.Get("X-Amz-SignedHeaders"), signature: q.Get("X-Amz-Signature"), at: q.Get("X-Amz-Date"), payload: "UNSIGNED-PAYLOAD"}
	at, err := time.Parse(timeFormat, c.at)
	seconds, wrong := strconv.Atoi(q.Get("X-Amz-Expires"))
	if err != nil || wrong != nil || seconds > 7*24*3600 || time.Since(at) > time.Duration(seconds)*time.Second {
		return errors.New("the URL has expired, or never held")
	}
	q.Del("X-Amz-Signature")
	c.query = canonicalQuery(q)
	return c.check(r)
}

func (c claim) check(r *http.Request) error {
	names := strings.Split(c.signed, ";")
	if !slices.Contains(names, "host") || !slices.IsSorted(names) {
		return errors.New("the host is not signed")
	}
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	request := strings.Join([]string{r.Method, escape(r.URL.Path, "/"), c.query, headers.String(), c.signed, c.payload}, "\n")
	scope := fmt.Sprintf("%.8s/%s/s3/aws4_request", c.at, Region)
	if c.credential != KeyID+"/"+scope {
		return fmt.Errorf("signed for %s", c.credential)
	}
	sum := sha256.Sum256([]byte(request))
	key := []byte("AWS4" + Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = seal(key, part)
	}
	want := seal(key, strings.Join([]string{algorithm, c.at, scope, hex.EncodeToString(sum[:])}, "\n"))
	if got, err := hex.DecodeString(c.signature); err != nil || !hmac.Equal(got, want) {
		return errors.New("The request signature we calculated does not match the signature you provided.") //nolint:staticcheck,revive // the storage's own words
	}
	return nil
}

func seal(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}

func canonicalQuery(values url.Values) string {
	var pairs []string
	for name, all := range values {
		for _, value := range all {
			pairs = append(pairs, escape(name, "")+"="+escape(value, ""))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape writes every byte as %XX but for those that need no escape anywhere, and those that are to be kept.
func escape(text, keep string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(plain+keep, text[i]) >= 0 {
			b.WriteByte(text[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", text[i])
		}
	}
	return b.String()
}
