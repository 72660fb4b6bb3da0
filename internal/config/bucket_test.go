package config

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBucketFrom(t *testing.T) {
	tests := []struct {
		name    string
		changed map[string]string
		wantErr string
	}{
		{name: "all that is needed"},
		{name: "a bucket in the path", changed: map[string]string{BucketEndpoint: "http://minio:9000/outputs"}},
		{name: "no endpoint", changed: map[string]string{BucketEndpoint: ""}, wantErr: "BUCKET_ENDPOINT_URL is not set"},
		{name: "no id of a key", changed: map[string]string{BucketKeyID: ""}, wantErr: "BUCKET_ACCESS_KEY_ID is not set"},
		{name: "no key", changed: map[string]string{BucketSecret: ""}, wantErr: "BUCKET_SECRET_ACCESS_KEY is not set"},
		{name: "a host alone", changed: map[string]string{BucketEndpoint: "s3.example.com"}, wantErr: "BUCKET_ENDPOINT_URL: is no URL: want http:// or https:// and a host"},
		{name: "a user", changed: map[string]string{BucketEndpoint: "https://me:pw@s3.example.com"}, wantErr: "BUCKET_ENDPOINT_URL: want a URL without user name, query and fragment"},
		{name: "a query", changed: map[string]string{BucketEndpoint: "https://s3.example.com?x=1"}, wantErr: "BUCKET_ENDPOINT_URL: want a URL without user name, query and fragment"},
		{name: "a key with a line break", changed: map[string]string{BucketSecret: "secret\n"}, wantErr: "BUCKET_SECRET_ACCESS_KEY holds a line break or another control character, which no header can carry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{BucketEndpoint: "https://b.s3.example.com", BucketKeyID: "id", BucketSecret: "secret", BucketRegion: "eu-ro-1"}
			maps.Copy(env, tt.changed)
			got, err := BucketFrom(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
			if tt.wantErr != "" {
				require.EqualError(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, env[BucketEndpoint], got.Endpoint.String())
			got.Endpoint = nil
			require.Equal(t, Bucket{AccessKeyID: "id", SecretAccessKey: "secret", Region: "eu-ro-1"}, got)
		})
	}
}
