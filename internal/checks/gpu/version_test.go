package gpu

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

func TestVersions_Judge(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		driver, library, toolkit string
		works                    bool
		environ                  []string
		least                    string
		status                   checks.Status
		summary, said            string
	}{
		{"only a driver", "12.8", "", "", false, nil, "", checks.Pass, "the driver supports CUDA 12.8", "CUDA version check passed: 12.8 (minimum: 11.8)"},
		{"an image for an older one", "12.8", "", "11.5", false, nil, "", checks.Pass, "the driver supports CUDA 12.8, the image is built for 11.5", ""},
		{
			"an image for a newer major one", "11.4", "", "12.8", false, nil, "", checks.Fail,
			"driver too old for this image: the driver supports CUDA 11.4, the image is built for 12.8 (test)", "CUDA version too old: 11.4 found, 11.8 required",
		},
		{
			"a newer major one, with a compatibility library that works", "11.8", "12.8", "12.8", true, nil, "", checks.Pass,
			"the driver supports CUDA 12.8", "CUDA version check passed: 12.8 (minimum: 11.8)",
		},
		{"a compatibility library that does not work", "11.8", "12.8", "12.8", false, nil, "", checks.Fail, "driver too old for this image", ""},
		{
			"a newer minor one", "12.4", "", "12.6", false, nil, "", checks.Warn,
			"the driver supports CUDA 12.4, the image is built for 12.6 (test): it runs by minor-version compatibility", "CUDA version check passed: 12.4 (minimum: 11.8)",
		},
		{"numbers, not letters", "12.10", "", "12.8", false, nil, "", checks.Pass, "12.10", ""},
		{"an explicit minimum", "12.4", "", "", false, nil, "12.6", checks.Fail, "the driver supports CUDA 12.4, at least 12.6 is required (RUNPOD_MIN_CUDA_VERSION)", "CUDA version too old: 12.4 found, 12.6 required"},
		{"the default minimum", "11.4", "", "", false, nil, "", checks.Fail, "at least 11.8 is required (default)", "CUDA version too old: 11.4 found, 11.8 required"},
		{"a requirement of the same major version", "12.4", "", "", false, []string{"NVIDIA_REQUIRE_CUDA=cuda>=12.6"}, "", checks.Warn, `the image requires "cuda>=12.6", and the driver supports CUDA 12.4`, ""},
		{"a requirement of a newer major version", "12.4", "", "", false, []string{"NVIDIA_REQUIRE_CUDA=cuda>=13.0"}, "", checks.Fail, `the image requires "cuda>=13.0", and the driver supports CUDA 12.4`, ""},
		{"that requirement, with a compatibility library", "12.4", "13.0", "", true, []string{"NVIDIA_REQUIRE_CUDA=cuda>=13.0"}, "", checks.Pass, "13.0", ""},
		{"a requirement that is met", "12.8", "", "", false, []string{"NVIDIA_REQUIRE_CUDA=cuda>=12.6"}, "", checks.Pass, "12.8", ""},
		{"requirements are switched off", "12.4", "", "", false, []string{"NVIDIA_REQUIRE_CUDA=cuda>=13.0", "NVIDIA_DISABLE_REQUIRE=1"}, "", checks.Pass, "12.4", ""},
		{"another variable counts too", "12.4", "", "", false, []string{"NVIDIA_REQUIRE_DRIVER=driver>=560"}, "", checks.Warn, `the image requires "driver>=560"`, ""},
		{"a requirement that nobody can read", "12.4", "", "", false, []string{"NVIDIA_REQUIRE_CUDA=cuda~12"}, "", checks.Warn, `NVIDIA_REQUIRE_CUDA: "cuda~12" has no comparison`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := versions{driver: version(t, tt.driver), source: "NVML", name: "550.54.15", library: version(t, tt.library), works: tt.works}
			v.toolkit = toolkit{version(t, tt.toolkit), "test"}
			var err error
			if v.requirements, err = requirementsOf(tt.environ, lookup(tt.environ...)); err != nil {
				v.badRequirement = err.Error()
			}
			var environ []string
			if tt.least != "" {
				environ = []string{"RUNPOD_MIN_CUDA_VERSION=" + tt.least}
			}
			res := v.judge(configOf(environ...).MinCUDA)
			require.Equal(t, tt.status, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.summary)
			require.Contains(t, res.Said, tt.said)
			if res.Status != checks.Pass {
				require.NotEmpty(t, res.Remedy)
			}
			if res.Status == checks.Fail {
				require.Contains(t, res.Remedy, "allowed CUDA versions")
			}
			text := ""
			for _, f := range res.Facts {
				text += f.String() + "\n"
			}
			require.Contains(t, text, "driver 550.54.15 supports CUDA "+tt.driver+" (from NVML)")
			if tt.toolkit != "" {
				require.Contains(t, text, "image built for CUDA "+tt.toolkit+" (from test)")
			}
		})
	}
}

