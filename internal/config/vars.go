package config

// The names of the variables that the program reads or sets.
const (
	PodID        = "RUNPOD_POD_ID"
	PodHostname  = "RUNPOD_POD_HOSTNAME"
	EndpointID   = "RUNPOD_ENDPOINT_ID"
	AIAPIKey     = "RUNPOD_AI_API_KEY"
	APIKey       = "RUNPOD_API_KEY"
	GetJob       = "RUNPOD_WEBHOOK_GET_JOB"
	PostOutput   = "RUNPOD_WEBHOOK_POST_OUTPUT"
	PostStream   = "RUNPOD_WEBHOOK_POST_STREAM"
	Ping         = "RUNPOD_WEBHOOK_PING"
	PingInterval = "RUNPOD_PING_INTERVAL"
	InitTimeout  = "RUNPOD_INIT_TIMEOUT"
	Handler      = "RUNPOD_HANDLER"
	LogLevel     = "RUNPOD_LOG_LEVEL"
	DebugLevel   = "RUNPOD_DEBUG_LEVEL"
	SkipChecks   = "RUNPOD_SKIP_FITNESS_CHECKS"
	SkipSystem   = "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS"
	SkipGPU      = "RUNPOD_SKIP_GPU_CHECK"
	DeferChecks  = "RUNPOD_DEFER_FITNESS_CHECKS"
	Test         = "RUNPOD_TEST"
	RealtimePort = "RUNPOD_REALTIME_PORT"
	VolumeID     = "RUNPOD_VOLUME_ID"
	ServeKey     = "RUNPODCTL_WORKER_API_KEY"
	NoColor      = "NO_COLOR"
	StateHome    = "XDG_STATE_HOME"
	LogFormat    = "RUNPODCTL_WORKER_LOG_FORMAT"

	CacheDir       = "RUNPODCTL_WORKER_CACHE_DIR"
	CacheVolume    = "RUNPODCTL_WORKER_CACHE_VOLUME"
	CacheNamespace = "RUNPODCTL_WORKER_CACHE_NAMESPACE"
	Binary         = "RUNPODCTL_WORKER_BINARY"

	EarlyChecksDone = "RUNPOD_EARLY_FITNESS_CHECKS_DONE"

	BucketEndpoint = "BUCKET_ENDPOINT_URL"
	BucketKeyID    = "BUCKET_ACCESS_KEY_ID"
	BucketSecret   = "BUCKET_SECRET_ACCESS_KEY"
	BucketRegion   = "AWS_DEFAULT_REGION"

	ServeWorkerKey = "RUNPODCTL_WORKER_WORKER_KEY"
	Probes         = "RUNPODCTL_WORKER_PROBES"
	XIDFail        = "RUNPODCTL_WORKER_XID_FAIL"
	XIDIgnore      = "RUNPODCTL_WORKER_XID_IGNORE"

	MinMemoryGB         = "RUNPOD_MIN_MEMORY_GB"
	MinDiskPercent      = "RUNPOD_MIN_DISK_PERCENT"
	MinCUDAVersion      = "RUNPOD_MIN_CUDA_VERSION"
	NetworkTimeout      = "RUNPOD_NETWORK_CHECK_TIMEOUT"
	GPUTestTimeout      = "RUNPOD_GPU_TEST_TIMEOUT"
	GPUTestPath         = "RUNPOD_BINARY_GPU_TEST_PATH"
	GPUMaxErrors        = "RUNPOD_GPU_MAX_ERROR_MESSAGES"
	GPUCount            = "RUNPOD_GPU_COUNT"
	GPUBenchmarkTimeout = "RUNPOD_GPU_BENCHMARK_TIMEOUT"
)

// Secrets are the variables whose values nobody may see: in a log, an error or a report.
var Secrets = []string{
	AIAPIKey, APIKey, ServeKey, ServeWorkerKey, "RUNPOD_ENDPOINT_SECRET",
	BucketKeyID, BucketSecret, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "CIVITAI_TOKEN",
}

// Var is one variable for the documentation.
type Var struct {
	Name, Default, Meaning string
}

