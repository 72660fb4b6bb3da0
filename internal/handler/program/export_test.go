package program

// WithoutPlace leaves the shim no directory that it could be written to.
func (p *Program) WithoutPlace(dir string) *Program {
	p.places = []string{dir}
	return p
}
