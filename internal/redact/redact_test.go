package redact_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/redact"
)

func TestString(t *testing.T) {
	secrets := redact.New("s3cr3t-key/+", "Bearer tok-1234567", "", "short", "tok-1234567-and-more")
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "Started. | n=2", "Started. | n=2"},
		{"a known value", "key s3cr3t-key/+ is wrong", "key [REDACTED] is wrong"},
		{"a known value in a query", "GET /a?x=s3cr3t-key%2F%2B", "GET /a?x=[REDACTED]"},
		{"what a header holds beside Bearer", "sent tok-1234567", "sent [REDACTED]"},
		{"a value inside a longer one", "sent tok-1234567-and-more", "sent [REDACTED]"},
		{"a value that is too short to be one", "in short", "in short"},
		{"user and password in a URL", "dial http://bob:hunter2@host:80/x: refused", "dial http://[REDACTED]@host:80/x: refused"},
		{"a user alone in a URL", "https://token@host/x", "https://[REDACTED]@host/x"},
		{"an @ in a path", "https://host/@scope/x", "https://host/@scope/x"},
		{"a mail address", "write to ann@example.com", "write to ann@example.com"},
		{"a header", "Authorization: Bearer abcdefgh.ij-kl", "Authorization: [REDACTED]"},
		{"a header in JSON", `{"Authorization":"Basic YWJjOmRlZg==","x":1}`, `{"Authorization":"[REDACTED]","x":1}`},
		{"a header in a Python dict", `{'Authorization': 'abc123', 'x': 1}`, `{'Authorization': '[REDACTED]', 'x': 1}`},
		{"a bearer token alone", "with bearer abcdefgh", "with bearer [REDACTED]"},
		{"the word alone", "the bearer of this", "the bearer of this"},
		{
			"a presigned URL", "403 for url: https://b.s3.example/k.png?X-Amz-Algorithm=A&X-Amz-Credential=AK%2F1&X-Amz-Expires=60&X-Amz-Signature=abcd",
			"403 for url: https://b.s3.example/k.png?X-Amz-Algorithm=A&X-Amz-Credential=[REDACTED]&X-Amz-Expires=60&X-Amz-Signature=[REDACTED]",
		},
		{"a SAS of Azure", "https://a.blob.example/c?sv=1&sig=aB%3D&se=2", "https://a.blob.example/c?sv=1&sig=[REDACTED]&se=2"},
		{"an older one of S3", "u?AWSAccessKeyId=AK&Signature=x%2B&Expires=1", "u?AWSAccessKeyId=[REDACTED]&Signature=[REDACTED]&Expires=1"},
		{"an api key in a query", "GET http://h/v2/x?api_key=abc&n=1", "GET http://h/v2/x?api_key=[REDACTED]&n=1"},
		{"a parameter that only ends alike", "http://h/?monkey=1&tokens=9", "http://h/?monkey=1&tokens=9"},
		{"a key of the platform", "key rpa_ABCDEFGHIJKLMNOP1234 refused", "key [REDACTED] refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, secrets.String(tt.text))
			require.Equal(t, tt.want, secrets.String(tt.want), "a second time changes nothing")
		})
	}
}

func TestNil_GoesByTheForms(t *testing.T) {
	var none *redact.Secrets
	require.Equal(t, "http://[REDACTED]@h", none.String("http://a:b@h"))
	require.NoError(t, none.Error(nil))
}

func TestError_KeepsWhatItIs(t *testing.T) {
	err := fmt.Errorf("GET http://a:b@h: %w", fs.ErrNotExist)
	clean := redact.New().Error(err)
	require.EqualError(t, clean, "GET http://[REDACTED]@h: file does not exist")
	require.ErrorIs(t, clean, fs.ErrNotExist)
	plain := errors.New("plain")
	require.Same(t, plain, redact.New().Error(plain))
}

func TestString_FindsASecretInJSON(t *testing.T) {
	const secret = `a"b\c<d>é`
	quoted, err := json.Marshal("it is " + secret)
	require.NoError(t, err)
	require.Equal(t, `"it is [REDACTED]"`, redact.New(secret).String(string(quoted)))
}

func FuzzString(f *testing.F) {
	f.Add("https://a:b@c?token=x", "secret")
	f.Add("Authorization: Bearer x", "rpa_ABCDEFGHIJKLMNOPQR")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if len(secret) < 6 || secret != strings.TrimSpace(secret) || strings.Contains(redact.Mark, secret) || strings.Contains(secret, " ") {
			t.Skip()
		}
		s := redact.New(secret)
		if got := s.String(text + secret + text); strings.Count(got, secret) > 0 && !strings.ContainsAny(secret, "[]REDACTED") {
			t.Fatalf("%q still holds %q", got, secret)
		}
	})
}

func BenchmarkString_LineOfAJob(b *testing.B) {
	s := redact.New("0123456789abcdef", "fedcba9876543210")
	b.ReportAllocs()
	for b.Loop() {
		s.String("Finished. | took=12ms")
	}
}
