package host

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	cgroupFile = "/proc/self/cgroup"
	// noLimit is what v1 shows a little less than 2^63 bytes for: nobody set a limit.
	noLimit = 1 << 60
)

// group is one cgroup that limits the memory of this process: its own, or an ancestor.
type group struct {
	name  string // "cgroup v2 /kubepods/pod1"
	limit uint64
	free  uint64 // what is left below the limit, with the page cache, which the kernel drops before it refuses memory
}

// generation is how one version of cgroups names things.
type generation struct {
	name, limit, usage string
	cache              []string // in memory.stat; what of the usage can be dropped
}

var (
	cgroup1 = generation{
		"cgroup v1", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"},
	}
	cgroup2 = generation{"cgroup v2", "memory.max", "memory.current", []string{"inactive_file", "active_file", "slab_reclaimable"}}
)

// groups are the cgroups with a memory limit, in whatever version, from this process up to the highest that it can see.
func (b box) groups() ([]group, error) {
	text, ok, err := b.read(cgroupFile)
	if err != nil || !ok {
		return nil, err
	}
	mounts, err := b.mounts()
	if err != nil {
		return nil, err
	}
	var all []group
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s: cannot read the line %q", b.at(cgroupFile), line)
		}
		gen, m, ok := hierarchy(fields[1], mounts)
		if !ok {
			continue
		}
		found, err := b.walk(gen, m, within(fields[2], m.root))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// hierarchy finds the version and the mount of the hierarchy with these controllers, if it can limit memory and shows.
func hierarchy(controllers string, mounts []mount) (generation, mount, bool) {
	gen, is := cgroup2, func(m mount) bool { return m.kind == "cgroup2" }
	if controllers != "" {
		gen = cgroup1
		is = func(m mount) bool { return m.kind == "cgroup" && slices.Contains(m.options, "memory") }
		if !slices.Contains(strings.Split(controllers, ","), "memory") {
			return gen, mount{}, false
		}
	}
	i := slices.IndexFunc(mounts, is)
	if i < 0 {
		return gen, mount{}, false
	}
	return gen, mounts[i], true
}

// within is the path of a cgroup below the root of its mount. In a container the two may be named from the host, from
// the container, or one from each; what lies outside of the mount shows as the mount itself.
func within(cgroup, root string) string {
	if root == "/" && !strings.HasPrefix(cgroup, "/..") {
		return path.Clean("/" + cgroup)
	}
	if below, ok := strings.CutPrefix(cgroup, root+"/"); ok {
		return path.Clean("/" + below)
	}
	return "/"
}

// walk reads a cgroup and all above it.
func (b box) walk(gen generation, m mount, cgroup string) ([]group, error) {
	if _, err := os.Stat(b.at(path.Join(m.point, cgroup))); err != nil {
		cgroup = "/" // it is named from the host, and the mount shows only ours
	}
	var all []group
	for {
		g, ok, err := b.group(gen, path.Join(m.point, cgroup))
		if err != nil {
			return nil, err
		}
		if ok {
			g.name = gen.name + " " + cgroup
			all = append(all, g)
		}
		if cgroup == "/" {
			return all, nil
		}
		cgroup = path.Dir(cgroup)
	}
}

// group reads the limit of one cgroup; false where it has none.
func (b box) group(gen generation, dir string) (group, bool, error) {
	limit, limited, err := b.bytes(path.Join(dir, gen.limit))
	if err != nil {
		return group{}, false, err
	}
	stat, err := b.stat(path.Join(dir, "memory.stat"), slices.Concat(gen.cache, []string{"hierarchical_memory_limit"}))
	if err != nil {
		return group{}, false, err
	}
	if above, ok := stat["hierarchical_memory_limit"]; ok && above < noLimit { // v1: also of ancestors that do not show
		limit, limited = min(limit, above), true
	}
	if !limited {
		return group{}, false, nil
	}
	used, ok, err := b.bytes(path.Join(dir, gen.usage))
	if err == nil && !ok {
		err = fmt.Errorf("%s: there is a limit, but no figure of what is used", b.at(path.Join(dir, gen.usage)))
	}
	if err != nil {
		return group{}, false, err
	}
	for _, name := range gen.cache {
		used -= min(used, stat[name])
	}
	return group{limit: limit, free: limit - min(limit, used)}, true, nil
}

// bytes reads a file with one figure; false, and a very large figure, where there is no file or it says "no limit".
func (b box) bytes(file string) (uint64, bool, error) {
	text, ok, err := b.read(file)
	text = strings.TrimSpace(text)
	if err != nil || !ok || text == "max" {
		return noLimit, false, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %q is no number of bytes", b.at(file), text)
	}
	return n, n < noLimit, nil
}

// stat reads the lines "name figure" that are asked for. A file that is not there says nothing.
func (b box) stat(file string, names []string) (map[string]uint64, error) {
	text, _, err := b.read(file)
	if err != nil {
		return nil, err
	}
	figures := map[string]uint64{}
	for line := range strings.Lines(text) {
		name, figure, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.Contains(names, name) {
			continue
		}
		n, err := strconv.ParseUint(figure, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no number of bytes", b.at(file), strings.TrimSpace(line))
		}
		figures[name] = n
	}
	return figures, nil
}
