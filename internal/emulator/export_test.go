package emulator

// Routes are the methods and paths that are answered, paths as echo writes them.
func (e *Emulator) Routes() map[string][]string {
	routes := map[string][]string{}
	for _, r := range e.routes().Routes() {
		routes[r.Path] = append(routes[r.Path], r.Method)
	}
	return routes
}
