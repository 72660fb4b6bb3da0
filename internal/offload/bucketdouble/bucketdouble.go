// Package bucketdouble is S3-compatible storage for tests: it checks signatures by its own reading of their rules, keeps what
// is put into the buckets that exist, hands it out by signed URLs, and misbehaves on demand.
package bucketdouble

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// What the storage knows its owner by.
const (
	KeyID  = "AKIDOFATEST12345"
	Secret = "not/a+real/secret-of-anybody"
	Region = "eu-test-1"
)

// Object is what was put somewhere.
type Object struct {
	ContentType string
	Body        []byte
}

// Storage is a storage with one bucket, which is in the path of its URL.
type Storage struct {
	URL string // with the bucket

	mu      sync.Mutex
	root    string
	objects map[string]Object
	puts    int
	hook    func(put int, r *http.Request) (status int)
}

// New starts a Storage on the loopback interface.
func New(t testing.TB) *Storage {
	t.Helper()
	s := &Storage{root: "/outputs/", objects: map[string]Object{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + strings.TrimSuffix(s.root, "/")
	return s
}

// Env is the environment of a worker that uses the storage.
func (s *Storage) Env() []string {
	return []string{
		"BUCKET_ENDPOINT_URL=" + s.URL, "BUCKET_ACCESS_KEY_ID=" + KeyID, "BUCKET_SECRET_ACCESS_KEY=" + Secret,
		"AWS_DEFAULT_REGION=" + Region,
	}
}

// On asks hook about each put, whose number it gets, from 1; any status but 0 is the answer.
func (s *Storage) On(hook func(put int, r *http.Request) (status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Puts is the number of uploads that were tried.
func (s *Storage) Puts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts
}

// Objects are what the bucket holds, by their path in it.
func (s *Storage) Objects() map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]Object{}
	for path, o := range s.objects {
		found[strings.TrimPrefix(path, s.root)] = o
	}
	return found
}

// ServeHTTP implements http.Handler.
func (s *Storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPut:
		s.put(w, r)
	case http.MethodGet:
		s.get(w, r)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method)
	}
}

func (s *Storage) put(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.puts++
	put, hook := s.puts, s.hook
	s.mu.Unlock()
	if hook != nil { // without the lock: it may wait
		if status := hook(put, r); status != 0 {
			refuse(w, status, "InternalError", "We encountered an internal error. Please try again.")
			return
		}
	}
	if !strings.HasPrefix(r.URL.Path, s.root) {
		refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
		return
	}
	if err := checkHeader(r); err != nil {
		refuse(w, http.StatusForbidden, "SignatureDoesNotMatch", err.Error())
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != r.Header.Get("X-Amz-Content-Sha256") {
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[r.URL.Path] = Object{r.Header.Get("Content-Type"), body}
}

func (s *Storage) get(w http.ResponseWriter, r *http.Request) {
	if err := checkQuery(r); err != nil {
		refuse(w, http.StatusForbidden, "SignatureDoesNotMatch", err.Error())
		return
	}
	s.mu.Lock()
	object, ok := s.objects[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	w.Header().Set("Content-Type", object.ContentType)
	_, _ = w.Write(object.Body)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message><AWSAccessKeyId>%s</AWSAccessKeyId></Error>`, code, message, KeyID)
}
