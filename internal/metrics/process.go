package metrics

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// writeProcess writes what is known of any Go program, under the names that dashboards expect. What this system does not
// tell is left out.
func writeProcess(p *page, began time.Time) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	p.head("go_info", gauge, "1, with the version of Go in its label.")
	p.value(1, "go_info", "version", runtime.Version())
	p.single("go_goroutines", gauge, "Goroutines that exist.", float64(runtime.NumGoroutine()))
	p.single("go_gc_cycles_total", counter, "Garbage collections that are done.", float64(mem.NumGC))
	p.single("go_memstats_alloc_bytes", gauge, "Memory of objects on the heap.", float64(mem.HeapAlloc))
	p.single("go_memstats_alloc_bytes_total", counter, "Memory of all objects that were ever made.", float64(mem.TotalAlloc))
	p.single("go_memstats_heap_inuse_bytes", gauge, "Memory of the parts of the heap that have objects.", float64(mem.HeapInuse))
	p.single("go_memstats_next_gc_bytes", gauge, "The size of the heap that begins the next garbage collection.", float64(mem.NextGC))
	p.single("go_memstats_sys_bytes", gauge, "Memory that Go has from the system.", float64(mem.Sys))

	p.single("process_start_time_seconds", gauge, "When the process began, as Unix time.", float64(began.UnixMilli())/1e3)
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		p.single("process_cpu_seconds_total", counter, "The time that all cores together have worked for the process.", seconds(used.Utime)+seconds(used.Stime))
	}
	if virtual, resident, ok := memory(); ok {
		p.single("process_virtual_memory_bytes", gauge, "Addresses in use.", virtual)
		p.single("process_resident_memory_bytes", gauge, "Memory in use.", resident)
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.single("process_open_fds", gauge, "Open files and connections.", float64(len(files)-1)) // one of them was this folder
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		p.single("process_max_fds", gauge, "The most that may be open.", float64(limit.Cur))
	}
}

func seconds(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }

func memory() (virtual, resident float64, ok bool) {
	text, err := os.ReadFile("/proc/self/statm") // in pages
	if err != nil {
		return 0, 0, false
	}
	if _, err := fmt.Sscan(string(text), &virtual, &resident); err != nil {
		return 0, 0, false
	}
	page := float64(os.Getpagesize())
	return virtual * page, resident * page, true
}
