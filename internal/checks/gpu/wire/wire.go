// Package wire is what the GPU helper programs and their parent say to each other: one JSON object a line, on the
// descriptor ReportFD of the helper. A step is announced before it begins, so that the parent knows what hangs.
package wire

import "encoding/json"

// ReportFD is the descriptor on which a helper reports.
const ReportFD = 3

// NoGPU is Line.GPU where a step concerns no single GPU.
const NoGPU = -1

// CodeNoLibrary is Line.Code where a helper finds no driver library at all (ENOENT). One that is there and cannot be
// loaded has no code.
const CodeNoLibrary = 2

// State is how far a step is.
type State string

// A step begins, then ends in one of the others. After StateEnd nothing follows: a helper that ends without it died.
const (
	StateBegin State = "begin"
	StateOK    State = "ok"
	StateFail  State = "fail"
	StateSkip  State = "skip" // not asked here: a call that is missing, unsupported or forbidden; Detail says which
	StateEnd   State = "end"
)

// Step is what a helper is doing.
type Step string

// The steps of the CUDA helper.
const (
	CUDALoad     Step = "cuda.load"     // Data: Library; a failure with CodeNoLibrary: there is none
	CUDAInit     Step = "cuda.init"     // cuInit
	CUDAList     Step = "cuda.list"     // Data: []Device; no context is created
	CUDAContext  Step = "cuda.context"  // Data: Memory
	CUDAMemory   Step = "cuda.memory"   // Data: MemoryTest; write, read back, compare, twice
	CUDAFill     Step = "cuda.fill"     // Data: FillTest; a larger region, filled and checked on the device
	CUDACompile  Step = "cuda.compile"  // the PTX by the driver's own compiler
	CUDACompute  Step = "cuda.compute"  // Data: Compute
	CUDAPeer     Step = "cuda.peer"     // Data: Peer; GPU is the source
	CUDATeardown Step = "cuda.teardown" // release of the context
)

// The steps of the NVML helper.
const (
	NVMLLoad   Step = "nvml.load"   // Detail: the name that the library was found by
	NVMLInit   Step = "nvml.init"   // Data: Driver
	NVMLList   Step = "nvml.list"   // Data: NVMLCount
	NVMLHealth Step = "nvml.health" // Data: Health; one per GPU
	NVMLWatch  Step = "nvml.watch"  // events are on: the parent may begin its tests; they are drained when stdin ends
	NVMLEvent  Step = "nvml.event"  // Data: Event
)

// Line is one report.
type Line struct {
	Step   Step            `json:"step,omitempty"`
	State  State           `json:"state"`
	GPU    int             `json:"gpu"`              // index in the helper's listing, or NoGPU
	Call   string          `json:"call,omitempty"`   // the driver's function that failed or is missing
	Code   int             `json:"code,omitempty"`   // what it returned
	Detail string          `json:"detail,omitempty"` // the words of the driver or of its compiler
	MS     float64         `json:"ms,omitempty"`     // how long the step took
	Data   json.RawMessage `json:"data,omitempty"`
}

// Library is the CUDA driver library that was loaded.
type Library struct {
	Path    string `json:"path"`
	Version int    `json:"version"` // of cuDriverGetVersion: 12040 is 12.4
}

// Device is a GPU, or a MIG slice, as the CUDA driver lists it.
type Device struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"` // "GPU-…" or "MIG-…"
	PCI   string `json:"pci"`
	Major int    `json:"major"` // compute capability
	Minor int    `json:"minor"`
	Total uint64 `json:"total"` // bytes
	Mode  int    `json:"mode"`  // compute mode: 0 default, 2 prohibited, 3 exclusive process
}

// Memory is what cuMemGetInfo says, in bytes.
type Memory struct {
	Free  uint64 `json:"free"`
	Total uint64 `json:"total"`
}

// MemoryTest is the result of writing a pattern and reading it back.
type MemoryTest struct {
	Bytes    uint64 `json:"bytes"`
	Passes   int    `json:"passes"`
	BadWords uint64 `json:"badWords,omitempty"`
	BadBits  uint64 `json:"badBits,omitempty"`
	FirstBad uint64 `json:"firstBad,omitempty"` // byte offset
	Want     uint32 `json:"want,omitempty"`
	Got      uint32 `json:"got,omitempty"`
}

// FillTest is the result of the on-device test of a larger region.
type FillTest struct {
	Bytes    uint64  `json:"bytes"`
	BadWords uint64  `json:"badWords,omitempty"`
	GBps     float64 `json:"gbps,omitempty"`
}

