package protocol

// SDKVersion is the release of the Python SDK whose worker protocol is spoken here. It is sent
// where that SDK sends its own version, since the platform knows no other name for it.
const SDKVersion = "1.12.0"

// The hosted limits, in bytes.
const (
	MaxRunBody     = 10 << 20         // POST /run; more is answered 400
	MaxRunSyncBody = 20 * 1000 * 1000 // POST /runsync
	MaxChunk       = 1 << 20          // one job-stream post
	MaxResult      = 20 * 1000 * 1000 // one job-done post
	MaxPingIDs     = 65535            // the job_id parameter of a ping
	MaxReason      = 256              // the reason of an unhealthy ping, in characters
)

// MaxError is the longest error text, in bytes, that a worker posts. The platform would take more, but whoever reads a
// job's status reads all of it.
const MaxError = 64 << 10