// Vars lists every variable, in the order in which the documentation shows them.
var Vars = []Var{
	{GetJob, "", "URL template of job-take; without it there is no platform to work for"},
	{PostOutput, "", "URL template of job-done; results and progress go there"},
	{PostStream, "", "URL template of job-stream; without it a stream is not shown live"},
	{Ping, "", "URL template of the heartbeat; without it none is sent"},
	{PingInterval, "10000", "milliseconds between two heartbeats"},
	{PodID, "a random id", "the worker's id for `run`; replaces $RUNPOD_POD_ID in the templates; `serve` gives its workers ids of its own"},
	{PodHostname, "unknown", "host name that the error of a failed job carries"},
	{EndpointID, "", "the endpoint's id; where it is set, the log lines of `run` are JSON; `serve` sets its own for the handler"},
	{AIAPIKey, "", "sent as the Authorization header of every worker call, as it is"},
	{APIKey, "", "the handler's own key for the API; the worker does not use it, and `run --hide-key` takes both keys out of the program's environment"},
	{InitTimeout, "420", "seconds that the handler may take to load; 0 = no limit"},
	{Handler, "", "what to run where neither --handler nor a command is given"},
	{LogLevel, "DEBUG in handlers, INFO here", "ERROR, WARN, INFO or DEBUG"},
	{DebugLevel, "", "as " + LogLevel + ", which wins"},
	{SkipChecks, "", "1, true, yes or on: no fitness checks at all"},
	{SkipSystem, "", "1, true, yes or on: no built-in checks but `gpu_memory`; set by `serve --print-env`, so that an SDK worker starts without internet"},
	{SkipGPU, "", "1, true, yes or on: no `gpu_memory` check; set by `serve --print-env`, likewise"},
	{DeferChecks, "", "1, true, yes or on: the early fitness checks wait until the handler is ready"},
	{EarlyChecksDone, "", "set for the handler once the early fitness checks have passed; where it is set they are not run"},
	{Test, "", "1, true, yes or on: a test run; no fitness checks before the handler"},
	{RealtimePort, "", "not 0: a realtime worker; no fitness checks before the handler"},
	{VolumeID, "", "id of the network volume; where it is set, the `system` check warns when none is mounted"},
	{MinMemoryGB, "4", "GB of memory that must be available to this container; the default only warns where the container's own limit is below it"},
	{MinDiskPercent, "10", "share of `/` that must be free, in percent"},
	{MinCUDAVersion, "11.8", "oldest CUDA version that the driver may support"},
	{NetworkTimeout, "5", "seconds that the network check may take, with all its retries"},
	{GPUTestTimeout, "30", "seconds that all GPU work of one phase may take"},
	{GPUTestPath, "", "a `gpu_test` program of your own, in place of the built-in memory test"},
	{GPUMaxErrors, "10", "how many messages a failed GPU memory test shows"},
	{GPUCount, "", "GPUs that must be there; where it is not set, none is fine too"},
	{GPUBenchmarkTimeout, "2", "seconds above which the GPU benchmark fails; above 100 ms it warns"},
	{Probes, "", "folder of the two GPU helper programs, where they are neither inside the binary nor beside it"},
	{XIDFail, "", "numbers of Xid errors, with commas, that make a worker unfit beside those that do anyway (see docs/gpu.md)"},
	{XIDIgnore, "", "numbers of Xid errors, with commas, that say nothing against a worker"},
	{ServeKey, "", "the key that `serve` asks of its clients; a flag would show it to every process"},
	{ServeWorkerKey, "the key of the clients", "the key that `serve` asks of workers"},
	{BucketEndpoint, "", "where `--offload-outputs` uploads to: the URL of the storage, with the bucket in its host or path (see docs/delivery.md)"},
	{BucketKeyID, "", "the id of the key for it"},
	{BucketSecret, "", "the key itself"},
	{BucketRegion, "us-east-1", "the region of the storage, where its URL does not say"},
	{LogFormat, "auto", "auto, json or text; as --log-format, also for a Python handler's log lines"},
	{CacheDir, "", "directories for `run --cache-dir`, with colons between"},
	{CacheVolume, "/runpod-volume", "where the network volume is mounted; as `run --cache-volume` and `cache --volume`"},
	{CacheNamespace, "$RUNPOD_ENDPOINT_ID", "the folder of the mirror on the volume; as `run --cache-namespace` and `cache --namespace`"},
	{Binary, "", "set for the handler: this program, which does the work of VolumeCache there"},
	{StateHome, "", "`run` keeps its journal in `runpodctl-worker` below this directory (see docs/run.md)"},
	{NoColor, "", "not empty: no colour"},
}