// Compute is the matrix product: N×N, fp32, exact.
type Compute struct {
	N       int     `json:"n"`
	FirstMS float64 `json:"firstMs"` // warm-up, apart
	BestMS  float64 `json:"bestMs"`
	MeanMS  float64 `json:"meanMs"`
	GFLOPS  float64 `json:"gflops"`
	Wrong   bool    `json:"wrong,omitempty"`
	Row     int     `json:"row,omitempty"` // of the first wrong element
	Col     int     `json:"col,omitempty"`
	Want    float64 `json:"want,omitempty"`
	Got     string  `json:"got,omitempty"` // text: it may be NaN
}

// Peer is a verified copy from one GPU to another.
type Peer struct {
	From     string `json:"from"` // UUIDs
	To       string `json:"to"`
	Possible bool   `json:"possible"` // cuDeviceCanAccessPeer
	Bytes    uint64 `json:"bytes,omitempty"`
	BadWords uint64 `json:"badWords,omitempty"`
}

// Driver is what NVML says of the driver.
type Driver struct {
	Version string `json:"version"` // "550.54.15"
	CUDA    int    `json:"cuda"`    // newest CUDA it supports: 12040 is 12.4; 0: not known
}

// NVMLCount is how many GPUs NVML sees.
type NVMLCount struct {
	Count int `json:"count"`
}

// NVMLMemory is what NVML says of the memory of a GPU or a slice, in bytes.
type NVMLMemory struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"`
	Used  uint64 `json:"used"`
}

// Health is NVML's knowledge of one GPU. What could not be asked is nil; Missing says why.
type Health struct {
	Index           int                   `json:"index"`
	Name            string                `json:"name"`
	UUID            string                `json:"uuid"`
	PCI             string                `json:"pci"`
	Memory          *NVMLMemory           `json:"memory,omitempty"`
	ECCMode         *bool                 `json:"eccMode,omitempty"`
	ECCPending      *bool                 `json:"eccPending,omitempty"`
	ECCVolatile     *uint64               `json:"eccVolatile,omitempty"` // uncorrected, since the driver was loaded
	ECCAggregate    *uint64               `json:"eccAggregate,omitempty"`
	RowsCorrected   *int                  `json:"rowsCorrected,omitempty"`
	RowsUncorrected *int                  `json:"rowsUncorrected,omitempty"`
	RowsPending     *bool                 `json:"rowsPending,omitempty"`
	RowsFailed      *bool                 `json:"rowsFailed,omitempty"`
	PagesSBE        *int                  `json:"pagesSbe,omitempty"` // retired pages
	PagesDBE        *int                  `json:"pagesDbe,omitempty"`
	PagesPending    *bool                 `json:"pagesPending,omitempty"`
	Temperature     *int                  `json:"temperature,omitempty"`     // °C
	SlowdownAt      *int                  `json:"slowdownAt,omitempty"`      // °C
	ThrottleReasons *uint64               `json:"throttleReasons,omitempty"` // bits of nvmlClocksEventReasons
	Persistence     *bool                 `json:"persistence,omitempty"`
	PCIeWidth       *int                  `json:"pcieWidth,omitempty"`
	PCIeMaxWidth    *int                  `json:"pcieMaxWidth,omitempty"`
	PCIeGen         *int                  `json:"pcieGen,omitempty"`
	PCIeMaxGen      *int                  `json:"pcieMaxGen,omitempty"`
	MIG             *bool                 `json:"mig,omitempty"`
	MIGPending      *bool                 `json:"migPending,omitempty"`
	MIGDevices      []string              `json:"migDevices,omitempty"` // UUIDs of the slices
	MIGMemory       map[string]NVMLMemory `json:"migMemory,omitempty"`  // of the slices, by UUID
	ComputeMode     *int                  `json:"computeMode,omitempty"`
	FabricState     *int                  `json:"fabricState,omitempty"` // 0 none, 1 not started, 2 in progress, 3 completed
	FabricStatus    *int                  `json:"fabricStatus,omitempty"`
	FabricSummary   *int                  `json:"fabricSummary,omitempty"` // 1 healthy, 2 unhealthy, 3 limited
	RecoveryAction  *int                  `json:"recoveryAction,omitempty"`

	Missing map[string]string `json:"missing,omitempty"` // NVML function → why it was not asked
}

// Event is what NVML reported while tests ran.
type Event struct {
	UUID string `json:"uuid"`
	Type uint64 `json:"type"` // 1 single-bit, 2 double-bit ECC error, 8 XID
	Data uint64 `json:"data"` // the XID
}