func version(t *testing.T, text string) checks.Version {
	t.Helper()
	if text == "" {
		return checks.Version{}
	}
	v, err := checks.ParseVersion(text)
	require.NoError(t, err)
	return v
}

func TestFindToolkit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		files   map[string]string
		link    string // of /usr/local/cuda
		environ []string
		want    toolkit
	}{
		{"nothing", nil, "", nil, toolkit{}},
		{"the images' variable", nil, "", []string{"CUDA_VERSION=12.6.3"}, toolkit{checks.Version{Major: 12, Minor: 6}, "CUDA_VERSION"}},
		{"the toolkit's own file", map[string]string{"usr/local/cuda/version.json": `{"cuda":{"version":"12.4.1"}}`}, "", nil, toolkit{checks.Version{Major: 12, Minor: 4}, "version.json"}},
		{"a file that is broken", map[string]string{"usr/local/cuda/version.json": `{"cuda":`}, "", nil, toolkit{}},
		{"a link", nil, "/usr/local/cuda-12.10", nil, toolkit{checks.Version{Major: 12, Minor: 10}, "/usr/local/cuda"}},
		{"the runtime library", map[string]string{"usr/local/cuda/lib64/libcudart.so.11.8.89": ""}, "", nil, toolkit{checks.Version{Major: 11, Minor: 8}, "/usr/local/cuda/lib64/libcudart.so.11.8.89"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, tt.files)
			if tt.link != "" {
				write(t, root, map[string]string{"usr/local/x": ""})
				require.NoError(t, os.Symlink(tt.link, root+"/usr/local/cuda"))
			}
			d := New(Options{Config: configOf(tt.environ...), Env: []string{"PATH=" + root}, Root: root})
			require.Equal(t, tt.want, d.findToolkit(t.Context()))
		})
	}
	t.Run("the compiler", func(t *testing.T) {
		root := t.TempDir()
		script(t, root, "nvcc", `echo "nvcc: NVIDIA (R) Cuda compiler driver"; echo "Cuda compilation tools, release 11.5, V11.5.119"`)
		d := New(Options{Config: configOf(), Env: []string{"PATH=" + root}, Root: root})
		require.Equal(t, toolkit{checks.Version{Major: 11, Minor: 5}, "nvcc"}, d.findToolkit(t.Context()))
	})
}

// write makes files below a folder.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// The compiler of the image must never be taken for the driver.
func TestVersion_ImageAndDriverAreToldApart(t *testing.T) {
	for _, tt := range []struct {
		name, nvcc, driver string
		status             checks.Status
		want               string
	}{
		{"old compiler, new driver", "11.5", "12.8", checks.Pass, "the driver supports CUDA 12.8, the image is built for 11.5"},
		{"new compiler, old driver", "12.8", "11.4", checks.Fail, "driver too old for this image"},
		{"no compiler", "", "12.8", checks.Pass, "the driver supports CUDA 12.8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bin := t.TempDir()
			if tt.nvcc != "" {
				script(t, bin, "nvcc", "echo Cuda compilation tools, release "+tt.nvcc+", V1")
			}
			script(t, bin, tool, `echo "| NVIDIA-SMI 1.2  Driver Version: 1.2  CUDA Version: `+tt.driver+` |"`)
			d := machine{nodes: 1, helpers: []Helper{}, environ: []string{"PATH=" + bin}}.start(t)
			res := run1(t, d.Version())
			require.Equal(t, tt.status, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.want)
		})
	}
}

// What official images ask for names the older branches of data centre drivers.
func TestUnmet_OfficialImages(t *testing.T) {
	official := "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"
	requirements, err := requirementsOf(nil, lookup(official))
	require.NoError(t, err)
	for model, want := range map[string]int{"NVIDIA H100 80GB HBM3": 0, "NVIDIA GeForce RTX 4090": 1, "a model of tomorrow": 0} {
		v := versions{driver: checks.Version{Major: 12, Minor: 2}, name: "535.104.05", brand: brandOf(model), requirements: requirements}
		found := v.unmet()
		require.Len(t, found, want, model)
		if want > 0 {
			require.Equal(t, `the image requires "cuda>=12.4 …", and the driver supports CUDA 12.2`, found[0].text)
			require.Equal(t, checks.Warn, found[0].status)
		}
	}
}

func TestVersionsOf_NamesWhoSpeaks(t *testing.T) {
	s := &survey{nvml: inventory{source: "NVML", driver: wire.Driver{Version: "550.1", CUDA: 12040}}, cuda: listing{library: wire.Library{Version: 12060}}}
	require.Equal(t, "12.4 NVML", versionsOf(s).driver.String()+" "+versionsOf(s).source)
	s.smi = inventory{source: tool, driver: wire.Driver{CUDA: 12020}}
	require.Equal(t, "12.2 nvidia-smi", versionsOf(s).driver.String()+" "+versionsOf(s).source)
	s.smi, s.nvml = inventory{source: tool, err: errNoTool}, inventory{}
	require.Equal(t, "12.6 libcuda", versionsOf(s).driver.String()+" "+versionsOf(s).source)
}
