package offload

import (
	"net/url"
	"strings"
	"time"
)

const (
	// month is the folder of an object, which is the bucket where the endpoint names none: the SDK's uploads lie there too.
	month = "01-06"
	// nameLength is how much of the checksum an object is named by.
	nameLength = 16
)

// place is where the output of a job lies. It follows from the content, so that a second upload replaces the first.
func (b *Bucket) place(job, sum string, now time.Time) *url.URL {
	return b.root.JoinPath(now.UTC().Format(month), plain(job), sum[:nameLength]+".json")
}

// plain is the id of a job in letters that a path, and whatever signs it, shows as they are. Those of the platform are so.
func plain(job string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, job)
}

// anyRegion is what storage without regions goes by.
const anyRegion = "us-east-1"

// region is what the host says of itself, in the ways of S3 and its likes and of DigitalOcean, else the one that is set.
func region(host, set string) string {
	labels := strings.Split(host, ".")
	for i, label := range labels {
		rest := len(labels) - i - 1
		switch {
		case label == "s3" && rest > 2: // s3.REGION.example.com
			return labels[i+1]
		case label == "digitaloceanspaces" && i > 0:
			return labels[i-1]
		}
	}
	if set != "" {
		return set
	}
	return anyRegion
}
