package cli

import (
	"context"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/declared"
	"runpodctl-worker/internal/checks/gpu"
	"runpodctl-worker/internal/checks/host"
)

// builtinChecks lists the checks that come with the program, in the order in which they run within their phase.
func builtinChecks(cfg checks.Config, driver *gpu.Driver, target string) []checks.Check {
	return []checks.Check{
		host.Memory(cfg),
		host.Disk(cfg),
		driver.Version(),
		driver.Health(),
		driver.Memory(),
		host.System(cfg),
		host.Network(cfg, target),
		driver.Init(),
		driver.Benchmark(),
	}
}

// newSuite joins the built-in checks with those of a checks file, which may be empty.
func newSuite(ctx context.Context, cfg checks.Config, driver *gpu.Driver, target, file string) (*checks.Suite, error) {
	suite := new(checks.Suite)
	builtin := builtinChecks(cfg, driver, target)
	if err := suite.Add(builtin...); err != nil {
		return nil, err
	}
	if file == "" {
		return suite, nil
	}
	taken := make([]string, len(builtin))
	for i, c := range builtin {
		taken[i] = c.ID
	}
	own, err := declared.Load(ctx, file, declared.Deps{Lookup: cfg.Lookup, GPUs: gpus(driver), Taken: taken})
	if err != nil {
		return nil, usagef("--%s: %w", flagChecks, bare(err))
	}
	if err := suite.Add(own...); err != nil {
		return nil, usagef("--%s %s: %w", flagChecks, file, err)
	}
	return suite, nil
}

// gpus lends the declared checks what the driver knows.
func gpus(driver *gpu.Driver) func(context.Context) ([]declared.GPU, error) {
	return func(ctx context.Context) ([]declared.GPU, error) {
		infos, err := driver.GPUs(ctx)
		list := make([]declared.GPU, len(infos))
		for i, info := range infos {
			list[i] = declared.GPU(info)
		}
		return list, err
	}
}
