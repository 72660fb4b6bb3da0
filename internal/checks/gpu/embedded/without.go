//go:build !embedprobes

package embedded

import "embed"

var programs embed.FS
