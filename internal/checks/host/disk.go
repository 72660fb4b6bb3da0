package host

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/shirou/gopsutil/v3/disk"

	"runpodctl-worker/internal/checks"
)

// enoughDisk is how much free space satisfies the default threshold on a disk of any size: a share of a very large disk
// is more than anybody needs. A threshold that a user set is met by its share alone.
const enoughDisk = 50 * gib

// Disk checks the free share of the container's disk, and shows that of the network volumes, if there are any.
func Disk(cfg checks.Config) checks.Check {
	return checks.Check{
		ID: "disk", Name: "_disk_check", Title: "Disk", Phase: checks.Early, Recheck: true, Builtin: true, Vital: true,
		Run: diskCheck{here, cfg.MinDiskPercent, asking, usage}.run,
	}
}

type diskCheck struct {
	box   box
	min   checks.Knob[float64]
	asker *asker
	usage func(path string) (space, error)
}

// space is what a file system has.
type space struct{ total, free, inodes, freeInodes uint64 }

func usage(path string) (space, error) {
	u, err := disk.Usage(path)
	if err != nil {
		return space{}, err
	}
	return space{u.Total, u.Free, u.InodesTotal, u.InodesFree}, nil
}

// Space is what the file system of a path has.
type Space struct{ TotalGB, FreeGB, FreePercent float64 }

// SpaceOf asks the file system of a path. It returns in time, also where the path lies on dead network storage.
func SpaceOf(ctx context.Context, path string) (Space, error) {
	s, err := diskCheck{box: box{}, asker: asking, usage: usage}.ask(ctx, path)
	return Space{inGB(s.total), inGB(s.free), s.percent()}, err
}

func (s space) percent() float64 { return 100 * float64(s.free) / float64(s.total) }

func (s space) String() string {
	return fmt.Sprintf("%s free of %s (%.1f %%)", amount(s.free), amount(s.total), s.percent())
}

// enough tells whether the share is free, or, where it is not to be taken exactly, as much as anybody needs.
func (s space) enough(percent float64, exactly bool) bool {
	return s.percent() >= percent || !exactly && s.free >= enoughDisk
}

func (d diskCheck) run(ctx context.Context) checks.Result {
	if d.min.Err != nil {
		return checks.Misread(d.min.Err)
	}
	root, err := d.ask(ctx, "/")
	if err != nil {
		return checks.Result{
			Status: checks.Error, Summary: "cannot tell how much of / is free: " + err.Error(),
			Remedy: "See why the file system of this container does not answer.",
		}
	}
	mounts, err := d.box.mounts()
	if err != nil {
		return checks.Result{
			Status: checks.Error, Summary: "cannot tell what is mounted: " + err.Error(), Remedy: "See that /proc is that of this container.",
		}
	}
	res := d.judge(root)
	res.Threshold = d.threshold()
	res.Facts = append(facts("/", root), checks.Fact{Name: "file_system", Value: d.fileSystem(ctx, mounts, root)})
	d.addVolumes(ctx, mounts, &res)
	return res
}

func (d diskCheck) ask(ctx context.Context, path string) (space, error) {
	s, err := ask(ctx, d.asker, path, func() (space, error) { return d.usage(d.box.at(path)) })
	if err == nil && (s.total == 0 || s.free > s.total) {
		return s, fmt.Errorf("%d bytes free of %d", s.free, s.total)
	}
	return s, err
}

// judge holds / against the threshold.
func (d diskCheck) judge(root space) checks.Result {
	if root.enough(d.min.Value, d.min.Set()) {
		return checks.Result{
			Summary: root.String(),
			Said:    fmt.Sprintf("Disk space check passed: %.2fGB free (%.1f%% available)", inGB(root.free), root.percent()),
		}
	}
	return checks.Result{
		Status:  checks.Fail,
		Summary: root.String(),
		Said: fmt.Sprintf("Insufficient disk space: %.2fGB free (%.1f%%), %s%% required",
			inGB(root.free), root.percent(), pythonFloat(d.min.Value)),
		Remedy: "Give the container a larger disk, make the image write less, or set RUNPOD_MIN_DISK_PERCENT to what the handler needs.",
	}
}

func (d diskCheck) threshold() *checks.Threshold {
	text := "at least " + short(d.min.Value) + " % of / free"
	if !d.min.Set() {
		text += ", or " + amount(enoughDisk)
	}
	return &checks.Threshold{Value: d.min.Value, Text: text, Origin: d.min.Origin}
}

// fileSystem names the kind of /. An overlay shows the figures of the host's disk, unless it has a quota; then they
// differ from those of a file that a container engine mounts from beside the overlay.
func (d diskCheck) fileSystem(ctx context.Context, mounts []mount, root space) string {
	m, ok := mountAt(mounts, "/")
	if !ok {
		return "unknown"
	}
	if m.kind != "overlay" {
		return m.kind
	}
	const beside = "/etc/hosts"
	if _, ok := mountAt(mounts, beside); ok {
		if host, err := d.ask(ctx, beside); err == nil && host.total > root.total {
			return "overlay, with a quota"
		}
	}
	return "overlay, no quota visible: the figures may be those of the host's whole disk"
}

// addVolumes shows the network volumes that are mounted. They are never fatal: a worker may not need them.
func (d diskCheck) addVolumes(ctx context.Context, mounts []mount, res *checks.Result) {
	var paths []string
	for _, path := range volumePaths {
		if _, ok := mountAt(mounts, path); ok {
			paths = append(paths, path)
		}
	}
	spaces, errs := make([]space, len(paths)), make([]error, len(paths))
	var asked sync.WaitGroup
	for i, path := range paths {
		asked.Go(func() { spaces[i], errs[i] = d.ask(ctx, path) })
	}
	asked.Wait()
	for i, path := range paths {
		switch s, err := spaces[i], errs[i]; {
		case err != nil:
			warn(res, path+": "+err.Error(), "See whether the storage behind "+path+" can be reached.")
			res.Facts = append(res.Facts, checks.Fact{Name: factName(path, "state"), Value: err.Error()})
		case !s.enough(d.min.Value, false):
			warn(res, path+": "+s.String(), "Delete what the volume at "+path+" need not keep, or make it larger.")
			fallthrough
		default:
			res.Facts = append(res.Facts, facts(path, s)...)
		}
	}
}

// warn adds a finding to a result, which is a warning at least.
func warn(res *checks.Result, finding, remedy string) {
	res.Status = max(res.Status, checks.Warn)
	res.Summary = strings.TrimPrefix(res.Summary+"; "+finding, "; ")
	res.Remedy = strings.TrimPrefix(res.Remedy+"\n"+remedy, "\n")
}

// facts are the figures of one path.
func facts(path string, s space) []checks.Fact {
	return []checks.Fact{
		{Name: factName(path, "total_gb"), Value: inGB(s.total), Text: amount(s.total)},
		{Name: factName(path, "free_gb"), Value: inGB(s.free), Text: amount(s.free)},
		{Name: factName(path, "free_percent"), Value: s.percent(), Text: fmt.Sprintf("%.1f %%", s.percent())},
	}
}

// factName is "free_gb" for /, "runpod_volume_free_gb" for /runpod-volume.
func factName(path, what string) string {
	words := strings.NewReplacer("/", "_", "-", "_", ".", "_").Replace(strings.Trim(path, "/"))
	return strings.TrimPrefix(words+"_"+what, "_")
}
