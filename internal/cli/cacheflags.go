package cli

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/volume"
)

// Flags of run that keep directories warm.
const (
	flagCacheDir       = "cache-dir"
	flagCacheVolume    = "cache-volume"
	flagCacheNamespace = "cache-namespace"
	flagCacheTimeout   = "cache-timeout"
)

// defaultCacheTimeout leaves some of the platform's seven minutes to the program, should it have to download after all.
const defaultCacheTimeout = 4 * time.Minute

func cacheFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: flagCacheDir, Usage: "`DIR` that is filled from the network volume before the handler starts, and mirrored there when it has changed; may be repeated"},
		&cli.StringFlag{Name: flagCacheVolume, Value: defaultVolume, Usage: "`DIR` where the network volume is mounted"},
		&cli.StringFlag{Name: flagCacheNamespace, Usage: "`NAME` of the mirror's folder on the volume (default: $RUNPOD_ENDPOINT_ID)"},
		&cli.DurationFlag{Name: flagCacheTimeout, Value: defaultCacheTimeout, Usage: "how long the handler's start may wait for the volume; 0 = as long as it gets on"},
	}
}

// cacheOptions are these flags.
type cacheOptions struct {
	dirs              []string // none: no cache
	volume, namespace string
	timeout           time.Duration
}

func (s *session) readCacheFlags(c *cli.Context) (cacheOptions, error) {
	o := cacheOptions{
		dirs: c.StringSlice(flagCacheDir), volume: s.setting(c, flagCacheVolume, config.CacheVolume),
		namespace: s.namespace(c, flagCacheNamespace), timeout: c.Duration(flagCacheTimeout),
	}
	if list, _ := s.Lookup(config.CacheDir); !c.IsSet(flagCacheDir) {
		o.dirs = filepath.SplitList(list)
	}
	if o.timeout < 0 {
		return o, usagef("--%s %s: want no negative time", flagCacheTimeout, o.timeout)
	}
	return o, nil
}

// openCache is the warm cache of a worker, nil where there is nothing to keep it in.
func (s *session) openCache(o cacheOptions, grace time.Duration, told func(string, volume.Report), log *slog.Logger) (*warmCache, error) {
	if len(o.dirs) == 0 {
		return nil, nil //nolint:nilnil // nothing is cached
	}
	if o.namespace == "" {
		log.Info("VolumeCache: nothing is cached, since the mirror has no name: give --" + flagCacheNamespace + " or set " + config.EndpointID)
		return nil, nil //nolint:nilnil // nothing is cached
	}
	options := volume.Options{Volume: o.volume, Namespace: o.namespace, Dirs: o.dirs, Log: volumeLog(log)}
	fill, err := volume.New(options)
	if err != nil {
		return nil, usagef("--%s: %w", flagCacheDir, err)
	}
	options.Copiers = syncCopiers
	keep, err := volume.New(options)
	if err != nil {
		return nil, usagef("--%s: %w", flagCacheDir, err)
	}
	return &warmCache{
		fill: fill, keep: keep, mirror: filepath.Join(o.volume, ".cache", o.namespace), timeout: o.timeout, grace: grace,
		log: log, told: told,
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}, nil
}
