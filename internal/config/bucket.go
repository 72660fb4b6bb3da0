package config

import (
	"fmt"
	"net/url"
)

// Bucket is the S3-compatible storage that the SDK's variables name.
type Bucket struct {
	Endpoint                     *url.URL // with the bucket in its host or path
	AccessKeyID, SecretAccessKey string
	Region                       string // empty: what the endpoint says
}

// BucketFrom reads the storage's variables, of which all but the region must be set.
func BucketFrom(lookup Lookup) (Bucket, error) {
	var (
		b        Bucket
		endpoint string
	)
	for _, v := range []struct {
		name  string
		value *string
	}{{BucketEndpoint, &endpoint}, {BucketKeyID, &b.AccessKeyID}, {BucketSecret, &b.SecretAccessKey}} {
		if *v.value, _ = lookup(v.name); *v.value == "" {
			return Bucket{}, fmt.Errorf("%s is not set", v.name)
		}
		if err := checkKey(v.name, *v.value); err != nil {
			return Bucket{}, err
		}
	}
	b.Region, _ = lookup(BucketRegion)
	u, err := parseURL(endpoint)
	if err != nil {
		return Bucket{}, fmt.Errorf("%s: %w", BucketEndpoint, err)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" { // every client would see them in the signed URL
		return Bucket{}, fmt.Errorf("%s: want a URL without user name, query and fragment", BucketEndpoint)
	}
	b.Endpoint = u
	return b, nil
}
