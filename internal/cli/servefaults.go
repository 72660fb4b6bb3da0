package cli

import (
	"encoding/json"
	"os"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/emulator/fault"
)

const flagFaults = "faults"

func faultsFlag() cli.Flag {
	return &cli.StringFlag{Name: flagFaults, Usage: "YAML or JSON `FILE` with rules for calls that are to go wrong"}
}

// readFaults reads the file of --faults.
func readFaults(path string) (fault.Plan, error) {
	if path == "" {
		return fault.Plan{}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Plan{}, usagef("--%s: %w", flagFaults, bare(err))
	}
	var document any
	if err = yaml.Unmarshal(text, &document); err == nil {
		text, err = json.Marshal(document)
	}
	if err != nil {
		return fault.Plan{}, usagef("--%s %s: %w", flagFaults, path, err)
	}
	plan, err := fault.Parse(text)
	if err != nil {
		return fault.Plan{}, usagef("--%s %s: %w", flagFaults, path, err)
	}
	return plan, nil
}
